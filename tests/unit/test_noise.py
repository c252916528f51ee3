import json
import math
import re

import numpy as np
import pytest

import zhat
from zhat.core.arrays import FloatArray
from zhat.core.gp.fit import learned_noise
from zhat.estimators.settings import Settings
from zhat.result.estimate import conclude

UNIT = [(0.0, 1.0)]
SQUARE = [(-1.0, 1.0), (0.0, 2.0)]
METHODS = ("auto", "mvs", "mvs-exact", "mvs-lmc", "mc", "pc", "pc-mc")


def bowl(x: FloatArray) -> float:
    return float(4.0 * np.sum((x - 0.3) ** 2))


def uneven(x: FloatArray) -> float:
    return 0.05 + 0.2 * abs(float(x[0]))


def noisy(std, seed=0, shift=0.0):
    """Return the bowl with noise of its own stream."""
    rng = np.random.default_rng(seed)

    def energy(x):
        sd = std(x) if callable(std) else std
        return bowl(x) + sd * rng.standard_normal() + shift * sd**2

    return energy


def test_a_function_and_pairs_tell_the_same_noise():
    by_function = zhat.estimate(noisy(uneven), SQUARE, budget=24, noise_std=uneven, seed=1)
    plain = noisy(uneven)
    by_pairs = zhat.estimate(lambda x: (plain(x), uneven(x)), SQUARE, budget=24, seed=1)
    assert by_function.log_z == by_pairs.log_z
    np.testing.assert_array_equal(by_function.evaluations.noise_std, by_pairs.evaluations.noise_std)
    expected = [uneven(x) for x in by_pairs.evaluations.x]
    np.testing.assert_array_equal(by_pairs.evaluations.noise_std, expected)


def test_vectorised_pairs_are_two_arrays():
    def many(x):
        return np.sum(x**2, axis=1), 0.1 + x[:, 0] ** 2

    result = zhat.estimate(many, SQUARE, budget=24, seed=1, vectorized=True)
    np.testing.assert_allclose(result.evaluations.noise_std, 0.1 + result.evaluations.x[:, 0] ** 2)
    function = zhat.estimate(
        lambda x: many(x)[0], SQUARE, budget=24, seed=1, vectorized=True, noise_std=lambda x: many(x)[1]
    )
    assert function.log_z == result.log_z


@pytest.mark.parametrize("method", METHODS)
def test_one_noise_told_with_every_value_is_that_noise_told_once(method):
    once = zhat.estimate(noisy(0.2), SQUARE, 2.0, 32, noise_std=0.2, method=method, seed=3)
    energy = noisy(0.2)
    each = zhat.estimate(lambda x: (energy(x), 0.2), SQUARE, 2.0, 32, method=method, seed=3)
    assert each.log_z == pytest.approx(once.log_z, abs=1e-9)
    assert each.std_error == pytest.approx(once.std_error, rel=1e-6, nan_ok=True)


@pytest.mark.parametrize("method", METHODS)
def test_the_two_kinds_differ_by_what_the_shift_is(method):
    lam, std = 2.0, 0.3
    known = {
        kind: zhat.estimate(noisy(std), SQUARE, lam, 32, noise_std=std, method=method, seed=3, noise_kind=kind)
        for kind in ("energy", "likelihood")
    }
    difference = known["likelihood"].log_z - known["energy"].log_z
    # To the accuracy of the quadrature, whose grid depends on where the surface lies.
    assert difference == pytest.approx(0.5 * (lam * std) ** 2, abs=1e-6)
    assert known["likelihood"].std_error == pytest.approx(known["energy"].std_error, rel=1e-3, nan_ok=True)


