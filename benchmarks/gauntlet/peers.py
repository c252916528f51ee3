"""Other packages on the problems of the gauntlet: dynesty, nautilus, UltraNest and PyVBMC.

They are given the energy itself, without noise and without evaluations that fail, which none of the nested samplers is
made for. What they need is in ``peers-requirements.txt``, and ``make peers`` makes an environment with it; this module
itself needs none of them, so that it can be imported anywhere.

``python -m benchmarks.gauntlet.peers --seed 0 --number 3 --package nautilus --budget 350`` runs one of them on one
problem and prints a line of JSON.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import logging
import math
import os
import signal
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy import stats
from threadpoolctl import threadpool_limits

from zhat.core.arrays import FloatArray

from .problem import Problem

#: Seconds of processor time that a run may take: nested samplers that take longer go round without a call, as they do
#: where the region that they draw from has become a sliver. A surrogate takes its time.
TIME_LIMIT, TIME_LIMIT_OF_SURROGATES = 300.0, 1200.0
#: UltraNest takes finite numbers only, and this is what it puts for others where it repairs them itself.
ULTRANEST_LOWEST = -1e100
#: What a Gaussian process is told of a vanishing integrand before it has seen any other value.
PYVBMC_LOWEST = -1e3
#: How many calls an iteration of PyVBMC has, as it is by default.
PYVBMC_ROUND = 5
#: Where PyVBMC is told to look first: the unit cube between the quantiles of a normal at one standard deviation.
PLAUSIBLE = (float(stats.norm.cdf(-1.0)), float(stats.norm.cdf(1.0)))

#: log Z, and the standard error that the package gives.
Estimate = tuple[float, float]


@dataclass(frozen=True)
class PeerOutcome:
    """What a package made of a problem.

    Attributes
    ----------
    log_z
        log ∫ e^{-λf} dπ; NaN where there is none.
    std_error
        Its standard error, as the package sees it.
    n_calls
        How many points the energy was computed at.
    seconds
        Time of the processor, that of the energy included.
    status
        ``ok``, ``stopped after …`` or ``failed: …``.
    """

    log_z: float
    std_error: float
    n_calls: int
    seconds: float
    status: str


class Stopped(BaseException):
    """A run has used up its calls or its time. Not an `Exception`, so that no package takes it for a failing call."""


class Counted:
    """The log integrand of a problem, which counts its calls and stops a run that has used up what it is allowed.

    Parameters
    ----------
    problem
        Whose log integrand it is.
    budget
        How many points there may be: calls with more stop the run.
    time_limit
        Seconds of processor time after which the run is to be stopped.
    """

    def __init__(self, problem: Problem, budget: int | None, time_limit: float) -> None:
        self.problem = problem
        self.n_calls = 0
        self.budget = math.inf if budget is None else budget
        self.time_limit = time_limit
        self.deadline = time.process_time() + time_limit

    def __call__(self, x: FloatArray) -> FloatArray:
        """Return −λ f at points ``(n, d)``."""
        if self.n_calls + len(x) > self.budget:
            raise Stopped(f"{self.n_calls} calls")
        if self.out_of_time:
            raise Stopped(f"{self.time_limit:g} s")
        self.n_calls += len(x)
        return self.problem.log_integrand(x)

    @property
    def out_of_time(self) -> bool:
        """Whether the time is over."""
        return time.process_time() > self.deadline

    def at(self, x: FloatArray) -> float:
        """Return −λ f at one point."""
        return float(self(np.reshape(x, (1, -1)))[0])


def run_peer(
    package: str, problem: Problem, seed: int, budget: int | None, time_limit: float | None = None
) -> PeerOutcome:
    """Return what a package makes of a problem, with one thread and without a word on the screen.

    Parameters
    ----------
    package
        One of `PACKAGES`.
    problem
        The problem, whose noise and failing evaluations are left out.
    seed
        Of the package's random numbers.
    budget
        How many calls it is held to. None for its own settings, which know no budget.
    time_limit
        Seconds of processor time; None for `TIME_LIMIT`, or that of surrogates.
    """
    if package not in PACKAGES:
        raise ValueError(f"no package {package!r}: there are {', '.join(PACKAGES)}")
    if time_limit is None:
        time_limit = TIME_LIMIT_OF_SURROGATES if package == "pyvbmc" else TIME_LIMIT
    start, log_integrand = time.process_time(), None
    log_z, std_error, status = math.nan, math.nan, "ok"
    with quiet(), threadpool_limits(1):
        try:
            # Before the clock starts: it takes seconds, and no part of the work.
            importlib.import_module(module_of(package))
            start, log_integrand = time.process_time(), Counted(problem, budget, time_limit)
            with alarm(time_limit):
                log_z, std_error = PACKAGES[package](log_integrand, seed, budget)
            if not math.isfinite(log_z):
                log_z, status = math.nan, f"failed: log Z is {log_z}"
        except Stopped as stopped:
            status = f"stopped after {stopped.args[0]}"
        except Exception as error:
            status = f"failed: {type(error).__name__}: {first_line(error)}"
    n_calls = 0 if log_integrand is None else log_integrand.n_calls
    return PeerOutcome(log_z, std_error, n_calls, time.process_time() - start, status)


@contextlib.contextmanager
def alarm(seconds: float) -> Iterator[None]:
    """Stop what is within after some processor time, whether or not it calls the integrand."""

    def stop(*_: object) -> None:
        raise Stopped(f"{seconds:g} s")

    before = signal.signal(signal.SIGPROF, stop)
    # A little later than the deadline, so that whoever is stopped can see that it is over.
    signal.setitimer(signal.ITIMER_PROF, seconds + 0.1)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.signal(signal.SIGPROF, before)


def first_line(error: Exception) -> str:
    """Return the first line of what an error says, and not more than fits into a table."""
    return str(error.args[0] if error.args else "").strip().partition("\n")[0][:200]


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Keep all that is printed, logged and warned of from the screen."""
    disabled = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with open(os.devnull, "w") as nowhere, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with contextlib.redirect_stdout(nowhere), contextlib.redirect_stderr(nowhere):
                yield
    finally:
        logging.disable(disabled)


