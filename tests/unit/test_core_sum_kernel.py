import itertools
import math

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, Matern

from zhat.core.gp.fit import (
    LENGTHSCALE_RANGE,
    SCALE_RANGE,
    LengthscalePrior,
    Likelihood,
    Search,
    fit,
    spread_and_centre,
)
from zhat.core.gp.kernels import Kernel, SumKernel
from zhat.core.gp.process import GaussianProcess

NUS = (0.5, 0.8, 1.5, 2.5, math.inf)
STRUCTURES = ("isotropic", "per-axis", "additive")


def additive(nu, dim=3):
    """Return a kernel for each axis, all different, and one for all of them, summed."""
    by_axis = [Kernel(nu, 0.3 + 0.2 * axis, 0.4 + 0.3 * axis, (axis,)) for axis in range(dim)]
    return SumKernel((*by_axis, Kernel(nu, tuple(0.5 + 0.1 * axis for axis in range(dim)), 0.7)))


def derivative(function, point, i, h=1e-3):
    """Return one partial derivative, to fourth order."""
    step = h * np.eye(len(point))[i]
    near, far = function(point + step) - function(point - step), function(point + 2 * step) - function(point - 2 * step)
    return (8 * near - far) / (12 * h)


def sum_of_curves(x):
    return np.sin(9.0 * x[:, 0]) + np.cos(7.0 * x[:, 1]) + 2.0 * np.abs(x[:, 2] - 0.4) ** 1.5


@pytest.mark.parametrize("nu", NUS)
def test_a_sum_is_that_of_scikit_learns_kernels_of_the_columns(nu):
    rng = np.random.default_rng(60)
    x, c = rng.random((20, 3)), rng.random((15, 3))
    kernel = additive(nu)

    def reference(part):
        lengths = np.array(part.lengthscale)
        base = RBF(lengths) if nu == math.inf else Matern(lengths, nu=nu)
        axes = [0, 1, 2] if part.axes is None else list(part.axes)
        return part.scale * base(x[:, axes], c[:, axes])

    expected = sum(reference(part) for part in kernel.parts)
    np.testing.assert_allclose(kernel.matrix(x, c), expected, rtol=1e-12)
    np.testing.assert_allclose(kernel.matrix(x, c), sum(part.matrix(x, c) for part in kernel.parts), rtol=1e-14)
    np.testing.assert_allclose(np.diag(kernel.matrix(x, x)), kernel.scale, rtol=1e-14)


@pytest.mark.parametrize("nu", NUS)
def test_a_sum_of_one_is_its_only_part(nu):
    rng = np.random.default_rng(61)
    x, c, part = rng.random((12, 2)), rng.random((9, 2)), Kernel(nu, 0.4, 1.3, (1,))
    np.testing.assert_array_equal(SumKernel((part,)).matrix(x, c), part.matrix(x, c))
    assert part.parts == (part,)
    assert SumKernel((part,)).scale == part.scale


@pytest.mark.parametrize("nu", NUS)
def test_a_sum_is_positive_semi_definite(nu):
    rng = np.random.default_rng(62)
    # With points in rows and columns, as a grid has them, a sum of kernels of one axis each is singular.
    grid = np.stack(np.meshgrid(*[np.linspace(0.0, 1.0, 4)] * 3), axis=-1).reshape(-1, 3)
    for x in (rng.random((60, 3)), grid):
        for kernel in (additive(nu), SumKernel(additive(nu).parts[:3])):
            values = np.linalg.eigvalsh(kernel.matrix(x, x))
            assert values[0] > -1e-13 * values[-1]


@pytest.mark.parametrize("axes", [(0,), (2,), (0, 2), (2, 1)])
def test_a_kernel_of_some_axes_does_not_see_the_others(axes):
    rng = np.random.default_rng(63)
    x, c, kernel = rng.random((10, 3)), rng.random((8, 3)), Kernel(1.5, 0.3, 2.0, axes)
    expected = Kernel(1.5, 0.3, 2.0).matrix(x[:, axes], c[:, axes])
    np.testing.assert_array_equal(kernel.matrix(x, c), expected)
    hidden = [axis for axis in range(3) if axis not in axes]
    x[:, hidden] = rng.random((10, len(hidden)))
    np.testing.assert_array_equal(kernel.matrix(x, c), expected)


