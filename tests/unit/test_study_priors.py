"""Studies of evidences: a prior instead of a box, log-likelihoods instead of energies, the bits of `zhat.evidence`."""

import json
import math
import sqlite3
from pathlib import Path

import numpy as np
import pytest
import scipy.stats
from typer.testing import CliRunner

import zhat
from study_files import read, refused
from zhat.cli.main import app

PRIORS = {"mu": scipy.stats.norm(0, 5), "tau": scipy.stats.halfcauchy(scale=5)}
EFFECT = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
ERROR = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])
BUDGET = 24


def log_likelihood(x):
    mu, tau = x
    return float(scipy.stats.norm.logpdf(EFFECT, mu, np.hypot(tau, ERROR)).sum())


def transform(u):
    return np.array([5.0 * scipy.special.ndtri(u[0]), 5.0 * math.tan(0.5 * math.pi * u[1])])


def stepwise(path, **to_open):
    """Evaluate one point at a time, with the study opened anew for each."""
    while True:
        with zhat.Study.open(path, **to_open) as study:
            points = study.ask()
        if not points:
            return
        with zhat.Study.open(path) as study:
            assert study.tell(points[0].id, log_likelihood(points[0].x))


def same(study, plain):
    found = study.estimate()
    assert (found.log_z, found.std_error, found.status) == (plain.log_z, plain.std_error, plain.status)
    for name in ("x", "unit", "y", "noise_std"):
        assert getattr(found.evaluations, name).tobytes() == getattr(plain.evaluations, name).tobytes(), name


@pytest.fixture(scope="module")
def plain():
    return zhat.evidence(log_likelihood, priors=PRIORS, budget=BUDGET, seed=0)


@pytest.fixture(scope="module")
def transformed():
    return zhat.evidence(log_likelihood, transform, 2, names=["mu", "tau"], budget=BUDGET, seed=0)


def created(path, **others):
    return zhat.Study.create(path, priors=PRIORS, quantity="log_likelihood", **{"budget": BUDGET, "seed": 0, **others})


def test_a_study_with_priors_has_the_bits_of_the_evidence(tmp_path, plain):
    with created(tmp_path / "run.db") as study:
        assert study.settings.domain.names == ("mu", "tau")
        study.run(log_likelihood)
        same(study, plain)
        draws = study.estimate().sample(20, seed=1)
    np.testing.assert_array_equal(draws, plain.sample(20, seed=1))
    created(tmp_path / "steps.db").close()
    stepwise(tmp_path / "steps.db")
    with zhat.Study.open(tmp_path / "steps.db", read_only=True) as study:
        same(study, plain)


def test_a_study_with_a_transform_has_the_bits_of_the_evidence_if_it_is_given_again(tmp_path, transformed):
    path = tmp_path / "run.db"
    zhat.Study.create(
        path, prior_transform=transform, ndim=2, names=["mu", "tau"], quantity="log_likelihood", budget=BUDGET, seed=0
    ).close()
    stepwise(path, prior_transform=transform)
    with zhat.Study.open(path) as study:
        same(study, transformed)
        assert study.settings.domain.quantiles == (0, 1)
        with pytest.raises(zhat.InvalidArgument, match=r"zhat\.Study\.open\(path, prior_transform=\.\.\.\)"):
            study.estimate().sample(3)
    with zhat.Study.open(path, prior_transform=transform) as study:
        np.testing.assert_array_equal(study.estimate().sample(9, seed=0), transformed.sample(9, seed=0))
    with pytest.raises(zhat.InvalidArgument, match="this one gives other points"):
        zhat.Study.open(path, prior_transform=lambda u: 2.0 * transform(u))


def test_without_its_transform_a_study_is_told_but_not_asked(tmp_path):
    path = tmp_path / "run.db"
    with zhat.Study.create(
        path, prior_transform=transform, ndim=2, quantity="log_likelihood", budget=BUDGET, seed=0
    ) as study:
        first, second = study.ask(2)
    with zhat.Study.open(path) as study:
        study.tell(first.id, log_likelihood(first.x))
        assert [row.x.tolist() for row in study.rows] == [first.x.tolist(), second.x.tolist()]
        with pytest.raises(zhat.InvalidArgument, match=r"prior_transform is None; wanted: the one that it was made"):
            while study.ask():
                pass
        assert len(study.rows) == 2


