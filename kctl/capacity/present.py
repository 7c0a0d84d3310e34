"""The load that a cluster has now: what is written and kept of each topic, as its brokers tell it."""

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
from kctl.topics.rates import Ends, rates, read_ends
from kctl.topics.sizes import Sizes, fetch_sizes

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient

_CONFIGS = {"min.insync.replicas": "min_insync_replicas", "segment.bytes": "segment_size"}
_STEP_S = 0.5


@dataclass(frozen=True, slots=True)
class Present:
    """What was seen. cluster: inputs of its brokers. seen: its own numbers, for comparison. left_out: topics of which
    not enough was told, a line each; doubts: what else is not certain."""

    workloads: tuple[Workload, ...]
    cluster: dict[str, Input]
    seen: dict[str, int]
    left_out: tuple[str, ...]
    doubts: tuple[str, ...]


def look(
    client: ClusterClient,
    match: Sequence[str],
    given: Mapping[str, Input],
    *,
    window_s: float,
    progress: Callable[[str, float, float], None] | None = None,
) -> Present:
    """Look twice at the ends of all logs, window_s apart, and at sizes and configs.

    given: values that win over what is seen. Raises NotFound when there is no topic, NotAuthorized, ConnectionFailed.
    """
    state, chosen = choose(client, (), match)
    doubts, failures = not_seen(client, (), chosen, filtered=True)  # a plan wants all of them
    if not chosen:
        raise NotFound("there is no topic whose load could be looked at", hint="; ".join([*failures, *doubts]) or None)
    before = read_ends(client, state, chosen)
    sizes = fetch_sizes(client, state, chosen)
    partitions = [p.tp for topic in chosen for p in topic.partitions]
    logs, _, unread = read_log_offsets(client, partitions, state=state)
    configs = fetch_topic_configs(
        client, [topic.name for topic in chosen], state.brokers, names=_CONFIGS, defaults=True
    )
    _wait(before.at_s + window_s, progress, window_s)
    now = read_ends(client, state, chosen)
    counts = {tp: log.end - log.start for tp, log in logs.items()}
    workloads, left_out = _workloads(chosen, sizes, counts, configs, before, now, given)
    cluster, unseen = _brokers(client, state)
    told = dict.fromkeys((*doubts, *sizes.failures, *failure_lines(unread), *before.failures, *now.failures, *unseen))
    replicas = sum(len(p.replicas) for topic in chosen for p in topic.partitions)
    seen = {"brokers_now": len(state.brokers), "replicas_now": replicas}
    return Present(tuple(workloads), cluster, seen, (*left_out, *failures), tuple(told))


def _wait(until: float, progress: Callable[[str, float, float], None] | None, window_s: float) -> None:
    deadline = Deadline(until - time.monotonic())
    while not deadline.expired:
        if progress:
            progress("looking how much is written", window_s - deadline.left_s, window_s)
        time.sleep(min(_STEP_S, deadline.left_s))


def _workloads(
    chosen: Sequence[TopicState],
    sizes: Sizes,
    counts: Mapping[TopicPartition, int],
    configs: Mapping[str, list[ConfigEntry] | KctlError],
    before: Ends,
    now: Ends,
    given: Mapping[str, Input],
) -> tuple[list[Workload], list[str]]:
    """The topics, and those of which too little is known."""
    by_topic = {row.topic: row for row in rates(before, now, by_partition=False)}
    found: list[Workload] = []
    left_out: list[str] = []
    for topic in chosen:
        size, entries, row = sizes.topic(topic).leader_bytes, configs[topic.name], by_topic.get(topic.name)
        partitions = [p.tp for p in topic.partitions]
        if isinstance(entries, KctlError):
            left_out.append(f"{topic.name}: its configs are not known: {entries.message}")
        elif size is None:
            left_out.append(f"{topic.name}: its size is not known")
        elif row is None or row.messages is None or not all(tp in counts and tp in now.ends for tp in partitions):
            left_out.append(f"{topic.name}: how much is written to it is not known")
        else:
            messages = sum(counts[tp] for tp in partitions)
            per_s = Fraction(row.messages) / Fraction(max(now.at_s - before.at_s, 0.001))
            inputs = seen_inputs(size, messages, per_s, topic.replication_factor, entries)
            inputs = merged(inputs, given, TOPIC_FIELDS)
            found.append(workload(topic.name, inputs, present_partitions=len(partitions)))
    return found, left_out


def seen_inputs(
    size_bytes: int, messages: int, per_s: Fraction, replication_factor: int, entries: Iterable[ConfigEntry]
) -> dict[str, Input]:
    """A topic's inputs of what was seen of it: the bytes of one copy, the offsets that its logs span, offsets a second
    that came. A message has the size that they have on the average, as stored. Pure.
    """
    rate = round(per_s * size_bytes / messages) if messages else 0
    found = {"data": Input(max(1, size_bytes), SEEN), "replication_factor": Input(replication_factor, SEEN)}
    if rate:
        found["throughput"] = Input(rate, SEEN)
    for entry in entries:
        if entry.name in _CONFIGS and entry.value and entry.value.isdigit():
            found[_CONFIGS[entry.name]] = Input(int(entry.value), SEEN)
    return found


def _brokers(client: ClusterClient, state: ClusterState) -> tuple[dict[str, Input], list[str]]:
    """The disks of the broker that has least; nothing where one does not tell."""
    totals: list[int] = []
    for node, answer in fetch_log_dirs(client, state.brokers, topics={}).items():
        size = f"the size of its disks is not known: {answer.message}" if isinstance(answer, KctlError) else None
        total = None if isinstance(answer, KctlError) else volume_bytes(answer)
        if total is None:
            return {}, [f"broker {node}: {size or 'it does not tell the size of its disks (it is older than 3.3)'}"]
        totals.append(total)
    least = min(totals, default=0)
    return ({"disk": Input(least, SEEN)} if least else {}), []


def volume_bytes(log_dirs: Sequence[LogDir]) -> int | None:
    """What the disks below a broker's log dirs hold together; None when it does not tell. Log dirs that say the same
    lie on one disk."""
    volumes = {(each.total_bytes, each.usable_bytes) for each in log_dirs if each.error is None}
    if any(total is None for total, _ in volumes):
        return None
    return sum(total for total, _ in volumes if total is not None)
