"""The gallery's examples: log Z, draws and what they print. Their references are put to the test elsewhere."""

import importlib
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import gallery_grids as grids

GALLERY = Path(__file__).parents[2] / "examples" / "gallery"
sys.path.append(str(GALLERY))

#: Examples and how far off log Z may be: more where values are noisy.
WANTED = {
    "influenza": 0.05,
    "cosmic_clocks": 0.05,
    "beetles": 0.05,
    "eight_schools": 0.05,
    "butane": 0.2,
    "simulated_likelihood": 0.2,
}
#: References are known to so much.
ROUNDING = 1e-6


def check_evidence(example, found):
    references = importlib.import_module(example).REFERENCES
    assert found.keys() == references.keys()
    for model, estimate in found.items():
        low, high = estimate.interval(0.95)
        assert estimate.log_z == pytest.approx(references[model], abs=WANTED[example])
        assert low - ROUNDING <= references[model] <= high + ROUNDING
        assert estimate.n_evaluations <= 256


def check_print(example, found, printed):
    references = importlib.import_module(example).REFERENCES
    for model, estimate in found.items():
        assert estimate.summary() in printed
        assert f"{references[model]:.3f}" in printed
    assert ("Bayes factor" in printed) == (len(found) == 2)


def check_moments(answer, estimate):
    draws = estimate.sample(20_000, seed=0)
    assert np.all(np.abs(np.mean(draws, axis=0) - answer.means) < 0.05 * answer.stds)
    np.testing.assert_allclose(np.std(draws, axis=0), answer.stds, rtol=0.05)


def check_free_energies(estimate):
    example = importlib.import_module("butane")
    curve = estimate.curve(1.0 / (example.BOLTZMANN * example.TEMPERATURES))
    errors = np.abs(curve.free_energy - example.exact_free_energies())
    assert np.all(errors < 3.0 * curve.free_energy_error)
    # Noise of 0.5 kJ/mol, averaged over the queries.
    assert np.all(errors < 0.25)


# All of an example in one test: its runs are long, and tests that share them may be put on different processes.
@pytest.mark.parametrize("example", WANTED)
def test_examples_find_what_brute_force_does(example, monkeypatch, capsys):
    module = importlib.import_module(example)
    found = module.estimates()
    check_evidence(example, found)
    monkeypatch.setattr(module, "estimates", lambda: found)
    module.main()
    check_print(example, found, capsys.readouterr().out)
    if example == "influenza":
        check_moments(grids.flu(16), found["sir"])
    if example == "eight_schools":
        check_moments(grids.schools(16), found["schools"])
    if example == "butane":
        check_free_energies(found["torsion"])


def test_an_example_runs_as_a_program(tmp_path):
    done = subprocess.run(
        [sys.executable, GALLERY / "butane.py"],
        cwd=tmp_path,
        env=os.environ,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "exact: -0.268" in done.stdout
