"""zhat computes on one BLAS thread and with NumPy's own way with errors, and leaves the energy what the user has."""

import math

import numpy as np
import pytest
import scipy.stats
from threadpoolctl import threadpool_info, threadpool_limits

import zhat
from zhat.estimators import METHODS, MonteCarlo
from zhat.util.threads import one_blas_thread


def blas_threads():
    found = {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}
    assert found
    return found


def test_the_number_of_threads_is_what_it_was_afterwards():
    with threadpool_limits(2, "blas"):
        with one_blas_thread():
            assert blas_threads() == {1}
        assert blas_threads() == {2}


def test_the_method_has_one_thread_and_the_energy_all():
    seen = {"energy": set(), "ask": set(), "estimate": set()}

    class Watched(MonteCarlo):
        def ask(self, *arguments):
            seen["ask"] |= blas_threads()
            return super().ask(*arguments)

        def estimate(self, *arguments):
            seen["estimate"] |= blas_threads()
            return super().estimate(*arguments)

    def energy(x):
        seen["energy"] |= blas_threads()
        return float(x[0])

    with threadpool_limits(2, "blas"):
        zhat.estimate(energy, [(0.0, 1.0)], budget=4, method=Watched(), seed=0)
    assert seen == {"energy": {2}, "ask": {1}, "estimate": {1}}


def narrow(x):
    """A narrow valley beside a wall: in it, most of e^{-λf} vanishes."""
    return math.inf if x[0] > 0.8 else 2000.0 * (x[0] - 0.3) ** 2 + x[1]


@pytest.mark.parametrize("method", METHODS)
def test_users_who_let_numpy_raise_get_the_same_result(method):
    def estimate():
        return zhat.estimate(narrow, [(0, 1), (0, 1)], 5.0, 40, method=method, seed=0)

    before = estimate()
    with np.errstate(all="raise"):
        found = estimate()
        assert found.log_z == before.log_z
        if not math.isnan(found.std_error):
            assert found.interval() == before.interval()


def test_users_who_let_numpy_raise_can_use_what_they_get(tmp_path):
    before = zhat.estimate(narrow, [(0, 1), (0, 1)], 5.0, 20, seed=0)
    draws, curve = before.sample(20, seed=0), before.curve([1.0, 5.0])
    with np.errstate(all="raise"):
        found = zhat.estimate(narrow, [(0, 1), (0, 1)], 5.0, 20, seed=0)
        assert np.array_equal(found.sample(20, seed=0), draws)
        assert np.array_equal(found.curve([1.0, 5.0]).log_z, curve.log_z)
        found.plan(1e-9)
        steep = zhat.estimate(lambda x: 2000.0 * x[0] ** 2, [(0, 1)], 5.0, 16, method="mvs", seed=0, rkhs_norm=1e4)
        assert steep.certificate.lower < steep.certificate.upper
        found.save(tmp_path / "run.json")
        assert zhat.load(tmp_path / "run.json").summary() == found.summary()
        priors = {"a": scipy.stats.gamma(0.01), "b": scipy.stats.halfcauchy(scale=5)}
        model = zhat.evidence(lambda x: -50 * (x[0] - 3) ** 2 - abs(x[1]), priors=priors, budget=12, seed=0)
        assert math.isfinite(model.log_z)
        for name in ("bumps", "product-peak"):
            assert math.isfinite(zhat.problems.get(name).log_z(50.0))
        with zhat.Study.create(tmp_path / "study.db", [(0, 1), (0, 1)], 5.0, 12, seed=0) as study:
            assert math.isfinite(study.run(narrow).log_z)


def test_the_energy_is_called_with_the_settings_of_its_user():
    seen = set()

    def energy(x):
        seen.add(tuple(np.geterr().values()))
        return float(x[0])

    with np.errstate(all="raise"):
        zhat.estimate(energy, [(0.0, 1.0)], budget=4, seed=0)
    assert seen == {("raise",) * 4}
