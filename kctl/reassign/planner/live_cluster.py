"""The input of a plan: a live cluster, or a file of `kctl cluster export`. Both give the same plan.

Requests to a live cluster: one Metadata, one DescribeLogDirs per broker, one ListPartitionReassignments.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from kctl.base.input_file import read_input
from kctl.base.name_patterns import select
from kctl.cluster.export import replica_sizes, size_of
from kctl.cluster.kafka_json import load_object, value_text
from kctl.cluster.log_dirs import LogDir, fetch_log_dirs, is_cordoned
from kctl.cluster.reassignments import ongoing_reassignments
from kctl.cluster.topic_names import fault_of
from kctl.errors import InvalidFile, KctlError, UsageError
from kctl.model import ClusterState, TopicPartition
from kctl.reassign.planner.cluster import PlanCluster, from_export, from_state
from kctl.reassign.planner.disks import log_dirs_of_export

if TYPE_CHECKING:
    import re

    from kctl.protocol.client import ClusterClient

MAX_EXPORT_BYTES = 2 << 30
MAX_TOPICS_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class PlanInput:
    """The input of a plan. log_dirs: broker id → its log dirs, where known. lacks: one line for each unreadable part.

    unnamed: broker id → replicas of topics that `select_topics` excluded; brokers without such replicas are omitted.
    """

    cluster: PlanCluster
    log_dirs: dict[int, list[LogDir]]
    lacks: list[str]
    unnamed: dict[int, int] = field(default_factory=dict)


def read_cluster(client: ClusterClient) -> PlanInput:
    """Read the live cluster. Raises the errors of ClusterClient.metadata and ongoing_reassignments."""
    state = client.metadata()
    lacks: list[str] = []
    moving = ongoing_reassignments(client)
    if moving is None:
        lacks.append("brokers before 2.4 do not report reassignments in progress")
    responses = fetch_log_dirs(client, state.brokers)
    errors = [response for response in responses.values() if isinstance(response, KctlError)]
    lacks += [f"sizes are incomplete: {error.message}" for error in errors]
    log_dirs = {node: response for node, response in responses.items() if not isinstance(response, KctlError)}
    lacks += [f"{d.error}" for dirs in log_dirs.values() for d in dirs if d.error]
    return PlanInput(_cluster(state, log_dirs, moving or ()), log_dirs, lacks)


def _cluster(
    state: ClusterState, log_dirs: Mapping[int, list[LogDir]], moving: Collection[TopicPartition]
) -> PlanCluster:
    by_replica = replica_sizes(log_dirs)
    sizes = {
        p.tp: size
        for topic in state.topics.values()
        for p in topic.partitions
        if (size := size_of(p, by_replica)) is not None
    }
    usable = {
        node: free_bytes
        for node, dirs in log_dirs.items()
        if (free_bytes := tuple(d.usable_bytes for d in dirs if d.usable_bytes is not None and not d.cordoned))
    }
    cordoned = {node for node, dirs in log_dirs.items() if is_cordoned(dirs)}
    return from_state(state, size_bytes=sizes, usable_bytes=usable, moving=moving, cordoned=cordoned)


def read_export(path: Path) -> PlanInput:
    """Read a file of `kctl cluster export`; "-" is stdin. Raises NotFound, InvalidFile."""
    hint = "write one with `kctl cluster export --out cluster.json`"
    data, name = read_input(path, max_bytes=MAX_EXPORT_BYTES, hint=hint)
    try:
        document = json.loads(data)
    except (ValueError, RecursionError) as exc:
        reason = "nested too deeply" if isinstance(exc, RecursionError) else str(exc)[:200]
        raise InvalidFile(f"{name} cannot be read as JSON: {reason}", hint=hint) from None
    if isinstance(document, dict) and "partitions" in document and "brokers" not in document:
        raise InvalidFile(
            f"{name} is a plan, not an export of a cluster",
            hint="`kctl topic reassign show` shows a plan; `kctl cluster export --out cluster.json` writes an export",
        )
    try:
        return PlanInput(from_export(document), log_dirs_of_export(document), [])
    except InvalidFile as exc:
        raise InvalidFile(f"{name} is not an export of a cluster: {exc.message}", hint=hint) from None


def select_topics(snapshot: PlanInput, names: Sequence[str], patterns: Sequence[re.Pattern[str]]) -> PlanInput:
    """Keep only topics with these names, or whose full name matches a pattern (default: all). Raises NotFound."""
    if not names and not patterns:
        return snapshot
    selected = set(select(snapshot.cluster.topics, exact=names, patterns=patterns, listed_by="topic list --internal"))
    return replace(
        snapshot,
        cluster=snapshot.cluster.select(selected.__contains__),
        unnamed=_replicas_outside(snapshot.cluster, selected),
    )


def _replicas_outside(cluster: PlanCluster, selected: Collection[str]) -> dict[int, int]:
    """Return broker id → replicas of topics that are not selected."""
    outside = [name not in selected for name in cluster.topics]
    rows = Counter(row for row, topic in zip(cluster.replicas, cluster.topic_of, strict=True) if outside[topic])
    counts = [0] * len(cluster.brokers)
    for row, count in rows.items():
        for node in row:
            counts[node] += count
    return {broker.id: count for broker, count in zip(cluster.brokers, counts, strict=True) if count}


def read_topics_file(path: Path) -> list[str]:
    """Read topic names: one per line, or the JSON of kafka-reassign-partitions. Raises UsageError, InvalidFile."""
    data, name = read_input(path, max_bytes=MAX_TOPICS_BYTES, hint="write one topic name per line")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InvalidFile(f"{name} is not UTF-8 text", hint="write one topic name per line") from None
    topics = _names_of_json(data, name) if text.lstrip().startswith(("{", "[", '"')) else _names_of_lines(text, name)
    if not topics:
        raise UsageError(f"{name} has no topic", hint="write one topic name per line")
    return topics


def _names_of_lines(text: str, name: str) -> list[str]:
    topics = []
    for number, line in enumerate(text.splitlines(), 1):
        topic = line.strip()
        if not topic or topic.startswith("#"):
            continue
        fault = fault_of(topic)
        if fault:
            raise InvalidFile(f"{name}:{number}: {value_text(topic)} is not a topic name: {fault}")
        topics.append(topic)
    return topics


def _names_of_json(data: bytes, name: str) -> list[str]:
    hint = 'its form is {"version": 1, "topics": [{"topic": "orders"}]}'
    rows = load_object(data, name, keys=("version", "topics", "topic"), hint=hint).get("topics")
    if not isinstance(rows, list):
        raise InvalidFile(f'{name} has no list "topics"', hint=hint)
    topics = []
    for number, row in enumerate(rows):
        topic = row.get("topic") if isinstance(row, dict) else None
        fault = fault_of(topic) if isinstance(topic, str) else "not a string"
        if fault:
            where = f"topics[{number}]"
            what = (
                f"topic {value_text(topic)}: {fault}"
                if isinstance(row, dict)
                else f"it is not an object: {value_text(row)}"
            )
            raise InvalidFile(f"{name}: {where}: {what}", hint=hint)
        topics.append(str(topic))
    return topics
