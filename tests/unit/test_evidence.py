"""`zhat.evidence`: conjugate models with known evidence, dynesty's arguments, and what is refused."""

import math

import numpy as np
import pytest
import scipy.stats as st

import zhat

SEEN = np.array([1.2, 0.7, 1.9])


def log_likelihood(x):
    return float(np.sum(st.norm.logpdf(SEEN, x[0], 1.0)))


def exact(prior_sd=2.0):
    """Observations of a normal mean with a normal prior are jointly normal."""
    covariance = np.eye(len(SEEN)) + prior_sd**2 * np.ones((len(SEEN), len(SEEN)))
    return float(st.multivariate_normal(np.zeros(len(SEEN)), covariance).logpdf(SEEN))


def wide_normal(u):
    return 2.0 * st.norm.ppf(u)


def test_a_conjugate_model_comes_out_by_priors_and_by_transform_alike():
    by_priors = zhat.evidence(log_likelihood, priors={"mean": st.norm(0, 2)}, budget=48, seed=1)
    by_transform = zhat.evidence(log_likelihood, wide_normal, 1, budget=48, seed=1)
    assert by_priors.log_z == pytest.approx(exact(), abs=2e-4)
    assert by_transform.log_z == pytest.approx(by_priors.log_z, abs=1e-12)
    assert by_priors.domain.names == ("mean",)
    assert by_priors.n_evaluations == 48


def test_draws_follow_the_posterior():
    found = zhat.evidence(log_likelihood, priors={"mean": st.norm(0, 2)}, budget=48, seed=1)
    precision = len(SEEN) + 0.25
    posterior = st.norm(np.sum(SEEN) / precision, precision**-0.5)
    draws = found.sample(4000, seed=0)[:, 0]
    assert st.kstest(draws, posterior.cdf).pvalue > 1e-3
    x, weights = found.weighted_sample()
    assert np.sum(weights) == pytest.approx(1.0)
    assert weights @ x[:, 0] == pytest.approx(posterior.mean(), abs=1e-3)
    assert math.sqrt(weights @ (x[:, 0] - posterior.mean()) ** 2) == pytest.approx(posterior.std(), rel=1e-3)


@pytest.mark.parametrize("dim", [3, 4])
def test_weighted_points_know_a_narrow_posterior(dim):
    covariance = 0.03**2 * (np.full((dim, dim), 0.8) + 0.2 * np.eye(dim))
    inverse, centre = np.linalg.inv(covariance), np.linspace(0.4, 0.7, dim)
    found = zhat.estimate(lambda x: 0.5 * (x - centre) @ inverse @ (x - centre), [(0, 1)] * dim, budget=96, seed=0)
    x, weights = found.weighted_sample()
    mean = weights @ x
    np.testing.assert_allclose(mean, centre, atol=0.03 * 0.03)
    np.testing.assert_allclose((x - mean).T @ ((x - mean) * weights[:, None]), covariance, rtol=0.03)


def test_the_quick_start_of_dynesty_needs_no_other_functions():
    covariance = np.full((3, 3), 0.95) + 0.05 * np.eye(3)
    inverse = np.linalg.inv(covariance)
    constant = -0.5 * (3 * math.log(2 * math.pi) + math.log(np.linalg.det(covariance)))

    def loglike(x):
        return -0.5 * np.dot(x, np.dot(inverse, x)) + constant

    def ptform(u):
        return 10.0 * (2.0 * u - 1.0)

    found = zhat.evidence(loglike, ptform, 3, seed=0)
    assert found.log_z == pytest.approx(-3 * math.log(20.0), abs=0.02)
    low, high = found.interval()
    assert low <= -3 * math.log(20.0) <= high


def test_the_names_and_meanings_are_those_of_dynesty():
    def shifted(x, shift, *, scale):
        return float(np.sum(st.norm.logpdf(SEEN + shift, x[0], scale)))

    def transform(u, sd, *, centre):
        return centre + sd * st.norm.ppf(u)

    plain = zhat.evidence(log_likelihood, wide_normal, 1, budget=16, seed=5)
    same = zhat.evidence(
        shifted, transform, 1, budget=16, seed=5,
        logl_args=[0.0], logl_kwargs={"scale": 1.0}, ptform_args=[2.0], ptform_kwargs={"centre": 0.0},
    )  # fmt: skip
    assert same.log_z == plain.log_z
    first = zhat.evidence(log_likelihood, wide_normal, 1, budget=16, rstate=np.random.default_rng(3))
    again = zhat.evidence(log_likelihood, wide_normal, 1, budget=16, rstate=np.random.default_rng(3))
    assert first.log_z == again.log_z
    assert first.seed == again.seed


