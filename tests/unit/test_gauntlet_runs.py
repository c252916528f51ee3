"""The gauntlet's runs: what methods see of a problem, what they are told, and what comes of those that break."""

import math
import time
from types import SimpleNamespace

import numpy as np
import pytest
from benchmarks.gauntlet import catalogue, conduct, runs
from benchmarks.gauntlet.catalogue import Drawn
from benchmarks.gauntlet.problem import Problem, box
from benchmarks.gauntlet.runs import Outcome, SeenEnergy, perform
from scipy import stats
from scipy.special import ndtr

BOUNDS = [(-4.0, 6.0), (-3.0, 5.0)]
CENTRE, WIDTHS = np.array([1.0, 0.5]), np.array([0.8, 0.6])


def normal(inverse_temperature=1.0, **others):
    """A normal whatever λ is, in a box that cuts next to nothing off."""

    def energy(x):
        return 0.5 / inverse_temperature * np.sum(((x - CENTRE) / WIDTHS) ** 2, axis=1)

    low, high = np.array(BOUNDS).T
    inside = np.prod(ndtr((high - CENTRE) / WIDTHS) - ndtr((low - CENTRE) / WIDTHS))
    log_z = math.log(2.0 * math.pi * np.prod(WIDTHS) * inside / np.prod(high - low))
    return Problem(energy, box(BOUNDS), inverse_temperature=inverse_temperature, log_z=log_z, **others)


def under_normal_priors(**others):
    """The same as a likelihood under normal priors of twice the width, around the same centre."""
    priors = tuple(stats.norm(at, 2.0 * width) for at, width in zip(CENTRE, WIDTHS, strict=True))
    return Problem(normal().energy, priors, log_z=-0.5 * 2.0 * math.log(5.0), **others)


def drawn(problem, seed=3, number=7):
    return Drawn(seed, number, "group", "family", problem)


def put(monkeypatch, problem):
    monkeypatch.setattr(runs, "draw", lambda seed, number: drawn(problem, seed, number))


def points(n):
    return np.random.default_rng(1).uniform(-3.0, 5.0, (n, 2))


def in_batches(energy, x, sizes):
    ends = np.cumsum([0, *sizes])
    return np.concatenate([energy(x[start:end]) for start, end in zip(ends[:-1], ends[1:], strict=True)])


def test_every_method_meets_the_same_noise_in_whatever_batches():
    problem = normal(2.0, noise_known="known", noise_std=0.7, failing_share=0.2)
    x = points(60)
    whole = SeenEnergy(drawn(problem), 60, 1.0)(x)
    for sizes in ([1] * 60, [7, 0, 20, 33]):
        energy = SeenEnergy(drawn(problem), 60, 1.0)
        np.testing.assert_array_equal(in_batches(energy, x, sizes), whole)
        assert energy.n_evaluations == 60
    # A larger budget begins with the same luck, other points have the same noise, and another problem has other noise.
    np.testing.assert_array_equal(SeenEnergy(drawn(problem), 500, 1.0)(x), whole)
    elsewhere = SeenEnergy(drawn(problem), 60, 1.0)(x[::-1])
    np.testing.assert_allclose(elsewhere - problem.energy(x[::-1]), whole - problem.energy(x), atol=1e-12)
    for other in (drawn(problem, seed=4), drawn(problem, number=8)):
        assert not np.any(SeenEnergy(other, 60, 1.0)(x) == whole)


def test_noise_and_failures_are_as_frequent_as_they_should_be():
    problem = normal(noise_known="known", noise_std=0.7, failing_share=0.1)
    x = points(20_000)
    off = SeenEnergy(drawn(problem), 20_000, 1.0)(x) - problem.energy(x)
    assert np.mean(np.isnan(off)) == pytest.approx(0.1, abs=0.01)
    assert np.nanstd(off) == pytest.approx(0.7, rel=0.03)
    assert abs(np.nanmean(off)) < 0.03
    # Which fail has nothing to do with how large the noise is.
    louder = SeenEnergy(drawn(normal(noise_std=7.0, failing_share=0.1)), 20_000, 1.0)(x)
    np.testing.assert_array_equal(np.isnan(louder), np.isnan(off))


def test_evaluations_that_fail_are_no_numbers_and_walls_are_infinite():
    whole = normal()
    problem = Problem(
        lambda x: np.where(x[:, 1] > 3.0, np.inf, whole.energy(x)), whole.priors, fails=lambda x: x[:, 0] > 2.0
    )
    x = points(200)
    for scale, wall in ((1.0, np.inf), (-1.0, -np.inf)):
        values = SeenEnergy(drawn(problem), 200, scale)(x)
        np.testing.assert_array_equal(np.isnan(values), x[:, 0] > 2.0)
        assert np.all(values[(x[:, 0] <= 2.0) & (x[:, 1] > 3.0)] == wall)
        free = (x[:, 0] <= 2.0) & (x[:, 1] <= 3.0)
        np.testing.assert_array_equal(values[free], scale * whole.energy(x[free]))


