"""Offsets of topics: ends of logs, oldest and newest records, and offsets at a time.

Sends ListOffsets to the leaders, like kafka-get-offsets (org.apache.kafka.tools.GetOffsetShell). A leader that has just
changed is looked up again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from kctl.base.timestamps import format_timestamp, parse_timestamp
from kctl.cluster.log_offsets import ByLeader, ask_leaders, read_log_offsets
from kctl.cluster.offsets import ListedOffset, OffsetSpec, list_offsets_each, listed
from kctl.cluster.topics import choose, chosen_partitions, not_seen
from kctl.errors import KctlError, NotSupported, OperationFailed
from kctl.model import ClusterState, TopicPartition, TopicState

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient

_T = TypeVar("_T")
Failures = dict[TopicPartition, KctlError]

SPECS = {
    "earliest": OffsetSpec.EARLIEST,
    "latest": OffsetSpec.LATEST,
    "max-timestamp": OffsetSpec.MAX_TIMESTAMP,
    "earliest-local": OffsetSpec.EARLIEST_LOCAL,
    "latest-tiered": OffsetSpec.LATEST_TIERED,
    "earliest-pending-upload": OffsetSpec.EARLIEST_PENDING_UPLOAD,
}  # as in kafka-get-offsets --time, which also accepts their numbers
_NUMBERS = {str(int(spec)): spec for spec in SPECS.values()}


@dataclass(frozen=True, slots=True)
class LogSpan:
    """The log of one partition. messages: log end − log start; fewer exist after compaction and with transactions.

    first_timestamp, max_timestamp: of the first and the newest record, ISO 8601, as set by producers (or by brokers
    with LogAppendTime). max_timestamp_offset: the offset of the newest one. None: no records, or (max_…) brokers before
    3.0.
    """

    log_start_offset: int
    log_end_offset: int
    messages: int
    first_timestamp: str | None
    max_timestamp: str | None
    max_timestamp_offset: int | None


@dataclass(frozen=True, slots=True)
class OffsetRow:
    """The offset of one partition. offset, timestamp: None if no record matches.

    timestamp: of the record, ISO 8601; None for the ends of the log.
    """

    topic: str
    partition: int
    offset: int | None
    timestamp: str | None


def parse_offset_spec(text: str) -> int:
    """Parse a name of SPECS, its number, or a time, into the ListOffsets timestamp. Raises UsageError."""
    spec = SPECS.get(text.lower(), _NUMBERS.get(text))
    return parse_timestamp(text) if spec is None else int(spec)


def list_offsets(
    client: ClusterClient,
    partitions: Collection[TopicPartition],
    timestamp_ms: int,
    value: Callable[[Any], _T],
    *,
    state: ClusterState | None = None,
) -> tuple[dict[TopicPartition, _T], Failures]:
    """Return `value` of each leader's response, and why it is missing for other partitions.

    state: current metadata with all partitions. Raises NotSupported if brokers do not support the request.
    """

    def ask(by_leader: ByLeader) -> dict[TopicPartition, _T | KctlError]:
        responses = list_offsets_each(client, by_leader, timestamp_ms, value)
        for response in responses.values():
            if isinstance(response, NotSupported):
                raise response
        return responses

    offsets, missing, failed = ask_leaders(client, partitions, ask, state)
    return offsets, failed | vanished(missing)


def vanished(partitions: Iterable[TopicPartition]) -> Failures:
    """Return an error for each partition that was deleted in the meantime."""
    return {tp: OperationFailed(f"{tp} no longer exists") for tp in partitions}


@dataclass(frozen=True, slots=True)
class OffsetRequest:
    """The offsets to read. names, patterns, internal: see kctl.cluster.topics.choose. partitions: None for all.

    offset_spec: of parse_offset_spec.
    """

    names: Sequence[str]
    patterns: Sequence[str]
    partitions: Sequence[int] | None
    offset_spec: int
    internal: bool = False


@dataclass(frozen=True, slots=True)
class OffsetReport:
    """A row per partition that responded. doubts: topics that may be hidden. failures: why partitions are missing."""

    rows: list[OffsetRow]
    doubts: list[str]
    failures: list[str]


def read_offsets(client: ClusterClient, request: OffsetRequest) -> OffsetReport:
    """Read the offsets of the selected partitions, in order. Raises as `choose` and `chosen_partitions` do."""
    state, chosen = choose(client, request.names, request.patterns, internal=request.internal)
    partitions = chosen_partitions(chosen, request.partitions)
    doubts, _ = not_seen(client, request.names, chosen)
    offsets, failed = list_offsets(client, partitions, request.offset_spec, listed, state=state)
    rows = [
        OffsetRow(tp.topic, tp.partition, _non_negative(offsets[tp].offset), format_timestamp(offsets[tp].timestamp_ms))
        for tp in partitions
        if tp in offsets
    ]
    return OffsetReport(rows, doubts, failure_lines(failed))


def log_spans(
    client: ClusterClient, state: ClusterState, topics: Iterable[TopicState]
) -> tuple[dict[TopicPartition, LogSpan], list[str]]:
    """Return the log of each partition, and what is unreadable, one line each. state: has the topics."""
    partitions = [p.tp for topic in topics for p in topic.partitions]
    ends, missing, unread = read_log_offsets(client, partitions, state=state)
    first, without_first = list_offsets(client, list(ends), 0, listed, state=state)
    newest, notes = newest_records(client, list(ends), state=state)
    spans = {tp: _span(end.start, end.end, first.get(tp), newest.get(tp)) for tp, end in ends.items()}
    return spans, list(dict.fromkeys([*failure_lines(unread | vanished(missing) | without_first), *notes]))


def newest_records(
    client: ClusterClient, partitions: Collection[TopicPartition], *, state: ClusterState | None = None
) -> tuple[dict[TopicPartition, ListedOffset], list[str]]:
    """Return the record with the largest timestamp of each partition, and why some are unknown (all before 3.0)."""
    try:
        newest, failed = list_offsets(client, partitions, OffsetSpec.MAX_TIMESTAMP, listed, state=state)
    except NotSupported as exc:
        return {}, [f"the times of the newest records are unknown: {exc.message}"]
    return newest, failure_lines(failed)


def _span(start: int, end: int, first: ListedOffset | None, newest: ListedOffset | None) -> LogSpan:
    return LogSpan(
        log_start_offset=start,
        log_end_offset=end,
        messages=end - start,
        first_timestamp=format_timestamp(first.timestamp_ms) if first else None,
        max_timestamp=format_timestamp(newest.timestamp_ms) if newest else None,
        max_timestamp_offset=_non_negative(newest.offset) if newest else None,
    )


def _non_negative(offset: int) -> int | None:
    return None if offset < 0 else offset


def failure_lines(failed: Mapping[TopicPartition, KctlError]) -> list[str]:
    """Return one line per reason, with the first few partitions."""
    by_reason: dict[str, list[TopicPartition]] = {}
    for tp, error in sorted(failed.items()):
        by_reason.setdefault(error.message.replace(str(tp), "it"), []).append(tp)
    return [f"no offsets for {_first_names(tps)}: {reason}" for reason, tps in by_reason.items()]


def _first_names(partitions: list[TopicPartition], limit: int = 5) -> str:
    more = f" and {len(partitions) - limit} more" if len(partitions) > limit else ""
    return ", ".join(map(str, partitions[:limit])) + more
