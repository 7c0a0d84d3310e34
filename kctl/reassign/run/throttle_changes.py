"""Changes by others to a throttle of kctl: detect them while it is on, and keep them when it is set again. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from kctl.base.config_values import same
from kctl.base.text import counted
from kctl.configs.dynamic import Resource
from kctl.reassign.run.throttle import (
    EVERY,
    RATES,
    Throttle,
    merged_list,
    same_list,
    setting_text,
    split_replicas,
    without_kctl_entries,
)

Current = Mapping[Resource, Mapping[str, str | None]]
ThrottleKey = tuple[Resource, str]


@dataclass
class Renewal:
    """A throttle to set again. throttle: as recorded in the journal; writes: values to set.

    remarks: a line for each setting by someone else that stays.
    """

    throttle: Throttle
    writes: dict[Resource, dict[str, str]] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Tampering:
    """A change by someone else to one setting of the throttle. removed: the value of kctl no longer applies."""

    line: str
    removed: bool


def renew(throttle: Throttle, rate_bytes: int, current: Current) -> Renewal:
    """Return the throttle to set again, perhaps with a new rate; settings by others stay.

    current: the settings of the resources that exist. A rate counts as kctl's if kctl set it, or if it is the earlier
    value; a removed rate is set again. kctl's entries are added to the current lists.
    """
    rates = {values[name] for values in throttle.set.values() for name in values if name in RATES}
    earlier = tuple(dict.fromkeys((*throttle.earlier_rates, *sorted(rates))))
    renewal = Renewal(Throttle(earlier_rates=earlier))
    for resource, name, kctl_value, before in _settings(throttle):
        now = current[resource].get(name) if resource in current else kctl_value
        if name in RATES:
            is_foreign = now is not None and not _is_one_of(now, (kctl_value, before, *earlier))
            value, restored = kctl_value if is_foreign else str(rate_bytes), None if now is None else before
        else:
            restored = without_kctl_entries(before, kctl_value, now)
            is_foreign = not same_list(restored, before)
            entries = _added_entries(kctl_value, before)
            value = EVERY if EVERY in entries else merged_list(restored, entries)
        if is_foreign:
            renewal.remarks.append(f"{resource}: someone else set {name} to {setting_text(now)}; kctl keeps that value")
        is_set = resource in current and (value == now if name in RATES else same_list(value, now))
        if not is_set and not (is_foreign and name in RATES):
            renewal.writes.setdefault(resource, {})[name] = value
        renewal.throttle.set.setdefault(resource, {})[name] = value
        renewal.throttle.before.setdefault(resource, {})[name] = restored
    return renewal


def tampering(throttle: Throttle, current: Current) -> dict[ThrottleKey, Tampering]:
    """Return the settings that differ from kctl's. current: the settings; missing resources are skipped."""
    changes: dict[ThrottleKey, Tampering] = {}
    for resource, name, kctl_value, before in _settings(throttle):
        if resource not in current:
            continue
        now = current[resource].get(name)
        change = (
            _rate_change(name, kctl_value, before, now, throttle)
            if name in RATES
            else _list_change(name, kctl_value, before, now)
        )
        if change is not None:
            changes[resource, name] = Tampering(f"{resource}: someone else {change[0]}", change[1])
    return changes


def is_off(throttle: Throttle, changes: Mapping[ThrottleKey, Tampering]) -> bool:
    """Return True if the whole throttle is off."""
    return all(
        (resource, name) in changes and changes[resource, name].removed for resource, name, *_ in _settings(throttle)
    )


def _settings(throttle: Throttle) -> Iterator[tuple[Resource, str, str, str | None]]:
    """Yield resource, name, kctl's value, and the value before."""
    for resource, values in throttle.set.items():
        for name, kctl_value in values.items():
            yield resource, name, kctl_value, throttle.before[resource][name]


def _is_one_of(now: str | None, values: tuple[str | None, ...]) -> bool:
    return any(same("long", now, each) for each in values)


def _added_entries(kctl_value: str, before: str | None) -> list[str]:
    earlier = set(split_replicas(before))
    return [entry for entry in split_replicas(kctl_value) if entry not in earlier]


def _rate_change(
    name: str, kctl_value: str, before: str | None, now: str | None, throttle: Throttle
) -> tuple[str, bool] | None:
    if same("long", now, kctl_value):
        return None
    if now is None:
        return f"removed {name}, which this run had set to {kctl_value}", True
    if same("long", now, before) and not _is_one_of(now, throttle.earlier_rates):
        return f"set {name} back to {now}; this run had set it to {kctl_value}", True
    return f"changed {name} from {kctl_value} to {now}", False


def _list_change(name: str, kctl_value: str, before: str | None, now: str | None) -> tuple[str, bool] | None:
    listed = set(split_replicas(now))
    entries = _added_entries(kctl_value, before)
    missing = [] if EVERY in listed else [entry for entry in entries if entry not in listed]
    if not missing:
        return None
    what = counted(len(missing), "replica")
    return f"removed {what} of this run from {name}", len(missing) == len(entries)
