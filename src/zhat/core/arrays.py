"""Small helpers for arrays that several parts of the core share."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IndexArray = NDArray[np.intp]
BoolArray = NDArray[np.bool_]

#: A cheap, vectorised function on the unit cube: ``(n, d) -> (n,)``.
Surface = Callable[[FloatArray], FloatArray]

#: One with its gradient: ``(n, d) -> (n,), (n, d)``.
GradientSurface = Callable[[FloatArray], tuple[FloatArray, FloatArray]]

#: Elements of a working block: two such blocks of doubles stay in a core's second-level cache.
BLOCK_ELEMENTS = 65_536


def blocks(n_rows: int, n_columns: int) -> Iterator[slice]:
    """Yield slices over ``n_rows`` rows, each of about `BLOCK_ELEMENTS` elements."""
    step = max(1, BLOCK_ELEMENTS // max(1, n_columns))
    for start in range(0, n_rows, step):
        yield slice(start, min(start + step, n_rows))


def tensor_grid(axis: FloatArray, dim: int) -> FloatArray:
    """Return all combinations of ``dim`` values of ``axis``, the last coordinate fastest, shape ``(len**dim, dim)``."""
    return np.stack(np.meshgrid(*[axis] * dim, indexing="ij"), axis=-1).reshape(-1, dim)


def sobol(n: int, dim: int, seed: int | np.random.Generator) -> FloatArray:
    """Return ``n`` scrambled Sobol points in the open unit cube, shape ``(n, dim)``.

    ``n`` need not be a power of two; the first ``n`` points of the next power of two are taken.
    """
    # scipy.stats takes longer to import than the rest of zhat together, and only this line needs it.
    from scipy.stats import qmc

    exponent = max(0, int(np.ceil(np.log2(max(n, 1)))))
    points: FloatArray = qmc.Sobol(dim, scramble=True, rng=np.random.default_rng(seed)).random_base2(exponent)
    # Scrambled points are multiples of 2^-30 or finer, so zero itself can appear.
    return np.maximum(points[:n], 2.0**-54)


def thinned(values: FloatArray, most: int) -> IndexArray:
    """Return at most so many rows: the lowest half of them, and others at even steps."""
    if len(values) <= most:
        return np.arange(len(values))
    order, half = np.argsort(values, kind="stable"), most // 2
    others = order[half:]
    return np.sort(np.concatenate([order[:half], others[np.linspace(0, len(others) - 1, most - half).astype(int)]]))
