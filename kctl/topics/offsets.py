"""Where the logs of topics begin and end, which records are the oldest and the newest, and what is at a time.

By ListOffsets to the leaders, as kafka-get-offsets asks (org.apache.kafka.tools.GetOffsetShell). A leader that has just
changed is looked up again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from kctl.base.moments import moment_text, parse_moment
from kctl.cluster.log_offsets import ByLeader, ask_leaders, read_log_offsets
from kctl.cluster.offsets import Listed, OffsetSpec, list_offsets_each, listed
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
}  # the words of kafka-get-offsets --time, which takes their numbers too
_NUMBERS = {str(int(spec)): spec for spec in SPECS.values()}


@dataclass(frozen=True, slots=True)
class LogSpan:
    """One partition's log. messages: log end − log start; compaction and the markers of transactions make them fewer.

    first_timestamp, max_timestamp: of the first record and of the newest one, ISO 8601 as the producers (or with
    LogAppendTime the brokers) set them; max_timestamp_offset: where the latter is. None: there is no record, or (the
    max_… ones) brokers are older than 3.0.
    """

    log_start_offset: int
    log_end_offset: int
    messages: int
    first_timestamp: str | None
    max_timestamp: str | None
    max_timestamp_offset: int | None


@dataclass(frozen=True, slots=True)
class OffsetRow:
    """What was asked of one partition. offset, timestamp: None when no record is what was asked for.

    timestamp: of the record, ISO 8601; ends of the log have none.
    """

    topic: str
    partition: int
    offset: int | None
    timestamp: str | None


def parse_place(text: str) -> int:
    """What ListOffsets is asked for: a word of SPECS, its number, or a moment in ms. Raises UsageError."""
    spec = SPECS.get(text.lower(), _NUMBERS.get(text))
    return parse_moment(text) if spec is None else int(spec)


def list_offsets(
    client: ClusterClient,
    partitions: Collection[TopicPartition],
    timestamp_ms: int,
    value: Callable[[Any], _T],
    *,
    state: ClusterState | None = None,
) -> tuple[dict[TopicPartition, _T], Failures]:
    """`value` of the answer of each partition's leader, and why there is none of others.

    state: metadata of now with all of them. Raises NotSupported when brokers do not know what is asked for.
    """

    def ask(by_leader: ByLeader) -> dict[TopicPartition, _T | KctlError]:
        answers = list_offsets_each(client, by_leader, timestamp_ms, value)
        for answer in answers.values():
            if isinstance(answer, NotSupported):
                raise answer
        return answers

    found, gone, failed = ask_leaders(client, partitions, ask, state)
    return found, failed | vanished(gone)


def vanished(partitions: Iterable[TopicPartition]) -> Failures:
    """Partitions that were there, and are not any more."""
    return {tp: OperationFailed(f"{tp} does not exist any more") for tp in partitions}


def offset_rows(
    client: ClusterClient, state: ClusterState, partitions: Collection[TopicPartition], place: int
) -> tuple[list[OffsetRow], list[str]]:
    """A row for each partition that was answered, in order; and why others were not. place: of parse_place."""
    found, failed = list_offsets(client, partitions, place, listed, state=state)
    rows = [
        OffsetRow(tp.topic, tp.partition, _known(found[tp].offset), moment_text(found[tp].timestamp_ms))
        for tp in partitions
        if tp in found
    ]
    return rows, failure_lines(failed)


def log_spans(
    client: ClusterClient, state: ClusterState, topics: Iterable[TopicState]
) -> tuple[dict[TopicPartition, LogSpan], list[str]]:
    """The logs of all partitions of `topics`, which are of `state`; and what could not be read, a line each."""
    partitions = [p.tp for topic in topics for p in topic.partitions]
    ends, gone, unread = read_log_offsets(client, partitions, state=state)
    first, without_first = list_offsets(client, list(ends), 0, listed, state=state)
    newest, notes = newest_records(client, list(ends), state=state)
    spans = {tp: _span(end.start, end.end, first.get(tp), newest.get(tp)) for tp, end in ends.items()}
    return spans, list(dict.fromkeys([*failure_lines(unread | vanished(gone) | without_first), *notes]))


def newest_records(
    client: ClusterClient, partitions: Collection[TopicPartition], *, state: ClusterState | None = None
) -> tuple[dict[TopicPartition, Listed], list[str]]:
    """The record with the largest timestamp of each partition; and why some are not known (brokers before 3.0: all)."""
    try:
        newest, failed = list_offsets(client, partitions, OffsetSpec.MAX_TIMESTAMP, listed, state=state)
    except NotSupported as exc:
        return {}, [f"times of the newest records: {exc.message}"]
    return newest, failure_lines(failed)


def _span(start: int, end: int, first: Listed | None, newest: Listed | None) -> LogSpan:
    return LogSpan(
        log_start_offset=start,
        log_end_offset=end,
        messages=end - start,
        first_timestamp=moment_text(first.timestamp_ms) if first else None,
        max_timestamp=moment_text(newest.timestamp_ms) if newest else None,
        max_timestamp_offset=_known(newest.offset) if newest else None,
    )


def _known(offset: int) -> int | None:
    return None if offset < 0 else offset


def failure_lines(failed: Mapping[TopicPartition, KctlError]) -> list[str]:
    """A line for each reason, with the first few partitions that it concerns."""
    by_reason: dict[str, list[TopicPartition]] = {}
    for tp, error in sorted(failed.items()):
        by_reason.setdefault(error.message.replace(str(tp), "it"), []).append(tp)
    return [f"no offsets of {_some(tps)}: {reason}" for reason, tps in by_reason.items()]


def _some(partitions: list[TopicPartition], limit: int = 5) -> str:
    more = f" and {len(partitions) - limit} more" if len(partitions) > limit else ""
    return ", ".join(map(str, partitions[:limit])) + more