def test_infinite_support_never_reaches_infinity():
    asked = []

    def remembered(x):
        asked.append(x.copy())
        return float(-0.5 * (x[0] - 1.0) ** 2 - x[1])

    found = zhat.evidence(remembered, priors={"a": st.norm(0, 1), "b": st.halfcauchy(scale=5)}, budget=64, seed=0)
    assert np.all(np.isfinite(asked))
    assert np.min(np.array(asked)[:, 1]) >= 0.0
    # ∫ e^{-b} dHalfCauchy(b; 5) has no closed form worth writing; SciPy's adaptive rule is another algorithm.
    expected_b = st.halfcauchy(scale=5).expect(lambda b: np.exp(-b))
    expected_a = math.exp(-0.25) / math.sqrt(2.0)
    assert found.log_z == pytest.approx(math.log(expected_a * expected_b), abs=max(5 * found.std_error, 0.02))


def test_zero_likelihood_is_a_value():
    found = zhat.evidence(lambda x: 0.0 if x[0] < 0.3 else -math.inf, lambda u: u, 1, budget=64, seed=0)
    assert found.evaluations.n_failed == 0
    assert found.log_z == pytest.approx(math.log(0.3), abs=0.05)


def test_failures_are_recorded_in_the_words_of_a_likelihood():
    def fails(x):
        if x[0] < 0.1:
            return math.nan
        if x[0] > 0.9:
            raise RuntimeError("no convergence")
        return -x[0]

    found = zhat.evidence(fails, lambda u: u, 1, budget=64, seed=0)
    reasons = dict(found.evaluations.failures_by_reason())
    assert set(reasons) == {
        "log_likelihood returned NaN; wanted: one real number (-inf where the integrand vanishes)",
        "log_likelihood raised RuntimeError: no convergence",
    }
    with pytest.raises(zhat.EnergyError, match=r"none of 10 evaluations of the log_likelihood succeeded; 10 x .*NaN"):
        zhat.evidence(lambda x: math.nan, lambda u: u, 1, budget=64, seed=0)
    with pytest.raises(zhat.EnergyError, match=r"log_likelihood returned \+inf, which makes the integral infinite"):
        zhat.evidence(lambda x: math.inf, lambda u: u, 1, budget=64, seed=0)


def test_a_transform_that_fails_where_it_was_not_tried_fails_that_evaluation():
    calls = [0]

    def moody(u):
        calls[0] += 1
        return u if calls[0] < 40 or calls[0] % 5 else np.array([math.nan])

    found = zhat.evidence(lambda x: -x[0], moody, 1, budget=32, seed=0)
    reasons = dict(found.evaluations.failures_by_reason())
    assert set(reasons) == {"prior_transform gave no finite parameters there"}
    assert found.log_z == pytest.approx(math.log(1 - math.exp(-1)), abs=1e-3)


def test_noise_and_vectorised_functions_pass_through():
    rng = np.random.default_rng(0)

    def many(x):
        clean = np.sum(st.norm.logpdf(SEEN, x, 1.0), axis=1)
        return clean + 0.1 * rng.standard_normal(len(x)), np.full(len(x), 0.1)

    found = zhat.evidence(many, wide_normal, 1, budget=64, seed=0, vectorized=True)
    assert abs(found.log_z - exact()) < 4 * found.std_error
    np.testing.assert_array_equal(found.evaluations.noise_std, 0.1)


def test_calls_made_before_are_facts():
    x = np.array([[0.5], [1.0], [1.5]])
    values = [log_likelihood(row) for row in x]
    found = zhat.evidence(log_likelihood, priors={"m": st.norm(0, 2)}, budget=20, seed=0, x0=x, logl0=values)
    assert found.n_given == 3
    np.testing.assert_array_equal(found.evaluations.y[:3], -np.array(values))
    np.testing.assert_allclose(found.evaluations.unit[:3], st.norm(0, 2).cdf(x))


