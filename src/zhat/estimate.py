"""What a user gets back: log Z, how wrong it may be, and every fact it rests on."""

from __future__ import annotations

import json
import math
import numbers
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtri

from zhat.certificate import DEFAULT_KERNEL, Certificate, certify
from zhat.core.arrays import FloatArray
from zhat.core.kernels import Kernel
from zhat.domain import Box
from zhat.errors import EnergyError, FileError, InvalidArgument
from zhat.evaluations import Evaluations
from zhat.threads import one_blas_thread

if TYPE_CHECKING:
    from zhat.curve import Curve
    from zhat.estimators.base import Estimator, NoiseKind, Task
    from zhat.plan import Plan

#: Marks a file as ours; the number rises with every change that an older zhat could not read.
_FORMAT = "zhat-estimate"
_VERSION = 2
#: So many reasons for failures are named in a summary.
MOST_REASONS = 10


@dataclass(frozen=True, eq=False)
class Estimate:
    """An estimate of log Z(λ) = log ∫ exp(-λ f(x)) dx over a box.

    Attributes
    ----------
    log_z
        The estimate, in the user's units (Lebesgue measure on the box).
    std_error
        Its standard error; NaN where the method has none, and `status` then says so.
    status
        "budget spent", or what a user should know.
    method
        Name of the method.
    inverse_temperature
        λ.
    noise_std
        Standard deviation of the noise as it was given; None if it was learned. Where the noise differs from point to
        point, this is 0 and ``evaluations.noise_std`` tells.
    budget
        How many evaluations might have been spent.
    seed
        The same seed, problem and method give the same result to the last bit.
    domain
        The box.
    evaluations
        Every evaluation, failed ones included, after those that were given.
    diagnostics
        Numbers and words that explain the estimate; which ones depends on the method.
    estimator
        The estimator, with its settings. A file keeps only its name: one that was loaded has that name's default ones.
    noise_kind
        What the noise leaves right in the mean: the "energy" or the "likelihood".
    n_given
        How many of the evaluations were given and not spent.
    rkhs_norm, rkhs_kernel
        A bound of the energy's norm, if one is known, and the kernel whose norm it is.
    other_inverse_temperatures
        Smaller λ that the evaluations were chosen for as well.
    """

    log_z: float
    std_error: float
    status: str
    method: str
    inverse_temperature: float
    noise_std: float | None
    budget: int
    seed: int
    domain: Box
    evaluations: Evaluations
    diagnostics: Mapping[str, float | str] = field(default_factory=dict)
    estimator: Estimator | None = field(default=None, repr=False)
    noise_kind: NoiseKind = "energy"
    n_given: int = 0
    rkhs_norm: float | None = None
    rkhs_kernel: Kernel = DEFAULT_KERNEL
    other_inverse_temperatures: tuple[float, ...] = ()

    @property
    def n_evaluations(self) -> int:
        """How many evaluations were spent, failed ones included."""
        return len(self.evaluations) - self.n_given

    @property
    def task(self) -> Task:
        """The problem as the estimator saw it."""
        from zhat.estimators.base import Task

        return Task(
            dim=self.domain.dim, inverse_temperature=self.inverse_temperature, budget=self.budget + self.n_given,
            noise_std=self.noise_std, seed=self.seed, noise_kind=self.noise_kind, n_given=self.n_given,
            periodic=self.domain.periodic, others=self.other_inverse_temperatures,
        )  # fmt: skip

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Return the interval for log Z at this level, from the normal distribution.

        Without a standard error nothing is excluded: the interval is (-inf, inf).
        """
        if not 0.0 < level < 1.0:
            raise InvalidArgument("level", level, "a number between 0 and 1")
        if math.isnan(self.std_error):
            return -math.inf, math.inf
        half = float(ndtri(0.5 + 0.5 * level)) * self.std_error
        return self.log_z - half, self.log_z + half

    def sample(self, n: int, seed: int | None = None) -> FloatArray:
        """Return ``n`` draws from the surrogate's e^{-λf}/Z, in the user's units, shape ``(n, d)``.

        The surrogate is that of all evaluations, so the draws follow the posterior as well as log Z is known.
        """
        from zhat.estimators import named

        if not isinstance(n, numbers.Integral) or isinstance(n, bool) or n < 1:
            raise InvalidArgument("n", n, "a whole number of at least 1")
        estimator = self.estimator or named(self.method)
        posterior = getattr(estimator, "posterior", None)
        if posterior is None:
            raise InvalidArgument("method", self.method, "a method with a surrogate to draw from, such as 'auto'")
        with one_blas_thread():
            distribution = posterior(self.task, self.evaluations)
            if distribution is None:
                raise EnergyError("there is nothing to draw from: no finite energy was seen")
            return self.domain.to_user(distribution.draw(int(n), np.random.default_rng(seed)).points)

    @cached_property
    def certificate(self) -> Certificate:
        """Bounds of log Z that hold with certainty, if a bound of the energy's norm was given."""
        with one_blas_thread():
            return certify(self)

    def plan(self, relative_error: float = 0.01) -> Plan:
        """Return how many more evaluations it would take to know Z to this relative error, with a range."""
        from zhat.plan import plan

        return plan(self, relative_error)

    def curve(self, inverse_temperatures: Sequence[float] | FloatArray | float) -> Curve:
        """Return log Z, mean energy, heat capacity and free energy at other λ, from the same evaluations.

        Parameters
        ----------
        inverse_temperatures
            λ, one or several, each from 0 to 1.5 times that of the estimate.

        Returns
        -------
        Curve
            At the estimate's own λ it has the estimate's own log Z and error. The farther below it a λ is, the more it
            rests on places that the evaluations were not chosen for; the errors say how much.
        """
        from zhat.curve import curve_of

        with one_blas_thread():
            return curve_of(self, inverse_temperatures)

    def summary(self) -> str:
        """Return the estimate in a few lines of text."""
        low, high = self.interval(0.95)
        # As many decimals as the error makes worth reading.
        decimals = 5 if not self.std_error > 0 else min(max(2 - math.floor(math.log10(self.std_error)), 3), 12)
        if math.isnan(self.std_error):
            error = "no error estimate"
        else:
            error = f"± {self.std_error:.2g}   (95%: {low:.{decimals}f} to {high:.{decimals}f})"
        failed = self.evaluations.n_failed
        lines = [
            f"log Z     {self.log_z:.{decimals}f}  {error}",
            f"method    {self.method}, λ = {self.inverse_temperature:g}, {self.domain.dim}-d, seed {self.seed}",
            f"spent     {self.n_evaluations} of {self.budget} evaluations"
            + (f", {failed} failed" if failed else "")
            + (f"; {self.n_given} more were given" if self.n_given else ""),
            f"status    {self.status}",
        ]
        reasons = self.evaluations.failures_by_reason()
        lines += [f"failed    {count} x {reason}" for reason, count in reasons[:MOST_REASONS]]
        if others := reasons[MOST_REASONS:]:
            count = sum(count for _, count in others)
            lines.append(f"failed    {count} more, for {len(others)} other reason{'s' if len(others) > 1 else ''}")
        return "\n".join(lines)

    def __str__(self) -> str:
        """Return the summary."""
        return self.summary()

    def save(self, path: str | PathLike[str]) -> None:
        """Write everything to a JSON file, from which `load` makes an equal estimate."""
        document = {
            "format": _FORMAT,
            "version": _VERSION,
            "log_z": _number_out(self.log_z),
            "std_error": _number_out(self.std_error),
            "status": self.status,
            "method": self.method,
            "inverse_temperature": self.inverse_temperature,
            "other_inverse_temperatures": list(self.other_inverse_temperatures),
            "noise_std": self.noise_std,
            "noise_kind": self.noise_kind,
            "n_given": self.n_given,
            "rkhs_norm": self.rkhs_norm,
            "rkhs_kernel": _kernel_out(self.rkhs_kernel),
            "budget": self.budget,
            "seed": self.seed,
            "bounds": {
                name: [low, high]
                for name, low, high in zip(self.domain.names, self.domain.lower, self.domain.upper, strict=True)
            },
            "periodic": [self.domain.names[axis] for axis in self.domain.periodic],
            "diagnostics": {
                key: value if isinstance(value, str) else {"number": _number_out(value)}
                for key, value in self.diagnostics.items()
            },
            "evaluations": {
                "x": self.evaluations.x.tolist(),
                "unit": self.evaluations.unit.tolist(),
                "y": [_number_out(value) for value in self.evaluations.y.tolist()],
                "failure": list(self.evaluations.failure),
                "seconds": self.evaluations.seconds.tolist(),
                "noise_std": [_number_out(value) for value in self.evaluations.noise_std.tolist()],
            },
        }
        Path(path).write_text(json.dumps(document, allow_nan=False, indent=1) + "\n", encoding="utf-8")


