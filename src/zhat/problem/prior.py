"""Priors as domains: the unit cube is their quantiles, and log Z an average over them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zhat.core.arrays import FloatArray
from zhat.errors import InvalidArgument
from zhat.problem.domain import PeriodicAxes, axes_of
from zhat.util.checks import as_whole
from zhat.util.threads import default_errors

#: Takes a point of the unit cube, shape ``(d,)``, to the parameters; with ``vectorized=True`` many, ``(n, d)``.
Transform = Callable[..., Any]

#: Quantiles are kept so far from 0 and 1, where those of an infinite support are infinite. What is cut off weighs
#: nothing against an error that is reported.
EDGE = 1e-12
#: Places on the way to an end of the cube.
TOWARDS_THE_END = np.array([1e-3, 1e-6, EDGE])
#: A prior is tried at this many points before anything is paid for.
N_TRIED = 32
#: Of a distribution without jumps the cdf of a quantile is the probability it was asked for, but for this.
LARGEST_JUMP = 1e-6


class _OfMassOne:
    """What all priors have in common."""

    names: tuple[str, ...]

    @property
    def dim(self) -> int:
        """The number of parameters."""
        return len(self.names)

    @property
    def log_volume(self) -> float:
        """A prior's mass is 1."""
        return 0.0


@dataclass(frozen=True, eq=False)
class IndependentPriors(_OfMassOne):
    """Independent parameters, each with a distribution of SciPy's: ``cdf`` takes them to the unit cube and back.

    Attributes
    ----------
    names
        The parameters' names.
    distributions
        One for each.
    periodic
        Indices of parameters that go round, in rising order.
    """

    names: tuple[str, ...]
    distributions: tuple[Any, ...]
    periodic: tuple[int, ...] = ()

    @classmethod
    def of(cls, priors: Mapping[str, Any], periodic: PeriodicAxes = ()) -> IndependentPriors:
        """Return the domain of what a user gave as priors, or say what is wrong with it."""
        wanted = 'a distribution of SciPy for each parameter: {"mu": scipy.stats.norm(0, 5), ...}'
        if not isinstance(priors, Mapping) or not priors:
            raise InvalidArgument("priors", priors, wanted)
        if not all(isinstance(name, str) and name for name in priors):
            raise InvalidArgument("priors", priors, "names that are non-empty strings")
        for name, distribution in priors.items():
            _check_distribution(name, distribution)
        names = tuple(priors)
        return cls(names, tuple(priors.values()), axes_of("periodic", periodic, names))

    @property
    def quantiles(self) -> tuple[int, ...]:
        """Parameters whose distribution has no end, on one side or both."""
        ends = [one.support() for one in self.distributions]
        return tuple(
            axis for axis, pair in enumerate(ends) if axis not in self.periodic and not np.all(np.isfinite(pair))
        )

    def to_user(self, unit: FloatArray) -> FloatArray:
        """Return quantiles."""
        inside = np.clip(unit, EDGE, 1.0 - EDGE)
        return np.stack([_quantile(one, inside[:, axis]) for axis, one in enumerate(self.distributions)], axis=1)

    def to_unit(self, x: FloatArray) -> FloatArray:
        """Return the probabilities below."""
        return np.stack([_probability(one, x[:, axis]) for axis, one in enumerate(self.distributions)], axis=1)

    def contains(self, x: FloatArray) -> NDArray[np.bool_]:
        """Return which points have every parameter within its support."""
        inside = np.ones(len(x), dtype=bool)
        for axis, one in enumerate(self.distributions):
            low, high = one.support()
            inside &= (x[:, axis] >= low) & (x[:, axis] <= high)
        return inside


