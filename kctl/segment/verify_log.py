"""Checking one .log file: every batch, and with `deep` every record."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from kctl.segment.batch import CODECS, NO_TIMESTAMP, Batch, crc_is_valid
from kctl.segment.compression import BadPayload
from kctl.segment.findings import Finding, finding
from kctl.segment.query import MAX_MESSAGE_BYTES, all_records
from kctl.segment.record import BadRecords
from kctl.segment.source import Source
from kctl.segment.walk import Damage, batches

_SEGMENT = re.compile(r"(\d{20})\.log")
_FARTHEST = 2**31 - 1  # offsets in indexes are i32, relative to the base offset


@dataclass
class LogFacts:
    """What the other checks need to know of a log: where batches begin, and of each the last offset, the latest
    timestamp and the leader epoch. aborted: markers of aborted transactions (producer id, offset of the marker)."""

    path: Path
    base_offset: int
    size_bytes: int = 0
    positions: dict[int, int] = field(default_factory=dict)  # position → last offset
    batch_count: int = 0
    first_offset: int | None = None
    last_offset: int | None = None
    epochs: dict[int, int] = field(default_factory=dict)  # leader epoch → first offset
    max_timestamp: int = NO_TIMESTAMP
    damaged: bool = False


def base_offset_of(path: Path) -> int | None:
    """The offset in a segment file's name; None when it is no segment's."""
    match = _SEGMENT.fullmatch(path.with_suffix(".log").name)
    return int(match[1]) if match else None


def verify_log(source: Source, facts: LogFacts, *, deep: bool, limit: int = MAX_MESSAGE_BYTES) -> Iterator[Finding]:
    """Findings of a log, front to back, while `facts` are filled."""
    facts.size_bytes = source.size
    for item in batches(source):
        if isinstance(item, Damage):
            facts.damaged = True
            yield _damage(source, facts.path, item)
        else:
            yield from _check(source, facts, item, deep=deep, limit=limit)


def _damage(source: Source, path: Path, item: Damage) -> Finding:
    at_end = item.position + item.length >= source.size
    content = source.read(item.position, min(item.length, 1 << 20))
    if not any(content):
        return finding(
            "zero_tail" if at_end else "garbage", path, f"{item.length} zero bytes", position=item.position
        )
    code = "batch_incomplete" if at_end and item.code == "incomplete" else "garbage"
    what = f"{item.message}; {item.length} bytes cannot be read"
    return finding(code, path, what, position=item.position)


def _check(source: Source, facts: LogFacts, batch: Batch, *, deep: bool, limit: int) -> Iterator[Finding]:
    path, at = facts.path, batch.position
    content = source.read(at, batch.size)
    valid = crc_is_valid(batch, content)
    if not valid:
        facts.damaged = True
        yield finding("batch_crc", path, "the CRC is not that of the batch", position=at, offset=batch.base_offset)
    yield from _header(facts, batch)
    _note(facts, batch)
    if valid and deep:
        yield from _records(facts, batch, content, limit)


def _header(facts: LogFacts, batch: Batch) -> Iterator[Finding]:
    path, at, first = facts.path, batch.position, batch.base_offset

    def found(code: str, message: str) -> Finding:
        return finding(code, path, message, position=at, offset=first)

    if batch.magic not in {0, 1, 2}:
        yield found("batch_magic", f"magic {batch.magic} is unknown")
    if batch.codec >= len(CODECS):
        yield found("batch_codec", f"compression type {batch.codec} is unknown")
    if not batch.legacy and (batch.record_count < 0 or batch.record_count > batch.last_offset_delta + 1):
        yield found("batch_count", f"{batch.record_count} records in {batch.last_offset_delta + 1} offsets")
    if facts.last_offset is not None and batch.last_offset <= facts.last_offset:
        yield found("offset_order", f"offset {batch.last_offset} comes behind {facts.last_offset}")
    elif batch.last_offset < facts.base_offset or (first < facts.base_offset and not batch.legacy):
        yield found("offset_outside", f"offset {first} is before the segment's base offset {facts.base_offset}")
    elif batch.last_offset - facts.base_offset > _FARTHEST:
        yield found("offset_too_far", f"offset {batch.last_offset} is too far from the base offset {facts.base_offset}")


def _note(facts: LogFacts, batch: Batch) -> None:
    facts.batch_count += 1
    facts.positions[batch.position] = batch.last_offset
    if facts.first_offset is None:
        facts.first_offset = batch.base_offset
    facts.last_offset = max(batch.last_offset, facts.last_offset if facts.last_offset is not None else -1)
    facts.max_timestamp = max(facts.max_timestamp, batch.max_timestamp)
    if not batch.legacy:
        facts.epochs.setdefault(batch.partition_leader_epoch, batch.base_offset)


def _records(facts: LogFacts, batch: Batch, content: memoryview, limit: int) -> Iterator[Finding]:
    latest, previous, count = NO_TIMESTAMP, None, 0
    try:
        for record in all_records(batch, content, limit=limit):
            count += 1
            latest = max(latest, record.timestamp)
            if not record.legacy_valid:
                yield finding("batch_crc", facts.path, "the CRC is not that of an inner message",
                              position=batch.position, offset=record.offset)  # fmt: skip
            if previous is not None and record.offset <= previous:
                yield finding("record_offsets", facts.path, f"offset {record.offset} comes behind {previous}",
                              position=batch.position, offset=record.offset)  # fmt: skip
            previous = record.offset
    except (BadRecords, BadPayload) as exc:
        yield finding("records", facts.path, f"after {count} records: {exc}", position=batch.position,
                      offset=batch.base_offset)  # fmt: skip
        return
    if previous is not None and previous > batch.last_offset:
        yield finding("record_offsets", facts.path, f"offset {previous} is behind the batch's last, {batch.last_offset}",
                      position=batch.position, offset=previous)  # fmt: skip
    # A batch that compaction emptied or thinned out keeps its header's timestamp.
    if count == batch.record_count and latest > batch.max_timestamp and not batch.legacy:
        yield finding("max_timestamp", facts.path, f"a record of {latest} ms in a batch up to {batch.max_timestamp} ms",
                      position=batch.position, offset=batch.base_offset)  # fmt: skip
