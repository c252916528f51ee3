"""The surface of a process for all temperatures: down to which λ it is one."""

import numpy as np
import pytest

from zhat.core.gp.kernels import Kernel
from zhat.core.gp.process import GaussianProcess
from zhat.core.heights.heights import relevant_height
from zhat.estimators.process_surface import landscape_of_process
from zhat.problem.task import Task


@pytest.mark.parametrize(("highest", "smallest"), [(1.0, 2.0), (1000.0, relevant_height(1) / 1000.0)])
def test_it_reaches_down_to_where_the_highest_energy_matters_but_not_above_its_own_temperature(highest, smallest):
    x = np.array([[0.1], [0.5], [0.9]])
    process = GaussianProcess.condition(Kernel(1.5, 0.3, highest**2), x, np.array([5.0, 5.0 + highest, 5.5]))
    landscape = landscape_of_process(Task(1, inverse_temperature=2.0, budget=8), process)
    assert landscape.smallest == pytest.approx(smallest)
