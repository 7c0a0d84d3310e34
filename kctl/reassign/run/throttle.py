"""Replication throttles of a run, and how to restore the earlier values (KIP-73, KIP-113).

A replica is throttled if its broker has a rate (leader.replication.throttled.rate on the source, follower… on the
receiver) and its topic lists it (leader.replication.throttled.replicas, follower…: "0:1,0:2" is partition:broker, "*"
is all). Brokers throttle only replicas that are not in sync. Moves between log dirs have a rate per broker only.

The operator may use these settings too. So kctl records the earlier values, adds its entries to the lists, and at the
end restores each value that is still its own. Values that someone else changed in the meantime stay.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from kctl.base.deadline import Deadline
from kctl.configs.dynamic import Resource, Values, alter_dynamic, try_read_dynamic
from kctl.errors import InvalidFile, KctlError, NotFound, OperationFailed
from kctl.reassign.planner.assignment import Reassignment
from kctl.reassign.planner.batches import receivers_of

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient

LEADER_RATE = "leader.replication.throttled.rate"
FOLLOWER_RATE = "follower.replication.throttled.rate"
LOG_DIR_RATE = "replica.alter.log.dirs.io.max.bytes.per.second"
LEADER_REPLICAS = "leader.replication.throttled.replicas"
FOLLOWER_REPLICAS = "follower.replication.throttled.replicas"
RATES = (LEADER_RATE, FOLLOWER_RATE, LOG_DIR_RATE)
REPLICAS = (LEADER_REPLICAS, FOLLOWER_REPLICAS)
NAMES = (*RATES, *REPLICAS)

EVERY = "*"
_MAX_LIST = 30_000  # requests before Kafka 2.8 carry strings of at most 32,767 bytes
_VISIBLE_WITHIN_S = 10.0
_POLL_S = 0.2


@dataclass
class Throttle:
    """A throttle. before: the earlier values (None: not set). set: the values of kctl, with the same names.

    earlier_rates: rates that kctl set before the current one; brokers may still have one of these.
    """

    before: dict[Resource, Values] = field(default_factory=dict)
    set: dict[Resource, dict[str, str]] = field(default_factory=dict)
    earlier_rates: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.set)

    def to_json(self) -> dict[str, Any]:
        """Return {"resources": [{"kind", "name", "before": {}, "set": {}}], "earlier_rates": []} for a journal."""
        rows = [
            {"kind": r.kind, "name": r.name, "before": self.before[r], "set": values} for r, values in self.set.items()
        ]
        return {"resources": rows, "earlier_rates": list(self.earlier_rates)}

    @classmethod
    def from_json(cls, document: object) -> Throttle:
        """Parse a document of `to_json`. Raises InvalidFile for any other document."""
        try:
            return _from_json(document)
        except (KeyError, TypeError, ValueError, AttributeError) as exc:
            raise InvalidFile(
                f"the journal's throttles cannot be read ({exc})",
                hint="check the settings of brokers and topics: `kctl config describe brokers`",
            ) from None


def _from_json(document: Any) -> Throttle:
    throttle = Throttle(earlier_rates=tuple(_text(rate) for rate in document["earlier_rates"]))
    for row in document["resources"]:
        kind: Literal["topic", "broker"] = {"topic": "topic", "broker": "broker"}[row["kind"]]  # type: ignore[assignment]
        resource = Resource(kind, _text(row["name"]))
        if kind == "broker":
            int(resource.name)
        names = RATES if kind == "broker" else REPLICAS
        target = {name: _text(value) for name, value in row["set"].items()}
        before = {name: None if row["before"][name] is None else _text(row["before"][name]) for name in target}
        if unknown := target.keys() - set(names):
            raise ValueError(f"{resource} has {min(unknown)}")
        throttle.set[resource] = target
        throttle.before[resource] = before
    return throttle


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not a string")
    return value


# --- plan (pure) ----------------------------------------------------------------------------------------------------


def throttled_resources(reassignments: Iterable[Reassignment]) -> list[Resource]:
    """Return the brokers and topics whose settings throttle these moves, sorted."""
    return sorted(_rate_names(reassignments) | _entries(reassignments))


def plan_throttle(
    reassignments: Collection[Reassignment], rate_bytes: int, current: Mapping[Resource, Mapping[str, str | None]]
) -> Throttle:
    """Return the settings that limit each broker to `rate_bytes` per second, merged into the current settings.

    reassignments: with `before`. current: the settings of `throttled_resources`; resources that are missing, e.g. a
    broker that is down, get no settings. Moves that copy nothing need no throttle.
    """
    throttle = Throttle()
    for resource, names in _rate_names(reassignments).items():
        if resource in current:
            throttle.set[resource] = dict.fromkeys(sorted(names), str(rate_bytes))
            throttle.before[resource] = {name: current[resource].get(name) for name in sorted(names)}
    for resource, lists in _entries(reassignments).items():
        if resource not in current:
            continue
        for name, entries in sorted(lists.items()):
            before = current[resource].get(name)
            merged = merged_list(before, entries)
            if merged != before:
                throttle.set.setdefault(resource, {})[name] = merged
                throttle.before.setdefault(resource, {})[name] = before
    return throttle


def _rate_names(reassignments: Iterable[Reassignment]) -> dict[Resource, set[str]]:
    """Return broker → names of its rates: as source, as receiver, or for copies between log dirs."""
    rates: dict[int, set[str]] = {}
    for r in reassignments:
        adding = set(r.adding)
        for node in r.before or () if adding else ():
            rates.setdefault(node, set()).add(LEADER_RATE)
        for node in adding:
            rates.setdefault(node, set()).add(FOLLOWER_RATE)
        for node in set(receivers_of(r)) - adding if r.log_dirs is not None and r.before is not None else ():
            rates.setdefault(node, set()).add(LOG_DIR_RATE)
    return {Resource.broker(node): names for node, names in rates.items()}


def _entries(reassignments: Iterable[Reassignment]) -> dict[Resource, dict[str, list[str]]]:
    """Return topic → list entries: current replicas (each may be the leader), and added replicas."""
    entries: dict[Resource, dict[str, list[str]]] = {}
    for r in reassignments:
        adding = r.adding
        if adding:
            lists = entries.setdefault(Resource.topic(r.topic), {LEADER_REPLICAS: [], FOLLOWER_REPLICAS: []})
            lists[LEADER_REPLICAS] += [f"{r.partition}:{node}" for node in r.before or ()]
            lists[FOLLOWER_REPLICAS] += [f"{r.partition}:{node}" for node in adding]
    return entries


def merged_list(before: str | None, entries: Sequence[str]) -> str:
    """Return a list of throttled replicas with entries added, or "*" if the list gets too long."""
    listed = split_replicas(before)
    if EVERY in listed:
        return before or EVERY
    present = set(listed)
    text = ",".join([*listed, *(entry for entry in entries if entry not in present)])
    return text if len(text) <= _MAX_LIST else EVERY


def split_replicas(value: str | None) -> list[str]:
    """Return the entries of "0:1,0:2"; "*" is one entry, an unset list has none."""
    return [entry.strip() for entry in (value or "").split(",") if entry.strip()]


def merge_throttles(one: Throttle, other: Throttle) -> Throttle:
    """Merge two throttles. For resources in both, `other` has the values that are set, `one` the values before."""
    both = Throttle()
    for resource in (*one.set, *(resource for resource in other.set if resource not in one.set)):
        both.set[resource] = {**one.set.get(resource, {}), **other.set.get(resource, {})}
        both.before[resource] = {**other.before.get(resource, {}), **one.before.get(resource, {})}
    rates = {v for values in one.set.values() for name, v in values.items() if name in RATES}
    both.earlier_rates = tuple(dict.fromkeys((*one.earlier_rates, *sorted(rates), *other.earlier_rates)))
    return both


def without(throttle: Throttle, resources: Collection[Resource]) -> Throttle:
    """Return the throttle without some resources."""
    others = [resource for resource in throttle.set if resource not in resources]
    return replace(throttle, set={r: throttle.set[r] for r in others}, before={r: throttle.before[r] for r in others})


# --- changes --------------------------------------------------------------------------------------------------------


def read_throttles(client: ClusterClient, reassignments: Collection[Reassignment]) -> dict[Resource, Values]:
    """Return the settings that throttle these moves; missing brokers and topics are omitted.

    Raises the KctlError of the first unreadable resource.
    """
    return _read_existing(client, throttled_resources(reassignments))


def _read_existing(client: ClusterClient, resources: Collection[Resource]) -> dict[Resource, Values]:
    settings: dict[Resource, Values] = {}
    for resource, values in try_read_dynamic(client, resources, NAMES).items():
        if isinstance(values, KctlError):
            if isinstance(values, NotFound):
                continue
            raise values
        settings[resource] = values
    return settings


def read_current(client: ClusterClient, throttle: Throttle) -> dict[Resource, Values]:
    """Return the current settings of a throttle's resources; missing brokers and topics are omitted.

    Raises the KctlError of the first unreadable resource.
    """
    return _read_existing(client, list(throttle.set))


def set_throttle(client: ClusterClient, values: Mapping[Resource, Mapping[str, str]]) -> None:
    """Set the values, and wait until brokers report them. Idempotent.

    Raises OperationFailed with the resources that failed (details["resources"]); the others are set.
    """
    failed = _change(client, values)
    if failed:
        raise _failure("throttles could not be set", failed, hint="restore the throttles before a retry")


def restore_throttle(client: ClusterClient, throttle: Throttle) -> list[str]:
    """Restore the earlier values, and wait until brokers report them. Idempotent.

    Return a line for each setting that someone else changed in the meantime. Skip topics that were deleted. Raises
    OperationFailed with the resources that could not be restored (details["resources"]), e.g. a broker that is down;
    all others are restored.
    """
    current = try_read_dynamic(client, list(throttle.set), NAMES)
    failed: dict[Resource, KctlError] = {}
    readable: dict[Resource, Values] = {}
    for resource, values in current.items():
        if not isinstance(values, KctlError):
            readable[resource] = values
        elif not (resource.kind == "topic" and isinstance(values, NotFound)):
            failed[resource] = values
    changes, remarks = restoration(throttle, readable)
    failed |= _change(client, changes)
    if failed:
        raise _failure(
            "throttles could not be restored",
            failed,
            hint="the throttles stay as kctl set them: restore them when the broker is back",
        )
    return remarks


def restoration(
    throttle: Throttle, current: Mapping[Resource, Mapping[str, str | None]]
) -> tuple[dict[Resource, Values], list[str]]:
    """Return the values to write to restore the settings, and a line for each setting someone else changed. Pure.

    current: the settings of the resources that still exist. Brokers report changes slightly late, so values that look
    restored are written as well, which is harmless.
    """
    changes: dict[Resource, Values] = {}
    remarks: list[str] = []
    for resource, values in throttle.set.items():
        if resource not in current:
            continue
        for name, kctl_value in values.items():
            before, now = throttle.before[resource][name], current[resource].get(name)
            if name in RATES:
                is_unchanged = now in {kctl_value, before, *throttle.earlier_rates}
                target = before if is_unchanged else now
            else:
                target = without_kctl_entries(before, kctl_value, now)
                is_unchanged = same_list(now, kctl_value) or same_list(now, before)
            if not is_unchanged and target != before:
                remarks.append(_remark(resource, name, before, now, target))
            if is_unchanged or target != now:
                changes.setdefault(resource, {})[name] = target
    return changes, remarks


def without_kctl_entries(before: str | None, kctl_value: str, now: str | None) -> str | None:
    """Return the target of a list of throttled replicas: `before` if unchanged, else without kctl's entries."""
    if same_list(now, kctl_value) or same_list(now, before):
        return before
    added = set(split_replicas(kctl_value)) - set(split_replicas(before))
    listed = split_replicas(now)
    rest = [entry for entry in listed if entry not in added]
    if now is None or len(rest) == len(listed):
        return now  # no entry of kctl remains
    if sorted(rest) == sorted(split_replicas(before)):
        return before
    return ",".join(rest) or None


