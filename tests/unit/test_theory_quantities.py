"""The quantities of the proofs: the residual's variance, the information gain, the confidence lemma."""

from __future__ import annotations

import itertools
import math

import mpmath
import numpy as np
import pytest
from scipy.special import ndtri
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import Matern

import zhat
from zhat.core.arrays import sobol, tensor_grid
from zhat.core.certify.bracket import _Data
from zhat.core.design.maximum_variance import maximum_variance_design
from zhat.core.gp.process import GaussianProcess
from zhat.core.integrate.target import target
from zhat.errors import InvalidArgument
from zhat.theory import (
    chebyshev_bound,
    confidence_factor,
    first_batch_error_bound,
    greedy_information_gain,
    greedy_sd_bound,
    information_gain,
    information_gain_rate,
    residual_variance,
    sup_error_bound,
    variance_bound,
)

CLASSES = [(1, 0.5), (1, 1.5), (1, 2.5), (2, 1.5), (2, 2.5), (3, 1.5)]
every_class = pytest.mark.parametrize(("dim", "nu"), CLASSES)
FINE = {1: 4001, 2: 161, 3: 31}


class Case:
    """A function of norm B in the RKHS of a Matérn kernel, and a surrogate of it from noisy values."""

    def __init__(self, dim: int, nu: float, seed: int, noise_std: float, n: int = 24, norm: float = 1.0) -> None:
        generator = np.random.default_rng(seed)
        self.dim, self.norm, self.noise_std = dim, norm, noise_std
        self.kernel = zhat.Kernel(nu, 0.25)
        self.centres, coefficients = generator.random((20 * dim, dim)), generator.standard_normal(20 * dim)
        size = math.sqrt(coefficients @ self.kernel.matrix(self.centres, self.centres) @ coefficients)
        self.coefficients = norm * coefficients / size
        self.x = maximum_variance_design(self.kernel, n, dim, n_candidates=512).points
        self.xi = max(noise_std**2, 1e-10)
        self.fit(generator)

    def fit(self, generator: np.random.Generator) -> None:
        y = self.f(self.x) + self.noise_std * generator.standard_normal(len(self.x))
        self.process = GaussianProcess.condition(self.kernel, self.x, y, self.xi)

    def f(self, x: np.ndarray) -> np.ndarray:
        return self.kernel.matrix(x, self.centres) @ self.coefficients

    def sup_error(self) -> float:
        fine = tensor_grid(np.linspace(0.0, 1.0, FINE[self.dim]), self.dim)
        return float(np.max(np.abs(self.f(fine) - self.process.mean(fine))))


def linear(slope: float):
    return lambda x: -slope * x[:, 0]


