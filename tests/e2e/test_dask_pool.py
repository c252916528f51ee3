"""The pool on a real Dask cluster: a scheduler and workers as processes of their own, which are killed on the way."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import distributed
import numpy as np
import pytest

from dask_cluster import Cluster, free_port
from pool_checks import PATIENCE, all_of, check_contract, point, square, submit_range, until
from zhat.errors import ClusterLost, InvalidArgument
from zhat.evaluate.dask_pool import DaskPool
from zhat.evaluate.pools import make_pool
from zhat.problem.domain import Box
from zhat.problem.energy import Problem
from zhat.problem.evaluations import Outcome


@pytest.fixture(scope="module")
def cluster(tmp_path_factory) -> Iterator[Cluster]:
    cluster = Cluster(tmp_path_factory.mktemp("dask") / "log")
    cluster.start()
    try:
        yield cluster
    finally:
        cluster.kill()


@pytest.fixture
def client(cluster) -> Iterator[distributed.Client]:
    with distributed.Client(cluster.address, timeout=PATIENCE, set_as_default=False) as client:
        client.wait_for_workers(1, timeout=PATIENCE)
        yield client


def marking(folder: Path, seconds: float):
    """An energy that leaves a file with the number of its process and of the point."""

    def evaluate(x: np.ndarray) -> Outcome:
        (folder / f"{os.getpid()}-{x[0]:g}").touch()
        time.sleep(seconds)
        return Outcome(float(x[0]))

    return evaluate


def test_contract(client):
    check_contract(lambda evaluate: DaskPool(evaluate, client))
    assert client.status == "running"


def test_made_for_a_client_or_an_address(client, cluster):
    problem = Problem(lambda x: float(x[0]), Box.from_bounds([(0.0, 1.0)]))
    for executor in (client, cluster.address):
        with make_pool(problem, 1, executor) as pool:
            assert type(pool) is DaskPool
            assert pool.capacity == 2
            pool.submit(0, point(0.25))
            assert all_of(pool, 1)[0].value == 0.25


def test_wait_returns_in_time_and_close_now_cancels(client, tmp_path):
    n_threads = threading.active_count()
    pool = DaskPool(marking(tmp_path, 0.5), client)
    submit_range(pool, 20)
    start = time.monotonic()
    assert pool.wait(0.01) == []
    assert time.monotonic() - start < PATIENCE / 2
    until(lambda: list(tmp_path.iterdir()))
    pool.close(now=True)
    pool.close(now=True)
    until(lambda: not client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks)))
    assert len(list(tmp_path.iterdir())) < 20
    # One more is Dask's own, for callbacks, and stays.
    assert threading.active_count() <= n_threads + 1


def test_a_killed_worker_costs_nothing(cluster, tmp_path):
    with DaskPool(marking(tmp_path, 0.2), cluster.address) as pool:
        submit_range(pool, 10)
        until(lambda: list(tmp_path.iterdir()))
        cluster.worker.kill()
        cluster.worker.wait()
        until(lambda: pool.capacity == 1)
        cluster.start_worker()
        outcomes = all_of(pool, 10)
        assert {key: outcome.value for key, outcome in outcomes.items()} == {k: float(k) for k in range(10)}
        until(lambda: pool.capacity == 2)


def check_a_restart(cluster: Cluster, pool: DaskPool, folder: Path, how: signal.Signals) -> None:
    submit_range(pool, 10)
    until(lambda: len(list(folder.iterdir())) >= 2)
    cluster.scheduler.send_signal(how)
    cluster.scheduler.wait()
    pool.submit(10, point(10.0))
    cluster.kill()
    cluster.start()
    pool.submit(11, point(11.0))
    outcomes = all_of(pool, 12)
    assert {key: outcome.value for key, outcome in outcomes.items()} == {k: float(k) for k in range(12)}


def test_a_scheduler_that_crashes(cluster, tmp_path, caplog):
    with DaskPool(marking(tmp_path, 0.1), cluster.address) as pool:
        check_a_restart(cluster, pool, tmp_path, signal.SIGKILL)
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []


def test_a_scheduler_that_is_restarted_under_a_users_client(cluster, client, tmp_path):
    with DaskPool(marking(tmp_path, 0.1), client) as pool:
        check_a_restart(cluster, pool, tmp_path, signal.SIGTERM)


def test_a_scheduler_that_is_only_busy_costs_nothing(cluster, client, tmp_path, monkeypatch):
    monkeypatch.setattr("zhat.evaluate.dask_pool._ANSWER", 0.2)
    monkeypatch.setattr("zhat.evaluate.dask_pool._HEARTBEAT", 0.1)
    with DaskPool(marking(tmp_path, 0.1), client) as pool:
        submit_range(pool, 6)
        until(lambda: list(tmp_path.iterdir()))
        cluster.scheduler.send_signal(signal.SIGSTOP)
        # Time for several questions that are not answered.
        time.sleep(1.0)
        cluster.scheduler.send_signal(signal.SIGCONT)
        assert sorted(all_of(pool, 6)) == list(range(6))
        assert pool._connection._client is client


def test_points_that_were_cancelled_are_submitted_again(client, tmp_path):
    with DaskPool(marking(tmp_path, 0.1), client) as pool:
        submit_range(pool, 6)
        until(lambda: len(client.futures) == 6)
        client.cancel([distributed.Future(key, client) for key in list(client.futures)], force=True)
        assert sorted(all_of(pool, 6)) == list(range(6))
        assert pool._connection._client is not client
    assert client.status == "running"


def test_a_deadly_point_fails_alone(cluster, client):
    def evaluate(x: np.ndarray) -> Outcome:
        if x[0] == 1.0:
            os._exit(1)
        return Outcome(float(x[0]))

    def allow(failures: int) -> None:
        client.run_on_scheduler(lambda dask_scheduler: setattr(dask_scheduler, "allowed_failures", failures))

    # Dask's own default would take four workers.
    allow(0)
    with DaskPool(evaluate, client) as pool:
        pool.submit(1, point(1.0))
        assert all_of(pool, 1)[1].failure == "the Dask worker died during the evaluation, on each of 1 workers"
        cluster.worker.wait()
        cluster.start_worker()
        pool.submit(2, point(2.0))
        assert all_of(pool, 1)[2].value == 2.0
    allow(3)


def test_a_scheduler_that_stays_away(tmp_path):
    lonely = Cluster(tmp_path / "log")
    lonely.start_scheduler()
    try:
        with DaskPool(square(), lonely.address, patience=30.0) as pool:
            assert pool.capacity == 1
            pool._patience = 0.5
            pool.submit(0, point(0.0))
            lonely.kill()
            with pytest.raises(ClusterLost, match=f"{lonely.address} has been away for more than 0.5 s, with 1 points"):
                pool.wait(PATIENCE)
            with pytest.raises(ClusterLost):
                pool.wait(PATIENCE)
    finally:
        lonely.kill()


def test_connections_that_are_good_for_nothing_come_to_an_end(client, monkeypatch):
    with DaskPool(square(), client, patience=0.5) as pool:

        def refuse(*_) -> None:
            raise TypeError("not like this")

        monkeypatch.setattr(pool._connection, "submit", refuse)
        pool.submit(0, point(0.0))
        with pytest.raises(ClusterLost, match="TypeError: not like this"):
            pool.wait(PATIENCE)


def test_nobody_there():
    with pytest.raises(ClusterLost, match="no Dask scheduler answers at tcp://127.0.0.1"):
        DaskPool(square(), f"tcp://127.0.0.1:{free_port()}", patience=0.5)


def test_what_cannot_be_sent():
    lock = threading.Lock()
    with pytest.raises(InvalidArgument, match="energy is .*sent to another process"):
        DaskPool(lambda x: Outcome(float(lock.locked())), "tcp://127.0.0.1:1")


def test_not_a_client():
    with pytest.raises(InvalidArgument, match="executor is 5; wanted: a Dask client"):
        DaskPool(square(), 5)


def test_without_dask(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(InvalidArgument, match=r"pip install 'zhat\[dask\]'"):
        DaskPool(square(), "tcp://127.0.0.1:1")
