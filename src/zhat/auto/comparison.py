"""Which models to choose from, compared by their evidence: of heights, and of powers of the integrand."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np

from zhat.core.arrays import FloatArray, Surface
from zhat.core.gp.fit import SMOOTHNESSES
from zhat.core.gp.kernels import Covariance
from zhat.core.gp.polynomial import n_given_terms
from zhat.core.gp.trend import TrendName, basis
from zhat.core.heights.coordinates import Coordinates, n_trend_terms
from zhat.core.heights.heights import Heights, relevant_height
from zhat.core.heights.left_out import left_out_error
from zhat.core.heights.models import INTEGRAND, LARGEST_EXPONENT, Model, ModelSpec, Surrogate, fit_model
from zhat.core.heights.walls import Walls
from zhat.core.integrate.target import QUICK, Effort, Target, target
from zhat.core.space.candidates import nearest_volumes
from zhat.core.space.torus import Periodic
from zhat.problem.streams import Purpose
from zhat.problem.task import Task

#: Models are compared on at most this many heights when the last word is to be said, and this many of them are kept.
MOST_COMPARED_LAST = 192
MOST_KEPT = 4
#: Steps from a model to a neighbour that is better.
MODEL_STEPS = 3
#: Powers of the integrand that may be smooth where the energy is not: if they are, they are very smooth.
POWERS = (-2.0, INTEGRAND, -0.5, -0.2, -0.1)
POWER_SMOOTHNESSES = (2.5, math.inf)
#: The share of the heights that a warp may not cut off.
SHARE_UNCUT = 0.75
#: The largest product of a warp, either way, and the noise's sd.
LARGEST_WARPED_NOISE = 0.03
#: A model of the integrand itself must predict so much better to be preferred ...
MUCH_BETTER = 0.5
#: ... unless their evidence is higher; this is asked only of integrands that fill so much of the cube.
WIDE = 0.1
#: Sums of curves to try wherever heights are none: rough ones and smooth ones.
CURVE_SMOOTHNESSES = (1.5, math.inf)
#: Heights are tried as sums only where the highest is below this many times the height that matters, or few are low.
HIGHEST_SUM = 100.0
#: Warps to try, a step at a time.
WARPS = (0.0, 0.06, 0.1, 0.15, 0.2, 0.3, 0.5)
#: A surrogate whose height has a larger sd than this where it sees most of the integrand sees what nobody knows.
EXTRAPOLATED_SD = 3.0
N_EXTRAPOLATED = 128
#: Coordinates in which the integrand is round: those whose quantiles were taken to scores first, and others.
Rotations = dict[bool, Coordinates]


def compare_heights(
    data: Heights,
    rotations: Rotations,
    current: ModelSpec,
    kernels: dict[ModelSpec, Covariance],
    may_doubt: bool = True,
) -> tuple[Model, ...]:
    """Return models of heights, best first, found step by step from one kind.

    Those that doubt far heights are left out unless they may.
    """
    fitted: dict[ModelSpec, Model] = {}
    for _ in range(MODEL_STEPS):
        for spec in _neighbours(current, data, rotations):
            if spec not in fitted and (may_doubt or not spec.doubts_far_heights):
                fitted[spec] = fit_anew(spec, data, rotations, kernels)
        best = max(fitted.values(), key=lambda model: model.score)
        if best.spec == current:
            break
        current = best.spec
    return best_first(fitted.values())


def height_models(data: Heights, rotations: Rotations, start: ModelSpec) -> tuple[Model, ...]:
    """Return models of heights fitted to all data, best first, found step by step from one kind."""
    fewer = data.thinned(MOST_COMPARED_LAST)
    kernels: dict[ModelSpec, Covariance] = {}
    models = compare_heights(fewer, rotations, start, kernels)[:MOST_KEPT]
    return models if fewer is data else best_first(fit_anew(model.spec, data, rotations, kernels) for model in models)


def best_first(models: Iterable[Model]) -> tuple[Model, ...]:
    """Return models by their evidence."""
    return tuple(sorted(models, key=lambda model: -model.score))


def fit_anew(spec: ModelSpec, data: Heights, rotations: Rotations, kernels: dict[ModelSpec, Covariance]) -> Model:
    """Return a model of this kind, fitted from where its hyperparameters were last, and note where they are now."""
    quantiles = data.quantiles if spec.scored else ()
    rotation = rotations.get(spec.scored) if spec.rotated else None
    coordinates = rotation or _plain(data.x.shape[1], data.periodic, quantiles)
    model = fit_model(spec, data, coordinates, kernels.get(spec))
    kernels[spec] = model.process.kernel
    return model


@lru_cache(maxsize=32)
def _plain(dim: int, periodic: Periodic, quantiles: tuple[int, ...]) -> Coordinates:
    """Return the cube's own coordinates, always the same object: what was found in them is remembered by it."""
    return Coordinates.plain(dim, periodic, quantiles)


