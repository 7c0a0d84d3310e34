"""Configs set while brokers run, on a topic, a broker or all brokers, read and changed one by one (KIP-339, KIP-226).

Any broker reads and changes the configs of a topic. Those of a broker only that broker itself does
(ConfigAdminManager.validateResourceNameIsCurrentNodeId): what is set on a broker that is down stays until it is back.
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
_PER_REQUEST = 100  # a change is a few writes in ZooKeeper, one after the other


class Items(NamedTuple):
    """Items, separated by commas, to put into a list or (append False) to take out of it."""

    text: str
    append: bool


Values = dict[str, str | None]
Changes = Mapping[str, "str | Items | None"]


def read_dynamic(
    client: ClusterClient, resources: Collection[Resource], names: Collection[str]
) -> dict[Resource, Values]:
    """What is set on each resource itself: name → value, None for what is not (a default, or the whole cluster's).

    Raises the KctlError of the first resource that could not be read.
    """
    found: dict[Resource, Values] = {}
    for resource, values in try_read_dynamic(client, resources, names).items():
        if isinstance(values, KctlError):
            raise values
        found[resource] = values
    return found


def try_read_dynamic(
    client: ClusterClient, resources: Collection[Resource], names: Collection[str]
) -> dict[Resource, Values | KctlError]:
    """`read_dynamic`, with the failure of a resource as its value; NotFound: the topic or broker is not there."""
    wanted = sorted(names)
    return _read_topics(client, resources, wanted) | _read_brokers(client, resources, wanted)


def _read_topics(
    client: ClusterClient, resources: Collection[Resource], names: Sequence[str]
) -> dict[Resource, Values | KctlError]:
    topics = [resource.name for resource in resources if resource.kind == "topic"]
    if not topics:
        return {}
    found: dict[Resource, Values | KctlError] = {}
    brokers = client.metadata(()).brokers
    for topic, entries in fetch_topic_configs(client, topics, brokers, names=names, limit_s=client.timeout_s).items():
        if isinstance(entries, KctlError):
            found[Resource.topic(topic)] = entries
        else:
            own = {entry.name: entry.value for entry in entries if entry.source is ConfigSource.TOPIC}
            found[Resource.topic(topic)] = {name: own.get(name) for name in names}
    return found


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

    if isinstance(answer, KctlError):
        return answer
    if not answer.results:  # silently, when it may not be described
        return error_for(31, "its configs were not described", subject=f"broker {node}")
    (row,) = answer.results
    if row.error_code:
        return error_for(row.error_code, row.error_message, subject=f"broker {node}")
    own = {c.name: c.value for c in row.configs if c.config_source == _DYNAMIC_BROKER_SOURCE}
    return {name: own.get(name) for name in names}


def alter_dynamic(
    client: ClusterClient, changes: Mapping[Resource, Changes], *, validate_only: bool = False
) -> dict[Resource, KctlError]:
    """Set each value; None deletes it, so that a default holds again. Other configs stay. Returns what failed.

    To delete what is not set is no failure. OutcomeUnknown for a resource: read it again. validate_only: the brokers
    check everything and change nothing.
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
    requests = {int(resource.name): _request({resource: values}, validate_only) for resource, values in changes.items()}
    for node, answer in (client.send_each(requests, changes=not validate_only) if requests else {}).items():
        failed |= _errors(answer, [Resource.broker(node)])
    return failed


def _alter_others(
    client: ClusterClient, changes: Mapping[Resource, Changes], validate_only: bool
) -> dict[Resource, KctlError]:
    """Different topics through different brokers at once: each broker reads, changes and writes a topic as a whole."""
    failed: dict[Resource, KctlError] = {}
    resources = sorted(changes)
    pending = [resources[i : i + _PER_REQUEST] for i in range(0, len(resources), _PER_REQUEST)]
    able = sorted(client.metadata(()).brokers) if pending else []
    last: KctlError = ConnectionFailed("there is no broker that could change configs")
    while pending and able:
        asked = dict(zip(able, pending, strict=False))
        pending = pending[len(asked) :]
        requests = {node: _request({r: changes[r] for r in chunk}, validate_only) for node, chunk in asked.items()}
        for node, answer in client.send_each(requests, changes=not validate_only).items():
            if isinstance(answer, ConnectionFailed):  # it was not sent: another broker can do it as well
                able.remove(node)
                pending.append(asked[node])
                last = answer
            else:
                failed |= _errors(answer, asked[node])
    return failed | {resource: _named(resource, last) for chunk in pending for resource in chunk}


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


def _errors(answer: Any, asked: Sequence[Resource]) -> dict[Resource, KctlError]:
    from kctl.protocol.client import error_for

    if isinstance(answer, KctlError):
        return {resource: _named(resource, answer) for resource in asked}
    codes = {(row.resource_type, row.resource_name): (row.error_code, row.error_message) for row in answer.responses}
    failed: dict[Resource, KctlError] = {}
    for resource in asked:
        known = codes.get((resource.type_code, resource.name))
        code, message = known or (-1, "the broker's answer does not name it")
        if code:
            failed[resource] = error_for(
                code, message, subject=f"configs of {resource}", hint=right_hint("AlterConfigs", resource, code)
            )
    return failed


def _named(resource: Resource, error: KctlError) -> KctlError:
    cls = type(error) if type(error).__init__ is KctlError.__init__ else OperationFailed
    return cls(f"configs of {resource}: {error.message}", hint=error.hint, details=error.details)