@pytest.mark.parametrize(
    ("nu", "trend"), [*((nu, "quadratic") for nu in NUS), (1.5, "constant"), (0.8, "zero"), (math.inf, "zero")]
)
def test_the_gradient_of_the_likelihood_of_a_sum_is_that_of_finite_differences(nu, trend):
    rng = np.random.default_rng(64)
    x = rng.random((30, 3))
    y = sum_of_curves(x) + 0.3 * rng.standard_normal(30)
    shape_of_noise = rng.uniform(0.5, 2.0, 30)
    kernel = additive(nu)

    def at(logarithms):
        values = list(map(float, np.exp(logarithms)))
        by_axis = [Kernel(nu, values[2 * axis], values[2 * axis + 1], (axis,)) for axis in range(3)]
        moved = SumKernel((*by_axis, Kernel(nu, tuple(values[6:9]), values[9])))
        return GaussianProcess.condition(moved, x, y, values[10] * shape_of_noise, trend).log_likelihood()

    logarithms = [value for part in kernel.parts[:3] for value in (part.lengthscale, part.scale)]
    logarithms = np.log([*logarithms, *kernel.parts[3].lengthscale, kernel.parts[3].scale, 0.03])
    value, gradient = Likelihood(x, y, trend).value_and_gradient(kernel, 0.03 * shape_of_noise)
    assert value == pytest.approx(at(logarithms), rel=0.0, abs=1e-9)
    finite = [derivative(at, logarithms, i) for i in range(11)]
    np.testing.assert_allclose(gradient, finite, rtol=1e-7, atol=1e-7)


def test_evaluating_a_sum_leaves_no_trace():
    rng = np.random.default_rng(65)
    x, y = rng.random((20, 3)), rng.standard_normal(20)
    likelihood = Likelihood(x, y, trend="constant")
    first = likelihood.value_and_gradient(additive(1.5), 0.1)
    likelihood.value_and_gradient(Kernel(2.5, (0.1, 2.0, 0.4), 5.0), 0.4)
    likelihood.value_and_gradient(SumKernel(additive(0.5).parts[1:]), 0.2)
    again = likelihood.value_and_gradient(additive(1.5), 0.1)
    assert first[0] == again[0]
    np.testing.assert_array_equal(first[1], again[1])


