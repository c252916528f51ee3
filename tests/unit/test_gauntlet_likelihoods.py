"""The gauntlet's likelihoods of data, against what SciPy and scikit-learn make of the same data."""

import numpy as np
import pytest
from benchmarks.gauntlet.families import data, gaussian_process, mixtures, regressions, series, signals, trials
from scipy import linalg, special, stats
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, WhiteKernel


def table_of(seed, n_rows=25, n_columns=3):
    sample = data.draw_any_sample(np.random.default_rng(seed), n_rows, n_columns)
    return np.random.default_rng(seed + 100), sample.with_intercept


def agrees(likelihood, points, oracle):
    """Compare with a log-likelihood of one point that is written another way."""
    expected = [oracle(point) for point in points]
    np.testing.assert_allclose(likelihood(points), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("seed", range(3))
class TestRegressions:
    def test_logistic(self, seed):
        generator, design = table_of(seed)
        signs = generator.choice([-1.0, 1.0], len(design))
        agrees(
            regressions.logistic_likelihood(design, signs),
            generator.normal(0.0, 3.0, (5, 4)),
            lambda point: stats.bernoulli.logpmf(signs > 0, special.expit(design @ point)).sum(),
        )

    def test_logistic_far_away(self, seed):
        generator, design = table_of(seed)
        signs = generator.choice([-1.0, 1.0], len(design))
        agrees(
            regressions.logistic_likelihood(design, signs),
            generator.normal(0.0, 1e4, (5, 4)),
            lambda point: special.log_expit(signs * (design @ point)).sum(),
        )

    def test_probit(self, seed):
        generator, design = table_of(seed)
        signs = generator.choice([-1.0, 1.0], len(design))
        agrees(
            regressions.probit_likelihood(design, signs),
            generator.normal(0.0, 2.0, (5, 4)),
            lambda point: stats.norm.logcdf(signs * (design @ point)).sum(),
        )

    def test_softmax(self, seed):
        generator, design = table_of(seed)
        classes = generator.integers(0, 3, len(design)).astype(float)

        def oracle(point):
            scores = np.column_stack([np.zeros(len(design)), design @ point[:4], design @ point[4:]])
            return sum(special.log_softmax(row)[int(own)] for row, own in zip(scores, classes, strict=True))

        agrees(regressions.softmax_likelihood(design, classes), generator.normal(0.0, 3.0, (5, 8)), oracle)

    def test_poisson(self, seed):
        generator, design = table_of(seed)
        counts = generator.poisson(3.0, len(design)).astype(float)
        agrees(
            regressions.poisson_likelihood(design, counts),
            generator.normal(0.0, 0.7, (5, 4)),
            lambda point: stats.poisson.logpmf(counts, np.exp(design @ point)).sum(),
        )

    def test_linear(self, seed):
        generator, design = table_of(seed)
        response = generator.normal(size=len(design))
        agrees(
            regressions.linear_likelihood(design, response, 0.6),
            generator.normal(0.0, 2.0, (5, 4)),
            lambda point: stats.norm.logpdf(response, design @ point, 0.6).sum(),
        )

    def test_linear_evidence(self, seed):
        generator, design = table_of(seed)
        response = generator.normal(size=len(design))
        covariance = 0.36 * np.eye(len(design)) + 25.0 * design @ design.T
        expected = stats.multivariate_normal(np.zeros(len(design)), covariance).logpdf(response)
        assert regressions.linear_log_z(design, response, 0.6, 5.0) == pytest.approx(expected, rel=1e-9)

    @pytest.mark.parametrize("freedom", [None, 2.5])
    def test_robust(self, seed, freedom):
        generator, design = table_of(seed)
        response = generator.normal(size=len(design))
        agrees(
            regressions.robust_likelihood(design, response, freedom),
            generator.normal(0.0, 1.0, (5, 6 if freedom is None else 5)),
            lambda point: stats.t.logpdf(
                response, np.exp(point[5]) if freedom is None else freedom, design @ point[:4], np.exp(point[4])
            ).sum(),
        )


class TestTrials:
    def test_weibull(self):
        generator, design = table_of(1)
        times, died = generator.exponential(size=len(design)), generator.random(len(design)) < 0.6

        def oracle(point):
            lives = stats.weibull_min(np.exp(point[0]), scale=np.exp(design @ point[1:]))
            return np.where(died, lives.logpdf(times), lives.logsf(times)).sum()

        likelihood = trials.weibull_likelihood(design, times, died.astype(float))
        agrees(likelihood, generator.normal(0.0, 0.5, (5, 5)), oracle)

    @pytest.mark.parametrize("dim", [2, 3, 4])
    def test_dose_response(self, dim):
        generator, log_doses = np.random.default_rng(dim), np.linspace(-2.0, 2.0, 6)
        subjects = np.array([4.0, 8.0, 10.0, 7.0, 9.0, 12.0])
        responded = np.array([0.0, 2.0, 3.0, 5.0, 9.0, 11.0])

        def oracle(point):
            always, never = (*point[2:], 0.0, 0.0)[:2]
            curve = 1.0 / (1.0 + (np.exp(point[0]) / np.exp(log_doses)) ** np.exp(point[1]))
            return stats.binom.logpmf(responded, subjects, always + (1.0 - always - never) * curve).sum()

        # No steep curves: there the oracle's chances round to 1.
        points = np.column_stack([generator.normal(0.0, 0.5, (5, 2)), generator.uniform(0.05, 0.4, (5, dim - 2))])
        agrees(trials.dose_likelihood(log_doses, subjects, responded), points, oracle)


@pytest.mark.parametrize("smooth", [True, False])
@pytest.mark.parametrize("dim", [2, 4])
def test_gaussian_process_agrees_with_scikit_learn(dim, smooth):
    generator, design = table_of(2, n_columns=2)
    columns, response = design[:, 1:], generator.normal(size=len(design))

    def oracle(point):
        signal = np.exp(2.0 * point[1]) if dim > 2 else 1.0
        lengthscale = np.exp(point[2:]) if dim > 2 else np.exp(point[1:])
        shape = RBF(lengthscale) if smooth else Matern(lengthscale, nu=1.5)
        kernel = ConstantKernel(signal) * shape + WhiteKernel(np.exp(2.0 * point[0]))
        process = GaussianProcessRegressor(kernel, alpha=gaussian_process.NUGGET * signal, optimizer=None)
        return process.fit(columns, response).log_marginal_likelihood_value_

    points = generator.normal(0.0, 0.8, (4, dim))
    agrees(gaussian_process.process_likelihood(columns, response, smooth), points, oracle)


class TestMixtures:
    @pytest.mark.parametrize(
        ("count", "scales", "weights"), [kind for kinds in mixtures.MIXTURES.values() for kind in kinds]
    )
    def test_likelihood_and_labels(self, count, scales, weights):
        generator = np.random.default_rng(count)
        values = generator.normal(size=30) + 3.0 * generator.integers(0, count, 30)
        n_scales = count if scales else 1

        def oracle(point):
            sds = np.broadcast_to(np.exp(point[count : count + n_scales]), count)
            rest = point[count + n_scales :]
            shares = np.full(count, 1.0 / count)
            if weights and count == 2:
                shares = np.array([rest[0], 1.0 - rest[0]])
            elif weights:
                first = 1.0 - np.sqrt(1.0 - rest[0])
                shares = np.array([first, (1.0 - first) * rest[1], (1.0 - first) * (1.0 - rest[1])])
            return np.log(stats.norm.pdf(values[:, None], point[:count], sds) @ shares).sum()

        unit = generator.uniform(0.1, 0.9, (5, count - 1 if weights else 0))
        points = np.column_stack(
            [generator.normal(1.5, 1.0, (5, count)), generator.normal(0.0, 0.3, (5, n_scales)), unit]
        )
        likelihood = mixtures.mixture_likelihood(values, count, scales, weights)
        agrees(likelihood, points, oracle)
        modes = mixtures.mixture_modes(values, count, scales, weights)
        assert len(np.unique(modes, axis=0)) == special.factorial(count)
        np.testing.assert_allclose(likelihood(modes), likelihood(modes)[0], rtol=1e-9)

    def test_weights_are_uniform_on_the_simplex(self):
        weights = np.array(mixtures.weights_of(np.random.default_rng(0).random((20000, 2)), 3))
        np.testing.assert_allclose(weights.sum(axis=0), 1.0)
        np.testing.assert_allclose(weights.mean(axis=1), 1.0 / 3.0, atol=0.01)
        np.testing.assert_allclose(weights.var(axis=1), 1.0 / 18.0, atol=0.003)

    @pytest.mark.parametrize("noise", [None, 0.7])
    def test_random_effects(self, noise):
        generator = np.random.default_rng(5)
        values = [generator.normal(size=size) for size in (2, 5, 3)]

        def oracle(point):
            sd = np.exp(point[5]) if noise is None else noise
            means = point[0] + np.exp(point[1]) * point[2:5]
            return sum(stats.norm.logpdf(group, mean, sd).sum() for group, mean in zip(values, means, strict=True))

        points = generator.normal(size=(5, 6 if noise is None else 5))
        agrees(mixtures.effects_likelihood(values, noise), points, oracle)


def mean_level(point_levels, changes, step):
    """Return the mean of a step function over a step, by the length of each stretch in it."""
    ends = [-np.inf, *np.sort(changes), np.inf]
    overlaps = [max(0.0, min(high, step + 1.0) - max(low, step)) for low, high in zip(ends[:-1], ends[1:], strict=True)]
    return float(np.dot(overlaps, point_levels))


class TestSeries:
    @pytest.mark.parametrize("n_changes", [1, 2])
    def test_changing_counts(self, n_changes):
        generator = np.random.default_rng(n_changes)
        counts = generator.poisson(3.0, 20).astype(float)

        def oracle(point):
            rates = [mean_level(np.exp(point[n_changes:]), point[:n_changes], step) for step in range(20)]
            return stats.poisson.logpmf(counts, rates).sum()

        changes, log_rates = (
            generator.uniform(0.0, 20.0, (5, n_changes)),
            generator.normal(1.0, 1.0, (5, n_changes + 1)),
        )
        agrees(series.count_likelihood(counts, n_changes), np.column_stack([changes, log_rates]), oracle)

    @pytest.mark.parametrize(("n_changes", "n_scales"), [(1, 1), (1, 2), (2, 1)])
    def test_changing_levels(self, n_changes, n_scales):
        generator = np.random.default_rng(n_changes)
        values = generator.normal(size=20)

        def oracle(point):
            changes, levels, logs = np.split(point, [n_changes, 2 * n_changes + 1])
            means = [mean_level(levels, changes, step) for step in range(20)]
            sds = [np.exp(logs[0] if len(logs) == 1 else mean_level(logs, changes, step)) for step in range(20)]
            return stats.norm.logpdf(values, means, sds).sum()

        others = generator.normal(size=(5, n_changes + 1 + n_scales))
        points = np.column_stack([generator.uniform(0.0, 20.0, (5, n_changes)), others])
        agrees(series.level_likelihood(values, n_changes), points, oracle)

    @pytest.mark.parametrize(
        ("with_mean", "with_leverage"), [(False, False), (True, False), (False, True), (True, True)]
    )
    def test_garch(self, with_mean, with_leverage):
        generator = np.random.default_rng(4)
        returns = generator.normal(size=40)

        def oracle(point):
            mean = point[3] if with_mean else 0.0
            leverage = point[-1] if with_leverage else 0.0
            variances = [returns.var()]
            for value in returns[:-1]:
                weight = point[1] + (leverage if value < mean else 0.0)
                variances.append(point[0] + weight * (value - mean) ** 2 + point[2] * variances[-1])
            return stats.norm.logpdf(returns, mean, np.sqrt(variances)).sum()

        points = generator.uniform(0.05, 0.4, (5, 3 + with_mean + with_leverage))
        likelihood = series.volatility_likelihood(returns, with_mean, with_leverage)
        agrees(likelihood, points, oracle)
        points[:, 1:3] = 0.6
        assert np.all(likelihood(points) == -np.inf)

    def test_autoregression_given_its_beginning(self):
        generator = np.random.default_rng(8)
        values = generator.normal(size=30).cumsum()

        def oracle(point):
            means = [point[0] * values[t - 1] + point[1] * values[t - 2] for t in range(2, 30)]
            return stats.norm.logpdf(values[2:], means, np.exp(point[2])).sum()

        agrees(series.conditional_likelihood(values, 2), generator.normal(0.0, 0.7, (5, 3)), oracle)

    @pytest.mark.parametrize("order", [1, 2, 4])
    def test_stationary_autoregression(self, order):
        generator = np.random.default_rng(order)
        values = generator.normal(size=12)

        def oracle(point):
            # The covariance of a state of all values, of which the newest is made by the coefficients.
            moved = np.eye(12, k=-1)
            moved[0, :order] = series.coefficients_of(point[None, :order])[0]
            newest = np.zeros((12, 12))
            newest[0, 0] = np.exp(2.0 * point[order])
            covariance = linalg.solve_discrete_lyapunov(moved, newest)
            return stats.multivariate_normal(np.zeros(12), covariance).logpdf(values[::-1])

        points = np.column_stack([generator.uniform(-0.8, 0.8, (4, order)), generator.normal(0.0, 0.5, 4)])
        agrees(series.stationary_likelihood(values, order), points, oracle)


class TestSignals:
    @pytest.mark.parametrize("noise", [None, 0.8])
    @pytest.mark.parametrize(
        ("n_lines", "own_widths", "slope"), [kind for kinds in signals.SPECTRA.values() for kind in kinds]
    )
    def test_spectrum(self, n_lines, own_widths, slope, noise):
        generator = np.random.default_rng(n_lines)
        places, seen = np.linspace(0.0, 1.0, 30), generator.poisson(4.0, 30).astype(float)
        n_widths = n_lines if own_widths else 1

        def oracle(point):
            at, log_heights, log_widths, background = np.split(point, np.cumsum([n_lines, n_lines, n_widths]))
            mean = np.exp(background[0] + (background[1] * (places - 0.5) if slope else 0.0))
            for line in range(n_lines):
                width = np.exp(log_widths[line if own_widths else 0])
                peak = np.sqrt(2.0 * np.pi) * width * np.exp(log_heights[line])
                mean = mean + peak * stats.norm.pdf(places, at[line], width)
            if noise is None:
                return stats.poisson.logpmf(seen, mean).sum()
            return stats.norm.logpdf(seen, mean, noise).sum()

        others = generator.normal(0.0, 0.5, (4, n_lines + n_widths + 1 + slope))
        others[:, n_lines : n_lines + n_widths] -= 2.0
        points = np.column_stack([generator.random((4, n_lines)), others])
        agrees(signals.spectrum_likelihood(places, seen, noise, n_lines, own_widths), points, oracle)

    @pytest.mark.parametrize("noise", [None, 0.8])
    @pytest.mark.parametrize("by_phase", [True, False])
    @pytest.mark.parametrize("with_offset", [True, False])
    def test_sinusoid(self, noise, by_phase, with_offset):
        generator = np.random.default_rng(6)
        times, seen = generator.uniform(0.0, 10.0, 15), generator.normal(size=15)

        def oracle(point):
            wave = np.exp(2.0j * np.pi * point[0] * times)
            amplitude = point[1] * np.exp(-1.0j * point[2]) if by_phase else point[1] - 1.0j * point[2]
            mean = np.real(amplitude * wave) + (point[3] if with_offset else 0.0)
            return stats.norm.logpdf(seen, mean, np.exp(point[-1]) if noise is None else noise).sum()

        points = np.abs(generator.normal(size=(5, 3 + with_offset + (noise is None))))
        agrees(signals.sinusoid_likelihood(times, seen, noise, by_phase, with_offset), points, oracle)

    def test_periodogram_finds_the_frequency(self):
        generator = np.random.default_rng(1)
        times = generator.uniform(0.0, 10.0, 30)
        seen = 1.5 + np.cos(2.0 * np.pi * 0.83 * times) + 0.1 * generator.normal(size=30)
        frequencies, linear, left = signals.periodogram_peaks(times, seen, 2.0, True)
        assert frequencies[0] == pytest.approx(0.83, abs=0.01)
        np.testing.assert_allclose(linear[0], [1.0, 0.0, 1.5], atol=0.15)
        assert left[0] < 0.15
