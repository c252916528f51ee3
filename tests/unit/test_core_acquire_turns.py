"""Whose turn it is when points are chosen, with the numbers that the adaptive method passes."""

import numpy as np
import pytest

from acquire_models import NONE_PENDING, SPECS, best_hidden, choose, gap_scores, model_of, region_of, starts_of
from zhat.auto.planning import EXPLORE_OFTEN, EXPLORE_RARELY
from zhat.core.arrays import sobol
from zhat.core.design.acquire import Criterion, _Conditioned, shares, turns
from zhat.core.gp.kernels import Kernel
from zhat.core.heights.models import Surrogate
from zhat.core.heights.walls import Walls


@pytest.mark.parametrize("criterion", [Criterion.BORDER, Criterion.FAR, Criterion.FAR_ANYWAY])
@pytest.mark.parametrize("explore_every", [EXPLORE_OFTEN, EXPLORE_RARELY])
@pytest.mark.parametrize("spec", ["height", "warped", "square"])
def test_one_in_a_few_looks_where_a_mode_may_hide(spec, explore_every, criterion):
    model = model_of(Kernel(2.5, 0.25, 0.1 if spec == "square" else 0.8), spec=SPECS[spec], noise=1e-6)
    candidates, region = sobol(200, 2, 3), region_of(model)
    best = best_hidden(Surrogate(model, None), candidates, far=criterion is not Criterion.BORDER)
    for start in starts_of(criterion, explore_every)[:2]:
        chosen = choose(Surrogate(model, None), candidates, region, 1, start=start, explore_every=explore_every)
        np.testing.assert_array_equal(chosen[0], candidates[best])


@pytest.mark.parametrize("walled", [False, True])
@pytest.mark.parametrize("explore_every", [EXPLORE_OFTEN, EXPLORE_RARELY])
def test_no_wish_keeps_another_from_its_turn(explore_every, walled):
    model = model_of(Kernel(2.5, 0.25, 0.8), noise=1e-6)
    candidates, region = sobol(200, 2, 4), region_of(model)
    x = sobol(60, 2, 11)
    walls = Walls.around(x, x[:, 0] < 0.9) if walled else None
    surrogate = Surrogate(model, walls)
    # One point at a time, none of them observed.
    chosen = [
        choose(surrogate, candidates, region, 1, start=start, explore_every=explore_every)[0] for start in range(48)
    ]
    best = {
        "integral": np.argmax(_Conditioned(model, candidates, region, 0.0).reduction()),
        "gap": np.argmax(gap_scores(surrogate, candidates, NONE_PENDING)),
        "border": best_hidden(surrogate, candidates, far=False),
        "far": best_hidden(surrogate, candidates, far=True),
    }
    assert len(set(best.values())) == 4
    times = {
        criterion: sum(np.array_equal(point, candidates[row]) for point in chosen) for criterion, row in best.items()
    }
    left = 24 if walled else 48
    assert times["gap"] == pytest.approx(left / 4, abs=1)
    exploring = 3 / 4 * left / explore_every
    assert times["border"] == pytest.approx(exploring / 3, abs=1)
    assert times["far"] == pytest.approx(exploring * 2 / 3, abs=1)
    assert times["integral"] == pytest.approx(left * 3 / 4 - exploring, abs=1)


@pytest.mark.parametrize("walled", [False, True])
@pytest.mark.parametrize("searching", [False, True])
@pytest.mark.parametrize("explore_every", [1, EXPLORE_OFTEN, EXPLORE_RARELY, 5, 7, 100])
def test_every_wish_has_its_share_of_any_points_in_a_row(explore_every, searching, walled):
    wanted = shares(explore_every, searching, walled)
    assert sum(wanted.values()) == 1
    order = turns(wanted, 0, 400)
    for criterion, share in wanted.items():
        done = np.cumsum([0, *(turn is criterion for turn in order)])
        due = float(share) * np.arange(401)
        assert np.max(np.abs(done - due)) < 2.0
    # Whether they are chosen at once or in parts.
    assert [turn for start in range(0, 400, 25) for turn in turns(wanted, start, 25)] == order
