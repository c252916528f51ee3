import math
import re

import numpy as np
import pytest

import zhat

UNIT = [(0.0, 1.0)]
SQUARE = {"a": (-1.0, 3.0), "b": (0.0, 2.0)}


class OfKnownNorm:
    """A sum of kernels, whose norm is known."""

    def __init__(self, kernel, bounds, seed):
        rng = np.random.default_rng(seed)
        self.kernel, self.bounds = kernel, np.array(bounds, dtype=float)
        self.centres = rng.random((12, len(bounds)))
        self.weights = rng.standard_normal(12)
        self.norm = math.sqrt(self.weights @ kernel.matrix(self.centres, self.centres) @ self.weights)

    def __call__(self, x):
        unit = (x - self.bounds[:, 0]) / (self.bounds[:, 1] - self.bounds[:, 0])
        return float(self.kernel.matrix(unit[None, :], self.centres)[0] @ self.weights)

    def log_z(self, lam):
        nodes, weights = np.polynomial.legendre.leggauss(120)
        axes = [0.5 * (nodes + 1.0)] * len(self.bounds)
        points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(self.bounds))
        products = np.prod(np.stack(np.meshgrid(*[0.5 * weights] * len(self.bounds)), axis=-1), axis=-1).ravel()
        energies = self.kernel.matrix(points, self.centres) @ self.weights
        volume = np.prod(self.bounds[:, 1] - self.bounds[:, 0])
        return math.log(volume * float(products @ np.exp(-lam * energies)))


@pytest.mark.parametrize("method", ["auto", "mvs", "mvs-exact", "mc", "pc"])
def test_the_truth_and_the_estimate_are_in_it(method):
    kernel = zhat.Kernel(2.5, 0.3)
    energy = OfKnownNorm(kernel, list(SQUARE.values()), seed=1)
    found = zhat.estimate(
        energy, SQUARE, 3.0, 49, method=method, seed=0, rkhs_norm=1.2 * energy.norm, rkhs_kernel=kernel
    )
    certificate = found.certificate
    assert energy.log_z(3.0) in certificate
    assert certificate.probability == 1.0
    assert certificate.width < 2.0
    if method == "auto":
        assert found.log_z in certificate
    assert certificate.interpolant_norm <= energy.norm * (1.0 + 1e-9)


def test_it_closes_with_more_evaluations():
    kernel = zhat.Kernel(1.5, 0.3)
    energy = OfKnownNorm(kernel, UNIT, seed=2)
    widths = [
        zhat.estimate(
            energy, UNIT, 2.0, n, method="mvs", seed=0, rkhs_norm=2.0 * energy.norm, rkhs_kernel=kernel
        ).certificate.width
        for n in (8, 32, 128)
    ]
    assert widths[0] > 4.0 * widths[1] > 16.0 * widths[2]


def test_with_noise_it_holds_with_its_probability():
    kernel = zhat.Kernel(2.5, 0.3)
    energy = OfKnownNorm(kernel, UNIT, seed=3)
    truth, held, rng = energy.log_z(2.0), 0, np.random.default_rng(0)

    def noisy(x):
        return energy(x) + 0.1 * rng.standard_normal()

    for seed in range(40):
        found = zhat.estimate(noisy, UNIT, 2.0, 40, 0.1, "mvs", seed, rkhs_norm=energy.norm, rkhs_kernel=kernel)
        assert found.certificate.probability == 0.95
        held += truth in found.certificate
    assert held >= 36


def test_a_norm_below_that_of_the_data_is_refuted_with_the_number():
    kernel = zhat.Kernel(2.5, 0.3)
    energy = OfKnownNorm(kernel, UNIT, seed=4)
    found = zhat.estimate(energy, UNIT, 2.0, 40, seed=0, rkhs_norm=0.5 * energy.norm, rkhs_kernel=kernel)
    assert math.isfinite(found.log_z)
    with pytest.raises(zhat.InvalidArgument, match=r"wanted: at least .*interpolant of the data") as caught:
        _ = found.certificate
    (number,) = re.findall(r"at least ([\d.]+),", caught.value.wanted)
    assert float(number) == pytest.approx(energy.norm, abs=5e-4)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "rkhs_norm is None; wanted: a bound of the energy's norm"),
        ({"rkhs_norm": 9.0, "noise_std": 0.1}, "method is 'auto'; wanted: with noise"),
        ({"rkhs_norm": 9.0, "noise_std": None}, "noise_std is None; wanted: a known number"),
        ({"rkhs_norm": 9.0, "noise_std": lambda x: 0.1 + float(x[0]), "method": "mvs"}, "noise_std is 'one for each"),
        (
            {"rkhs_norm": 9.0, "noise_std": 0.1, "noise_kind": "likelihood", "method": "mvs"},
            "noise_kind is 'likelihood'",
        ),
        ({"rkhs_norm": 9.0, "periodic": 0}, "periodic is .*; wanted: no periodic axes"),
    ],
)
def test_what_certifies_nothing(options, message):
    found = zhat.estimate(lambda x: float(x[0]), UNIT, budget=12, seed=0, **options)
    with pytest.raises(zhat.InvalidArgument, match=message):
        _ = found.certificate


def test_a_wall_has_no_norm():
    found = zhat.estimate(lambda x: math.inf if x[0] > 0.5 else 0.0, UNIT, budget=12, seed=0, rkhs_norm=9.0)
    with pytest.raises(zhat.InvalidArgument, match=r"rkhs_norm is 9.0; wanted: no norm: energies of \+inf"):
        _ = found.certificate


@pytest.mark.parametrize("norm", [0.0, -1.0, math.nan, math.inf, "large", True])
def test_a_norm_that_is_none_is_refused_before_anything_is_spent(norm):
    spent = []
    with pytest.raises(zhat.InvalidArgument, match="rkhs_norm is .*; wanted: a finite number above 0"):
        zhat.estimate(spent.append, UNIT, rkhs_norm=norm)
    with pytest.raises(zhat.InvalidArgument, match="rkhs_kernel is 'matern'"):
        zhat.estimate(spent.append, UNIT, rkhs_norm=1.0, rkhs_kernel="matern")
    with pytest.raises(zhat.InvalidArgument, match="rkhs_norm is None"):
        zhat.estimate(spent.append, UNIT, rkhs_kernel=zhat.Kernel())
    assert not spent


def test_the_kernel_is_the_methods_own_if_it_knows_one():
    settings = zhat.estimators.SurrogateSettings(nu=1.5, lengthscale=0.4, constant_mean=False)
    method = zhat.estimators.MaximumVariance(model=settings)
    found = zhat.estimate(lambda x: 0.1 * float(x[0]), UNIT, budget=12, method=method, seed=0, rkhs_norm=5.0)
    assert found.certificate.kernel == zhat.Kernel(1.5, 0.4)
    plain = zhat.estimate(lambda x: 0.1 * float(x[0]), UNIT, budget=12, seed=0, rkhs_norm=5.0)
    assert plain.certificate.kernel == zhat.Kernel(2.5, 0.2)


@pytest.mark.parametrize("kernel", [zhat.Kernel(math.inf, 0.4), zhat.Kernel(1.5, (0.3, 0.5), 2.0)])
def test_it_is_the_same_from_a_file(kernel, tmp_path):
    energy = OfKnownNorm(kernel, list(SQUARE.values()), seed=5)
    found = zhat.estimate(energy, SQUARE, budget=20, seed=0, rkhs_norm=energy.norm, rkhs_kernel=kernel)
    found.save(tmp_path / "run.json")
    assert zhat.load(tmp_path / "run.json").certificate == found.certificate