def load(path: str | PathLike[str]) -> Estimate:
    """Read an estimate that `Estimate.save` wrote."""
    try:
        document = json.loads(Path(path).read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise FileError(f"{path} is not a JSON file: {error}") from None
    if not isinstance(document, dict) or document.get("format") != _FORMAT:
        raise FileError(f"{path} is not an estimate that zhat saved")
    if document.get("version") not in range(1, _VERSION + 1):
        raise FileError(f"{path} is of version {document.get('version')}; this zhat reads versions 1 to {_VERSION}")
    try:
        return _from_document(document)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise FileError(f"{path} is damaged: {type(error).__name__}: {error}") from None


def _from_document(document: dict[str, Any]) -> Estimate:
    # Older files know of no periodic axes.
    domain = Box.from_bounds(document["bounds"], document.get("periodic", ()))
    table = document["evaluations"]
    evaluations = Evaluations(
        x=_matrix(table["x"], domain.dim),
        unit=_matrix(table["unit"], domain.dim),
        y=np.array([_number_in(value) for value in table["y"]], dtype=float),
        failure=tuple(map(str, table["failure"])),
        seconds=np.array(table["seconds"], dtype=float),
        # Version 1 had one noise for all, and nothing was given.
        noise_std=np.array([_number_in(value) for value in table.get("noise_std", ["nan"] * len(table["y"]))]),
    )
    columns = (evaluations.x, evaluations.unit, evaluations.failure, evaluations.seconds, evaluations.noise_std)
    if any(len(column) != len(evaluations) for column in columns):
        raise ValueError("the columns of the evaluations are of different length")
    return Estimate(
        log_z=_number_in(document["log_z"]),
        std_error=_number_in(document["std_error"]),
        status=document["status"],
        method=document["method"],
        inverse_temperature=float(document["inverse_temperature"]),
        noise_std=document["noise_std"],
        budget=document["budget"],
        seed=document["seed"],
        domain=domain,
        evaluations=evaluations,
        diagnostics={
            key: value if isinstance(value, str) else _number_in(value["number"])
            for key, value in document["diagnostics"].items()
        },
        noise_kind=document.get("noise_kind", "energy"),
        n_given=document.get("n_given", 0),
        rkhs_norm=document.get("rkhs_norm"),
        rkhs_kernel=_kernel_in(document.get("rkhs_kernel")),
        # Files of before curves were known have none.
        other_inverse_temperatures=tuple(map(float, document.get("other_inverse_temperatures", ()))),
    )


def _kernel_out(kernel: Kernel) -> dict[str, Any]:
    return {"nu": _number_out(kernel.nu), "lengthscale": kernel.lengthscale, "scale": kernel.scale}


def _kernel_in(document: dict[str, Any] | None) -> Kernel:
    if document is None:
        return DEFAULT_KERNEL
    lengthscale = document["lengthscale"]
    lengths = tuple(lengthscale) if isinstance(lengthscale, list) else float(lengthscale)
    return Kernel(_number_in(document["nu"]), lengths, float(document["scale"]))


def _matrix(rows: list[list[float]], dim: int) -> FloatArray:
    return np.array(rows, dtype=float).reshape(len(rows), dim)


def _number_out(value: float) -> float | str:
    """Return a number for JSON, which has no words for NaN and infinity."""
    return float(value) if math.isfinite(value) else str(float(value))


def _number_in(value: float | str) -> float:
    return float(value)
