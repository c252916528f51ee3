"""The curve over λ: what holds exactly, what holds to a tolerance, and what is refused."""

import math

import numpy as np
import pytest
import scipy.stats as st
from scipy.special import erf

import zhat
from altered import altered
from energies import linear, linear_log_z, skewed_1d, skewed_2d
from zhat.core.integrate.thermodynamics import thermodynamics

OWN = 4.0


def skewed(dim):
    """A bent valley in any dimension: the squares of the first two axes, and a slope on the others."""
    if dim == 1:
        return skewed_1d
    return lambda x: skewed_2d(x) + 2.0 * np.sum(x[..., 2:], axis=-1)


def an_estimate(dim=2, method="auto", budget=48, energy=None, **more):
    energy = energy or skewed(dim)
    options = {"inverse_temperature": OWN, "seed": 1, "vectorized": True, **more}
    return zhat.estimate(energy, [(0, 1)] * dim, budget=budget, method=method, **options)


@pytest.fixture(scope="module")
def two_dimensional():
    return an_estimate(energy=skewed_2d, dim=2)


WITH_A_CURVE = ["auto", "mvs", "mvs-lmc", "mvs-exact", "mc"]


@pytest.mark.parametrize("method", WITH_A_CURVE)
def test_it_agrees_with_the_estimate_and_with_the_volume(method):
    # The wave makes it no polynomial, of which nothing but rounding would be left to compare.
    found = zhat.estimate(
        lambda x: skewed_2d(x / 3) + 0.1 * np.sin(2.0 * x[..., 0]), [(0, 3), (0, 3)], OWN, budget=40, method=method,
        seed=0, vectorized=True,
    )  # fmt: skip
    curve = found.curve([OWN, 0.0, 1.0])
    assert len(curve) == 3
    assert curve.log_z[0] == found.log_z
    assert curve.std_error[0] == found.std_error or math.isnan(found.std_error)
    assert curve.log_z[1] == found.domain.log_volume
    assert curve.std_error[1] == 0.0
    assert curve.heat_capacity[1] == 0.0
    # Right beside its own λ the curve is the same to machine precision: nothing is patched in.
    beside = found.curve([OWN * (1 + 1e-15)])
    assert beside.log_z[0] == pytest.approx(found.log_z, abs=1e-13)
    if not math.isnan(found.std_error):
        assert beside.std_error[0] == pytest.approx(found.std_error, rel=0.2)


# On a grid, and above three dimensions on a pool of points.
@pytest.mark.parametrize("dim", [1, 3, 4])
def test_it_is_convex_and_its_derivatives_are_the_energy_and_the_heat_capacity(dim):
    found = an_estimate(dim, budget=40)
    values = np.sort(np.random.default_rng(dim).uniform(0.0, 1.5 * OWN, 40))
    curve = found.curve(values)
    slopes = np.diff(curve.log_z) / np.diff(values)
    assert np.all(np.diff(slopes) >= -1e-12 / np.min(np.diff(values)))
    assert np.all(np.diff(curve.mean_energy) <= 0)
    step = 1e-3
    at = np.array([0.3, 1.0, OWN, 5.5])
    low, middle, high = (found.curve(at + shift) for shift in (-step, 0.0, step))
    assert -(high.log_z - low.log_z) / (2 * step) == pytest.approx(middle.mean_energy, abs=1e-5)
    variance = -(high.mean_energy - low.mean_energy) / (2 * step)
    assert at**2 * variance == pytest.approx(middle.heat_capacity, rel=1e-4)
    assert middle.free_energy == pytest.approx(-middle.log_z / at, rel=1e-14)
    assert middle.free_energy_error == pytest.approx(middle.std_error / at, rel=1e-14)


def test_a_number_does_not_depend_on_what_else_is_asked(two_dimensional):
    alone, among = two_dimensional.curve(1.0), two_dimensional.curve([0.01, 1.0, 6.0])
    for name in ("log_z", "std_error", "mean_energy_error", "heat_capacity"):
        # Sums over draws are added up in another order when there are more λs.
        assert getattr(alone, name)[0] == pytest.approx(getattr(among, name)[1], rel=1e-12)


def test_a_file_has_the_same_curve_to_the_bit(two_dimensional, tmp_path):
    two_dimensional.save(tmp_path / "run.json")
    again = zhat.load(tmp_path / "run.json").curve([0.0, 0.5, OWN, 6.0])
    first = two_dimensional.curve([0.0, 0.5, OWN, 6.0])
    assert again.status == first.status
    for name in set(vars(first)) - {"status"}:
        assert np.array_equal(getattr(first, name), getattr(again, name), equal_nan=True), name


