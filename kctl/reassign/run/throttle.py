"""Throttles of replication while a plan is carried out, and putting everything back as it was (KIP-73, KIP-113).

A replica is throttled when its broker has a rate (leader.replication.throttled.rate where it is read from,
follower… where it is written to) and its topic lists it (leader.replication.throttled.replicas, follower…: «0:1,0:2» is
partition:broker, «*» is all). Brokers apply them only to replicas that are not in sync. A move between log dirs has a
rate of the broker alone.

An operator may have such settings too. So what stood there before is kept, our entries are added to theirs, and in the
end each value that is still ours goes back to what it was; what somebody else has changed meanwhile stays.
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
_LONGEST = 30_000  # requests before Kafka 2.8 carry texts of at most 32,767 bytes
_SEEN_WITHIN_S = 10.0
_POLL_S = 0.2


@dataclass
class Throttle:
    """before: what was set on the resources (None: nothing). set: what kctl sets, of the same names.

    earlier_rates: what kctl had set as rates before they were changed; a broker may still have one of them.
    """

    before: dict[Resource, Values] = field(default_factory=dict)
    set: dict[Resource, dict[str, str]] = field(default_factory=dict)
    earlier_rates: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.set)

    def to_json(self) -> dict[str, Any]:
        """For a journal: {"resources": [{"kind", "name", "before": {}, "set": {}}], "earlier_rates": []}."""
        rows = [
            {"kind": r.kind, "name": r.name, "before": self.before[r], "set": values} for r, values in self.set.items()
        ]
        return {"resources": rows, "earlier_rates": list(self.earlier_rates)}

    @classmethod
    def from_json(cls, document: object) -> Throttle:
        """Raises InvalidFile for anything that `to_json` does not write."""
        try:
            return _from_json(document)
        except (KeyError, TypeError, ValueError, AttributeError) as exc:
            raise InvalidFile(
                f"the journal's throttles cannot be read ({exc})",
                hint="look at the brokers' and topics' own: kafka-configs --describe",
            ) from None


def _from_json(document: Any) -> Throttle:
    throttle = Throttle(earlier_rates=tuple(_text(rate) for rate in document["earlier_rates"]))
    for row in document["resources"]:
        kind: Literal["topic", "broker"] = {"topic": "topic", "broker": "broker"}[row["kind"]]  # type: ignore[assignment]
        resource = Resource(kind, _text(row["name"]))
        if kind == "broker":
            int(resource.name)
        known = RATES if kind == "broker" else REPLICAS
        wanted = {name: _text(value) for name, value in row["set"].items()}
        before = {name: None if row["before"][name] is None else _text(row["before"][name]) for name in wanted}
        if unknown := wanted.keys() - set(known):
            raise ValueError(f"{resource} has {min(unknown)}")
        throttle.set[resource] = wanted
        throttle.before[resource] = before
    return throttle


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no text")
    return value


# --- planning (pure) ------------------------------------------------------------------------------------------------


def throttled_resources(reassignments: Iterable[Reassignment]) -> list[Resource]:
    """The brokers and topics whose settings a throttle of these moves concerns, sorted."""
    wanted = _rate_names(reassignments) | _entries(reassignments)
    return sorted(wanted)


def plan_throttle(
    reassignments: Collection[Reassignment], rate_bytes: int, current: Mapping[Resource, Mapping[str, str | None]]
) -> Throttle:
    """The settings for moving at `rate_bytes` a second on each broker, merged into what there is.

    reassignments: with `before`. current: of `throttled_resources`, as read; a resource that is not in it (a broker
    that is down) gets nothing. Whatever copies nothing needs no throttle.
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
    """Broker → the rates that it needs: those that give, those that receive, those that copy between log dirs."""
    found: dict[int, set[str]] = {}
    for r in reassignments:
        adding = set(r.adding)
        for node in r.before or () if adding else ():
            found.setdefault(node, set()).add(LEADER_RATE)
        for node in adding:
            found.setdefault(node, set()).add(FOLLOWER_RATE)
        for node in set(receivers_of(r)) - adding if r.log_dirs is not None and r.before is not None else ():
            found.setdefault(node, set()).add(LOG_DIR_RATE)
    return {Resource.broker(node): names for node, names in found.items()}


