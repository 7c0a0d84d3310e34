"""Report a comparison of two replicas: the verdict, where each would truncate its log, and probable causes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from kctl.segment.diff.diff import Comparison, Divergence, DivergentRange, Lack, LackReason, compare
from kctl.segment.diff.epoch_truncation import EpochHistory, truncation
from kctl.segment.dump.query import MAX_MESSAGE_BYTES
from kctl.segment.log.partition_log import PartitionLog
from kctl.segment.log.replica import Replica

MAX_EPOCH_ROWS = 1000


class DiffVerdict(str, Enum):
    """The verdict, the worst that applies. same: all records are equal.

    behind: one replica starts later, ends earlier or is compacted further, which is usual. The others are not healthy.
    """

    SAME = "same"
    BEHIND = "behind"
    LACKS_RECORDS = "lacks_records"
    DAMAGED = "damaged"
    DIVERGENT = "divergent"

    @property
    def healthy(self) -> bool:
        return self in {DiffVerdict.SAME, DiffVerdict.BEHIND}


@dataclass(frozen=True, slots=True)
class Side:
    """A replica. damaged: number of places; epochs_from: checkpoint or batches."""

    path: str
    topic_id: str | None
    log_start_offset: int
    log_end_offset: int
    segments: int
    batches: int
    size_bytes: int
    damaged: int
    latest_epoch: int | None
    epochs_from: str


@dataclass(frozen=True, slots=True)
class EpochDifference:
    """A leader epoch with different start offsets. None: the replica does not have the epoch."""

    epoch: int
    first_start: int | None
    second_start: int | None


@dataclass(frozen=True, slots=True)
class Truncation:
    """The effect if `leader` leads: `follower` truncates to `offset` before it fetches, and loses lost_offsets.

    offset: None if the epochs do not determine it; then the follower truncates to its high watermark. mends: the
    truncation removes the divergence.
    """

    leader: str
    follower: str
    offset: int | None
    lost_offsets: int | None
    mends: bool


@dataclass(frozen=True, slots=True)
class DiffReport:
    """The report. Lists have at most diff.MAX_RANGES entries; the numbers count all."""

    verdict: DiffVerdict
    first: Side
    second: Side
    divergence: Divergence | None
    divergent: tuple[DivergentRange, ...]
    divergent_records: int
    lacks: tuple[Lack, ...]
    lacking_ranges: int
    epochs: tuple[EpochDifference, ...]
    truncations: tuple[Truncation, ...]
    meaning: tuple[str, ...]
    equal_batches: int
    equal_records: int
    damage: tuple[str, ...]


def diff(
    first: PartitionLog, second: PartitionLog, *, compacted: bool = False, limit: int = MAX_MESSAGE_BYTES
) -> DiffReport:
    """Compare two replicas of one partition. compacted: compaction explains missing records."""
    comparison, one, two = compare(first, second, compacted=compacted, limit=limit)
    (first_history, _), (second_history, _) = histories = one.epochs(), two.epochs()
    sides = [_side(replica, *epochs) for replica, epochs in zip((one, two), histories, strict=True)]
    truncations = _truncations(comparison, sides, first_history, second_history)
    return DiffReport(
        verdict=_verdict(comparison, one, two),
        first=sides[0],
        second=sides[1],
        divergence=comparison.divergence,
        divergent=tuple(comparison.divergent),
        divergent_records=comparison.divergent_records,
        lacks=tuple(comparison.lacks),
        lacking_ranges=comparison.lacking_ranges,
        epochs=tuple(_epoch_differences(first_history, second_history)),
        truncations=truncations,
        meaning=tuple(_meaning(comparison, sides, truncations)),
        equal_batches=comparison.equal_batches,
        equal_records=comparison.equal_records,
        damage=(*one.damage, *two.damage),
    )


def _side(replica: Replica, epochs: EpochHistory, checkpoint: bool) -> Side:
    return Side(
        path=str(replica.log.path),
        topic_id=replica.log.topic_id,
        log_start_offset=replica.start,
        log_end_offset=epochs.end,
        segments=len(replica.log.segments),
        batches=replica.batches,
        size_bytes=replica.size_bytes,
        damaged=replica.damaged,
        latest_epoch=epochs.latest,
        epochs_from="checkpoint" if checkpoint else "batches",
    )


def _verdict(comparison: Comparison, one: Replica, two: Replica) -> DiffVerdict:
    if comparison.divergence is not None:
        return DiffVerdict.DIVERGENT
    if one.damaged or two.damaged:
        return DiffVerdict.DAMAGED
    if comparison.holes:
        return DiffVerdict.LACKS_RECORDS
    return DiffVerdict.BEHIND if comparison.lacking_ranges else DiffVerdict.SAME


def _epoch_differences(first: EpochHistory, second: EpochHistory) -> Iterator[EpochDifference]:
    """Yield the epochs that do not start at the same offset."""
    one, two = dict(first.epochs), dict(second.epochs)
    for row_count, epoch in enumerate(
        epoch for epoch in sorted(one.keys() | two.keys()) if one.get(epoch) != two.get(epoch)
    ):
        if row_count == MAX_EPOCH_ROWS:
            return
        yield EpochDifference(epoch, one.get(epoch), two.get(epoch))


def _truncations(
    comparison: Comparison, sides: list[Side], first: EpochHistory, second: EpochHistory
) -> tuple[Truncation, ...]:
    """Return the truncation with either replica as the leader; nothing without a divergence."""
    if comparison.divergence is None:
        return ()
    rows = []
    for leader, follower, leads, follows in (
        (sides[0], sides[1], first, second),
        (sides[1], sides[0], second, first),
    ):
        offset = truncation(leads, follows)
        lost_offsets = None if offset is None else max(follower.log_end_offset - offset, 0)
        mends = offset is not None and offset <= comparison.divergence.offset
        rows.append(Truncation(leader.path, follower.path, offset, lost_offsets, mends))
    return tuple(rows)


# --- texts ----------------------------------------------------------------------------------------------------------


def _meaning(comparison: Comparison, sides: list[Side], truncations: tuple[Truncation, ...]) -> Iterator[str]:
    ids = {side.topic_id for side in sides} - {None}
    if len(ids) > 1:
        yield "The folders are not replicas of the same partition: the topic ids in partition.metadata differ."
    if comparison.divergence is not None:
        yield from _of_divergence(comparison.divergence, sides)
        for each in truncations:
            yield _of_truncation(each, comparison.divergence.offset)
    elif not comparison.common and comparison.lacking_ranges:
        yield "They have no common offsets: nothing was compared."
    yield from _of_lacks(comparison, sides)


def _of_divergence(divergence: Divergence, sides: list[Side]) -> Iterator[str]:
    one, two = divergence.first.leader_epoch, divergence.second.leader_epoch
    if one is None or two is None:
        yield f"Offset {divergence.offset} differs; without leader epochs, the leaders that wrote it are unknown."
    elif one == two:
        yield (
            f"Offset {divergence.offset} differs within leader epoch {one}, but a leader writes each offset only once: "
            "one of the files was modified outside Kafka, or damaged by its disk."
        )
    else:
        older, newer = sorted(zip((one, two), (side.path for side in sides), strict=True))
        yield (
            f"Offset {divergence.offset} was written by two leaders: in epoch {older[0]} in {older[1]}, in epoch "
            f"{newer[0]} in {newer[1]}. The leader of epoch {newer[0]} did not have the records of epoch {older[0]} "
            "from there on: they were not replicated when the leader changed (acks below all, or too small a "
            "min.insync.replicas), or an unclean election chose a replica that was behind."
        )


def _of_truncation(row: Truncation, offset: int) -> str:
    if row.offset is None:
        text = f"If {row.leader} leads, {row.follower} truncates to its high watermark"
        return f"{text}: the epochs do not determine an offset."
    text = f"If {row.leader} leads, {row.follower} truncates its log to offset {row.offset}"
    if row.lost_offsets:
        text += f" and loses {row.lost_offsets} offsets"
    if row.mends:
        return f"{text}; then the replicas are equal again."
    return f"{text}: the divergence from {offset} on remains, because the leader epochs do not show it."


def _of_lacks(comparison: Comparison, sides: list[Side]) -> Iterator[str]:
    for side in sides:
        lacks = [lack for lack in comparison.lacks if lack.path == side.path]
        for lack in lacks:
            if lack.where is LackReason.END:
                yield f"{side.path} ends at {side.log_end_offset}: it is behind by {_count(lack)}."
            elif lack.where is LackReason.START:
                yield f"{side.path} starts later, at {side.log_start_offset}: it lacks {_count(lack)}."
        compaction = [lack for lack in lacks if lack.where is LackReason.COMPACTION]
        if compaction:
            yield f"{side.path} was compacted further: {_sum(compaction)} of the other were removed."
        holes = [lack for lack in lacks if lack.where is LackReason.HOLE]
        if holes:
            yield (
                f"{side.path} lacks {_sum(holes)} between other records, from offset {holes[0].first_offset} on: usual "
                "only if the topic is compacted (then add --compacted); otherwise the records were lost."
            )
        damage = [lack for lack in lacks if lack.where is LackReason.DAMAGE]
        if damage:
            yield f"{side.path} lacks {_sum(damage)} where it is damaged; the other has them."


def _count(lack: Lack) -> str:
    if lack.records is None:
        return f"offsets {lack.first_offset} to {lack.last_offset}"
    return "1 record" if lack.records == 1 else f"{lack.records} records"


def _sum(lacks: list[Lack]) -> str:
    if any(lack.records is None for lack in lacks):
        return "records"
    total = sum(lack.records or 0 for lack in lacks)
    return "1 record" if total == 1 else f"{total} records"
