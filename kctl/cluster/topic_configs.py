"""Topics' configs that are not Kafka's defaults, and where they were set."""

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

_TOPICS_PER_REQUEST = 500  # a topic's configs take some 2 kB in a response
_DEFAULT_SOURCE = 5
_SILENT_S = 10.0
MIN_ISR = "min.insync.replicas"


class ConfigSource(Enum):
    """Where a value comes from (DescribeConfigsResponse.ConfigSource); of a quota, whose it is."""

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
        """By the number that DescribeConfigs has for it."""
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


# Kafka's defaults of what log.retention.hours, log.roll.hours and the like can set for all topics. Brokers call such a
# value a default, too: they leave out synonyms before the one in ms (kafka.server.ConfigHelper.configSynonyms).
KAFKAS_DEFAULTS = {"retention.ms": "604800000", "segment.ms": "604800000", "segment.jitter.ms": "0"}


def topic_source(name: str, value: str | None, code: int) -> ConfigSource:
    """Where a topic's value comes from. code: what the broker said. Pure."""
    if code == _DEFAULT_SOURCE and value != KAFKAS_DEFAULTS.get(name, value):
        return ConfigSource.STATIC_BROKER
    return ConfigSource.of(code)


@dataclass(frozen=True, slots=True)
class ConfigEntry:
    """A config that differs from Kafka's default. value is None when the broker keeps it to itself."""

    name: str
    value: str | None
    source: ConfigSource


def min_isr_in(entries: Collection[ConfigEntry]) -> int:
    """min.insync.replicas among the configs of a topic that are not the default; which is 1. Pure."""
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
    """The configs of each topic that are not the default, sorted by name; a topic's failure is its value.

    names: only these configs. defaults: those that are the default as well.
    Some hundred topics are asked of each broker at once: any broker can answer for any topic. limit_s: for one
    answer. While ZooKeeper is down no broker gives one; then the others are not waited for as well.
    """
    configs: dict[str, list[ConfigEntry] | KctlError] = {}
    ordered = sorted(topics)
    pending = [ordered[i : i + _TOPICS_PER_REQUEST] for i in range(0, len(ordered), _TOPICS_PER_REQUEST)]
    able = sorted(brokers)
    last: KctlError = ConnectionFailed("there is no broker that could tell a topic's configs")
    while pending and able:
        asked = dict(zip(able, pending, strict=False))
        pending = pending[len(asked) :]
        began = time.monotonic()
        responses = client.send_each(
            {node: _request(chunk, names) for node, chunk in asked.items()},
            timeout_s=min(limit_s, client.timeout_s),
        )
        silent = time.monotonic() - began > limit_s / 2  # connecting fails sooner
        for node, chunk in asked.items():
            response = responses[node]
            if isinstance(response, KctlError):
                configs.update(dict.fromkeys(chunk, response))
            else:
                configs.update(_parse(response, chunk, defaults=defaults))
            if isinstance(response, ConnectionFailed):  # a broker that is down: the next one can tell as well
                able = [] if silent else [other for other in able if other != node]
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

    # Topics that this user may not describe are left out of the answer, silently.
    found: dict[str, list[ConfigEntry] | KctlError] = {
        name: error_for(29, "they were not described", subject=f"configs of topic {name}") for name in names
    }
    for row in response.results:
        if row.error_code:
            found[row.resource_name] = error_for(
                row.error_code, row.error_message, subject=f"configs of topic {row.resource_name}"
            )
        else:
            entries = (
                ConfigEntry(c.name, c.value, topic_source(c.name, c.value, c.config_source))
                for c in row.configs
                if defaults or not c.is_default
            )
            told = (entry for entry in entries if defaults or entry.source is not ConfigSource.DEFAULT)
            found[row.resource_name] = sorted(told, key=lambda entry: entry.name)
    return found
