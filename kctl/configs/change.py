"""Change configs of one resource: plan, have the brokers validate the plan, apply it, and verify.

All changes go into one request (IncrementalAlterConfigs, KIP-339), which is applied completely or not at all. Other
configs stay unchanged.
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
from kctl.cluster.topic_configs import MIN_ISR
from kctl.configs.describe import UNKNOWN_TYPE, by_name, describe, describe_brokers_on_each, describe_each
from kctl.configs.dynamic import Items, alter_dynamic
from kctl.configs.keys import find_key, unknown
from kctl.configs.known_types import meant_by
from kctl.configs.model import OWN_SOURCE, Config
from kctl.configs.other_units import inherited_values
from kctl.errors import KctlError, NotSupported, OutcomeUnknown, Reason, Refused, UsageError
from kctl.protocol.codes import ApiKey

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient

_READ_BACK_S = 15.0  # brokers learn of a change through ZooKeeper or the metadata log
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
    """A change to one config.

    value: None for unset; never printed if sensitive. file: the properties file that it comes from.
    """

    name: str
    operation: Operation
    value: str | None = field(default=None, repr=False)
    file: str | None = None


@dataclass(frozen=True, slots=True)
class ChangedConfig:
    """One config, before and after (planned: as requested; done: as read back).

    Values are effective values, wherever they are set; None if sensitive, or not set on `brokers`. result: "would set",
    "set", "would unset", "unset", "appended" and so on, or "unchanged".
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
class ConfigPlan:
    """A planned change. rows: one for each edit, in order. edits: only those that change something."""

    resource: Resource
    rows: list[ChangedConfig]
    edits: list[Edit]
    before: Mapping[str, Config]


def plan_changes(
    client: ClusterClient, resource: Resource, make_edits: Callable[[Mapping[str, Config]], Sequence[Edit]]
) -> ConfigPlan:
    """Return the effect of edits, validated here and by the brokers (validate_only). Nothing is changed.

    make_edits: returns the edits for the current configs, which show which configs are sensitive. Raises NotFound for
    an unknown config or resource, Refused for a value of another type, for a config that brokers read only at startup,
    and for what the brokers reject.
    """
    configs_by_name = by_name(describe(client, resource))
    edits = make_edits(configs_by_name)
    if any(edit.operation in {"append", "subtract"} for edit in edits):
        client.require(ApiKey.INCREMENTAL_ALTER_CONFIGS, 0, "--append and --subtract")
    check(resource, edits, configs_by_name)
    before = {edit.name: find_key(configs_by_name, edit.name) or _undefined(edit.name) for edit in edits}
    _check_appended(client, edits, before, resource)
    before |= _with_inherited_values(client, resource, edits, before)
    todo = [edit for edit in edits if not _is_in_effect(resource, edit, before[edit.name])]
    rows = [_planned(resource, edit, before[edit.name], changes=edit in todo) for edit in edits]
    if todo:
        failed = alter_dynamic(client, {resource: _changes(todo)}, validate_only=True)
        for error in failed.values():
            raise _with_min_isr_hint(_without_secrets(error, todo, before), resource, todo)
    return ConfigPlan(resource, rows, todo, before)


def _with_min_isr_hint(error: KctlError, resource: Resource, edits: Sequence[Edit]) -> KctlError:
    """Return the error with the place where min.insync.replicas is set with eligible leader replicas (KIP-966).

    There is then one value for all brokers, which cannot be removed, and brokers have no value of their own
    (ConfigurationControlManager.isDisallowedBrokerMinIsrTransition, isDisallowedClusterMinIsrTransition).
    """
    of_min_isr = [edit.operation for edit in edits if edit.name == MIN_ISR]
    if not of_min_isr or error.reason != Refused.code:
        return error
    if resource.kind == "broker":
        error.hint = f"set it for all brokers: `kctl config set brokers {MIN_ISR}=N`"
    elif resource.kind == "brokers" and "unset" in of_min_isr:
        error.hint = f"set another value: `kctl config set brokers {MIN_ISR}=N`; Kafka's default is 1"
    return error


