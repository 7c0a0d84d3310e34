"""Quotas of clients: listing, setting, unsetting. DescribeClientQuotas, AlterClientQuotas (KIP-546)."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from kctl.access.words import quoted_name
from kctl.base.outcomes import ItemResult, raise_refusal
from kctl.base.suggestions import did_you_mean
from kctl.base.units import parse_size
from kctl.errors import KctlError, OperationFailed, UsageError
from kctl.protocol.codes import ErrorCode

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient

DEFAULT = "<default>"  # as kafka-configs shows the entity of all that have none of their own
TYPES = ("user", "client-id", "ip")
_BYTE_RATES = ("producer_byte_rate", "consumer_byte_rate")
CLIENT_KEYS = (*_BYTE_RATES, "request_percentage", "controller_mutation_rate")
IP_KEYS = ("connection_creation_rate",)
_EXACT, _IS_DEFAULT = 0, 1  # match types
_READ_BACK_S = 10.0
_POLL_S = 0.1

Quotas = dict["Entity", dict[str, float]]


@dataclass(frozen=True, order=True)
class Entity:
    """To whom a quota applies: a user, a client id, both together, or an address. DEFAULT: to all without their own."""

    user: str | None = None
    client_id: str | None = None
    ip: str | None = None

    @property
    def parts(self) -> dict[str, str]:
        """By Kafka's entity types."""
        return {t: n for t, n in zip(TYPES, (self.user, self.client_id, self.ip), strict=True) if n is not None}

    def __str__(self) -> str:
        """«user alice, client-id etl», «default user»."""
        return ", ".join(f"default {t}" if n == DEFAULT else f"{t} {quoted_name(n)}" for t, n in self.parts.items())

    @property
    def keys(self) -> tuple[str, ...]:
        """The quotas that it can have."""
        return IP_KEYS if self.ip is not None else CLIENT_KEYS


@dataclass(frozen=True)
class Quota:
    """entity: in words. user, client_id, ip: «<default>» for all without one of their own, null where it is not part of
    the entity. value: bytes a second, percent of a thread, mutations or connections a second."""

    entity: str
    user: str | None
    client_id: str | None
    ip: str | None
    key: str
    value: float


@dataclass(frozen=True)
class QuotaChange:
    """before, after: null where there is none. result: would set, would unset, unchanged, set, unset, failed (error
    says why)."""

    entity: str
    user: str | None
    client_id: str | None
    ip: str | None
    key: str
    before: float | None
    after: float | None
    result: ItemResult
    error: str | None = None


def entity(user: str | None, client_id: str | None, ip: str | None) -> Entity:
    """Raises UsageError for what is no entity."""
    found = Entity(user, client_id, ip)
    if not found.parts:
        raise UsageError("a quota is of a user, a client id or an address", hint="--user, --client-id, --ip …")
    if ip is not None and len(found.parts) > 1:
        raise UsageError("a quota of an address has no user and no client id")
    if "" in found.parts.values():
        raise UsageError("a user, client id or address of a quota has a name")
    return found


def parse_quota(text: str, of: Entity) -> tuple[str, float]:
    """«producer_byte_rate=10MB» → key and value. Raises UsageError."""
    key, equals, value = text.partition("=")
    check_key(key, of)
    if not equals:
        raise UsageError(f"{text!r} is no KEY=VALUE", hint=f"for example {of.keys[0]}=1000")
    try:
        number = float(parse_size(value.removesuffix("/s"))) if key in _BYTE_RATES else float(value)
    except (ValueError, UsageError):
        raise UsageError(f"{value!r} is no value of {key}", hint=_hint(key)) from None
    return key, check_value(key, number)


def check_value(key: str, number: float) -> float:
    """Raises UsageError for what brokers do not take."""
    if not 0 < number < 2**63 or (key not in {"request_percentage", "controller_mutation_rate"} and number % 1):
        raise UsageError(f"{number:g} is no value of {key}", hint=_hint(key))
    return number


def _hint(key: str) -> str:
    return "bytes a second, for example 1048576 or 10MB" if key in _BYTE_RATES else "a number above 0"


def check_key(key: str, of: Entity) -> None:
    """Raises UsageError for a key that the entity cannot have."""
    if key not in of.keys:
        hint = did_you_mean(key, of.keys) or f"one of {', '.join(of.keys)}"
        raise UsageError(f"{key!r} is no quota of {of}", hint=hint)


def list_quotas(client: ClusterClient, only: Entity | None = None) -> Quotas:
    """Quotas by entity, sorted. only: those of entities that have these parts, and perhaps more.

    Raises NotSupported, NotAuthorized.
    """
    from kafka.protocol.admin import DescribeClientQuotasRequest

    components = [
        DescribeClientQuotasRequest.ComponentData(
            entity_type=kind,
            match_type=_IS_DEFAULT if name == DEFAULT else _EXACT,
            match=None if name == DEFAULT else name,
        )
        for kind, name in (only.parts if only else {}).items()
    ]
    answer = client.send(DescribeClientQuotasRequest(components=components, strict=False))
    if answer.error_code:
        raise _error(answer.error_code, answer.error_message, "quotas", "DescribeConfigs")
    found = {_entity(row.entity): {value.key: value.value for value in row.values} for row in answer.entries or ()}
    return dict(sorted(found.items(), key=lambda item: [part or "" for part in vars(item[0]).values()]))


