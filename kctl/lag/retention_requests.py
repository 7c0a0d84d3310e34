"""Requests for the oldest records and retention configs."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from kctl.cluster.log_offsets import ask_leaders
from kctl.cluster.offsets import list_offsets_each
from kctl.errors import KctlError
from kctl.lag.log_config import LogConfig
from kctl.lag.retention import TopicRetention
from kctl.model import ClusterState, TopicPartition
from kctl.protocol.codes import ErrorCode

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient

TOPIC_RESOURCE = 2
CONFIGS = ("cleanup.policy", "retention.bytes", "retention.ms", "segment.bytes")
_TOPICS_PER_REQUEST = 1000


def fetch_oldest_timestamps(
    client: ClusterClient, partitions: Collection[TopicPartition], state: ClusterState | None = None
) -> tuple[dict[TopicPartition, int | None], dict[TopicPartition, KctlError]]:
    """Return the timestamp (ms) of each partition's first record, from its leader, and the errors of other partitions.

    ListOffsets with timestamp 0 returns the first record at or after it, with the record's timestamp: the broker reads
    one batch of the first segment. None: the log is empty, or no record has a timestamp. Deleted partitions are in
    neither. state: see kctl.cluster.log_offsets.ask_leaders.
    """
    timestamps, _, failed = ask_leaders(
        client, partitions, lambda by_leader: list_offsets_each(client, by_leader, 0, _timestamp), state
    )
    return timestamps, failed


def _timestamp(row: Any) -> int | None:
    """Return the row's timestamp (ms); None if no record has one."""
    return row.timestamp if row.timestamp >= 0 else None


def fetch_retention(client: ClusterClient, topics: Collection[str]) -> dict[str, TopicRetention | KctlError]:
    """Return the retention configs of each topic, with defaults; for a topic that failed, the KctlError."""
    return {
        name: values
        if isinstance(values, KctlError)
        else TopicRetention(
            topic=name,
            cleanup_policy=values.get("cleanup.policy"),
            retention_bytes=_number(values.get("retention.bytes")),
            retention_ms=_number(values.get("retention.ms")),
            segment_bytes=_number(values.get("segment.bytes")),
        )
        for name, values in fetch_config_values(client, topics, CONFIGS).items()
    }


def fetch_log_configs(client: ClusterClient, topics: Collection[str]) -> dict[str, LogConfig | KctlError]:
    """Return all configs that determine log contents, with defaults; for a topic that failed, the KctlError."""
    names = {field: field.replace("_", ".") for field in LogConfig._fields if field != "topic"}
    configs: dict[str, LogConfig | KctlError] = {}
    for topic, values in fetch_config_values(client, topics, tuple(names.values())).items():
        if isinstance(values, KctlError):
            configs[topic] = values
            continue
        numbers: dict[str, Any] = {field: _number(values.get(name)) for field, name in names.items()}
        numbers["cleanup_policy"] = values.get("cleanup.policy")
        numbers["min_cleanable_dirty_ratio"] = _share(values.get("min.cleanable.dirty.ratio"))
        configs[topic] = LogConfig(**numbers, topic=topic)
    return configs


def fetch_config_values(
    client: ClusterClient, topics: Collection[str], names: Sequence[str]
) -> dict[str, dict[str, str | None] | KctlError]:
    """Return these configs of each topic, with defaults, as text; for a topic that failed, the KctlError.

    Any broker can describe any topic. Topics that the user may not describe are NotAuthorized.
    """
    values: dict[str, dict[str, str | None] | KctlError] = {}
    ordered = sorted(topics)
    for start in range(0, len(ordered), _TOPICS_PER_REQUEST):
        chunk = ordered[start : start + _TOPICS_PER_REQUEST]
        values.update(_parse_configs(client.send(_configs_request(chunk, names)), chunk))
    return values


def _configs_request(topics: Sequence[str], names: Sequence[str]) -> object:
    from kafka.protocol.admin import DescribeConfigsRequest

    resource = DescribeConfigsRequest.DescribeConfigsResource
    return DescribeConfigsRequest(
        resources=[
            resource(resource_type=TOPIC_RESOURCE, resource_name=name, configuration_keys=list(names))
            for name in topics
        ],
        include_synonyms=False,
        include_documentation=False,
    )


def _parse_configs(response: Any, topics: Sequence[str]) -> dict[str, dict[str, str | None] | KctlError]:
    from kctl.protocol.client import error_for

    # Brokers silently omit topics that the user may not describe.
    values: dict[str, dict[str, str | None] | KctlError] = {
        name: error_for(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "its configs are not described", subject=f"topic {name}")
        for name in topics
    }
    for row in response.results:
        name = row.resource_name
        if row.error_code:
            values[name] = error_for(row.error_code, row.error_message, subject=f"topic {name}")
        else:
            values[name] = {config.name: config.value for config in row.configs}
    return values


def _number(text: str | None) -> int | None:
    try:
        return None if text is None else int(text)
    except ValueError:
        return None


def _share(text: str | None) -> float | None:
    try:
        return None if text is None else float(text)
    except ValueError:
        return None
