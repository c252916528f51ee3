"""Fine tensor grids over the priors of the gauntlet's problems, and what is promised of modes."""

import numpy as np

from zhat.core.logspace import log_sum_exp

# Cells of equal prior mass along an axis, cells towards a mode on each of its sides, and nodes a cell.
CELLS = {1: (3000, 300, 4), 2: (220, 40, 3), 3: (40, 16, 2)}
CLOSEST = 1e-5
# Of more modes than this an even grid is as good.
MOST_CLUSTERS = 2
N_DRAWS = 2000


def axis_rule(prior, modes, dim):
    """Return nodes along one axis and the log of the prior's mass that each stands for."""
    n_even, n_near, n_nodes = CELLS[dim]
    knots = [np.linspace(0.0, 1.0, n_even + 1)]
    for place in prior.cdf(modes):
        steps = np.geomspace(CLOSEST, 1.0, n_near)
        knots += [place - steps, place + steps, [place]]
    edges = np.unique(np.clip(np.concatenate(knots), 0.0, 1.0))
    nodes, weights = np.polynomial.legendre.leggauss(n_nodes)
    half = 0.5 * np.diff(edges)[:, None]
    unit = (edges[:-1, None] + half * (nodes + 1.0)).ravel()
    return prior.ppf(unit), np.log((half * weights).ravel())


def grid_log_z(problem, of=None):
    """Return log ∫ e^{-λf} dπ on a fine grid, or over a part of it: where the mask says."""
    modes = np.empty((0, problem.dim)) if problem.modes is None else problem.modes
    # The best of modes that are next to each other, and none of very many.
    modes = modes[:0] if len(modes) > 4 else modes[:MOST_CLUSTERS]
    rules = [axis_rule(prior, column, problem.dim) for prior, column in zip(problem.priors, modes.T, strict=True)]
    rest = [nodes for nodes, _ in rules[1:]]
    tail = np.empty((1, 0))
    if rest:
        tail = np.stack(np.meshgrid(*rest, indexing="ij"), axis=-1).reshape(-1, len(rest))
    log_tail = np.zeros(1)
    for _, logs in rules[1:]:
        log_tail = (log_tail[:, None] + logs).ravel()
    parts = []
    step = max(1, 200_000 // len(tail))
    first, log_first = rules[0]
    for start in range(0, len(first), step):
        heads = first[start : start + step]
        x = np.column_stack([np.repeat(heads, len(tail)), np.tile(tail, (len(heads), 1))])
        terms = problem.log_integrand(x) + (log_first[start : start + step, None] + log_tail).ravel()
        parts.append(log_sum_exp(terms if of is None else terms[of(x)]))
    return log_sum_exp(np.array(parts))


def small_draws(draw, count, dims, wanted=lambda problem: True):
    """Yield the first draws of a family with few axes that are wanted."""
    found = 0
    for seed in range(1000):
        problem = draw(np.random.default_rng([seed, 7]))
        if problem.dim in dims and wanted(problem):
            found += 1
            yield problem
        if found == count:
            return
    raise AssertionError("the family has too few such draws")


def has_closed_form(problem):
    return problem.log_z is not None


def prior_draws(problem, n=N_DRAWS):
    return problem.from_unit(np.random.default_rng(3).random((n, problem.dim)))


def check_modes(problem):
    """Check that the best of the modes, if any are told, is better than nearly all of the prior."""
    if problem.modes is None:
        return
    # Under a prior that is not uniform a mode is one of the posterior, of which the energy is a part only.
    share = 0.99 if problem.is_box else 0.95
    assert np.mean(problem.energy(prior_draws(problem)) >= np.min(problem.energy(problem.modes))) >= share
