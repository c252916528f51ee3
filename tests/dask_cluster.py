"""A Dask cluster of processes on this machine, and studies that are run on it."""

from __future__ import annotations

import random
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import zhat
from zhat.evaluate.dask_pool import DaskPool
from zhat.problem.evaluations import Outcome
from zhat.study.runner import StudyRun

BOUNDS = {"u": (-1.0, 2.0), "v": (0.0, 3.0)}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Cluster:
    """A scheduler and workers, each a process of its own."""

    def __init__(self, log: Path, n_workers: int = 1, n_threads: int = 2) -> None:
        self.port = free_port()
        self.address = f"tcp://127.0.0.1:{self.port}"
        self._log = log
        self._n_threads = n_threads
        self.scheduler: subprocess.Popen[bytes] | None = None
        self.workers: list[subprocess.Popen[bytes] | None] = [None] * n_workers

    @property
    def worker(self) -> subprocess.Popen[bytes] | None:
        """The first worker."""
        return self.workers[0]

    def start(self) -> None:
        """Start everything."""
        self.start_scheduler()
        for place in range(len(self.workers)):
            self.start_worker(place)

    def start_scheduler(self) -> None:
        """Start the scheduler, always at the same address."""
        self.scheduler = self._run("dask_scheduler", "--port", str(self.port))

    def start_worker(self, place: int = 0) -> None:
        """Start one of the workers."""
        threads = str(self._n_threads)
        self.workers[place] = self._run("dask_worker", self.address, "--nthreads", threads, "--no-nanny")

    def _run(self, program: str, *arguments: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", f"distributed.cli.{program}", *arguments, "--host", "127.0.0.1"]
        with self._log.open("ab") as log:
            return subprocess.Popen([*command, "--no-dashboard"], stdout=log, stderr=log, cwd=self._log.parent)

    def kill(self) -> None:
        """End everything."""
        for process in (self.scheduler, *self.workers):
            if process is not None:
                process.kill()
                process.wait()


def sleeping(mean_seconds: float):
    """Return an energy that takes a log-normal time, the same at the same point."""

    def evaluate(x):
        rng = random.Random(x.tobytes())
        seconds = mean_seconds * rng.lognormvariate(-0.32, 0.8)
        time.sleep(seconds)
        return Outcome(float((x[0] - 0.3) ** 2 + (x[1] - 1.1) ** 2), "", seconds)

    return evaluate


def busy_share(path: Path, budget: int, mean_seconds: float, n_workers: int = 4) -> float:
    """Run a study by auto and return which share of the time the workers were busy, from the first point to the last.

    The end, when there is nothing more to begin, does not count: there are more workers than points then.
    """
    cluster = Cluster(path.with_suffix(".log"), n_workers, n_threads=1)
    cluster.start()
    try:
        with zhat.Study.create(path, BOUNDS, 4.0, budget, seed=0) as study:
            with DaskPool(sleeping(mean_seconds), cluster.address) as pool:
                wait_for(lambda: pool.capacity == n_workers)
                assert StudyRun(study, pool, lambda progress: None).run() == "done"
            rows = sorted(study.rows, key=lambda row: row.told_at)
    finally:
        cluster.kill()
    first, last = min(row.asked_at for row in rows), rows[-n_workers - 1].told_at
    spans = [(row.told_at - row.seconds, row.told_at) for row in rows]
    busy = sum(max(min(end, last) - max(begin, first), 0.0) for begin, end in spans)
    return busy / (n_workers * (last - first))


def disturbed(path: Path, budget: int, mean_seconds: float, n_workers: int = 4) -> int:
    """Run a study while workers are killed and the scheduler is restarted; return how many evaluations were told."""
    cluster = Cluster(path.with_suffix(".log"), n_workers, n_threads=1)
    cluster.start()
    try:
        with zhat.Study.create(path, BOUNDS, 4.0, budget, method="mc", seed=0) as study:
            with DaskPool(sleeping(mean_seconds), cluster.address) as pool:
                wait_for(lambda: pool.capacity == n_workers)
                disturber = threading.Thread(target=_disturb, args=(cluster, path, budget), daemon=True)
                disturber.start()
                assert StudyRun(study, pool, lambda progress: None).run() == "done"
                disturber.join()
            assert study.n_repeats == 0
            found = study.evaluations
            assert found.n_failed == 0, found.failures_by_reason()
            return study.n_told
    finally:
        cluster.kill()


def _disturb(cluster: Cluster, path: Path, budget: int) -> None:
    """Kill a worker after a quarter of the evaluations, restart the scheduler after a half."""
    with zhat.Study.open(path, read_only=True) as study:
        wait_for(lambda: study.n_told >= budget // 4)
        for place in (0, 1):
            cluster.workers[place].kill()
            cluster.workers[place].wait()
            cluster.start_worker(place)
        wait_for(lambda: study.n_told >= budget // 2)
        cluster.scheduler.kill()
        cluster.scheduler.wait()
        cluster.start_scheduler()
        # Without a nanny, workers end with their scheduler sooner or later.
        for place, worker in enumerate(cluster.workers):
            worker.kill()
            worker.wait()
            cluster.start_worker(place)


def wait_for(condition, seconds: float = 120.0) -> None:
    """Wait until something is so."""
    limit = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < limit
        time.sleep(0.05)