def _check_appended(
    client: ClusterClient, edits: Sequence[Edit], before: Mapping[str, Config], resource: Resource
) -> None:
    """Raise NotSupported if the controller would fail: 2.3 appends only to a list that is set on the resource."""
    for edit in edits:
        not_set = edit.operation in {"append", "subtract"} and before[edit.name].own(resource.kind) is None
        if not_set and client.api_version(ApiKey.OFFSET_DELETE) is None:  # an API of 2.4
            raise NotSupported(
                f"{edit.name} is not set on {resource.path}: brokers before 2.4 cannot {edit.operation} to it",
                hint=f"set the whole list: `kctl config set {resource.path} {edit.name}=VALUE`",
                reason=Reason.VERSION_UNSUPPORTED,
            )


def _with_inherited_values(
    client: ClusterClient, resource: Resource, edits: Sequence[Edit], before: Mapping[str, Config]
) -> dict[str, Config]:
    """Return configs to unset whose synonyms lack the inherited value, with that value added."""
    if resource.kind != "topic":
        return {}
    inherited = inherited_values(client, [before[edit.name] for edit in edits if edit.operation == "unset"])
    return {
        name: replace(before[name], synonyms=(*before[name].synonyms, synonym)) for name, synonym in inherited.items()
    }


def refuse_internal(resource: Resource) -> None:
    """Raise Refused for internal topics: with cleanup.policy=delete, brokers would delete committed offsets."""
    from kctl.cluster.topic_names import is_internal

    if resource.kind == "topic" and is_internal(resource.name):
        raise Refused(
            f"topic {resource.name} is internal: it holds committed offsets or transaction state",
            hint="nothing was changed; use --force to change its configs anyway",
            reason=Reason.INTERNAL_TOPIC,
        )


def check(resource: Resource, edits: Sequence[Edit], configs_by_name: Mapping[str, Config]) -> None:
    """Raise the errors of `plan_changes` for invalid edits. Pure."""
    configs = {edit.name: find_key(configs_by_name, edit.name) for edit in edits}
    # An unknown config that is set (e.g. of a removed plugin) can still be unset.
    undefined = [e.name for e in edits if configs[e.name] is None and e.operation != "unset"]
    if undefined:
        raise unknown(resource, undefined, configs_by_name)
    read_only = [name for name, config in configs.items() if config is not None and config.read_only]
    if read_only:
        raise Refused(
            f"{', '.join(read_only)}: brokers read this only at startup",
            hint="set it in server.properties and restart the broker",
            reason=Reason.IMPOSSIBLE,
        )
    for edit in edits:
        config = configs[edit.name]
        if config is not None and edit.value is not None:
            _check_value(edit.name, edit.operation, edit.value, config)


def _check_value(name: str, operation: Operation, value: str, config: Config) -> None:
    if operation in ("append", "subtract"):
        if config.type == UNKNOWN_TYPE and name not in _LISTS:
            raise NotSupported(
                f"{name} may not be a list: these brokers do not report config types",
                hint=f"requires Kafka 2.6; or replace the value: `kctl config set` with {name}=VALUE",
                reason=Reason.VERSION_UNSUPPORTED,
            )
        if config.type not in {"list", UNKNOWN_TYPE}:
            raise Refused(
                f"{name} is not a list ({config.type})",
                hint=f"use `kctl config set` with {name}=VALUE",
                reason=Reason.WRONG_TYPE,
            )
        if not items(value):
            raise UsageError(f"{name}: no items to {operation}")
        return
    fault = fault_of(config.type, value)
    if fault is None:
        return
    raise Refused(
        f"{name} {fault}" + ("" if config.sensitive else f", not {value!r}"),
        hint=None if config.sensitive else meant_by(config.type, name, value),
        reason=Reason.IMPOSSIBLE,
    )


def _undefined(name: str) -> Config:
    return Config(name, None, None, None, "unknown", False, False, ())


