"""Studies whose processes are killed, that many use at once, and whose disks are full, read-only or damaged."""

import re
import shutil
import subprocess
import sys
import textwrap

import pytest

import study_faults as faults
import zhat
from journal_checks import all_rows
from zhat.study.repair import repair

#: Runs Python with a file system of its own, which needs no rights: a tmpfs of so many KiB, mounted at a folder.
IN_A_SMALL_DISK = """
set -e
mount -t tmpfs -o size={size}k tmpfs {folder}
exec {python} {script} {folder}
"""


@pytest.mark.parametrize("method", ["auto", "mc"])
def test_killed_at_random_moments_a_study_loses_nothing_and_ends_with_the_same_bits(method, tmp_path):
    path, budget = tmp_path / "study.db", 64
    faults.create(path, budget, method)
    killed = faults.run_and_kill(path, kills=8, seconds=0.02, longest=0.25)
    assert killed >= 4
    plain = zhat.estimate(
        faults.energy, faults.BOUNDS, faults.INVERSE_TEMPERATURE, budget, method=method, seed=faults.SEED
    )
    with zhat.Study.open(path) as study:
        found = study.estimate()
    assert (found.log_z, found.status) == (plain.log_z, plain.status)
    assert found.evaluations.unit.tobytes() == plain.evaluations.unit.tobytes()


@pytest.mark.parametrize(("method", "budget"), [("mc", 300), ("auto", 40)])
def test_many_processes_ask_and_tell_at_once(method, budget, tmp_path):
    faults.create(tmp_path / "study.db", budget, method)
    faults.share(tmp_path / "study.db", n_processes=4)


@pytest.mark.parametrize("journal", ["wal", "rollback"])
def test_many_processes_on_either_journal(journal, tmp_path):
    path = tmp_path / "study.db"
    faults.create(path, 100, "mc", journal=journal)
    faults.share(path, n_processes=3, n_at_once=4)
    # Their lines are in one order, and hold all that the database does.
    expected = all_rows(path)
    path.unlink()
    repair(path)
    assert all_rows(path) == expected


@pytest.mark.parametrize("content", [None, b""], ids=["absent", "empty"])
def test_of_many_that_make_a_study_at_once_one_does_and_the_others_open_it(content, tmp_path):
    n_processes, n_rounds = 4, 50
    found = faults.create_at_once(tmp_path, n_processes, n_rounds, content)
    for number in range(n_rounds):
        rounds, seeds, points = zip(*(printed[number] for printed in found), strict=True)
        assert set(rounds) == {number}
        # The seed is drawn where the study is made: with two of them, there were two studies.
        assert len(set(seeds)) == 1
        assert sorted(points) == list(range(1, n_processes + 1))
    assert not [path.name for path in tmp_path.iterdir() if "-new-" in path.name]


def test_commands_that_begin_the_same_study_at_once_all_end_well(tmp_path):
    (tmp_path / "energies.py").write_text("def energy(x):\n    return float(x[0])\n")
    text = '[study]\nbudget = 12\nmethod = "mc"\n[bounds]\na = [0, 1]\n[energy]\nfunction = "energies.py:energy"\n'
    (tmp_path / "study.toml").write_text(text)
    command = [shutil.which("zhat", path=str(sys.executable).rpartition("/")[0]), "run", "study.toml"]
    running = [subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) for _ in range(4)]
    errors = [process.communicate(timeout=120)[1] for process in running]
    assert [process.returncode for process in running] == [0] * 4, errors
    with zhat.Study.open(tmp_path / "study.db") as study:
        assert study.n_told == 12