@pytest.mark.parametrize("method", ["auto", "mvs"])
def test_a_learned_shift_moves_log_z(method):
    lam, std = 3.0, 0.3
    energy = zhat.estimate(noisy(std), SQUARE, lam, 64, noise_std=None, method=method, seed=3)
    # The same facts, taken otherwise: in two runs rounding may decide about points, and then their facts differ.
    other = Settings.of(SQUARE, lam, 64, None, method, 3, noise_kind="likelihood")
    likelihood = conclude(other, energy.evaluations, 0)
    learned = float(energy.diagnostics["noise_std"])
    assert likelihood.log_z - energy.log_z == pytest.approx(0.5 * (lam * learned) ** 2, rel=1e-3)


def test_a_learned_shift_has_an_error_of_its_own():
    errors = {
        std: zhat.estimate(noisy(0.3), SQUARE, 3.0, 64, noise_std=std, seed=3, noise_kind="likelihood")
        for std in (None, 0.3)
    }
    # Of a variance 0.09 from half of 64 values, times λ²/2.
    assert errors[None].diagnostics["noise_error"] == pytest.approx(0.5 * 9.0 * 0.09 * math.sqrt(2.0 / 32.0), rel=0.5)
    assert errors[None].std_error > errors[None].diagnostics["noise_error"]
    assert errors[0.3].diagnostics["noise_error"] == 0.0


@pytest.mark.parametrize("method", ["mvs-exact", "mvs-lmc"])
def test_large_noise_is_smoothed_and_said_so(method):
    loud = zhat.estimate(noisy(0.5), SQUARE, 4.0, 40, noise_std=0.5, method=method, seed=3)
    assert "λσ = 2 is large: the estimate is the smoothed surrogate's" in loud.status
    quiet = zhat.estimate(noisy(0.1), SQUARE, 4.0, 40, noise_std=0.1, method=method, seed=3)
    assert "smoothed" not in quiet.status


def test_outliers_are_named():
    energy = noisy(0.1)
    count = iter(range(100))

    def glitchy(x):
        return energy(x) + (4.0 if next(count) in (7, 25) else 0.0)

    result = zhat.estimate(glitchy, SQUARE, budget=48, noise_std=0.1, seed=3)
    assert re.search(r"evaluations 7 \(by [\d.]+ sds\), 25 \(by [\d.]+ sds\) do not fit with the others", result.status)


def test_honest_noise_has_no_outliers():
    for seed in range(6):
        result = zhat.estimate(noisy(0.2, seed), SQUARE, 2.0, budget=40, noise_std=0.2, seed=seed)
        assert "outliers" not in result.status


def test_auto_says_that_large_noise_is_smoothed():
    assert "λσ = 2 is large" in zhat.estimate(noisy(0.5), SQUARE, 4.0, 24, noise_std=0.5, seed=0).status
    assert "λσ" not in zhat.estimate(noisy(0.1), SQUARE, 4.0, 24, noise_std=0.1, seed=0).status


def test_repeated_queries_are_averaged():
    rng = np.random.default_rng(5)
    x0 = np.repeat(rng.uniform(0.0, 1.0, (12, 1)), 10, axis=0)
    y0 = np.array([bowl(x) for x in x0]) + 0.3 * rng.standard_normal(len(x0))
    energy = noisy(0.3)
    result = zhat.estimate(energy, UNIT, budget=4, noise_std=0.3, seed=0, x0=x0, y0=y0)
    truth = math.log(0.5 * math.sqrt(math.pi / 4.0) * (math.erf(1.4) + math.erf(0.6)))
    assert abs(result.log_z - truth) < 4.0 * result.std_error
    # 124 values of sd 0.3: about 0.03, not the 0.09 of twelve values.
    assert result.std_error < 0.06


def test_exact_values_may_be_repeated_too():
    x0 = np.tile(np.linspace(0.0, 1.0, 9)[:, None], (3, 1))
    result = zhat.estimate(bowl, UNIT, budget=8, seed=0, x0=x0, y0=[bowl(x) for x in x0])
    truth = math.log(0.5 * math.sqrt(math.pi / 4.0) * (math.erf(1.4) + math.erf(0.6)))
    assert result.log_z == pytest.approx(truth, abs=1e-3)


