"""Whatever ends a run early carries the facts that were paid for, and the next call goes on from them."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.stats

import zhat
from zhat.estimators import MonteCarlo

BOUNDS = {"a": (-1.0, 2.0), "b": (0.0, 3.0)}


def energy(x):
    return float((x[0] - 0.3) ** 2 + 2.0 * (x[1] - 1.1) ** 2)


def ending_after(n, error, function=energy):
    """Return an energy whose call after ``n`` others ends the run."""
    calls = []

    def evaluate(x):
        calls.append(x)
        if len(calls) > n:
            raise error
        return function(x)

    return evaluate


def caught_from(kind, *arguments, **others):
    with pytest.raises(kind) as caught:
        zhat.estimate(*arguments, **others)
    return caught.value


def test_an_interrupt_carries_the_facts_and_the_next_call_goes_on_from_them():
    interrupt = KeyboardInterrupt()
    error = caught_from(KeyboardInterrupt, ending_after(23, interrupt), BOUNDS, 2.0, 48, seed=1)
    assert error is interrupt
    facts = error.evaluations
    whole = zhat.estimate(energy, BOUNDS, 2.0, 48, seed=1)
    assert np.array_equal(facts.x, whole.evaluations.x[:23])
    assert np.array_equal(facts.y, whole.evaluations.y[:23])
    (note,) = error.__notes__
    assert "evaluations so far, 23," in note and "x0=facts.x[facts.ok], y0=facts.y[facts.ok]" in note
    rest = zhat.estimate(energy, BOUNDS, 2.0, 25, seed=1, x0=facts.x[facts.ok], y0=facts.y[facts.ok])
    assert (rest.n_given, rest.n_evaluations) == (23, 25)
    assert len(np.unique(rest.evaluations.x, axis=0)) == 48
    assert abs(rest.log_z - whole.log_z) < 5 * (rest.std_error + whole.std_error) + 1e-6


def test_facts_that_were_given_and_failures_are_carried_too():
    def evaluate(x):
        if len(seen) == 5:
            raise KeyboardInterrupt
        seen.append(x)
        if len(seen) == 2:
            raise ValueError("no")
        return energy(x), 0.5

    seen = []
    x0, y0 = [[0.0, 1.0], [1.0, 2.0]], ([energy((0.0, 1.0)), energy((1.0, 2.0))], [0.5, 0.5])
    facts = caught_from(KeyboardInterrupt, evaluate, BOUNDS, budget=16, x0=x0, y0=y0).evaluations
    assert facts.x[:2].tolist() == x0
    assert facts.ok.tolist() == [True, True, True, False, True, True, True]
    ok = facts.ok
    y0 = (facts.y[ok], facts.noise_std[ok])
    again = zhat.estimate(lambda x: (energy(x), 0.5), BOUNDS, budget=16, seed=0, x0=facts.x[ok], y0=y0)
    assert again.n_given == 6


class Odd(Exception):
    """An exception that takes no attributes."""

    def __setattr__(self, name, value):
        if name == "evaluations":
            raise TypeError("none")
        super().__setattr__(name, value)


@pytest.mark.parametrize("kind", [RuntimeError, SystemExit, KeyboardInterrupt])
def test_whatever_a_progress_callback_raises(kind):
    def progress(done, budget):
        if done == 7:
            raise kind

    error = caught_from(kind, energy, BOUNDS, budget=16, seed=0, method="mc", progress=progress)
    assert len(error.evaluations) == 7


def test_exceptions_that_can_carry_nothing_are_raised_all_the_same():
    def progress(done, budget):
        raise Odd("mine")

    assert str(caught_from(Odd, energy, BOUNDS, budget=16, seed=0, method="mc", progress=progress)) == "mine"


@pytest.mark.parametrize("where", ["ask", "estimate"])
def test_whatever_a_method_raises(where):
    class Broken(MonteCarlo):
        def ask(self, task, facts, pending, n):
            if len(facts) >= 5 and where == "ask":
                raise ZeroDivisionError
            return super().ask(task, facts, pending, 1)

        def estimate(self, task, facts):
            raise ZeroDivisionError

    error = caught_from(ZeroDivisionError, energy, BOUNDS, budget=12, seed=0, method=Broken())
    assert len(error.evaluations) == (5 if where == "ask" else 12)


def test_an_energy_that_never_worked_carries_why():
    def evaluate(x):
        raise OSError("no licence")

    error = caught_from(zhat.EnergyError, evaluate, BOUNDS, budget=4, seed=0)
    assert error.evaluations.failure == ("energy raised OSError: no licence",) * 4
    assert not hasattr(error, "__notes__")


def test_before_the_first_evaluation_there_is_nothing_to_say():
    error = caught_from(KeyboardInterrupt, ending_after(0, KeyboardInterrupt()), BOUNDS, x0=[[0.0, 1.0]], y0=[1.0])
    assert len(error.evaluations) == 1
    assert not hasattr(error, "__notes__")


def test_of_an_evidence_they_are_parameters_and_minus_log_likelihoods():
    priors = {"mu": scipy.stats.norm(0, 5), "tau": scipy.stats.halfcauchy(scale=5)}

    def log_likelihood(x):
        return float(scipy.stats.norm.logpdf(3.0, x[0], np.hypot(1.0, x[1])))

    with pytest.raises(KeyboardInterrupt) as caught:
        zhat.evidence(ending_after(15, KeyboardInterrupt(), log_likelihood), priors=priors, budget=32, seed=0)
    facts = caught.value.evaluations
    assert "logl0=-facts.y[facts.ok]" in caught.value.__notes__[0]
    assert [-log_likelihood(x) for x in facts.x] == facts.y.tolist()
    rest = zhat.evidence(log_likelihood, priors=priors, budget=17, seed=0, x0=facts.x, logl0=-facts.y)
    assert (rest.n_given, rest.n_evaluations) == (15, 17)
    assert abs(rest.log_z - -3.108) < 5 * rest.std_error + 0.05


def test_of_a_prior_that_is_a_transform_they_are_points_of_the_cube():
    def log_likelihood(x):
        return -energy(x)

    with pytest.raises(KeyboardInterrupt) as caught:
        zhat.evidence(ending_after(5, KeyboardInterrupt(), log_likelihood), lambda u: 3.0 * u, 2, budget=12, seed=0)
    assert "u0=facts.unit[facts.ok], logl0=-facts.y[facts.ok]" in caught.value.__notes__[0]
    facts = caught.value.evaluations
    assert np.array_equal(facts.x, 3.0 * facts.unit)
    rest = zhat.evidence(
        log_likelihood, lambda u: 3.0 * u, 2, budget=7, seed=0, u0=facts.unit[facts.ok], logl0=-facts.y[facts.ok]
    )
    assert (rest.n_given, rest.n_evaluations) == (5, 7)
    assert np.array_equal(rest.evaluations.y, [energy(x) for x in rest.evaluations.x])


class TestInParallel:
    def test_what_ended_while_the_next_points_were_chosen_is_carried(self):
        """Choosing may take minutes, in which evaluations end that nobody has looked at yet."""
        calls, told = [], threading.Event()

        class Slow(MonteCarlo):
            def ask(self, task, facts, pending, n):
                if len(facts) > 0:
                    told.set()
                    time.sleep(0.5)
                    raise KeyboardInterrupt
                return super().ask(task, facts, pending, 4)

        def evaluate(x):
            calls.append(x)
            if len(calls) > 1:
                told.wait()
            return energy(x)

        with ThreadPoolExecutor(2) as threads:
            error = caught_from(KeyboardInterrupt, evaluate, BOUNDS, budget=64, method=Slow(), executor=threads)
        assert len(error.evaluations) == 4

    def test_a_map_that_is_interrupted(self):
        class Maps:
            size = 1

            def map(self, function, points):
                for place, point in enumerate(points):
                    if place == 2:
                        raise KeyboardInterrupt
                    yield function(point)

        class AllAtOnce(Maps):
            size = 8

        error = caught_from(KeyboardInterrupt, energy, BOUNDS, budget=8, seed=0, method="mc", executor=AllAtOnce())
        assert len(error.evaluations) == 2
        assert error.evaluations.y.tolist() == [energy(x) for x in error.evaluations.x]

    @pytest.mark.parametrize("workers", [1, 2])
    def test_ctrl_c_ends_a_script_as_ever_and_says_where_the_facts_are(self, workers, tmp_path):
        script = f"""
            import time, zhat
            def number():  # of this call, among those of all processes
                for place in range(64):
                    try:
                        open(f"calls-{{place}}", "x").close()
                        return place
                    except FileExistsError:
                        pass
            def energy(x):
                time.sleep(0.02 if number() < 7 else 60)
                return float(x[0])
            try:
                zhat.estimate(energy, [(0, 1)], budget=64, seed=0, method="mc", workers={workers})
            except KeyboardInterrupt as error:
                print(len(error.evaluations), (error.evaluations.y == error.evaluations.x[:, 0]).all(), flush=True)
                raise
        """
        (tmp_path / "script.py").write_text(textwrap.dedent(script))
        process = subprocess.Popen(
            [sys.executable, "script.py"], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        deadline = time.monotonic() + 60.0
        while len(list(tmp_path.glob("calls-*"))) < 8 + workers - 1:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        os.kill(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=60)
        assert process.returncode == -signal.SIGINT
        assert out == "7 True\n"
        assert "The evaluations so far, 7, are kept in this exception" in err
