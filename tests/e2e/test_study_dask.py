"""A study on a Dask cluster whose workers are killed and whose scheduler is restarted."""

import dask_cluster


def test_nothing_is_lost_when_workers_die_and_the_scheduler_comes_back(tmp_path):
    assert dask_cluster.disturbed(tmp_path / "study.db", budget=40, mean_seconds=0.3) == 40
