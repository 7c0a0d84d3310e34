"""A pass over a cluster: its state as plain rows, read with the batched requests of kctl.lag.

Requests, regardless of the number of groups and partitions: one Metadata; ListGroups, OffsetFetch and DescribeGroups to
each coordinator; ListOffsets three times to each leader (end, start, last stable), and once more for the first
record's timestamp of logs whose start has moved; DescribeLogDirs to each broker; DescribeConfigs every five minutes.

The order matters. Commits are read before ends, so that lag is too large by at most the messages committed meanwhile.
Last stable offsets are read after ends, so that messages written in between do not look like an open transaction: the
last stable offset may be beyond the end. Ends are read before starts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from kctl.base.text import counted
from kctl.cluster.groups.coordinators import ask_coordinators
from kctl.cluster.groups.model import Group
from kctl.cluster.log_dirs import fetch_log_dirs
from kctl.cluster.log_offsets import LogOffsets, read_log_offsets
from kctl.cluster.offsets import Committed, OffsetSpec, fetch_committed_each, fetch_offsets_each
from kctl.errors import KctlError, NotFound, OperationFailed, Refused
from kctl.history.snapshots import schema
from kctl.history.snapshots.layout import hour_of
from kctl.lag.collect import all_groups, owners_of
from kctl.lag.retention_requests import fetch_config_values, fetch_oldest_timestamps
from kctl.model import ClusterState, PartitionState, TopicPartition

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient

CONFIGS_EVERY_MS = 5 * 60_000
_SHARE = "share"  # share groups (KIP-932) have no committed offsets
_MAX_FAILURES, _MAX_TEXT = 50, 300
_LONG_MS = 60_000
# A leader returns no offsets until its high watermark reaches the start of its epoch (Partition.scala:
# fetchOffsetForTimestamp). The high watermark does not advance while too few replicas are in sync (KIP-966).
_WHY_NO_OFFSETS = ", for over a minute: check whether the partition has min.insync.replicas replicas in sync"
_CONFIGS = {
    name: name.replace("_", ".")
    for name, _, _ in schema.COLUMNS[schema.CONFIGS]
    if name not in {"at_ms", "topic"}
}  # fmt: skip

Rows = dict[str, list[tuple[Any, ...]]]


@dataclass
class Pass:
    """The result of reading a cluster: rows by table, without at_ms, and read failures."""

    rows: Rows = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)

    @property
    def complete(self) -> bool:
        return not self.failures

    def failed(self, text: str, error: KctlError | None = None) -> None:
        """Add a line for a read failure, up to a limit. The text is not repeated if the error starts with it."""
        if error is not None:
            text = error.message if error.message.startswith(f"{text}: ") else f"{text}: {error.message}"
        if len(self.failures) < _MAX_FAILURES:
            self.failures.append(text[:_MAX_TEXT])
        elif len(self.failures) == _MAX_FAILURES:
            self.failures.append("and more")


class _Oldest(NamedTuple):
    """The timestamp of the first record when the log started at `start`."""

    topic_id: str | None
    start: int
    timestamp_ms: int | None


class AnotherCluster(Refused):
    """Raised if the brokers now belong to another cluster."""


class Collector:
    """A reader of passes over a cluster. Caches values that need not be requested for each pass."""

    def __init__(self, cluster_id: str | None) -> None:
        # Import now, so that the import does not delay the reads of the first pass.
        import kafka.protocol.admin
        import kafka.protocol.consumer
        import kafka.protocol.metadata  # noqa: F401

        self._cluster_id = cluster_id
        self._oldest: dict[TopicPartition, _Oldest] = {}
        self._configs: dict[str, tuple[Any, ...]] = {}
        self._configs_at_ms: int | None = None
        self._waiting: dict[TopicPartition, int] = {}  # when leaders began to return no offsets (at_ms)
        self._steady: set[str] = set()  # topics whose first record changes only with their log start

    def take_pass(self, client: ClusterClient, at_ms: int) -> Pass:
        """Return a pass with its read failures. An unresponsive broker costs only one timeout.

        Raises AnotherCluster, and subclasses of ConnectionFailed if no broker is reachable.
        """
        with client.asking_silent_brokers_once():
            return self._take_pass(client, at_ms)

    def _take_pass(self, client: ClusterClient, at_ms: int) -> Pass:
        result = Pass()
        state = client.metadata()
        if state.cluster_id != self._cluster_id:
            raise AnotherCluster(
                f"the brokers now belong to cluster {state.cluster_id}, but the snapshots to {self._cluster_id}",
                hint="use a store for each cluster",
            )
        _note_absent_brokers(state, result)
        groups = self._groups(client, result)
        committed = _committed(client, groups, result)
        owners = {name: owners_of(groups[name]) for name in groups}
        selected: set[TopicPartition] = set().union(*committed.values(), *owners.values())
        deleted = _deleted_partitions(client, state, selected, result)
        offsets = self._logs(client, state, at_ms, result)
        partitions = {p.tp: p for topic in state.topics.values() for p in topic.partitions}
        ids = {name: topic.topic_id for name, topic in state.topics.items()}
        result.rows[schema.COMMITS] = [
            _commit(
                name, tp, each.get(tp), offsets.get(tp), partitions.get(tp), ids.get(tp.topic), deleted=tp in deleted
            )
            for name, each in committed.items()
            for tp in each.keys() | owners[name].keys()
        ]
        result.rows[schema.GROUPS] = [_group(group) for group in groups.values()]
        result.rows[schema.OWNERS] = [
            (name, *tp, member.member_id, member.client_id, member.host)
            for name, each in owners.items()
            for tp, member in each.items()
        ]
        _disks(client, state, result)
        return result

    def _groups(self, client: ClusterClient, result: Pass) -> dict[str, Group]:
        try:
            listed = all_groups(client, members=True)
        except KctlError as exc:
            result.failed("groups", exc)
            return {}
        for name, error in listed.unlisted.items():
            result.failed(f"groups of {name}", error)
        for name, error in listed.failed_groups.items():
            result.failed(f"group {name}", error)
        return listed.groups

    def _logs(
        self, client: ClusterClient, state: ClusterState, at_ms: int, result: Pass
    ) -> dict[TopicPartition, LogOffsets]:
        """Add the rows of `logs`; return the log offsets."""
        self._add_configs(client, state, at_ms, result)
        partitions = [p for topic in state.topics.values() for p in topic.partitions]
        offsets, _, unreadable = read_log_offsets(client, [p.tp for p in partitions], state=state)
        stable = fetch_offsets_each(client, _by_leader(partitions), OffsetSpec.LATEST, read_committed=True)
        self._waiting = {
            tp: self._waiting.get(tp, at_ms)
            for tp, error in unreadable.items()
            if (error.details or {}).get("kafka_error") == "OFFSET_NOT_AVAILABLE"
        }
        for tp, error in unreadable.items():
            persists = at_ms - self._waiting.get(tp, at_ms) >= _LONG_MS
            result.failed(f"partition {tp}", OperationFailed(error.message + _WHY_NO_OFFSETS) if persists else error)
        oldest = self._oldest_of(client, state, offsets, result)
        rows = result.rows[schema.LOGS] = []
        for p in partitions:
            ends, last_stable = offsets.get(p.tp), stable.get(p.tp)
            rows.append((
                p.topic, p.partition, state.topics[p.topic].topic_id, p.leader, p.leader_epoch,
                ends.start if ends else None, ends.end if ends else None,
                last_stable if isinstance(last_stable, int) else None, oldest.get(p.tp),
            ))  # fmt: skip
        return offsets

    def _oldest_of(
        self, client: ClusterClient, state: ClusterState, offsets: Mapping[TopicPartition, LogOffsets], result: Pass
    ) -> dict[TopicPartition, int | None]:
        """Return the timestamp of each log's first record; requested only if it may have changed."""
        ids = {name: topic.topic_id for name, topic in state.topics.items()}
        cached = {
            tp: entry
            for tp, entry in self._oldest.items()
            if tp in offsets
            and entry[:2] == (ids.get(tp.topic), offsets[tp].start)
            and (entry.timestamp_ms is not None and tp.topic in self._steady)
        }
        missing = [tp for tp in offsets if tp not in cached and offsets[tp].end > offsets[tp].start]
        timestamps, failed = fetch_oldest_timestamps(client, missing, state)
        for tp, error in failed.items():
            result.failed(f"first record of {tp}", error)
        cached |= {tp: _Oldest(ids.get(tp.topic), offsets[tp].start, time_ms) for tp, time_ms in timestamps.items()}
        self._oldest = cached
        return {tp: entry.timestamp_ms for tp, entry in cached.items()}

    def _add_configs(self, client: ClusterClient, state: ClusterState, at_ms: int, result: Pass) -> None:
        """Add the rows of `configs`: all in the first pass of an hour, then changed ones every five minutes."""
        last = self._configs_at_ms
        everything = last is None or hour_of(last) != hour_of(at_ms)
        if last is not None and not everything and 0 <= at_ms - last < CONFIGS_EVERY_MS:
            return
        try:
            responses = fetch_config_values(client, state.topics, tuple(_CONFIGS.values()))
        except KctlError as exc:
            result.failed("configs", exc)
            return
        self._configs_at_ms = at_ms
        configs: dict[str, tuple[Any, ...]] = {}
        rows = result.rows[schema.CONFIGS] = []
        for topic, values in responses.items():
            if isinstance(values, NotFound):
                continue
            if isinstance(values, KctlError):
                result.failed(f"configs of topic {topic}", values)
                continue
            row = configs[topic] = _config(topic, values)
            if everything or self._configs.get(topic) != row:
                rows.append(row)
        self._configs = configs
        self._steady = {topic for topic, row in configs.items() if not compacts(row[1])}


