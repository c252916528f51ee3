"""The readings of one run: the protocol it was made under, and what else its trials can be read as."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

from zhat.reproduce.protocol import LITERAL, OURS, READ_CHAINS, Grid, Protocol

_GRIDS = {
    "centres": "PC at cell centres",
    "corners": "PC at lower corners",
    "ends": "PC on a grid with its ends",
}
_CHAINS = {
    ("uniform", "independent"): "chains from uniform starts",
    ("first batch", "independent"): "chains from random points of the first batch",
    ("lowest", "independent"): "chains from the lowest value of the first batch",
    ("lowest", "continued"): "one continued chain from the lowest value of the first batch",
}


def readings_of(run: Protocol) -> dict[str, Protocol]:
    """Return the other readings of trials that were run under a protocol, by what is read otherwise.

    First each silence by itself, then the protocols that come with zhat as far as these trials can be read so, and
    last what favours the paper's methods most.
    """
    found: dict[str, Protocol] = {}
    for grid in get_args(Grid):
        found[_GRIDS[grid]] = replace(run, pc_grid=grid)
    word = "not corrected" if run.baselines_corrected else "corrected"
    found[f"baselines {word} for noise"] = replace(run, baselines_corrected=not run.baselines_corrected)
    for starts, chains in READ_CHAINS:
        found[_CHAINS[starts, chains]] = replace(run, chain_starts=starts, chains=chains)
    if run.first_integral == "exact":
        found["Z exact"] = replace(run, truth="exact")
        found["Z and Ẑ₁ by the trapezoidal rule"] = replace(run, truth="trapezoid", first_integral="trapezoid")
    else:
        found["Z exact, but not Ẑ₁"] = replace(run, truth="exact")
        found["Z by the trapezoidal rule"] = replace(run, truth="trapezoid")
    for protocol in (OURS, LITERAL):
        found[f"all of these as in {protocol.name!r}"] = read_as(run, protocol)
    found["PC on a grid with its ends, baselines not corrected, one continued chain from the lowest value"] = replace(
        run, pc_grid="ends", baselines_corrected=False, chain_starts="lowest", chains="continued"
    )
    # What it was run under is told anyway, and one reading under two names is told once.
    named: dict[Protocol, str] = {run: ""}
    for name, reading in found.items():
        named.setdefault(reading, name)
    return {name: reading for reading, name in named.items() if name}


def read_as(run: Protocol, protocol: Protocol) -> Protocol:
    """Return trials of one protocol read as another, as far as they can be: their design and models stay.

    So does Ẑ₁ by the trapezoidal rule.
    """
    return replace(
        run,
        pc_grid=protocol.pc_grid,
        baselines_corrected=protocol.baselines_corrected,
        chain_starts=protocol.chain_starts,
        chains=protocol.chains,
        truth=protocol.truth,
        first_integral="trapezoid" if run.first_integral == "trapezoid" else protocol.first_integral,
    )
