"""All that can be tuned about the adaptive method, so that each rule can be switched off to see what it does."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Settings:
    """What can be tuned.

    Attributes
    ----------
    first, first_an_axis
        How many points there are before anything is modelled: so many, and so many more for each axis.
    descents
        How many descents begin side by side.
    lap
        Of these the better half goes on after so many steps for each axis and two more.
    search_share
        The share of the budget after which the surrogates have their turn, whether a descent has ended or not.
    exploring_share
        Further descents have at least this share of the evaluations after that: the chance that the next one ends in a
        new basin, if that is larger, up to a half.
    growth
        A round evaluates this share of what is known already.
    compare_growth
        Kinds of processes are compared anew whenever the facts have grown by this factor.
    drawn_share
        The share of a round that is drawn from the integrand as it is expected.
    optimism
        What is doubtful of the integrand is by how much it would be larger if heights were lower by so many sds.
    above_log_integral
        Heights up to this above the logarithm of the integral matter.
    loosely
        Of a height beyond that, how loosely it is believed: within this share of what it should be above the limit.
    smallest_mass
        Basins whose mass is smaller than the largest one's by more than this, in the logarithm, have no bowl.
    ratios, plain
        Whether there are surrogates of log ratios to bowls, and of heights on the cube.
    per_axis, additive, quadratic
        Whether processes may have a lengthscale for each axis, be sums over the axes, and be about a quadratic.
    cliffs
        Whether heights that should be low by what the low ones say, and are far, are walls.
    inflated
        Whether the surrogate's error is multiplied by how wrong recent predictions were.
    drift, hidden_modes
        Whether the error allows for how far log Z has moved, and for modes that no descent has found.
    """

    first: int = 6
    first_an_axis: int = 2
    descents: int = 4
    lap: int = 3
    search_share: float = 0.5
    exploring_share: float = 0.2
    growth: float = 0.1
    compare_growth: float = 1.4
    drawn_share: float = 0.1
    optimism: float = 1.0
    above_log_integral: float = 14.0
    loosely: float = 0.3
    smallest_mass: float = 7.0
    ratios: bool = True
    plain: bool = True
    per_axis: bool = True
    additive: bool = True
    quadratic: bool = True
    cliffs: bool = True
    inflated: bool = True
    drift: bool = True
    hidden_modes: bool = True


DEFAULT = Settings()