def test_log_likelihoods_are_told_with_their_own_sign(tmp_path):
    with created(tmp_path / "run.db") as study:
        points = study.ask(5)
        for point, told in zip(points, (-3.5, (2.0, 0.25), -math.inf, math.inf, math.nan), strict=True):
            study.tell(point.id, told)
        rows = study.rows
    np.testing.assert_array_equal([row.y for row in rows], [3.5, -2.0, math.inf, math.nan, math.nan])
    assert rows[1].noise_std == 0.25
    assert "log_likelihood returned +inf, which makes the integral infinite" in rows[3].failure
    with zhat.Study.create(tmp_path / "other.db", [(0, 1)], quantity="log_likelihood", budget=4) as study:
        (point,) = study.ask()
        study.tell(point.id, -1.5)
        assert study.evaluations.y.tolist() == [1.5]


def test_which_of_the_two_is_told_must_be_said_with_a_prior(tmp_path):
    for quantity in (None, "likelihood", 1):
        with pytest.raises(zhat.InvalidArgument, match=r"quantity is .*; wanted: 'log_likelihood', or 'energy'"):
            zhat.Study.create(tmp_path / "run.db", priors=PRIORS, quantity=quantity)
    with zhat.Study.create(tmp_path / "run.db", priors=PRIORS, quantity="energy", budget=BUDGET, seed=0) as study:
        study.run(lambda x: -log_likelihood(x))
        found = study.estimate()
    assert found.log_z == zhat.evidence(log_likelihood, priors=PRIORS, budget=BUDGET, seed=0).log_z


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"bounds": [(0, 1)], "priors": PRIORS},
        {"priors": PRIORS, "prior_transform": transform, "ndim": 2},
        {"prior_transform": transform},
        {"bounds": [(0, 1)], "ndim": 1},
        {"bounds": [(0, 1)], "names": ["a"]},
        {"priors": {"k": scipy.stats.poisson(3)}},
    ],
)
def test_domains_that_are_none_or_several_are_refused(tmp_path, given):
    with pytest.raises(zhat.InvalidArgument):
        zhat.Study.create(tmp_path / "run.db", **given, quantity="log_likelihood")
    assert not (tmp_path / "run.db").exists()


def test_priors_are_kept_as_text_and_compared(tmp_path):
    path = tmp_path / "run.db"
    created(path).close()
    connection = sqlite3.connect(path)
    ((text,),) = connection.execute("SELECT value FROM meta WHERE key = 'settings'").fetchall()
    connection.close()
    document = json.loads(text)
    assert document["priors"]["mu"] == {"distribution": "norm", "arguments": ["0.0", "5.0"], "keywords": {}}
    assert document["quantity"] == "log_likelihood"
    alike = {"mu": scipy.stats.norm(loc=0, scale=5.0), "tau": scipy.stats.halfcauchy(0, 5)}
    zhat.Study.open(path, priors=alike, quantity="log_likelihood").close()
    for given, shown in (
        ({"priors": {**PRIORS, "mu": scipy.stats.norm(0, 6)}}, "priors is"),
        ({"quantity": "energy"}, 'quantity is "log_likelihood", not "energy"'),
        ({"bounds": {"mu": (0, 1), "tau": (0, 1)}}, "bounds is null, not"),
        ({"prior_transform": transform}, "parameters is null, not"),
        ({"periodic": "mu"}, 'periodic is [], not ["mu"]'),
    ):
        with pytest.raises(zhat.SettingsDiffer) as caught:
            zhat.Study.open(path, **given)
        assert shown in str(caught.value)
    with zhat.Study.open(path, budget=BUDGET + 2) as study:
        assert study.budget == BUDGET + 2


class Wedge:
    """A distribution of a user's own, with density 2 x on (0, 1)."""

    def cdf(self, x):
        return np.clip(x, 0.0, 1.0) ** 2

    def ppf(self, q):
        return np.sqrt(q)

    def support(self):
        return 0.0, 1.0


def test_distributions_of_no_known_name_are_given_again(tmp_path):
    path = tmp_path / "run.db"
    with zhat.Study.create(path, priors={"a": Wedge()}, quantity="log_likelihood", budget=8, seed=0) as study:
        (point,) = study.ask()
        study.tell(point.id, -1.0)
    with zhat.Study.open(path) as study, pytest.raises(zhat.InvalidArgument, match="prior_transform is None"):
        study.ask()
    with zhat.Study.open(path, priors={"a": Wedge()}) as study:
        study.run(lambda x: -float(x[0]))
        assert study.n_told == 8


