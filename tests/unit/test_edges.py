"""Evidences that may be infinite, or that reach beyond the outermost quantiles of a prior, and those that do not."""

import math

import numpy as np
import pytest
import scipy.stats as st

import zhat

NORMAL = st.norm(0, 1)
DIVERGENT = {
    "normal": (lambda x: 5.0 * np.sum((x - 0.3) ** 2), {"x": NORMAL}),
    "two normal": (lambda x: 5.0 * np.sum((x - 0.3) ** 2), {"x": NORMAL, "y": NORMAL}),
    "one of two": (lambda x: 0.6 * x[0] ** 2 - 0.5 * (x[1] - 1.0) ** 2, {"x": NORMAL, "y": NORMAL}),
    "exponential": (lambda x: 1.2 * x[0], {"x": st.expon()}),
    "half Cauchy": (lambda x: 1.5 * np.log1p(x[0]), {"x": st.halfcauchy()}),
}
#: With the log evidence.
CONVERGENT = {
    "in the tail": (lambda x: -50.0 * np.sum((x - 3.0) ** 2), {"x": NORMAL, "y": NORMAL}, -math.log(101.0) - 900 / 101),
    "far in the tail": (lambda x: -50.0 * np.sum((x - 6.0) ** 2), {"x": NORMAL}, -0.5 * math.log(101.0) - 1800 / 101),
    "at the end of a support": (
        lambda x: -20.0 * np.sum(x),
        {"x": st.halfnorm(), "y": st.expon()},
        math.log(2.0) + 200.0 + st.norm.logcdf(-20.0) - math.log(21.0),
    ),
    "at the end of a box": (
        lambda x: 20.0 * x[0] - 5.0 * x[1] ** 2,
        {"x": st.uniform(0, 1), "y": NORMAL},
        math.log(math.expm1(20.0) / 20.0) - 0.5 * math.log(11.0),
    ),
    "flat": (lambda x: 0.0 * x[0], {"x": NORMAL, "y": st.cauchy()}, 0.0),
}
SAYS = "the integrand does not vanish at the outermost quantiles of the prior"


@pytest.mark.parametrize("name", DIVERGENT)
def test_an_evidence_that_may_be_infinite_has_no_finite_error(name):
    log_likelihood, priors = DIVERGENT[name]
    found = zhat.evidence(log_likelihood, priors=priors, budget=40, seed=0)
    assert found.std_error == math.inf
    assert f"{SAYS}: the evidence may be infinite" in found.status
    assert not found.converged
    assert found.interval() == (-math.inf, math.inf)


def test_a_prior_transform_is_watched_alike():
    found = zhat.evidence(lambda x: 5.0 * np.sum((x - 0.3) ** 2), lambda u: st.norm.ppf(u), 1, budget=40, seed=0)
    assert found.std_error == math.inf
    assert SAYS in found.status


@pytest.mark.parametrize("name", CONVERGENT)
def test_an_evidence_that_exists_is_not_suspected(name):
    log_likelihood, priors, truth = CONVERGENT[name]
    found = zhat.evidence(log_likelihood, priors=priors, budget=40, seed=0)
    assert abs(found.log_z - truth) < 1.96 * found.std_error
    assert found.log_z == pytest.approx(truth, abs=0.01)
    assert found.std_error < 0.25
    assert SAYS not in found.status


def test_what_lies_beyond_the_outermost_quantiles_is_in_the_error():
    # e^{0.45 x²} under N(0, 1) has the mean √10, of which 2.6% come from |x| > 7.03.
    found = zhat.evidence(lambda x: 0.45 * x[0] ** 2, priors={"x": NORMAL}, budget=40, seed=0)
    assert abs(found.log_z - 0.5 * math.log(10.0)) < 1.96 * found.std_error < 0.1
    assert f"{SAYS}: the interval allows for the rest" in found.status


@pytest.mark.parametrize(
    ("log_likelihood", "priors", "truth"),
    [
        (lambda x: 0.5 * x[0], {"x": st.expon()}, math.log(2.0)),
        (lambda x: 3.0 * x[0] + 2.0 * x[1], {"x": NORMAL, "y": NORMAL}, 6.5),
    ],
)
def test_energies_that_are_lowest_where_there_is_next_to_nothing_are_in_the_error(log_likelihood, priors, truth):
    # The integrand is largest at the ends of the prior, and the integral comes from its middle.
    found = zhat.evidence(log_likelihood, priors=priors, budget=40, seed=0)
    assert abs(found.log_z - truth) < 1.96 * found.std_error
    assert found.log_z == pytest.approx(truth, abs=0.01)


def test_an_infinite_error_goes_through_everything(tmp_path):
    log_likelihood, priors = DIVERGENT["normal"]
    found = zhat.evidence(log_likelihood, priors=priors, budget=24, seed=0)
    assert "± inf" in found.summary()
    found.save(tmp_path / "run.json")
    assert zhat.load(tmp_path / "run.json").std_error == math.inf
    curve = found.curve([0.0, 0.5, 1.0])
    assert curve.known.tolist() == [True, False, False]
    assert "has not converged" in str(zhat.bayes_factor(found, found))
    with pytest.raises(zhat.InvalidArgument, match="the evidence may be infinite"):
        found.plan(0.01)
    found.plot("convergence", tmp_path / "convergence.png")
    assert (tmp_path / "convergence.png").stat().st_size > 1000
