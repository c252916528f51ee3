"""Groups in real columns: mixtures whose labels are not ordered, and means of groups around a common one."""

from __future__ import annotations

from itertools import permutations

import numpy as np
from scipy import stats

from zhat.core.arrays import FloatArray

from ..problem import Distribution, Draw, Problem, draw_dim
from .data import (
    LOG_2PI,
    LogLikelihood,
    between,
    draw_as_box,
    draw_rows,
    draw_sample,
    energy_of,
    inside,
    standardised,
    table,
)

#: Number of components, whether each has a scale of its own, and whether their weights are unknown, by dimension.
MIXTURES = {
    3: ((2, False, False),),
    4: ((2, False, True), (2, True, False), (3, False, False)),
    5: ((2, True, True),),
    6: ((3, True, False), (3, False, True)),
    8: ((3, True, True),),
}
#: Log of the standard deviations of the components of a standardised column: rounded data allow no much smaller ones.
LOG_SCALES = (-2.3, 1.0)
#: Steps of expectation and maximisation to a mode, and the least standard deviation and weight on the way.
MODE_STEPS = 200
LEAST_SCALE = 0.15
LEAST_WEIGHT = 0.02
#: Classes of the table of digits, which are the groups of the random effects.
N_CLASSES = 10


def weights_of(unit: FloatArray, count: int) -> list[FloatArray]:
    """Return the weights of two or three components, uniform on the simplex where the numbers are uniform."""
    if count == 2:
        return [unit[:, 0], 1.0 - unit[:, 0]]
    # The first of three weights has density 2(1 - w).
    rest = np.sqrt(1.0 - unit[:, 0])
    return [1.0 - rest, rest * unit[:, 1], rest * (1.0 - unit[:, 1])]


def unit_of(weights: FloatArray) -> list[float]:
    """Return the numbers `weights_of` makes these weights from."""
    if len(weights) == 2:
        return [float(weights[0])]
    return [1.0 - (1.0 - float(weights[0])) ** 2, float(weights[1] / (weights[1] + weights[2]))]


def mixture_likelihood(data: FloatArray, count: int, scales: bool, weights: bool) -> LogLikelihood:
    """Return the log-likelihood of means, log-scales (one, or one each) and weights (equal, or as unit numbers)."""
    n_scales = count if scales else 1

    def log_likelihood(x: FloatArray) -> FloatArray:
        log_scales = x[:, count : count + n_scales]
        shares = weights_of(x[:, count + n_scales :], count) if weights else [np.full(len(x), 1.0 / count)] * count
        terms = []
        for component in range(count):
            log_scale = log_scales[:, component if scales else 0]
            off = (data - x[:, component, None]) * np.exp(-log_scale)[:, None]
            off *= off
            off *= -0.5
            off += (np.log(shares[component]) - log_scale)[:, None]
            terms.append(off)
        largest = terms[0].copy()
        for term in terms[1:]:
            np.maximum(largest, term, out=largest)
        total = sum(np.exp(term - largest) for term in terms)
        return np.asarray((largest + np.log(total)).sum(axis=1) - 0.5 * len(data) * LOG_2PI)

    return log_likelihood


def mixture_modes(data: FloatArray, count: int, scales: bool, weights: bool) -> FloatArray:
    """Return where the likelihood is large, under all orders of the components, found from the data's quantiles."""
    means = np.quantile(data, (np.arange(count) + 0.5) / count)
    sds, shares = np.full(count, 0.5), np.full(count, 1.0 / count)
    for _ in range(MODE_STEPS):
        logs = np.log(shares / sds)[:, None] - 0.5 * ((data - means[:, None]) / sds[:, None]) ** 2
        belongs = np.exp(logs - np.logaddexp.reduce(logs, axis=0))
        size = np.maximum(belongs.sum(axis=1), LEAST_WEIGHT * len(data))
        means = belongs @ data / size
        spread = (belongs * (data - means[:, None]) ** 2).sum(axis=1)
        sds = np.sqrt(spread / size) if scales else np.full(count, np.sqrt(spread.sum() / len(data)))
        sds = np.maximum(sds, LEAST_SCALE)
        shares = size / size.sum() if weights else shares
    modes = []
    for order in map(list, permutations(range(count))):
        log_scales = np.log(sds[order]) if scales else np.log(sds[:1])
        modes.append([*means[order], *log_scales, *(unit_of(shares[order]) if weights else ())])
    return np.array(modes)


