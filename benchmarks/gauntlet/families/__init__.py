"""Families of problems, one module a group; each family is a function that draws a problem from a generator."""

from __future__ import annotations

from ..problem import Draw
from . import ode, physics, random_functions, real_data, shapes

#: The families of each group, by their names.
GROUPS: dict[str, dict[str, Draw]] = {
    "real data": real_data.FAMILIES,
    "ODE": ode.FAMILIES,
    "physics": physics.FAMILIES,
    "shapes": shapes.FAMILIES,
    "random functions": random_functions.FAMILIES,
}
