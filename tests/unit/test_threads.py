"""zhat computes on one BLAS thread, and leaves the energy all that there are."""

from threadpoolctl import threadpool_info, threadpool_limits

import zhat
from zhat.estimators import MonteCarlo
from zhat.threads import one_blas_thread


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
