"""An example of a study file, in which each key is explained."""

from __future__ import annotations


def template() -> str:
    """Return an example of a study file in which each key is explained."""
    return _TEMPLATE


_TEMPLATE = """\
# A study estimates log Z, the logarithm of the integral of exp(-inverse_temperature * energy(x)) over a box.
# Lines that begin with "# " and a key show what else can be set. Paths are relative to this file's folder.

[study]
# How many evaluations of the energy may be spent; those that fail count.
budget = 256

# One number above 0, or a list: log Z is then wanted at each of them.
inverse_temperature = 1.0

# "auto" chooses for itself. The others are "mc", "pc", "pc-mc", "mvs", "mvs-lmc" and "mvs-exact".
method = "auto"

# The standard deviation of the noise in the energies: 0.0 if they are exact, "learn" if you do not know it.
noise_std = 0.0

# "energy" if the noise has mean zero in the energy, "likelihood" if it leaves exp(-inverse_temperature * energy)
# right in the mean, as a particle filter does.
# noise_kind = "energy"

# The axes whose two ends are the same place, such as angles.
# periodic = ["phi"]

# The same seed gives the same points. Without one, it is drawn when the study is created.
# seed = 0

# Where the study is kept. Without this: beside this file, under its name with .db.
# database = "study.db"

# "rollback" where the database is on a network file system, "wal" elsewhere.
# journal = "wal"

# The study stops when more than this share of its evaluations fails.
# largest_failed_share = 0.5

[bounds]
# One line for each axis: its name, and the lowest and the highest value.
x = [-2.0, 2.0]
phi = [0.0, 6.283185307179586]

# Instead of [bounds], for the evidence of a model: priors, SciPy's distributions, one for each parameter.
#     [priors]
#     mu = {distribution = "norm", loc = 0, scale = 5}
#     tau = {distribution = "halfcauchy", scale = 5}

# What evaluates the energy: a Python function or a command. Leave [energy] out to evaluate elsewhere, such as in a
# lab: ask for points then, and tell the results.
[energy]
# "module:function" or "path/to/file.py:function". It takes a point and returns a number.
function = "energy.py:energy"

# What evaluations return: the "energy", or the "log_likelihood", which is its negative. With [priors] it must be said.
# quantity = "energy"

# Whether the function takes many points at once, one a row.
# vectorized = false

# Or a program with its arguments, in which the name of an axis in braces stands for its value.
# command = ["./simulate", "--x", "{x}", "--phi", "{phi}"]

# After how many seconds the command is ended, and counts as failed.
# timeout = 60.0

# How often a command that failed is tried again.
# retries = 0

# The folder below which each evaluation has a folder of its own, and whether those stay.
# folder = "runs"
# keep_folders = false

[run]
# How many evaluations run side by side.
workers = 1

# The address of a Dask scheduler that runs them instead.
# dask = "tcp://127.0.0.1:8786"

# A run begins no more evaluations after this time: seconds, or days, hours, minutes and seconds.
# max_time = "3h50m"
"""