@pytest.mark.parametrize(
    "problem",
    [
        normal(), normal(3.0), normal(face="priors"), normal(face="transform"),
        under_normal_priors(face="priors"), under_normal_priors(face="transform"),
    ],
    ids=["box", "box with a temperature", "uniform", "uniform transform", "normal", "normal transform"],
)  # fmt: skip
def test_every_face_has_the_log_z_of_the_truth(problem, monkeypatch):
    put(monkeypatch, problem)
    outcome = perform(3, 7, "auto", 12)
    assert outcome.n_evaluations <= 48
    assert outcome.seconds >= 0.0 and not outcome.status.startswith("failed")
    assert outcome.log_z == pytest.approx(problem.log_z, abs=max(5.0 * outcome.std_error, 1e-6))
    assert outcome.std_error < 0.05


def told_of(monkeypatch, problem):
    """Return what zhat is called with, and what the energy returns at ten points."""
    seen = []

    def called(energy, *arguments, **options):
        seen.append((arguments, options, energy(points(10))))
        return SimpleNamespace(log_z=-1.0, std_error=0.5, n_evaluations=10, status="converged")

    monkeypatch.setattr(runs.zhat, "estimate" if problem.face == "box" else "evidence", called)
    put(monkeypatch, problem)
    outcome = perform(3, 7, "mc", 25)
    assert outcome.log_z == pytest.approx(-1.0 - (math.log(80.0) if problem.face == "box" else 0.0))
    (found,) = seen
    assert found[1]["budget"] == 100 and found[1]["seed"] == 7 and found[1]["method"] == "mc"
    return found


@pytest.mark.parametrize("face", ["box", "priors", "transform"])
def test_what_is_known_of_the_noise_reaches_zhat_in_its_units(face, monkeypatch):
    # A likelihood has λ in it, and so has its noise.
    scale = 1.0 if face == "box" else 2.0
    for known, expected in (("known", 0.3 * scale), ("learned", None)):
        problem = normal(2.0, face=face, noise_known=known, noise_std=0.3)
        _, options, values = told_of(monkeypatch, problem)
        assert options["noise_std"] == expected
        exact = scale * problem.energy(points(10)) * (1.0 if face == "box" else -1.0)
        assert values.shape == (10,) and np.all(values != exact)
    _, options, (values, stds) = told_of(monkeypatch, normal(2.0, face=face, noise_known="told", noise_std=0.3))
    assert options["noise_std"] == 0.0
    np.testing.assert_allclose(stds, 0.3 * scale)
    _, options, values = told_of(monkeypatch, normal(2.0, face=face))
    assert options["noise_std"] == 0.0
    np.testing.assert_array_equal(values, exact)


def test_bounds_priors_temperatures_and_periodic_axes_reach_zhat(monkeypatch):
    arguments, options, _ = told_of(monkeypatch, normal(2.0, periodic=(1,)))
    assert arguments == (BOUNDS, 2.0) and options["periodic"] == (1,)
    arguments, options, _ = told_of(monkeypatch, normal(face="priors", periodic=(0,)))
    assert [prior.support() for prior in options["priors"].values()] == BOUNDS and options["periodic"] == (0,)
    (transform, dim), options, _ = told_of(monkeypatch, normal(face="transform"))
    np.testing.assert_allclose(transform(np.array([[0.0, 0.0], [1.0, 1.0]])).T, BOUNDS)
    assert dim == 2 and "priors" not in options


@pytest.mark.parametrize("known", ["known", "learned", "told"])
def test_a_noisy_run_is_right_within_its_error(known, monkeypatch):
    problem = normal(noise_known=known, noise_std=0.2, failing_share=0.1)
    put(monkeypatch, problem)
    outcome = perform(3, 7, "auto", 16)
    assert not outcome.status.startswith("failed") and "evaluations failed" in outcome.status
    assert outcome.log_z == pytest.approx(problem.log_z, abs=5.0 * outcome.std_error)
    assert outcome.std_error < 0.5


