"""List, set and unset client quotas: DescribeClientQuotas, AlterClientQuotas (KIP-546)."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from kctl.access.acl_syntax import quoted_name
from kctl.base.outcomes import ItemResult, raise_refusal
from kctl.base.suggestions import did_you_mean
from kctl.base.units import parse_size
from kctl.errors import KctlError, OperationFailed, UsageError
from kctl.protocol.codes import ErrorCode

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient

DEFAULT = "<default>"  # shown by kafka-configs for the default entity
TYPES = ("user", "client-id", "ip")
_BYTE_RATES = ("producer_byte_rate", "consumer_byte_rate")
CLIENT_KEYS = (*_BYTE_RATES, "request_percentage", "controller_mutation_rate")
IP_KEYS = ("connection_creation_rate",)
_EXACT, _IS_DEFAULT = 0, 1  # match types
_READ_BACK_S = 10.0
_POLL_S = 0.1

Quotas = dict["QuotaEntity", dict[str, float]]


@dataclass(frozen=True, order=True)
class QuotaEntity:
    """The entity that a quota applies to: a user, a client id, both combined, or an IP address.

    DEFAULT as a name: all users, client ids or addresses without their own quota.
    """

    user: str | None = None
    client_id: str | None = None
    ip: str | None = None

    @property
    def parts(self) -> dict[str, str]:
        """Return the names by Kafka's entity type."""
        return {t: n for t, n in zip(TYPES, (self.user, self.client_id, self.ip), strict=True) if n is not None}

    def __str__(self) -> str:
        """Return "user alice, client-id etl" or "default user"."""
        return ", ".join(f"default {t}" if n == DEFAULT else f"{t} {quoted_name(n)}" for t, n in self.parts.items())

    @property
    def keys(self) -> tuple[str, ...]:
        """Return the quota keys that the entity supports."""
        return IP_KEYS if self.ip is not None else CLIENT_KEYS


@dataclass(frozen=True)
class Quota:
    """A quota of an entity.

    entity: the entity as text. user, client_id, ip: "<default>" for the default entity, null if not part of the entity.
    value: bytes per second, percent of a thread, mutations per second or connections per second.
    """

    entity: str
    user: str | None
    client_id: str | None
    ip: str | None
    key: str
    value: float


@dataclass(frozen=True)
class QuotaChange:
    """A change to a quota.

    before, after: null if not set. result: would set, would unset, unchanged, set, unset, failed (see error).
    """

    entity: str
    user: str | None
    client_id: str | None
    ip: str | None
    key: str
    before: float | None
    after: float | None
    result: ItemResult
    error: str | None = None


def selected_entity(user: str | None, client_id: str | None, ip: str | None) -> QuotaEntity:
    """Return the entity with these names. Raises UsageError if they cannot be combined."""
    entity = QuotaEntity(user, client_id, ip)
    if not entity.parts:
        raise UsageError("no user, client id or address specified", hint="set --user, --client-id or --ip")
    if ip is not None and len(entity.parts) > 1:
        raise UsageError("an IP address cannot be combined with a user or client id")
    if "" in entity.parts.values():
        raise UsageError("the user, client id or address is empty")
    return entity


def parse_quota(text: str, entity: QuotaEntity) -> tuple[str, float]:
    """Parse "producer_byte_rate=10MB" into key and value. Raises UsageError."""
    key, equals, value = text.partition("=")
    check_key(key, entity)
    if not equals:
        raise UsageError(f"{text!r} is not KEY=VALUE", hint=f"e.g. {entity.keys[0]}=1000")
    try:
        number = float(parse_size(value.removesuffix("/s"))) if key in _BYTE_RATES else float(value)
    except (ValueError, UsageError):
        raise UsageError(f"{value!r} is not a valid {key}", hint=_hint(key)) from None
    return key, check_value(key, number)


def check_value(key: str, number: float) -> float:
    """Return the number. Raises UsageError for a value that brokers reject."""
    if not 0 < number < 2**63 or (key not in {"request_percentage", "controller_mutation_rate"} and number % 1):
        raise UsageError(f"{number:g} is not a valid {key}", hint=_hint(key))
    return number


def _hint(key: str) -> str:
    return "use bytes per second, e.g. 1048576 or 10MB" if key in _BYTE_RATES else "use a number above 0"


def check_key(key: str, entity: QuotaEntity) -> None:
    """Raise UsageError for a key that the entity does not support."""
    if key not in entity.keys:
        hint = did_you_mean(key, entity.keys) or f"use one of {', '.join(entity.keys)}"
        raise UsageError(f"{key!r} is not a quota of {entity}", hint=hint)