@lru_cache(maxsize=8)
def _tell_of_a_quadratic(data: Heights) -> bool:
    """Return whether there are enough data to fit a quadratic, and not all of them at one place or on one line."""
    dim = data.x.shape[1]
    if len(data.height) <= n_trend_terms("quadratic", dim, data.periodic) + dim + 1:
        return False
    coordinates = _plain(dim, data.periodic, ())
    terms = basis(coordinates.trend("quadratic"), coordinates(data.x))
    return bool(np.linalg.matrix_rank(terms) == terms.shape[1])


def _tell_of_a_polynomial(data: Heights) -> bool:
    """Return whether there are enough data for a polynomial, which has more terms than a quadratic on circles."""
    n_columns = data.x.shape[1] + len(data.periodic)
    return _tell_of_a_quadratic(data) and len(data.height) > n_given_terms(n_columns, 10**9)


def compare_powers(
    data: Heights, candidates: tuple[ModelSpec, ...], kernels: dict[ModelSpec, Covariance]
) -> tuple[Model, ...]:
    """Return models of powers of the integrand, best first: of those given and their neighbours, or of all."""
    dim = data.x.shape[1]
    trends: list[TrendName] = ["constant"]
    if _tell_of_a_quadratic(data):
        trends.append("quadratic")
    powers = tuple(power for power in POWERS if -power <= _largest_warp(data))
    if not powers:
        return ()
    everything = [ModelSpec(nu=math.inf, warp=power, trend=trend) for power in powers for trend in trends]
    specs = [spec for spec in candidates if spec.warp in powers] or everything
    found = [fit_anew(spec, data, {}, kernels) for spec in specs]
    best = best_first(found)[0].spec
    variants = {replace(best, nu=nu) for nu in POWER_SMOOTHNESSES} | {replace(best, trend=trend) for trend in trends}
    place = powers.index(best.warp)
    variants |= {replace(best, warp=power) for power in powers[max(place - 1, 0) : place + 2]}
    if dim > 1:
        variants |= {replace(best, structure="isotropic"), replace(best, structure="per-axis")}
    tried = {model.spec for model in found}
    found += [fit_anew(spec, data, {}, kernels) for spec in sorted(variants - tried, key=str)]
    return best_first(found)


def better(data: Heights, of_heights: tuple[Model, ...], of_powers: tuple[Model, ...]) -> tuple[Model, ...]:
    """Return all models, best first; or those of the integrand alone, if they are much better.

    A model of the integrand says little of how high the high places are. If its evidence is higher all the same, it
    must be right; and if not, it may still predict the integrand much better.
    """
    everything = best_first([*of_heights, *of_powers])
    itself = tuple(model for model in of_powers if model.spec.warp == INTEGRAND)
    if not itself or everything[0].spec.warp < 0.0:
        return everything
    volumes = nearest_volumes(data.x, periodic=data.periodic)
    # Where the integrand fills next to nothing of the cube, what is left out elsewhere says nothing of it.
    if float(volumes @ np.exp(-data.height)) < WIDE:
        return everything
    limit = MUCH_BETTER * left_out_error(of_heights[0], data, volumes)
    return itself if left_out_error(itself[0], data, volumes) < limit else everything


def distribution(surrogate: Surrogate, dim: int, generator: np.random.Generator, effort: Effort) -> Target:
    """Return e^{-height}."""
    return target(surrogate.height, 1.0, dim, generator, effort, surrogate.model.coordinates.periodic)


def to_be_seen(surrogate: Surrogate, dim: int, generator: np.random.Generator, effort: Effort) -> Target:
    """Return the same times the probability that an evaluation has a value: where points are to be chosen."""
    return target(surrogate.height_to_be_seen, 1.0, dim, generator, effort, surrogate.model.coordinates.periodic)


def is_extrapolated_mode(task: Task, model: Model, walls: Walls | None) -> bool:
    """Return whether a model sees the integrand where it knows next to nothing.

    By its evidence, of mostly heights that cannot matter, it may be the best there is all the same: a smooth process
    that explains them all leaves room for valleys between them, and more so if it doubts them.
    """
    if is_sure(model):
        return False
    generator = task.generator(Purpose.EXTRAPOLATED)
    density = distribution(Surrogate(model, walls), task.dim, generator, QUICK)
    return knows_nothing(model, density.rough_draws(N_EXTRAPOLATED, generator))


