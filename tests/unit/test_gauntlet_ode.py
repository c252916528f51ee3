"""The gauntlet's evidences of ordinary differential equations: their trajectories and their priors."""

import math

import numpy as np
import pytest
from benchmarks.gauntlet.families import integrators, ode, simulated
from benchmarks.gauntlet.problem import log_uniform
from scipy import stats
from scipy.integrate import solve_ivp


def simulation(name, seed):
    generator = np.random.default_rng(seed)
    return simulated.simulate(ode.MODELS[name](generator), generator)


def oral(truth, seed, n_seen):
    absorption, clearance, plasma, exchange, tissue, absorbed, _ = truth

    def slopes(t, y):
        flow = exchange * (y[1] / plasma - y[2] / tissue)
        return [-absorption * y[0], absorption * y[0] - clearance * y[1] / plasma - flow, flow]

    return [100.0 * absorbed, 0.0, 0.0], slopes, lambda y: np.log(y[1] / plasma)


def saturable(truth, seed, n_seen):
    absorption, highest, half, clearance, volume = truth[:5]

    def slopes(t, y):
        # In amounts, where the family has concentrations.
        level = y[1] / volume
        return [-absorption * y[0], absorption * y[0] - highest * level / (half + level) - clearance * level]

    return [100.0, 0.0], slopes, lambda y: y[1] / volume


def epidemic(truth, seed, n_seen):
    contagion, onset, recovery, infectious, reported, strength, day = truth[:7]
    generator = np.random.default_rng(seed)
    people = log_uniform(generator, 1e3, 2e4) if generator.random() < 0.5 else log_uniform(generator, 1e4, 1e6)

    def slopes(t, y):
        rate = contagion * math.exp(-0.5 * strength * (1.0 + math.tanh((t - day) / 6.0)))
        new = rate * y[0] * y[2] / people
        return [-new, new - onset * y[1], onset * y[1] - recovery * y[2], onset * y[1]]

    start = [people * (1.0 - infectious), 0.0, people * infectious, 0.0]
    return start, slopes, lambda y: reported * np.diff(y[3], prepend=0.0)


def enzyme(truth, seed, n_seen):
    highest, half, competitive, uncompetitive, product, decay, background, _ = truth
    generator = np.random.default_rng(seed)
    n_vessels = int(generator.integers(2, 5))
    substrate = np.exp(generator.uniform(np.log(0.5), np.log(8.0), (n_vessels, 1)))[:, 0]
    inhibitor = np.exp(generator.uniform(np.log(0.2), np.log(4.0), (n_vessels, 1)))[:, 0]
    inhibitor[0] = 0.0

    def slopes(t, y):
        held = half * (1.0 + inhibitor / competitive + y / product)
        left = substrate - y
        return highest * math.exp(-decay * t) * left / (held + left * (1.0 + inhibitor / uncompetitive))

    return np.zeros(n_vessels), slopes, lambda y: (y + background).ravel()


def nerve(truth, seed, n_seen):
    a, b, c, voltage, recovery, _ = truth

    def slopes(t, y):
        return [c * (y[0] - y[0] ** 3 / 3.0 + y[1]), -(y[0] - a + b * y[1]) / c]

    return [voltage, recovery], slopes, lambda y: y.ravel()[:n_seen]


def goodwin(truth, seed, n_seen):
    reading, first_decay, second_made, second_decay, third_made, third_decay, steepness, first, third, _ = truth

    def slopes(t, y):
        return [
            reading / (1.0 + y[2] ** steepness) - first_decay * y[0],
            second_made * y[0] - second_decay * y[1],
            third_made * y[1] - third_decay * y[2],
        ]

    return [first, first, third], slopes, lambda y: y[[0, 2]].ravel()


def pendulum(truth, seed, n_seen):
    damping, square, force, driving, angle, speed, _ = truth

    def slopes(t, y):
        return [y[1], force * math.cos(driving * t) - damping * y[1] - square * math.sin(y[0])]

    return [angle, speed], slopes, lambda y: y[0]


