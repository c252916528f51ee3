"""What the families on data share: real tables, priors of coefficients and scales, and how a likelihood is called."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy import stats
from sklearn import datasets

from zhat.core.arrays import FloatArray

from ..problem import Distribution, Energy, log_uniform

TABLES = {
    "breast cancer": datasets.load_breast_cancer,
    "diabetes": datasets.load_diabetes,
    "digits": datasets.load_digits,
    "iris": datasets.load_iris,
    "wine": datasets.load_wine,
}
#: Rows of a column that must differ from its commonest value, where the table has enough such columns.
FEWEST_VARYING = 3
#: A target with more values than this is a measurement.
MOST_CLASSES = 10
#: Elements of a likelihood's working array, of which several fit into a cache: with more data a block has fewer points.
BLOCK_ELEMENTS = 16_384
#: Share of the problems whose priors are all uniform.
BOX_SHARE = 0.35
#: Half width of a coefficient's box, and standard deviation of its prior elsewhere, both log-uniform.
COEFFICIENT_BOXES = (4.0, 40.0)
COEFFICIENT_SDS = (2.0, 30.0)
#: Scale of a Cauchy prior of coefficients, a common weak choice for standardised columns.
CAUCHY_SCALE = 2.5
LOG_2PI = float(np.log(2.0 * np.pi))

LogLikelihood = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True)
class Sample:
    """Some rows and columns of a table.

    Attributes
    ----------
    columns
        The columns, ``(n, k)``, of mean 0 and variance 1 over the rows.
    target
        What the table is about: a class, or a measure of disease.
    """

    columns: FloatArray
    target: FloatArray

    @property
    def with_intercept(self) -> FloatArray:
        """The columns after a column of ones."""
        return np.column_stack([np.ones(len(self.columns)), self.columns])


@cache
def table(name: str) -> tuple[FloatArray, FloatArray]:
    """Return the columns and the target of a table."""
    columns, target = TABLES[name](return_X_y=True)
    return np.asarray(columns, dtype=float), np.asarray(target, dtype=float)


def standardised(columns: FloatArray) -> FloatArray:
    """Return the columns with mean 0 and variance 1; constant ones become 0."""
    centred = columns - columns.mean(axis=0)
    scale = centred.std(axis=0)
    return np.asarray(centred / np.where(scale > 0.0, scale, 1.0))


def n_varying(column: FloatArray) -> int:
    """Return how many entries differ from the commonest value."""
    return len(column) - int(np.unique(column, return_counts=True)[1].max())


def draw_sample(generator: np.random.Generator, name: str, n_rows: int, n_columns: int) -> Sample:
    """Return rows, in the table's order, and columns of a table."""
    columns, target = table(name)
    rows = np.sort(generator.choice(len(columns), min(n_rows, len(columns)), replace=False))
    varying = np.array([n_varying(column) for column in columns[rows].T])
    pool = np.argsort(-varying, kind="stable")[: max(n_columns, int(np.sum(varying >= FEWEST_VARYING)))]
    chosen = generator.choice(pool, n_columns, replace=False)
    return Sample(standardised(columns[np.ix_(rows, chosen)]), target[rows])


def draw_any_sample(generator: np.random.Generator, n_rows: int, n_columns: int) -> Sample:
    """Return rows and columns of one of the tables that have so many columns."""
    names = [name for name in TABLES if table(name)[0].shape[1] >= n_columns]
    return draw_sample(generator, str(generator.choice(names)), n_rows, n_columns)


def draw_rows(generator: np.random.Generator, low: int, high: int) -> int:
    """Return a number of rows whose logarithm is about uniform."""
    return round(log_uniform(generator, low, high))


def draw_signs(generator: np.random.Generator, target: FloatArray) -> FloatArray:
    """Return ±1 for each row: half of the classes against the others, or what is above the median."""
    values = np.unique(target)
    if len(values) > MOST_CLASSES:
        return np.where(target > np.median(target), 1.0, -1.0)
    positive = generator.choice(values, len(values) // 2, replace=False)
    return np.where(np.isin(target, positive), 1.0, -1.0)


def draw_as_box(generator: np.random.Generator) -> bool:
    """Return whether all priors shall be uniform."""
    return bool(generator.random() < BOX_SHARE)


def coefficient_priors(
    generator: np.random.Generator,
    count: int,
    as_box: bool,
    boxes: tuple[float, float] = COEFFICIENT_BOXES,
    sds: tuple[float, float] = COEFFICIENT_SDS,
) -> tuple[Distribution, ...]:
    """Return equal priors around 0 of some coefficients."""
    half_width, sd = log_uniform(generator, *boxes), log_uniform(generator, *sds)
    kind = generator.random()
    if as_box:
        prior = stats.uniform(-half_width, 2.0 * half_width)
    elif kind < 0.65:
        prior = stats.norm(0.0, sd)
    elif kind < 0.85:
        prior = stats.laplace(0.0, sd / np.sqrt(2.0))
    else:
        prior = stats.cauchy(0.0, CAUCHY_SCALE)
    return (prior,) * count


def between(low: float, high: float, as_box: bool) -> Distribution:
    """Return a prior that is uniform on a range, or normal with four standard deviations across it."""
    if as_box:
        return stats.uniform(low, high - low)
    return stats.norm(0.5 * (low + high), 0.25 * (high - low))


def energy_of(log_likelihood: LogLikelihood, n_data: int) -> Energy:
    """Return the energy of a log-likelihood: in blocks of points, and +inf wherever that is not finite."""
    step = int(np.clip(BLOCK_ELEMENTS // n_data, 64, 8192))

    def energy(x: FloatArray) -> FloatArray:
        values = np.empty(len(x))
        with np.errstate(all="ignore"):
            for start in range(0, len(x), step):
                values[start : start + step] = -log_likelihood(x[start : start + step])
        values[~np.isfinite(values)] = np.inf
        return values

    return energy


def inside(priors: tuple[Distribution, ...], points: FloatArray) -> FloatArray | None:
    """Return those of the points at which the prior has a density, or None where there are none."""
    density = np.array([prior.pdf(column) for prior, column in zip(priors, points.T, strict=True)])
    kept = points[np.all(density > 0.0, axis=0)]
    return kept if len(kept) else None


def squares(design: FloatArray, response: FloatArray) -> tuple[FloatArray, FloatArray, float]:
    """Return R, q and s of ``|response - design b|² = |R b - q|² + s``, which no longer depends on the rows' number."""
    orthogonal, upper = np.linalg.qr(design)
    projected = orthogonal.T @ response
    rest = response - orthogonal @ projected
    return upper, projected, float(rest @ rest)
