"""Models compared by their evidence: Bayes factors and posterior probabilities, with what they may be wrong by."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri, softmax

from zhat.core.arrays import FloatArray
from zhat.errors import InvalidArgument
from zhat.result.estimate import Estimate
from zhat.util.digits import decimals_for

#: How many draws of all log evidences stand for their errors, always the same ones.
N_EVIDENCE_DRAWS = 100_000
#: Kass and Raftery's (1995) words for twice the log Bayes factor, by its lower end.
WORDS = ((10.0, "very strong"), (6.0, "strong"), (2.0, "positive"), (0.0, "not worth more than a bare mention"))


@dataclass(frozen=True)
class BayesFactor:
    """How much more the data speak for one model than for another.

    Attributes
    ----------
    log
        The natural logarithm of the Bayes factor: log Z of the first less that of the second.
    std_error
        Its standard error; the two estimates are independent.
    notes
        What a user should know, a sentence each: which of the two runs has not converged.
    """

    log: float
    std_error: float
    notes: tuple[str, ...] = ()

    @property
    def value(self) -> float:
        """The Bayes factor itself; infinite where it is too large for a number."""
        return math.exp(self.log) if self.log < 709.0 else math.inf

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Return the interval for the logarithm at this level; without a standard error it is (-inf, inf)."""
        if not 0.0 < level < 1.0:
            raise InvalidArgument("level", level, "a number between 0 and 1")
        if math.isnan(self.std_error):
            return -math.inf, math.inf
        half = float(ndtri(0.5 + 0.5 * level)) * self.std_error
        return self.log - half, self.log + half

    @property
    def words(self) -> str:
        """What Kass and Raftery call it: the words for both ends of its 95% interval, where they differ."""
        low, high = self.interval()
        if not math.isfinite(high - low):
            return "nothing can be said: an estimate has no finite error"
        weakest, strongest = (_strength(end) for end in sorted((low, high), key=abs))
        favoured = "first" if self.log >= 0.0 else "second"
        if weakest == strongest == WORDS[-1][1] or low * high > 0.0:
            strength = weakest if weakest == strongest else f"from {weakest} to {strongest}"
            return f"evidence for the {favoured} model: {strength}"
        first, second = _strength(max(high, 0.0)), _strength(min(low, 0.0))
        return f"undecided: up to {first} for the first model, up to {second} for the second"

    def __str__(self) -> str:
        """Return the factor, its interval, which model it speaks for in Kass and Raftery's words, and any doubts."""
        low, high = self.interval()
        decimals = decimals_for(self.std_error, beyond=2, fewest=3)
        number = f"{self.log:.{decimals}f} ± {self.std_error:.2g} (95%: {low:.{decimals}f} to {high:.{decimals}f})"
        return "; ".join([f"log Bayes factor {number}", self.words, *self.notes])


def _strength(log: float) -> str:
    """Return the word for a log Bayes factor, whichever model it speaks for."""
    return next(word for least, word in WORDS if 2.0 * abs(log) >= least)


def bayes_factor(first: Estimate, second: Estimate) -> BayesFactor:
    """Return how much more the data speak for the first model than for the second."""
    for argument, given in (("first", first), ("second", second)):
        _check(argument, given)
    notes = tuple(
        f"the {which} model's run has not converged ({run.status})"
        for which, run in (("first", first), ("second", second))
        if not run.converged
    )
    return BayesFactor(first.log_z - second.log_z, math.hypot(first.std_error, second.std_error), notes)


@dataclass(frozen=True)
class ModelProbability:
    """A model's posterior probability, and its 95% interval from the errors of all log evidences."""

    probability: float
    low: float
    high: float


def model_probabilities(
    estimates: Mapping[str, Estimate], prior: Mapping[str, float] | Sequence[float] | None = None
) -> dict[str, ModelProbability]:
    """Return the posterior probabilities of models, given the evidence of each.

    Parameters
    ----------
    estimates
        What `zhat.evidence` found for each model, by name; of the same data.
    prior
        The models' prior weights, by name or in the same order; equal ones if there are none. They need not sum to 1.
    """
    if not isinstance(estimates, Mapping) or not estimates:
        raise InvalidArgument("estimates", estimates, 'estimates by name: {"logit": est1, "cloglog": est2}')
    for name, given in estimates.items():
        _check(f"estimates[{name!r}]", given)
    log_weights = np.log(_weights(prior, list(estimates)))
    log_z = np.array([one.log_z for one in estimates.values()])
    errors = np.array([one.std_error for one in estimates.values()])
    found = softmax(log_z + log_weights)
    if not np.all(np.isfinite(errors)):
        low, high = np.zeros(len(found)), np.ones(len(found))
    else:
        noise = np.random.default_rng(0).standard_normal((N_EVIDENCE_DRAWS, len(found)))
        low, high = np.quantile(softmax(log_z + errors * noise + log_weights, axis=1), [0.025, 0.975], axis=0)
    return {
        name: ModelProbability(*map(float, numbers))
        for name, numbers in zip(estimates, zip(found, low, high, strict=True), strict=True)
    }


def _weights(prior: Mapping[str, float] | Sequence[float] | None, names: list[str]) -> FloatArray:
    wanted = f"a weight above 0 for each of {', '.join(map(repr, names))}"
    if prior is None:
        return np.ones(len(names))
    if isinstance(prior, Mapping):
        if set(prior) != set(names):
            raise InvalidArgument("prior", prior, wanted)
        prior = [prior[name] for name in names]
    try:
        weights = np.asarray(prior, dtype=float)
    except (TypeError, ValueError):
        raise InvalidArgument("prior", prior, wanted) from None
    if weights.shape != (len(names),) or not np.all(np.isfinite(weights) & (weights > 0.0)):
        raise InvalidArgument("prior", prior, wanted)
    return weights


def _check(argument: str, given: object) -> None:
    if not isinstance(given, Estimate):
        raise InvalidArgument(argument, given, "an estimate that zhat.evidence or zhat.estimate returned")
    if math.isnan(given.log_z):
        raise InvalidArgument(argument, given, "an estimate with a log Z; this one saw no value")