@pytest.mark.parametrize(
    ("noise_std", "message"),
    [
        (lambda x: -0.1, "a standard deviation that is -0.1"),
        (lambda x: math.nan, "a standard deviation that is nan"),
        (lambda x: np.array([0.1, 0.2]), r"a standard deviation that is an array of shape \(2,\)"),
        (lambda x: "loud", "a standard deviation that is 'loud'"),
        (lambda x: 1 / 0, "it raised ZeroDivisionError"),
    ],
)
def test_a_noise_function_that_is_none_is_refused_before_anything_is_spent(noise_std, message):
    spent = []
    with pytest.raises(zhat.InvalidArgument, match=f"noise_std is .*{message}"):
        zhat.estimate(spent.append, UNIT, noise_std=noise_std)
    assert not spent


def test_a_vectorised_noise_function_of_the_wrong_shape():
    with pytest.raises(zhat.InvalidArgument, match=r"noise_std is .* shape \(3,\); wanted: shape \(1,\)"):
        zhat.estimate(lambda x: x[:, 0], UNIT, noise_std=lambda x: np.ones(3), vectorized=True)


def test_a_noise_function_that_fails_somewhere_is_a_failed_evaluation_there():
    result = zhat.estimate(bowl, UNIT, budget=32, seed=0, method="mvs", noise_std=lambda x: 0.1 if x[0] < 0.8 else -1.0)
    failed = np.array(result.evaluations.failure) != ""
    np.testing.assert_array_equal(failed, result.evaluations.x[:, 0] >= 0.8)
    assert 0 < result.evaluations.n_failed < 16
    assert (
        "but of noise_std it returned a standard deviation that is -1.0"
        in result.evaluations.failure[np.argmax(failed)]
    )
    assert "evaluations failed" in result.status


def sometimes_told(std, told, seed=0):
    """Return the noisy bowl that tells its noise with every value whose number ``told`` is true of."""
    energy, count = noisy(std, seed), iter(range(1000))
    return lambda x: (energy(x), std) if told(next(count)) else energy(x)


@pytest.mark.parametrize("method", METHODS)
def test_noise_that_is_declared_is_for_values_that_were_told_none(method):
    declared = zhat.estimate(noisy(0.2), SQUARE, 2.0, 32, noise_std=0.2, method=method, seed=3)
    mixed = sometimes_told(0.2, lambda number: number % 3 == 2)
    some = zhat.estimate(mixed, SQUARE, 2.0, 32, noise_std=0.2, method=method, seed=3)
    assert some.evaluations.n_failed == 0
    np.testing.assert_array_equal(np.isnan(some.evaluations.noise_std), np.arange(len(some.evaluations)) % 3 != 2)
    assert some.log_z == pytest.approx(declared.log_z, abs=1e-9)
    assert some.std_error == pytest.approx(declared.std_error, rel=1e-6, nan_ok=True)


def test_one_value_with_its_noise_leaves_those_before_as_they_are(tmp_path):
    with zhat.Study.create(tmp_path / "run.db", SQUARE, budget=32, seed=0) as study:
        for point in study.ask(7):
            study.tell(point.id, bowl(point.x))
        (last,) = study.ask(1)
        study.tell(last.id, (bowl(last.x), 0.1))
        facts, result = study.evaluations, study.estimate()
    assert facts.n_failed == 0
    np.testing.assert_array_equal(facts.y, [bowl(x) for x in facts.x])
    assert np.sum(np.isnan(facts.noise_std)) == 7
    assert math.isfinite(result.log_z)
    assert "failed" not in result.status


