"""Other packages on the gauntlet's problems: what is counted and stopped, and dynesty, the one that is always there."""

import json
import logging
import math
import re
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from benchmarks.gauntlet import catalogue, peers
from benchmarks.gauntlet.problem import Problem, box
from scipy.special import i0e

ROOT = Path(__file__).parents[2]

STD = 0.5


def normal(dim=2, **others):
    """A normal in a box that holds all of it, at λ = 2."""

    def energy(x):
        return 0.25 * np.sum((x / STD) ** 2, axis=1)

    log_z = dim * math.log(STD * math.sqrt(2.0 * math.pi) / 10.0)
    return Problem(energy, box([(-5.0, 5.0)] * dim), inverse_temperature=2.0, log_z=log_z, **others)


def counting(monkeypatch, run):
    """Let a package called json be run by a function of the log integrand."""
    monkeypatch.setitem(peers.PACKAGES, "json", lambda log_integrand, seed, budget: run(log_integrand))


def test_the_module_needs_none_of_the_packages():
    names = list(map(peers.module_of, peers.PACKAGES))
    code = f"import sys, benchmarks.gauntlet.peers; sys.exit(any(name in sys.modules for name in {names}))"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT).returncode == 0


def test_every_package_is_pinned():
    lines = (ROOT / "benchmarks/gauntlet/peers-requirements.txt").read_text().splitlines()
    pins = [re.fullmatch(r"([\w-]+)==[\d.]+", line) for line in lines if not line.startswith("#")]
    assert all(pins)
    names = {pin[1].lower().removesuffix("-sampler") for pin in pins}
    assert set(map(peers.module_of, peers.PACKAGES)) <= names


def test_dynesty_at_its_own_settings_is_right():
    problem = normal()
    outcome = peers.run_peer("dynesty", problem, 0, None)
    assert outcome.status == "ok"
    assert abs(outcome.log_z - problem.log_z) < 5.0 * outcome.std_error < 1.0
    assert outcome.n_calls > 1000
    assert outcome.seconds > 0.0


@pytest.mark.parametrize("dim", [1, 2, 10])
def test_dynesty_keeps_to_its_budget_and_is_reproducible(dim):
    seen = []
    problem = normal(dim)

    def energy(x):
        seen.append(len(x))
        return problem.energy(x)

    watched = Problem(energy, problem.priors, inverse_temperature=2.0)
    outcome = peers.run_peer("dynesty", watched, 3, 200)
    assert outcome.status == "ok"
    assert outcome.n_calls == sum(seen) == 200
    assert math.isfinite(outcome.log_z)
    again = peers.run_peer("dynesty", problem, 3, 200)
    assert again.log_z == outcome.log_z
    assert again.std_error == outcome.std_error


@pytest.mark.parametrize("periodic", [(0,), (1,), (0, 1)])
def test_dynesty_has_axes_that_are_periodic(periodic):
    concentration = 20.0

    def energy(x):
        return concentration * np.sum(1.0 + np.cos(x), axis=1)

    problem = Problem(energy, box([(-math.pi, math.pi)] * 2), periodic=periodic)
    outcome = peers.run_peer("dynesty", problem, 0, None)
    assert outcome.status == "ok"
    assert abs(outcome.log_z - 2.0 * math.log(i0e(concentration))) < 5.0 * outcome.std_error < 1.0


def test_an_integrand_that_vanishes_in_places_is_no_failure():
    whole = normal()
    cut = Problem(lambda x: np.where(x[:, 0] > 0.0, np.inf, whole.energy(x)), whole.priors, inverse_temperature=2.0)
    outcome = peers.run_peer("dynesty", cut, 0, None)
    assert outcome.log_z == pytest.approx(whole.log_z - math.log(2.0), abs=5.0 * outcome.std_error)


def test_a_budget_that_its_first_points_use_up_leaves_no_estimate():
    nowhere = Problem(lambda x: np.full(len(x), np.inf), box([(0.0, 1.0)] * 2))
    outcome = peers.run_peer("dynesty", nowhere, 0, 100)
    assert outcome.status == f"stopped after {outcome.n_calls} calls"
    assert outcome.n_calls <= 100
    assert math.isnan(outcome.log_z)


