"""Describe every config of a resource: value, source, default, type and documentation (KIP-133, KIP-569).

DescribeConfigs returns the chain of values that override each other ("synonyms"): set on the topic, on the broker, for
all brokers, in server.properties, and Kafka's default.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from kctl.base.suggestions import did_you_mean
from kctl.cluster.config_resources import BROKER_RESOURCE, QUOTA_KINDS, TOPIC_RESOURCE, Kind, Resource, right_hint
from kctl.cluster.membership import explain_failure
from kctl.cluster.topic_configs import KAFKAS_DEFAULTS, ConfigSource, topic_source
from kctl.configs.html import plain
from kctl.configs.known_types import type_of
from kctl.configs.model import Config, Synonym
from kctl.configs.quota_configs import read_quotas
from kctl.errors import ConnectionFailed, KctlError, NotFound, OperationFailed
from kctl.protocol.codes import ErrorCode

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient

_PER_REQUEST = 200  # the configs of a topic with synonyms take about 5 kB in a response
_DOCUMENTED_SINCE = 3  # Kafka 2.6
# org.apache.kafka.common.requests.DescribeConfigsResponse.ConfigType; not reported before Kafka 2.6
_TYPES = {
    1: "boolean", 2: "string", 3: "int", 4: "short", 5: "long", 6: "double", 7: "list", 8: "class", 9: "password",
}  # fmt: skip
UNKNOWN_TYPE = "unknown"


# Configs that brokers accept but do not describe (DynamicConfig.Broker, QuotaConfig): name → documentation.
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
_OLD = "brokers before 4.0 report this for unknown kinds of resources, and to users without rights"
_NO_LIMIT = str(2**63 - 1)


def describe(client: ClusterClient, resource: Resource, *, documentation: bool = False) -> list[Config]:
    """Return all configs of one resource, by name. Raises the broker's error."""
    configs = describe_each(client, [resource], documentation=documentation)[resource]
    if isinstance(configs, NotFound) and resource.kind == "topic":
        raise NotFound(configs.message, hint=did_you_mean(resource.name, client.metadata().topics) or configs.hint)
    if isinstance(configs, KctlError):
        raise configs
    return configs


def describe_each(
    client: ClusterClient,
    resources: Collection[Resource],
    *,
    names: Collection[str] | None = None,
    documentation: bool = False,
) -> dict[Resource, list[Config] | KctlError]:
    """Return the configs of each resource by name, or why they are not readable. names: only these.

    Each broker describes its own configs, all at once; any broker describes other resources, in batches. `brokers` has
    every config that can be set there, as one broker describes them. documentation requires Kafka 2.6.
    """
    keys = None if names is None else sorted(names)
    brokers = [r for r in resources if r.kind == "broker"]
    results: dict[Resource, list[Config] | KctlError] = {}
    if brokers:
        requests = {int(r.name): _request([r], keys, documentation) for r in brokers}
        answers = client.send_each(requests)
        for node, answer in answers.items():
            if isinstance(answer, KctlError):
                answers[node] = explain_failure(client, node, answer)
        results.update((r, _configs_of(r, answers[int(r.name)], keys)) for r in brokers)
    if any(r.kind == "brokers" for r in resources):
        try:
            results[Resource.brokers()] = _all_brokers(client, keys, documentation)
        except KctlError as exc:
            results[Resource.brokers()] = exc
    quotas = [r for r in resources if r.kind in QUOTA_KINDS]
    if quotas:
        results |= read_quotas(client, quotas, keys)
    others = [r for r in resources if r.kind not in ("broker", "brokers") and r.kind not in QUOTA_KINDS]
    for start in range(0, len(others), _PER_REQUEST):
        chunk = others[start : start + _PER_REQUEST]
        try:
            answer = client.send(_request(chunk, keys, documentation))
        except KctlError as exc:
            results.update(dict.fromkeys(others[start:], exc))
            break
        results.update((r, _configs_of(r, answer, keys)) for r in chunk)
    return results | _missing_topics(client, results)


def _missing_topics(
    client: ClusterClient, results: Mapping[Resource, list[Config] | KctlError]
) -> dict[Resource, NotFound]:
    """Return errors with suggestions for topics that do not exist."""
    from kctl.base.name_patterns import not_there

    missing = [r for r, error in results.items() if r.kind == "topic" and isinstance(error, NotFound)]
    try:
        existing = client.metadata().topics if missing else {}
    except KctlError:
        existing = {}
    return {r: not_there([r.name], existing) for r in missing}


def describe_brokers_on_each(client: ClusterClient, names: Collection[str]) -> dict[int, list[Config] | KctlError]:
    """Return the configs of `brokers` as each broker knows them: node → configs of these names, or the error."""
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
    """Return the configs that can be set for all brokers, with the values that are set for all brokers.

    Both come from one broker, in one request; from the next broker if the first is unreachable.
    """
    all_ = Resource.brokers()
    answer: Any = OperationFailed("no broker is available")
    for node in sorted(client.metadata(()).brokers):
        broker = Resource.broker(node)
        answer = client.send_each({node: _request([broker, all_], keys, documentation)})[node]
        if not isinstance(answer, ConnectionFailed):
            break
    if isinstance(answer, KctlError):
        return answer
    broker_config, overall = _configs_of(broker, answer, keys), _configs_of(all_, answer, keys)
    if isinstance(overall, KctlError):
        return overall
    if isinstance(broker_config, KctlError):
        return broker_config
    cluster_configs = {config.name: config for config in overall}
    merged = {c.name: _for_all(c, cluster_configs.get(c.name)) for c in broker_config if not c.read_only}
    return sorted((cluster_configs | merged).values(), key=lambda config: config.name)


def _for_all(config: Config, overall: Config | None) -> Config:
    """Return a config for `brokers`: with the value for all brokers, without the value of the broker itself."""
    below = tuple(s for s in config.synonyms if s.source is ConfigSource.DEFAULT)
    if overall is None or overall.source is None:
        return replace(config, value=None, source=None, synonyms=below)
    return replace(config, value=overall.value, source=overall.source, synonyms=(*overall.synonyms, *below))


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
            configs = {name: _topic_config(config) for name, config in configs.items()}
        if resource.kind == "broker":
            _add_undescribed(configs, keys)
        return sorted(configs.values(), key=lambda config: config.name)
    # Brokers silently omit resources that the user may not describe.
    is_topic = resource.type_code == TOPIC_RESOURCE
    code = ErrorCode.TOPIC_AUTHORIZATION_FAILED if is_topic else ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    return error_for(
        code, "missing in the response", subject=f"configs of {resource}",
        hint=right_hint("DescribeConfigs", resource, code),
    )  # fmt: skip


def _topic_config(config: Config) -> Config:
    """Return a topic config with its actual source and default.

    Brokers report a value of log.retention.hours as the default, and no default for a config that is set on the topic.
    """
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
        current = configs.get(name)
        default = Synonym(name, _NO_LIMIT, ConfigSource.DEFAULT)
        if current is None:
            configs[name] = Config(
                name, _NO_LIMIT, ConfigSource.DEFAULT, _NO_LIMIT, "long", False, False, (default,), documentation
            )
        else:
            configs[name] = replace(
                current, type="long", default=_NO_LIMIT, sensitive=False, read_only=False, documentation=documentation
            )


def by_name(configs: Iterable[Config]) -> Mapping[str, Config]:
    """Return configs by name."""
    return {config.name: config for config in configs}