def normal_mixture(generator: np.random.Generator) -> Problem:
    """Draw a column of iris or wine as a mixture of two or three normals, which may change places."""
    kinds = MIXTURES[int(generator.choice(list(MIXTURES)))]
    count, scales, weights = kinds[generator.integers(len(kinds))]
    as_box = draw_as_box(generator)
    n_rows = draw_rows(generator, 25, 100)
    data = draw_sample(generator, str(generator.choice(["iris", "wine"])), n_rows, 1).columns[:, 0]
    reach = generator.uniform(2.5, 5.0)
    mean = stats.uniform(-reach, 2.0 * reach) if as_box else stats.norm(0.0, 0.5 * reach)
    priors: tuple[Distribution, ...] = (mean,) * count + (between(*LOG_SCALES, as_box),) * (count if scales else 1)
    if weights:
        priors += (stats.uniform(0.0, 1.0),) * (count - 1)
    modes = inside(priors, mixture_modes(data, count, scales, weights))
    return Problem(energy_of(mixture_likelihood(data, count, scales, weights), len(data)), priors, modes=modes)


def effects_likelihood(groups: list[FloatArray], noise: float | None) -> LogLikelihood:
    """Return the log-likelihood of the common mean, the log-spread, the groups' standardised effects and log noise.

    A group's mean is the common one plus its effect times the spread. The noise is no parameter where it is known.
    """
    sizes = np.array([len(group) for group in groups], dtype=float)
    means = np.array([group.mean() for group in groups])
    within = float(sum(np.sum((group - group.mean()) ** 2) for group in groups))
    total = float(sizes.sum())

    def log_likelihood(x: FloatArray) -> FloatArray:
        log_noise = x[:, 2 + len(groups)] if noise is None else np.full(len(x), np.log(noise))
        off = x[:, :1] + np.exp(x[:, 1:2]) * x[:, 2 : 2 + len(groups)] - means
        squared = (within + (off * off) @ sizes) * np.exp(-2.0 * log_noise)
        return np.asarray(-0.5 * squared - total * (log_noise + 0.5 * LOG_2PI))

    return log_likelihood


def random_effects(generator: np.random.Generator) -> Problem:
    """Draw a pixel of handwritten digits, a group each digit, with an unknown spread between the groups."""
    dim, as_box, known = draw_dim(generator, 5, 10), draw_as_box(generator), bool(generator.random() < 0.5)
    n_groups = dim - 2 if known else dim - 3
    columns, classes = table("digits")
    pixel = generator.choice(np.flatnonzero(columns.std(axis=0) > 1.0))
    values = standardised(columns[:, [pixel]])[:, 0]
    chosen = generator.choice(N_CLASSES, n_groups, replace=False)
    groups = [
        generator.choice(values[classes == digit], int(generator.integers(2, 10)), replace=False) for digit in chosen
    ]
    mean = stats.uniform(-5.0, 10.0) if as_box else stats.norm(0.0, generator.uniform(1.0, 5.0))
    priors = (mean, between(-4.0, 2.0, as_box), *(stats.norm(0.0, 1.0),) * n_groups)
    if not known:
        priors = (*priors, between(-2.0, 1.5, as_box))
    noise = float(generator.uniform(0.4, 1.0)) if known else None
    return Problem(energy_of(effects_likelihood(groups, noise), 2 * n_groups), priors)


FAMILIES: dict[str, Draw] = {"normal mixture": normal_mixture, "random effects": random_effects}
