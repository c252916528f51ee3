"""Settings as a study keeps them: plain JSON, and how two of them differ."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, TypeVar

import numpy as np

from zhat.core.gp.kernels import Kernel
from zhat.errors import InvalidArgument
from zhat.estimators.norm import stored_shape
from zhat.estimators.registry import text_of
from zhat.estimators.settings import Settings
from zhat.problem.energy import ENERGY, quantity_of
from zhat.problem.stored_domain import domain_in, domain_out
from zhat.study.damage import damaged
from zhat.util import fields

#: Settings that say nothing of what is estimated: a study may be opened with others.
EXECUTION_KEYS = ("largest_failed_share",)

_T = TypeVar("_T")


class Unset:
    """Stands for a setting that was not given."""

    def __repr__(self) -> str:
        """Return what a reader of a signature should see."""
        return "<as stored>"


UNSET: Final = Unset()


def given_or(given: _T | Unset, stored: _T) -> _T:
    """Return a setting that was given, or the stored one."""
    return stored if isinstance(given, Unset) else given


def settings_out(settings: Settings) -> dict[str, Any]:
    """Return settings as a table for JSON, with a hash that shows whether anything was changed since."""
    kernel = settings.rkhs_kernel
    lengthscale = np.array(kernel.lengthscale).tolist()
    method = settings.method_text or text_of(settings.estimator)
    if method is None:
        wanted = "a text that leads to it, as a study keeps a method as text: a name, or 'module:attribute'"
        raise InvalidArgument("method", settings.estimator, wanted)
    document: dict[str, Any] = {
        **domain_out(settings.domain),
        "inverse_temperature": [settings.inverse_temperature, *settings.others],
        "budget": settings.budget,
        "noise_std": settings.noise_std,
        "noise_kind": settings.noise_kind,
        "method": method,
        "seed": settings.seed,
        "rkhs_norm": settings.rkhs_norm,
        # JSON has no infinity.
        "rkhs_kernel": {"nu": str(kernel.nu), "lengthscale": lengthscale, "scale": kernel.scale},
        "largest_failed_share": settings.largest_failed_share,
        "quantity": settings.quantity.name,
    }
    return {**document, "hash": _hash(document)}


def settings_in(document: dict[str, Any], path: str | os.PathLike[str]) -> Settings:
    """Return the settings that a study keeps."""
    given = dict(document)
    if given.pop("hash", None) != _hash(given):
        raise damaged(Path(path), "its settings are not those it was made with")
    try:
        return _settings_in(given)
    except fields.UNFIT as error:
        raise damaged(Path(path), f"its settings cannot be used, {type(error).__name__}: {error}") from None


def _settings_in(given: dict[str, Any]) -> Settings:
    kernel = fields.table("rkhs_kernel", given["rkhs_kernel"])
    lengthscale = kernel["lengthscale"]
    lengths = tuple(lengthscale) if isinstance(lengthscale, list) else lengthscale
    fields.whole("budget", given["budget"], at_least=1)
    fields.seed("seed", given["seed"])
    found = Settings.of(
        domain_in(given),
        given["inverse_temperature"],
        given["budget"],
        given["noise_std"],
        fields.words("method", given["method"]),
        given["seed"],
        noise_kind=given["noise_kind"],
        rkhs_norm=given["rkhs_norm"],
        largest_failed_share=given["largest_failed_share"],
        # Older studies know of energies only.
        quantity=quantity_of(given.get("quantity", ENERGY.name), with_prior=False),
    )
    # Without a norm nobody may choose a kernel, but one is kept all the same.
    return replace(found, rkhs_kernel=Kernel(stored_shape(kernel["nu"]), lengths, kernel["scale"]))


def differences(stored: dict[str, Any], wanted: dict[str, Any]) -> list[str]:
    """Return in what two tables of settings differ that must not, a line each.

    The budget may grow, and what concerns only how a study is run may change. Names of axes stand for columns: in
    another order they are others.
    """
    may_differ = {"hash", *EXECUTION_KEYS} | ({"budget"} if wanted["budget"] > stored["budget"] else set())
    keys = [key for key in wanted if key not in may_differ and not _equal(stored.get(key), wanted[key])]
    return [f"{key} is {json.dumps(stored.get(key))}, not {json.dumps(wanted[key])}" for key in keys]


def _equal(first: object, second: object) -> bool:
    if isinstance(first, dict) and isinstance(second, dict):
        return list(first.items()) == list(second.items())
    return first == second


def _hash(document: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()
