"""What linear interpolation in a cell leaves open, of functions of a known norm."""

import math

import mpmath
import numpy as np
import pytest

from zhat.core.arrays import tensor_grid
from zhat.core.certify.remainder import axis_remainder, remainder_norms
from zhat.core.gp.kernels import Kernel

NUS = (0.5, 1.5, 2.5, math.inf)


def correlation_by_mpmath(nu, z):
    if nu == math.inf:
        return mpmath.exp(-z * z / 2)
    return 2 ** (1 - mpmath.mpf(nu)) / mpmath.gamma(nu) * z**nu * mpmath.besselk(nu, z)


@pytest.mark.parametrize("nu", [0.25, 0.5, 0.8, 1.0, 1.3, 1.5, 1.9, 2.0, 2.1, 2.5, 4.0, math.inf])
def test_the_remainder_on_an_interval_is_bounded_and_closely_so(nu):
    def variogram(z):
        return 1 - correlation_by_mpmath(nu, z)

    with mpmath.workdps(50):
        for side in (1e-5, 1e-2, 0.5, 4.0):
            s = mpmath.mpf(side)
            norm, flat = axis_remainder(nu, side)
            assert 0.0 <= flat <= 1.0
            for t in (mpmath.mpf(k) / 20 for k in (1, 4, 10)):
                squared = 2 * ((1 - t) * variogram(t * s) + t * variogram((1 - t) * s)) - 2 * t * (1 - t) * variogram(s)
                bound = norm * float(flat + (1 - flat) * 4 * t * (1 - t))
                assert float(mpmath.sqrt(squared)) <= bound * (1 + 1e-12)
            assert norm < 3.2 * float(mpmath.sqrt(squared))


@pytest.mark.parametrize("nu", [2.5, 3.0, 4.0, math.inf])
def test_the_remainder_of_smooth_kernels_is_exact_in_the_middle_of_short_intervals(nu):
    with mpmath.workdps(50):
        s = mpmath.mpf("1e-5")
        end, middle = (correlation_by_mpmath(nu, z) for z in (s, s / 2))
        distance = float(mpmath.sqrt(1.5 + end / 2 - 2 * middle))
    assert axis_remainder(nu, 1e-5) == pytest.approx((distance, 0.0), rel=1e-4)


@pytest.mark.parametrize("nu", NUS)
def test_the_remainder_in_a_box_is_bounded(nu):
    rng = np.random.default_rng(0)
    kernel = Kernel(nu, (0.3, 0.8, 0.5), 2.0)
    for size in (1.0, 0.3, 0.1):
        widths = size * rng.random(3)
        corners = tensor_grid(np.array([0.0, 1.0]), 3)
        for place in rng.random((20, 3)):
            weights = np.prod(np.where(corners == 1, place, 1 - place), axis=1)
            points, signed = np.vstack([corners, place]) * widths, np.append(-weights, 1.0)
            norms, flat = remainder_norms(kernel, widths)
            bound = norms @ (flat + (1 - flat) * 4 * place * (1 - place))
            assert signed @ kernel.matrix(points, points) @ signed <= bound**2 + 1e-14