def predators(truth, seed, n_seen):
    births, kills, deaths, gains, prey, hunters, _ = truth

    def slopes(t, y):
        return [births * y[0] - kills * y[0] * y[1], gains * y[0] * y[1] - deaths * y[1]]

    return [prey, hunters], slopes, lambda y: np.log(y).ravel()[:n_seen]


#: The equations of every family once more, in their usual form: start, slopes, and what is seen of states.
ORACLES = {
    "two-compartment pharmacokinetics": oral,
    "saturable elimination": saturable,
    "SEIR epidemic": epidemic,
    "enzyme inhibition": enzyme,
    "FitzHugh-Nagumo": nerve,
    "Goodwin oscillator": goodwin,
    "driven pendulum": pendulum,
    "Lotka-Volterra": predators,
}


def oracle_distribution(name, truth, seen):
    if name == "saturable elimination":
        return stats.norm(seen, np.hypot(truth[5] * seen, truth[6]))
    if name != "SEIR epidemic":
        return stats.norm(seen, truth[-1])
    if len(truth) == 7:
        return stats.poisson(seen)
    return stats.nbinom(truth[-1], truth[-1] / (truth[-1] + seen))


@pytest.mark.parametrize("seed", [0, 1, 2, 3])
@pytest.mark.parametrize("name", list(ode.MODELS))
def test_trajectories_and_energies_are_those_of_a_solver_with_tight_tolerances(name, seed):
    """All eight families, four draws each: the equations are written out again above, in other variables."""
    drawn = simulation(name, seed)
    predicted = drawn.model.predictions(drawn.truth[:, None])[:, 0]
    start, slopes, seen = ORACLES[name](drawn.truth, seed, len(predicted))
    times = drawn.model.times
    solved = solve_ivp(slopes, (0.0, times[-1]), start, "DOP853", t_eval=times, rtol=1e-10, atol=1e-12)
    distribution = oracle_distribution(name, drawn.truth, seen(solved.y))
    assert (np.abs(predicted - seen(solved.y)) / distribution.std()).max() <= 1e-3
    logs = distribution.logpmf if name == "SEIR epidemic" else distribution.logpdf
    energy = drawn.energy(drawn.true_point[None, :])[0]
    assert energy == pytest.approx(-logs(drawn.data[:, 0]).sum(), abs=1e-2)


def test_most_of_the_prior_can_be_simulated_and_the_true_values_are_the_mode():
    for draw in ode.FAMILIES.values():
        for seed in range(3):
            problem = draw(np.random.default_rng(seed))
            assert 3 <= problem.dim <= 9 and problem.modes.shape == (1, problem.dim)
            x = problem.from_unit(np.random.default_rng(99).random((300, problem.dim)))
            assert np.isfinite(problem.energy(x)).mean() > 0.5
            assert np.isfinite(problem.energy(problem.modes)).all()


def test_true_values_have_density_and_all_styles_of_priors_come():
    problems = [ode.FAMILIES["Lotka-Volterra"](np.random.default_rng(seed)) for seed in range(40)]
    for problem in problems:
        assert all(prior.pdf(value) > 0.0 for prior, value in zip(problem.priors, problem.modes[0], strict=True))
    assert {problem.is_box for problem in problems} == {True, False}
    names = {prior.dist.name for problem in problems for prior in problem.priors}
    assert names == {"uniform", "norm", "lognorm", "expon", "halfnorm"}
    assert len({problem.dim for problem in problems}) >= 4


def test_the_rule_of_integration_has_order_four():
    """Against e^{-t}, whose error falls to a sixteenth when steps are halved."""

    def decay(time, state, coefficients, out):
        np.multiply(state, -coefficients, out=out)

    times, rates = np.array([0.3, 1.0, 2.0]), np.array([[1.0, 0.5]])
    errors = []
    for step in (0.1, 0.05):
        states = integrators.runge_kutta(decay, np.ones((1, 2)), rates, times, step)
        errors.append(np.abs(states[:, 0] - np.exp(-np.outer(times, rates))).max())
    assert errors[0] < 1e-6
    assert errors[0] / errors[1] == pytest.approx(16.0, rel=0.1)
