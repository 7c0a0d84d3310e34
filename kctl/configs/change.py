"""Changing configs of one resource: planned, checked by the brokers, done, and read back.

Everything of one call is one request (IncrementalAlterConfigs, KIP-339): all of it is done or nothing. What nobody
named stays as it is.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from kctl.base.config_values import fault_of, items, same
from kctl.base.deadline import Deadline
from kctl.base.outcomes import ItemResult
from kctl.cluster.config_resources import Resource
from kctl.configs.describe import UNKNOWN_TYPE, by_name, describe, describe_brokers_on_each, describe_each
from kctl.configs.dynamic import Items, alter_dynamic
from kctl.configs.keys import find_key, unknown
from kctl.configs.known_types import meant_by
from kctl.configs.model import OWN_SOURCE, Config
from kctl.configs.other_units import values_behind
from kctl.errors import KctlError, NotSupported, OutcomeUnknown, Refused, UsageError
from kctl.protocol.codes import ApiKey

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient

_READ_BACK_S = 15.0  # brokers hear of a change from ZooKeeper or the metadata log
_SETTLE_S = 3.0
_POLL_S = 0.1

Operation = Literal["set", "unset", "append", "subtract"]
# Brokers before 2.6 return no types; these configs are lists in all releases.
_LISTS = frozenset(
    {"cleanup.policy", "leader.replication.throttled.replicas", "follower.replication.throttled.replicas"}
)
_PLANNED: dict[Operation, ItemResult] = {
    "set": ItemResult.WOULD_SET,
    "unset": ItemResult.WOULD_UNSET,
    "append": ItemResult.WOULD_APPEND,
    "subtract": ItemResult.WOULD_SUBTRACT,
}


@dataclass(frozen=True, slots=True)
class Edit:
    """What shall be done to one config. value: None for unset; never shown for a sensitive one. file: the properties
    file that has it."""

    name: str
    operation: Operation
    value: str | None = field(default=None, repr=False)
    file: str | None = None


@dataclass(frozen=True, slots=True)
class ChangedConfig:
    """One config, before and after (planned: as asked for; done: as read back). Values are those that hold, wherever
    they are set; None when sensitive, or not set on `brokers`.

    result: «would set», «set», «would unset», «unset», «appended» …, or «unchanged».
    """

    resource: str
    name: str
    result: ItemResult
    before: str | None
    before_source: str | None
    after: str | None
    after_source: str | None
    sensitive: bool


@dataclass(frozen=True, slots=True)
class Plan:
    """rows: for each edit, in the order given. edits: those that change something."""

    resource: Resource
    rows: list[ChangedConfig]
    edits: list[Edit]
    before: Mapping[str, Config]


def plan_changes(
    client: ClusterClient, resource: Resource, make_edits: Callable[[Mapping[str, Config]], Sequence[Edit]]
) -> Plan:
    """What edits would do, checked here and then by the brokers (validate_only). Nothing is changed.

    make_edits: the edits, once the resource's configs are known: only then it is known what is a secret.

    Raises NotFound for an unknown config or resource, Refused for a value of another type, for one that a broker reads
    only when it starts, and for what the brokers refuse.
    """
    known = by_name(describe(client, resource))
    edits = make_edits(known)
    if any(edit.operation in {"append", "subtract"} for edit in edits):
        client.require(ApiKey.INCREMENTAL_ALTER_CONFIGS, 0, "--append and --subtract")
    check(resource, edits, known)
    before = {edit.name: find_key(known, edit.name) or _leftover(edit.name) for edit in edits}
    _check_appended(client, edits, before, resource)
    before |= _with_brokers_values(client, resource, edits, before)
    todo = [edit for edit in edits if not _holds(resource, edit, before[edit.name])]
    rows = [_planned(resource, edit, before[edit.name], changes=edit in todo) for edit in edits]
    if todo:
        failed = alter_dynamic(client, {resource: _changes(todo)}, validate_only=True)
        for error in failed.values():
            raise _without_secrets(error, todo, before)
    return Plan(resource, rows, todo, before)


def _check_appended(
    client: ClusterClient, edits: Sequence[Edit], before: Mapping[str, Config], resource: Resource
) -> None:
    """Raise NotSupported if the controller would fail: 2.3 appends only to a list that has a value of its own."""
    for edit in edits:
        bare = edit.operation in {"append", "subtract"} and before[edit.name].own(resource.kind) is None
        if bare and client.api_version(ApiKey.OFFSET_DELETE) is None:  # of 2.4
            raise NotSupported(
                f"{resource.path} has no {edit.name} of its own; brokers before 2.4 cannot {edit.operation} then",
                hint=f"set the whole list: kctl config set {resource.path} {edit.name}=VALUE",
            )


def _with_brokers_values(
    client: ClusterClient, resource: Resource, edits: Sequence[Edit], before: Mapping[str, Config]
) -> dict[str, Config]:
    """The configs that shall be unset and whose chain does not say what will hold then, with what a broker says."""
    if resource.kind != "topic":
        return {}
    behind = values_behind(client, [before[edit.name] for edit in edits if edit.operation == "unset"])
    return {name: replace(before[name], synonyms=(*before[name].synonyms, synonym)) for name, synonym in behind.items()}


def refuse_internal(resource: Resource) -> None:
    """Raise Refused for Kafka's own topics: with cleanup.policy=delete there, brokers delete what groups committed."""
    from kctl.cluster.topic_names import is_internal

    if resource.kind == "topic" and is_internal(resource.name):
        raise Refused(
            f"topic {resource.name} is Kafka's own: it holds the groups' offsets or transactions",
            hint="nothing was changed; --force changes its configs all the same",
        )


