"""Signals in noise: lines of a spectrum, and a sinusoid of unknown frequency."""

from __future__ import annotations

from itertools import permutations

import numpy as np
from scipy import special, stats

from zhat.core.arrays import FloatArray

from ..problem import Distribution, Draw, Problem, draw_dim, log_uniform
from .data import LOG_2PI, LogLikelihood, between, draw_as_box, draw_rows, energy_of, inside

#: Number of lines, whether each has a width of its own, and whether the background has a slope, by dimension.
SPECTRA = {
    4: ((1, True, False),),
    5: ((1, True, True),),
    6: ((2, False, False),),
    7: ((2, True, False), (2, False, True)),
    8: ((2, True, True), (3, False, False)),
    9: ((3, False, True),),
}
#: Log of a line's width, of a spectrum that is 1 wide.
LOG_WIDTHS = (-4.5, -1.2)
#: Share of the spectra in which every line has a window of its own, so that lines cannot change places.
WINDOW_SHARE = 0.3
#: How long a sinusoid is watched, how many frequencies are searched for peaks, and how many of these are kept.
DURATION = 10.0
N_FREQUENCIES = 3000
N_PEAKS = 12
#: Largest amplitude a uniform prior allows, in units of the true one.
LARGEST_AMPLITUDE = 5.0


def spectrum(x: FloatArray, places: FloatArray, n_lines: int, own_widths: bool) -> FloatArray:
    """Return the mean ``(n, bins)`` of a spectrum.

    The columns are the lines' places, log-heights and log-widths (one, or one each), the background's log and, where
    there is one more, the slope of that.
    """
    n_widths = n_lines if own_widths else 1
    line_at, heights = x[:, :n_lines], np.exp(x[:, n_lines : 2 * n_lines])
    sharpness = np.exp(-x[:, 2 * n_lines : 2 * n_lines + n_widths])
    background = x[:, 2 * n_lines + n_widths :]
    if background.shape[1] == 1:
        out = np.repeat(np.exp(background), len(places), axis=1)
    else:
        out = np.exp(background[:, :1] + background[:, 1:] * (places - 0.5))
    for line in range(n_lines):
        off = (places - line_at[:, line, None]) * sharpness[:, line if own_widths else 0, None]
        off *= off
        off *= -0.5
        np.exp(off, out=off)
        off *= heights[:, line, None]
        out += off
    return np.asarray(out)


def spectrum_likelihood(
    places: FloatArray, seen: FloatArray, noise: float | None, n_lines: int, own_widths: bool
) -> LogLikelihood:
    """Return the log-likelihood of a spectrum: of counts, or with normal noise where its size is given."""
    constant = float(special.gammaln(seen + 1.0).sum()) if noise is None else 0.0

    def log_likelihood(x: FloatArray) -> FloatArray:
        mean = spectrum(x, places, n_lines, own_widths)
        if noise is None:
            return np.asarray(np.log(mean) @ seen - mean.sum(axis=1) - constant)
        total = np.sum(((seen - mean) / noise) ** 2, axis=1)
        return np.asarray(-0.5 * total - len(seen) * (np.log(noise) + 0.5 * LOG_2PI))

    return log_likelihood


def place_priors(generator: np.random.Generator, lines: FloatArray) -> tuple[Distribution, ...]:
    """Return priors of the lines' places: all anywhere, or windows that do not overlap around each."""
    if generator.random() >= WINDOW_SHARE:
        return (stats.uniform(0.0, 1.0),) * len(lines)
    ends = np.concatenate([[0.0], 0.5 * (lines[1:] + lines[:-1]), [1.0]])
    return tuple(stats.uniform(low, high - low) for low, high in zip(ends[:-1], ends[1:], strict=True))


def spectral_lines(generator: np.random.Generator) -> Problem:
    """Draw one to three lines on a background, in counts or with normal noise."""
    dim, as_box = draw_dim(generator, 4, 9), draw_as_box(generator)
    n_lines, own_widths, _ = SPECTRA[dim][generator.integers(len(SPECTRA[dim]))]
    n_widths = n_lines if own_widths else 1
    places = (np.arange(n_bins := draw_rows(generator, 40, 80)) + 0.5) / n_bins
    lines = np.sort(generator.uniform(0.05, 0.95, n_lines))
    log_heights = generator.uniform(0.8, 3.0, n_lines)
    log_widths = generator.uniform(-3.8, -2.5, n_widths)
    background = [generator.uniform(0.0, 1.5), generator.normal(0.0, 0.8)][: dim - 2 * n_lines - n_widths]
    truth = np.concatenate([lines, log_heights, log_widths, background])
    mean = spectrum(truth[None], places, n_lines, own_widths)[0]
    noise = None if generator.random() < 0.6 else log_uniform(generator, 0.5, 3.0)
    seen = generator.poisson(mean).astype(float) if noise is None else generator.normal(mean, noise)
    priors = (
        *place_priors(generator, lines),
        *(between(-1.0, 4.5, as_box),) * n_lines,
        *(between(*LOG_WIDTHS, as_box),) * n_widths,
        *(between(-2.0, 4.0, as_box), between(-4.0, 4.0, as_box))[: len(background)],
    )
    modes = []
    for order in map(list, permutations(range(n_lines))):
        widths = log_widths[order] if own_widths else log_widths
        modes.append(np.concatenate([lines[order], log_heights[order], widths, background]))
    likelihood = spectrum_likelihood(places, seen, noise, n_lines, own_widths)
    return Problem(energy_of(likelihood, 2 * n_bins), priors, modes=inside(priors, np.array(modes)))


