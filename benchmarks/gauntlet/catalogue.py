"""Which problem has which number: the number and a seed decide family, parameters, data, noise and face."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from .families import GROUPS
from .problem import Draw, Face, NoiseKnown, Problem, log_uniform

#: Share of the problems whose values are noisy, and λ times the noise's standard deviation, log-uniform.
NOISY_SHARE = 0.15
NOISE_RANGE = (0.01, 50.0)
NOISE_KINDS: tuple[NoiseKnown, ...] = ("known", "learned", "told")
#: Share of the problems of which a tenth of the evaluations fail, wherever they are.
FAILING_SHARE = 0.07
FAILING_CHANCE = 0.1
#: Share of the boxes that are put as a uniform prior instead.
BOX_AS_PRIOR = 0.25


@dataclass(frozen=True)
class Drawn:
    """A problem with its number and where it comes from."""

    seed: int
    number: int
    group: str
    family: str
    problem: Problem


def families() -> list[tuple[str, str, Draw]]:
    """Return group, name and function of every family."""
    return [(group, name, draw) for group, members in GROUPS.items() for name, draw in members.items()]


def draw(seed: int, number: int) -> Drawn:
    """Return a problem.

    Every family comes once among as many numbers as there are families, in an order that depends on the seed.
    """
    every = families()
    turn, place = divmod(number, len(every))
    order = np.random.default_rng([seed, turn, 0]).permutation(len(every))
    group, name, of_family = every[order[place]]
    generator = np.random.default_rng([seed, number, 1])
    return Drawn(seed, number, group, name, dressed(of_family(generator), generator))


def dressed(problem: Problem, generator: np.random.Generator) -> Problem:
    """Return the problem with a face, and some of them with noise or failing evaluations."""
    face = draw_face(problem, generator)
    noisy, failing = generator.random(2) < (NOISY_SHARE, FAILING_SHARE)
    kind = NOISE_KINDS[generator.integers(len(NOISE_KINDS))]
    noise_std = log_uniform(generator, *NOISE_RANGE) / problem.inverse_temperature
    return replace(
        problem,
        face=face,
        noise_known=kind if noisy else "none",
        noise_std=noise_std if noisy else 0.0,
        failing_share=FAILING_CHANCE if failing else 0.0,
    )


def draw_face(problem: Problem, generator: np.random.Generator) -> Face:
    """Return how the problem is put: an `evidence` has λ = 1, so that others are boxes."""
    as_prior, by_transform = generator.random(2) < (BOX_AS_PRIOR, 0.5)
    if problem.is_box and (problem.inverse_temperature != 1.0 or not as_prior):
        return "box"
    return "transform" if by_transform else "priors"
