"""What an estimate has once computed, it keeps."""

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import zhat
from zhat.auto import method, rounds
from zhat.core.integrate.cells import AdaptiveGrid
from zhat.core.integrate.target import THOROUGH

BOUNDS = {"a": (0.0, 1.0), "b": (-1.0, 2.0)}


def energy(x):
    return float(20.0 * (x[0] - 0.3) ** 2 + 5.0 * np.sin(3.0 * x[1]) ** 2)


def an_estimate(seed=0, **more):
    return zhat.estimate(energy, BOUNDS, budget=40, seed=seed, **more)


def others():
    """Make others, so that nobody but the estimate itself remembers anything of it."""
    for seed in range(100, 105):
        zhat.estimate(lambda x: float(x[0]), [(0, 1)], budget=8, seed=seed)


@pytest.fixture
def work(monkeypatch):
    """Count what takes long: rounds, conclusions from them, and integrals of surrogates that are thorough."""
    done = []
    for module, name in ((rounds, "_next_round"), (method, "_conclude")):
        plain = getattr(module, name)
        monkeypatch.setattr(module, name, lambda *given, plain=plain, name=name: (done.append(name), plain(*given))[1])
    refine = AdaptiveGrid.refine_for_integral

    def counted(self, tolerance, max_points):
        if tolerance == THOROUGH.tolerance:
            done.append("thorough integral")
        refine(self, tolerance, max_points)

    monkeypatch.setattr(AdaptiveGrid, "refine_for_integral", counted)
    return done


def use(result):
    """Ask for draws in all the ways there are, and for a picture of them."""
    result.to_dataframe(draws=50, seed=0)
    result.weighted_sample()
    result.plot("corner", n_draws=200)
    return result.sample(100, seed=0)


def test_draws_from_an_estimate_that_was_just_made_take_no_fit(work):
    result = an_estimate()
    assert work.count("_conclude") == 1
    work.clear()
    draws = use(result)
    # The surrogate's integral is there already, unless draws need it without what nobody knows.
    assert work in ([], ["thorough integral"])
    work.clear()
    others()
    work.clear()
    np.testing.assert_array_equal(use(result), draws)
    assert work == []


def test_a_loaded_estimate_computes_once(work, tmp_path):
    result = an_estimate(seed=1)
    result.save(tmp_path / "run.json")
    expected = result.sample(100, seed=0)
    others()
    loaded = zhat.load(tmp_path / "run.json")
    work.clear()
    np.testing.assert_array_equal(loaded.sample(100, seed=0), expected)
    assert work.count("thorough integral") == 1
    others()
    work.clear()
    loaded.to_dataframe(draws=50, seed=0)
    np.testing.assert_array_equal(loaded.sample(100, seed=0), expected)
    assert work == []


def test_an_estimate_can_be_sent_and_copied_after_it_was_used():
    result = an_estimate()
    draws = use(result)
    for other in (pickle.loads(pickle.dumps(result)), copy.copy(result), copy.deepcopy(result)):
        assert (other.log_z, other.std_error, other.summary()) == (result.log_z, result.std_error, result.summary())
        np.testing.assert_array_equal(other.sample(100, seed=0), draws)


def test_draws_do_not_depend_on_what_was_asked_before_or_at_the_same_time():
    first, second = an_estimate(method="mvs"), an_estimate(method="mvs")
    nodes = first.weighted_sample()
    first.sample(10, seed=5)
    with ThreadPoolExecutor(4) as threads:
        draws = list(threads.map(lambda seed: second.sample(20, seed=seed), range(4)))
    for seed, points in enumerate(draws):
        np.testing.assert_array_equal(first.sample(20, seed=seed), points)
    for given, again in zip(nodes, first.weighted_sample(), strict=True):
        np.testing.assert_array_equal(given, again)
