"""What a comparison of two replicas means: a verdict, where each would cut off its log, and why it may be so."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from kctl.segment.diff.diff import Comparison, Divergence, DivergentRange, Lack, Where, compare
from kctl.segment.diff.epoch_truncation import EpochHistory, truncation
from kctl.segment.dump.query import MAX_MESSAGE_BYTES
from kctl.segment.log.partition_log import PartitionLog
from kctl.segment.log.replica import Replica

MOST_EPOCH_ROWS = 1000


class Verdict(str, Enum):
    """same: every record; behind: one begins later or ends earlier, or compaction has been further on one side, which
    is usual; the others are not healthy. The worst one counts."""

    SAME = "same"
    BEHIND = "behind"
    LACKS_RECORDS = "lacks_records"
    DAMAGED = "damaged"
    DIVERGENT = "divergent"

    @property
    def healthy(self) -> bool:
        return self in {Verdict.SAME, Verdict.BEHIND}


@dataclass(frozen=True, slots=True)
class Side:
    """A replica. log_end_offset: behind its last batch; damaged: places; epochs_from: checkpoint or batches."""

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
    """A leader epoch whose start differs. None: the replica does not know the epoch."""

    epoch: int
    first_start: int | None
    second_start: int | None


@dataclass(frozen=True, slots=True)
class Truncation:
    """What happens when `leader` leads: `follower` ends at `offset` before it fetches, and loses lost_offsets of its
    log. offset None: the epochs do not tell, and it goes back to its high watermark. mends: no divergence is left."""

    leader: str
    follower: str
    offset: int | None
    lost_offsets: int | None
    mends: bool


@dataclass(frozen=True, slots=True)
class DiffReport:
    """The whole result. Lists are cut at diff.MOST_RANGES; the numbers count all."""

    verdict: Verdict
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
    """Compare two replicas of one partition; compacted: missing records are compaction's work."""
    found, one, two = compare(first, second, compacted=compacted, limit=limit)
    (own, _), (other, _) = histories = one.epochs(), two.epochs()
    sides = [_side(replica, *known) for replica, known in zip((one, two), histories, strict=True)]
    truncations = _truncations(found, sides, own, other)
    return DiffReport(
        verdict=_verdict(found, one, two),
        first=sides[0],
        second=sides[1],
        divergence=found.divergence,
        divergent=tuple(found.divergent),
        divergent_records=found.divergent_records,
        lacks=tuple(found.lacks),
        lacking_ranges=found.lacking_ranges,
        epochs=tuple(_epoch_differences(own, other)),
        truncations=truncations,
        meaning=tuple(_meaning(found, sides, truncations)),
        equal_batches=found.equal_batches,
        equal_records=found.equal_records,
        damage=(*one.damage, *two.damage),
    )


def _side(replica: Replica, known: EpochHistory, checkpoint: bool) -> Side:
    return Side(
        path=str(replica.log.path),
        topic_id=replica.log.topic_id,
        log_start_offset=replica.start,
        log_end_offset=known.end,
        segments=len(replica.log.segments),
        batches=replica.batches,
        size_bytes=replica.size_bytes,
        damaged=replica.damaged,
        latest_epoch=known.latest,
        epochs_from="checkpoint" if checkpoint else "batches",
    )


def _verdict(found: Comparison, one: Replica, two: Replica) -> Verdict:
    if found.divergence is not None:
        return Verdict.DIVERGENT
    if one.damaged or two.damaged:
        return Verdict.DAMAGED
    if found.holes:
        return Verdict.LACKS_RECORDS
    return Verdict.BEHIND if found.lacking_ranges else Verdict.SAME


def _epoch_differences(first: EpochHistory, second: EpochHistory) -> Iterator[EpochDifference]:
    """Epochs that do not begin at the same offset; those that ended before the other's log began do not count."""
    one, two = dict(first.epochs), dict(second.epochs)
    for shown, epoch in enumerate(
        epoch for epoch in sorted(one.keys() | two.keys()) if one.get(epoch) != two.get(epoch)
    ):
        if shown == MOST_EPOCH_ROWS:
            return
        yield EpochDifference(epoch, one.get(epoch), two.get(epoch))


