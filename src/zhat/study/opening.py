"""Opening a study with settings: those that are given must be the stored ones, but for what may change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from zhat.core.arrays import FloatArray
from zhat.errors import InvalidArgument, SettingsDiffer
from zhat.estimators.settings import Settings
from zhat.problem.domain import Bounds, PeriodicAxes
from zhat.problem.energy import quantity_of
from zhat.problem.prior import Transform
from zhat.problem.task import NoiseKind
from zhat.study.domains import reopened
from zhat.study.store import Store
from zhat.study.stored_settings import Unset, differences, given_or, settings_in, settings_out


def refuse_noise_function(noise_std: Any) -> None:
    """Refuse what no file keeps."""
    if callable(noise_std):
        wanted = "a number, or None to learn it; noise that differs is told with each value, as (y, std)"
        raise InvalidArgument("noise_std", noise_std, wanted)


def settings_with(
    stored: Settings,
    *,
    bounds: Bounds | Unset,
    inverse_temperature: float | Sequence[float] | FloatArray | Unset,
    budget: int | Unset,
    noise_std: float | None | Unset,
    method: str | Unset,
    seed: int | None | Unset,
    priors: Mapping[str, Any] | None,
    prior_transform: Transform | None,
    quantity: str | Unset,
    noise_kind: NoiseKind | Unset,
    periodic: PeriodicAxes | Unset,
    largest_failed_share: float | Unset,
) -> Settings:
    """Return the stored settings with those that are given in their place."""
    refuse_noise_function(noise_std)
    given_bounds = None if isinstance(bounds, Unset) else bounds
    given_axes = None if isinstance(periodic, Unset) else periodic
    temperatures = [stored.inverse_temperature, *stored.others]
    return Settings.of(
        reopened(stored.domain, given_bounds, given_axes, priors, prior_transform),
        temperatures if isinstance(inverse_temperature, Unset) else inverse_temperature,
        given_or(budget, stored.budget),
        given_or(noise_std, stored.noise_std),
        given_or(method, stored.method_text or stored.estimator),
        stored.seed if seed is None else given_or(seed, stored.seed),
        noise_kind=given_or(noise_kind, stored.noise_kind),
        rkhs_norm=stored.rkhs_norm,
        rkhs_kernel=None if stored.rkhs_norm is None else stored.rkhs_kernel,
        largest_failed_share=given_or(largest_failed_share, stored.largest_failed_share),
        quantity=quantity_of(given_or(quantity, stored.quantity.name), with_prior=True),
    )


def agreed(store: Store, read_only: bool, **given: Any) -> Settings:
    """Return the settings of a study, with those that are given if they may be; what may change is stored."""
    stored = settings_in(store.settings(), store.path)
    wanted = settings_with(stored, **given)
    old, new = settings_out(stored), settings_out(wanted)
    if unequal := differences(old, new):
        raise SettingsDiffer(f"{store.path} was made with other settings: {'; '.join(unequal)}")
    if new["hash"] != old["hash"] and not read_only:
        store.set_settings(new)
    return wanted
