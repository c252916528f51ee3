"""Which points to evaluate next: what there is to choose from, and how much of it explores."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from zhat.auto.hidden import EXPECTED_DROP, hidden_mass
from zhat.auto.knowledge import Knowledge, Prediction
from zhat.auto.unexplained import visits
from zhat.core.arrays import FloatArray
from zhat.core.design.acquire import Batch, choose_batch
from zhat.core.heights.belief import first_order_variance
from zhat.core.heights.models import INTEGRAND, ROOT, Surrogate, fit_model
from zhat.core.heights.walls import Walls
from zhat.core.integrate.target import Target
from zhat.core.space.candidates import candidate_set
from zhat.core.space.torus import clip, reflect, unrolled

#: One in this many points explores where what the surrogate leaves open is the larger part of the error; and where what
#: may be hidden is.
EXPLORE_RARELY = 3
EXPLORE_OFTEN = 2
#: Points on which the first of the two is found.
N_LEFT_OPEN = 512
#: One in this many points puts such an expectation to the test, where the integrand seems to be found already.
TEST_ONE_IN = 2
#: Before that, it is if the surrogate's sd of the expected heights is below this, by one in this many draws.
SURE_SD = 1.0
DRAWS_A_LOOK = 8
#: Points to choose from: draws from the integrand, points all over the cube, and steps from the lowest ones.
N_DRAWS = 1024
N_CUBE = 1536
N_STEPS = 256
#: While the integrand is yet to be found: how far from the lowest points to look, as shares of their scatter.
CLOUD_SCALES = (0.3, 1.0, 2.0)
#: Where evaluations fail more often than this, as minus the log probability of a value, none is asked for.
EVEN_CHANCE = math.log(2.0)
#: Points that stand for the integrand.
N_REGION = 2048


@dataclass(frozen=True, eq=False)
class Belief:
    """What the next points are chosen by.

    Attributes
    ----------
    surrogate, known
        What was made of what is known.
    density, draws
        The surrogate's e^{-height}, and about where draws from it are.
    predictions
        What was made of it before.
    """

    surrogate: Surrogate
    known: Knowledge
    density: Target
    draws: FloatArray
    predictions: tuple[Prediction, ...] = ()


def next_points(
    belief: Belief,
    n: int,
    generator: np.random.Generator,
    pending: FloatArray | None = None,
    nodes: FloatArray | None = None,
) -> FloatArray:
    """Return the next ``n`` points, shape ``(n, d)``.

    Parameters
    ----------
    belief
        What they are chosen by.
    n
        How many.
    generator
        For candidates.
    pending
        Points that are being evaluated.
    nodes
        The only points to choose from, if there are such, at least ``n``.
    """
    known, density, draws = belief.known, belief.density, belief.draws
    if n == 0:
        return np.empty((0, draws.shape[1]))
    surrogate = chooser(belief.surrogate, known)
    pending = np.empty((0, draws.shape[1])) if pending is None else pending
    found = not known.heights().few_are_low
    searching = not found or expects_lower(surrogate, draws)
    every = EXPLORE_RARELY if searching else explore_every(surrogate, belief, generator)
    region, noise = density.region(N_REGION), known.new_noise()

    def chosen(candidates: FloatArray, n: int, pending: FloatArray) -> FloatArray:
        batch = Batch(n, known.n_asked + len(pending), noise, every, searching)
        candidates = without_tried(candidates, known.without_heights(), surrogate.failing, n)
        return choose_batch(surrogate, candidates, region, pending, batch)

    if nodes is not None:
        return chosen(nodes, n, pending)
    if not searching:
        visited = visits(surrogate, known, n, pending, generator)
        others = chosen(spread_candidates(known, draws, generator), n - len(visited), np.vstack([pending, visited]))
        return np.vstack([visited, others])
    # Where lower ground is expected although much that is low was found, or by a surrogate that is sure of it, the
    # expectation is put to the test, or it would be believed forever.
    is_sure = float(np.median(surrogate.model.variance(draws[::DRAWS_A_LOOK]))) < SURE_SD**2
    tests = chosen(draws, max(1, n // TEST_ONE_IN), pending) if found or is_sure else np.empty((0, draws.shape[1]))
    others = chosen(cloud(known, generator), n - len(tests), np.vstack([pending, tests]))
    return np.vstack([tests, others])


def without_tried(candidates: FloatArray, tried: FloatArray, failing: Walls | None, n: int) -> FloatArray:
    """Return the candidates, at least ``n``, without those tried before in vain or that lie where evaluations fail.

    The surrogate's process knows nothing of points that failed or are behind walls, and would ask for them again.
    """
    if len(tried) == 0:
        return candidates
    known = {row.tobytes() for row in tried}
    candidates = candidates[[row.tobytes() not in known for row in candidates]]
    if failing is None:
        return candidates
    height = failing.height(candidates)
    return candidates[height <= max(EVEN_CHANCE, float(np.sort(height)[min(n, len(height)) - 1]))]


def chooser(surrogate: Surrogate, known: Knowledge) -> Surrogate:
    """Return the surrogate that chooses points: of the integrand itself instead of its root.

    To first order a root knows nothing of how bright it may be where it seems to be dark, so that nobody would look
    there. Where no more than a small power can be modelled, the integrand itself cannot.
    """
    model = surrogate.model
    if not INTEGRAND < model.spec.warp <= ROOT:
        return surrogate
    itself = fit_model(replace(model.spec, warp=INTEGRAND), known.heights(), model.coordinates)
    return replace(surrogate, model=itself)


def expects_lower(surrogate: Surrogate, draws: FloatArray) -> bool:
    """Return whether a surrogate sees the integrand, where its draws are, on lower ground than anything seen."""
    return float(np.median(surrogate.height(draws))) < EXPECTED_DROP


def explore_every(surrogate: Surrogate, belief: Belief, generator: np.random.Generator) -> int:
    """Return how many points go to one that explores, so that each part of the error is paid for by its size."""
    region = belief.density.region(N_REGION).equally_weighted(N_LEFT_OPEN)
    integral = belief.density.log_integral.value
    hidden = hidden_mass(surrogate, belief.predictions, belief.known, integral, generator)
    return EXPLORE_OFTEN if hidden**2 > first_order_variance(surrogate.model, region) else EXPLORE_RARELY


def spread_candidates(known: Knowledge, draws: FloatArray, generator: np.random.Generator) -> FloatArray:
    """Return points to choose from: draws from the integrand, points all over the cube, steps from the lowest ones."""
    dim = draws.shape[1]
    lowest = known.x[np.argsort(known.y)[:8]]
    steps = 0.3 * np.std(unrolled(draws, known.periodic), axis=0) * generator.standard_normal((N_STEPS, dim))
    near = clip(lowest[generator.integers(len(lowest), size=N_STEPS)] + steps, known.periodic)
    even = np.unique(candidate_set(N_CUBE // 2, dim, known.periodic), axis=0)
    return np.vstack([draws, even, generator.random((N_CUBE // 2, dim)), near])


def cloud(known: Knowledge, generator: np.random.Generator) -> FloatArray:
    """Return points around the lowest ones, as widely scattered as these are: where lower ground can be trusted to be.

    What a surrogate expects far from anything low is worth nothing while the integrand is yet to be found.
    """
    dim = known.x.shape[1]
    lowest = unrolled(known.x[np.argsort(known.y)[: 2 * dim + 2]], known.periodic)
    # A single one may be anywhere in the cube.
    spread = np.atleast_2d(np.cov(lowest.T)) if len(lowest) > 1 else np.eye(dim) / 12.0
    values, vectors = np.linalg.eigh(spread)
    root = vectors * np.sqrt(np.maximum(values, 1e-8))
    scale = np.array(CLOUD_SCALES)[generator.integers(len(CLOUD_SCALES), size=N_DRAWS)]
    steps = (generator.standard_normal((N_DRAWS, dim)) * scale[:, None]) @ root.T
    return reflect(lowest[generator.integers(min(3, len(lowest)), size=N_DRAWS)] + steps, known.periodic)