class TestResidualVariance:
    @pytest.mark.parametrize("inverse_temperature", [0.5, 3.0, 40.0])
    @pytest.mark.parametrize("slope, off", [(1.0, 0.7), (2.0, -0.1), (1.0, 1e-3), (1.0, 1e-7)])
    @pytest.mark.parametrize("dim", [1, 2])
    def test_it_is_the_exact_expression_of_linear_energies(self, inverse_temperature, slope, off, dim) -> None:
        found = residual_variance(linear(slope), linear(slope + off), dim, inverse_temperature, n_draws=5)
        with mpmath.workdps(60):

            def integral(a: float) -> mpmath.mpf:
                exponent = mpmath.mpf(inverse_temperature) * a
                return mpmath.expm1(exponent) / exponent

            f, mu, other = mpmath.mpf(slope), mpmath.mpf(slope + off), 2 * mpmath.mpf(slope) - mpmath.mpf(slope + off)
            exact = (integral(other) * integral(mu) / integral(f) ** 2 - 1) / 5
            log_residual = mpmath.log(integral(f) / integral(mu))
        assert found.value == pytest.approx(float(exact), rel=1e-7)
        assert found.log_residual == pytest.approx(float(log_residual), rel=1e-8)
        assert found.quadrature_error < 1e-8

    def test_where_the_surrogate_is_exact_only_noise_is_left(self) -> None:
        found = residual_variance(linear(2.0), linear(2.0), 1, 3.0, noise_std=0.4, n_draws=10)
        assert found.value == pytest.approx(math.expm1(1.44) / 10, rel=1e-12)
        assert found.value == pytest.approx(variance_bound(3.0, 0.4, 0.0, 10), rel=1e-12)
        assert residual_variance(linear(2.0), linear(2.0), 1, 3.0).value == 0.0

    @pytest.mark.parametrize("dim, nu, inverse_temperature, noise_std", [(1, 1.5, 4.0, 0.1), (2, 2.5, 6.0, 0.05)])
    def test_simulated_second_batches_have_it(self, dim, nu, inverse_temperature, noise_std) -> None:
        case = Case(dim, nu, 7, noise_std, n=12, norm=2.0)
        n_draws, n_batches = 8, 20_000
        exact = residual_variance(case.f, case.process.mean, dim, inverse_temperature, noise_std, n_draws)
        generator = np.random.default_rng(11)
        drawn = target(case.process.mean, inverse_temperature, dim, generator).draw(n_draws * n_batches, generator)
        y = case.f(drawn.points) + noise_std * generator.standard_normal(len(drawn.points))
        logs = inverse_temperature * (case.process.mean(drawn.points) - y) - exact.log_residual
        logs -= 0.5 * (inverse_temperature * noise_std) ** 2
        ratios = np.mean(np.exp(logs).reshape(n_batches, n_draws), axis=1)
        squares = (ratios - np.mean(ratios)) ** 2
        assert abs(np.mean(ratios) - 1.0) < 5.0 * math.sqrt(exact.value / n_batches)
        assert abs(np.mean(squares) - exact.value) < 5.0 * np.std(squares) / math.sqrt(n_batches)

        # Chebyshev's inequality, and how often it is needed.
        for failure_probability in (0.05, 0.3):
            missed = np.mean(np.abs(ratios - 1.0) > chebyshev_bound(exact.value, failure_probability))
            assert missed <= failure_probability

    @every_class
    @pytest.mark.parametrize("inverse_temperature", [0.5, 5.0])
    @pytest.mark.parametrize("noise_std", [0.0, 0.1])
    def test_the_bound_holds_on_the_matern_class(self, dim, nu, inverse_temperature, noise_std) -> None:
        for seed in range(3):
            case = Case(dim, nu, seed, noise_std)
            exact = residual_variance(case.f, case.process.mean, dim, inverse_temperature, noise_std, 12)
            sup_error = case.sup_error()
            assert 0.0 < exact.value <= variance_bound(inverse_temperature, noise_std, sup_error, 12)
            assert abs(math.expm1(-exact.log_residual)) <= first_batch_error_bound(inverse_temperature, sup_error)

    def test_a_bound_beyond_all_numbers_is_infinite(self) -> None:
        assert variance_bound(100.0, 1.0, 0.0, 4) == math.inf
        assert first_batch_error_bound(1e3, 1.0) == math.inf
        assert chebyshev_bound(math.inf, 0.1) == math.inf

    @pytest.mark.parametrize(
        "argument, call",
        [
            ("dim", lambda: residual_variance(linear(1.0), linear(1.0), 4, 1.0)),
            ("dim", lambda: residual_variance(linear(1.0), linear(1.0), 0, 1.0)),
            ("inverse_temperature", lambda: residual_variance(linear(1.0), linear(1.0), 1, -1.0)),
            ("noise_std", lambda: residual_variance(linear(1.0), linear(1.0), 1, 1.0, math.nan)),
            ("n_draws", lambda: variance_bound(1.0, 0.0, 0.1, 0)),
            ("sup_error", lambda: variance_bound(1.0, 0.0, -0.1, 4)),
            ("sup_error", lambda: first_batch_error_bound(1.0, math.inf)),
            ("variance", lambda: chebyshev_bound(-1.0, 0.1)),
            ("variance", lambda: chebyshev_bound(math.nan, 0.1)),
            ("failure_probability", lambda: chebyshev_bound(1.0, 0.0)),
            ("failure_probability", lambda: chebyshev_bound(1.0, 1.5)),
        ],
    )
    def test_arguments_that_make_no_sense_are_named(self, argument, call) -> None:
        with pytest.raises(InvalidArgument) as error:
            call()
        assert error.value.argument == argument