def _truncations(
    found: Comparison, sides: list[Side], first: EpochHistory, second: EpochHistory
) -> tuple[Truncation, ...]:
    """For either of them as the leader; only where there is something to cut off."""
    if found.divergence is None:
        return ()
    rows = []
    for leader, follower, leads, follows in (
        (sides[0], sides[1], first, second),
        (sides[1], sides[0], second, first),
    ):
        offset = truncation(leads, follows)
        lost = None if offset is None else max(follower.log_end_offset - offset, 0)
        mends = offset is not None and offset <= found.divergence.offset
        rows.append(Truncation(leader.path, follower.path, offset, lost, mends))
    return tuple(rows)


# --- in words -------------------------------------------------------------------------------------------------------


def _meaning(found: Comparison, sides: list[Side], truncations: tuple[Truncation, ...]) -> Iterator[str]:
    ids = {side.topic_id for side in sides} - {None}
    if len(ids) > 1:
        yield "They are no replicas of one partition: partition.metadata has another topic id in each."
    if found.divergence is not None:
        yield from _of_divergence(found.divergence, sides)
        for each in truncations:
            yield _of_truncation(each, found.divergence.offset)
    elif not found.common and found.lacking_ranges:
        yield "They have no offset in common: nothing could be compared."
    yield from _of_lacks(found, sides)


def _of_divergence(found: Divergence, sides: list[Side]) -> Iterator[str]:
    one, two = found.first.leader_epoch, found.second.leader_epoch
    if one is None or two is None:
        yield f"Offset {found.offset} differs, and there are no leader epochs that tell who wrote it."
    elif one == two:
        yield (
            f"Offset {found.offset} differs within leader epoch {one}, and one leader writes an offset once: "
            "one of the files was changed outside of Kafka, or its disk damaged it."
        )
    else:
        older, newer = sorted(zip((one, two), (side.path for side in sides), strict=True))
        yield (
            f"Offset {found.offset} was written by two leaders: in epoch {older[0]} in {older[1]}, in epoch "
            f"{newer[0]} in {newer[1]}. The leader of epoch {newer[0]} did not have what epoch {older[0]} wrote from "
            "there on: it was not replicated when the leader changed (acks below all, or too small a "
            "min.insync.replicas), or an unclean election chose a replica that was behind."
        )


def _of_truncation(found: Truncation, offset: int) -> str:
    if found.offset is None:
        return (
            f"If {found.leader} leads, {found.follower} goes back to its high watermark: the epochs do not tell more."
        )
    text = f"If {found.leader} leads, {found.follower} cuts its log off at {found.offset}"
    if found.lost_offsets:
        text += f" and loses {found.lost_offsets} offsets of its own"
    if found.mends:
        return f"{text}; then they agree again."
    return f"{text}: the divergence from {offset} on stays, for the leader epochs do not show it."


def _of_lacks(found: Comparison, sides: list[Side]) -> Iterator[str]:
    for side in sides:
        own = [lack for lack in found.lacks if lack.path == side.path]
        for lack in own:
            if lack.where is Where.END:
                yield f"{side.path} ends at {side.log_end_offset}: it is behind by {_count(lack)}."
            elif lack.where is Where.START:
                yield f"{side.path} begins later, at {side.log_start_offset}: before that it lacks {_count(lack)}."
        compaction = [lack for lack in own if lack.where is Where.COMPACTION]
        if compaction:
            yield f"{side.path} was compacted further: {_sum(compaction)} of the other are not in it any more."
        holes = [lack for lack in own if lack.where is Where.HOLE]
        if holes:
            yield (
                f"{side.path} lacks {_sum(holes)} between others, from {holes[0].first_offset} on: usual only when the "
                "topic is compacted (then say --compacted); otherwise they were lost."
            )
        damage = [lack for lack in own if lack.where is Where.DAMAGE]
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