def test_harmonic_oscillator():
    found = zhat.estimate(lambda x: 0.5 * x[0] ** 2, [(-12, 12)], inverse_temperature=5.0, budget=96, seed=0)
    values = np.geomspace(0.2, 7.5, 12)
    curve = found.curve(values)
    log_z = 0.5 * np.log(2 * np.pi / values) + np.log(erf(12 * np.sqrt(values / 2)))
    assert curve.log_z == pytest.approx(log_z, abs=1e-4)
    wide = values > 0.5  # where the walls of the box are out of sight
    assert curve.mean_energy[wide] == pytest.approx(0.5 / values[wide], abs=1e-4)
    assert curve.heat_capacity[wide] == pytest.approx(0.5, abs=1e-4)


# Heights up to about 3 matter at λ = 5. At 0.1 all of them do, up to 27, where few evaluations are unless asked for.
@pytest.mark.parametrize(("half_width", "own", "tolerance"), [(2.5, 5.0, 3e-3), (3.0, [0.1, 1.0, 5.0], 1e-4)])
def test_double_well(half_width, own, tolerance):
    def well(x):
        return (x[..., 0] ** 2 - 1) ** 2

    box = [(-half_width, half_width)]
    found = zhat.estimate(well, box, inverse_temperature=own, budget=128, seed=0, vectorized=True)
    values = np.geomspace(0.1, 7.5, 12)
    curve = found.curve(values)
    nodes, weights = np.polynomial.legendre.leggauss(400)
    truth = thermodynamics(well(half_width * nodes[:, None])[None, :], np.log(half_width * weights), values)
    for found_at, exact, error in (
        (curve.log_z, truth.log_z[0], curve.std_error),
        (curve.mean_energy, truth.mean[0], curve.mean_energy_error),
        (curve.heat_capacity, values**2 * truth.variance[0], curve.heat_capacity_error),
    ):
        assert found_at == pytest.approx(exact, abs=tolerance)
        assert np.all(np.abs(found_at - exact) < 4.0 * error + 1e-4)
        near = values > 1.0
        assert found_at[near] == pytest.approx(exact[near], abs=1e-3)


@pytest.mark.parametrize("dim", [1, 2, 5])
def test_linear_energies(dim):
    slopes = np.arange(1.0, dim + 1.0)
    found = zhat.estimate(linear(slopes), [(0, 1)] * dim, OWN, budget=64, seed=0, vectorized=True)
    values = np.array([0.1, 0.5, 2.0, 4.0, 6.0])
    curve = found.curve(values)
    truth = [linear_log_z(slopes, value) for value in values]
    assert curve.log_z == pytest.approx(truth, abs=0.02)
    assert np.all(np.abs(curve.log_z - truth) <= 5 * curve.std_error + 1e-9)


def test_intervals_cover():
    # A narrow pit and ripples: 24 evaluations cannot know it all. Errors that are too small fail this, and so do
    # errors that are far too large.
    def rippled(x):
        return 6 * (x[..., 0] - 0.4) ** 2 + 2 * (x[..., 1] - 0.6) ** 2 + 0.3 * np.sin(11 * x[..., 0]) * x[..., 1]

    axis = (np.arange(400) + 0.5) / 400
    grid = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
    values = np.geomspace(0.1, 10, 8)
    truth = thermodynamics(rippled(grid)[None, :], np.full(len(grid), -math.log(len(grid))), values)
    scores = []
    for seed in range(4):
        curve = an_estimate(energy=rippled, budget=24, inverse_temperature=10.0, seed=seed).curve(values)
        scores.append((curve.log_z - truth.log_z[0]) / curve.std_error)
        scores.append((curve.mean_energy - truth.mean[0]) / curve.mean_energy_error)
        scores.append((curve.heat_capacity - values**2 * truth.variance[0]) / curve.heat_capacity_error)
    assert np.mean(np.abs(scores) < 1.96) > 0.8
    assert np.mean(np.abs(scores) < 0.1) < 0.6


def test_walls_are_the_same_at_every_temperature():
    def walled(x):
        return np.where(x[..., 0] + x[..., 1] < 1.0, 2.0 * x[..., 0], np.inf)

    found = an_estimate(energy=walled, budget=80)
    curve = found.curve([0.0, 1e-6, 0.5, OWN])
    assert curve.log_z[0] == 0.0
    # Next to λ = 0 it is the volume between the walls.
    assert curve.log_z[1] == pytest.approx(math.log(0.5), abs=0.1)
    assert np.all(np.isfinite(curve.mean_energy))
    # ∫₀¹ (1 − x) e^{-x} dx = e^{-1}.
    assert curve.log_z[2] == pytest.approx(-1.0, abs=0.1)


