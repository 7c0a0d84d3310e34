"""Read a cluster as plain rows, for one share of a report. Works without Spark.

A broker or partition that cannot be read is a row with only `error` set (one line): one dead broker must not fail the
whole report, and nothing is dropped silently.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from kctl.cluster.log_dirs import fetch_log_dirs
from kctl.cluster.log_offsets import read_log_offsets
from kctl.errors import KctlError, NotFound
from kctl.lag.retention_requests import fetch_oldest_timestamps, fetch_retention
from kctl.model import TopicPartition
from kctl.protocol.client import ClusterClient, connect
from kctl.protocol.target import Target


class LogRow(NamedTuple):
    """Both ends of a partition's log and, if requested, the timestamp of its first record (ms)."""

    topic: str
    partition: int
    leader: int
    log_start_offset: int | None = None
    log_end_offset: int | None = None
    oldest_timestamp_ms: int | None = None
    error: str | None = None


class LogDirReplicaRow(NamedTuple):
    """A replica in a log dir. topic None: the log dir itself. log_dir None: the broker could not be read."""

    broker: int
    log_dir: str | None = None
    total_bytes: int | None = None
    usable_bytes: int | None = None
    topic: str | None = None
    partition: int | None = None
    size_bytes: int | None = None
    offset_lag: int | None = None
    future: bool | None = None
    error: str | None = None


class ConfigRow(NamedTuple):
    """The retention configs of a topic."""

    topic: str
    cleanup_policy: str | None = None
    retention_bytes: int | None = None
    retention_ms: int | None = None
    segment_bytes: int | None = None
    error: str | None = None


# --- the shares of the tasks; they are pickled and contain no secrets -----------------------------------------------


@dataclass(frozen=True)
class PartitionsShare:
    """Partitions with their leader. oldest: also read the oldest record's timestamp."""

    leaders: tuple[tuple[TopicPartition, int], ...]
    oldest: bool = False


@dataclass(frozen=True)
class BrokersShare:
    """Brokers whose log dirs are read. topics: only these; None: all."""

    brokers: tuple[int, ...]
    topics: frozenset[str] | None = None


@dataclass(frozen=True)
class TopicsShare:
    """Topics whose configs are read."""

    topics: tuple[str, ...]


# --- reading --------------------------------------------------------------------------------------------------------


def read_logs(target: Target, share: PartitionsShare, *, timeout_s: float) -> Iterator[LogRow]:
    """Yield the log offsets of a share's partitions. Deleted partitions have no row."""
    try:
        with connect(target, timeout_s=timeout_s) as client:
            yield from _logs(client, share)
    except KctlError as exc:
        for tp, leader in share.leaders:
            yield LogRow(*tp, leader, error=exc.message)


def _logs(client: ClusterClient, share: PartitionsShare) -> Iterator[LogRow]:
    offsets, deleted, unreadable = read_log_offsets(client, [tp for tp, _ in share.leaders])
    oldest, without_oldest = fetch_oldest_timestamps(client, list(offsets) if share.oldest else ())
    for tp, leader in share.leaders:
        if tp in deleted:
            continue
        result = offsets.get(tp)
        if result is None:
            reason = unreadable[tp].message if tp in unreadable else "the response does not include it"
            yield LogRow(*tp, leader, error=reason)
        elif tp in without_oldest:
            yield LogRow(*tp, leader, result.start, result.end, error=without_oldest[tp].message)
        else:
            yield LogRow(*tp, leader, result.start, result.end, oldest.get(tp))


def read_log_dirs(target: Target, share: BrokersShare, *, timeout_s: float) -> Iterator[LogDirReplicaRow]:
    """Yield a row for each log dir of a share's brokers and for each replica in it."""
    try:
        with connect(target, timeout_s=timeout_s) as client:
            responses = fetch_log_dirs(client, share.brokers)
    except KctlError as exc:
        responses = dict.fromkeys(share.brokers, exc)
    for broker, result in responses.items():
        if isinstance(result, KctlError):
            yield LogDirReplicaRow(broker, error=result.message)
            continue
        for log_dir in result:
            sizes = (log_dir.total_bytes, log_dir.usable_bytes)
            yield LogDirReplicaRow(broker, log_dir.path, *sizes, error=log_dir.error)
            for row in log_dir.replicas:
                if share.topics is None or row.topic in share.topics:
                    yield LogDirReplicaRow(
                        broker, log_dir.path, *sizes,
                        row.topic, row.partition, row.size_bytes, row.offset_lag, row.future,
                    )  # fmt: skip


def read_configs(target: Target, share: TopicsShare, *, timeout_s: float) -> Iterator[ConfigRow]:
    """Yield the retention configs of a share's topics. Deleted topics have no row."""
    responses: Sequence[tuple[str, object]]
    try:
        with connect(target, timeout_s=timeout_s) as client:
            responses = list(fetch_retention(client, share.topics).items())
    except KctlError as exc:
        responses = [(name, exc) for name in share.topics]
    for name, result in responses:
        if isinstance(result, NotFound):
            continue
        if isinstance(result, KctlError):
            yield ConfigRow(name, error=result.message)
        elif isinstance(result, tuple):
            yield ConfigRow(*result)
