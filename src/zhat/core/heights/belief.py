"""What models believe of log ∫ e^{-h}: its mean and variance over everything that a model leaves open."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import log_ndtr

from zhat.core.arrays import FloatArray, blocks
from zhat.core.gp.fit import Search
from zhat.core.gp.kernels import Kernel
from zhat.core.heights.heights import LARGEST_HARMLESS_NOISE, Heights
from zhat.core.heights.models import INTEGRAND, Model, fit_model
from zhat.core.integrate.target import Region, evenly_spread
from zhat.core.logspace import log_mean_exp, log_sum_exp

#: Models whose evidence is this much worse than the best's, as a logarithm, have no say.
IMPLAUSIBLE = 6.0
#: Above this typical sd of the surrogate, its exponential is no longer linear in it.
LINEAR_SD = 0.2
#: Points on which its moments are then taken.
N_NONLINEAR = 1024
#: Variances above this make an exponential whose mean is that of events too rare for any interval.
LARGEST_VARIANCE = 4.0
#: Pairs of hyperparameters that stand for their uncertainty.
N_PAIRS = 4
#: Variances that noise may hide, as shares of its own, the largest first; and what is hardly less likely than the best.
HIDDEN_SCALES = (100.0, 1e-3, 16)
HARDLY_LESS_LIKELY = 2.0
HIDDEN_DRAWS = 64
#: Points on which their doubt is compared, and the most that it may come to.
N_DOUBT = 512
LARGEST_DOUBT = 100.0
#: The smoothness that a model without any limit to it is compared with.
ROUGHER_NU = 2.5
#: The step for second derivatives of the likelihood.
CURVATURE_STEP = 0.05
#: The widest direction of hyperparameters, as an sd of their logarithms.
WIDEST = 1.0


@dataclass(frozen=True)
class Belief:
    """Mean and variance of log ∫ e^{-h}, less the logarithm of the integral that the region stands for."""

    shift: float
    variance: float


def plausible(models: Sequence[Model]) -> tuple[Model, ...]:
    """Return those of the models, best first, that have a say."""
    return tuple(model for model in models if model.score >= models[0].score - IMPLAUSIBLE)


def belief(model: Model, region: Region, base: FloatArray, inflation: float = 1.0) -> Belief:
    """Return what a model believes, all hyperparameters as they are.

    Parameters
    ----------
    model
        The model.
    region
        The distribution e^{-g}/Z of some surrogate g.
    base
        g at the region's points.
    inflation
        What the variance is to be multiplied by: models may have been wrong before.
    """
    z = model.coordinates(region.points)
    variance_there = model.process.variance(z)
    height, slope = model.height_and_slope(region.points, np.sqrt(variance_there))
    sd2 = np.minimum(slope**2 * variance_there, LARGEST_VARIANCE)
    log_terms = np.log(np.maximum(region.weights, 1e-300)) + base
    log_terms += -height + 0.5 * (1.0 + model.spec.warp) * sd2 if model.spec.warp < 0.0 else log_mean_above(height, sd2)
    log_mean = log_sum_exp(log_terms)
    weights = np.exp(log_terms - log_mean)
    if model.spec.warp == INTEGRAND or math.sqrt(float(weights @ sd2)) < LINEAR_SD:
        variance = integral_variance(model, z, weights * slope)
        return Belief(log_mean - 0.5 * variance, inflation * variance)
    variance = _nonlinear_variance(model, z, slope, weights)
    shift = log_mean - 0.5 * variance
    if np.any(sd2 >= LARGEST_VARIANCE):
        # Rare events are left out of the mean and of this variance alike; but the first order knows what all of the
        # integrand has in common, however uncertain that is.
        variance = max(variance, integral_variance(model, z, weights * slope))
    return Belief(shift, inflation * variance)


def log_mean_above(height: FloatArray, variance: FloatArray) -> FloatArray:
    """Return log E e^{-h} for normal heights that are not far below 0, the lowest that was seen.

    A surrogate that is sure of lower ground is believed; one that is not might find it anywhere. So heights are normal
    above a bound, which is the nearer to 0 the less is known.
    """
    sd = np.sqrt(variance) + 1e-9
    bound = (height + 1.0 / sd**2) / sd
    return np.asarray(-height + 0.5 * variance + log_ndtr(bound - sd) - log_ndtr(bound))


def integral_variance(model: Model, z: FloatArray, weights: FloatArray) -> float:
    """Return the variance of the weighted sum of the process over points."""
    process = model.process
    prior = 0.0
    for rows in blocks(len(z), len(z)):
        # What comes after these rows counts twice: the kernel is symmetric.
        after = slice(rows.stop, None)
        prior += float(weights[rows] @ (process.kernel.matrix(z[rows], z[rows]) @ weights[rows]))
        prior += 2.0 * float(weights[rows] @ (process.kernel.matrix(z[rows], z[after]) @ weights[after]))
    with_data = process.kernel.weighted_sum(process.x, z, weights)
    explained, free = process.explain(with_data, z, weights)
    # Below this there is nothing but rounding.
    return max(prior - explained + free, 16.0 * np.finfo(float).eps * prior)


def _nonlinear_variance(model: Model, z: FloatArray, slope: FloatArray, weights: FloatArray) -> float:
    """Return the variance of the logarithm of a weighted sum of exponentials of the process, as of a lognormal."""
    chosen = evenly_spread(weights, N_NONLINEAR)
    covariance = model.process.covariance(z[chosen]) * np.outer(slope[chosen], slope[chosen])
    np.minimum(covariance, LARGEST_VARIANCE, out=covariance)
    return math.log1p(max(float(np.mean(np.expm1(covariance))), 0.0))


@dataclass(frozen=True)
class Spread:
    """What plausible hyperparameters do to a model's belief.

    Attributes
    ----------
    mean, variance
        Mean and variance, over them, of what they change in log ∫ e^{-mean}.
    doubt
        The mean over them of a belief's variance, as a multiple of that at the likeliest ones; at least 1.
    """

    mean: float = 0.0
    variance: float = 0.0
    doubt: float = 1.0


def hyperparameter_spread(model: Model, region: Region, base: FloatArray) -> Spread:
    """Return what plausible hyperparameters of a model disagree on."""
    if model.search is None:
        return Spread()
    search = model.search
    centre = search.parameters_of(model.process.kernel)
    lowest, directions = _curvature(search, centre)
    generator = np.random.default_rng(0)
    shifts, variances, log_weights = [], [], []
    here, fewer = _log_mean(model, region, base), region.equally_weighted(N_DOUBT)
    for _ in range(N_PAIRS):
        step = directions @ generator.standard_normal(len(centre))
        for sign in (1.0, -1.0):
            bounded = np.clip(centre + sign * step, *np.array(search.bounds()).T)
            value, _ = search.objective(bounded)
            other = model.with_kernel(search.rescaled(search.unpack(bounded)[0], search.spread**2))
            shifts.append(_log_mean(other, region, base) - here)
            variances.append(first_order_variance(other, fewer))
            # The draws come from a normal distribution of the same curvature: weighed by what they are in truth.
            exponent = lowest - value + 0.5 * float(np.sum((np.linalg.pinv(directions) @ step) ** 2))
            log_weights.append(min(exponent, 1.0))
    weights = np.exp(np.array(log_weights) - max(log_weights))
    weights /= np.sum(weights)
    mean = float(weights @ np.array(shifts))
    doubt = float(weights @ np.array(variances)) / first_order_variance(model, fewer)
    return Spread(mean, float(weights @ (np.array(shifts) - mean) ** 2), min(max(doubt, 1.0), LARGEST_DOUBT))


def hidden_by_noise(model: Model, region: Region, base: FloatArray) -> float:
    """Return the variance of log ∫ e^{-h} that comes from how much the process may vary unseen, under large noise.

    Where the likeliest process is next to constant, one of the usual lengthscale that varies a good deal may be hardly
    less likely. It is taken to be as likely.
    """
    search, old = model.search, model.process
    noise = float(np.median(old.noise))
    if search is None or search.prior is None or not noise > LARGEST_HARMLESS_NOISE**2:
        return 0.0
    lowest = search.objective(search.parameters_of(old.kernel))[0]
    for scale in noise * np.geomspace(*HIDDEN_SCALES):
        kernel = Kernel(model.spec.nu, search.prior.median, float(scale))
        value = -search.likelihood.value_and_gradient(search.rescaled(kernel, search.spread**-2), search.noise)[0]
        if value - lowest < HARDLY_LESS_LIKELY:
            found = _drawn_log_means(model.with_kernel(kernel), region, base) - _log_mean(model, region, base)
            return 0.5 * float(np.mean(found**2))
    return 0.0


def _drawn_log_means(model: Model, region: Region, base: FloatArray) -> FloatArray:
    """Return log ∫ e^{-h}, less that which the region stands for, of draws of the heights there."""
    chosen = evenly_spread(region.weights, N_DOUBT)
    z = model.coordinates(region.points[chosen])
    values, vectors = np.linalg.eigh(model.process.covariance(z))
    normal = np.random.default_rng(0).standard_normal((HIDDEN_DRAWS, len(chosen)))
    heights = model.process.mean(z) + (normal * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    return np.array([log_mean_exp(row) for row in base[chosen] - heights])


def plausible_variants(model: Model, n: int, generator: np.random.Generator) -> list[Model]:
    """Return ``n`` models of the same kind with hyperparameters that are as plausible, in pairs to either side.

    An odd one out, and all where the data tell nothing of them, are as they were.
    """
    search = model.search
    if search is None or n < 2:
        return [model] * n
    centre = search.parameters_of(model.process.kernel)
    lowest, directions = _curvature(search, centre)
    variants: list[Model] = []
    for _ in range(n // 2):
        normal = generator.standard_normal(len(centre))
        for sign in (1.0, -1.0):
            step = _step_back(search, centre, lowest, sign * (directions @ normal), 0.5 * float(normal @ normal))
            kernel = search.rescaled(search.unpack(step)[0], search.spread**2)
            variants.append(model.with_kernel(kernel))
    return variants + [model] * (n % 2)


def _step_back(search: Search, centre: FloatArray, lowest: float, step: FloatArray, expected: float) -> FloatArray:
    """Return hyperparameters a step away, or less where that is far less likely than a normal distribution has it."""
    low, high = np.array(search.bounds()).T
    for _ in range(4):
        moved = np.clip(centre + step, low, high)
        if search.objective(moved)[0] - lowest <= expected + 1.0:
            return np.asarray(moved)
        step = 0.5 * step
    return centre


def smoothness_doubt(model: Model, data: Heights, region: Region) -> float:
    """Return what a variance should be multiplied by where the likeliest model is the smoothest there is.

    A process without any limit to its smoothness is sure of all that lies between its data and of much beyond, and
    nothing that is seen tells it from one that is merely smooth. So the variance is the geometric mean of its own and
    of what the same model has with ν = 5/2.
    """
    if model.spec.nu < math.inf or model.search is None:
        return 1.0
    rougher = fit_model(replace(model.spec, nu=ROUGHER_NU), data, model.coordinates)
    fewer = region.equally_weighted(N_DOUBT)
    ratio = first_order_variance(rougher, fewer) / first_order_variance(model, fewer)
    return math.sqrt(min(max(ratio, 1.0), LARGEST_DOUBT**2))


def first_order_variance(model: Model, region: Region) -> float:
    """Return the variance of log ∫ e^{-h} to first order in what the model leaves open."""
    z = model.coordinates(region.points)
    _, slope = model.height_and_slope(region.points)
    return integral_variance(model, z, region.weights * slope)


def _log_mean(model: Model, region: Region, base: FloatArray) -> float:
    terms = np.log(np.maximum(region.weights, 1e-300)) + base - model.height(region.points)
    return log_sum_exp(terms)


def _curvature(search: Search, centre: FloatArray) -> tuple[float, FloatArray]:
    """Return the smallest value of the objective, and a root of the inverse of its second derivatives."""
    lowest, slope = search.objective(centre)
    hessian = np.empty((len(centre), len(centre)))
    for axis in range(len(centre)):
        moved = centre.copy()
        moved[axis] += CURVATURE_STEP
        hessian[axis] = (search.objective(moved)[1] - slope) / CURVATURE_STEP
    values, vectors = np.linalg.eigh(0.5 * (hessian + hessian.T))
    return lowest, np.asarray(vectors / np.sqrt(np.maximum(values, 1.0 / WIDEST**2)))