def sinusoid_likelihood(
    times: FloatArray, seen: FloatArray, noise: float | None, by_phase: bool, with_offset: bool
) -> LogLikelihood:
    """Return the log-likelihood of frequency, two amplitudes (or one and a phase), offset and log-noise.

    There is an offset where it is asked for, and a log-noise where the noise is not given.
    """

    def log_likelihood(x: FloatArray) -> FloatArray:
        angle = x[:, :1] * (2.0 * np.pi * times)
        if by_phase:
            mean = x[:, 1:2] * np.cos(angle - x[:, 2:3])
        else:
            mean = x[:, 1:2] * np.cos(angle) + x[:, 2:3] * np.sin(angle)
        if with_offset:
            mean += x[:, 3:4]
        log_noise = x[:, -1] if noise is None else np.full(len(x), np.log(noise))
        total = np.sum((seen - mean) ** 2, axis=1) * np.exp(-2.0 * log_noise)
        return np.asarray(-0.5 * total - len(times) * (log_noise + 0.5 * LOG_2PI))

    return log_likelihood


def periodogram_peaks(
    times: FloatArray, seen: FloatArray, highest: float, with_offset: bool
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the best frequencies, the linear coefficients at each, and the standard deviation of what they leave."""
    frequencies = np.linspace(0.0, highest, N_FREQUENCIES + 2)[1:-1]
    angle = 2.0 * np.pi * frequencies[:, None] * times
    design = np.stack([np.cos(angle), np.sin(angle), np.ones_like(angle)][: 2 + with_offset], axis=2)
    across = design.transpose(0, 2, 1)
    # A little on the diagonal: at the lowest frequencies a cosine and a constant are nearly the same.
    normal = across @ design + 1e-6 * np.eye(design.shape[2])
    coefficients = np.linalg.solve(normal, (across @ seen)[:, :, None])
    left = np.std(seen - (design @ coefficients)[:, :, 0], axis=1)
    inner = np.flatnonzero((left[1:-1] < left[:-2]) & (left[1:-1] < left[2:])) + 1
    best = inner[np.argsort(left[inner])][:N_PEAKS]
    return frequencies[best], coefficients[best, :, 0], left[best]


def sinusoid_priors(
    generator: np.random.Generator, highest: float, by_phase: bool, n_more: int, as_box: bool
) -> tuple[Distribution, ...]:
    """Return the priors of a sinusoid's frequency and its two linear numbers, and of more that are amplitudes too."""
    reach = generator.uniform(2.0, LARGEST_AMPLITUDE)
    amplitude = stats.uniform(-reach, 2.0 * reach) if as_box else stats.norm(0.0, 0.5 * reach)
    frequency = stats.uniform(0.0, highest)
    if not by_phase:
        return (frequency,) + (amplitude,) * (2 + n_more)
    positive = stats.uniform(0.0, reach) if as_box else stats.halfnorm(scale=0.5 * reach)
    return (frequency, positive, stats.uniform(0.0, 2.0 * np.pi)) + (amplitude,) * n_more


def sinusoid(generator: np.random.Generator) -> Problem:
    """Draw a sinusoid seen at uneven times, which many frequencies fit about as well."""
    dim, as_box = draw_dim(generator, 3, 5), draw_as_box(generator)
    with_offset = dim == 5 or (dim == 4 and bool(generator.random() < 0.5))
    known = dim == 3 or (dim == 4 and with_offset)
    by_phase, highest = bool(generator.random() < 0.5), generator.uniform(0.8, 3.0)
    times = np.sort(generator.uniform(0.0, DURATION, draw_rows(generator, 12, 40)))
    noise, offset = log_uniform(generator, 0.3, 1.5), generator.normal() * with_offset
    angle = 2.0 * np.pi * (generator.uniform(0.15, 0.95) * highest * times + generator.random())
    seen = generator.normal(np.cos(angle) + offset, noise)
    priors = sinusoid_priors(generator, highest, by_phase, int(with_offset), as_box)
    frequencies, linear, left = periodogram_peaks(times, seen, highest, with_offset)
    if by_phase:
        phase = np.arctan2(linear[:, 1], linear[:, 0]) % (2.0 * np.pi)
        linear = np.column_stack([np.hypot(linear[:, 0], linear[:, 1]), phase, linear[:, 2:]])
    modes = np.column_stack([frequencies, linear])
    if not known:
        priors, modes = (*priors, between(-3.0, 1.5, as_box)), np.column_stack([modes, np.log(left)])
    likelihood = sinusoid_likelihood(times, seen, noise if known else None, by_phase, with_offset)
    return Problem(
        energy_of(likelihood, 2 * len(times)),
        priors,
        periodic=(2,) if by_phase else (),
        modes=inside(priors, modes),
    )


FAMILIES: dict[str, Draw] = {"spectral lines": spectral_lines, "sinusoid": sinusoid}
