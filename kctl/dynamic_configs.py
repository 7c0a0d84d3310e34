"""Configs that are set on a topic or on one broker while it runs, read and changed one by one (KIP-339, KIP-226).

Any broker reads and changes the configs of a topic. Those of a broker only that broker itself does
(ConfigAdminManager.validateResourceNameIsCurrentNodeId): what is set on a broker that is down stays until it is back.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from kctl.errors import ConnectionFailed, KctlError, OperationFailed
from kctl.topics.configs import TOPIC_RESOURCE, ConfigSource, fetch_topic_configs

if TYPE_CHECKING:
    from kctl.client import ClusterClient

BROKER_RESOURCE = 4
_DYNAMIC_BROKER_SOURCE = 2
_SET, _DELETE = 0, 1
_PER_REQUEST = 100  # a change is a few writes in ZooKeeper, one after the other

Values = dict[str, str | None]
Changes = Mapping[str, str | None]


class Resource(NamedTuple):
    """A topic, or a broker by its id."""

    kind: Literal["topic", "broker"]
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"

    @classmethod
    def topic(cls, name: str) -> Resource:
        return cls("topic", name)

    @classmethod
    def broker(cls, node: int) -> Resource:
        return cls("broker", str(node))


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
    from kctl.client import error_for

    if isinstance(answer, KctlError):
        return answer
    if not answer.results:  # silently, when it may not be described
        return error_for(31, "its configs were not described", subject=f"broker {node}")
    (row,) = answer.results
    if row.error_code:
        return error_for(row.error_code, row.error_message, subject=f"broker {node}")
    own = {c.name: c.value for c in row.configs if c.config_source == _DYNAMIC_BROKER_SOURCE}
    return {name: own.get(name) for name in names}


def alter_dynamic(client: ClusterClient, changes: Mapping[Resource, Changes]) -> dict[Resource, KctlError]:
    """Set each value; None deletes it, so that a default holds again. Other configs stay. Returns what failed.

    To delete what is not set is no failure. OutcomeUnknown for a resource: read it again.
    """
    todo = {resource: values for resource, values in changes.items() if values}
    failed = _alter_brokers(client, {r: values for r, values in todo.items() if r.kind == "broker"})
    failed |= _alter_topics(client, {r: values for r, values in todo.items() if r.kind == "topic"})
    return failed


def _alter_brokers(client: ClusterClient, changes: Mapping[Resource, Changes]) -> dict[Resource, KctlError]:
    failed: dict[Resource, KctlError] = {}
    requests = {int(resource.name): _request({resource: values}) for resource, values in changes.items()}
    for node, answer in (client.send_each(requests) if requests else {}).items():
        failed |= _errors(answer, [Resource.broker(node)])
    return failed


def _alter_topics(client: ClusterClient, changes: Mapping[Resource, Changes]) -> dict[Resource, KctlError]:
    """Different topics through different brokers at once: each broker reads, changes and writes a topic as a whole."""
    failed: dict[Resource, KctlError] = {}
    resources = sorted(changes)
    pending = [resources[i : i + _PER_REQUEST] for i in range(0, len(resources), _PER_REQUEST)]
    able = sorted(client.metadata(()).brokers) if pending else []
    last: KctlError = ConnectionFailed("there is no broker that could change a topic's configs")
    while pending and able:
        asked = dict(zip(able, pending, strict=False))
        pending = pending[len(asked) :]
        requests = {node: _request({r: changes[r] for r in chunk}) for node, chunk in asked.items()}
        for node, answer in client.send_each(requests).items():
            if isinstance(answer, ConnectionFailed):  # it was not sent: another broker can do it as well
                able.remove(node)
                pending.append(asked[node])
                last = answer
            else:
                failed |= _errors(answer, asked[node])
    return failed | {resource: _named(resource, last) for chunk in pending for resource in chunk}


def _request(changes: Mapping[Resource, Changes]) -> Any:
    from kafka.protocol.admin import IncrementalAlterConfigsRequest

    resource_class = IncrementalAlterConfigsRequest.AlterConfigsResource
    config_class = resource_class.AlterableConfig
    return IncrementalAlterConfigsRequest(
        resources=[
            resource_class(
                resource_type=TOPIC_RESOURCE if resource.kind == "topic" else BROKER_RESOURCE,
                resource_name=resource.name,
                configs=[
                    config_class(name=name, config_operation=_DELETE if value is None else _SET, value=value)
                    for name, value in sorted(values.items())
                ],
            )
            for resource, values in changes.items()
        ],
        validate_only=False,
    )


def _errors(answer: Any, asked: Sequence[Resource]) -> dict[Resource, KctlError]:
    from kctl.client import error_for

    if isinstance(answer, KctlError):
        return {resource: _named(resource, answer) for resource in asked}
    codes = {row.resource_name: (row.error_code, row.error_message) for row in answer.responses}
    failed: dict[Resource, KctlError] = {}
    for resource in asked:
        code, message = codes.get(resource.name, (-1, "the broker's answer does not name it"))
        if code:
            failed[resource] = error_for(code, message, subject=f"configs of {resource}")
    return failed


def _named(resource: Resource, error: KctlError) -> KctlError:
    cls = type(error) if type(error).__init__ is KctlError.__init__ else OperationFailed
    return cls(f"configs of {resource}: {error.message}", hint=error.hint, details=error.details)
