"""Studies that went wrong, and what their users do about it on the command line: retry, replace, withdraw, look."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import zhat

ZHAT = Path(sys.executable).with_name("zhat")
STUDY = """
[study]
inverse_temperature = 2.0
budget = 24
seed = 3
method = "mc"

[bounds]
a = [0.0, 1.0]
b = [0.0, 2.0]

[energy]
"""
COMMAND = 'command = ["./simulate", "{a}", "{b}"]\n'
FUNCTION = 'function = "energies.py:energy"\n'
SIMULATE = "#!/bin/sh\necho called >> calls\nexec awk -v a=$1 -v b=$2 'BEGIN { print a + b }'\n"
#: Programs that are there and cannot be started.
NOT_STARTED = [
    (SIMULATE, 0o644, "not executable: ./simulate"),
    ("#!/no/such/interpreter\n", 0o755, "its interpreter is missing"),
]
ENERGIES = """
def solver(x):
    if x[0] > 0.5:
        raise ArithmeticError("no convergence")
    return float(x[0] + x[1])

def energy(x):
    return solver(x)

def other(x):
    return 0.0
"""


def study_file(folder, energy, **changed):
    text = STUDY + energy
    for key, value in changed.items():
        text = text.replace(f"{key} = ", f"{key} = {value} # ")
    (folder / "study.toml").write_text(text)


def program(folder, name="simulate", text=SIMULATE, mode=0o755):
    (folder / name).write_text(text)
    os.chmod(folder / name, mode)


def run(folder, *arguments):
    environment = {"PATH": "/usr/bin:/bin", "COLUMNS": "120", "OPENBLAS_NUM_THREADS": "1", "HOME": str(folder)}
    done = subprocess.run([ZHAT, *arguments], cwd=folder, env=environment, capture_output=True, text=True, timeout=300)
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode, done.stdout, done.stderr


def told(folder):
    with zhat.Study.open(folder / "study.db", read_only=True) as study:
        return study.n_told


def values(folder):
    with zhat.Study.open(folder / "study.db", read_only=True) as study:
        return study.evaluations.y.tolist()


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_program_that_is_missing_stops_the_run_at_the_first_and_costs_nothing(workers, tmp_path):
    study_file(tmp_path, COMMAND)
    code, _, err = run(tmp_path, "run", "study.toml", "--workers", workers)
    assert code == 2
    assert "the energy cannot be evaluated: no such program: ./simulate" in err
    assert "to go on when this is mended: zhat run study.toml" in err
    assert told(tmp_path) == 0
    for text, mode, reason in NOT_STARTED if workers == "1" else ():
        program(tmp_path, text=text, mode=mode)
        code, _, err = run(tmp_path, "run", "study.toml")
        assert (code, reason in err) == (2, True), err
    assert told(tmp_path) == 0
    code, out, _ = run(tmp_path, "show", "study.toml", "--failures")
    assert "x no such program: ./simulate" in out
    program(tmp_path)
    code, out, err = run(tmp_path, "run", "study.toml", "--workers", workers)
    assert code == 0, err
    assert "spent     24 of 24 evaluations\n" in out
    assert len((tmp_path / "calls").read_text().splitlines()) == 24


def test_a_program_that_goes_away_in_the_middle_loses_nothing(tmp_path):
    vanishing = SIMULATE.replace("exec awk", '[ $(wc -l < calls) -eq 7 ] && rm "$0"\nexec awk')
    study_file(tmp_path, COMMAND)
    program(tmp_path, text=vanishing)
    code, out, err = run(tmp_path, "run", "study.toml")
    assert (code, "no such program" in err) == (2, True)
    assert "spent     7 of 24 evaluations" in out
    program(tmp_path)
    assert run(tmp_path, "run", "study.toml")[0] == 0
    assert told(tmp_path) == 24


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_module_that_the_energy_wants_and_that_is_missing_stops_the_run_at_the_first(workers, tmp_path):
    study_file(tmp_path, FUNCTION)
    (tmp_path / "energies.py").write_text("def energy(x):\n    import slowsim\n    return slowsim.energy(x)\n")
    code, _, err = run(tmp_path, "run", "study.toml", "--workers", workers)
    assert (code, "energy raised ModuleNotFoundError: No module named 'slowsim'" in err) == (2, True)
    assert told(tmp_path) == 0
    (tmp_path / "slowsim.py").write_text("def energy(x):\n    return float(x[0])\n")
    assert run(tmp_path, "run", "study.toml", "--workers", workers)[0] == 0
    assert told(tmp_path) == 24


def test_failures_are_asked_again_when_the_program_is_mended(tmp_path):
    study_file(tmp_path, COMMAND)
    program(tmp_path, text="#!/bin/sh\necho 'no licence' >&2\nexit 3\n")
    code, _, err = run(tmp_path, "run", "study.toml")
    assert (code, "zhat retry study.toml" in err) == (4, True)
    program(tmp_path)
    assert run(tmp_path, "run", "study.toml")[0] == 4
    code, out, _ = run(tmp_path, "retry", "study.toml", "--reason", "no licence", "--id", "3")
    assert (code, out) == (
        0,
        "1 point will be asked for again, before any new one; 9 of 24 evaluations are spent\n",
    )
    code, out, _ = run(tmp_path, "retry", "study.db")
    assert out == "9 points will be asked for again, before any new one; 0 of 24 evaluations are spent\n"
    code, out, _ = run(tmp_path, "show", "study.db")
    assert "changes   outcomes that do not count: 10 retried; they are kept" in out
    assert "open      10 held by nobody: they will be asked for before any new one" in out
    code, out, err = run(tmp_path, "run", "study.toml")
    assert code == 0, err
    assert "spent     24 of 24 evaluations\n" in out
    assert run(tmp_path, "retry", "study.db")[:2] == (0, "nothing has failed; 24 of 24 evaluations are spent\n")
    code, _, err = run(tmp_path, "retry", "study.db", "--reason", "no licence")
    assert (code, "reason is 'no licence'" in err) == (2, True)


def test_settings_of_execution_may_change(tmp_path):
    study_file(tmp_path, COMMAND + "timeout = 5\n")
    program(tmp_path)
    assert run(tmp_path, "run", "study.toml", "--max-time", "1s")[0] in (0, 3)
    (tmp_path / "bin").mkdir()
    os.rename(tmp_path / "simulate", tmp_path / "bin" / "simulate")
    moved = COMMAND.replace("./simulate", "./bin/simulate")
    study_file(
        tmp_path,
        moved + 'timeout = 60\nretries = 1\nfolder = "runs"\n[run]\nworkers = 2\n',
        seed="3\nlargest_failed_share = 0.9",
    )
    code, _, err = run(tmp_path, "run", "study.toml")
    assert code == 0, err
    with zhat.Study.open(tmp_path / "study.db") as study:
        assert study.settings.largest_failed_share == 0.9


def test_values_are_replaced_and_withdrawn(tmp_path):
    study_file(tmp_path, FUNCTION)
    run(tmp_path, "ask", "study.toml", "-n", "3")
    table = tmp_path / "results.csv"
    table.write_text("id,y,failure\n1,1.5,\n2,,the sample broke\n3,3.5,\n")
    assert run(tmp_path, "tell", "study.toml", "results.csv")[0] == 0
    table.write_text("id,y\n1,1.0\n2,2.0\n")
    code, out, err = run(tmp_path, "tell", "study.toml", "results.csv")
    assert (code, out) == (0, "2 told, 2 of points that had a value, which is kept; 3 of 24 evaluations are spent\n")
    assert "zhat tell --replace study.toml results.csv" in err
    assert values(tmp_path)[0] == 1.5
    code, out, _ = run(tmp_path, "tell", "study.toml", "results.csv", "--replace")
    assert (code, out) == (
        0,
        "2 told, 2 instead of what was told before, which is kept; 3 of 24 evaluations are spent\n",
    )
    assert values(tmp_path) == [1.0, 2.0, 3.5]
    code, _, err = run(tmp_path, "withdraw", "study.toml", "1", "99")
    assert (code, "id is 99" in err) == (2, True)
    code, out, _ = run(tmp_path, "withdraw", "study.toml", "1", "3")
    assert out == "2 points will be asked for again, before any new one; 1 of 24 evaluations are spent\n"
    assert values(tmp_path) == [2.0]
    assert [line.split(":")[0] for line in run(tmp_path, "ask", "study.toml", "-n", "2")[1].splitlines()] == ["1", "3"]
    document = json.loads(run(tmp_path, "show", "study.db", "--json")[1])
    assert [(change["id"], change["change"], change["y"], change["failure"]) for change in document["changes"]] == [
        (1, "replaced", 1.5, ""),
        (2, "replaced", None, "the sample broke"),
        (1, "withdrawn", 1.0, ""),
        (3, "withdrawn", 3.5, ""),
    ]


def test_results_beside_other_coordinates_than_their_id_has_are_refused(tmp_path):
    study_file(tmp_path, FUNCTION)
    points = run(tmp_path, "ask", "study.toml", "-n", "3", "--csv")[1].splitlines()
    rows = [line.split(",") for line in points[1:]]
    table = tmp_path / "results.csv"
    rotated = [[number, a, b, "1.0"] for (number, _, _), (_, a, b) in zip(rows, rows[1:] + rows[:1], strict=True)]
    table.write_text("\n".join(["id,a,b,y", *map(",".join, rotated)]) + "\n")
    code, _, err = run(tmp_path, "tell", "study.toml", "results.csv")
    assert code == 2
    assert "results.csv, line 2: column 'a' is" in err and "but the point of id 1 has" in err
    assert told(tmp_path) == 0
    # A spreadsheet keeps ten digits; a column of the lab's own says nothing.
    rounded = [[number, f"{float(a):.10g}", "", "ok", "1.0"] for number, a, b in rows]
    table.write_text("\n".join(["id,a,b,note,y", *map(",".join, rounded)]) + "\n")
    code, out, err = run(tmp_path, "tell", "study.toml", "results.csv")
    assert code == 0, err
    table.write_text("id,a,y\n1,high,1.0\n")
    code, _, err = run(tmp_path, "tell", "study.toml", "results.csv", "--replace")
    assert (code, "line 2: column 'a' is 'high'" in err) == (2, True)


def test_swapped_lines_of_bounds_are_another_study(tmp_path):
    study_file(tmp_path, FUNCTION)
    assert run(tmp_path, "ask", "study.toml", "-n", "3")[0] == 0
    text = (tmp_path / "study.toml").read_text()
    a, b = "a = [0.0, 1.0]\n", "b = [0.0, 2.0]\n"
    (tmp_path / "study.toml").write_text(text.replace(a + b, b + a).replace("budget = 24", "budget = 48"))
    for command in (["run"], ["ask"], ["retry"]):
        code, _, err = run(tmp_path, *command, "study.toml")
        assert code == 2
        assert 'bounds is {"a": [0.0, 1.0], "b": [0.0, 2.0]}, not {"b": [0.0, 2.0], "a": [0.0, 1.0]}' in err
    with zhat.Study.open(tmp_path / "study.db") as study:
        assert (study.budget, study.settings.domain.names) == (24, ("a", "b"))


def test_another_energy_is_noticed_where_there_are_values(tmp_path):
    (tmp_path / "energies.py").write_text(ENERGIES.replace("x[0] > 0.5", "False"))
    study_file(tmp_path, COMMAND)
    assert run(tmp_path, "run", "study.toml")[0] == 2
    # Of the program that was not there, there are no values to mix.
    study_file(tmp_path, FUNCTION)
    assert run(tmp_path, "run", "study.toml")[0] == 0
    for other in (FUNCTION.replace(":energy", ":other"), FUNCTION.replace("energies.py", "more.py"), COMMAND):
        study_file(tmp_path, other, budget=30)
        (tmp_path / "more.py").write_text(ENERGIES)
        program(tmp_path)
        code, _, err = run(tmp_path, "run", "study.toml")
        assert code == 2
        assert "study.db has 24 values of another energy" in err and '"energies.py:energy"' in err
        assert "--allow-changed-energy" in err
    assert told(tmp_path) == 24
    assert run(tmp_path, "run", "study.toml", "--allow-changed-energy")[0] == 0
    assert told(tmp_path) == 30
    # It is the study's energy now; what the file says of it otherwise does not matter.
    program(tmp_path, text=SIMULATE.replace("a + b", "a - b"))
    assert run(tmp_path, "run", "study.toml")[0] == 0
    with zhat.Study.open(tmp_path / "study.db") as study:
        assert study.energies == [
            {"command": ["simulate", "{a}", "{b}"]},
            {"function": "energies.py:energy"},
            {"command": ["simulate", "{a}", "{b}"]},
        ]


def test_failures_are_shown_with_where_they_came_from(tmp_path):
    study_file(tmp_path, FUNCTION)
    (tmp_path / "energies.py").write_text(ENERGIES)
    code, _, err = run(tmp_path, "run", "study.toml", "--workers", "2")
    assert code == 0, err
    code, out, _ = run(tmp_path, "show", "study.toml", "--failures")
    with zhat.Study.open(tmp_path / "study.db") as study:
        ids = [row.id for row in study.rows if row.failure]
    assert out.startswith(f"{len(ids)} x energy raised ArithmeticError: no convergence\n    points {ids[0]}, {ids[1]}")
    assert 'energies.py", line 4, in solver\n' in out
    assert 'raise ArithmeticError("no convergence")' in out


def test_a_study_is_shown_as_json_that_every_program_reads(tmp_path):
    study_file(tmp_path, FUNCTION)
    (tmp_path / "energies.py").write_text(ENERGIES)
    assert run(tmp_path, "ask", "study.toml", "-n", "2")[0] == 0
    empty = json.loads(run(tmp_path, "show", "study.toml", "--json")[1], parse_constant=pytest.fail)
    assert (empty["log_z"], empty["n_told"], empty["open"][0]["ids"]) == (None, 0, [1, 2])
    assert run(tmp_path, "tell", "study.toml", "-")[0] == 2
    (tmp_path / "results.csv").write_text("id,y\n1,0.75\n2,0.5\n")
    assert run(tmp_path, "tell", "study.toml", "results.csv")[0] == 0
    assert run(tmp_path, "run", "study.toml")[0] == 0
    document = json.loads(run(tmp_path, "show", "study.db", "--json")[1], parse_constant=pytest.fail)
    with zhat.Study.open(tmp_path / "study.db") as study:
        est = study.estimate()
    assert (document["log_z"], document["std_error"]) == (est.log_z, est.std_error)
    assert (document["interval"], document["status"]) == (list(est.interval()), est.status)
    assert (document["budget"], document["n_told"], document["n_failed"]) == (24, 24, est.evaluations.n_failed)
    (failure,) = document["failures"]
    assert (failure["count"], len(failure["ids"])) == (est.evaluations.n_failed,) * 2
    assert "in solver" in failure["traceback"]


def test_a_study_is_planned_with(tmp_path):
    study_file(tmp_path, FUNCTION)
    (tmp_path / "energies.py").write_text(ENERGIES.replace("x[0] > 0.5", "False"))
    assert run(tmp_path, "run", "study.toml")[0] == 0
    with zhat.Study.open(tmp_path / "study.db") as study:
        est = study.estimate()
    est.save(tmp_path / "run.json")
    for name in ("study.db", "study.toml", "run.json"):
        code, out, err = run(tmp_path, "plan", name, "--relative-error", "0.02")
        assert (code, out) == (0, f"{est.plan(0.02)}\n"), err