def test_a_method_that_breaks_is_an_outcome(monkeypatch):
    def check(outcome, words, n_evaluations):
        assert math.isnan(outcome.log_z) and math.isnan(outcome.std_error)
        assert outcome.status.startswith("failed: ") and words in outcome.status
        assert outcome.n_evaluations == n_evaluations

    put(monkeypatch, normal())
    check(perform(3, 7, "no such method", 10), "InvalidArgument", 0)

    def breaks(energy, *_, **options):
        energy(points(13))
        raise RuntimeError("it broke")

    monkeypatch.setattr(runs.zhat, "estimate", breaks)
    check(perform(3, 7, "auto", 10), "RuntimeError: it broke", 13)

    def overspends(energy, *_, budget, **options):
        energy(points(budget + 1))

    monkeypatch.setattr(runs.zhat, "estimate", overspends)
    check(perform(3, 7, "auto", 10), "ValueError", 41)


def test_a_run_that_hangs_is_an_outcome(monkeypatch):
    monkeypatch.setattr(conduct, "LONGEST_RUN", 1)
    start = time.monotonic()
    outcome = conduct.limited(lambda: time.sleep(30.0))
    assert time.monotonic() - start < 10.0
    assert math.isnan(outcome.log_z) and outcome.status == "failed: no end after 1 s"
    quick = Outcome(1.0, 0.1, 5, 0.0, "converged")
    assert conduct.limited(lambda: quick) is quick


def test_what_another_package_says_last_is_its_outcome(monkeypatch, tmp_path):
    python = tmp_path / "python"
    monkeypatch.setattr(conduct, "PACKAGES_PYTHON", python)

    def said(script):
        python.write_text(f"#!/bin/sh\n{script}\n")
        python.chmod(0o700)
        return conduct.package_outcome(3, 7, "dynesty", 40)

    line = '{"log_z": -1.5, "std_error": NaN, "n_calls": 40, "seconds": 2.0, "status": "ok"}'
    found = said(f"echo words; echo '{line}'")
    assert (found.log_z, found.n_evaluations, found.seconds, found.status) == (-1.5, 40, 2.0, "ok")
    assert math.isnan(found.std_error)
    assert said("echo several >&2; echo words >&2; exit 3").status == "failed: words"
    assert said("true").status == "failed: no word"
    asked = '{"log_z": 0, "std_error": 0, "n_calls": 0, "seconds": 0, "status": "%s"}'
    assert said(f"printf '{asked}' \"$*\"").status == (
        "-m benchmarks.gauntlet.peers --seed 3 --number 7 --package dynesty --budget 40"
    )


def test_rows_have_what_a_run_and_a_truth_came_to(monkeypatch):
    problem = normal(2.0, noise_known="known", noise_std=0.3)
    put(monkeypatch, problem)
    monkeypatch.setattr(conduct, "draw", runs.draw)
    row = conduct.problem_row(3, 7)
    assert (row.number, row.dim, row.face, row.noise_known, row.scaled_noise) == (7, 2, "box", "known", 0.6)
    assert (row.truth, row.means, row.doubt) == (problem.log_z, "closed form", "")
    run = conduct.run_row(3, 7, "mc", 25)
    assert run.key == (7, "mc", 25) and run.budget == run.n_evaluations == 100


def test_every_family_has_its_turn_and_some_problems_are_noisy_or_fail(monkeypatch):
    boxes, by_prior = (normal(), normal(3.0)), under_normal_priors()

    def draws(name):
        return lambda generator: by_prior if name == "prior" else boxes[generator.integers(2)]

    names = ["prior", "one", "another", "third"]
    monkeypatch.setattr(catalogue, "GROUPS", {"group": {name: draws(name) for name in names}})
    every = [catalogue.draw(5, number) for number in range(4000)]
    orders = [tuple(one.family for one in every[start : start + 4]) for start in range(0, 4000, 4)]
    assert all(sorted(order) == sorted(names) for order in orders) and len(set(orders)) == 24
    problems = [one.problem for one in every]
    for problem in problems:
        assert problem.face != "box" or problem.is_box
        assert problem.face == "box" or problem.inverse_temperature == 1.0
        assert (problem.noise_known == "none") == (problem.noise_std == 0.0)
        assert problem.noise_std == 0.0 or 0.01 <= problem.noise_std * problem.inverse_temperature <= 50.0
    assert {problem.noise_known for problem in problems} == {"none", "known", "learned", "told"}
    assert np.mean([problem.noise_std > 0.0 for problem in problems]) == pytest.approx(0.15, abs=0.025)
    assert np.mean([problem.failing_share == 0.1 for problem in problems]) == pytest.approx(0.07, abs=0.02)
    boxes = [problem for problem in problems if problem.is_box and problem.inverse_temperature == 1.0]
    assert np.mean([problem.face == "box" for problem in boxes]) == pytest.approx(0.75, abs=0.05)
    again = catalogue.draw(5, 123)
    assert (again.family, again.problem.noise_std) == (every[123].family, every[123].problem.noise_std)
