"""Langevin chains of many surrogates, λ and budgets side by side, as rows of one array.

A chain that is continued is sequential: 128 samples are 2,560 steps, each of which waits for the last. So the chains of
all λ and budgets, and of a few trials, take their steps together. All arithmetic is by rows: what a chain does depends
on no other one, to the last bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from zhat.core.arrays import FloatArray
from zhat.core.gp.families import Shape
from zhat.core.gp.kernels import correlation_and_slope
from zhat.core.gp.process import GaussianProcess
from zhat.core.integrate.langevin import Boundary, langevin_states

#: The paper's number of steps from one sample to the next.
STEPS = 20
#: Where rows with fewer centres have centres without weight: outside of the cube, so that no distance is zero.
_NOWHERE = 2.0


@dataclass(frozen=True, eq=False)
class GradientRows:
    """Gradients of surrogates with a prior mean of zero and one lengthscale each, one for each row of points.

    Attributes
    ----------
    nu
        Smoothness.
    centres
        Where each was fitted, shape ``(d, rows, m)``; one row stands for all.
    weights
        Its weights times the prior variance over the lengthscale, shape ``(rows, m)``.
    inverse_lengths
        Shape ``(rows, 1)``.
    """

    nu: Shape
    centres: FloatArray
    weights: FloatArray
    inverse_lengths: FloatArray

    @classmethod
    def of(cls, processes: Sequence[GaussianProcess], width: int) -> GradientRows:
        """Return the gradients of processes of at most ``width`` points each."""
        dim = processes[0].x.shape[1]
        centres = np.full((dim, len(processes), width), _NOWHERE)
        weights = np.zeros((len(processes), width))
        inverse_lengths = np.empty((len(processes), 1))
        for row, process in enumerate(processes):
            (kernel,) = process.kernel.parts
            centres[:, row, : len(process.x)] = process.x.T
            inverse_lengths[row] = kernel.inverse_lengths[0]
            weights[row, : len(process.x)] = process.weights * (kernel.scale * kernel.inverse_lengths[0])
        return cls(processes[0].kernel.parts[0].nu, centres, weights, inverse_lengths)

    def rows(self, start: int) -> GradientRows:
        """Return those from a row on."""
        return GradientRows(self.nu, self.centres[:, start:], self.weights[start:], self.inverse_lengths[start:])

    def __call__(self, points: FloatArray) -> FloatArray:
        """Return ∇μ of each row's surrogate at its point, shape ``(rows, d)``."""
        apart = [(points[:, axis, None] - at) * self.inverse_lengths for axis, at in enumerate(self.centres)]
        q = np.square(apart[0])
        for along in apart[1:]:
            q += np.square(along)
        slope = np.empty_like(q)
        correlation_and_slope(self.nu, q, slope)
        slope *= self.weights
        return -np.stack([np.sum(slope * along, axis=1) for along in apart], axis=1)


def independent_samples(
    process: GaussianProcess,
    inverse_temperatures: FloatArray,
    starts: FloatArray,
    noise: FloatArray,
    boundary: Boundary,
) -> FloatArray:
    """Return the ends of chains of 20 steps on one surrogate, shape ``(rows, d)``; ``noise`` is ``(20, rows, d)``."""
    gradient = GradientRows.of([process], len(process.x))
    return np.asarray(langevin_states(gradient, inverse_temperatures, starts, noise, STEPS, boundary=boundary)[0])


def continued_samples(
    processes: Sequence[GaussianProcess],
    inverse_temperatures: FloatArray,
    starts: FloatArray,
    noises: Sequence[FloatArray],
    boundary: Boundary,
) -> list[FloatArray]:
    """Return the samples of one continued chain for each row, each 20 steps after the last.

    Parameters
    ----------
    processes, inverse_temperatures, starts
        The surrogate, λ and the start of each chain.
    noises
        Its standard normal numbers, shape ``(20 · samples, d)``: chains need not have as many samples as others.
    boundary
        What happens at the faces of the cube.

    Returns
    -------
    list of FloatArray
        For each row the samples, shape ``(samples, d)``.
    """
    # Those that end first go first, so that the chains that are left are always the last rows.
    order = sorted(range(len(processes)), key=lambda row: len(noises[row]))
    gradient = GradientRows.of([processes[row] for row in order], max(len(process.x) for process in processes))
    at = starts[order]
    temperatures = inverse_temperatures[order]
    found: list[list[FloatArray]] = [[] for _ in order]
    done = 0
    for end in sorted({len(noise) for noise in noises}):
        first = next(place for place, row in enumerate(order) if len(noises[row]) >= end)
        noise = np.stack([noises[row][done:end] for row in order[first:]], axis=1)
        states = langevin_states(
            gradient.rows(first), temperatures[first:], at[first:], noise, STEPS, boundary=boundary
        )
        at[first:] = states[-1]
        for place, row in enumerate(order[first:]):
            found[row].append(states[:, place])
        done = end
    return [np.concatenate(pieces) for pieces in found]
