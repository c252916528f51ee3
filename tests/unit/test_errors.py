"""Errors are what callers expect, wherever they come from."""

import pickle

import pytest

from zhat import errors


@pytest.mark.parametrize(
    "error",
    [
        errors.InvalidArgument("budget", -3, "a whole number above 0"),
        errors.InvalidArgument("energy", lambda x: x, "something that can be called by name"),
        errors.StudyFileError("study.toml", 7, "budget", "is -3", "a whole number above 0"),
        errors.TableError("results.csv", None, "", "is missing", "a table"),
        errors.EnergyError("not one evaluation succeeded"),
        errors.CommandFailed("exit status 3"),
        errors.ClusterLost("gone"),
        errors.FileError("not a study"),
        errors.SettingsDiffer("budget"),
        errors.StorageError("the disk is full"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_errors_cross_from_one_process_to_another(error):
    # As every pool of processes sends them; one that cannot be sent breaks the whole pool.
    restored = pickle.loads(pickle.dumps(error))
    assert type(restored) is type(error)
    assert str(restored) == str(error)
    for name, value in vars(error).items():
        assert vars(restored)[name] == (value if isinstance(value, str | int | None) else repr(value))
