"""`evidence`: log ∫ likelihood(x) dprior(x), for people with data and a prior."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from zhat.core.arrays import FloatArray
from zhat.errors import InvalidArgument
from zhat.estimators import Estimator
from zhat.estimators.settings import Settings
from zhat.evaluate.run import ProgressCallback, run
from zhat.problem.domain import PeriodicAxes
from zhat.problem.energy import LOG_LIKELIHOOD, NoiseStd, Problem
from zhat.problem.prior import Prior, prior_of
from zhat.problem.task import NoiseKind
from zhat.result.estimate import Estimate


def evidence(
    log_likelihood: Callable[..., Any],
    prior_transform: Callable[..., Any] | None = None,
    ndim: int | None = None,
    budget: int = 256,
    noise_std: NoiseStd = 0.0,
    method: str | Estimator = "auto",
    seed: int | None = None,
    vectorized: bool = False,
    workers: int = 1,
    executor: object | None = None,
    progress: ProgressCallback | bool | None = None,
    *,
    priors: Mapping[str, Any] | None = None,
    names: Sequence[str] | None = None,
    periodic: PeriodicAxes | None = None,
    logl_args: Sequence[Any] | None = None,
    logl_kwargs: Mapping[str, Any] | None = None,
    ptform_args: Sequence[Any] | None = None,
    ptform_kwargs: Mapping[str, Any] | None = None,
    pool: object | None = None,
    rstate: np.random.Generator | None = None,
    noise_kind: NoiseKind = "energy",
    x0: ArrayLike | None = None,
    logl0: ArrayLike | tuple[ArrayLike, ArrayLike] | None = None,
    u0: ArrayLike | None = None,
) -> Estimate:
    """Estimate the log evidence log ∫ L(x) dπ(x) of a model from a limited number of likelihood calls.

    The first three arguments, ``periodic``, ``pool``, ``rstate``, ``logl_args``, ``logl_kwargs``, ``ptform_args`` and
    ``ptform_kwargs`` are called, and mean, what they do in dynesty.

    Parameters
    ----------
    log_likelihood
        log L: takes the parameters, shape ``(ndim,)``, and returns a number, -inf where the likelihood is zero. It may
        return a tuple ``(value, std)`` with the standard deviation of its noise. A call that raises or returns no
        number is recorded as failed, and the run goes on.
    prior_transform
        Takes a point of the unit cube, shape ``(ndim,)``, to the parameters, so that uniform points become draws from
        the prior.
    ndim
        How many parameters there are.
    budget
        How many calls may be spent; failed ones count.
    noise_std
        Standard deviation of the noise in log L: 0, a number, a function of the parameters, or None to learn it.
    method
        As in `zhat.estimate`.
    seed
        As in `zhat.estimate`.
    workers
        As in `zhat.estimate`.
    executor
        As in `zhat.estimate`.
    progress
        As in `zhat.estimate`.
    vectorized
        Whether both functions take many points at once, shape ``(n, ndim)``.
    priors
        Instead of a transform: a frozen SciPy distribution for each parameter, by name; they are independent.
    names
        Names of the parameters of a transform, for tables and plots.
    periodic
        Parameters that go round: indices, or names.
    logl_args
        More arguments for ``log_likelihood``.
    logl_kwargs
        The same by name.
    ptform_args
        More arguments for ``prior_transform``.
    ptform_kwargs
        The same by name.
    pool
        Another name for ``executor``.
    rstate
        Instead of ``seed``: a generator, from which one is drawn.
    noise_kind
        "energy" if the noise has mean zero in log L; "likelihood" if L itself is right in the mean, as that of a
        particle filter or any other unbiased simulation is.
    x0
        Parameters of calls that were made before, shape ``(n, ndim)``: facts that cost none of the budget. They need
        ``priors``: a transform cannot be turned round.
    logl0
        What these calls returned, shape ``(n,)``, or a tuple with the standard deviations of the noise.
    u0
        Instead of ``x0``: where these calls were made on the unit cube, which ``prior_transform`` takes to the
        parameters; of an earlier result, ``evaluations.unit``.

    Returns
    -------
    Estimate
        Its ``log_z`` is the log evidence, ``sample(n)`` draws from the posterior, in parameters, ``to_arviz()`` hands
        them on, and ``curve`` has the evidence of tempered likelihoods. The energy, in ``evaluations.y``, is −log L.

    Raises
    ------
    EnergyError
        If not one evaluation succeeded.
    KeyboardInterrupt
        Whatever ends a run early, this or anything else, has the facts so far as its attribute ``evaluations``:
        ``x0=error.evaluations.x[ok], logl0=-error.evaluations.y[ok]`` with ``ok = error.evaluations.ok`` goes on from
        them; where there is a transform, ``u0=error.evaluations.unit[ok]`` takes the place of ``x0``.

    Examples
    --------
    >>> import numpy as np, scipy.stats, zhat
    >>> seen = np.array([1.2, 0.7, 1.9])
    >>> found = zhat.evidence(
    ...     lambda x: float(np.sum(scipy.stats.norm.logpdf(seen, x[0], 1.0))),
    ...     priors={"mean": scipy.stats.norm(0, 2)}, budget=32, seed=0,
    ... )
    >>> round(found.log_z, 3)
    -4.588
    """
    domain = _domain(prior_transform, ndim, priors, names, periodic, vectorized, ptform_args, ptform_kwargs)
    settings = Settings.of(
        domain, 1.0, budget, noise_std, method, _seed(seed, rstate), noise_kind=noise_kind, quantity=LOG_LIKELIHOOD
    )
    called = _with_arguments("log_likelihood", log_likelihood, logl_args, logl_kwargs)
    problem = Problem(called, domain, 1.0, noise_std, vectorized, LOG_LIKELIHOOD)
    if pool is not None and executor is not None:
        raise InvalidArgument("pool", pool, "one of executor and pool, which mean the same")
    return run(settings, problem, workers, executor if pool is None else pool, progress, x0, logl0, u0)


def _domain(
    prior_transform: Callable[..., Any] | None,
    ndim: int | None,
    priors: Mapping[str, Any] | None,
    names: Sequence[str] | None,
    periodic: PeriodicAxes | None,
    vectorized: bool,
    args: Sequence[Any] | None,
    kwargs: Mapping[str, Any] | None,
) -> Prior:
    """Return the prior that was given in one of two ways."""
    transform = prior_transform
    if callable(prior_transform) and priors is None and ndim is not None:
        transform = _with_arguments("prior_transform", prior_transform, args, kwargs)
    return prior_of(transform, ndim, priors, names, () if periodic is None else periodic, vectorized)


class _WithArguments:
    """A function with more arguments than the point; a class, so that other processes can be sent one."""

    def __init__(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self._function, self._args, self._kwargs = function, args, kwargs

    def __call__(self, x: FloatArray) -> Any:
        return self._function(x, *self._args, **self._kwargs)


def _with_arguments(
    argument: str, function: Any, args: Sequence[Any] | None, kwargs: Mapping[str, Any] | None
) -> Callable[..., Any]:
    if not callable(function):
        raise InvalidArgument(argument, function, "a function")
    return _WithArguments(function, tuple(args or ()), dict(kwargs or {})) if args or kwargs else function


def _seed(seed: int | None, rstate: np.random.Generator | None) -> int | None:
    if rstate is None:
        return seed
    if seed is not None or not isinstance(rstate, np.random.Generator):
        raise InvalidArgument("rstate", rstate, "a numpy.random.Generator, instead of seed")
    return int(rstate.integers(2**32))
