"""Estimates that no run came to, for tests of what is made of them."""

from dataclasses import fields, replace

from zhat import Estimate


def altered(estimate: Estimate, **changes: object) -> Estimate:
    """Return an estimate with other numbers in its finding or its settings, whichever has them."""
    of_finding = {field.name for field in fields(estimate.finding)}
    finding = {name: value for name, value in changes.items() if name in of_finding}
    settings = {name: value for name, value in changes.items() if name not in of_finding}
    return replace(
        estimate, finding=replace(estimate.finding, **finding), settings=replace(estimate.settings, **settings)
    )