def n_live_points(dim: int, budget: int) -> int:
    """Return how many live points nested sampling has: few enough to get anywhere, and enough for ellipsoids."""
    return max(2 * dim + 1, budget // 20)


def run_dynesty(log_integrand: Counted, seed: int, budget: int | None) -> Estimate:
    """Run the static sampler of dynesty, which is the one for evidences.

    A budget is not its ``maxcall``, which also counts proposals outside the cube that are never evaluated, and leaves
    out the points it starts from. It is stopped from outside, within a step, which leaves its points as they were
    before it; another run that is not allowed any call adds the live ones and integrates.

    It leaves it to the prior transform to wrap periodic axes, and breaks down where there are no others: the last of
    these is no periodic one then.
    """
    import dynesty

    problem = log_integrand.problem
    periodic = list(problem.periodic)[: problem.dim - 1]

    def transform(unit: FloatArray) -> FloatArray:
        wrapped = np.array(unit)
        wrapped[periodic] %= 1.0
        return np.ravel(problem.from_unit(wrapped[None, :]))

    settings: dict[str, Any] = {} if budget is None else {"nlive": n_live_points(problem.dim, budget)}
    sampler = dynesty.NestedSampler(
        log_integrand.at,
        transform,
        problem.dim,
        periodic=periodic or None,
        rstate=np.random.default_rng(seed),
        **settings,
    )
    try:
        sampler.run_nested(print_progress=False)
    except Stopped:
        if log_integrand.out_of_time:
            raise
        sampler.run_nested(print_progress=False, maxcall=-1)
    results = sampler.results
    return float(results.logz[-1]), float(results.logzerr[-1])


def run_nautilus(log_integrand: Counted, seed: int, budget: int | None, n_networks: int = 4) -> Estimate:
    """Run nautilus, whose standard error of log Z is what its effective sample size makes it.

    It refuses problems of one parameter, and is given an idle second one with these.
    """
    import nautilus

    problem = log_integrand.problem
    settings: dict[str, Any] = {}
    limit = math.inf
    if budget is not None:
        n_batch = max(1, budget // 35)
        settings = {"n_live": max(2 * problem.dim + 1, budget // 14), "n_batch": n_batch}
        # It starts a batch when it has not reached the limit yet.
        limit = budget - n_batch + 1
    sampler = nautilus.Sampler(
        lambda unit: problem.from_unit(unit[:, : problem.dim]),
        log_integrand,
        n_dim=max(2, problem.dim),
        periodic=np.array(problem.periodic) if problem.periodic else None,
        vectorized=True,
        pass_dict=False,
        n_networks=n_networks,
        seed=seed,
        **settings,
    )
    sampler.run(n_like_max=limit)
    n_eff = float(sampler.n_eff)
    return float(sampler.log_z), 1.0 / math.sqrt(n_eff) if n_eff > 0.0 else math.inf


def run_ultranest(log_integrand: Counted, seed: int, budget: int | None) -> Estimate:
    """Run the reactive sampler of UltraNest.

    It draws from NumPy's global generator. A budget that ends within a step leaves its tree of points as it was before
    it, and another run that is not allowed any call integrates over that.
    """
    import ultranest

    problem = log_integrand.problem
    settings: dict[str, Any] = {}
    limits: dict[str, Any] = {}
    if budget is not None:
        n_live = n_live_points(problem.dim, budget)
        settings = {"ndraw_min": max(1, budget // 35), "ndraw_max": max(1, budget // 35)}
        limits = {
            "min_num_live_points": n_live,
            "cluster_num_live_points": min(40, n_live),
            "max_ncalls": budget,
            "widen_before_initial_plateau_num_max": budget // 2,
        }
    # UltraNest draws from the global generator, and from no other.
    np.random.seed(seed % 2**32)  # noqa: NPY002
    sampler = ultranest.ReactiveNestedSampler(
        [f"x{axis}" for axis in range(problem.dim)],
        lambda x: np.maximum(log_integrand(x), ULTRANEST_LOWEST),
        problem.from_unit,
        wrapped_params=[axis in problem.periodic for axis in range(problem.dim)],
        vectorized=True,
        **settings,
    )
    try:
        results = sampler.run(show_status=False, viz_callback=False, **limits)
    except Stopped:
        if log_integrand.out_of_time:
            raise
        results = sampler.run(show_status=False, viz_callback=False, **limits | {"max_ncalls": 1})
    return float(results["logz"]), float(results["logzerr"])


def run_pyvbmc(log_integrand: Counted, seed: int, budget: int | None) -> Estimate:
    """Run PyVBMC, whose evidence lower bound stands for log Z.

    Its parameters are those of the unit cube, with its ends as hard bounds, so that the prior's density is one and the
    package makes its own transform of it; `PLAUSIBLE` has the plausible bounds. Where the integrand vanishes, it is
    told the lowest value it has seen so far, because it refuses infinite ones and a Gaussian process follows no cliff.
    It has at least as many iterations as parameters, so that a budget of less than some 20 + 5 d leaves no estimate.
    """
    import pyvbmc

    problem = log_integrand.problem
    lowest = math.inf

    def log_joint(unit: FloatArray) -> float:
        nonlocal lowest
        value = log_integrand.at(problem.from_unit(np.reshape(unit, (1, -1))))
        if math.isfinite(value):
            lowest = min(lowest, value)
            return value
        return lowest if math.isfinite(lowest) else PYVBMC_LOWEST

    options: dict[str, Any] = {"display": "off", "show_tips": False}
    if budget is not None:
        # It looks at the limit after every iteration, which has some calls.
        options |= {"max_fun_evals": max(1, budget - PYVBMC_ROUND + 1), "fun_evals_per_iter": PYVBMC_ROUND}
    ends = [np.full((1, problem.dim), end) for end in (0.0, 1.0, *PLAUSIBLE)]
    _, results = pyvbmc.VBMC(log_joint, None, *ends, options=options, seed=seed).optimize()
    return float(results["elbo"]), float(results["elbo_sd"])


#: What runs each package, by the name it is imported by, which other settings may follow.
PACKAGES: dict[str, Callable[[Counted, int, int | None], Estimate]] = {
    "dynesty": run_dynesty,
    "nautilus": run_nautilus,
    # A third of the time for as many effective draws.
    "nautilus-one-network": partial(run_nautilus, n_networks=1),
    "ultranest": run_ultranest,
    "pyvbmc": run_pyvbmc,
}


def module_of(package: str) -> str:
    """Return the name that one of `PACKAGES` is imported by."""
    return package.partition("-")[0]


def main(arguments: list[str] | None = None) -> None:
    """Run a package on a problem, and print a line of JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gauntlet.peers", description=main.__doc__)
    parser.add_argument("--seed", type=int, required=True, help="of the catalogue, and of the package")
    parser.add_argument("--number", type=int, required=True, help="of the problem")
    parser.add_argument("--package", choices=list(PACKAGES), required=True)
    parser.add_argument("--budget", type=int, help="calls; without it the package's own settings")
    parser.add_argument("--time-limit", type=float, help="seconds of processor time")
    given = parser.parse_args(arguments)
    # Here, because the families take a while to import and nothing else needs them.
    from .catalogue import draw

    problem = draw(given.seed, given.number).problem
    outcome = run_peer(given.package, problem, given.seed, given.budget, given.time_limit)
    which = {"seed": given.seed, "number": given.number, "package": given.package, "budget": given.budget}
    print(json.dumps(which | asdict(outcome)), flush=True)


if __name__ == "__main__":
    main()
