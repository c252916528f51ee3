"""Domains as plain data, for files: a box's bounds, or a prior's distributions by name and numbers."""

from __future__ import annotations

import numbers
from typing import Any

from zhat.problem.domain import Box, Domain, axes_of
from zhat.problem.prior import IndependentPriors, Prior, PriorTransform
from zhat.util import fields


def domain_out(domain: Domain) -> dict[str, Any]:
    """Return what a file keeps of a domain. Of a prior that is a function, or of no known name, only the names."""
    document: dict[str, Any] = {"periodic": [domain.names[axis] for axis in domain.periodic]}
    if isinstance(domain, Box):
        pairs = zip(domain.names, domain.lower, domain.upper, strict=True)
        return {"bounds": {name: [low, high] for name, low, high in pairs}, **document}
    described = [_described(one) for one in domain.distributions] if isinstance(domain, IndependentPriors) else [None]
    if all(one is not None for one in described):
        return {"priors": dict(zip(domain.names, described, strict=True)), **document}
    return {"parameters": list(domain.names), "quantiles": list(domain.quantiles), **document}


def names_in(document: dict[str, Any]) -> tuple[str, ...]:
    """Return the names of the axes of the domain that a file keeps."""
    kept = next(document[key] for key in ("bounds", "priors", "parameters") if key in document)
    return tuple(map(str, kept))


def domain_in(document: dict[str, Any]) -> Box | Prior:
    """Return the domain that a file keeps; what it raises where it is none is among `zhat.fields.UNFIT`."""
    # Older files know of no periodic axes.
    periodic = document.get("periodic", ())
    if "bounds" in document:
        return Box.from_bounds(document["bounds"], periodic)
    if "priors" in document:
        described = fields.table("priors", document["priors"])
        return IndependentPriors.of({name: _made(name, one) for name, one in described.items()}, periodic)
    names = fields.texts("parameters", document["parameters"])
    if not names or not all(names) or len(set(names)) < len(names):
        raise fields.Misfit("parameters", names, "different names")
    # Older files know of no quantiles.
    quantiles = axes_of("quantiles", document.get("quantiles", ()), names)
    return PriorTransform(names, None, periodic=axes_of("periodic", periodic, names), quantiles=quantiles)


def _described(distribution: Any) -> dict[str, Any] | None:
    """Return a distribution as its name and numbers; None if SciPy could not make it again from these."""
    generic = getattr(distribution, "dist", distribution)
    if _of_name(getattr(generic, "name", None)) is None:
        return None
    given: tuple[Any, ...] = getattr(distribution, "args", ())
    # All of them in SciPy's order, so that norm(0, 5) and norm(loc=0, scale=5) are the same.
    names = [*(part.strip() for part in (generic.shapes or "").split(",") if part.strip()), "loc", "scale"]
    values = {"loc": 0.0, "scale": 1.0, **dict(zip(names, given, strict=False)), **getattr(distribution, "kwds", {})}
    if not all(isinstance(value, numbers.Real) for value in values.values()):
        return None
    # As words, because JSON has none for infinity.
    return {"distribution": generic.name, "arguments": [repr(float(values[name])) for name in names], "keywords": {}}


def _made(name: str, described: object) -> Any:
    document = fields.table(name, described)
    generic = _of_name(document["distribution"])
    if generic is None:
        raise fields.Misfit(name, document["distribution"], "the name of a continuous distribution of SciPy's")
    arguments = fields.column(name, document["arguments"]).tolist()
    keywords = {key: fields.any_number(key, value) for key, value in fields.table(name, document["keywords"]).items()}
    return generic(*arguments, **keywords)


def _of_name(name: object) -> Any:
    """Return SciPy's continuous distribution of a name; None if there is none."""
    # It takes long to import, and few domains need it.
    import scipy.stats

    found = getattr(scipy.stats, str(name), None)
    return found if isinstance(found, scipy.stats.rv_continuous) else None