def test_time_ends_a_run():
    outcome = peers.run_peer("dynesty", normal(), 0, None, time_limit=0.0)
    assert outcome.status == "stopped after 0 s"
    assert math.isnan(outcome.log_z)
    assert outcome.n_calls == 0


def test_time_ends_a_run_that_makes_no_calls(monkeypatch):
    def run(log_integrand):
        log_integrand(np.zeros((3, 2)))
        while not log_integrand.out_of_time:
            pass
        while True:
            pass

    counting(monkeypatch, run)
    outcome = peers.run_peer("json", normal(), 0, 10, time_limit=0.2)
    assert outcome.status == "stopped after 0.2 s"
    assert outcome.n_calls == 3
    assert outcome.seconds >= 0.2


def test_a_batch_that_exceeds_the_budget_is_not_evaluated(monkeypatch):
    def run(log_integrand):
        assert log_integrand(np.zeros((6, 2))).shape == (6,)
        try:
            log_integrand(np.zeros((5, 2)))
        except Exception:
            pytest.fail("a package would have taken it for a failing call")

    counting(monkeypatch, run)
    outcome = peers.run_peer("json", normal(), 0, 10)
    assert outcome.status == "stopped after 6 calls"
    assert outcome.n_calls == 6


def test_what_a_package_raises_is_an_outcome(monkeypatch):
    def run(log_integrand):
        log_integrand.at(np.zeros(2))
        raise RuntimeError("no\nway")

    counting(monkeypatch, run)
    outcome = peers.run_peer("json", normal(), 0, None)
    assert outcome.status == "failed: RuntimeError: no"
    assert outcome.n_calls == 1
    assert math.isnan(outcome.log_z)


@pytest.mark.parametrize("value", [math.nan, -math.inf])
def test_no_estimate_is_a_failure(monkeypatch, value):
    counting(monkeypatch, lambda log_integrand: (value, 1.0))
    outcome = peers.run_peer("json", normal(), 0, None)
    assert outcome.status == f"failed: log Z is {value}"
    assert math.isnan(outcome.log_z)


def test_a_package_that_is_not_there_is_a_failure(monkeypatch):
    monkeypatch.setitem(peers.PACKAGES, "no_such_package", None)
    outcome = peers.run_peer("no_such_package", normal(), 0, None)
    assert outcome.status.startswith("failed: ModuleNotFoundError")
    assert outcome.n_calls == 0


def test_an_unknown_package_is_refused():
    with pytest.raises(ValueError, match="dynesty, nautilus"):
        peers.run_peer("emcee", normal(), 0, None)


def test_nothing_reaches_the_screen(monkeypatch, capfd):
    def run(log_integrand):
        sys.stdout.write("printed")
        sys.stderr.write("printed")
        logging.getLogger("peer").critical("logged")
        warnings.warn("warned", stacklevel=1)
        return 0.0, 1.0

    counting(monkeypatch, run)
    assert peers.run_peer("json", normal(), 0, None).status == "ok"
    assert capfd.readouterr() == ("", "")
    assert logging.root.manager.disable == logging.NOTSET


def test_the_command_prints_one_line(monkeypatch, capsys):
    drawn = catalogue.Drawn(5, 7, "group", "family", normal())
    monkeypatch.setattr(catalogue, "draw", lambda seed, number: {(5, 7): drawn}[seed, number])
    peers.main(["--seed", "5", "--number", "7", "--package", "dynesty", "--budget", "150"])
    line = json.loads(capsys.readouterr().out)
    assert line["n_calls"] == line["budget"] == 150
    assert (line["seed"], line["number"], line["package"], line["status"]) == (5, 7, "dynesty", "ok")
    outcome = peers.run_peer("dynesty", drawn.problem, 5, 150)
    assert (line["log_z"], line["std_error"]) == (outcome.log_z, outcome.std_error)
