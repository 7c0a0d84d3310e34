"""Every config of a resource: its value, where that comes from, its default, type and meaning (KIP-133, KIP-569).

DescribeConfigs gives the chain of values that hold one behind the other («synonyms»): what is set on the topic, on the
broker, for all brokers, in server.properties, and Kafka's default.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from kctl.base.suggestions import did_you_mean
from kctl.cluster.config_resources import BROKER_RESOURCE, QUOTA_KINDS, TOPIC_RESOURCE, Kind, Resource, right_hint
from kctl.cluster.membership import told_apart
from kctl.cluster.topic_configs import KAFKAS_DEFAULTS, ConfigSource, topic_source
from kctl.configs.html import plain
from kctl.configs.known_types import type_of
from kctl.configs.model import Config, Synonym
from kctl.configs.quota_configs import read_quotas
from kctl.errors import ConnectionFailed, KctlError, NotFound, OperationFailed
from kctl.protocol.codes import ErrorCode

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient

_PER_REQUEST = 200  # a topic's configs with their chains take some 5 kB in a response
_DOCUMENTED_SINCE = 3  # Kafka 2.6
# org.apache.kafka.common.requests.DescribeConfigsResponse.ConfigType; brokers before 2.6 do not tell it.
_TYPES = {
    1: "boolean", 2: "string", 3: "int", 4: "short", 5: "long", 6: "double", 7: "list", 8: "class", 9: "password",
}  # fmt: skip
UNKNOWN_TYPE = "unknown"


# What brokers take and do not describe (DynamicConfig.Broker, QuotaConfig): name → documentation.
_UNDESCRIBED = {
    "leader.replication.throttled.rate": (
        "A long representing the upper bound (bytes/sec) on replication traffic for leaders enumerated in the property "
        "leader.replication.throttled.replicas (for each topic)."
    ),
    "follower.replication.throttled.rate": (
        "A long representing the upper bound (bytes/sec) on replication traffic for followers enumerated in the "
        "property follower.replication.throttled.replicas (for each topic)."
    ),
    "replica.alter.log.dirs.io.max.bytes.per.second": (
        "A long representing the upper bound (bytes/sec) on disk I/O used for moving replica between log directories "
        "on the same broker."
    ),
}
_DEFAULT_SOURCE = 5
_OLD = "brokers before 4.0 say this of kinds of configs that they do not know, and to users without rights"
_NO_LIMIT = str(2**63 - 1)


def describe(client: ClusterClient, resource: Resource, *, documentation: bool = False) -> list[Config]:
    """All configs of one resource, by name. Raises the KctlError with which a broker refused."""
    found = describe_each(client, [resource], documentation=documentation)[resource]
    if isinstance(found, NotFound) and resource.kind == "topic":
        raise NotFound(found.message, hint=did_you_mean(resource.name, client.metadata().topics) or found.hint)
    if isinstance(found, KctlError):
        raise found
    return found


def describe_each(
    client: ClusterClient,
    resources: Collection[Resource],
    *,
    names: Collection[str] | None = None,
    documentation: bool = False,
) -> dict[Resource, list[Config] | KctlError]:
    """The configs of each resource by name, or why they are not to be had. names: only these.

    Each broker is asked for itself, all at once; everything else any broker tells, some hundred at a time. `brokers`
    has every config that can be set there, by what one broker describes. documentation needs Kafka 2.6.
    """
    keys = None if names is None else sorted(names)
    brokers = [r for r in resources if r.kind == "broker"]
    found: dict[Resource, list[Config] | KctlError] = {}
    if brokers:
        requests = {int(r.name): _request([r], keys, documentation) for r in brokers}
        answers = client.send_each(requests)
        for node, answer in answers.items():
            if isinstance(answer, KctlError):
                answers[node] = told_apart(client, node, answer)
        found.update((r, _configs_of(r, answers[int(r.name)], keys)) for r in brokers)
    if any(r.kind == "brokers" for r in resources):
        try:
            found[Resource.brokers()] = _all_brokers(client, keys, documentation)
        except KctlError as exc:
            found[Resource.brokers()] = exc
    quotas = [r for r in resources if r.kind in QUOTA_KINDS]
    if quotas:
        found |= read_quotas(client, quotas, keys)
    others = [r for r in resources if r.kind not in ("broker", "brokers") and r.kind not in QUOTA_KINDS]
    for start in range(0, len(others), _PER_REQUEST):
        chunk = others[start : start + _PER_REQUEST]
        try:
            answer = client.send(_request(chunk, keys, documentation))
        except KctlError as exc:
            found.update(dict.fromkeys(others[start:], exc))
            break
        found.update((r, _configs_of(r, answer, keys)) for r in chunk)
    return found | _missing_topics(client, found)


def _missing_topics(
    client: ClusterClient, found: Mapping[Resource, list[Config] | KctlError]
) -> dict[Resource, NotFound]:
    """The topics that are not there, with what was probably meant."""
    from kctl.base.name_patterns import not_there

    missing = [r for r, error in found.items() if r.kind == "topic" and isinstance(error, NotFound)]
    try:
        known = client.metadata().topics if missing else {}
    except KctlError:
        known = {}
    return {r: not_there([r.name], known) for r in missing}


def describe_brokers_on_each(client: ClusterClient, names: Collection[str]) -> dict[int, list[Config] | KctlError]:
    """What each broker knows to be set for all brokers: node → its configs of these names, or why it does not tell."""
    resource, keys = Resource.brokers(), sorted(names)
    answers = client.send_each({node: _request([resource], keys, False) for node in client.metadata(()).brokers})
    return {node: _configs_of(resource, answer, keys) for node, answer in answers.items()}


def _request(resources: Iterable[Resource], keys: list[str] | None, documentation: bool) -> Any:
    from kafka.protocol.admin import DescribeConfigsRequest

    resource_class = DescribeConfigsRequest.DescribeConfigsResource
    return DescribeConfigsRequest(
        resources=[
            resource_class(resource_type=r.type_code, resource_name=r.name, configuration_keys=keys) for r in resources
        ],
        include_synonyms=True,
        include_documentation=documentation,
        min_version=_DOCUMENTED_SINCE if documentation else 1,
    )


def _all_brokers(client: ClusterClient, keys: list[str] | None, documentation: bool) -> list[Config] | KctlError:
    """What is set for all brokers, in the list of what can be: both from one broker, in one request; from the next when
    that cannot be reached.
    """
    all_ = Resource.brokers()
    answer: Any = OperationFailed("no broker is there to be asked")
    for node in sorted(client.metadata(()).brokers):
        one = Resource.broker(node)
        answer = client.send_each({node: _request([one, all_], keys, documentation)})[node]
        if not isinstance(answer, ConnectionFailed):
            break
    if isinstance(answer, KctlError):
        return answer
    known, own = _configs_of(one, answer, keys), _configs_of(all_, answer, keys)
    if isinstance(own, KctlError):
        return own
    if isinstance(known, KctlError):
        return known
    set_there = {config.name: config for config in own}
    merged = {c.name: _for_all(c, set_there.get(c.name)) for c in known if not c.read_only}
    return sorted((set_there | merged).values(), key=lambda config: config.name)


def _for_all(known: Config, own: Config | None) -> Config:
    """A config as `brokers` has it: what is set for all, nothing of what that one broker has besides."""
    below = tuple(s for s in known.synonyms if s.source is ConfigSource.DEFAULT)
    if own is None or own.source is None:
        return replace(known, value=None, source=None, synonyms=below)
    return replace(known, value=own.value, source=own.source, synonyms=(*own.synonyms, *below))


def _configs_of(resource: Resource, answer: Any, keys: list[str] | None) -> list[Config] | KctlError:
    from kctl.protocol.client import error_for

    if isinstance(answer, KctlError):
        return answer
    for row in answer.results:
        if (row.resource_type, row.resource_name) != (resource.type_code, resource.name):
            continue
        if row.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            return NotFound(f"{resource} does not exist")
        if row.error_code:
            hint = right_hint("DescribeConfigs", resource, row.error_code)
            if row.error_code == ErrorCode.INVALID_REQUEST and resource.type_code > BROKER_RESOURCE:
                hint = _OLD
            return error_for(row.error_code, row.error_message, subject=f"configs of {resource}", hint=hint)
        configs = {c.name: _config(c, resource.kind) for c in row.configs}
        if resource.kind == "topic":
            configs = {name: _of_topic(config) for name, config in configs.items()}
        if resource.kind == "broker":
            _add_undescribed(configs, keys)
        return sorted(configs.values(), key=lambda config: config.name)
    # Left out silently when it may not be described.
    code = {TOPIC_RESOURCE: 29, BROKER_RESOURCE: 31}.get(resource.type_code, 31)
    return error_for(
        code, "they were not described", subject=f"configs of {resource}",
        hint=right_hint("DescribeConfigs", resource, code),
    )  # fmt: skip


def _of_topic(config: Config) -> Config:
    """A topic's config, of which a broker may say that the value of log.retention.hours is the default, or, beside a
    value of the topic's own, no default."""
    if config.default is None and config.name in KAFKAS_DEFAULTS:
        config = replace(config, default=KAFKAS_DEFAULTS[config.name])
    if config.source is not ConfigSource.DEFAULT:
        return config
    source = topic_source(config.name, config.value, _DEFAULT_SOURCE)
    return config if source is config.source else replace(config, source=source, default=KAFKAS_DEFAULTS[config.name])