@dataclass(frozen=True, eq=False)
class PriorTransform(_OfMassOne):
    """A prior given by the function that takes the unit cube to the parameters.

    Attributes
    ----------
    names
        The parameters' names.
    transform
        The function; None where it is not known, as in an estimate that was read from a file.
    vectorized
        Whether it takes many points at once.
    periodic
        Indices of axes of the cube that go round, in rising order.
    quantiles
        Those along which parameters run away at an end of the cube, as they do where a support has none.
    """

    names: tuple[str, ...]
    transform: Transform | None
    vectorized: bool = False
    periodic: tuple[int, ...] = ()
    quantiles: tuple[int, ...] = ()

    @classmethod
    def of(
        cls,
        transform: Transform | None,
        ndim: int,
        names: Sequence[str] | None = None,
        periodic: PeriodicAxes = (),
        vectorized: bool = False,
    ) -> PriorTransform:
        """Return the domain of what a user gave as a transform, tried where it costs nothing yet."""
        if not callable(transform):
            wanted = "a function that takes a point of the unit cube to the parameters, or priors= instead"
            raise InvalidArgument("prior_transform", transform, wanted)
        n_axes = as_whole(ndim)
        if n_axes is None or n_axes < 1:
            raise InvalidArgument("ndim", ndim, "the number of parameters, a whole number of at least 1")
        known = _names(names, n_axes)
        domain = cls(known, transform, vectorized, axes_of("periodic", periodic, known))
        for point in _trial_points(n_axes):
            domain._try(point)
        return replace(domain, quantiles=domain._running_away())

    def to_user(self, unit: FloatArray) -> FloatArray:
        """Return parameters; NaN where the transform has none, which fails that evaluation and no other."""
        transform = self._known_transform()
        inside = np.clip(unit, EDGE, 1.0 - EDGE)
        if self.vectorized:
            return _parameters(transform, inside)
        return np.array([_parameters(transform, row) for row in inside]).reshape(inside.shape)

    def to_unit(self, x: FloatArray) -> FloatArray:
        """Refuse: a transform has no inverse that is known."""
        wanted = "points of the unit cube, u0=, instead of parameters: a transform cannot be turned round"
        raise InvalidArgument("prior_transform", self.transform, wanted)

    def contains(self, x: FloatArray) -> NDArray[np.bool_]:
        """Return which points are finite: nothing else is known of them."""
        return np.asarray(np.all(np.isfinite(x), axis=1))

    def _known_transform(self) -> Transform:
        if self.transform is None:
            wanted = (
                "the one that it was made with, as a file keeps no functions: zhat.load(path, prior_transform=...)"
                " or zhat.Study.open(path, prior_transform=...)"
            )
            raise InvalidArgument("prior_transform", None, wanted)
        return self.transform

    def _running_away(self) -> tuple[int, ...]:
        """Return the axes along which the last millionth of the way to an end is as long as the thousandth before.

        At the end of a support it is a thousand times shorter.
        """
        found = []
        for axis in (axis for axis in range(self.dim) if axis not in self.periodic):
            for places in (TOWARDS_THE_END, 1.0 - TOWARDS_THE_END):
                line = np.full((len(places), self.dim), 0.5)
                line[:, axis] = places
                before, last = np.abs(np.diff(self.to_user(line), axis=0))
                if axis not in found and np.any(last > 0.5 * before):
                    found.append(axis)
        return tuple(found)

    def _try(self, point: FloatArray) -> None:
        """Raise what is wrong with the transform at a point."""
        transform, given = self._known_transform(), point[None, :] if self.vectorized else point
        shown = np.array2string(point, precision=4)
        try:
            returned = transform(given.copy())
        except Exception as error:
            wanted = f"a function of a point of the unit cube; at {shown} it raised {error!r}"
            raise InvalidArgument("prior_transform", transform, wanted) from error
        try:
            x = np.asarray(returned, dtype=float)
        except (TypeError, ValueError):
            wanted = f"{given.shape} numbers for as many; at {shown} it returned {returned!r}"
            raise InvalidArgument("prior_transform", transform, wanted) from None
        if x.shape != given.shape:
            wanted = f"an array of shape {given.shape}, as ndim is {self.dim}; at {shown} it returned shape {x.shape}"
            raise InvalidArgument("prior_transform", transform, wanted)
        if not np.all(np.isfinite(x)):
            wanted = f"finite parameters within (0, 1)^{self.dim}; at {shown} it returned {np.array2string(x)}"
            raise InvalidArgument("prior_transform", transform, wanted)


Prior = IndependentPriors | PriorTransform


