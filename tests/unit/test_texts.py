"""What energies say of their failures, made fit to be stored and shown: any characters, any length."""

import math
import sqlite3

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import zhat
from zhat.problem.evaluations import Outcome
from zhat.util.texts import LONGEST_REASON, bounded, in_words, printable

ANYTHING = st.text(st.characters() | st.characters(categories=["Cs"]))


class Speechless(Exception):
    def __str__(self):
        raise RuntimeError("no words")


@given(ANYTHING)
def test_whatever_an_energy_says_can_be_stored_encoded_and_printed(text):
    kept = Outcome(math.nan, text).failure
    assert len(kept) <= LONGEST_REASON
    assert sqlite3.connect(":memory:").execute("SELECT ?", (kept,)).fetchone() == (kept,)
    assert all(character in "\n\t" or not 0x7F <= ord(character) < 0xA0 and ord(character) >= 32 for character in kept)


def test_ordinary_texts_stay_as_they_are():
    text = "energy raised ValueError: λ = 0.5\n\tno convergence — sorry 🤷"
    assert Outcome(math.nan, text).failure == text


def test_terminals_have_nothing_to_obey():
    assert printable("\x1b[2J\x1b]0;title\x07 \x9b31m \r\0 \ud800") == (
        r"\x1b[2J\x1b]0;title\x07 \x9b31m \x0d\x00 \ud800"
    )


def test_of_long_texts_both_ends_are_kept():
    text = bounded("beginning " + "x" * 10_000_000 + " end")
    assert len(text) <= LONGEST_REASON
    assert text.startswith("beginning xxx") and text.endswith("xxx end")
    assert "characters" in text


def test_exceptions_in_words():
    assert in_words(ValueError("no")) == "ValueError: no"
    assert in_words(SystemExit(3)) == "SystemExit: 3"
    assert in_words(Speechless()) == "Speechless: (it cannot be put into words)"


RAISED = {
    "surrogates": ValueError("bad \ud800 text"),
    "speechless": Speechless(),
    "10 MB": ValueError("first " + "A" * 10_000_000 + " last"),
    "escapes": ValueError("\x1b[31mred\x1b[0m"),
    "exit": SystemExit(0),
}


@pytest.mark.parametrize("workers", [1, 2])
def test_studies_and_estimates_survive_whatever_an_energy_raises(workers, tmp_path):
    def energy(x):
        kinds = list(RAISED.values())
        place = int(10 * x[0])
        if place < len(kinds):
            raise kinds[place]
        return float(x[0])

    plain = zhat.estimate(energy, [(0, 1)], budget=40, seed=0, method="mc", workers=workers)
    with zhat.Study.create(tmp_path / "study.db", [(0, 1)], budget=40, seed=0, method="mc") as study:
        found = study.run(energy, workers=workers)
    for estimate in (plain, found):
        reasons = " ".join(dict(estimate.evaluations.failures_by_reason()))
        assert len(estimate.summary().encode()) < 10 * LONGEST_REASON
        assert r"bad \ud800 text" in reasons and "Speechless" in reasons and r"\x1b[31mred" in reasons
        assert "ValueError: first AAA" in reasons and "AAA last" in reasons and "raised SystemExit: 0" in reasons
        assert "\x1b" not in estimate.summary()
        estimate.save(tmp_path / "saved.json")
        assert (tmp_path / "saved.json").stat().st_size < 100_000
        assert zhat.load(tmp_path / "saved.json").summary() == estimate.summary()


def test_an_energy_that_never_works_says_so_briefly():
    def energy(x):
        raise ValueError("\x1b[31m" + "A" * 10_000_000)

    with pytest.raises(zhat.EnergyError) as caught:
        zhat.estimate(energy, [(0, 1)], budget=5, seed=0)
    assert len(str(caught.value)) < 2 * LONGEST_REASON
    assert "\x1b" not in str(caught.value)


def test_names_and_reasons_that_cannot_be_stored(tmp_path):
    with zhat.Study.create(tmp_path / "study.db", [(0, 1)], budget=9, seed=0, method="mc") as study:
        first, second = study.ask(2, holder="who \ud800 \x1b[31m")
        study.tell(first.id, 1.0, worker="who \ud800")
        study.fail(second.id, "why \ud800")
        assert study.rows[0].worker == r"who \ud800"
        assert study.rows[0].holder == r"who \ud800 \x1b[31m"
        assert study.evaluations.failure == ("", r"why \ud800")


@pytest.mark.parametrize("seconds", [math.nan, math.inf, -math.inf, -1.0, "3", None])
def test_times_that_are_none_are_refused(seconds, tmp_path):
    with zhat.Study.create(tmp_path / "study.db", [(0, 1)], budget=9, seed=0, method="mc") as study:
        (point,) = study.ask()
        for attempt in (study.tell, study.fail):
            with pytest.raises(zhat.InvalidArgument, match=r"seconds is .*; wanted: a finite number of at least 0"):
                attempt(point.id, 1.0, seconds=seconds)
        assert study.n_told == 0
        study.tell(point.id, 1.0, seconds=np.float64(3.5))
        assert study.evaluations.seconds.tolist() == [3.5]
