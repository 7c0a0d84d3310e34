"""Read the current load of a cluster: what its brokers receive and store for each topic."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from kctl.base.deadline import Deadline
from kctl.capacity.fields import SEEN, TOPIC_FIELDS, Input
from kctl.capacity.model import Workload
from kctl.capacity.workload import merged, workload
from kctl.cluster.log_dirs import LogDir, fetch_log_dirs
from kctl.cluster.log_offsets import read_log_offsets
from kctl.cluster.topic_configs import ConfigEntry, fetch_topic_configs
from kctl.cluster.topics import choose, not_seen
from kctl.errors import KctlError, NotFound
from kctl.model import ClusterState, TopicPartition, TopicState
from kctl.topics.offsets import failure_lines
from kctl.topics.rates import LogEnds, rates, read_ends
from kctl.topics.sizes import TopicSizes, fetch_sizes

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient

_CONFIGS = {"min.insync.replicas": "min_insync_replicas", "segment.bytes": "segment_size"}
_PROGRESS_STEP_S = 0.5


@dataclass(frozen=True, slots=True)
class CurrentLoad:
    """The current load of a cluster.

    cluster: inputs of the brokers. counts: current numbers of brokers and replicas, for comparison. left_out: a line
    for each topic without enough data. warnings: a line for everything else that could not be read.
    """

    workloads: tuple[Workload, ...]
    cluster: dict[str, Input]
    counts: dict[str, int]
    left_out: tuple[str, ...]
    warnings: tuple[str, ...]


def read_current_load(
    client: ClusterClient,
    match: Sequence[str],
    overrides: Mapping[str, Input],
    *,
    window_s: float,
    progress: Callable[[str, float, float], None] | None = None,
) -> CurrentLoad:
    """Read all log end offsets twice, window_s apart, and the sizes and configs of the topics.

    overrides: values that replace those of the cluster. Raises NotFound if there is no topic, NotAuthorized,
    ConnectionFailed.
    """
    state, topics = choose(client, (), match)
    doubts, failures = not_seen(client, (), topics, filtered=True)  # a plan needs every topic
    if not topics:
        raise NotFound("no topic is readable", hint="; ".join([*failures, *doubts]) or None)
    before = read_ends(client, state, topics)
    sizes = fetch_sizes(client, state, topics)
    partitions = [p.tp for topic in topics for p in topic.partitions]
    logs, _, unreadable = read_log_offsets(client, partitions, state=state)
    configs = fetch_topic_configs(
        client, [topic.name for topic in topics], state.brokers, names=_CONFIGS, defaults=True
    )
    _wait(before.at_s + window_s, progress, window_s)
    now = read_ends(client, state, topics)
    message_counts = {tp: log.end - log.start for tp, log in logs.items()}
    workloads, left_out = _workloads(topics, sizes, message_counts, configs, before, now, overrides)
    cluster, disk_failures = _brokers(client, state)
    reasons = dict.fromkeys(
        (*doubts, *sizes.failures, *failure_lines(unreadable), *before.failures, *now.failures, *disk_failures)
    )
    replicas = sum(len(p.replicas) for topic in topics for p in topic.partitions)
    counts = {"brokers_now": len(state.brokers), "replicas_now": replicas}
    return CurrentLoad(tuple(workloads), cluster, counts, (*left_out, *failures), tuple(reasons))


def _wait(until: float, progress: Callable[[str, float, float], None] | None, window_s: float) -> None:
    deadline = Deadline(until - time.monotonic())
    while not deadline.expired:
        if progress:
            progress("measuring write rates", window_s - deadline.left_s, window_s)
        time.sleep(min(_PROGRESS_STEP_S, deadline.left_s))


def _workloads(
    topics: Sequence[TopicState],
    sizes: TopicSizes,
    counts: Mapping[TopicPartition, int],
    configs: Mapping[str, list[ConfigEntry] | KctlError],
    before: LogEnds,
    now: LogEnds,
    overrides: Mapping[str, Input],
) -> tuple[list[Workload], list[str]]:
    """Return the workloads, and a line for each topic without enough data."""
    by_topic = {row.topic: row for row in rates(before, now, by_partition=False)}
    workloads: list[Workload] = []
    left_out: list[str] = []
    for topic in topics:
        size, entries, row = sizes.topic(topic).leader_bytes, configs[topic.name], by_topic.get(topic.name)
        partitions = [p.tp for p in topic.partitions]
        if isinstance(entries, KctlError):
            left_out.append(f"{topic.name}: its configs are unknown: {entries.message}")
        elif size is None:
            left_out.append(f"{topic.name}: its size is unknown")
        elif row is None or row.messages is None or not all(tp in counts and tp in now.ends for tp in partitions):
            left_out.append(f"{topic.name}: its write rate is unknown")
        else:
            messages = sum(counts[tp] for tp in partitions)
            per_s = Fraction(row.messages) / Fraction(max(now.at_s - before.at_s, 0.001))
            inputs = seen_inputs(size, messages, per_s, topic.replication_factor, entries)
            inputs = merged(inputs, overrides, TOPIC_FIELDS)
            workloads.append(workload(topic.name, inputs, current_partitions=len(partitions)))
    return workloads, left_out


def seen_inputs(
    size_bytes: int, messages: int, per_s: Fraction, replication_factor: int, entries: Iterable[ConfigEntry]
) -> dict[str, Input]:
    """Return a topic's inputs from its current state. Pure.

    size_bytes: of one copy. messages: offsets that its logs span. per_s: new offsets per second. The throughput assumes
    the average stored message size.
    """
    rate = round(per_s * size_bytes / messages) if messages else 0
    inputs = {"data": Input(max(1, size_bytes), SEEN), "replication_factor": Input(replication_factor, SEEN)}
    if rate:
        inputs["throughput"] = Input(rate, SEEN)
    for entry in entries:
        if entry.name in _CONFIGS and entry.value and entry.value.isdigit():
            inputs[_CONFIGS[entry.name]] = Input(int(entry.value), SEEN)
    return inputs


def _brokers(client: ClusterClient, state: ClusterState) -> tuple[dict[str, Input], list[str]]:
    """Return the smallest disk size of any broker; nothing if a broker does not report it."""
    totals: list[int] = []
    for node, response in fetch_log_dirs(client, state.brokers, topics={}).items():
        size = f"its disk size is unknown: {response.message}" if isinstance(response, KctlError) else None
        total = None if isinstance(response, KctlError) else volume_bytes(response)
        if total is None:
            return {}, [f"broker {node}: {size or 'it does not report its disk size (requires Kafka 3.3)'}"]
        totals.append(total)
    smallest = min(totals, default=0)
    return ({"disk": Input(smallest, SEEN)} if smallest else {}), []


def volume_bytes(log_dirs: Sequence[LogDir]) -> int | None:
    """Return the total size of the disks under a broker's log dirs; None if unknown.

    Log dirs with the same total and usable bytes are on the same disk.
    """
    volumes = {(each.total_bytes, each.usable_bytes) for each in log_dirs if each.error is None}
    if any(total is None for total, _ in volumes):
        return None
    return sum(total for total, _ in volumes if total is not None)
