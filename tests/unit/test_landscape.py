"""The surface of a process for all temperatures: down to which λ it is one, and how its parts are joined."""

import math

import numpy as np
import pytest

from zhat.auto.landscape import _fade
from zhat.core.gp.kernels import Kernel
from zhat.core.gp.process import GaussianProcess
from zhat.core.heights.heights import relevant_height
from zhat.problem.task import Task
from zhat.surface.landscape import landscape_of_process


@pytest.mark.parametrize(("highest", "smallest"), [(1.0, 2.0), (1000.0, relevant_height(1) / 1000.0)])
def test_it_reaches_down_to_where_the_highest_energy_matters_but_not_above_its_own_temperature(highest, smallest):
    x = np.array([[0.1], [0.5], [0.9]])
    process = GaussianProcess.condition(Kernel(1.5, 0.3, highest**2), x, np.array([5.0, 5.0 + highest, 5.5]))
    landscape = landscape_of_process(Task(1, inverse_temperature=2.0, budget=8), process, inflation=1.0)
    assert landscape.smallest == pytest.approx(smallest)


def test_what_fades_out_is_made_up_for_by_what_fades_in():
    places = np.linspace(-2.0, 5.0, 57)
    share = _fade(places, 0.0, 3.0)
    np.testing.assert_allclose(share + _fade(3.0 - places, 0.0, 3.0), 1.0)
    assert np.all(np.diff(share) <= 0.0)
    # Smooth at both ends: no slope there.
    for end in (0.0, 3.0):
        near, at = _fade(np.array([end - 1e-6, end + 1e-6]), 0.0, 3.0), _fade(np.array([end]), 0.0, 3.0)
        assert math.fabs(float(near[1] - near[0])) < 1e-10
        assert at[0] == (end == 0.0)
