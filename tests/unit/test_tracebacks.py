"""Where an energy's exception came from: kept with the facts, wherever it was raised, and the cause of an error."""

import importlib
import pickle
import traceback
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import numpy as np
import pytest

import zhat
from zhat.problem.evaluations import Outcome


def solver(x):
    raise ArithmeticError("no convergence")


def failing(x):
    return solver(x)


def half_failing(x):
    return solver(x) if x[0] > 0.5 else float(x[0])


def text_of(error):
    return "".join(traceback.format_exception(error))


def test_the_cause_is_the_first_exception_itself():
    with pytest.raises(zhat.EnergyError) as caught:
        zhat.estimate(failing, [(0, 1)], budget=20, seed=0)
    cause = caught.value.__cause__
    assert isinstance(cause, ArithmeticError)
    frames = [frame.name for frame in traceback.extract_tb(cause.__traceback__)]
    assert frames[-2:] == ["failing", "solver"]


def test_the_cause_of_a_vectorised_energy():
    def vectorised(x):
        raise ZeroDivisionError("nothing there")

    with pytest.raises(zhat.EnergyError) as caught:
        zhat.estimate(vectorised, [(0, 1)], budget=20, seed=0, vectorized=True)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


@pytest.mark.parametrize("where", ["workers", "processes", "threads"])
def test_the_cause_is_told_from_wherever_the_energy_was_evaluated(where):
    executor = {"workers": None, "processes": ProcessPoolExecutor(1), "threads": ThreadPoolExecutor(1)}[where]
    with pytest.raises(zhat.EnergyError) as caught:
        zhat.estimate(failing, [(0, 1)], budget=20, seed=0, workers=1 if executor else 2, executor=executor)
    if executor:
        executor.shutdown()
    shown = text_of(caught.value)
    assert "in failing" in shown
    assert "in solver" in shown
    assert "ArithmeticError: no convergence" in str(caught.value.__cause__) + shown
    assert type(caught.value.__cause__).__name__ == ("ArithmeticError" if where == "threads" else "RaisedElsewhere")


def test_a_log_likelihood_that_raises_is_a_cause_too():
    with pytest.raises(zhat.EnergyError) as caught:
        zhat.evidence(failing, lambda u: u, 1, budget=20, seed=0)
    assert isinstance(caught.value.__cause__, ArithmeticError)


def test_an_energy_that_only_returns_nonsense_has_no_cause():
    with pytest.raises(zhat.EnergyError) as caught:
        zhat.estimate(lambda x: float("nan"), [(0, 1)], budget=20, seed=0)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize("workers", [1, 2])
def test_the_first_traceback_of_each_reason_is_with_the_facts(workers, tmp_path):
    est = zhat.estimate(half_failing, [(0, 1)], budget=16, method="mc", seed=0, workers=workers)
    (reason,) = {reason for reason in est.evaluations.failure if reason}
    (kept,) = est.evaluations.tracebacks.items()
    assert kept[0] == reason == "energy raised ArithmeticError: no convergence"
    assert kept[1].startswith("Traceback (most recent call last):\n")
    assert "in half_failing" in kept[1] and "in solver" in kept[1]
    assert kept[1].endswith("ArithmeticError: no convergence")
    # What catches it is not where it came from.
    assert "problem.py" not in kept[1]
    est.save(tmp_path / "run.json")
    assert zhat.load(tmp_path / "run.json").evaluations.tracebacks == est.evaluations.tracebacks


def test_a_study_keeps_tracebacks_for_other_processes(tmp_path):
    path = tmp_path / "study.db"
    with zhat.Study.create(path, [(0, 1)], budget=16, method="mc", seed=0) as study:
        in_memory = study.run(half_failing).evaluations.tracebacks
    with zhat.Study.open(path, read_only=True) as study:
        assert study.evaluations.tracebacks == in_memory
        assert "in solver" in in_memory["energy raised ArithmeticError: no convergence"]


def test_reasons_without_end_do_not_fill_the_memory_or_the_disk(tmp_path):
    def talkative(x):
        raise ValueError(f"at {x[0]!r}: " + "x" * 100_000)

    with zhat.Study.create(tmp_path / "study.db", [(0, 1)], budget=40, method="mc", seed=0) as study:
        points = study.ask(40)
        for point in points:
            try:
                talkative(point.x)
            except ValueError as error:
                study.record(point.id, Outcome.raised(error))
        kept = study.evaluations.tracebacks
        assert len(kept) == 20
        assert all(len(text) < 8010 and "in talkative" in text for text in kept.values())
    assert (tmp_path / "study.db").stat().st_size < 1_000_000


class Odd(Exception):
    def __init__(self, handle):
        super().__init__("half a pair: \ud800")
        self.handle = handle


def test_exceptions_of_any_kind_cross_to_other_processes_as_text():
    try:
        raise Odd(lambda: None)
    except Odd as error:
        outcome = Outcome.raised(error)
    assert isinstance(outcome.error, Odd)
    arrived = pickle.loads(pickle.dumps(outcome))
    assert arrived.error is None
    assert "Odd: half a pair: \\ud800" in arrived.traceback
    assert np.isnan(arrived.value)


def test_an_import_that_fails_is_not_the_energys_own():
    with pytest.raises(ImportError) as caught:
        importlib.import_module("no_such_module_anywhere")
    assert Outcome.raised(caught.value).never_ran
    assert not Outcome.raised(ValueError("x")).never_ran