def test_what_is_known_is_given_on_the_cube(tmp_path, plain, transformed):
    """A transform cannot be turned round; its points on the cube say the same."""
    u0, x0 = transformed.evaluations.unit[:9], transformed.evaluations.x[:9]
    logl0 = -transformed.evaluations.y[:9]
    warm = zhat.evidence(log_likelihood, transform, 2, budget=12, seed=1, u0=u0, logl0=logl0)
    assert (warm.n_given, warm.n_evaluations) == (9, 12)
    assert warm.evaluations.unit[:9].tobytes() == u0.tobytes()
    np.testing.assert_array_equal(warm.evaluations.x[:9], x0)
    np.testing.assert_array_equal(warm.evaluations.y[:9], -logl0)
    with zhat.Study.create(
        tmp_path / "run.db", prior_transform=transform, ndim=2, quantity="log_likelihood", budget=12, seed=1,
        u0=u0[:5], y0=logl0[:5],
    ) as study:  # fmt: skip
        study.add(u=u0[5:], y=logl0[5:])
        study.run(log_likelihood)
        found = study.estimate()
    assert found.log_z == warm.log_z
    # With distributions, either.
    by_x = zhat.evidence(
        log_likelihood, priors=PRIORS, budget=8, seed=1, x0=plain.evaluations.x, logl0=-plain.evaluations.y
    )
    by_u = zhat.evidence(
        log_likelihood, priors=PRIORS, budget=8, seed=1, u0=plain.evaluations.unit, logl0=-plain.evaluations.y
    )
    assert by_x.log_z == pytest.approx(by_u.log_z, abs=1e-6)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"u0": [[0.5, 0.5]]}, "logl0 is None; wanted: u0 and logl0 together"),
        ({"u0": [[0.5, 1.5]], "logl0": [0.0]}, "points of the unit cube"),
        ({"u0": [[0.5, math.nan]], "logl0": [0.0]}, "points of the unit cube"),
        ({"u0": [[0.5]], "logl0": [0.0]}, r"u0 is .*; wanted: an array of shape \(n, 2\), not \(1, 1\)"),
        ({"u0": [[0.5, 0.5]], "x0": [[0.0, 1.0]], "logl0": [0.0]}, "one of x0 and u0"),
        ({"x0": [[0.0, 1.0]], "logl0": [0.0]}, "u0=, instead of parameters: a transform cannot be turned round"),
    ],
)
def test_points_that_cannot_be_given(given, message):
    with pytest.raises(zhat.InvalidArgument, match=message):
        zhat.evidence(log_likelihood, transform, 2, budget=8, seed=0, **given)


TOML = """\
[study]
budget = 24
seed = 0
[priors]
mu = {distribution = "norm", loc = 0, scale = 5}
tau = {distribution = "halfcauchy", scale = 5.0}
[energy]
quantity = "log_likelihood"
"""


def command(*arguments):
    result = CliRunner().invoke(app, list(map(str, arguments)))
    assert result.exit_code == 0, (result.output, result.exception)
    return result.stdout


def test_a_study_file_with_priors_has_the_bits_of_the_evidence(tmp_path, plain):
    source = "import numpy as np\nimport scipy.stats\n\n\ndef log_likelihood(x):\n    mu, tau = x\n"
    source += f"    effect, error = np.array({EFFECT.tolist()}), np.array({ERROR.tolist()})\n"
    source += "    return float(scipy.stats.norm.logpdf(effect, mu, np.hypot(tau, error)).sum())\n"
    (tmp_path / "schools_model.py").write_text(source)
    path = tmp_path / "study.toml"
    path.write_text(TOML + 'function = "schools_model.py:log_likelihood"\n')
    command("run", path)
    with zhat.Study.open(tmp_path / "study.db", priors=PRIORS) as study:
        same(study, plain)
    header, *rows = command("export", path).splitlines()
    assert header.startswith("id,mu,tau,log_likelihood,std,failure")
    assert [float(row.split(",")[3]) for row in rows] == (-plain.evaluations.y).tolist()
    assert command("export", "--salvage", tmp_path / "study.db").splitlines() == [header, *rows]


