"""The examples of studies run as they stand."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import zhat

EXAMPLES = Path(__file__).parents[2] / "examples"


def run(folder, *command, **environment):
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "OPENBLAS_NUM_THREADS": "1", **environment}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)
    return done.returncode, done.stdout, done.stderr


def spent(path):
    with zhat.Study.open(path, read_only=True) as study:
        return study.n_told, study.evaluations.n_failed


def test_a_c_program_is_an_energy(tmp_path):
    folder = tmp_path / "command"
    shutil.copytree(EXAMPLES / "command", folder)
    assert run(folder, "cc", "-O2", "-o", "simulate", "simulate.c") == (0, "", "")
    code, out, err = run(folder, "zhat", "run", "study.toml", "--workers", "2")
    assert code == 0, err
    assert spent(folder / "study.db") == (64, 0)
    assert "64 of 64 evaluations" in out


def test_slurm_jobs_share_a_study_and_the_next_ones_go_on(tmp_path):
    folder = tmp_path / "slurm"
    shutil.copytree(EXAMPLES / "slurm", folder)
    assert run(folder, "sh", "job.sh", ZHAT_MAX_TIME="0.01")[0] == 3
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    jobs = [
        subprocess.Popen(
            ["sh", "job.sh"], cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        for _ in range(2)
    ]
    assert [job.wait(timeout=300) for job in jobs] == [0, 0]
    assert spent(folder / "study.db") == (48, 0)


def test_a_study_on_dask_goes_on_where_it_was(tmp_path):
    code, out, err = run(tmp_path, sys.executable, EXAMPLES / "dask_study.py")
    assert code == 0, err
    assert "48 of 48 evaluations" in out
    assert spent(tmp_path / "dask-study.db") == (48, 0)
    assert run(tmp_path, sys.executable, EXAMPLES / "dask_study.py")[1] == out
