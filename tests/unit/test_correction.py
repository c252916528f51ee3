"""The estimate by the last draws alone: right whatever the models believe, and none where draws cannot tell."""

import math

import numpy as np
import pytest
from scipy.integrate import quad

import zhat
from zhat.auto.adaptive import last_round
from zhat.auto.correction import correction
from zhat.auto.knowledge import knowledge
from zhat.core.integrate.target import THOROUGH
from zhat.protocol.remembered import Seen


def energy(x):
    return float(30.0 * np.sum((x - 0.4) ** 2) + 3.0 * np.sin(9.0 * x[0]))


def walled(x):
    return math.inf if x[1] > 0.6 else energy(x)


def log_z(top):
    first = quad(lambda x: math.exp(-30.0 * (x - 0.4) ** 2 - 3.0 * math.sin(9.0 * x)), 0.0, 1.0)[0]
    second = quad(lambda x: math.exp(-30.0 * (x - 0.4) ** 2), 0.0, top)[0]
    return math.log(first) + math.log(second)


def corrected(result):
    task, facts = result.task, result.evaluations
    last = last_round(task, facts)
    return correction(task, Seen.of(facts), last, knowledge(task, Seen.of(facts), last.noise), THOROUGH)


@pytest.mark.parametrize("seeds", [range(1), pytest.param(range(4), marks=pytest.mark.slow)], ids=["one", "four"])
@pytest.mark.parametrize(("function", "top"), [(energy, 1.0), (walled, 0.6)], ids=["box", "wall"])
def test_draws_correct_the_surrogate_they_came_from(function, top, seeds):
    scores = []
    for seed in seeds:
        result = zhat.estimate(function, [(0, 1)] * 2, budget=160, seed=seed)
        found = corrected(result)
        # Where exactly a wall is, draws do not know either.
        error = math.hypot(found.error, result.diagnostics["wall_error"], 1e-4)
        assert error < 0.2
        scores.append((found.log_z - log_z(top)) / error)
    assert np.sqrt(np.mean(np.square(scores))) < 2.5


@pytest.mark.parametrize("change", [{"budget": 40}, {"budget": 160, "noise_std": 0.1}], ids=["few", "noisy"])
def test_few_draws_and_noisy_ones_correct_nothing(change):
    assert corrected(zhat.estimate(energy, [(0, 1)] * 2, seed=0, **change)) is None


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2))])
def test_draws_from_an_exact_surrogate_leave_no_error(seed):
    def bowl(x):
        return float(10.0 * np.sum((x - 0.4) ** 2))

    one = quad(lambda x: math.exp(-10.0 * (x - 0.4) ** 2), 0.0, 1.0)[0]
    found = corrected(zhat.estimate(bowl, [(0, 1)] * 2, budget=160, seed=seed))
    assert found.log_z == pytest.approx(2.0 * math.log(one), abs=1e-6)
    assert found.error < 1e-6


def test_where_models_lose_their_way_the_draws_stand():
    def steep(z):
        # Two counts in a thousand and a rate on the scale of e^{e^{...}}: far from low ground nothing is like it.
        eta = 30.0 * z
        return min(float(np.sum(np.exp(np.minimum(eta, 600.0)) - 2.0 * eta)), 1e300) + 0.5 * float(z @ z)

    result = zhat.estimate(steep, [(-8, 8)] * 2, budget=192, seed=0)
    one = quad(lambda z: math.exp(-math.exp(30.0 * z) + 60.0 * z - 0.5 * z * z), -1.0, 0.3, epsabs=1e-14)[0]
    low, high = result.interval()
    assert low <= 2.0 * math.log(one) <= high
    assert result.std_error < 0.5
