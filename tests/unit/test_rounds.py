"""Which kinds of models a round compares."""

from dataclasses import replace

import numpy as np
import pytest

import zhat
from zhat.auto.comparison import HIGHEST_SUM, _neighbours
from zhat.core.heights.coordinates import Coordinates
from zhat.core.heights.heights import Heights
from zhat.core.heights.models import ModelSpec


def heights(highest, n=40, dim=3):
    rng = np.random.default_rng(0)
    height = highest * np.linspace(0.0, 1.0, n) ** 4
    return Heights(rng.random((n, dim)), height, np.zeros(n))


def structures(spec, data):
    return {other.structure for other in _neighbours(spec, data, rotations={})}


@pytest.mark.parametrize("current", ["isotropic", "additive"])
def test_heights_that_cannot_matter_do_not_decide_whether_all_are_a_sum(current):
    spec = ModelSpec(structure=current)
    limit = HIGHEST_SUM * heights(1.0).relevant_height
    assert "additive" in structures(spec, heights(0.9 * limit))
    assert "additive" not in structures(spec, heights(1.1 * limit))


def test_each_neighbour_differs_in_one_respect_and_occurs_once():
    spec = ModelSpec(nu=2.5, structure="per-axis")
    first, *others = _neighbours(spec, heights(50.0), rotations={False: Coordinates.plain(3)})
    assert first == spec
    assert len(set(others)) == len(others)
    assert spec not in others
    assert {other.nu for other in others if other.structure == "per-axis"} >= {0.5, 1.5, np.inf}
    assert any(other.rotated for other in others)


def test_scores_are_tried_where_axes_are_quantiles_and_nowhere_else():
    spec, data = ModelSpec(), heights(50.0)
    assert not any(other.scored for other in _neighbours(spec, data, rotations={}))
    of_quantiles = replace(data, quantiles=(1,))
    scored = [other for other in _neighbours(spec, of_quantiles, rotations={}) if other.scored]
    assert scored == [replace(spec, scored=True)]


def two_hills(x):
    return sum(8.0 * np.exp(-50.0 * np.sum((x - centre) ** 2, axis=1)) for centre in ([0.35, 0.3], [0.6, 0.7]))


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_best_model_of_heights_is_fitted_to_all_data_though_some_would_prefer_a_power_of_the_integrand(seed):
    nodes, weights = np.polynomial.legendre.leggauss(120)
    grid = np.stack(np.meshgrid(0.5 * (nodes + 1.0), 0.5 * (nodes + 1.0)), axis=-1).reshape(-1, 2)
    truth = np.log(np.outer(weights, weights).ravel() / 4.0 @ np.exp(-5.0 * two_hills(grid)))
    found = zhat.estimate(two_hills, [(0.0, 1.0)] * 2, inverse_temperature=5.0, budget=256, seed=seed, vectorized=True)
    assert found.diagnostics["warp"] == 0.0
    assert found.log_z == pytest.approx(truth, abs=6e-5)