def same_list(one: str | None, other: str | None) -> bool:
    """Return True if two lists are equal in any order. An unset list differs from an empty one."""
    return (one is None) == (other is None) and sorted(split_replicas(one)) == sorted(split_replicas(other))


def _remark(resource: Resource, name: str, before: str | None, now: str | None, target: str | None) -> str:
    was = f"it was {setting_text(before)} before"
    if target != now:
        rest = setting_text(target)
        return f"{resource}: someone else changed {name}: kctl removed its own entries and left {rest}; {was}"
    if now is None:
        return f"{resource}: someone else deleted {name}; kctl left it unset; {was}"
    return f"{resource}: someone else changed {name} to {setting_text(now)}; kctl left the value as is; {was}"


def setting_text(value: str | None) -> str:
    """Return the value of a setting as text."""
    if value is None:
        return "not set"
    return f'"{value}"' if len(value) <= 80 else f'"{value[:77]}…"'


def _change(client: ClusterClient, changes: Mapping[Resource, Mapping[str, str | None]]) -> dict[Resource, KctlError]:
    """Write the values, and wait until brokers report them. Return the errors; missing topics are not errors."""
    failed = {r: e for r, e in alter_dynamic(client, changes).items() if not _is_deleted_topic(r, e)}
    deadline = Deadline(_VISIBLE_WITHIN_S)
    waiting = {r: values for r, values in changes.items() if values and r not in failed}
    while waiting:
        for resource, now in try_read_dynamic(client, list(waiting), NAMES).items():
            if isinstance(now, KctlError):
                if not _is_deleted_topic(resource, now):
                    failed[resource] = now
                del waiting[resource]
            elif all(now.get(name) == value for name, value in waiting[resource].items()):
                del waiting[resource]
        if waiting and deadline.expired:
            slow = OperationFailed(f"the change is not visible after {_VISIBLE_WITHIN_S:g} s")
            return failed | dict.fromkeys(waiting, slow)
        if waiting:
            time.sleep(_POLL_S)
    return failed


def _is_deleted_topic(resource: Resource, error: KctlError) -> bool:
    return resource.kind == "topic" and isinstance(error, NotFound)


def _failure(what: str, failed: Mapping[Resource, KctlError], *, hint: str) -> OperationFailed:
    first = min(failed)
    more = f" and {len(failed) - 1} more" if len(failed) > 1 else ""
    return OperationFailed(
        f"{what} on {first}{more}: {failed[first].message}",
        hint=hint,
        details={"resources": [{"kind": r.kind, "name": r.name, "error": failed[r].message} for r in sorted(failed)]},
    )