def check(resource: Resource, edits: Sequence[Edit], known: Mapping[str, Config]) -> None:
    """Raise what `plan_changes` says for edits that cannot be right. Pure."""
    found = {edit.name: find_key(known, edit.name) for edit in edits}
    # What is set and not known (of a plugin that is gone) can still be taken away.
    wrong = [e.name for e in edits if found[e.name] is None and e.operation != "unset"]
    if wrong:
        raise unknown(resource, wrong, known)
    fixed = [name for name, config in found.items() if config is not None and config.read_only]
    if fixed:
        raise Refused(
            f"{', '.join(fixed)}: a broker reads this only when it starts",
            hint="write it into server.properties and restart the broker",
        )
    for edit in edits:
        config = found[edit.name]
        if config is not None and edit.value is not None:
            _check_value(edit.name, edit.operation, edit.value, config)


def _check_value(name: str, operation: Operation, value: str, config: Config) -> None:
    if operation in ("append", "subtract"):
        if config.type == UNKNOWN_TYPE and name not in _LISTS:
            raise NotSupported(
                f"{name} may not be a list: these brokers do not report config types",
                hint=f"Kafka 2.6 or newer is needed; or replace the value: kctl config set with {name}=VALUE",
            )
        if config.type not in {"list", UNKNOWN_TYPE}:
            raise Refused(f"{name} is no list ({config.type})", hint=f"kctl config set with {name}=VALUE replaces it")
        if not items(value):
            raise UsageError(f"there is nothing to {operation} to {name}")
        return
    fault = fault_of(config.type, value)
    if fault is None:
        return
    raise Refused(
        f"{name} {fault}" + ("" if config.sensitive else f", not {value!r}"),
        hint=None if config.sensitive else meant_by(config.type, name, value),
    )


def _leftover(name: str) -> Config:
    return Config(name, None, None, None, "unknown", False, False, ())


def _holds(resource: Resource, edit: Edit, config: Config) -> bool:
    """Whether it is already as the edit wants it. Of a sensitive value only its absence is known."""
    own = config.own(resource.kind)
    if edit.operation == "unset":
        return own is None
    if config.sensitive:
        return False
    if edit.operation == "set":
        return own is not None and same(config.type, own.value, edit.value)
    there = items(own.value if own is not None else None)
    wanted = items(edit.value)
    if edit.operation == "append":
        return own is not None and all(item in there for item in wanted)
    return own is not None and not any(item in there for item in wanted)


def _changes(edits: Sequence[Edit]) -> dict[str, str | Items | None]:
    changes: dict[str, str | Items | None] = {}
    for edit in edits:
        if edit.operation in ("append", "subtract"):
            changes[edit.name] = Items(",".join(items(edit.value)), edit.operation == "append")
        else:
            changes[edit.name] = None if edit.value is None else edit.value.strip()
    return changes


def _planned(resource: Resource, edit: Edit, config: Config, *, changes: bool) -> ChangedConfig:
    result = _PLANNED[edit.operation] if changes else ItemResult.UNCHANGED
    row = _row(resource, edit.name, result, config, config)
    if not changes:
        return row
    after, source = _expected(resource, edit, config)
    return replace(row, after=None if config.sensitive else after, after_source=source)


