"""Which surrogate chooses points where powers of the integrand are modelled."""

import numpy as np
import pytest

from height_models import CONSTANT, INTEGRAND, POWERS, QUADRATIC, ROOT, heights_of, wavy
from zhat.auto.knowledge import Knowledge
from zhat.auto.planning import chooser
from zhat.core.arrays import sobol
from zhat.core.heights.coordinates import Coordinates
from zhat.core.heights.models import ModelSpec, Surrogate, fit_model

SMALL_POWERS = tuple(ModelSpec(warp=warp, trend="quadratic") for warp in (-0.2, -0.1))


@pytest.fixture
def known():
    data = heights_of(wavy, 40, 2)
    return Knowledge(data.x, data.height, data.noise, np.arange(40.0), 40)


def test_the_integrand_chooses_in_place_of_its_root(known):
    data, coordinates = known.heights(), Coordinates.plain(2)
    found = chooser(Surrogate(fit_model(ROOT, data, coordinates), None), known).model
    expected = fit_model(ModelSpec(warp=-1.0, trend="quadratic"), data, coordinates)
    assert found.spec == expected.spec
    np.testing.assert_allclose(found.height(sobol(50, 2, 1)), expected.height(sobol(50, 2, 1)), rtol=1e-9)


@pytest.mark.parametrize(
    "spec", [CONSTANT, QUADRATIC, INTEGRAND, *SMALL_POWERS, *(power for power in POWERS if power.warp <= -1.0)]
)
def test_all_others_choose_themselves(known, spec):
    surrogate = Surrogate(fit_model(spec, known.heights(), Coordinates.plain(2)), None)
    assert chooser(surrogate, known) is surrogate