def knows_nothing(model: Model, x: FloatArray) -> bool:
    """Return whether a model knows next to nothing of the heights at most rows of ``x``."""
    return not is_sure(model) and float(np.median(model.variance(x))) > EXTRAPOLATED_SD**2


def is_sure(model: Model) -> bool:
    """Return whether no height has an sd of an extrapolated mode, wherever it is.

    Of a power of the integrand it is known that it is small, where it is; by what power of e is of no interest.
    """
    plain = model.spec.warp == 0.0 and model.spec.trend == "constant"
    return model.spec.warp < 0.0 or (plain and model.process.kernel.scale <= EXTRAPOLATED_SD**2)


def without_extrapolated_modes(surrogate: Surrogate, models: Sequence[Model], difference: float = 0.0) -> Surface:
    """Return the heights of a surrogate, but where it expects low ground of which it knows next to nothing.

    Any of other models, whose heights are too low by ``difference``, may deny such an expectation. It may hold a
    hundredth of the integrand, which does little to log Z and much to the spread of draws.
    """
    model = surrogate.model
    if is_sure(model):
        return surrogate.height
    limit = relevant_height(len(model.coordinates.columns))

    def height(x: FloatArray) -> FloatArray:
        found = surrogate.height(x)
        low = np.flatnonzero(found < limit)
        unknown = low[model.variance(x[low]) > EXTRAPOLATED_SD**2]
        for other in models:
            found[unknown] = np.maximum(found[unknown], other.height(x[unknown]) + difference)
        return found

    return height


def _largest_warp(data: Heights) -> float:
    """Return the strongest warp that the noise allows: a noisy height is skewed by it."""
    return LARGEST_WARPED_NOISE / math.sqrt(max(float(np.max(data.noise)), 1e-300))


def _neighbours(spec: ModelSpec, data: Heights, rotations: Rotations) -> list[ModelSpec]:
    """Return a kind of model and those that differ from it in one respect."""
    n, dim = data.x.shape
    # Where many heights are cut off by a warp, its evidence means nothing.
    high = max(float(np.quantile(data.height, SHARE_UNCUT)), 1e-300)
    warps = [warp for warp in WARPS if warp <= min(_largest_warp(data), LARGEST_EXPONENT / high)]
    # What the noise allowed before it may allow no longer, if it is learned.
    spec = replace(spec, warp=min(spec.warp, warps[-1]))
    # Heights that are far above anything that matters would decide whether all are a sum; that points the way to low
    # ground, but is no model of it.
    is_steep = float(np.max(data.height)) > HIGHEST_SUM * data.relevant_height
    can_be_sum = dim > 1 and not (is_steep and not data.few_are_low)
    if spec.structure == "additive" and not can_be_sum:
        spec = replace(spec, structure="isotropic")
    tell_of_a_quadratic, tell_of_a_polynomial = _tell_of_a_quadratic(data), _tell_of_a_polynomial(data)
    if not (tell_of_a_polynomial if spec.trend == "polynomial" else tell_of_a_quadratic):
        # More did, before they were thinned.
        spec = replace(spec, trend="constant", warp=0.0)
    found = [replace(spec, nu=nu) for nu in SMOOTHNESSES]
    if dim > 1:
        found += [replace(spec, structure="isotropic"), replace(spec, structure="per-axis")]
    if can_be_sum:
        of_curves = replace(spec, structure="additive", trend="constant", warp=0.0)
        found += [replace(of_curves, nu=nu) for nu in CURVE_SMOOTHNESSES]
    whole = replace(spec, structure="isotropic") if spec.structure == "additive" else spec
    if tell_of_a_quadratic:
        found += [replace(spec, trend="constant", warp=0.0)]
        place = warps.index(spec.warp)
        # From a bowl, to one a little more or less warped; from anything else, to all kinds of them.
        bowls = set(warps[max(place - 1, 0) : place + 2] if spec.trend == "quadratic" else warps[::2])
        found += [replace(whole, trend="quadratic", warp=warp) for warp in sorted(bowls)]
    if tell_of_a_polynomial:
        found += [replace(whole, trend="polynomial", warp=0.0, rotated=False)]
    if spec.scored in rotations:
        found += [replace(spec, rotated=False), replace(spec, rotated=True)]
    if data.quantiles:
        found += [replace(spec, scored=False, rotated=False), replace(spec, scored=True, rotated=False)]
    return [spec, *dict.fromkeys(other for other in found if other != spec)]