def test_tempered_evidence_is_the_curve():
    found = zhat.evidence(log_likelihood, priors={"m": st.norm(0, 2)}, budget=64, seed=0)
    curve = found.curve([0.0, 0.5, 1.0])
    precision = 0.5 * len(SEEN) + 0.25
    constant = -0.25 * (len(SEEN) * math.log(2 * math.pi) + np.sum(SEEN**2))
    tempered = constant + 0.5 * (0.5 * np.sum(SEEN)) ** 2 / precision - 0.5 * math.log(4 * precision)
    assert curve.log_z[0] == 0.0
    assert abs(curve.log_z[1] - tempered) < 2 * curve.std_error[1] < 0.2
    assert curve.log_z[2] == found.log_z


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "either prior_transform and ndim, or priors="),
        ({"prior_transform": lambda u: u, "priors": {"a": st.norm()}, "ndim": 1}, "either prior_transform and ndim"),
        ({"prior_transform": lambda u: u}, "ndim is None"),
        ({"prior_transform": lambda u: u, "ndim": 0}, "ndim is 0"),
        ({"prior_transform": 3.0, "ndim": 1}, "prior_transform is 3.0"),
        (
            {"prior_transform": lambda u: u[:1], "ndim": 2},
            r"shape \(2,\), as ndim is 2; at .* it returned shape \(1,\)",
        ),
        ({"prior_transform": lambda u: u * math.nan, "ndim": 1}, "finite parameters within"),
        ({"prior_transform": lambda u: ["a", "b"], "ndim": 2}, r"it returned \['a', 'b'\]"),
        ({"prior_transform": lambda u: u / 0, "ndim": 1}, "prior_transform"),
        ({"prior_transform": lambda u: u, "ndim": 2, "names": ["a"]}, "2 different names"),
        ({"prior_transform": lambda u: u, "ndim": 2, "names": ["a", "a"]}, "2 different names"),
        ({"priors": {"a": st.norm()}, "ndim": 2}, "1, as priors has 1 parameters"),
        ({"priors": {"a": st.norm()}, "names": ["b"]}, "nothing with priors="),
        ({"priors": {}}, "a distribution of SciPy for each parameter"),
        ({"priors": {"k": st.poisson(3)}}, r"priors\['k'\] is .*; wanted: a continuous distribution.*discrete"),
        ({"priors": {"k": st.gamma}}, "one frozen distribution of SciPy"),
        ({"priors": {"k": st.multivariate_normal([0, 0])}}, "one frozen distribution of SciPy"),
        ({"priors": {"k": 3.0}}, "one frozen distribution of SciPy"),
        ({"priors": {"k": st.norm(0, -1)}}, "are its parameters allowed"),
        ({"priors": {"k": st.norm()}, "periodic": "q"}, "periodic is 'q'"),
        ({"priors": {"k": st.norm()}, "x0": [[0.0]]}, "x0 and logl0 together"),
        ({"priors": {"k": st.norm()}, "x0": [[0.0]], "logl0": [math.inf]}, r"logl0 is .* no NaN and no \+inf"),
        ({"priors": {"k": st.halfnorm()}, "x0": [[-1.0]], "logl0": [0.0]}, "points within the bounds; row 0"),
        ({"prior_transform": lambda u: u, "ndim": 1, "x0": [[0.5]], "logl0": [0.0]}, "cannot be turned round"),
        ({"priors": {"k": st.norm()}, "seed": 1, "rstate": np.random.default_rng(0)}, "instead of seed"),
        ({"priors": {"k": st.norm()}, "executor": map, "pool": map}, "one of executor and pool"),
    ],
)
def test_what_cannot_be_used_is_refused_by_name(arguments, message):
    with pytest.raises(zhat.InvalidArgument, match=message):
        zhat.evidence(log_likelihood, **arguments, budget=8)


def test_a_likelihood_that_is_no_function_is_refused():
    with pytest.raises(zhat.InvalidArgument, match="log_likelihood is 3"):
        zhat.evidence(3, lambda u: u, 1)
