"""Maximum-variance designs: each point is where the posterior sd, given all points before it, is largest.

Over a fixed set of candidates that is a pivoted Cholesky factorisation, which is what gives the start; L-BFGS-B with
the analytic gradient then moves the best candidates to the nearby maxima. A few thousand refined candidates do better
than many thousands as they are, in less time (``benchmarks/design.py``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.spatial.distance import cdist

from zhat.core.arrays import FloatArray
from zhat.core.gp.kernels import Kernel, correlation_and_slope
from zhat.core.space.candidates import candidate_set
from zhat.core.space.torus import Periodic, clip, embed, gradient_on_cube

#: Below this share of the prior variance the largest variance is rounding, and distance takes its place.
EXHAUSTED = 1e-12
#: A summit whose variance fell by less than this share is still one.
SUMMIT_TOLERANCE = 0.02


@dataclass(frozen=True)
class Design:
    """Points in the unit cube, shape ``(n, d)``, and the posterior sd each had when it was chosen, shape ``(n,)``."""

    points: FloatArray
    sd: FloatArray


def maximum_variance_design(
    kernel: Kernel,
    n: int,
    dim: int,
    *,
    given: FloatArray | None = None,
    n_candidates: int = 4096,
    n_starts: int = 6,
    periodic: Periodic = (),
) -> Design:
    """Return the next ``n`` points of the greedy maximum-variance design.

    Parameters
    ----------
    kernel
        The prior; its scale does not matter.
    n, dim
        How many points, in how many dimensions.
    given
        Points that count as observed already (chosen before, or pending), shape ``(m, d)``.
    n_candidates
        Size of the candidate set. Eight for each point of the design do well; more cost time in proportion.
    n_starts
        How many of the best candidates are refined at each step, at most; 0 for none.
    periodic
        Axes that are embedded as circles. A kernel with several lengthscales has one for each column.
    """
    given = np.empty((0, dim)) if given is None else given
    candidates = candidate_set(n_candidates, dim, periodic)
    greedy = _Greedy(kernel.with_scale(1.0), candidates, len(given) + n, periodic)
    for point in given:
        # The search leaves what it finds among the candidates. Searching before given points too makes the result
        # the same, to the last bit, whether points are asked for all at once or a few at a time.
        greedy.best(n_starts)
        greedy.add(point)
    sd = np.empty(n)
    for step in range(n):
        point, variance = greedy.best(n_starts)
        sd[step] = math.sqrt(max(variance, 0.0))
        greedy.add(point)
    return Design(greedy.points[len(given) :].copy(), math.sqrt(kernel.scale) * sd)


class _Greedy:
    """The state of the greedy search: the chosen points, and the variance left at every candidate."""

    def __init__(self, kernel: Kernel, candidates: FloatArray, capacity: int, periodic: Periodic) -> None:
        self.kernel = kernel
        self.periodic = periodic
        self.candidates = candidates
        self.size = 0
        self.points = np.empty((capacity, candidates.shape[1]))
        self._stretched = np.empty((capacity, candidates.shape[1] + len(periodic)))
        # Row i holds how the i-th chosen point's innovation correlates with every candidate: L⁻¹ k(candidates).
        self._rows = np.empty((capacity, len(candidates)))
        # The inverse of the Cholesky factor L itself, so that a variance is two matrix-vector products.
        self._inverse = np.zeros((capacity, capacity))
        self._remaining = np.ones(len(candidates))
        # Candidates that were refined and whose variance has hardly changed since.
        self._is_summit = np.zeros(len(candidates), dtype=bool)

    def add(self, point: FloatArray) -> None:
        """Condition on one more point."""
        t = self.size
        row = self._solve(point)
        pivot = math.sqrt(max(1.0 - float(row @ row), EXHAUSTED))
        self._inverse[t, :t] = -(row @ self._inverse[:t, :t]) / pivot
        self._inverse[t, t] = 1.0 / pivot
        new = self._rows[t]
        np.matmul(row, self._rows[:t], out=new)
        np.subtract(self.kernel.matrix(self._embed(point[None, :]), self._embed(self.candidates))[0], new, out=new)
        new /= pivot
        taken = new * new
        self._remaining -= taken
        self._is_summit &= taken < SUMMIT_TOLERANCE * self._remaining
        self.points[t] = point
        self._stretched[t] = self.kernel.stretch(self._embed(point[None, :])[0])
        self.size = t + 1

    def best(self, n_starts: int) -> tuple[FloatArray, float]:
        """Return the point of largest variance that candidates and refinement find, and that variance."""
        leader = int(np.argmax(self._remaining))
        if self.size == 0:
            return self.candidates[leader], 1.0
        if self._remaining[leader] < EXHAUSTED:
            return self._farthest()
        # Half the mean spacing of the points so far: about the size of a hill.
        spacing = 0.5 * self.size ** (-1.0 / self.points.shape[1])
        for start in self._starts(n_starts, spacing):
            self._climb(start, spacing)
        leader = int(np.argmax(self._remaining))
        return self.candidates[leader].copy(), float(self._remaining[leader])

    def _starts(self, n: int, spacing: float) -> FloatArray:
        """Return the best candidates that are far from each other and from every summit that is known."""
        # A hill of about the spacing's radius, seen from the candidate nearest to its summit, looks lower by a share of
        # this order; candidates lower than that cannot be on the highest hill.
        n_hills, n_candidates = self.size, len(self._remaining)
        look_down = 1.0 + (2.0 * n_hills / n_candidates) ** (2.0 / self.points.shape[1])
        order = np.argsort(-self._remaining, kind="stable")
        order = order[self._remaining[order] * look_down > self._remaining[order[0]]]
        summits = self.candidates[self._is_summit]
        if len(summits):
            apart = cdist(self._embed(self.candidates[order]), self._embed(summits))
            order = order[apart.min(axis=1) > spacing]
        starts: list[int] = []
        places = self._embed(self.candidates[order])
        for number, place in enumerate(places):
            if len(starts) == n:
                break
            if all(np.sum((places[other] - place) ** 2) > spacing**2 for other in starts):
                starts.append(number)
        return np.asarray(self.candidates[order[np.array(starts, dtype=np.intp)]])

    def _climb(self, start: FloatArray, spacing: float) -> None:
        """Put the summit above ``start`` among the candidates, in place of the least of them."""
        # In units in which the first step of L-BFGS-B, which is one long, does not leave the hill.
        top = float(np.max(self._remaining))

        def objective(scaled: FloatArray) -> tuple[float, FloatArray]:
            value, gradient = self._negative_variance(spacing * scaled)
            return value / top, gradient * (spacing / top)

        bounds = [(None, None) if axis in self.periodic else (0.0, 1.0 / spacing) for axis in range(len(start))]
        options = {"maxiter": 12, "ftol": 1e-4}
        found = minimize(objective, start / spacing, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
        summit = clip(spacing * found.x[None, :], self.periodic)[0]
        worst = int(np.argmin(self._remaining))
        solved = self._solve(summit)
        self.candidates[worst] = summit
        self._rows[: self.size, worst] = solved
        self._remaining[worst] = 1.0 - float(solved @ solved)
        self._is_summit[worst] = True

    def _negative_variance(self, point: FloatArray) -> tuple[float, FloatArray]:
        t = self.size
        inverse = self._inverse[:t, :t]
        place = self._embed(point[None, :])[0]
        difference = place * self.kernel.inverse_lengths - self._stretched[:t]
        correlations = np.einsum("ij,ij->i", difference, difference)
        slope = np.empty(t)
        correlation_and_slope(self.kernel.nu, correlations, slope)
        solved = inverse @ correlations
        slope *= solved @ inverse
        gradient = -2.0 * (slope @ difference) * self.kernel.inverse_lengths
        return float(solved @ solved) - 1.0, gradient_on_cube(gradient[None, :], point[None, :], self.periodic)[0]

    def _solve(self, point: FloatArray) -> FloatArray:
        """Return ``L⁻¹ k(point)``, whose squared length is the variance that the chosen points take away."""
        t = self.size
        with_chosen = self.kernel.matrix(self._embed(self.points[:t]), self._embed(point[None, :]))
        return self._inverse[:t, :t] @ with_chosen[:, 0]

    def _farthest(self) -> tuple[FloatArray, float]:
        """Return the candidate farthest from all chosen points, for when the variance is used up."""
        distance = cdist(self._embed(self.candidates), self._embed(self.points[: self.size])).min(axis=1)
        return self.candidates[int(np.argmax(distance))], float(max(np.max(self._remaining), 0.0))

    def _embed(self, points: FloatArray) -> FloatArray:
        return embed(points, self.periodic)