def on_a_small_disk(tmp_path, script, size=1600):
    folder = tmp_path / "disk"
    folder.mkdir()
    (tmp_path / "script.py").write_text(textwrap.dedent(script))
    text = IN_A_SMALL_DISK.format(size=size, folder=folder, python=sys.executable, script=tmp_path / "script.py")
    done = subprocess.run(
        ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", text],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout


def test_a_full_disk_is_said_and_what_was_told_before_can_be_read(tmp_path):
    on_a_small_disk(
        tmp_path,
        """
        import sys, zhat
        path = sys.argv[1] + "/study.db"
        study = zhat.Study.create(path, [(0, 1)], budget=100_000, method="mc", seed=0)
        told = 0
        try:
            while True:
                (point,) = study.ask()
                study.tell(point.id, float(point.x[0]), worker="w" * 500)
                told += 1
        except zhat.StorageError as error:
            assert "the disk is full" in str(error), error
        else:
            raise AssertionError("the disk never filled")
        assert told > 20, told
        assert study.n_told == told
        study.close()
        with zhat.Study.open(path, read_only=True) as again:
            assert again.n_told == told
            assert (again.evaluations.y == again.evaluations.x[:, 0]).all()
        """,
    )


def test_on_a_full_disk_show_and_export_read_what_a_kill_left(tmp_path):
    """With the log of a killed process and no room for what SQLite shares it with."""
    on_a_small_disk(
        tmp_path,
        """
        import os, subprocess, sys, zhat
        folder = sys.argv[1]
        path = folder + "/study.db"
        child = os.fork()
        if not child:
            study = zhat.Study.create(path, [(0, 1)], budget=100, method="mc", seed=0)
            for point in study.ask(30):
                study.tell(point.id, float(point.x[0]))
            os._exit(0)
        os.waitpid(child, 0)
        assert os.path.getsize(path + "-wal") > 0
        os.remove(path + "-shm")
        with open(folder + "/other", "wb", buffering=0) as other:
            try:
                while True:
                    other.write(bytes(512))
            except OSError:
                pass
        program = os.path.dirname(sys.executable) + "/zhat"
        shown = subprocess.run([program, "show", path], capture_output=True, text=True)
        assert shown.returncode == 0 and "spent     30 of 100 evaluations" in shown.stdout, shown
        exported = subprocess.run([program, "export", path], capture_output=True, text=True)
        rows = [line.split(",") for line in exported.stdout.splitlines()[1:]]
        assert exported.returncode == 0 and len(rows) == 30, exported
        assert all(row[1] == row[2] for row in rows)
        """,
    )


def test_values_that_a_full_disk_does_not_take_are_printed(tmp_path):
    (tmp_path / "energies.py").write_text(
        "import time\ndef energy(x):\n    time.sleep(0.01)\n    return float(x[0]) / 3\n"
    )
    (tmp_path / "study.toml").write_text(
        '[study]\nbudget = 100000\nmethod = "mc"\ndatabase = "disk/study.db"\n[bounds]\na = [0, 1]\n'
        '[energy]\nfunction = "energies.py:energy"\n'
    )
    printed = on_a_small_disk(
        tmp_path,
        """
        import os, subprocess, sys
        program, folder = os.path.dirname(sys.executable) + "/zhat", sys.argv[1] + "/.."
        command = [program, "run", "study.toml", "--workers", "3"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        assert done.returncode == 2 and "the disk is full" in done.stderr, done
        exported = subprocess.run([program, "export", "study.toml"], cwd=folder, capture_output=True, text=True)
        print(done.stderr, exported.stdout, sep="=====")
        """,
        size=1200,
    )
    errors, exported = printed.split("=====")
    stored = [line.split(",") for line in exported.strip().splitlines()[1:]]
    lost = re.findall(r"^point ([0-9]+): y = (\S+)$", errors.partition("could not be stored:")[2], re.MULTILINE)
    assert len(stored) > 20 and lost
    ids = sorted(int(number) for number in [row[0] for row in stored] + [number for number, _ in lost])
    assert ids == list(range(1, len(ids) + 1))
    assert all(float(row[2]) == float(row[1]) / 3 for row in stored)
    assert all(0.0 <= float(value) <= 1 / 3 for _, value in lost)


def test_a_full_disk_leaves_the_estimate_that_was_saved_before(tmp_path):
    on_a_small_disk(
        tmp_path,
        """
        import os, sys, zhat
        path = sys.argv[1] + "/run.json"
        small = zhat.estimate(lambda x: float(x[0]), [(0, 1)], budget=8, method="mc", seed=0)
        large = zhat.estimate(lambda x: float(x[0]), [(0, 1)], budget=8000, method="mc", seed=0)
        small.save(path)
        before = open(path).read()
        try:
            large.save(path)
        except zhat.StorageError as error:
            assert "run.json cannot be written: No space left on device; what was there" in str(error), error
        else:
            raise AssertionError("the disk never filled")
        assert open(path).read() == before
        assert os.listdir(sys.argv[1]) == ["run.json"]
        """,
        size=200,
    )


def test_a_read_only_disk_is_said_and_the_study_can_be_read(tmp_path):
    on_a_small_disk(
        tmp_path,
        """
        import subprocess, sys, zhat
        folder = sys.argv[1]
        path = folder + "/study.db"
        with zhat.Study.create(path, [(0, 1)], budget=100, method="mc", seed=0) as study:
            for point in study.ask(7):
                study.tell(point.id, 1.0)
        subprocess.run(["mount", "-o", "remount,ro", folder], check=True)
        with zhat.Study.open(path, read_only=True) as study:
            assert study.n_told == 7
            assert study.estimate().n_evaluations == 7
        for attempt in (
            lambda: zhat.Study.open(path).ask(),
            lambda: zhat.Study.create(folder + "/other.db", [(0, 1)]),
        ):
            try:
                attempt()
            except zhat.StorageError as error:
                assert "cannot be written" in str(error) and "read-only" in str(error), error
            else:
                raise AssertionError("nothing was refused")
        """,
    )


def told_study(tmp_path, n=600):
    path = tmp_path / "study.db"
    faults.create(path, 1000, "mc")
    with zhat.Study.open(path) as study:
        for point in study.ask(n):
            study.tell(point.id, faults.energy(point.x))
        kept = study.evaluations
    return path, kept


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: content[: len(content) // 2],
        lambda content: b"\0" * 4096 + content[4096:],
        lambda content: content[:8192] + b"\xa5" * 8192 + content[16384:],
    ],
    ids=["truncated", "header", "pages"],
)
def test_a_damaged_file_is_said_and_what_was_told_can_be_exported(damage, tmp_path):
    path, kept = told_study(tmp_path)
    assert not path.with_name("study.db-wal").exists()
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(zhat.FileError, match=r"zhat repair .* zhat export --salvage"), zhat.Study.open(path) as study:
        # Damage may show only when the rows are read.
        assert len(study.evaluations) == len(kept)
    command = shutil.which("zhat", path=str(sys.executable).rpartition("/")[0])
    done = subprocess.run([command, "export", "--salvage", path], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    rows = [line.split(",") for line in done.stdout.splitlines()[1:]]
    assert [int(row[0]) for row in rows] == list(range(1, len(kept) + 1))
    for row in rows:
        place = int(row[0]) - 1
        assert [float(cell) for cell in row[1:4]] == [*kept.x[place], kept.y[place]]


LEFT_BY_A_KILL = """
import os, sys, zhat
study = zhat.Study.create(sys.argv[1], [(0, 1)], budget=100, method="mc", seed=0)
for _ in range(56):
    (point,) = study.ask()
    study.tell(point.id, float(point.x[0]))
os._exit(0)
"""


def test_one_bit_of_the_log_of_a_killed_run_costs_nothing(tmp_path):
    path = tmp_path / "study.db"
    process = faults.start(LEFT_BY_A_KILL, path)
    process.communicate(timeout=60)
    log = path.with_name("study.db-wal")
    content = bytearray(log.read_bytes())
    content[32 + 24 + 2000] ^= 1
    log.write_bytes(content)
    command = shutil.which("zhat", path=str(sys.executable).rpartition("/")[0])

    def run(*arguments):
        return subprocess.run([command, *arguments, path], capture_output=True, text=True, timeout=60)

    for _ in range(2):
        shown = run("show")
        assert shown.returncode == 0 and "spent     56 of 100 evaluations" in shown.stdout, shown
    # Who only reads leaves it as it is.
    assert log.read_bytes() == content
    for arguments in (["export"], ["export", "--salvage"]):
        rows = [line.split(",") for line in run(*arguments).stdout.splitlines()[1:]]
        assert len(rows) == 56 and all(row[1] == row[2] for row in rows)
    assert run("repair").returncode == 0
    assert "spent     56 of 100 evaluations" in run("show").stdout