def _entity(parts: Iterable[Any]) -> Entity:
    names = {part.entity_type: DEFAULT if part.entity_name is None else part.entity_name for part in parts}
    return Entity(names.get("user"), names.get("client-id"), names.get("ip"))


def quota_rows(quotas: Mapping[Entity, Mapping[str, float]]) -> list[Quota]:
    """A row for each key."""
    return [
        Quota(str(who), who.user, who.client_id, who.ip, key, value)
        for who, values in quotas.items()
        for key, value in sorted(values.items())
    ]


def plan_quotas(
    present: Mapping[Entity, Mapping[str, float]], wanted: Mapping[Entity, Mapping[str, float | None]]
) -> list[QuotaChange]:
    """A row for each key that is to have a value, or none (None)."""
    rows = []
    for who, values in wanted.items():
        for key, after in values.items():
            before = present.get(who, {}).get(key)
            result = (
                ItemResult.UNCHANGED
                if before == after
                else ItemResult.WOULD_UNSET
                if after is None
                else ItemResult.WOULD_SET
            )
            rows.append(QuotaChange(str(who), who.user, who.client_id, who.ip, key, before, after, result))
    return rows


def carry_out(client: ClusterClient, plan: Sequence[QuotaChange], *, validate_only: bool = False) -> list[QuotaChange]:
    """Do what the plan says, and say what the cluster then has. validate_only: the brokers only check it.

    Raises what concerns all of it, when nothing was done.
    """
    todo: dict[Entity, list[QuotaChange]] = {}
    for row in plan:
        if row.result.planned:
            todo.setdefault(_of(row), []).append(row)
    if not todo:
        return list(plan)
    answer = client.send_to_controller(_request(todo, validate_only))
    errors = _errors(answer, todo)
    raise_refusal([errors[each] for each in todo if each in errors], asked=len(todo))
    there: Quotas | KctlError | None = None
    done = {who: rows for who, rows in todo.items() if who not in errors}
    if done and not validate_only:
        there = _read_back(client, done)
    return [_outcome(row, errors.get(_of(row)), there) if row.result.planned else row for row in plan]


def _of(row: QuotaChange) -> Entity:
    return Entity(row.user, row.client_id, row.ip)


def _request(todo: Mapping[Entity, Sequence[QuotaChange]], validate_only: bool) -> Any:
    from kafka.protocol.admin import AlterClientQuotasRequest

    entry = AlterClientQuotasRequest.EntryData
    return AlterClientQuotasRequest(
        entries=[
            entry(
                entity=[
                    entry.EntityData(entity_type=kind, entity_name=None if name == DEFAULT else name)
                    for kind, name in who.parts.items()
                ],
                ops=[entry.OpData(key=row.key, value=row.after or 0.0, remove=row.after is None) for row in rows],
            )
            for who, rows in todo.items()
        ],
        validate_only=validate_only,
    )


def _errors(answer: Any, todo: Mapping[Entity, object]) -> dict[Entity, KctlError]:
    said = {_entity(row.entity): row for row in answer.entries}
    errors: dict[Entity, KctlError] = {}
    for who in todo:
        row = said.get(who)
        if row is None:
            errors[who] = OperationFailed(f"quotas of {who}: the broker's answer does not name them")
        elif row.error_code:
            errors[who] = _error(row.error_code, row.error_message, f"quotas of {who}", "AlterConfigs")
    return errors


def _read_back(client: ClusterClient, done: Mapping[Entity, Sequence[QuotaChange]]) -> Quotas | KctlError:
    """What there is when the broker asked has seen the changes; a KRaft broker follows its controller."""
    deadline = time.monotonic() + _READ_BACK_S
    while True:
        try:
            there = list_quotas(client)
        except KctlError as exc:
            return exc
        seen = all(there.get(who, {}).get(row.key) == row.after for who, rows in done.items() for row in rows)
        if seen or time.monotonic() > deadline:
            return there
        time.sleep(_POLL_S)


def _outcome(row: QuotaChange, error: KctlError | None, there: Quotas | KctlError | None) -> QuotaChange:
    if error is not None:
        return replace(row, result=ItemResult.FAILED, error=error.message)
    if there is None:  # only checked
        return row
    if isinstance(there, KctlError):
        return replace(row, result=ItemResult.FAILED, error=f"taken, but could not be read back: {there.message}")
    found = there.get(_of(row), {}).get(row.key)
    if found != row.after:
        return replace(row, after=found, result=ItemResult.FAILED, error="taken, but not so when it was read back")
    return replace(row, result=row.result.done)


def _error(code: int, message: str | None, subject: str, operation: str) -> KctlError:
    from kctl.protocol.client import error_for

    denied = code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    hint = f"it needs an ACL for {operation} on the cluster" if denied else None
    return error_for(code, None if denied else message, subject=subject, hint=hint)
