"""A dump for people and programs: rows of batches or records, of the small files beside a log, and of damage."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from kctl.errors import NotFound, UsageError
from kctl.segment.dump.fast_json import records_json
from kctl.segment.dump.file_rows import (
    AbortedTransactionRow,
    FileRow,
    OffsetIndexRow,
    ProducerRow,
    TimeIndexRow,
    checkpoint_rows,
    offset_index_rows,
    snapshot_rows,
    time_index_rows,
    transaction_index_rows,
)
from kctl.segment.dump.query import MAX_MESSAGE_BYTES, Found, Query, find_records, wrong_inner_crc
from kctl.segment.dump.rows import BatchRow, DamageRow, NoteRow, RecordRow, RowDecoder, batch_row, record_row
from kctl.segment.format.batch import Batch
from kctl.segment.format.checkpoints import OFFSET_CHECKPOINTS, CheckpointOffsetRow, EpochRow, SettingRow, is_checkpoint
from kctl.segment.format.compression import BadPayload
from kctl.segment.format.record import BadRecords
from kctl.segment.format.record_columns import whole_payload
from kctl.segment.log.follow import Rolled, Shortened, follow
from kctl.segment.log.partition import LEADER_EPOCHS, LEFTOVERS
from kctl.segment.log.source import Source
from kctl.segment.log.walk import Damage, batch_damage, batches, content_of, is_preallocated, preallocated_text

LOGS = (".log", ".checkpoint")  # a KRaft snapshot is written as a log


@dataclass(frozen=True, slots=True)
class DumpOptions:
    """query: what to show. records: rows are records, not batches. limit: of rows. follow: of the last file, until
    nothing came for idle_s. max_bytes: read no more of each log. decode: keys and values, instead of text.

    json_lines: records come as their text as far as that is possible, which is many times faster.
    """

    query: Query = field(default_factory=Query)
    records: bool = False
    limit: int | None = None
    follow: bool = False
    idle_s: float | None = None
    max_bytes: int | None = None
    max_message_bytes: int = MAX_MESSAGE_BYTES
    decode: RowDecoder | None = None
    json_lines: bool = False


@dataclass(frozen=True, slots=True)
class JsonLines:
    """The rows of so many records as JSON Lines in UTF-8."""

    text: bytes
    records: int


Row = BatchRow | RecordRow | FileRow


class _Kind(NamedTuple):
    row: type
    read: Callable[[Path, Query], Iterator[FileRow]]


_KINDS = {
    ".index": _Kind(OffsetIndexRow, offset_index_rows),
    ".timeindex": _Kind(TimeIndexRow, time_index_rows),
    ".txnindex": _Kind(AbortedTransactionRow, transaction_index_rows),
    ".snapshot": _Kind(ProducerRow, snapshot_rows),
}


def _kind(path: Path) -> _Kind | None:
    """By the name; None for a log. Raises NotFound, and UsageError for what is none of Kafka's files."""
    if is_checkpoint(path):
        row = (
            EpochRow
            if path.name == LEADER_EPOCHS
            else CheckpointOffsetRow
            if path.name in OFFSET_CHECKPOINTS
            else SettingRow
        )
        return _Kind(row, checkpoint_rows)
    suffix = Path(path.stem).suffix if path.suffix in LEFTOVERS else path.suffix
    if suffix in LOGS:
        return None
    if suffix not in _KINDS:
        if not path.exists():
            raise NotFound(f"{path} does not exist")
        raise UsageError(
            f"{path} is no file that kctl knows by its name",
            hint=f"it knows {', '.join([*LOGS, *_KINDS])}, the checkpoint files, meta.properties, partition.metadata",
        )
    return _KINDS[suffix]


def row_types(paths: Sequence[Path], *, records: bool) -> list[type]:
    """The classes of the rows that files have, each once. Raises UsageError for files that are none of Kafka's."""
    log = RecordRow if records else BatchRow
    return list(dict.fromkeys(log if kind is None else kind.row for kind in map(_kind, paths)))


