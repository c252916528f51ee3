"""The kernel whose norm bounds an energy: what a certificate of log Z needs to be told."""

from __future__ import annotations

import math
import numbers

from zhat.core.gp.families import FAMILIES, Shape
from zhat.core.gp.kernels import Kernel
from zhat.errors import InvalidArgument
from zhat.protocol.estimator import Estimator
from zhat.util import fields

#: The kernel of the norm unless told otherwise: the one that the paper draws its functions with, on the unit cube.
DEFAULT_KERNEL = Kernel(2.5, 0.2)


def check_norm(rkhs_norm: float | None, kernel: Kernel | None) -> None:
    """Refuse before anything is spent what certifies nothing."""
    positive = isinstance(rkhs_norm, numbers.Real) and not isinstance(rkhs_norm, bool) and 0.0 < rkhs_norm < math.inf
    if rkhs_norm is not None and not positive:
        raise InvalidArgument("rkhs_norm", rkhs_norm, "a finite number above 0, or None")
    if kernel is not None and not isinstance(kernel, Kernel):
        raise InvalidArgument("rkhs_kernel", kernel, "a zhat.Kernel, on the unit cube")
    if kernel is not None and rkhs_norm is None:
        raise InvalidArgument("rkhs_norm", None, "a finite number above 0: the norm that rkhs_kernel defines")


def kernel_of(estimator: Estimator) -> Kernel:
    """Return the kernel of the norm where none was given: that of the method, if its settings know one."""
    model = getattr(estimator, "model", None)
    if model is None or model.lengthscale is None:
        return DEFAULT_KERNEL
    return Kernel(model.nu[0] if isinstance(model.nu, tuple) else model.nu, model.lengthscale, model.scale)


def stored_shape(value: object) -> Shape:
    """Return what a file says that a kernel is: its smoothness, or its name."""
    return value if isinstance(value, str) and value in FAMILIES else fields.any_number("nu", value)