@pytest.mark.parametrize("noise_std", [0.1, None])
def test_noise(noise_std):
    noise = np.random.default_rng(0)

    def noisy(x):
        return skewed_2d(x) + 0.1 * noise.standard_normal(len(x))

    found = an_estimate(energy=noisy, noise_std=noise_std, budget=64)
    exact = an_estimate(energy=skewed_2d, budget=64)
    curve, truth = found.curve([0.2, 1.0, OWN]), exact.curve([0.2, 1.0, OWN])
    assert np.all(curve.std_error > truth.std_error)
    assert np.all(np.abs(curve.log_z - truth.log_z) < 4 * curve.std_error + 1e-3)
    assert np.all(np.abs(curve.mean_energy - truth.mean_energy) < 4 * curve.mean_energy_error + 1e-3)


def test_energies_far_from_zero():
    def far(x):
        return 1e6 + skewed_2d(x)

    near, other = an_estimate(energy=skewed_2d), an_estimate(energy=far)
    values = np.array([0.1, 1.0, 6.0])
    assert other.curve(values).mean_energy - 1e6 == pytest.approx(near.curve(values).mean_energy, abs=2e-2)
    assert np.all(np.isfinite(other.curve(values).log_z))


@pytest.mark.parametrize(
    "given", [-1.0, [1.0, -0.1], math.nan, [math.inf], [], [[1.0, 2.0]], "1", None, ["a"], 6.1, [0.0, 100.0]]
)
def test_what_is_refused(given, two_dimensional):
    with pytest.raises(zhat.InvalidArgument, match="from 0 to 6 .*λ = 4"):
        two_dimensional.curve(given)


def test_a_lambda_out_of_range_is_named(two_dimensional):
    with pytest.raises(zhat.InvalidArgument, match="λ = 7 in inverse_temperatures"):
        two_dimensional.curve([1.0, 7.0])


@pytest.mark.parametrize("method", ["pc", "pc-mc"])
def test_methods_without_a_surrogate_say_which_have_one(method):
    with pytest.raises(zhat.InvalidArgument, match="'auto', 'mvs'"):
        an_estimate(method=method).curve([1.0])


def test_noisy_averages_are_refused():
    with pytest.raises(zhat.InvalidArgument, match="noise_std is 0.1"):
        an_estimate(method="mc", noise_std=0.1).curve([1.0])


def test_no_finite_energy():
    found = an_estimate(energy=lambda x: np.full(len(x), np.inf), method="mc", budget=16)
    with pytest.raises(zhat.EnergyError):
        found.curve([1.0])


def test_the_picture(two_dimensional, tmp_path):
    figure = two_dimensional.curve(np.geomspace(0.1, 6, 12)).plot(tmp_path / "curve.png")
    assert (tmp_path / "curve.png").stat().st_size > 10_000
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert [title.split()[0] for title in titles] == ["log", "mean", "heat"]
    assert all(axes.get_xscale() == "log" for axes in figure.axes)
    assert two_dimensional.curve([1.0, 2.0, 3.0]).plot().axes[0].get_xscale() == "linear"


def test_queries_for_several_temperatures(tmp_path):
    options = {"energy": skewed_2d, "budget": 40}
    found = an_estimate(**options, inverse_temperature=[0.5, OWN])
    alone = an_estimate(**options, inverse_temperature=OWN)
    assert found.inverse_temperature == OWN
    assert found.other_inverse_temperatures == (0.5,)
    assert not np.array_equal(found.evaluations.x, alone.evaluations.x)
    # More of them lie where only the smaller λ looks.
    high = [np.mean(OWN * (run.evaluations.y - np.min(run.evaluations.y)) > 6) for run in (found, alone)]
    assert high[0] > high[1]
    assert found.curve([0.5]).std_error[0] < alone.curve([0.5]).std_error[0]
    assert an_estimate(**options, inverse_temperature=[OWN]).log_z == alone.log_z
    found.save(tmp_path / "run.json")
    again = zhat.load(tmp_path / "run.json")
    assert again.other_inverse_temperatures == (0.5,)
    assert again.curve([1.0]).log_z[0] == found.curve([1.0]).log_z[0]


@pytest.mark.parametrize("given", [[], [1.0, -1.0], (2.0, math.nan), np.array([0.0]), ["1"]])
def test_several_temperatures_that_are_refused(given):
    with pytest.raises(zhat.InvalidArgument, match="inverse_temperature"):
        an_estimate(inverse_temperature=given)


