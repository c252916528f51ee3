"""What other libraries are handed: ArviZ of both majors, pandas, and JSON files with priors."""

import json
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.stats as st

import zhat

#: For each major of ArviZ, where it lies and what it makes of draws. The newer one lies beside the older; it needs
#: NumPy 2, and there is none of it among the oldest releases.
ARVIZ = {"0": ("", "InferenceData")}
if int(np.__version__.partition(".")[0]) >= 2:
    ARVIZ["1"] = (str(Path(sys.prefix) / "arviz-1"), "DataTree")

READ_BY_ARVIZ = """
import warnings
warnings.simplefilter("ignore")
import arviz, numpy as np, sys, zhat
tree = zhat.load(sys.argv[1]).to_arviz(draws=500, chains=4, seed=0)
assert tree.posterior["shift"].shape == (4, 500)
table = arviz.summary(tree)
tree.to_netcdf(sys.argv[2])
again = arviz.from_netcdf(sys.argv[2])
np.testing.assert_array_equal(again.posterior["shift"].values, tree.posterior["shift"].values)
print(arviz.__version__.split(".")[0], type(tree).__name__, float(tree.attrs["log_z"]), ",".join(table.index))
"""


@pytest.fixture(scope="module")
def found():
    return zhat.evidence(
        lambda x: float(st.norm.logpdf(x[0], 1.0, 0.5) - x[1]),
        priors={"shift": st.norm(0, 2), "scale": st.expon(scale=0.5)}, budget=48, seed=0,
    )  # fmt: skip


@pytest.mark.parametrize("expected", ARVIZ)
def test_arviz_reads_the_draws(found, tmp_path, expected):
    path, container = ARVIZ[expected]
    found.save(tmp_path / "found.json")
    done = subprocess.run(
        [sys.executable, "-c", READ_BY_ARVIZ, tmp_path / "found.json", tmp_path / "draws.nc"],
        env={"PYTHONPATH": path, "HOME": str(tmp_path), "MPLBACKEND": "Agg"}, capture_output=True, text=True,
        timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    major, kind, log_z, names = done.stdout.split()[-4:]
    assert (major, kind) == (expected, container)
    assert float(log_z) == found.log_z
    assert names == "shift,scale"


@pytest.mark.parametrize("library", ["arviz", "pandas"])
def test_a_missing_library_is_named_with_the_command_that_installs_it(found, monkeypatch, library):
    monkeypatch.setitem(sys.modules, library, None)
    export = found.to_arviz if library == "arviz" else found.to_dataframe
    with pytest.raises(zhat.MissingLibrary, match=f"pip install {library}"):
        export()
    with pytest.raises(ImportError):
        export()


def test_every_evaluation_is_a_row(found):
    frame = found.to_dataframe()
    assert list(frame) == ["shift", "scale", "log_likelihood", "noise_std", "status", "failure", "seconds"]
    np.testing.assert_array_equal(frame["log_likelihood"], -found.evaluations.y)
    np.testing.assert_array_equal(frame[["shift", "scale"]].to_numpy(), found.evaluations.x)


def test_draws_are_a_table_of_parameters(found):
    frame = found.to_dataframe(draws=100, seed=3)
    np.testing.assert_array_equal(frame.to_numpy(), found.sample(100, seed=3))
    assert list(frame) == ["shift", "scale"]


def test_a_parameter_called_energy_keeps_its_column():
    found = zhat.estimate(lambda x: x[0], {"energy": (0, 1), "seconds": (0, 1)}, budget=8, seed=0)
    frame = found.to_dataframe()
    assert list(frame) == ["energy", "seconds", "energy_", "noise_std", "status", "failure", "seconds_"]
    np.testing.assert_array_equal(frame["energy"], found.evaluations.x[:, 0])


def test_a_file_keeps_priors_that_have_a_name(found, tmp_path):
    found.save(tmp_path / "found.json")
    again = zhat.load(tmp_path / "found.json")
    np.testing.assert_array_equal(again.sample(50, seed=0), found.sample(50, seed=0))
    document = json.loads((tmp_path / "found.json").read_text())
    assert document["priors"]["shift"] == {"distribution": "norm", "arguments": ["0.0", "2.0"], "keywords": {}}
    truncated = zhat.evidence(lambda x: -x[0], priors={"a": st.truncnorm(-1, np.inf, loc=1)}, budget=8, seed=0)
    truncated.save(tmp_path / "truncated.json")
    again = zhat.load(tmp_path / "truncated.json")
    np.testing.assert_array_equal(again.sample(9, seed=0), truncated.sample(9, seed=0))


def test_a_prior_that_is_a_function_is_given_again(tmp_path):
    found = zhat.evidence(lambda x: -x[0], lambda u: 3.0 * u, 1, names=["rate"], budget=16, seed=0)
    found.save(tmp_path / "found.json")
    again = zhat.load(tmp_path / "found.json")
    assert again.log_z == found.log_z
    assert again.domain.names == ("rate",)
    with pytest.raises(zhat.InvalidArgument, match=r"zhat\.load\(path, prior_transform=\.\.\.\)"):
        again.sample(3)
    restored = zhat.load(tmp_path / "found.json", prior_transform=lambda u: 3.0 * u)
    np.testing.assert_array_equal(restored.sample(9, seed=1), found.sample(9, seed=1))
    as_priors = zhat.load(tmp_path / "found.json", priors={"rate": st.uniform(0, 3)})
    np.testing.assert_allclose(as_priors.sample(9, seed=1), found.sample(9, seed=1))
    with pytest.raises(zhat.InvalidArgument, match="this one gives other points"):
        zhat.load(tmp_path / "found.json", prior_transform=lambda u: 4.0 * u)


def test_a_file_with_its_own_domain_takes_no_other(found, tmp_path):
    found.save(tmp_path / "found.json")
    with pytest.raises(zhat.InvalidArgument, match="nothing: the file has its domain"):
        zhat.load(tmp_path / "found.json", priors={"shift": st.norm()})


def test_points_that_a_transform_could_not_give_survive_a_file(tmp_path):
    calls = [0]

    def moody(u):
        calls[0] += 1
        return u if calls[0] < 40 or calls[0] % 5 else u * math.nan

    found = zhat.evidence(lambda x: -x[0], moody, 1, budget=16, seed=0)
    found.save(tmp_path / "found.json")
    np.testing.assert_array_equal(zhat.load(tmp_path / "found.json").evaluations.x, found.evaluations.x)
    assert np.any(np.isnan(found.evaluations.x))
