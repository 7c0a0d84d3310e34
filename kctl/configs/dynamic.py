"""Read and change dynamic configs of topics, brokers and all brokers, one by one (KIP-339, KIP-226).

Any broker reads and changes topic configs. Only the broker itself reads and changes its own configs
(ConfigAdminManager.validateResourceNameIsCurrentNodeId): while a broker is down, its configs cannot be changed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from kctl.cluster.config_resources import BROKER_RESOURCE, QUOTA_KINDS, Resource, right_hint
from kctl.cluster.topic_configs import ConfigSource, fetch_topic_configs
from kctl.errors import ConnectionFailed, KctlError, OperationFailed

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient

__all__ = [
    "BROKER_RESOURCE",
    "Changes",
    "Items",
    "Resource",
    "Values",
    "alter_dynamic",
    "read_dynamic",
    "try_read_dynamic",
]

_DYNAMIC_BROKER_SOURCE = 2
_SET, _DELETE, _APPEND, _SUBTRACT = range(4)
_PER_REQUEST = 100  # each change takes several sequential writes in ZooKeeper


class Items(NamedTuple):
    """Comma-separated items to append to a list, or to remove from it (append False)."""

    text: str
    append: bool


Values = dict[str, str | None]
Changes = Mapping[str, "str | Items | None"]


def read_dynamic(
    client: ClusterClient, resources: Collection[Resource], names: Collection[str]
) -> dict[Resource, Values]:
    """Return what is set on each resource itself: name → value, None if not set there.

    Raises the KctlError of the first resource that could not be read.
    """
    results: dict[Resource, Values] = {}
    for resource, values in try_read_dynamic(client, resources, names).items():
        if isinstance(values, KctlError):
            raise values
        results[resource] = values
    return results


def try_read_dynamic(
    client: ClusterClient, resources: Collection[Resource], names: Collection[str]
) -> dict[Resource, Values | KctlError]:
    """Return the values like `read_dynamic`, but a KctlError for each failed resource; NotFound: it does not exist."""
    ordered = sorted(names)
    return _read_topics(client, resources, ordered) | _read_brokers(client, resources, ordered)


def _read_topics(
    client: ClusterClient, resources: Collection[Resource], names: Sequence[str]
) -> dict[Resource, Values | KctlError]:
    topics = [resource.name for resource in resources if resource.kind == "topic"]
    if not topics:
        return {}
    results: dict[Resource, Values | KctlError] = {}
    brokers = client.metadata(()).brokers
    for topic, entries in fetch_topic_configs(client, topics, brokers, names=names, limit_s=client.timeout_s).items():
        if isinstance(entries, KctlError):
            results[Resource.topic(topic)] = entries
        else:
            topic_values = {entry.name: entry.value for entry in entries if entry.source is ConfigSource.TOPIC}
            results[Resource.topic(topic)] = {name: topic_values.get(name) for name in names}
    return results


def _read_brokers(
    client: ClusterClient, resources: Collection[Resource], names: Sequence[str]
) -> dict[Resource, Values | KctlError]:
    from kafka.protocol.admin import DescribeConfigsRequest

    resource_class = DescribeConfigsRequest.DescribeConfigsResource
    requests = {
        int(resource.name): DescribeConfigsRequest(
            resources=[
                resource_class(
                    resource_type=BROKER_RESOURCE, resource_name=resource.name, configuration_keys=list(names)
                )
            ],
            include_synonyms=False,
            min_version=1,
        )
        for resource in resources
        if resource.kind == "broker"
    }
    answers = client.send_each(requests) if requests else {}
    return {Resource.broker(node): _broker_values(node, answer, names) for node, answer in answers.items()}


def _broker_values(node: int, answer: Any, names: Sequence[str]) -> Values | KctlError:
    from kctl.protocol.client import error_for
    from kctl.protocol.codes import ErrorCode

    if isinstance(answer, KctlError):
        return answer
    if not answer.results:  # brokers silently omit what the user may not describe
        return error_for(
            ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "its configs are missing in the response", subject=f"broker {node}"
        )
    (row,) = answer.results
    if row.error_code:
        return error_for(row.error_code, row.error_message, subject=f"broker {node}")
    broker_values = {c.name: c.value for c in row.configs if c.config_source == _DYNAMIC_BROKER_SOURCE}
    return {name: broker_values.get(name) for name in names}


def alter_dynamic(
    client: ClusterClient, changes: Mapping[Resource, Changes], *, validate_only: bool = False
) -> dict[Resource, KctlError]:
    """Set each value, and return the failures. None deletes a value, so that the inherited value applies.

    Other configs stay unchanged. Deleting a value that is not set succeeds. OutcomeUnknown for a resource: read it
    again. validate_only: the brokers validate everything and change nothing.
    """
    todo = {resource: values for resource, values in changes.items() if values}
    failed = _alter_brokers(client, {r: values for r, values in todo.items() if r.kind == "broker"}, validate_only)
    quotas = {r: {k: _text(v) for k, v in values.items()} for r, values in todo.items() if r.kind in QUOTA_KINDS}
    if quotas:
        from kctl.configs.quota_configs import alter_quotas

        failed |= alter_quotas(client, quotas, validate_only=validate_only)
    others = {r: values for r, values in todo.items() if r.kind != "broker" and r not in quotas}
    return failed | _alter_others(client, others, validate_only)


def _alter_brokers(
    client: ClusterClient, changes: Mapping[Resource, Changes], validate_only: bool
) -> dict[Resource, KctlError]:
    failed: dict[Resource, KctlError] = {}
    if client.target.controllers:  # the active controller changes the configs of all nodes
        for resource, values in changes.items():
            try:
                answer = client.send_to_quorum(_request({resource: values}, validate_only))
            except KctlError as exc:
                answer = exc
            failed |= _errors(answer, [resource])
        return failed
    requests = {int(resource.name): _request({resource: values}, validate_only) for resource, values in changes.items()}
    for node, answer in (client.send_each(requests, changes=not validate_only) if requests else {}).items():
        failed |= _errors(answer, [Resource.broker(node)])
    return failed


def _alter_others(
    client: ClusterClient, changes: Mapping[Resource, Changes], validate_only: bool
) -> dict[Resource, KctlError]:
    """Change topics through several brokers at once: a request reads and writes all configs of its topics."""
    failed: dict[Resource, KctlError] = {}
    resources = sorted(changes)
    pending = [resources[i : i + _PER_REQUEST] for i in range(0, len(resources), _PER_REQUEST)]
    usable = sorted(client.metadata(()).brokers) if pending else []
    last: KctlError = ConnectionFailed("no broker is available to change configs")
    while pending and usable:
        assigned = dict(zip(usable, pending, strict=False))
        pending = pending[len(assigned) :]
        requests = {node: _request({r: changes[r] for r in chunk}, validate_only) for node, chunk in assigned.items()}
        for node, answer in client.send_each(requests, changes=not validate_only).items():
            if isinstance(answer, ConnectionFailed):  # not sent: try another broker
                usable.remove(node)
                pending.append(assigned[node])
                last = answer
            else:
                failed |= _errors(answer, assigned[node])
    return failed | {resource: _with_resource(resource, last) for chunk in pending for resource in chunk}


def _request(changes: Mapping[Resource, Changes], validate_only: bool) -> Any:
    from kafka.protocol.admin import IncrementalAlterConfigsRequest

    resource_class = IncrementalAlterConfigsRequest.AlterConfigsResource
    config_class = resource_class.AlterableConfig
    return IncrementalAlterConfigsRequest(
        resources=[
            resource_class(
                resource_type=resource.type_code,
                resource_name=resource.name,
                configs=[
                    config_class(name=name, config_operation=_operation(value), value=_text(value))
                    for name, value in sorted(values.items())
                ],
            )
            for resource, values in changes.items()
        ],
        validate_only=validate_only,
    )


def _operation(value: str | Items | None) -> int:
    if isinstance(value, Items):
        return _APPEND if value.append else _SUBTRACT
    return _DELETE if value is None else _SET


def _text(value: str | Items | None) -> str | None:
    return value.text if isinstance(value, Items) else value


def _errors(answer: Any, resources: Sequence[Resource]) -> dict[Resource, KctlError]:
    from kctl.protocol.client import error_for

    if isinstance(answer, KctlError):
        return {resource: _with_resource(resource, answer) for resource in resources}
    codes = {
        (each.resource_type, each.resource_name): (each.error_code, each.error_message) for each in answer.responses
    }
    failed: dict[Resource, KctlError] = {}
    for resource in resources:
        row = codes.get((resource.type_code, resource.name))
        code, message = row or (-1, "missing in the broker's response")
        if code:
            failed[resource] = error_for(
                code, message, subject=f"configs of {resource}", hint=right_hint("AlterConfigs", resource, code)
            )
    return failed


def _with_resource(resource: Resource, error: KctlError) -> KctlError:
    cls = type(error) if type(error).__init__ is KctlError.__init__ else OperationFailed
    return cls(f"configs of {resource}: {error.message}", hint=error.hint, details=error.details)
