"""Truths beside independent ones: the third opinion against closed forms, and the table that is kept."""

import math

import numpy as np
import pytest
from benchmarks.gauntlet import check_truths, third_truth
from benchmarks.gauntlet.catalogue import draw
from benchmarks.gauntlet.check_truths import HEADER, PATH, SUSPICIOUS, read, score
from benchmarks.gauntlet.problem import Problem, box
from scipy import integrate


def row(**cells):
    given = {name: "" for name in HEADER} | {"number": "7", "means": "cells", "other_means": "nautilus"} | cells
    return [given[name] for name in HEADER]


@pytest.mark.parametrize("dim", [1, 5])
def test_the_third_opinion_is_right_about_what_is_no_normal(dim, monkeypatch):
    monkeypatch.setattr(third_truth, "N_FITTING", 20_000)
    monkeypatch.setattr(third_truth, "N_LAST", 100_000)
    problem = Problem(
        lambda x: np.sum(np.cosh(2.0 * (x - 0.3)), axis=1), box([(-4.0, 3.0)] * dim), inverse_temperature=3.0
    )  # fmt: skip
    exact = integrate.quad(lambda x: math.exp(-3.0 * math.cosh(2.0 * (x - 0.3))), -4.0, 3.0, points=[0.3])[0]
    log_z, error = third_truth.laplace_importance(problem, np.random.default_rng(0))
    assert error < 0.01
    assert abs(log_z - dim * math.log(exact / 7.0)) < 5.0 * error


def test_pairs_of_truths_have_a_score_unless_one_is_thrown_away():
    pair = {"truth": "1.0", "error": "0.03", "other": "0.9", "other_error": "0.04"}
    assert score(row(**pair)) == pytest.approx(2.0)
    assert math.isnan(score(row(**pair, doubt="swarms differ")))
    # Of a closed form it is the other means that is doubtful.
    assert score(row(**pair | {"means": "closed form"}, doubt="swarms differ")) == pytest.approx(2.0)
    assert math.isnan(score(row(**pair | {"other": "nan", "other_error": "nan"})))


def test_the_table_is_read_as_it_was_written(tmp_path, monkeypatch):
    monkeypatch.setattr(check_truths, "PATH", tmp_path / "truths.csv")
    assert read() == []
    rows = [row(number="11"), row(number="2", doubt="a, b")]
    check_truths.write(rows)
    assert read() == rows[::-1]


def test_three_draws_of_every_family_have_two_truths_that_agree_or_a_third_that_decides():
    kept: dict[str, int] = {}
    for cells in (dict(zip(HEADER, one, strict=True)) for one in read()):
        apart = score([cells[name] for name in HEADER])
        if math.isnan(apart):
            continue
        kept[cells["family"]] = kept.get(cells["family"], 0) + 1
        if apart > SUSPICIOUS:
            off = abs(float(cells["truth"]) - float(cells["third"]))
            assert off < SUSPICIOUS * math.hypot(float(cells["error"]), float(cells["third_error"])), cells
    assert PATH.exists() and set(kept) == {draw(check_truths.SEED, number).family for number in range(52)}
    assert min(kept.values()) >= 3, {name: n for name, n in kept.items() if n < 3}