def compacts(cleanup_policy: str | None) -> bool:
    """Return True if the cleaner may remove a log's first record without moving its start, or if that is unknown."""
    return cleanup_policy is None or "compact" in cleanup_policy


def _note_absent_brokers(state: ClusterState, result: Pass) -> None:
    """Add a failure for each broker that hosts replicas and is down: the pass lacks its log dirs."""
    replicas: dict[int, int] = {}
    for topic in state.topics.values():
        for partition in topic.partitions:
            for node in partition.replicas:
                replicas[node] = replicas.get(node, 0) + 1
    for node in sorted(replicas.keys() - state.brokers.keys()):
        was = "was" if replicas[node] == 1 else "were"
        result.failed(f"broker {node} is down: {counted(replicas[node], 'replica')} of it {was} not read")


def _committed(client: ClusterClient, groups: Mapping[str, Group], result: Pass) -> dict[str, Committed]:
    query = {name: group.coordinator for name, group in groups.items() if group.type != _SHARE}
    try:
        responses = ask_coordinators(client, query, lambda by: fetch_committed_each(client, by), coordinators=query)
    except KctlError as exc:
        result.failed("commits", exc)
        return {}
    committed: dict[str, Committed] = {}
    for name, response in responses.items():
        if isinstance(response, KctlError):
            result.failed(f"commits of group {name}", response)
        else:
            committed[name] = response
    return committed