def straying(x):
    """The log-likelihood of straight lines with outliers, below 0 where anybody looks: 24 calls cannot know it."""
    times = np.linspace(0, 10, 20)
    seen = 3.0 * np.exp(-0.4 * times) + 1.0 + 0.1 * np.sin(7.0 * times)
    return float(np.sum(st.t.logpdf(seen, 3, x[0] + x[1] * times, np.exp(x[2])))) + 40.0


WIDE = {"intercept": st.norm(0, 10), "slope": st.norm(0, 10), "log_scale": st.norm(0, 2)}


@pytest.fixture(scope="module", params=[0, 2])
def too_early(request):
    return zhat.evidence(straying, priors=WIDE, budget=24, seed=request.param)


def test_no_curve_is_impossible(too_early):
    lowest = np.min(too_early.evaluations.y)
    values = np.array([0.0, 0.01, 0.1, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5])
    curve = too_early.curve(values)
    assert lowest > 0.0
    assert np.all(curve.mean_energy >= lowest)
    # All energies are positive: log Z falls. It is convex, and minus its slope is a mean of energies.
    slopes = np.diff(curve.log_z) / np.diff(values)
    assert np.all(slopes <= -lowest + 1e-9)
    assert np.all(np.diff(slopes) >= -1e-9)
    assert curve.log_z[0] == 0.0
    assert curve.log_z[6] == too_early.log_z
    # Between what convexity and the lowest energy allow, and what the estimate itself may be off by.
    allowed = np.abs(1.0 - values) * (-too_early.log_z - lowest) + np.maximum(values, 1.0) * too_early.std_error
    assert np.all(curve.std_error <= allowed + 1e-9)


def test_a_curve_has_a_status_that_names_what_is_not_known(too_early):
    curve = too_early.curve([0.0, 0.5, 1.0])
    assert curve.known.tolist() == [True, False, False]
    assert "the estimate at λ = 1 has not converged" in curve.status
    assert "nothing is known at λ = 0.5, 1: log Z has an error above 1, or none" in curve.status
    assert "not known" in str(curve)
    assert curve.status in str(curve)


def test_an_estimate_that_the_energies_do_not_allow_has_no_curve():
    found = zhat.evidence(straying, priors=WIDE, budget=20, seed=0)
    # A log Z far above −λ times the lowest energy, as runs that stray have come to, whatever this one came to.
    found = altered(found, log_z=20.0 - float(np.min(found.evaluations.y)))
    curve = found.curve([0.0, 0.5, 1.0])
    assert not curve.known[1]
    assert math.isnan(curve.std_error[1])
    assert "log Z is larger than the lowest energy that was seen allows" in curve.status


def test_a_curve_that_is_known_says_so(two_dimensional):
    curve = two_dimensional.curve([0.0, 0.5, 1.0, OWN])
    assert two_dimensional.converged
    assert curve.status == "converged"
    assert np.all(curve.known)


def test_a_narrow_posterior_of_three_parameters_has_a_sharp_curve():
    # Between λ = 0 and 1 the integrand shrinks from the whole cube to a millionth of it.
    generator = np.random.default_rng(0)
    design = np.column_stack([np.ones(30), generator.standard_normal((30, 2))])
    seen = design @ np.array([2.0, -1.0, 0.5]) + generator.standard_normal(30)
    found = zhat.evidence(
        lambda x: float(np.sum(st.norm.logpdf(seen, design @ x, 1.0))),
        priors={name: st.norm(0, 10) for name in "abc"}, budget=160, seed=0,
    )  # fmt: skip
    values = np.array([0.01, 0.1, 0.5, 1.5])
    curve = found.curve(values)
    truth = []
    for value in values:
        precision, pull = value * design.T @ design + np.eye(3) / 100.0, value * design.T @ seen
        constant = -15.0 * value * math.log(2.0 * math.pi) - 0.5 * value * seen @ seen - 3.0 * math.log(10.0)
        truth.append(constant + 0.5 * pull @ np.linalg.solve(precision, pull) - 0.5 * np.linalg.slogdet(precision)[1])
    assert np.all(curve.std_error < 0.02)
    assert np.all(np.abs(curve.log_z - truth) < 4.0 * curve.std_error)


def test_a_curve_is_a_table(two_dimensional):
    curve = two_dimensional.curve([0.5, OWN])
    table = curve.to_dataframe()
    assert list(table["inverse_temperature"]) == [0.5, OWN]
    assert list(table["log_z"]) == curve.log_z.tolist()
    assert {"std_error", "mean_energy", "heat_capacity_error", "free_energy", "known"} <= set(table.columns)