def _entries(reassignments: Iterable[Reassignment]) -> dict[Resource, dict[str, list[str]]]:
    """Topic → the lists' entries: replicas that there are (each may be the leader), and those that are added."""
    found: dict[Resource, dict[str, list[str]]] = {}
    for r in reassignments:
        adding = r.adding
        if adding:
            lists = found.setdefault(Resource.topic(r.topic), {LEADER_REPLICAS: [], FOLLOWER_REPLICAS: []})
            lists[LEADER_REPLICAS] += [f"{r.partition}:{node}" for node in r.before or ()]
            lists[FOLLOWER_REPLICAS] += [f"{r.partition}:{node}" for node in adding]
    return found


def merged_list(before: str | None, entries: Sequence[str]) -> str:
    """Return a list of throttled replicas with entries added, or "*" if the list gets too long."""
    there = split_replicas(before)
    if EVERY in there:
        return before or EVERY
    known = set(there)
    text = ",".join([*there, *(entry for entry in entries if entry not in known)])
    return text if len(text) <= _LONGEST else EVERY


def split_replicas(value: str | None) -> list[str]:
    """«0:1,0:2» → its entries; «*» is one, nothing has none."""
    return [entry.strip() for entry in (value or "").split(",") if entry.strip()]


def joined(one: Throttle, other: Throttle) -> Throttle:
    """Both. Of a resource that both have, `other` says what is set, and `one` what was before."""
    both = Throttle()
    for resource in (*one.set, *(resource for resource in other.set if resource not in one.set)):
        both.set[resource] = {**one.set.get(resource, {}), **other.set.get(resource, {})}
        both.before[resource] = {**other.before.get(resource, {}), **one.before.get(resource, {})}
    rates = {v for values in one.set.values() for name, v in values.items() if name in RATES}
    both.earlier_rates = tuple(dict.fromkeys((*one.earlier_rates, *sorted(rates), *other.earlier_rates)))
    return both


def without(throttle: Throttle, resources: Collection[Resource]) -> Throttle:
    """The same for all other resources."""
    kept = [resource for resource in throttle.set if resource not in resources]
    return replace(throttle, set={r: throttle.set[r] for r in kept}, before={r: throttle.before[r] for r in kept})


# --- applying -------------------------------------------------------------------------------------------------------


def read_throttles(client: ClusterClient, reassignments: Collection[Reassignment]) -> dict[Resource, Values]:
    """What is set now on all that a throttle of these moves concerns; brokers and topics that are not there left out.

    Raises the KctlError of the first resource that cannot be read.
    """
    return _read(client, throttled_resources(reassignments))


def _read(client: ClusterClient, resources: Collection[Resource]) -> dict[Resource, Values]:
    found: dict[Resource, Values] = {}
    for resource, values in try_read_dynamic(client, resources, NAMES).items():
        if isinstance(values, KctlError):
            if isinstance(values, NotFound):
                continue
            raise values
        found[resource] = values
    return found


def read_set(client: ClusterClient, throttle: Throttle) -> dict[Resource, Values]:
    """What is set now where it was set; brokers and topics that are not there left out.

    Raises the KctlError of the first resource that cannot be read.
    """
    return _read(client, list(throttle.set))


def set_throttle(client: ClusterClient, values: Mapping[Resource, Mapping[str, str]]) -> None:
    """Set these, and wait until brokers say so. Doing it twice is harmless.

    Raises OperationFailed with the resources where it could not be set (details["resources"]); others have it.
    """
    failed = _change(client, values)
    if failed:
        raise _failure("throttles could not be set", failed, hint="restore the throttles before you try again")


def restore_throttle(client: ClusterClient, throttle: Throttle) -> list[str]:
    """Put back what was before, and wait until brokers say so. Doing it twice is harmless.

    Returns a line for each setting that somebody else has changed meanwhile, and what became of it. Topics that were
    deleted are passed over. Raises OperationFailed with the resources that could not be restored
    (details["resources"]), a broker that is down say: it keeps its setting until it is back; all others are restored.
    """
    current = try_read_dynamic(client, list(throttle.set), NAMES)
    failed: dict[Resource, KctlError] = {}
    known: dict[Resource, Values] = {}
    for resource, values in current.items():
        if not isinstance(values, KctlError):
            known[resource] = values
        elif not (resource.kind == "topic" and isinstance(values, NotFound)):
            failed[resource] = values
    changes, told = restoration(throttle, known)
    failed |= _change(client, changes)
    if failed:
        raise _failure(
            "throttles could not be restored", failed, hint="they stay as kctl set them: restore them when it is back"
        )
    return told


