"""No two purposes of an estimator share their random numbers."""

import ast
from pathlib import Path

import numpy as np
import pytest

import zhat
from zhat.problem.streams import Purpose, stream
from zhat.problem.task import Task


@pytest.mark.parametrize("seed", [0, 1, 2**31, 2**40])
def test_all_purposes_have_streams_of_their_own_whatever_their_numbers(seed):
    # Numbers that come up, and those which would lead from one purpose to another if they were added to it.
    apart = {abs(int(a) - int(b)) for a in Purpose for b in Purpose}
    counters = sorted({*range(300), 2048, *apart, *(int(purpose) for purpose in Purpose)})
    first = {tuple(stream(seed, purpose, n).integers(2**63, size=2)) for purpose in Purpose for n in counters}
    assert len(first) == len(Purpose) * len(counters)


def test_a_task_has_the_streams_of_its_seed():
    task = Task(2, 1.0, 10, seed=7)
    expected = stream(7, Purpose.ROUND, 5).random(3)
    np.testing.assert_array_equal(task.generator(Purpose.ROUND, 5).random(3), expected)
    np.testing.assert_array_equal(task.generator(Purpose.ROUND).random(3), task.generator(Purpose.ROUND, 0).random(3))
    assert np.all(task.generator(Purpose.ROUND, 4).random(3) != expected)


@pytest.mark.parametrize("purpose", [Purpose.FIRST_POINTS, Purpose.SECOND_BATCH, Purpose.SURROGATE, Purpose.NODES])
def test_streams_are_what_they_have_always_been(purpose):
    np.testing.assert_array_equal(stream(3, purpose).random(4), np.random.default_rng([3, int(purpose)]).random(4))


def test_estimators_have_no_other_source_of_random_numbers():
    folder = Path(zhat.__file__).parent
    of_methods = [
        path for name in ("surface", "protocol", "auto", "estimators") for path in (folder / name).glob("*.py")
    ]
    makers = {
        path.name
        for path in [folder / "problem" / "streams.py", *of_methods]
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute | ast.Name)
        and getattr(node, "attr", getattr(node, "id", "")) in ("default_rng", "SeedSequence", "RandomState")
    }
    assert makers == {"streams.py"}
