"""What a trial computes, column by column, and which column stands for which method under a protocol.

Readings that are cheap to have side by side are columns of one trial; that the baselines' factor for noise is left out,
and that Z is taken by another rule, need no column at all. So one run gives the numbers of every such reading.
"""

from __future__ import annotations

from collections.abc import Callable

from zhat.core.arrays import FloatArray
from zhat.reproduce.experiment import Series
from zhat.reproduce.protocol import READ_CHAINS, Chains, Grid, Protocol, Starts

BASELINES = ("mc", "pc", "pc-mc")
TWO_BATCHES = ("mvs-lmc", "mvs-exact")
#: What log Ẑ₁ of MVS is by the trapezoidal rule if it is exact otherwise, and what log Ẑ of two batches gains by that.
OTHER_MVS = "mvs-trapezoid"
OTHER_SHIFT = "shift-trapezoid"

_GRID_ENDINGS: dict[Grid, str] = {"centres": "", "corners": "-corner", "ends": "-ends"}


def chain_column(starts: Starts, chains: Chains) -> str:
    """Return the column of MVS-LMC with such chains."""
    words = [] if starts == "uniform" else [starts.split()[0]]
    return "-".join(["mvs-lmc", *words, *(["continued"] if chains == "continued" else [])])


def chain_columns(protocol: Protocol) -> dict[str, tuple[Starts, Chains]]:
    """Return every column of MVS-LMC that a trial has, and its chains."""
    wanted = dict.fromkeys([*READ_CHAINS, (protocol.chain_starts, protocol.chains)])
    return {chain_column(*chains): chains for chains in wanted}


def columns(series: Series, protocol: Protocol) -> tuple[str, ...]:
    """Return the columns of a trial: the methods of the series, as `OURS` reads them, and then the other readings.

    Trials whose Ẑ₁ is by the trapezoidal rule are not integrated exactly as well: each has surrogates of its own, and
    most of its time would go into that.
    """
    both_rules = protocol.first_integral == "exact"
    more = {
        "pc": [f"pc{ending}" for ending in _GRID_ENDINGS.values()],
        "pc-mc": [f"pc-mc{ending}" for ending in _GRID_ENDINGS.values()],
        "mvs": [OTHER_MVS] if both_rules else [],
        "mvs-lmc": [*chain_columns(protocol), *([OTHER_SHIFT] if both_rules else [])],
    }
    found = dict.fromkeys(series.methods)
    for method in series.methods:
        found |= dict.fromkeys(more.get(method, []))
    return tuple(found)


def column_of(method: str, reading: Protocol) -> str:
    """Return the column that stands for a method."""
    if method in ("pc", "pc-mc"):
        return method + _GRID_ENDINGS[reading.pc_grid]
    return chain_column(reading.chain_starts, reading.chains) if method == "mvs-lmc" else method


def log_z_of(
    method: str, column: Callable[[str], FloatArray], run: Protocol, reading: Protocol, log_bias: float
) -> FloatArray:
    """Return log Ẑ of a method under a reading of trials that were run under a protocol.

    Parameters
    ----------
    method
        One of the series' methods.
    column
        Returns the numbers of a column.
    run, reading
        The protocol of the trials, and how they are read; they have the same `Protocol.trial_settings`, but for
        the rule for Ẑ₁.
    log_bias
        λ²σ²/2, the logarithm of the factor by which noise in y biases e^{−λy}.
    """
    other_rule = reading.first_integral != run.first_integral
    if method == "mvs" and other_rule:
        return column(OTHER_MVS)
    values = column(column_of(method, reading))
    if method in TWO_BATCHES and other_rule:
        return values + column(OTHER_SHIFT)
    is_baseline = method in BASELINES or method.startswith("pc")
    return values + log_bias if is_baseline and not reading.baselines_corrected else values