class TestInformationGain:
    kernel = zhat.Kernel(1.5, 0.3, 2.0)

    @pytest.mark.parametrize("xi", [1e-4, 0.1, 1e6])
    def test_it_is_half_the_log_determinant(self, xi) -> None:
        points = np.random.default_rng(0).random((7, 2))
        covariance = mpmath.matrix(self.kernel.matrix(points, points).tolist())
        with mpmath.workdps(40):
            exact = mpmath.log(mpmath.det(mpmath.eye(7) + covariance / xi)) / 2
        assert information_gain(self.kernel, points, xi) == pytest.approx(float(exact), rel=1e-10)

    def test_the_greedy_choice_gathers_what_its_variances_say(self) -> None:
        candidates = sobol(256, 2, 3)
        found = greedy_information_gain(self.kernel, candidates, 12, 0.05)
        for t in (1, 5, 12):
            assert found.lower[t - 1] == pytest.approx(information_gain(self.kernel, found.points[:t], 0.05), rel=1e-10)
        peer = GaussianProcessRegressor(2.0 * Matern(0.3, nu=1.5), alpha=0.05, optimizer=None)
        peer.fit(found.points[:11], np.zeros(11))
        variances = peer.predict(candidates, return_std=True)[1] ** 2
        assert found.variances[11] == pytest.approx(np.max(variances), rel=1e-6)
        assert found.points[11] == pytest.approx(candidates[np.argmax(variances)])

    @pytest.mark.parametrize("xi", [0.01, 0.5, 10.0])
    def test_the_maximum_lies_between_its_bounds(self, xi) -> None:
        candidates = np.random.default_rng(2).random((8, 2))
        found = greedy_information_gain(self.kernel, candidates, 4, xi)
        for budget in range(1, 5):
            choices = itertools.combinations_with_replacement(range(8), budget)
            best = max(information_gain(self.kernel, candidates[list(choice)], xi) for choice in choices)
            assert found.lower[budget - 1] <= best * (1 + 1e-12)
            assert found.upper[budget - 1] >= best * (1 - 1e-12)
        assert np.all(found.upper <= found.lower / (1.0 - 1.0 / math.e) * (1 + 1e-12))

    def test_a_place_may_be_observed_again(self) -> None:
        found = greedy_information_gain(self.kernel, np.array([[0.2], [0.9]]), 6, 1.0)
        assert sorted(found.points[:, 0]) == [0.2, 0.2, 0.2, 0.9, 0.9, 0.9]
        assert found.lower[-1] == pytest.approx(information_gain(self.kernel, found.points, 1.0))

    @pytest.mark.parametrize("nu", [0.5, 1.5])
    def test_it_grows_at_the_matern_rate(self, nu) -> None:
        # The rate is an upper bound with an unknown constant; its logarithms are as good as constant over a doubling.
        found = greedy_information_gain(zhat.Kernel(nu, 0.2), np.linspace(0, 1, 2049)[:, None], 1024, 0.01)
        measured = math.log2(found.lower[1023] / found.lower[511])
        exponent = 1.0 / (2.0 * nu + 1.0)
        rate = math.log2(information_gain_rate(nu, 1, 1024) / information_gain_rate(nu, 1, 512))
        assert exponent - 0.08 < measured < rate

    def test_the_rate_is_what_the_paper_prints(self) -> None:
        # T^{d/(2ν+d)} (log T)^{2ν/(2ν+d)}
        assert information_gain_rate(1.5, 2, 100) == pytest.approx(100**0.4 * math.log(100) ** 0.6, rel=1e-14)
        assert information_gain_rate(0.5, 1, 64) == pytest.approx(8.0 * math.sqrt(math.log(64)), rel=1e-14)

    @pytest.mark.parametrize(
        "argument, call",
        [
            ("points", lambda: information_gain(zhat.Kernel(), np.zeros(3), 1.0)),
            ("xi", lambda: information_gain(zhat.Kernel(), np.zeros((3, 1)), 0.0)),
            ("candidates", lambda: greedy_information_gain(zhat.Kernel(), np.empty((0, 2)), 3, 1.0)),
            ("candidates", lambda: greedy_information_gain(zhat.Kernel(), np.array([[math.nan]]), 3, 1.0)),
            ("budget", lambda: greedy_information_gain(zhat.Kernel(), np.zeros((3, 1)), 0, 1.0)),
            ("budget", lambda: greedy_information_gain(zhat.Kernel(), np.zeros((3, 1)), 2**30, 1.0)),
            ("nu", lambda: information_gain_rate(0.0, 1, 10)),
            ("dim", lambda: information_gain_rate(1.0, 0, 10)),
            ("budget", lambda: information_gain_rate(1.0, 1, 0.5)),
        ],
    )
    def test_arguments_that_make_no_sense_are_named(self, argument, call) -> None:
        with pytest.raises(InvalidArgument) as error:
            call()
        assert error.value.argument == argument