class DumpRun:
    """damaged: how many places with damage the rows have shown so far; undecoded: how many records could not be
    decoded."""

    def __init__(self, paths: Sequence[Path], options: DumpOptions) -> None:
        self._paths, self._options = paths, options
        self.damaged = self.undecoded = 0
        self._left = options.limit  # rows that may still be shown

    def rows(self) -> Iterator[Row | None]:
        """The rows of all files, one after the other; None: there is nothing more for the moment (only with follow).

        Raises NotFound and the like for a file that cannot be read.
        """
        for row in self.rows_and_lines():
            assert not isinstance(row, JsonLines), "only with json_lines"
            yield row

    def rows_and_lines(self) -> Iterator[Row | JsonLines | None]:
        """As rows, with json_lines."""
        shown, limit = 0, self._options.limit
        for row in self._all():
            if isinstance(row, DamageRow) or (isinstance(row, BatchRow) and not row.valid):
                self.damaged += 1
            self.undecoded += isinstance(row, RecordRow) and row.decode_error is not None
            yield row
            if isinstance(row, JsonLines):
                shown += row.records
            else:
                shown += row is not None and not isinstance(row, (DamageRow, NoteRow))
            self._left = None if limit is None else limit - shown
            if limit is not None and shown >= limit:
                return

    def _all(self) -> Iterator[Row | JsonLines | None]:
        for number, path in enumerate(self._paths):
            kind = _kind(path)
            if kind is not None:
                yield from kind.read(path, self._options.query)
            elif self._options.follow and number == len(self._paths) - 1:
                yield from self._followed(path)
            else:
                with Source(path) as source:
                    yield from self._log(source)

    def _log(self, source: Source) -> Iterator[Row | JsonLines]:
        limit = self._options.max_bytes
        end = source.size if limit is None else min(limit, source.size)
        for item in batches(source, 0, end):
            if isinstance(item, Batch):
                yield from self._batch(source, item)
            elif item.position + item.length < end or end >= source.size:  # else --max-bytes cut it
                yield _unreadable(source, item)

    def _followed(self, path: Path) -> Iterator[Row | JsonLines | None]:
        following: Path | None = path
        while following is not None:
            with Source(following) as source:
                following = None
                for event in follow(source, idle_s=self._options.idle_s):
                    if isinstance(event, Batch):
                        yield from self._batch(source, event)
                    elif isinstance(event, Damage):
                        yield _unreadable(source, event)
                    elif isinstance(event, Shortened):
                        note = f"it became shorter by {event.length} bytes; what comes is read from here on"
                        yield NoteRow(str(source.path), event.position, event.length, note)
                    elif isinstance(event, Rolled):
                        following = event.path
                    else:
                        yield None

    def _batch(self, source: Source, batch: Batch) -> Iterator[Row | JsonLines]:
        """Its row, or its records' rows, as far as they are wanted. What a valid header rules out is not decoded; an
        invalid one rules nothing out."""
        options = self._options
        damage = batch_damage(source, batch)
        file, valid = str(source.path), damage is None
        if not options.query.wants_batch(batch):
            if damage is not None:  # its header may say anything
                yield DamageRow(file, batch.position, batch.size, damage)
            return
        if not options.records and (damage is not None or not options.query.about_records):
            yield batch_row(file, batch, valid=valid, damage=damage)
            return
        if damage is not None:
            yield DamageRow(file, batch.position, batch.size, damage)
        if batch.magic >= 0:
            yield from self._records(source, batch, valid=valid)

    def _records(self, source: Source, batch: Batch, *, valid: bool) -> Iterator[Row | JsonLines]:
        """Rows of the records that are wanted; without --records the batch's own when it has one of these."""
        options, file = self._options, str(source.path)
        try:
            content = content_of(source, batch, options.max_message_bytes)
            lines = self._json_lines(source, batch, content, valid=valid)
            if lines is not None:
                yield JsonLines(lines, batch.record_count)
                return
            for record in find_records(Found(batch, content, valid), options.query, limit=options.max_message_bytes):
                if not options.records:
                    yield batch_row(file, batch, valid=valid)
                    return
                yield record_row(file, batch, record, valid=valid, decode=options.decode)
                if valid and not record.legacy_valid:
                    yield DamageRow(file, batch.position, batch.size, wrong_inner_crc(record))
        except (BadRecords, BadPayload) as exc:
            if valid:  # else it was told already
                yield DamageRow(file, batch.position, batch.size, str(exc))

    def _json_lines(self, source: Source, batch: Batch, content: memoryview, *, valid: bool) -> bytes | None:
        """All records of a batch at once; None when the rows have to be made one by one."""
        options = self._options
        if not options.json_lines or options.decode is not None or batch.legacy or batch.control:
            return None
        if not options.query.wants_all_of(batch) or (self._left is not None and batch.record_count > self._left):
            return None
        payload = whole_payload(batch, content, limit=options.max_message_bytes)
        if payload is None or len(payload) > options.max_message_bytes:  # a record may be too large
            return None
        return records_json(batch, payload, str(source.path), valid=valid)


def _unreadable(source: Source, item: Damage) -> DamageRow | NoteRow:
    if is_preallocated(source, item):
        return NoteRow(str(source.path), item.position, item.length, preallocated_text(item.length))
    return DamageRow(str(source.path), item.position, item.length, item.message)
