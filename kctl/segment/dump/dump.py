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
from kctl.segment.dump.query import MAX_MESSAGE_BYTES, MatchingBatch, Query, find_records, wrong_inner_crc
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
    """The options of a dump.

    query: what to show. records: rows are records, not batches. limit: maximum number of rows. follow: follow the last
    file until nothing is written for idle_s. max_bytes: bytes to read of each log. decode: decoder of keys and values,
    instead of text. json_lines: yield records as JSON text if possible, which is many times faster.
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
    """The rows of several records as JSON Lines in UTF-8."""

    text: bytes
    records: int


Row = BatchRow | RecordRow | FileRow


class _FileKind(NamedTuple):
    row: type
    rows: Callable[[Path, Query], Iterator[FileRow]]


_KINDS = {
    ".index": _FileKind(OffsetIndexRow, offset_index_rows),
    ".timeindex": _FileKind(TimeIndexRow, time_index_rows),
    ".txnindex": _FileKind(AbortedTransactionRow, transaction_index_rows),
    ".snapshot": _FileKind(ProducerRow, snapshot_rows),
}


def _kind(path: Path) -> _FileKind | None:
    """Return the kind of a file by its name; None for a log. Raises NotFound, UsageError for an unknown name."""
    if is_checkpoint(path):
        row = (
            EpochRow
            if path.name == LEADER_EPOCHS
            else CheckpointOffsetRow
            if path.name in OFFSET_CHECKPOINTS
            else SettingRow
        )
        return _FileKind(row, checkpoint_rows)
    suffix = Path(path.stem).suffix if path.suffix in LEFTOVERS else path.suffix
    if suffix in LOGS:
        return None
    if suffix not in _KINDS:
        if not path.exists():
            raise NotFound(f"{path} does not exist")
        raise UsageError(
            f"{path} is not a Kafka file, by its name",
            hint=f"supported: {', '.join([*LOGS, *_KINDS])}, the checkpoint files, meta.properties, "
            "partition.metadata, quorum-state",
        )
    return _KINDS[suffix]


def row_types(paths: Sequence[Path], *, records: bool) -> list[type]:
    """Return the classes of the rows of the files, each once. Raises UsageError for files with an unknown name."""
    log = RecordRow if records else BatchRow
    return list(dict.fromkeys(log if kind is None else kind.row for kind in map(_kind, paths)))


class DumpRun:
    """A run over several files.

    damaged: number of damaged places so far. undecoded: number of records that could not be decoded.
    """

    def __init__(self, paths: Sequence[Path], options: DumpOptions) -> None:
        self._paths, self._options = paths, options
        self.damaged = self.undecoded = 0
        self._remaining = options.limit  # rows before the limit

    def rows(self) -> Iterator[Row | None]:
        """Yield the rows of all files in order; None if there are no more rows for now (only with follow).

        Raises NotFound or NotAuthorized for an unreadable file.
        """
        for row in self.rows_and_lines():
            assert not isinstance(row, JsonLines), "only with json_lines"
            yield row

    def rows_and_lines(self) -> Iterator[Row | JsonLines | None]:
        """Yield the rows, and JsonLines if json_lines is set."""
        rows, limit = 0, self._options.limit
        for row in self._all():
            if isinstance(row, DamageRow) or (isinstance(row, BatchRow) and not row.valid):
                self.damaged += 1
            self.undecoded += isinstance(row, RecordRow) and row.decode_error is not None
            yield row
            if isinstance(row, JsonLines):
                rows += row.records
            else:
                rows += row is not None and not isinstance(row, (DamageRow, NoteRow))
            self._remaining = None if limit is None else limit - rows
            if limit is not None and rows >= limit:
                return

    def _all(self) -> Iterator[Row | JsonLines | None]:
        for number, path in enumerate(self._paths):
            kind = _kind(path)
            if kind is not None:
                yield from kind.rows(path, self._options.query)
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
            elif item.position + item.length < end or end >= source.size:  # otherwise --max-bytes cut it off
                yield _unreadable(source, item)

    def _followed(self, path: Path) -> Iterator[Row | JsonLines | None]:
        next_path: Path | None = path
        while next_path is not None:
            with Source(next_path) as source:
                next_path = None
                for event in follow(source, idle_s=self._options.idle_s):
                    if isinstance(event, Batch):
                        yield from self._batch(source, event)
                    elif isinstance(event, Damage):
                        yield _unreadable(source, event)
                    elif isinstance(event, Shortened):
                        note = f"the file was truncated by {event.length} bytes; reading continues here"
                        yield NoteRow(str(source.path), event.position, event.length, note)
                    elif isinstance(event, Rolled):
                        next_path = event.path
                    else:
                        yield None

    def _batch(self, source: Source, batch: Batch) -> Iterator[Row | JsonLines]:
        """Yield the matching rows of a batch or of its records.

        Batches that a valid header rules out are not decoded; an invalid header rules nothing out.
        """
        options = self._options
        damage = batch_damage(source, batch)
        file, valid = str(source.path), damage is None
        if not options.query.wants_batch(batch):
            if damage is not None:  # the header is not reliable
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
        """Yield the rows of matching records; without --records the row of the batch if a record matches."""
        options, file = self._options, str(source.path)
        try:
            content = content_of(source, batch, options.max_message_bytes)
            lines = self._json_lines(source, batch, content, valid=valid)
            if lines is not None:
                yield JsonLines(lines, batch.record_count)
                return
            for record in find_records(
                MatchingBatch(batch, content, valid), options.query, limit=options.max_message_bytes
            ):
                if not options.records:
                    yield batch_row(file, batch, valid=valid)
                    return
                yield record_row(file, batch, record, valid=valid, decode=options.decode)
                if valid and not record.legacy_valid:
                    yield DamageRow(file, batch.position, batch.size, wrong_inner_crc(record))
        except (BadRecords, BadPayload) as exc:
            if valid:  # otherwise already reported
                yield DamageRow(file, batch.position, batch.size, str(exc))

    def _json_lines(self, source: Source, batch: Batch, content: memoryview, *, valid: bool) -> bytes | None:
        """Return all records of a batch as JSON Lines; None if each row must be built separately."""
        options = self._options
        if not options.json_lines or options.decode is not None or batch.legacy or batch.control:
            return None
        if not options.query.wants_all_of(batch) or (
            self._remaining is not None and batch.record_count > self._remaining
        ):
            return None
        payload = whole_payload(batch, content, limit=options.max_message_bytes)
        if payload is None or len(payload) > options.max_message_bytes:  # a record may be too large
            return None
        return records_json(batch, payload, str(source.path), valid=valid)


def _unreadable(source: Source, item: Damage) -> DamageRow | NoteRow:
    if is_preallocated(source, item):
        return NoteRow(str(source.path), item.position, item.length, preallocated_text(item.length))
    return DamageRow(str(source.path), item.position, item.length, item.message)