@pytest.mark.parametrize(
    ("trend", "noise", "prior"),
    [("constant", 0.01, None), ("quadratic", None, LengthscalePrior(0.5, 0.7)), ("constant", None, None)],
)
@pytest.mark.parametrize("structure", STRUCTURES)
def test_the_gradient_of_the_objective_is_that_of_finite_differences(trend, structure, noise, prior):
    rng = np.random.default_rng(66)
    x = rng.random((30, 3))
    y = sum_of_curves(x) + 0.2 * rng.standard_normal(30)
    search = Search(x, y, 1.0, 2.5, noise, trend, structure, prior)
    n_parameters = {"isotropic": 2, "per-axis": 4, "additive": 4}[structure] + int(noise is None)
    # Noise that is learned comes last, and must be large enough for differences not to drown in rounding.
    point = np.log(rng.uniform(0.3, 0.9, n_parameters))
    value, gradient = search.objective(point)
    assert gradient.shape == (n_parameters,) == (len(search.bounds()),)
    finite = [derivative(lambda p: search.objective(p)[0], point, i) for i in range(n_parameters)]
    np.testing.assert_allclose(gradient, finite, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("structure", STRUCTURES)
def test_no_kernel_within_its_ranges_is_out_of_the_bounds_of_the_search(structure):
    rng = np.random.default_rng(68)
    x, y = rng.random((20, 3)), rng.standard_normal(20)
    search = Search(x, y, 1.0, 2.5, None, "constant", structure)
    low, high = np.array(search.bounds()).T
    for length, scale in itertools.product(LENGTHSCALE_RANGE, SCALE_RANGE):
        kernel = {
            "isotropic": Kernel(2.5, length, scale),
            "per-axis": Kernel(2.5, (length,) * 3, scale),
            "additive": SumKernel(tuple(Kernel(2.5, length, scale, axes) for axes in ((0,), (1,), (2,), None))),
        }[structure]
        place = search.parameters_of(kernel)
        assert np.all((place >= low - 1e-9) & (place <= high + 1e-9))
        # And it is found again there.
        assert [part.scale for part in search.unpack(place)[0].parts] == pytest.approx([p.scale for p in kernel.parts])


@pytest.mark.parametrize("structure", STRUCTURES)
def test_a_prior_adds_its_normal_density_of_every_log_lengthscale(structure):
    rng = np.random.default_rng(67)
    x, y = rng.random((20, 2)), rng.standard_normal(20)
    prior = LengthscalePrior(0.5, 0.7)
    kernel = {
        "isotropic": Kernel(1.5, 0.2, 1.0),
        "per-axis": Kernel(1.5, (0.2, 1.5), 1.0),
        "additive": SumKernel((Kernel(1.5, 0.2, 1.0, (0,)), Kernel(1.5, 0.2, 1.0, (1,)), Kernel(1.5, 1.5, 0.5))),
    }[structure]
    lengths = [0.2] if structure == "isotropic" else [0.2, 1.5]
    without = Search(x, y, 1.0, 1.5, 0.1, "zero", structure)
    with_prior = Search(x, y, 1.0, 1.5, 0.1, "zero", structure, prior)
    point = with_prior.parameters_of(kernel)
    expected = -0.5 * sum((math.log(length / 0.5) / 0.7) ** 2 for length in lengths)
    assert with_prior.log_prior(point) == pytest.approx(expected, rel=1e-12)
    difference = with_prior.objective(point)[0] - without.objective(point)[0]
    assert difference == pytest.approx(-expected, rel=1e-10)


@pytest.mark.parametrize("structure", STRUCTURES)
def test_coordinates_of_a_kernel_lead_back_to_it(structure):
    rng = np.random.default_rng(68)
    x, y = rng.random((20, 3)), rng.standard_normal(20)
    search = Search(x, y, 30.0, 1.5, 0.1, "zero", structure)
    kernel = {
        "isotropic": Kernel(1.5, 0.2, 900.0),
        "per-axis": Kernel(1.5, (0.2, 1.5, 0.7), 900.0),
        "additive": SumKernel((*(Kernel(1.5, 0.2, 500.0, (axis,)) for axis in range(3)), Kernel(1.5, 1.5, 200.0))),
    }[structure]
    back = search.rescaled(search.unpack(search.parameters_of(kernel))[0], 900.0)
    assert len(back.parts) == len(kernel.parts)
    for one, other in zip(back.parts, kernel.parts, strict=True):
        assert one.axes == other.axes
        assert one.scale == pytest.approx(other.scale, rel=1e-12)
        np.testing.assert_allclose(one.lengthscale, other.lengthscale, rtol=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_a_sum_of_curves_is_likelier_and_predicted_better_with_an_additive_kernel(seed):
    rng = np.random.default_rng(69 + seed)
    x, fresh = rng.random((60, 3)), rng.random((300, 3))
    y = sum_of_curves(x)
    spread, centre = spread_and_centre(y, "constant")
    likelihoods, errors = {}, {}
    for structure in ("isotropic", "additive"):
        search = Search(x, (y - centre) / spread, spread, 2.5, 1e-6, "constant", structure)
        found = search.run()
        gp = GaussianProcess.condition(found.kernel, x, y, 1e-6, "constant")
        # The likelihood that a search reports is that of the data as they are.
        assert found.log_likelihood == pytest.approx(gp.log_likelihood(), rel=0.0, abs=1e-5)
        likelihoods[structure] = found.log_likelihood
        errors[structure] = np.sqrt(np.mean((gp.mean(fresh) - sum_of_curves(fresh)) ** 2))
    assert likelihoods["additive"] > likelihoods["isotropic"] + 20.0
    assert errors["additive"] < 0.3 * errors["isotropic"]


def test_in_one_dimension_an_additive_kernel_is_the_isotropic_one():
    x = np.linspace(0.0, 1.0, 20)[:, None]
    y = np.sin(7.0 * x[:, 0])
    assert fit(x, y, noise=1e-6, structure="additive") == fit(x, y, noise=1e-6, structure="isotropic")


def test_a_strong_prior_holds_the_lengthscale_at_its_median():
    rng = np.random.default_rng(70)
    x = rng.random((40, 2))
    y = sum_of_curves(np.column_stack([x, x[:, 0]]))
    y = (y - np.mean(y)) / np.std(y)
    free = Search(x, y, 1.0, 2.5, 1e-4, "constant", "isotropic").run().kernel.lengthscale
    held = Search(x, y, 1.0, 2.5, 1e-4, "constant", "isotropic", LengthscalePrior(0.1, 1e-3)).run().kernel.lengthscale
    assert abs(math.log(free / 0.1)) > 0.5
    assert held == pytest.approx(0.1, rel=0.01)


@pytest.mark.parametrize("nu", NUS)
def test_a_weighted_sum_over_a_grid_is_the_matrix_times_the_weights(nu):
    rng = np.random.default_rng(66)
    # More rows than one block holds, and few coordinates on any one axis.
    x, c = rng.integers(0, 9, (700, 3)) / 8.0, rng.integers(0, 9, (300, 3)) / 8.0
    weights = rng.standard_normal(len(c))
    for kernel in (additive(nu), Kernel(nu, (0.3, 0.5, 0.2), 1.7), Kernel(nu, 0.4, 1.3, (1,))):
        expected = kernel.matrix(x, c) @ weights
        np.testing.assert_allclose(kernel.weighted_sum(x, c, weights), expected, rtol=1e-11, atol=1e-11)