def test_noise_is_learned_for_values_that_were_told_none():
    x = np.random.default_rng(1).random((120, 1))
    loud = np.arange(120) % 2 == 0
    noise = np.random.default_rng(2).standard_normal(120) * np.where(loud, 0.3, 0.02)
    y = np.sin(5.0 * x[:, 0]) + noise
    variance = learned_noise(x, y, np.where(loud, np.nan, 0.02**2))
    assert math.sqrt(variance) == pytest.approx(0.3, rel=0.25)
    # Without what is known of the others it is a mean over all.
    assert math.sqrt(learned_noise(x, y)) == pytest.approx(0.3 / math.sqrt(2.0), rel=0.25)


@pytest.mark.parametrize("method", ["auto", "mvs", "mvs-exact"])
@pytest.mark.parametrize("kind", ["energy", "likelihood"])
def test_noise_is_told_for_some_and_learned_for_others(method, kind):
    shift = 0.0 if kind == "energy" else 0.5 * 2.0
    energy, count = noisy(0.3, shift=shift), iter(range(100))

    def some(x):
        return (energy(x), 0.3) if next(count) % 2 else energy(x)

    result = zhat.estimate(some, UNIT, 2.0, 48, noise_std=None, method=method, seed=3, noise_kind=kind)
    assert result.evaluations.n_failed == 0
    truth = math.log(0.5 * math.sqrt(math.pi / 8.0) * (math.erf(0.7 * math.sqrt(8.0)) + math.erf(0.3 * math.sqrt(8.0))))
    assert abs(result.log_z - truth) < 4.0 * result.std_error
    assert float(result.diagnostics["noise_std"]) == pytest.approx(0.3, rel=0.5)


def test_infinite_energies_need_no_noise():
    def walled(x):
        return math.inf if x[0] > 0.6 else (bowl(x), 0.01)

    result = zhat.estimate(walled, UNIT, budget=40, seed=0)
    assert result.evaluations.n_failed == 0
    truth = math.log(0.5 * math.sqrt(math.pi / 4.0) * 2.0 * math.erf(0.6))
    assert abs(result.log_z - truth) < 4.0 * result.std_error


@pytest.mark.parametrize(
    "pair", [(1.0, -0.1), (1.0, math.nan), (1.0, "much"), (1.0, None), ("one", 0.1), (1.0, [0.1, 0.2])]
)
def test_a_pair_that_is_none_is_a_failed_evaluation(pair):
    result = zhat.estimate(lambda x: pair if x[0] > 0.5 else (bowl(x), 0.1), UNIT, budget=20, seed=0, method="mvs")
    failed = np.array(result.evaluations.failure) != ""
    np.testing.assert_array_equal(failed, result.evaluations.x[:, 0] > 0.5)


def test_an_unknown_kind_of_noise():
    with pytest.raises(zhat.InvalidArgument, match="noise_kind is 'loud'; wanted: 'energy' or 'likelihood'"):
        zhat.estimate(bowl, UNIT, noise_kind="loud")


def test_what_was_told_of_the_noise_is_saved(tmp_path):
    energy = noisy(uneven)
    result = zhat.estimate(lambda x: (energy(x), uneven(x)), SQUARE, 2.0, 24, seed=1, noise_kind="likelihood")
    result.save(tmp_path / "run.json")
    again = zhat.load(tmp_path / "run.json")
    np.testing.assert_array_equal(again.evaluations.noise_std, result.evaluations.noise_std)
    assert again.noise_kind == "likelihood"
    np.testing.assert_array_equal(again.sample(5, seed=1), result.sample(5, seed=1))


def test_a_file_of_version_1_is_read(tmp_path):
    result = zhat.estimate(bowl, UNIT, budget=12, seed=1)
    result.save(tmp_path / "run.json")
    document = json.loads((tmp_path / "run.json").read_text())
    document["version"] = 1
    for key in ("noise_kind", "n_given"):
        del document[key]
    del document["evaluations"]["noise_std"]
    (tmp_path / "old.json").write_text(json.dumps(document))
    again = zhat.load(tmp_path / "old.json")
    assert np.all(np.isnan(again.evaluations.noise_std))
    assert (again.log_z, again.noise_kind, again.n_given) == (result.log_z, "energy", 0)