class TestConfidence:
    def test_the_factor_has_the_constants_of_vakili(self) -> None:
        # B + σ/√ξ √(2 log(1/δ')), with δ' = δ/2 for two sides of one place.
        expected = 2.0 + 0.3 / 0.5 * math.sqrt(2 * math.log(2 / 0.05))
        assert confidence_factor(2.0, 0.3, 0.25, 0.05) == pytest.approx(expected, rel=1e-14)
        expected = 2.0 + 0.3 / 0.5 * math.sqrt(2 * math.log(2 * 100 / 0.05))
        assert confidence_factor(2.0, 0.3, 0.25, 0.05, 100) == pytest.approx(expected, rel=1e-14)
        assert confidence_factor(2.0, 0.0, 0.0, 0.05, 100) == 2.0

    @every_class
    def test_the_posterior_variance_has_the_two_parts_of_the_proof(self, dim, nu) -> None:
        # σ² = ‖k(x, ·) − Σ h_i k(x_i, ·)‖² + ξ|h|²: the worst bias of a unit ball, and the noise.
        case = Case(dim, nu, 0, 0.3)
        place = np.full((1, dim), 0.37)
        covariance = case.kernel.matrix(case.x, case.x)
        with_place = case.kernel.matrix(case.x, place)[:, 0]
        h = np.linalg.solve(covariance + case.xi * np.eye(len(case.x)), with_place)
        bias = 1.0 - 2.0 * h @ with_place + h @ covariance @ h
        assert case.process.variance(place)[0] == pytest.approx(bias + case.xi * h @ h, rel=1e-9)

    @pytest.mark.parametrize("xi_share", [1.0, 0.2, 5.0])
    def test_it_holds_for_the_worst_function_at_a_place(self, xi_share) -> None:
        case = Case(1, 1.5, 0, 0.3, n=10)
        xi, place, failure_probability = xi_share * case.noise_std**2, np.array([[0.43]]), 0.1
        inverse = np.linalg.inv(case.kernel.matrix(case.x, case.x) + xi * np.eye(10))
        h = inverse @ case.kernel.matrix(case.x, place)[:, 0]
        # The function of norm 1 that the surrogate misses most at this place.
        centres, weights = np.vstack([place, case.x]), np.concatenate([[1.0], -h])
        weights /= math.sqrt(weights @ case.kernel.matrix(centres, centres) @ weights)
        values = case.kernel.matrix(case.x, centres) @ weights
        noise = case.noise_std * np.random.default_rng(1).standard_normal((50_000, 10))
        errors = (case.kernel.matrix(place, centres) @ weights)[0] - (values + noise) @ h
        sd = math.sqrt(1.0 - case.kernel.matrix(place, case.x)[0] @ h)
        half_width = confidence_factor(1.0, case.noise_std, xi, failure_probability) * sd
        assert np.mean(np.abs(errors) > half_width) <= failure_probability
        assert np.mean(errors) == pytest.approx(
            math.sqrt(sd**2 - xi * h @ h), abs=5 * case.noise_std * np.linalg.norm(h) / math.sqrt(50_000)
        )

    @every_class
    def test_the_sup_norm_stays_below_its_bound(self, dim, nu) -> None:
        case = Case(dim, nu, 3, 0.2)
        arguments = {"rkhs_norm": case.norm, "noise_std": 0.2, "xi": case.xi, "failure_probability": 0.2}
        bound = sup_error_bound(case.kernel, case.x, **arguments)
        assert bound.value == bound.at_places + bound.between
        assert bound.at_places == pytest.approx(bound.factor * bound.largest_sd)
        assert bound.probability == pytest.approx(0.8)
        generator = np.random.default_rng(5)
        for _ in range(20):
            case.fit(generator)
            assert case.sup_error() <= bound.value

    @every_class
    def test_without_noise_it_is_certain(self, dim, nu) -> None:
        for seed in range(3):
            case = Case(dim, nu, seed, 0.0, norm=3.0)
            bound = sup_error_bound(case.kernel, case.x, rkhs_norm=3.0, xi=case.xi)
            assert bound.probability == 1.0
            assert bound.factor == 3.0
            assert case.sup_error() <= bound.value

    def test_more_places_bound_what_lies_between_them(self) -> None:
        case = Case(1, 1.5, 0, 0.1)
        arguments = {"rkhs_norm": 1.0, "noise_std": 0.1, "xi": 0.01}
        coarse, fine = (sup_error_bound(case.kernel, case.x, **arguments, places_per_axis=n) for n in (17, 257))
        assert (coarse.n_places, fine.n_places) == (17, 257)
        assert fine.between < 0.05 * coarse.between
        assert fine.factor > coarse.factor

    def test_the_certificate_is_never_wider(self) -> None:
        case = Case(2, 1.5, 0, 0.1)
        places = sobol(64, 2, 0)
        data = _Data(case.kernel, case.x, case.process.y, 0.1)
        _, bias, combination = data.noisy_parts(places, 1.0)
        certified = bias - ndtri(0.05 / 128) * 0.1 * combination
        lemma = confidence_factor(1.0, 0.1, 0.01, 0.05, 64) * np.sqrt(case.process.variance(places))
        assert np.all(certified <= lemma)

    @every_class
    @pytest.mark.parametrize("xi", [1e-3, 0.5])
    def test_maximum_variance_points_leave_no_more_sd_than_their_information_allows(self, dim, nu, xi) -> None:
        kernel = zhat.Kernel(nu, 0.25, 1.7)
        candidates = tensor_grid(np.linspace(0.0, 1.0, {1: 513, 2: 33, 3: 11}[dim]), dim)
        found = greedy_information_gain(kernel, candidates, 48, xi)
        for t in (1, 7, 48):
            process = GaussianProcess.condition(kernel, found.points[:t], np.zeros(t), xi)
            largest = math.sqrt(np.max(process.variance(candidates)))
            assert largest <= greedy_sd_bound(found.lower[t - 1], t, xi, 1.7)

    def test_the_bound_of_the_sd_is_attained_at_the_first_point(self) -> None:
        # One point of variance s gathers ½ log(1 + s/ξ).
        assert greedy_sd_bound(0.5 * math.log1p(1.7 / 0.1), 1, 0.1, 1.7) == pytest.approx(math.sqrt(1.7), rel=1e-14)

    @pytest.mark.parametrize(
        "argument, call",
        [
            ("rkhs_norm", lambda: confidence_factor(0.0, 0.1, 0.1, 0.1)),
            ("noise_std", lambda: confidence_factor(1.0, -0.1, 0.1, 0.1)),
            ("xi", lambda: confidence_factor(1.0, 0.1, 0.0, 0.1)),
            ("xi", lambda: confidence_factor(1.0, 0.0, -1.0, 0.1)),
            ("failure_probability", lambda: confidence_factor(1.0, 0.1, 0.1, 1.0)),
            ("failure_probability", lambda: confidence_factor(1.0, 0.1, 0.1, 0.0)),
            ("n_places", lambda: confidence_factor(1.0, 0.1, 0.1, 0.1, 0)),
            ("points", lambda: sup_error_bound(zhat.Kernel(), np.zeros((2, 9)), rkhs_norm=1.0)),
            ("points", lambda: sup_error_bound(zhat.Kernel(), np.zeros(2), rkhs_norm=1.0)),
            ("rkhs_norm", lambda: sup_error_bound(zhat.Kernel(), np.zeros((2, 1)), rkhs_norm=-1.0)),
            ("xi", lambda: sup_error_bound(zhat.Kernel(), np.zeros((2, 1)), rkhs_norm=1.0, noise_std=0.1)),
            ("places_per_axis", lambda: sup_error_bound(zhat.Kernel(), np.eye(1), rkhs_norm=1.0, places_per_axis=1)),
            ("places_per_axis", lambda: sup_error_bound(zhat.Kernel(), np.eye(2), rkhs_norm=1.0, places_per_axis=999)),
            ("gain", lambda: greedy_sd_bound(-1.0, 4, 0.1)),
            ("budget", lambda: greedy_sd_bound(1.0, 0, 0.1)),
            ("xi", lambda: greedy_sd_bound(1.0, 4, 0.0)),
            ("scale", lambda: greedy_sd_bound(1.0, 4, 0.1, 0.0)),
        ],
    )
    def test_arguments_that_make_no_sense_are_named(self, argument, call) -> None:
        with pytest.raises(InvalidArgument) as error:
            call()
        assert error.value.argument == argument