def prior_of(
    prior_transform: Transform | None,
    ndim: int | None,
    priors: Mapping[str, Any] | None,
    names: Sequence[str] | None = None,
    periodic: PeriodicAxes = (),
    vectorized: bool = False,
) -> Prior:
    """Return the prior that a user gave in one of two ways: as a transform, or as distributions."""
    if (prior_transform is None) == (priors is None):
        given = None if priors is None else prior_transform
        raise InvalidArgument("prior_transform", given, "either prior_transform and ndim, or priors=")
    if priors is None or prior_transform is not None:
        if ndim is None:
            raise InvalidArgument("ndim", None, "the number of parameters, a whole number of at least 1")
        return PriorTransform.of(prior_transform, ndim, names, periodic, vectorized)
    domain = IndependentPriors.of(priors, periodic)
    if ndim is not None and ndim != domain.dim:
        raise InvalidArgument("ndim", ndim, f"{domain.dim}, as priors has {domain.dim} parameters, or nothing")
    if names is not None:
        raise InvalidArgument("names", names, "nothing with priors=, which has the names")
    return domain


def _trial_points(dim: int) -> Iterable[FloatArray]:
    """Return the centre, the two ends of the diagonal as near as they are ever asked for, and points all over."""
    spread = np.random.default_rng(0).random((N_TRIED, dim))
    return [np.full(dim, 0.5), np.full(dim, EDGE), np.full(dim, 1.0 - EDGE), *spread]


def _names(given: Sequence[str] | None, dim: int) -> tuple[str, ...]:
    if given is None:
        return tuple(f"x{axis}" for axis in range(dim))
    names = tuple(given)
    if isinstance(given, str) or len(set(names)) != dim or not all(isinstance(name, str) and name for name in names):
        raise InvalidArgument("names", given, f"{dim} different names, as ndim is {dim}")
    return names


def _parameters(transform: Transform, unit: FloatArray) -> FloatArray:
    """Return what a transform makes of a point, or of many, if it is of the same shape; NaN if not."""
    try:
        x = np.array(transform(unit.copy()), dtype=float)
    except Exception:
        return np.full(unit.shape, np.nan)
    return x if x.shape == unit.shape else np.full(unit.shape, np.nan)


def _quantile(distribution: Any, probability: FloatArray) -> FloatArray:
    """Return quantiles, of SciPy's distributions of either generation."""
    with default_errors():
        return np.asarray(_inverse(distribution)(probability), dtype=float)


def _inverse(distribution: Any) -> Any:
    return distribution.icdf if hasattr(distribution, "icdf") else distribution.ppf


def _probability(distribution: Any, quantile: FloatArray) -> FloatArray:
    """Return the probabilities below."""
    with default_errors():
        return np.asarray(distribution.cdf(quantile))


def _check_distribution(name: str, given: Any) -> None:
    """Raise unless ``given`` is one parameter's distribution, without jumps and with finite quantiles."""
    # It takes long to import, and whoever has a distribution to give has done so already.
    from scipy.stats import rv_continuous, rv_discrete

    argument, example = f"priors[{name!r}]", "such as scipy.stats.norm(0, 5)"
    generic = getattr(given, "dist", given)
    if isinstance(generic, rv_discrete):
        raise InvalidArgument(argument, given, f"a continuous distribution, {example}; this one is discrete")
    unfrozen = isinstance(given, rv_continuous) and given.numargs > 0
    if unfrozen or not all(hasattr(given, needed) for needed in ("cdf", "support")):
        raise InvalidArgument(argument, given, f"one frozen distribution of SciPy, {example}")
    if not (hasattr(given, "icdf") or hasattr(given, "ppf")):
        raise InvalidArgument(argument, given, f"one frozen distribution of SciPy, {example}")
    probability = np.concatenate([[EDGE, 1.0 - EDGE], (np.arange(N_TRIED) + 0.5) / N_TRIED])
    try:
        with np.errstate(all="ignore"):
            quantiles = np.asarray(_inverse(given)(probability), dtype=float)
    # SciPy has no one error for parameters that are not allowed.
    except (ArithmeticError, ValueError, TypeError, RuntimeError) as error:
        raise InvalidArgument(
            argument, given, f"a distribution of one number, {example}; it raised {error!r}"
        ) from error
    if quantiles.shape != probability.shape or not np.all(np.isfinite(quantiles)):
        wanted = f"a distribution of one number with finite quantiles, {example}; are its parameters allowed?"
        raise InvalidArgument(argument, given, wanted)
    if np.max(np.abs(_probability(given, quantiles) - probability)) > LARGEST_JUMP:
        raise InvalidArgument(argument, given, f"a continuous distribution, {example}; this one's cdf jumps")
