"""A dump for people and programs: rows of batches or records, and of damage."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kctl.segment.batch import Batch, crc_is_valid
from kctl.segment.compression import BadPayload
from kctl.segment.query import Found, Query, find_records
from kctl.segment.record import BadRecords
from kctl.segment.rows import BatchRow, RecordRow, batch_row, record_row
from kctl.segment.source import Source
from kctl.segment.walk import Damage, batches

_POLL_S = 0.2


@dataclass(frozen=True, slots=True)
class DamageRow:
    """Bytes that cannot be read. size_bytes: how many are passed over; position: in the file."""

    file: str
    position: int
    size_bytes: int
    damage: str


@dataclass(frozen=True, slots=True)
class DumpOptions:
    """query: what to show. records: rows are records, not batches. limit: of rows. follow: of the last file."""

    query: Query = field(default_factory=Query)
    records: bool = False
    limit: int | None = None
    follow: bool = False
    max_message_bytes: int = 100 * 1024 * 1024


Row = BatchRow | RecordRow | DamageRow


class DumpRun:
    """damaged: how many places with damage the rows have shown so far."""

    def __init__(self, paths: Sequence[Path], options: DumpOptions) -> None:
        self._paths, self._options = paths, options
        self.damaged = 0

    def rows(self) -> Iterator[Row]:
        """The rows of all files, one after the other. Raises NotFound and the like for a file that cannot be read."""
        shown = 0
        for row in self._all():
            if isinstance(row, DamageRow) or (isinstance(row, BatchRow) and not row.valid):
                self.damaged += 1
            shown += not isinstance(row, DamageRow)
            yield row
            if self._options.limit is not None and shown >= self._options.limit:
                return

    def _all(self) -> Iterator[Row]:
        for number, path in enumerate(self._paths):
            with Source(path) as source:
                follow = self._options.follow and number == len(self._paths) - 1
                yield from _file(source, self._options, follow=follow)


def _file(source: Source, options: DumpOptions, *, follow: bool) -> Iterator[Row]:
    position = 0
    while True:
        for item in batches(source, position):
            if isinstance(item, Damage):
                if follow and item.position + item.length >= source.size:
                    break  # a batch that is being written
                position = item.position + item.length
                yield DamageRow(str(source.path), item.position, item.length, item.message)
                continue
            position = item.next_position
            if options.query.wants_batch(item):
                yield from _batch(source, item, options)
        if not follow:
            return
        _await_growth(source, position)


def _await_growth(source: Source, position: int) -> None:
    before = source.size
    while source.refresh() in {before, position}:
        time.sleep(_POLL_S)


def _batch(source: Source, batch: Batch, options: DumpOptions) -> Iterator[Row]:
    file, content = str(source.path), source.read(batch.position, batch.size)
    found = Found(batch, content, crc_is_valid(batch, content))
    if not options.records and not options.query.about_records:
        yield batch_row(file, found.batch, valid=found.valid)
        return
    wanted = find_records(found, options.query, limit=options.max_message_bytes)
    try:
        for record in wanted:
            if not options.records:
                yield batch_row(file, found.batch, valid=found.valid)
                return
            yield record_row(file, found.batch, record, valid=found.valid)
    except (BadRecords, BadPayload) as exc:
        yield DamageRow(file, found.batch.position, found.batch.size, str(exc))