def test_a_command_prints_log_likelihoods(tmp_path):
    path = tmp_path / "study.toml"
    script = 'echo "{{\\"log_likelihood\\": -$1, \\"std\\": 0.5}}"'
    path.write_text(TOML.replace("24", "6") + f"command = ['sh', '-c', '{script}', 'sh', '{{tau}}', '{{mu}}']\n")
    command("run", path)
    with zhat.Study.open(tmp_path / "study.db") as study:
        found = study.evaluations
    assert not any(found.failure), found.failure
    np.testing.assert_array_equal(found.y, found.x[:, 1])
    np.testing.assert_array_equal(found.noise_std, 0.5)


def test_log_likelihoods_come_back_from_a_lab(tmp_path):
    path = tmp_path / "study.toml"
    path.write_text(TOML)
    header, *rows = command("ask", path, "-n", 3, "--csv").splitlines()
    assert header == "id,mu,tau"
    results = tmp_path / "results.csv"
    results.write_text("id,logl,std\n1,-2.5,0.1\n2,-inf,\n3,7,\n")
    command("tell", path, results)
    with zhat.Study.open(tmp_path / "study.db") as study:
        np.testing.assert_array_equal([row.y for row in study.rows], [2.5, math.inf, -7.0])
    results.write_text("id,log_likelihood\n1,inf\n")
    refusal = CliRunner().invoke(app, ["tell", str(path), str(results)]).exception
    assert isinstance(refusal, zhat.TableError) and "or -inf where the integrand vanishes" in str(refusal)


def file_template():
    assert CliRunner().invoke(app, ["init"]).exit_code == 0
    return Path("study.toml").read_text()


def test_priors_in_a_study_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = read(tmp_path, TOML)
    assert found.bounds is None and found.energy is None and found.quantity == "log_likelihood"
    assert list(found.priors) == ["mu", "tau"]
    assert found.priors["tau"].ppf(0.25) == PRIORS["tau"].ppf(0.25)
    shown = "\n".join(line[6:] for line in file_template().splitlines() if line.startswith("#     "))
    example = read(tmp_path, f'[study]\nbudget = 9\n{shown}\n[energy]\nquantity = "log_likelihood"\n')
    assert list(example.priors) == ["mu", "tau"]


@pytest.mark.parametrize(
    ("old", "new", "line", "key", "wanted"),
    [
        ('"norm"', '"normal"', 5, "priors.mu", "a continuous distribution of scipy.stats, .* (did you mean"),
        ('"norm"', '"poisson"', 5, "priors.mu", "a continuous distribution of scipy.stats"),
        ("loc = 0, ", "centre = 0, ", 5, "priors.mu", "parameters of norm, 'loc', 'scale'; 'centre' is none"),
        ("scale = 5}", "scale = -5}", 5, "priors.mu", "are its parameters allowed?"),
        ("scale = 5}", "scale = true}", 5, "priors.mu", "a number as scale"),
        ("scale = 5}", "scale = nan}", 5, "priors.mu", "a number as scale"),
        ('"halfcauchy"', '"gamma"', 6, "priors.tau", "all parameters of gamma but loc and scale, .*: also 'a'"),
        ('{distribution = "norm", loc = 0, scale = 5}', "[0, 5]", 5, "priors.mu", "a distribution of SciPy's"),
        ('quantity = "log_likelihood"\n', "", 7, "energy.quantity", "one of 'energy', 'log_likelihood'"),
        ('"log_likelihood"', '"likelihood"', 8, "energy.quantity", "one of 'energy', 'log_likelihood'"),
        ("[energy]", "[bounds]\nx = [0, 1]\n[energy]", 4, "priors", "one of them"),
    ],
)
def test_priors_that_cannot_be_used_are_refused_with_their_line(tmp_path, old, new, line, key, wanted):
    assert old in TOML
    error = refused(tmp_path, TOML.replace(old, new, 1))
    assert (error.line, error.key) == (line, key)
    parts = wanted.split(".*")
    assert all(part in error.wanted for part in parts), error.wanted


def test_studies_of_before_there_were_priors_are_opened(tmp_path):
    path = tmp_path / "run.db"
    with zhat.Study.create(path, {"a": (0.0, 1.0)}, budget=10, method="mc", seed=0) as study:
        (point,) = study.ask()
        study.tell(point.id, 1.5)
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 1")
    connection.close()
    with zhat.Study.open(path, bounds={"a": (0.0, 1.0)}) as study:
        assert study.evaluations.y.tolist() == [1.5]