def _deleted_partitions(
    client: ClusterClient, state: ClusterState, selected: Iterable[TopicPartition], result: Pass
) -> set[TopicPartition]:
    """Return selected partitions that no longer exist, except in topics that the user may not describe."""
    existing = {p.tp for topic in state.topics.values() for p in topic.partitions}
    absent = {tp for tp in selected if tp not in existing}
    hidden: set[str] = set()
    missing = sorted({tp.topic for tp in absent} - state.topics.keys())
    for topics in ([missing], [[topic] for topic in missing]):  # on an error, request each topic alone
        hidden.clear()
        for names in topics:
            try:
                created = client.metadata(names).topics if names else {}
            except KctlError as exc:
                hidden.update(names)
                if len(names) == 1:
                    result.failed(f"topic {names[0]}", exc)
            else:
                hidden.update(created)  # created since: the next pass contains it
        if not hidden or len(missing) == 1:
            break
    return {tp for tp in absent if tp.topic not in hidden}


def _by_leader(partitions: Iterable[PartitionState]) -> dict[int, list[TopicPartition]]:
    by_leader: dict[int, list[TopicPartition]] = {}
    for partition in partitions:
        if partition.leader >= 0:
            by_leader.setdefault(partition.leader, []).append(partition.tp)
    return by_leader


def _commit(
    group: str,
    tp: TopicPartition,
    committed: int | None,
    offsets: LogOffsets | None,
    partition: PartitionState | None,
    topic_id: str | None,
    *,
    deleted: bool,
) -> tuple[Any, ...]:
    start, end = (offsets.start, offsets.end) if offsets else (None, None)
    epoch = partition.leader_epoch if partition else None
    return (group, *tp, committed, start, end, epoch, topic_id, deleted)


def _group(group: Group) -> tuple[Any, ...]:
    members = None if group.members is None else len(group.members)
    return (group.group, group.state, group.type, group.protocol_type, members, group.coordinator)


def _disks(client: ClusterClient, state: ClusterState, result: Pass) -> None:
    """Add the rows of `log_dirs` and `replicas`."""
    dirs = result.rows[schema.LOG_DIRS] = []
    replicas = result.rows[schema.REPLICAS] = []
    for broker, response in fetch_log_dirs(client, state.brokers).items():
        if isinstance(response, KctlError):
            result.failed(f"log dirs of broker {broker}", response)
            continue
        for each in response:
            dirs.append((broker, each.path, each.total_bytes, each.usable_bytes, each.error))
            if each.error:
                result.failed(each.error)
            replicas += [
                (broker, each.path, r.topic, r.partition, r.size_bytes, r.offset_lag, r.future) for r in each.replicas
            ]


def _config(topic: str, values: Mapping[str, str | None]) -> tuple[Any, ...]:
    row: list[Any] = [topic]
    for name, kind, _ in schema.COLUMNS[schema.CONFIGS][2:]:
        text = values.get(_CONFIGS[name])
        row.append(text if kind == "string" else _number(text, float if kind == "double" else int))
    return tuple(row)


def _number(text: str | None, kind: type[int] | type[float]) -> int | float | None:
    try:
        return None if text is None else kind(text)
    except ValueError:
        return None
