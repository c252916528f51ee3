"""Which seeds the gauntlet refuses, in a repository that is made for it."""

import subprocess

import pytest
from benchmarks.gauntlet import __main__ as command
from benchmarks.gauntlet import discipline
from benchmarks.gauntlet.conduct import Ledger
from benchmarks.gauntlet.discipline import Origin, Refused, for_development, for_report, seed_of, to_go_on
from benchmarks.gauntlet.tables import ProblemRow, RunRow, Table

FAMILY = "benchmarks/gauntlet/families/shapes.py"
METHOD = "src/zhat/auto.py"
OTHER = "README.md"


@pytest.fixture
def commit(tmp_path, monkeypatch):
    """Return what commits files of a repository that stands in for this one."""
    root = tmp_path / "repository"
    monkeypatch.setattr(discipline, "ROOT", root)
    # Nothing of whoever runs the tests.
    for name in ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"):
        monkeypatch.setenv(name, "/dev/null")
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"):
        monkeypatch.delenv(name, raising=False)
    for role in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{role}_NAME", "nobody")
        monkeypatch.setenv(f"GIT_{role}_EMAIL", "nobody@example.org")
    for path in (FAMILY, METHOD, OTHER):
        change(path)
    subprocess.run(["git", "init", "--quiet"], cwd=root, check=True)

    def commit_all():
        discipline.git("add", "--all")
        discipline.git("commit", "--quiet", "--message", "something")
        return discipline.git("rev-parse", "HEAD")

    return commit_all


def change(path):
    file = discipline.ROOT / path
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a") as opened:
        opened.write("a line\n")


def begun(origin, tmp_path):
    """Return the tables of a report that has one problem and its run."""
    ledger = Ledger(origin, tmp_path / "results")
    row = ProblemRow(0, "shapes", "funnel", 2, 1.0, "box", "none", 0.0, 0.0, -1.0, 0.0, "closed form", 0.1, "")
    Table(ledger.problems_path, ProblemRow, origin.about).add(row)
    Table(ledger.runs_path, RunRow, origin.about).add(RunRow(0, "auto", 50, 200, -1.0, 0.1, 200, 1.0, "converged"))
    return ledger


@pytest.mark.parametrize("seed", [-1, 1000, 10**12])
def test_only_small_seeds_are_for_development(seed):
    with pytest.raises(Refused, match="0 to 999"):
        for_development(seed)
    assert for_development(999) == Origin(999)
    assert not for_development(0).is_report
    assert "not to be published" in for_development(0).about


def test_the_seed_of_a_report_comes_from_the_hash_of_the_commit(commit):
    first = commit()
    origin = for_report()
    assert origin == Origin(1000 + int(first[:10], 16), first)
    assert origin.is_report and first in origin.about
    change(OTHER)
    commit()
    assert for_report().seed != origin.seed
    # Even a hash that begins with noughts is no seed for development.
    assert seed_of("0" * 40) == 1000


@pytest.mark.parametrize("path", [FAMILY, METHOD, "src/zhat/new.py", "benchmarks/gauntlet/families/new.py"])
def test_what_is_not_committed_has_no_report(path, commit):
    commit()
    change(path)
    with pytest.raises(Refused, match=path):
        for_report()
    commit()
    assert for_report().is_report


def test_what_decides_nothing_may_differ(commit):
    commit()
    change(OTHER)
    assert for_report().is_report


def test_a_report_goes_on_with_its_own_seed(commit, tmp_path):
    commit()
    origin = for_report()
    ledger = begun(origin, tmp_path)
    change(OTHER)
    commit()
    for path in (ledger.problems_path, ledger.runs_path):
        assert to_go_on(path, with_zhat=True) == origin


@pytest.mark.parametrize("committed", [False, True])
def test_a_report_does_not_go_on_with_other_families_or_other_code(committed, commit, tmp_path):
    commit()
    origin = for_report()
    path = begun(origin, tmp_path).problems_path
    change(METHOD)
    if committed:
        commit()
    with pytest.raises(Refused, match=METHOD):
        to_go_on(path, with_zhat=True)
    # Other packages do not depend on the code of zhat, but on the problems.
    assert to_go_on(path, with_zhat=False) == origin
    change(FAMILY)
    if committed:
        commit()
    with pytest.raises(Refused, match=FAMILY):
        to_go_on(path, with_zhat=False)


def test_the_page_of_a_report_is_made_of_what_is_kept_whatever_has_changed(commit, tmp_path, capsys):
    commit()
    ledger = begun(for_report(), tmp_path)
    change(FAMILY)
    options = ["--go-on", str(ledger.runs_path), "--results", str(ledger.folder), "--out", str(tmp_path / "page")]
    assert command.main(options) == 2
    assert command.main([*options, "--only-page"]) == 0
    assert str(ledger.origin.seed) in (tmp_path / "page" / "index.html").read_text(encoding="utf-8")


def test_what_is_no_report_does_not_go_on(commit, tmp_path):
    commit()
    path = begun(Origin(7), tmp_path).problems_path
    with pytest.raises(Refused, match="is no report"):
        to_go_on(path, with_zhat=True)


def test_a_report_that_is_complete_is_not_made_again(commit, tmp_path, capsys, monkeypatch):
    commit()
    origin = for_report()
    ledger = begun(origin, tmp_path)
    started = []
    monkeypatch.setattr(command, "find_truths", lambda ledger, wanted, *_: started.append(wanted) or [0])
    monkeypatch.setattr(command, "perform_runs", lambda *_: None)
    options = ["--results", str(ledger.folder), "--out", str(tmp_path / "page")]
    assert command.main(["--report", "--problems", "1", *options]) == 2
    assert (
        capsys.readouterr().err == f"refused: seed {origin.seed} was reported before: a new report needs a new commit\n"
    )
    # More problems, or another budget, are not there yet; and the page is made of what is there.
    assert command.main(["--report", "--problems", "2", *options]) == 0
    assert command.main(["--report", "--problems", "1", "--budget", "200", *options]) == 0
    assert started == [2, 1]
    assert command.main(["--report", "--only-page", *options]) == 0


def test_the_command_says_why_it_refuses(commit, capsys):
    commit()
    change(METHOD)
    for arguments in (["--seed", "1000"], ["--report"], ["--report", "--number", "3"]):
        assert command.main(arguments) == 2
        assert capsys.readouterr().err.startswith("refused: ")