def _expected(resource: Resource, edit: Edit, config: Config) -> tuple[str | None, str | None]:
    """The value that will hold, and where it is set."""
    own = config.own(resource.kind)
    if edit.operation == "unset":
        below = [s for s in config.synonyms if s is not own]
        if resource.kind == "brokers" or not below:
            return None, None
        return below[0].value, below[0].source.value
    source = OWN_SOURCE[resource.kind].value
    if edit.operation == "set":
        return (edit.value or "").strip(), source
    # Without a value of its own a list grows from Kafka's default (ConfigAdminManager.prepareIncrementalConfigs).
    there = items(own.value if own is not None else config.default)
    given = items(edit.value)
    if edit.operation == "append":
        return ",".join([*there, *(item for item in given if item not in there)]), source
    return ",".join(item for item in there if item not in given), source


def _row(resource: Resource, name: str, result: ItemResult, before: Config, after: Config) -> ChangedConfig:
    return ChangedConfig(
        resource.path,
        name,
        result,
        before.value,
        before.source.value if before.source else None,
        after.value,
        after.source.value if after.source else None,
        before.sensitive or after.sensitive,
    )


def _without_secrets(error: KctlError, edits: Sequence[Edit], known: Mapping[str, Config]) -> KctlError:
    """The error without a sensitive value that a broker may have repeated in it."""
    for edit in edits:
        if edit.value and known[edit.name].sensitive:
            error.message = error.message.replace(edit.value.strip(), "[hidden]")
    error.args = (error.message,)
    return error


def apply_changes(client: ClusterClient, plan: Plan, *, timeout_s: float) -> list[ChangedConfig]:
    """Do what was planned, and wait until the brokers show it: the rows as read back.

    Raises what a broker refuses; OutcomeUnknown without an answer, or when the change was taken and is not seen.
    """
    resource = plan.resource
    if not plan.edits:
        return plan.rows
    for error in alter_dynamic(client, {resource: _changes(plan.edits)}).values():
        raise _without_secrets(error, plan.edits, plan.before)
    after = _read_back(client, plan, Deadline(min(timeout_s, _READ_BACK_S)))
    return [
        _row(resource, row.name, row.result.done, plan.before[row.name], after[row.name]) if row.result.planned else row
        for row in plan.rows
    ]


def _read_back(client: ClusterClient, plan: Plan, deadline: Deadline) -> dict[str, Config]:
    """The changed configs as the brokers show them. A broker lists a value before it works by it: both are awaited."""
    names = [edit.name for edit in plan.edits]
    patience = Deadline(deadline.at_most(_SETTLE_S).left_s)
    while True:
        found = describe_each(client, [plan.resource], names=names)[plan.resource]
        if isinstance(found, KctlError):
            raise _unread(plan.resource, found)
        known = by_name(found)
        after = {name: known.get(name) or _leftover(name) for name in names}
        late = [e.name for e in plan.edits if not _done(plan.resource, e, after[e.name])]
        if not late and plan.resource.kind == "brokers":
            try:
                late = _late_brokers(client, plan)
            except KctlError as exc:
                raise _unread(plan.resource, exc) from None
        if not late and (patience.expired or all(_settled(config) for config in after.values())):
            return after
        if deadline.expired:
            raise OutcomeUnknown(
                f"the brokers took the change of {plan.resource}, but do not show it yet: {', '.join(late)}",
                hint=f"kctl config get {plan.resource.path} {' '.join(names)} shows it when they do",
            )
        time.sleep(_POLL_S)


def _unread(resource: Resource, error: KctlError) -> OutcomeUnknown:
    text = f"the brokers took the change of {resource}, but it cannot be read back: {error.message}"
    return OutcomeUnknown(text, hint=error.hint)


def _late_brokers(client: ClusterClient, plan: Plan) -> list[str]:
    """The brokers that do not show a change for all brokers. One that went away reads it when it comes back."""
    late = []
    for node, found in describe_brokers_on_each(client, [edit.name for edit in plan.edits]).items():
        if isinstance(found, KctlError):
            continue
        known = by_name(found)
        if not all(_done(plan.resource, edit, known.get(edit.name) or _leftover(edit.name)) for edit in plan.edits):
            late.append(f"broker {node}")
    return late


def _done(resource: Resource, edit: Edit, config: Config) -> bool:
    if config.sensitive and edit.operation != "unset":
        return config.own(resource.kind) is not None
    return _holds(resource, edit, config)


def _settled(config: Config) -> bool:
    """Whether the value that a broker works by is the first of the chain, however either is written."""
    first = config.synonyms[0] if config.synonyms else None
    if config.sensitive or first is None or first.name != config.name:
        return True
    return same(config.type, config.value or "", first.value or "")
