"""A particle filter's likelihood is unbiased and its logarithm is not: the evidence must know."""

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.append(str(Path(__file__).parents[2] / "examples"))
example = importlib.import_module("particle_filter")

SEEDS = range(6)
#: Of as many, the least number whose 95% intervals must hold the truth.
FEWEST_COVERED = {2: 1, 6: 5}


def test_the_filter_is_unbiased_for_the_likelihood_and_not_for_its_logarithm():
    seen, rng = example.simulate(0.7, 1.0, seed=0), np.random.default_rng(0)
    logs = np.array([example.particle_log_likelihood(0.7, 1.0, seen, rng) for _ in range(400)])
    logs -= example.kalman_log_likelihood(0.7, 1.0, seen)
    ratios = np.exp(logs)
    assert abs(np.mean(ratios) - 1.0) < 4.0 * np.std(ratios) / 20.0
    assert np.mean(logs) < -4.0 * np.std(logs) / 20.0
    assert -np.mean(logs) == np.clip(-np.mean(logs), 0.35 * np.var(logs), 0.65 * np.var(logs))


@pytest.mark.parametrize("seeds", [SEEDS[:2], pytest.param(SEEDS, marks=pytest.mark.slow)], ids=len)
def test_the_evidence_is_right_with_the_right_kind_of_noise_and_biased_with_the_wrong_one(seeds):
    seen = example.simulate(0.7, 1.0, seed=0)
    truth = example.exact_log_evidence(seen)
    right = [example.estimate(seen, "likelihood", seed) for seed in seeds]
    wrong = [example.estimate(seen, "energy", seed) for seed in seeds]
    errors = np.array([found.log_z - truth for found in right])
    assert np.median(np.abs(errors)) <= 0.15
    assert np.sum(np.abs(errors) < [1.96 * found.std_error for found in right]) >= FEWEST_COVERED[len(seeds)]
    # The same filter runs, so that the difference is the shift that was learned and nothing else: about 0.17.
    shifts = np.array([a.log_z - b.log_z for a, b in zip(right, wrong, strict=True)])
    assert np.all(shifts > 0.0)
    assert 0.1 < np.median(shifts) < 0.25
    if len(seeds) > 2:
        bias = np.array([found.log_z - truth for found in wrong])
        assert np.mean(bias) < -2.0 * np.std(bias) / np.sqrt(len(bias))
