"""Evidences of models that are ordinary differential equations, given data that they simulate."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..problem import Draw, Problem
from .dynamics import epidemic, fitzhugh_nagumo, lotka_volterra, pendulum
from .kinetics import enzyme_inhibition, goodwin, saturable_elimination, two_compartments
from .simulated import Model, simulate

#: The models by the names of their families.
MODELS: dict[str, Callable[[np.random.Generator], Model]] = {
    "two-compartment pharmacokinetics": two_compartments,
    "saturable elimination": saturable_elimination,
    "SEIR epidemic": epidemic,
    "enzyme inhibition": enzyme_inhibition,
    "FitzHugh-Nagumo": fitzhugh_nagumo,
    "Goodwin oscillator": goodwin,
    "driven pendulum": pendulum,
    "Lotka-Volterra": lotka_volterra,
}


def family(draw_model: Callable[[np.random.Generator], Model]) -> Draw:
    """Return the family of a model: its evidence with random true values, data, unknown quantities and priors."""

    def draw(generator: np.random.Generator) -> Problem:
        return simulate(draw_model(generator), generator).problem()

    return draw


FAMILIES: dict[str, Draw] = {name: family(draw_model) for name, draw_model in MODELS.items()}
