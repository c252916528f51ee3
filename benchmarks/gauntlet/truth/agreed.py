"""The true log Z of a problem with its error, by means that are independent of each other and must agree."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from zhat.core.arrays import FloatArray

from ..problem import Problem
from .cells import MOST_AXES, integrate_cells
from .density import ScoredIntegrand
from .importance import importance_sampling
from .particles import Swarms, run_swarms

#: The largest error of a truth; what rules and importance sampling try for; and the largest of the particles, which
#: only bear witness.
GOOD_ERROR = 0.01
CELL_ERROR, DRAWN_ERROR = 1e-7, 0.003
WITNESS_ERROR = 0.2
#: Standard errors that two means may be apart; those of the particles come from a few swarms, and are rough.
AGREEING = 5.0
#: Importance sampling in which a single draw weighs more than this is not believed.
LARGEST_SHARE = 0.02
#: Particles that tell adaptive rules where to look.
N_HINTS = 64
#: A known mode this far below the particles' best log L does not matter; a nearest particle farther away than this many
#: of their local distances has missed it.
IRRELEVANT = 8.0


@dataclass(frozen=True)
class Truth:
    """log ∫ e^{-λf} dπ, its error, how it was found, and why it is not to be believed (empty if it is)."""

    log_z: float
    error: float
    means: str
    doubt: str = ""


def find_truth(problem: Problem, generator: np.random.Generator) -> Truth:
    """Return the truth of a problem, the same for the same generator."""
    if problem.log_z is not None:
        return Truth(problem.log_z, problem.log_z_error, "closed form")
    integrand = ScoredIntegrand(problem)
    swarms = run_swarms(integrand, generator)
    if not math.isfinite(swarms.log_z):
        return Truth(math.nan, math.nan, "particles", "no particle reached the posterior")
    chosen = particles_of(swarms, generator)
    truth = None
    if problem.dim <= MOST_AXES:
        hints = [ndtr(chosen[:N_HINTS])]
        if problem.modes is not None:
            hints.append(ndtr(integrand.scores_of(problem.modes)))
        by_cells = integrate_cells(integrand, np.vstack(hints), CELL_ERROR)
        if by_cells.error <= GOOD_ERROR:
            truth = Truth(by_cells.log_z, by_cells.error, "cells")
    if truth is None:
        drawn = importance_sampling(integrand, chosen, DRAWN_ERROR, generator)
        truth = Truth(drawn.log_z, drawn.error, "importance sampling")
        if drawn.error > GOOD_ERROR or drawn.largest_share > LARGEST_SHARE:
            return doubted(truth, f"importance sampling is good to {drawn.error:.2g} only")
    return doubted(truth, doubt_of(problem, integrand, swarms, truth))


def doubted(truth: Truth, doubt: str) -> Truth:
    """Return the truth with a doubt."""
    return Truth(truth.log_z, truth.error, truth.means, doubt)


def particles_of(swarms: Swarms, generator: np.random.Generator) -> FloatArray:
    """Return particles of all swarms, each swarm with the weight of its own log Z."""
    weights = np.exp(swarms.log_weights - np.max(swarms.log_weights))
    chosen = generator.choice(len(weights), size=len(weights), p=weights / weights.sum())
    return swarms.scores[chosen]


def doubt_of(problem: Problem, integrand: ScoredIntegrand, swarms: Swarms, truth: Truth) -> str:
    """Return why a truth is not believed, or nothing."""
    if swarms.error > WITNESS_ERROR:
        return f"swarms of particles differ by {swarms.error:.2g}"
    apart = abs(truth.log_z - swarms.log_z)
    if apart > AGREEING * math.hypot(truth.error, swarms.error, GOOD_ERROR):
        return f"{truth.means} and particles are {apart:.2g} apart"
    if problem.modes is None or truth.means == "cells":
        return ""
    modes = integrand.scores_of(problem.modes)
    heights = integrand(modes)
    relevant = heights > np.max(swarms.log_likelihood) - IRRELEVANT
    spread = np.std(swarms.scores, axis=0)
    for mode in modes[relevant]:
        if not np.any(np.all(np.abs(swarms.scores - mode) < spread, axis=1)):
            return "particles missed a known mode"
    return ""