def _is_in_effect(resource: Resource, edit: Edit, config: Config) -> bool:
    """Return True if the config is already as the edit requests. For a sensitive config, only its absence is known."""
    current = config.own(resource.kind)
    if edit.operation == "unset":
        return current is None
    if config.sensitive:
        return False
    if edit.operation == "set":
        return current is not None and same(config.type, current.value, edit.value)
    present = items(current.value if current is not None else None)
    requested = items(edit.value)
    if edit.operation == "append":
        return current is not None and all(item in present for item in requested)
    return current is not None and not any(item in present for item in requested)


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
    """Return the expected effective value, and where it is set."""
    current = config.own(resource.kind)
    if edit.operation == "unset":
        below = [s for s in config.synonyms if s is not current]
        if resource.kind == "brokers" or not below:
            return None, None
        return below[0].value, below[0].source.value
    source = OWN_SOURCE[resource.kind].value
    if edit.operation == "set":
        return (edit.value or "").strip(), source
    # A list that is not set starts from Kafka's default (ConfigAdminManager.prepareIncrementalConfigs).
    present = items(current.value if current is not None else config.default)
    requested = items(edit.value)
    if edit.operation == "append":
        return ",".join([*present, *(item for item in requested if item not in present)]), source
    return ",".join(item for item in present if item not in requested), source


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


def _without_secrets(error: KctlError, edits: Sequence[Edit], configs_by_name: Mapping[str, Config]) -> KctlError:
    """Return the error with sensitive values hidden, which a broker may have repeated."""
    for edit in edits:
        if edit.value and configs_by_name[edit.name].sensitive:
            error.message = error.message.replace(edit.value.strip(), "[hidden]")
    error.args = (error.message,)
    return error


def apply_changes(client: ClusterClient, plan: ConfigPlan, *, timeout_s: float) -> list[ChangedConfig]:
    """Apply a plan, and wait until the brokers show it. Return the rows as read back.

    Raises the error of a broker that rejects the change; OutcomeUnknown if there is no response, or if an accepted
    change does not appear.
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


def _read_back(client: ClusterClient, plan: ConfigPlan, deadline: Deadline) -> dict[str, Config]:
    """Return the changed configs once brokers show them as synonyms, which change first, and as effective values."""
    names = [edit.name for edit in plan.edits]
    settle_deadline = Deadline(deadline.at_most(_SETTLE_S).left_s)
    while True:
        configs = describe_each(client, [plan.resource], names=names)[plan.resource]
        if isinstance(configs, KctlError):
            raise _unread(plan.resource, configs)
        configs_by_name = by_name(configs)
        after = {name: configs_by_name.get(name) or _undefined(name) for name in names}
        pending = [e.name for e in plan.edits if not _is_done(plan.resource, e, after[e.name])]
        if not pending and plan.resource.kind == "brokers":
            try:
                pending = _late_brokers(client, plan)
            except KctlError as exc:
                raise _unread(plan.resource, exc) from None
        if not pending and (settle_deadline.expired or all(_is_settled(config) for config in after.values())):
            return after
        if deadline.expired:
            raise OutcomeUnknown(
                f"the brokers accepted the change to {plan.resource}, but do not show it yet: {', '.join(pending)}",
                hint=f"check again with `kctl config get {plan.resource.path} {' '.join(names)}`",
            )
        time.sleep(_POLL_S)


def _unread(resource: Resource, error: KctlError) -> OutcomeUnknown:
    text = f"the brokers accepted the change to {resource}, but it is not verified: {error.message}"
    return OutcomeUnknown(text, hint=error.hint)


def _late_brokers(client: ClusterClient, plan: ConfigPlan) -> list[str]:
    """Return the brokers that do not show a change for all brokers. Unreachable ones read it when they return."""
    late = []
    for node, configs in describe_brokers_on_each(client, [edit.name for edit in plan.edits]).items():
        if isinstance(configs, KctlError):
            continue
        configs_by_name = by_name(configs)
        if not all(
            _is_done(plan.resource, edit, configs_by_name.get(edit.name) or _undefined(edit.name))
            for edit in plan.edits
        ):
            late.append(f"broker {node}")
    return late


def _is_done(resource: Resource, edit: Edit, config: Config) -> bool:
    if config.sensitive and edit.operation != "unset":
        return config.own(resource.kind) is not None
    return _is_in_effect(resource, edit, config)


def _is_settled(config: Config) -> bool:
    """Return True if the effective value is the first of the synonyms, however each is written."""
    first = config.synonyms[0] if config.synonyms else None
    if config.sensitive or first is None or first.name != config.name:
        return True
    return same(config.type, config.value or "", first.value or "")
