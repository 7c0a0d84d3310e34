"""Quotas as configs of users, client ids and IP addresses: read, explained, changed and compared like all others.

kafka-configs has them as entity types; brokers have separate requests for them (KIP-546).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from kctl.access.quotas import DEFAULT, QuotaChange, QuotaEntity, Quotas, carry_out, check_value, list_quotas
from kctl.base.config_values import comparable
from kctl.base.outcomes import ItemResult
from kctl.cluster.config_resources import Kind, Resource
from kctl.cluster.topic_configs import ConfigSource
from kctl.configs.model import OWN_SOURCE, Config, Synonym
from kctl.errors import KctlError, OperationFailed

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient

_LONG, _INT = str(2**63 - 1), str(2**31 - 1)
# org.apache.kafka.server.config.QuotaConfig: name → type, default, meaning
_CLIENT = {
    "consumer_byte_rate": ("long", _LONG, "Bytes per second that the client may fetch from a broker."),
    "controller_mutation_rate": (
        "double",
        _INT,
        "Partitions per second that may be created and deleted, with their topics or alone (KIP-599).",
    ),
    "producer_byte_rate": ("long", _LONG, "Bytes per second that the client may send to a broker."),
    "request_percentage": (
        "double", _INT,
        "Time on a broker's request and network threads, in percent of one thread (KIP-124).",
    ),
}  # fmt: skip
_ADDRESS = {"connection_creation_rate": ("int", _INT, "Connections per second that the address may open to a broker.")}
_EACH = " Enforced by each broker separately."
# Where a resource inherits from.
_BEHIND: dict[Kind, Kind] = {"user": "users", "client-id": "clients", "ip": "ips"}


def read_quotas(
    client: ClusterClient, resources: Collection[Resource], names: Collection[str] | None = None
) -> dict[Resource, list[Config] | KctlError]:
    """Return every quota of each resource, by name, or the error. names: only these."""
    try:
        quotas = list_quotas(client)
    except KctlError as exc:
        return dict.fromkeys(resources, exc)
    return {
        resource: [c for c in quota_configs(resource, quotas) if names is None or c.name in names]
        for resource in resources
    }


def quota_configs(resource: Resource, quotas: Quotas) -> list[Config]:
    """Return the configs of a user, client id or IP address, from all quotas. Pure."""
    configs = []
    for name, (type_, default, meaning) in _definitions(resource.kind).items():
        chain = [
            Synonym(name, _text(values[name]), OWN_SOURCE[each.kind])
            for each in _chain(resource)
            if name in (values := quotas.get(_entity(each), {}))
        ]
        chain.append(Synonym(name, default, ConfigSource.DEFAULT))
        first = chain[0]
        configs.append(
            Config(name, first.value, first.source, default, type_, False, False, tuple(chain), meaning + _EACH)
        )
    return configs


def pairs_with(resource: Resource, quotas: Quotas) -> list[QuotaEntity]:
    """Return the pairs of user and client id with quotas that the resource is part of. Pure."""
    parts = _entity(resource).parts.items()
    return [entity for entity in quotas if len(entity.parts) > 1 and parts <= entity.parts.items()]


def alter_quotas(
    client: ClusterClient, changes: Mapping[Resource, Mapping[str, str | None]], *, validate_only: bool
) -> dict[Resource, KctlError]:
    """Set each value (None: delete it), and return the failures."""
    failed: dict[Resource, KctlError] = {}
    for resource, values in changes.items():
        try:
            rows = carry_out(client, _changes(_entity(resource), values), validate_only=validate_only)
        except KctlError as exc:
            failed[resource] = exc
            continue
        errors = [row.error for row in rows if row.error is not None]
        if errors:
            failed[resource] = OperationFailed(f"quotas of {resource}: {'; '.join(errors)}")
    return failed


def _changes(entity: QuotaEntity, values: Mapping[str, str | None]) -> list[QuotaChange]:
    rows = []
    for key, text in values.items():
        after = None if text is None else check_value(key, float(str(comparable("double", text))))
        result = ItemResult.WOULD_UNSET if after is None else ItemResult.WOULD_SET
        rows.append(QuotaChange(str(entity), entity.user, entity.client_id, entity.ip, key, None, after, result))
    return rows


def _definitions(kind: Kind) -> Mapping[str, tuple[str, str, str]]:
    return _ADDRESS if kind in ("ip", "ips") else _CLIENT


def _chain(resource: Resource) -> list[Resource]:
    behind = _BEHIND.get(resource.kind)
    return [resource] if behind is None else [resource, Resource(behind, "")]


def _entity(resource: Resource) -> QuotaEntity:
    name = resource.name or DEFAULT
    if resource.kind in ("user", "users"):
        return QuotaEntity(user=name)
    return QuotaEntity(client_id=name) if resource.kind in ("client-id", "clients") else QuotaEntity(ip=name)


def _text(value: float) -> str:
    return f"{value:.0f}" if value % 1 == 0 else repr(value)
