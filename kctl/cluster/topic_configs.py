"""Topic configs that differ from Kafka's defaults, and where they were set."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from kctl.cluster.config_resources import TOPIC_RESOURCE
from kctl.errors import ConnectionFailed, KctlError

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient

_TOPICS_PER_REQUEST = 500  # the configs of a topic take about 2 kB in a response
_DEFAULT_SOURCE = 5
_SILENT_S = 10.0
MIN_ISR = "min.insync.replicas"


class ConfigSource(Enum):
    """The source of a value (DescribeConfigsResponse.ConfigSource); for a quota, its entity."""

    TOPIC = "topic"
    DYNAMIC_BROKER = "dynamic broker"
    DYNAMIC_DEFAULT_BROKER = "dynamic default broker"
    STATIC_BROKER = "static broker"
    DEFAULT = "default"
    CLIENT_METRICS = "client metrics"
    GROUP = "group"
    USER = "user"
    DEFAULT_USER = "default user"
    CLIENT_ID = "client-id"
    DEFAULT_CLIENT_ID = "default client-id"
    IP = "ip"
    DEFAULT_IP = "default ip"
    OTHER = "other"

    @classmethod
    def of(cls, code: int) -> ConfigSource:
        """Return the source with this code in DescribeConfigs."""
        return _SOURCES.get(code, cls.OTHER)


_SOURCES = {
    1: ConfigSource.TOPIC,
    2: ConfigSource.DYNAMIC_BROKER,
    3: ConfigSource.DYNAMIC_DEFAULT_BROKER,
    4: ConfigSource.STATIC_BROKER,
    5: ConfigSource.DEFAULT,
    7: ConfigSource.CLIENT_METRICS,
    8: ConfigSource.GROUP,
}


# Kafka's defaults of configs that log.retention.hours, log.roll.hours and the like can set for all topics. Brokers
# report such a value as a default: they only consider the synonym in ms (kafka.server.ConfigHelper.configSynonyms).
KAFKAS_DEFAULTS = {"retention.ms": "604800000", "segment.ms": "604800000", "segment.jitter.ms": "0"}


def topic_source(name: str, value: str | None, code: int) -> ConfigSource:
    """Return where the value of a topic config comes from. code: as reported by the broker. Pure."""
    if code == _DEFAULT_SOURCE and value != KAFKAS_DEFAULTS.get(name, value):
        return ConfigSource.STATIC_BROKER
    return ConfigSource.of(code)


@dataclass(frozen=True, slots=True)
class ConfigEntry:
    """A config that differs from Kafka's default. value: None if the broker does not disclose it."""

    name: str
    value: str | None
    source: ConfigSource


def min_isr_in(entries: Collection[ConfigEntry]) -> int:
    """Return min.insync.replicas from a topic's non-default configs (default: 1). Pure."""
    value = next((entry.value for entry in entries if entry.name == MIN_ISR), None)
    return int(value) if value and value.isdigit() else 1


def fetch_topic_configs(
    client: ClusterClient,
    topics: Collection[str],
    brokers: Collection[int],
    *,
    names: Collection[str] | None = None,
    defaults: bool = False,
    limit_s: float = _SILENT_S,
) -> dict[str, list[ConfigEntry] | KctlError]:
    """Return the non-default configs of each topic, sorted by name; for a topic that failed, the KctlError.

    names: only these configs. defaults: include defaults. Batches of topics go to all brokers at once: any broker can
    describe any topic. limit_s: time limit for one response. While ZooKeeper is down no broker responds; after the
    first timeout the other brokers are not tried.
    """
    configs: dict[str, list[ConfigEntry] | KctlError] = {}
    ordered = sorted(topics)
    pending = [ordered[i : i + _TOPICS_PER_REQUEST] for i in range(0, len(ordered), _TOPICS_PER_REQUEST)]
    usable = sorted(brokers)
    last: KctlError = ConnectionFailed("no broker is available to describe topic configs")
    while pending and usable:
        assigned = dict(zip(usable, pending, strict=False))
        pending = pending[len(assigned) :]
        started = time.monotonic()
        responses = client.send_each(
            {node: _request(chunk, names) for node, chunk in assigned.items()},
            timeout_s=min(limit_s, client.timeout_s),
        )
        silent = time.monotonic() - started > limit_s / 2  # a failure to connect is faster
        for node, chunk in assigned.items():
            response = responses[node]
            if isinstance(response, KctlError):
                configs.update(dict.fromkeys(chunk, response))
            else:
                configs.update(_parse(response, chunk, defaults=defaults))
            if isinstance(response, ConnectionFailed):  # the broker is down: try the next one
                usable = [] if silent else [other for other in usable if other != node]
                pending.append(chunk)
                last = response
    for chunk in pending:
        configs.update(dict.fromkeys(chunk, last))
    return configs


def _request(topics: Sequence[str], names: Collection[str] | None) -> Any:
    """Return the request for configs of topics: all, or those with these names."""
    from kafka.protocol.admin import DescribeConfigsRequest

    keys = None if names is None else sorted(names)
    resource = DescribeConfigsRequest.DescribeConfigsResource
    return DescribeConfigsRequest(
        resources=[
            resource(resource_type=TOPIC_RESOURCE, resource_name=topic, configuration_keys=keys) for topic in topics
        ],
        include_synonyms=False,
        include_documentation=False,
    )


def _parse(response: Any, names: Sequence[str], *, defaults: bool) -> dict[str, list[ConfigEntry] | KctlError]:
    from kctl.protocol.client import error_for
    from kctl.protocol.codes import ErrorCode

    # Brokers silently omit topics that the user may not describe.
    configs: dict[str, list[ConfigEntry] | KctlError] = {
        name: error_for(
            ErrorCode.TOPIC_AUTHORIZATION_FAILED, "missing in the response", subject=f"configs of topic {name}"
        )
        for name in names
    }
    for row in response.results:
        if row.error_code:
            configs[row.resource_name] = error_for(
                row.error_code, row.error_message, subject=f"configs of topic {row.resource_name}"
            )
        else:
            entries = (
                ConfigEntry(c.name, c.value, topic_source(c.name, c.value, c.config_source))
                for c in row.configs
                if defaults or not c.is_default
            )
            selected = (entry for entry in entries if defaults or entry.source is not ConfigSource.DEFAULT)
            configs[row.resource_name] = sorted(selected, key=lambda entry: entry.name)
    return configs
