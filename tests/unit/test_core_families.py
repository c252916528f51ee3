"""Kernels that are no Matérn kernels: what each says of itself agrees, and a new one needs a row in a table alone."""

import dataclasses
import math

import numpy as np
import pytest

import zhat
from zhat.core.gp.families import FAMILIES, Family, smoothness
from zhat.core.gp.kernels import Kernel, correlation, correlation_and_slope


def rational_quadratic(q):
    q += 1.0
    np.reciprocal(q, out=q)


def rational_quadratic_and_slope(q, slope):
    rational_quadratic(q)
    slope[...] = 2.0 * q**2


#: A mixture of squared exponentials of many lengthscales, (1 + q/2α)^{-α} with lengths larger by √2 and α = 1.
RATIONAL_QUADRATIC = Family(
    smoothness=math.inf,
    farthest=math.inf,
    correlation=rational_quadratic,
    correlation_and_slope=rational_quadratic_and_slope,
    fourth_derivative=24.0,
)
ALL = {**FAMILIES, "rational-quadratic": RATIONAL_QUADRATIC}


@pytest.fixture
def named(monkeypatch):
    monkeypatch.setitem(FAMILIES, "rational-quadratic", RATIONAL_QUADRATIC)
    return "rational-quadratic"


@pytest.fixture(params=ALL.values(), ids=map(str, ALL))
def family(request):
    return request.param


def values(family, q):
    found = np.array(q, dtype=float)
    family.correlation(found)
    return found


def test_the_slope_is_that_of_the_correlation(family):
    q = np.linspace(0.1, 9.0, 30)
    found, slope = q.copy(), np.empty_like(q)
    family.correlation_and_slope(found, slope)
    np.testing.assert_array_equal(found, values(family, q))
    step = 1e-5
    differences = (values(family, q + step) - values(family, q - step)) / (2.0 * step)
    np.testing.assert_allclose(slope, -2.0 * differences, rtol=1e-7)
    assert values(family, [0.0]) == [1.0]


def test_the_fourth_derivative_is_that_along_a_line(family):
    # ρ(r²) = 1 − a r² + b r⁴ − c r⁶ …, of which b is a quarter of a sixth of it.
    r = np.linspace(0.0, 0.3, 40)
    coefficients = np.polynomial.Polynomial.fit(r**2, values(family, r**2), 6).convert().coef
    assert 24.0 * coefficients[2] == pytest.approx(family.fourth_derivative, rel=1e-3)


def test_a_new_kernel_is_a_row_of_the_table(named, tmp_path):
    """Fits, designs, draws, curves, certificates and files know it by its name."""
    settings = zhat.estimators.SurrogateSettings(nu=(named, 2.5))
    method = zhat.estimators.MaximumVariance(model=settings)

    def energy(x):
        return float(3.0 * (x[0] - 0.4) ** 2 + np.sin(2.0 * x[1]))

    found = zhat.estimate(
        energy, [(0, 1), (0, 1)], budget=40, method=method, seed=0, rkhs_norm=20.0, rkhs_kernel=Kernel(named, 0.5)
    )
    grid = (np.arange(400) + 0.5) / 400
    truth = math.log(np.mean(np.exp(-3.0 * (grid - 0.4) ** 2)) * np.mean(np.exp(-np.sin(2.0 * grid))))
    assert found.log_z == pytest.approx(truth, abs=1e-3)
    assert found.certificate.lower < truth < found.certificate.upper
    assert np.all(np.isfinite(found.curve([0.5, 1.0]).std_error))
    found.save(tmp_path / "run.json")
    assert zhat.load(tmp_path / "run.json").certificate == found.certificate
    with zhat.Study.create(
        tmp_path / "study.db", bounds=[(0, 1)], budget=8, method="mvs", rkhs_norm=9.0, rkhs_kernel=Kernel(named)
    ):
        pass
    with zhat.Study.open(tmp_path / "study.db") as study:
        assert study.settings.rkhs_kernel == Kernel(named)


def test_the_squared_exponential_is_one_of_them():
    q = np.linspace(0.0, 4.0, 9)
    found, slope = q.copy(), np.empty_like(q)
    correlation_and_slope(math.inf, found, slope)
    np.testing.assert_array_equal(found, np.exp(-0.5 * q))
    np.testing.assert_array_equal(slope, found)
    correlation(math.inf, q)
    np.testing.assert_array_equal(q, found)
    assert (smoothness(math.inf), smoothness(1.5)) == (math.inf, 1.5)


@pytest.mark.parametrize("given", ["matern", "", "inf"])
def test_a_name_that_is_none_is_refused(given, named):
    with pytest.raises(ValueError, match="nu is .*or math.inf, or 'rational-quadratic'"):
        Kernel(given)
    with pytest.raises(zhat.InvalidArgument, match="nu is .*math.inf, 'rational-quadratic', or a tuple"):
        zhat.estimators.SurrogateSettings(nu=given)


def test_every_part_of_a_family_must_be_given():
    assert all(field.default is dataclasses.MISSING for field in dataclasses.fields(Family))