def _config(row: Any, kind: Kind) -> Config:
    source = ConfigSource.of(row.config_source)
    synonyms = tuple(
        Synonym(s.name, None if row.is_sensitive else s.value, ConfigSource.of(s.source)) for s in row.synonyms
    )
    default = next((s.value for s in synonyms if s.source is ConfigSource.DEFAULT), None)
    if source is ConfigSource.DEFAULT and not row.is_sensitive:
        default = row.value
    return Config(
        row.name,
        None if row.is_sensitive else row.value,
        source,
        default,
        _TYPES.get(row.config_type) or type_of(kind, row.name) or UNKNOWN_TYPE,
        row.is_sensitive,
        row.read_only,
        synonyms,
        plain(row.documentation) if row.documentation else None,
    )


def _add_undescribed(configs: dict[str, Config], keys: list[str] | None) -> None:
    for name, documentation in _UNDESCRIBED.items():
        if keys is not None and name not in keys:
            continue
        found = configs.get(name)
        default = Synonym(name, _NO_LIMIT, ConfigSource.DEFAULT)
        if found is None:
            configs[name] = Config(
                name, _NO_LIMIT, ConfigSource.DEFAULT, _NO_LIMIT, "long", False, False, (default,), documentation
            )
        else:
            configs[name] = replace(
                found, type="long", default=_NO_LIMIT, sensitive=False, read_only=False, documentation=documentation
            )


def by_name(configs: Iterable[Config]) -> Mapping[str, Config]:
    """Configs by their names."""
    return {config.name: config for config in configs}