def restoration(
    throttle: Throttle, current: Mapping[Resource, Mapping[str, str | None]]
) -> tuple[dict[Resource, Values], list[str]]:
    """What to write so that all is as before, and a line for what somebody else changed. Pure.

    current: what is set now, of the resources that are still there. A broker tells of a change a moment late, so what
    looks restored already is written as well: that changes nothing where it is true.
    """
    changes: dict[Resource, Values] = {}
    told: list[str] = []
    for resource, values in throttle.set.items():
        if resource not in current:
            continue
        for name, ours in values.items():
            before, now = throttle.before[resource][name], current[resource].get(name)
            if name in RATES:
                still_ours = now in {ours, before, *throttle.earlier_rates}
                wanted = before if still_ours else now
            else:
                wanted = without_own(before, ours, now)
                still_ours = same_list(now, ours) or same_list(now, before)
            if not still_ours and wanted != before:
                told.append(_told(resource, name, before, now, wanted))
            if still_ours or wanted != now:
                changes.setdefault(resource, {})[name] = wanted
    return changes, told


def without_own(before: str | None, ours: str, now: str | None) -> str | None:
    """A list of throttled replicas as it is to be: `before` when it is still ours, else without what kctl added."""
    if same_list(now, ours) or same_list(now, before):
        return before
    added = set(split_replicas(ours)) - set(split_replicas(before))
    there = split_replicas(now)
    rest = [entry for entry in there if entry not in added]
    if now is None or len(rest) == len(there):
        return now  # nothing of ours is left in it
    if sorted(rest) == sorted(split_replicas(before)):
        return before
    return ",".join(rest) or None


def same_list(one: str | None, other: str | None) -> bool:
    """Not set is not the same as set to nothing."""
    return (one is None) == (other is None) and sorted(split_replicas(one)) == sorted(split_replicas(other))


def _told(resource: Resource, name: str, before: str | None, now: str | None, wanted: str | None) -> str:
    was = f"it was {shown(before)} before"
    if wanted != now:
        return f"{resource}: someone else changed {name}: kctl removed its own entries and left {shown(wanted)}; {was}"
    if now is None:
        return f"{resource}: someone else deleted {name}; kctl left it unset; {was}"
    return f"{resource}: someone else changed {name} to {shown(now)}; kctl left the value as is; {was}"


def shown(value: str | None) -> str:
    """Return the value of a setting as text."""
    if value is None:
        return "not set"
    return f"«{value}»" if len(value) <= 80 else f"«{value[:77]}…»"


def _change(client: ClusterClient, changes: Mapping[Resource, Mapping[str, str | None]]) -> dict[Resource, KctlError]:
    """Write, and read until it is there. What failed; a topic that is not there (any more) is no failure."""
    failed = {r: e for r, e in alter_dynamic(client, changes).items() if not _gone(r, e)}
    deadline = Deadline(_SEEN_WITHIN_S)
    waiting = {r: values for r, values in changes.items() if values and r not in failed}
    while waiting:
        for resource, now in try_read_dynamic(client, list(waiting), NAMES).items():
            if isinstance(now, KctlError):
                if not _gone(resource, now):
                    failed[resource] = now
                del waiting[resource]
            elif all(now.get(name) == value for name, value in waiting[resource].items()):
                del waiting[resource]
        if waiting and deadline.expired:
            slow = OperationFailed(f"it was changed, but does not show the change after {_SEEN_WITHIN_S:g} s")
            return failed | dict.fromkeys(waiting, slow)
        if waiting:
            time.sleep(_POLL_S)
    return failed


def _gone(resource: Resource, error: KctlError) -> bool:
    return resource.kind == "topic" and isinstance(error, NotFound)


def _failure(what: str, failed: Mapping[Resource, KctlError], *, hint: str) -> OperationFailed:
    first = min(failed)
    more = f" and {len(failed) - 1} more" if len(failed) > 1 else ""
    return OperationFailed(
        f"{what} on {first}{more}: {failed[first].message}",
        hint=hint,
        details={"resources": [{"kind": r.kind, "name": r.name, "error": failed[r].message} for r in sorted(failed)]},
    )