def list_quotas(client: ClusterClient, only: QuotaEntity | None = None) -> Quotas:
    """Return the quotas by entity, sorted. Raises NotSupported, NotAuthorized.

    only: return only the quotas of entities that have these parts; the entities may have other parts as well.
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
    response = client.send(DescribeClientQuotasRequest(components=components, strict=False))
    if response.error_code:
        raise _error(response.error_code, response.error_message, "quotas", "DescribeConfigs")
    quotas = {_entity(row.entity): {value.key: value.value for value in row.values} for row in response.entries or ()}
    return dict(sorted(quotas.items(), key=lambda item: [part or "" for part in vars(item[0]).values()]))


def _entity(parts: Iterable[Any]) -> QuotaEntity:
    names = {part.entity_type: DEFAULT if part.entity_name is None else part.entity_name for part in parts}
    return QuotaEntity(names.get("user"), names.get("client-id"), names.get("ip"))


def quota_rows(quotas: Mapping[QuotaEntity, Mapping[str, float]]) -> list[Quota]:
    """Return one row per quota key."""
    return [
        Quota(str(entity), entity.user, entity.client_id, entity.ip, key, value)
        for entity, values in quotas.items()
        for key, value in sorted(values.items())
    ]


def plan_quotas(
    present: Mapping[QuotaEntity, Mapping[str, float]], goals: Mapping[QuotaEntity, Mapping[str, float | None]]
) -> list[QuotaChange]:
    """Return a planned row for each key. A goal of None unsets the quota."""
    rows = []
    for entity, values in goals.items():
        for key, after in values.items():
            before = present.get(entity, {}).get(key)
            result = (
                ItemResult.UNCHANGED
                if before == after
                else ItemResult.WOULD_UNSET
                if after is None
                else ItemResult.WOULD_SET
            )
            rows.append(QuotaChange(str(entity), entity.user, entity.client_id, entity.ip, key, before, after, result))
    return rows


def carry_out(client: ClusterClient, plan: Sequence[QuotaChange], *, validate_only: bool = False) -> list[QuotaChange]:
    """Carry out the plan, read the result back, and return it. validate_only: the brokers only validate.

    If all changes fail with the same error, nothing was changed, and that error is raised.
    """
    to_change: dict[QuotaEntity, list[QuotaChange]] = {}
    for row in plan:
        if row.result.planned:
            to_change.setdefault(_row_entity(row), []).append(row)
    if not to_change:
        return list(plan)
    response = client.send_to_controller(_request(to_change, validate_only))
    errors = _errors(response, to_change)
    raise_refusal([errors[each] for each in to_change if each in errors], requested=len(to_change))
    present: Quotas | KctlError | None = None
    changed = {entity: rows for entity, rows in to_change.items() if entity not in errors}
    if changed and not validate_only:
        present = _read_back(client, changed)
    return [_outcome(row, errors.get(_row_entity(row)), present) if row.result.planned else row for row in plan]


def _row_entity(row: QuotaChange) -> QuotaEntity:
    return QuotaEntity(row.user, row.client_id, row.ip)


def _request(to_change: Mapping[QuotaEntity, Sequence[QuotaChange]], validate_only: bool) -> Any:
    from kafka.protocol.admin import AlterClientQuotasRequest

    entry = AlterClientQuotasRequest.EntryData
    return AlterClientQuotasRequest(
        entries=[
            entry(
                entity=[
                    entry.EntityData(entity_type=kind, entity_name=None if name == DEFAULT else name)
                    for kind, name in entity.parts.items()
                ],
                ops=[entry.OpData(key=row.key, value=row.after or 0.0, remove=row.after is None) for row in rows],
            )
            for entity, rows in to_change.items()
        ],
        validate_only=validate_only,
    )


def _errors(response: Any, to_change: Mapping[QuotaEntity, object]) -> dict[QuotaEntity, KctlError]:
    results = {_entity(row.entity): row for row in response.entries}
    errors: dict[QuotaEntity, KctlError] = {}
    for entity in to_change:
        row = results.get(entity)
        if row is None:
            errors[entity] = OperationFailed(f"quotas of {entity}: the broker's response does not contain them")
        elif row.error_code:
            errors[entity] = _error(row.error_code, row.error_message, f"quotas of {entity}", "AlterConfigs")
    return errors


def _read_back(client: ClusterClient, changed: Mapping[QuotaEntity, Sequence[QuotaChange]]) -> Quotas | KctlError:
    """Return the quotas once the broker has applied the changes, or after a timeout; KRaft brokers lag."""
    deadline = time.monotonic() + _READ_BACK_S
    while True:
        try:
            present = list_quotas(client)
        except KctlError as exc:
            return exc
        applied = all(
            present.get(entity, {}).get(row.key) == row.after for entity, rows in changed.items() for row in rows
        )
        if applied or time.monotonic() > deadline:
            return present
        time.sleep(_POLL_S)


def _outcome(row: QuotaChange, error: KctlError | None, present: Quotas | KctlError | None) -> QuotaChange:
    if error is not None:
        return replace(row, result=ItemResult.FAILED, error=error.message)
    if present is None:  # validated only
        return row
    if isinstance(present, KctlError):
        return replace(row, result=ItemResult.FAILED, error=f"accepted, but could not be read back: {present.message}")
    value = present.get(_row_entity(row), {}).get(row.key)
    if value != row.after:
        return replace(
            row, after=value, result=ItemResult.FAILED, error="accepted, but has another value when read back"
        )
    return replace(row, result=row.result.done)


def _error(code: int, message: str | None, subject: str, operation: str) -> KctlError:
    from kctl.protocol.client import error_for

    denied = code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    hint = f"this requires {operation} on the cluster" if denied else None
    return error_for(code, None if denied else message, subject=subject, hint=hint)
