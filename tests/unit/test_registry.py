"""Methods that texts lead to: an import path or an entry point, in runs, studies, study files and saved estimates."""

import importlib.metadata
import sys
import textwrap

import pytest
from typer.testing import CliRunner

import zhat
from zhat.cli.main import app
from zhat.estimators.registry import METHODS, registered, text_of

BOX = [(-2.0, 2.0), (0.0, 10.0)]
MODULE = """
    from dataclasses import dataclass
    from zhat.estimators import MonteCarlo

    @dataclass(frozen=True)
    class Halves(MonteCarlo):
        name: str = "halves"
        share: float = 0.5

        def ask(self, task, facts, pending, n):
            return self.share * super().ask(task, facts, pending, n)

    QUARTERS = Halves(share=0.25)
    NO_METHOD = 7
"""


def energy(x):
    return float(x[0] ** 2 + x[1])


@pytest.fixture
def module(tmp_path, monkeypatch):
    """Return the name of a module with two methods, which can be imported while the test lasts."""
    (tmp_path / "own_methods.py").write_text(textwrap.dedent(MODULE))
    monkeypatch.syspath_prepend(tmp_path)
    yield "own_methods"
    sys.modules.pop("own_methods", None)


@pytest.mark.parametrize(("attribute", "share"), [("Halves", 0.5), ("QUARTERS", 0.25)])
def test_a_study_keeps_an_import_path_and_finds_the_method_again(module, tmp_path, attribute, share):
    path, method = tmp_path / "run.db", f"{module}:{attribute}"
    with zhat.Study.create(path, BOX, budget=8, seed=0, method=method) as study:
        for point in study.ask(4):
            study.tell(point.id, energy(point.x))
    del sys.modules[module]
    with zhat.Study.open(path) as study:
        for point in study.ask(4):
            study.tell(point.id, energy(point.x))
        found = study.estimate()
    whole = zhat.estimate(energy, BOX, budget=8, seed=0, method=method)
    assert found.evaluations.unit.tolist() == whole.evaluations.unit.tolist()
    assert found.log_z == whole.log_z
    assert found.evaluations.unit.max() < share
    with pytest.raises(zhat.SettingsDiffer, match="method is"):
        zhat.Study.open(path, method="mc")


def test_an_estimator_is_kept_if_a_text_leads_to_one_that_is_equal(module, tmp_path):
    halves = zhat.estimators.named(f"{module}:Halves")
    assert text_of(halves) == f"{module}:Halves"
    with zhat.Study.create(tmp_path / "run.db", BOX, budget=8, method=halves) as study:
        assert study.settings.estimator == halves
    assert all(text_of(estimator) == name for name, estimator in METHODS.items())
    # With settings of its own there is no text that says so.
    with pytest.raises(zhat.InvalidArgument, match="a text that leads to it"):
        zhat.Study.create(tmp_path / "other.db", BOX, method=type(halves)(share=0.75))


@pytest.mark.parametrize(
    ("method", "message"),
    [
        ("no_such_module:Method", "ModuleNotFoundError"),
        ("own_methods:NoSuch", "AttributeError"),
        ("own_methods:NO_METHOD", "an object with name, check, ask and estimate"),
        ("own_methods:dataclass.nothing", "AttributeError"),
        ("halves", "one of 'auto', 'mc'"),
    ],
)
def test_a_text_that_leads_nowhere_says_so(module, method, message):
    with pytest.raises(zhat.InvalidArgument, match=message):
        zhat.estimate(energy, BOX, budget=8, method=method)


def test_an_entry_point_has_a_name(module, tmp_path, monkeypatch):
    entry = importlib.metadata.EntryPoint("quarters", f"{module}:QUARTERS", "zhat.estimators")

    def entry_points(group, **wanted):
        return [entry] if group == entry.group and wanted.get("name", entry.name) == entry.name else []

    monkeypatch.setattr("zhat.estimators.registry.entry_points", entry_points)
    assert registered() == ("quarters",)
    with zhat.Study.create(tmp_path / "run.db", BOX, budget=8, seed=0, method="quarters") as study:
        assert study.settings.estimator == zhat.estimators.named(f"{module}:QUARTERS")
        assert study.ask(1)


def test_a_study_file_names_a_method_beside_it(tmp_path):
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    (folder / "own_methods_beside.py").write_text(textwrap.dedent(MODULE))
    (folder / "f.py").write_text("def f(x):\n    return float(x[0] ** 2)\n")
    (folder / "study.toml").write_text(
        '[study]\nbudget = 8\nseed = 0\nmethod = "own_methods_beside:Halves"\n[bounds]\na = [0, 1]\n'
        '[energy]\nfunction = "f.py:f"\n'
    )
    done = CliRunner().invoke(app, ["run", str(folder / "study.toml")])
    assert done.exit_code == 0, done.output
    assert "halves" in done.output
    assert "8 of 8" in done.output


def test_an_estimate_whose_method_is_gone_can_still_be_read(module, tmp_path, monkeypatch):
    found = zhat.estimate(energy, BOX, budget=8, seed=0, method=f"{module}:Halves")
    found.save(tmp_path / "run.json")
    again = zhat.load(tmp_path / "run.json")
    assert (again.log_z, again.method, again.summary()) == (found.log_z, "halves", found.summary())
    with pytest.raises(zhat.InvalidArgument, match="'halves'.*a surrogate to draw from"):
        again.sample(3)
    with pytest.raises(zhat.InvalidArgument, match="'halves'.*it is not there"):
        again.estimator.estimate(again.task, again.evaluations)


def test_reading_an_estimate_imports_nothing_that_it_names(tmp_path, monkeypatch):
    (tmp_path / "never_imported.py").write_text("raise SystemExit('imported')")
    monkeypatch.syspath_prepend(tmp_path)
    found = zhat.estimate(energy, BOX, budget=8, seed=0, method="mc")
    found.save(tmp_path / "run.json")
    text = (tmp_path / "run.json").read_text()
    (tmp_path / "run.json").write_text(text.replace('"method": "mc"', '"method": "never_imported:Method"'))
    assert zhat.load(tmp_path / "run.json").method == "never_imported:Method"
    assert "never_imported" not in sys.modules
