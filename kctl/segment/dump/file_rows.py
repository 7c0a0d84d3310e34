"""The small files beside a log as rows: indexes, producer snapshots, checkpoints.

Indexes are read in pieces; other files are read whole, and rejected if they are larger than Kafka ever writes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from kctl.base.timestamps import format_timestamp
from kctl.errors import UsageError
from kctl.segment.dump.query import Query
from kctl.segment.dump.rows import DamageRow, NoteRow
from kctl.segment.format.checkpoints import BadCheckpoint, CheckpointRow, read_checkpoint
from kctl.segment.format.index_entries import Extent, extent, offset_entries, time_entries, transaction_entries
from kctl.segment.format.indexes import OFFSET_ENTRY_SIZE, TIME_ENTRY_SIZE, TXN_ENTRY_SIZE
from kctl.segment.format.producer_snapshot import BadSnapshot, parse_snapshot
from kctl.segment.log.partition import offset_of
from kctl.segment.log.source import Source, read_whole


@dataclass(frozen=True, slots=True)
class OffsetIndexRow:
    """An entry of a .index: the batch with this offset is at or after `position`."""

    kind: str = field(default="offset_index_entry", init=False)
    file: str
    offset: int
    position: int


@dataclass(frozen=True, slots=True)
class TimeIndexRow:
    """An entry of a .timeindex: no record up to `offset` is later than `timestamp`."""

    kind: str = field(default="time_index_entry", init=False)
    file: str
    timestamp: str | None
    offset: int


@dataclass(frozen=True, slots=True)
class AbortedTransactionRow:
    """An entry of a .txnindex."""

    kind: str = field(default="aborted_transaction", init=False)
    file: str
    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int
    version: int


@dataclass(frozen=True, slots=True)
class ProducerRow:
    """A producer in a .snapshot. Sequences and offsets are those of its last batch.

    transaction_first_offset: of its open transaction.
    """

    kind: str = field(default="producer", init=False)
    file: str
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    first_sequence: int | None
    last_sequence: int | None
    last_offset: int | None
    offset_delta: int
    timestamp: str | None
    transaction_first_offset: int | None


FileRow = OffsetIndexRow | TimeIndexRow | AbortedTransactionRow | ProducerRow | CheckpointRow | DamageRow | NoteRow


# --- indexes --------------------------------------------------------------------------------------------------------


def offset_index_rows(path: Path, query: Query) -> Iterator[FileRow]:
    """Yield the entries of a .index, selected by the offsets of the query."""
    base = _base_offset(path)
    with Source(path) as source:
        entries_extent = extent(source, OFFSET_ENTRY_SIZE)
        for relative, position in offset_entries(source, entries_extent.entries):
            if _within(query, base + relative, base + relative):
                yield OffsetIndexRow(str(path), base + relative, position)
        yield from _rest(source, entries_extent)


def time_index_rows(path: Path, query: Query) -> Iterator[FileRow]:
    """Yield the entries of a .timeindex, selected by the offsets and times of the query."""
    base = _base_offset(path)
    with Source(path) as source:
        entries_extent = extent(source, TIME_ENTRY_SIZE)
        for timestamp, relative in time_entries(source, entries_extent.entries):
            late = query.until_ms is not None and timestamp >= query.until_ms
            early = query.since_ms is not None and timestamp < query.since_ms
            if _within(query, base + relative, base + relative) and not (early or late):
                yield TimeIndexRow(str(path), format_timestamp(timestamp), base + relative)
        yield from _rest(source, entries_extent)


def transaction_index_rows(path: Path, query: Query) -> Iterator[FileRow]:
    """Yield the entries of a .txnindex, selected by the offsets and the producer of the query.

    Brokers do not preallocate this file.
    """
    with Source(path) as source:
        odd_bytes = source.size % TXN_ENTRY_SIZE
        for number, entry in enumerate(transaction_entries(source, source.size // TXN_ENTRY_SIZE)):
            if entry.version:
                text = f"an entry of the unknown version {entry.version}"
                yield DamageRow(str(path), number * TXN_ENTRY_SIZE, TXN_ENTRY_SIZE, text)
            elif _within(query, entry.first_offset, entry.last_offset) and query.producer_id in {
                None,
                entry.producer_id,
            }:
                yield AbortedTransactionRow(str(path), *entry[1:], version=entry.version)
        yield from _rest(source, Extent(0, 0, odd_bytes))


def _rest(source: Source, entries_extent: Extent) -> Iterator[DamageRow | NoteRow]:
    """Yield rows for the bytes after the entries: preallocated zeros, and an incomplete entry."""
    end = source.size - entries_extent.odd_bytes
    if entries_extent.tail_bytes:
        note = f"{entries_extent.tail_bytes} bytes preallocated by the broker for the active segment"
        yield NoteRow(str(source.path), end - entries_extent.tail_bytes, entries_extent.tail_bytes, note)
    if entries_extent.odd_bytes:
        text = "incomplete entry: the broker rebuilds this index when it starts"
        yield DamageRow(str(source.path), end, entries_extent.odd_bytes, text)


def _base_offset(path: Path) -> int:
    base = offset_of(path)
    if base is None:
        raise UsageError(
            f"{path} is not named after a base offset", hint="its entries are relative to the offset in its name"
        )
    return base


def _within(query: Query, first: int, last: int) -> bool:
    return (query.first is None or last >= query.first) and (query.last is None or first <= query.last)


# --- snapshots and checkpoints --------------------------------------------------------------------------------------


def snapshot_rows(path: Path, query: Query) -> Iterator[FileRow]:
    """Yield the producers of a .snapshot, selected by the producer of the query."""
    data = read_whole(path)
    try:
        entries = parse_snapshot(data)
    except BadSnapshot as exc:
        yield DamageRow(str(path), 0, len(data), f"{exc}; the broker ignores the file")
        return
    for entry in entries:
        if query.producer_id in {None, entry.producer_id}:
            yield ProducerRow(
                file=str(path),
                producer_id=entry.producer_id,
                producer_epoch=entry.producer_epoch,
                coordinator_epoch=entry.coordinator_epoch,
                first_sequence=_or_none(entry.first_sequence),
                last_sequence=_or_none(entry.last_sequence),
                last_offset=_or_none(entry.last_offset),
                offset_delta=entry.offset_delta,
                timestamp=format_timestamp(entry.timestamp),
                transaction_first_offset=_or_none(entry.current_transaction_first_offset),
            )


def checkpoint_rows(path: Path, _query: Query) -> Iterator[FileRow]:
    """Yield the rows of a text file that checkpoints.py reads."""
    data = read_whole(path)
    try:
        yield from read_checkpoint(path, data)
    except BadCheckpoint as exc:
        yield DamageRow(str(path), 0, len(data), str(exc))


def _or_none(number: int) -> int | None:
    return None if number == -1 else number
