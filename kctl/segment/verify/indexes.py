"""Check .index and .timeindex during the check of their log: one cursor over the entries of each.

The meaning of an entry (OffsetIndex, TimeIndex, LogSegment.append and recover):

- (offset, position): a batch starts at the position, and every offset from `offset` on is there or later. The offset is
  the last one that was appended together with that batch: of the batch itself on a leader, possibly of a later batch on
  a follower, possibly of one of its records after compaction. So it is never after the batch of the next entry.
- (timestamp, offset): the batch with the offset has this timestamp, and no record up to the offset has a later one.

Entries are in order of offset, position and timestamp. If they are not, a binary search has arbitrary results: the
order is reported, and at most MAX_PROBES entries are checked one by one.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from kctl.base.timestamps import format_timestamp
from kctl.segment.format.batch import LOG_OVERHEAD, V0_OVERHEAD, Batch
from kctl.segment.format.index_entries import NEVER, Extent, extent, offset_entries, time_entries
from kctl.segment.format.indexes import OFFSET_ENTRY_SIZE, TIME_ENTRY_SIZE
from kctl.segment.log.source import Source
from kctl.segment.log.walk import batch_at
from kctl.segment.verify.findings import FileProblems

MAX_PROBES = 1000
SMALLEST_BATCH = LOG_OVERHEAD + V0_OVERHEAD
# A gap between entries too large for index.interval.bytes (4 kB) and one append (1 MB; followers: 10 MB).
SPARSE_BYTES = 32 << 20
_END = (NEVER, NEVER)
_WINDOW = 1 << 16


class OffsetCursor:
    """A cursor over a .index. relative, position: of the next entry; NEVER at the end."""

    suffix = ".index"

    def __init__(self, path: Path, base_offset: int, findings: FileProblems, *, tail_is_legal: bool) -> None:
        """Open the file and check its order and length. Raises the errors of Source."""
        self.path, self.base_offset, self._findings = path, base_offset, findings
        self.source = Source(path, window_bytes=_WINDOW)
        self.extent = extent(self.source, OFFSET_ENTRY_SIZE)
        _report_extent(findings, self.source, self.extent, tail_is_legal=tail_is_legal)
        self.absurd = _is_absurd(findings, self.source, self.extent, "index_position")
        self.ordered = self.absurd or self._check_order()
        count = self.extent.entries if self.ordered and not self.absurd else 0
        self.entries: Iterator[tuple[int, int]] = offset_entries(self.source, count)
        self.relative, self.position = next(self.entries, _END)
        self.indexed = 0  # the position of the last passed entry
        self.pending: int | None = None  # its offset, until the log reaches it

    def _check_order(self) -> bool:
        previous, ordered = (-1, -1), True
        for number, entry in enumerate(offset_entries(self.source, self.extent.entries)):
            if entry[0] <= previous[0] or entry[1] <= previous[1]:
                ordered = False
                previous_entry = (
                    f"(offset {self.base_offset + previous[0]}, position {previous[1]})"
                    if number
                    else "the start of the file"
                )
                text = f"the entry (offset {self.base_offset + entry[0]}, position {entry[1]}) follows {previous_entry}"
                self._report("index_order", text, number * OFFSET_ENTRY_SIZE)
            previous = entry
        return ordered

    def _report(self, code: str, message: str, position: int | None, offset: int | None = None) -> None:
        self._findings.add(code, self.path, message, position=position, offset=offset)

    def pass_batch(self, batch: Batch, previous: int | None, *, trusted: bool) -> None:
        """Check the entries up to this batch. previous: the last offset before it; trusted: its header is trusted."""
        self.pass_position(batch.position)
        while self.position == batch.position:
            offset = self.base_offset + self.relative
            if trusted:
                self._check_entry(offset, batch, previous)
            if batch.position - self.indexed > SPARSE_BYTES:
                self._sparse(batch.position)
            self.indexed = batch.position
            self.pending = offset if trusted and offset > batch.last_offset else None
            self.relative, self.position = next(self.entries, _END)

    def is_right(self, position: int, last: int) -> bool:
        """Return True if the next entry is right for the batch at `position` with the last offset `last`.

        For ordinary batches; `advance` then passes the entry.
        """
        return (
            position == self.position
            and self.base_offset + self.relative == last
            and self.pending is None
            and position - self.indexed <= SPARSE_BYTES
        )

    def advance(self) -> int:
        """Pass the next entry, which is right. Return the position of the entry after it."""
        self.indexed = self.position
        self.relative, self.position = next(self.entries, _END)
        return self.position

    def pass_position(self, position: int) -> None:
        """Report the entries before `position`: no batch starts at their positions."""
        while self.position < position:
            self._not_a_batch(self.base_offset + self.relative, self.position)
            self.relative, self.position = next(self.entries, _END)

    def _not_a_batch(self, offset: int, position: int) -> None:
        self._report("index_position", f"no batch starts at position {position} of the log", None, offset)

    def _check_entry(self, offset: int, batch: Batch, previous: int | None) -> None:
        if previous is not None and offset <= previous:
            text = f"the entry for position {batch.position} has offset {offset}, but the batch there starts at "
            text += f"{batch.base_offset}: reads from {offset} to {previous} would miss records"
            self._report("index_offset", text, None, offset)
        elif self.pending is not None and previous is not None and self.pending > previous:
            self._report("index_offset", f"offset {self.pending} of an entry is only reached after the position "
            f"{batch.position} of the next entry", None, self.pending)  # fmt: skip

    def skip_damage(self, end: int) -> None:
        """Skip the entries up to `end`, because the bytes of the log are unreadable."""
        self.pending = None
        while self.position < end:
            self.relative, self.position = next(self.entries, _END)
        self.indexed = end

    def pass_tail(self, end: int) -> None:
        """Report the entries up to `end`, the end of the log, where no batch starts."""
        self.pass_position(end)
        self.indexed = end

    def finish(self, log: Source, last: int | None) -> None:
        """End the check at the end of the log, and probe an index out of order. last: the log's last offset."""
        self.pass_position(log.size)
        while self.position < NEVER:
            text = f"position {self.position} is after the end of the log at {log.size}"
            self._report("index_position", text, None, self.base_offset + self.relative)
            self.relative, self.position = next(self.entries, _END)
        if last is not None and self.pending is not None and self.pending > last:
            text = f"the last entry has offset {self.pending}, but the log's last offset is {last}"
            text += "; in the active segment, the broker starts with a wrong log end offset"
            self._report("index_offset", text, None, self.pending)
        if not self.ordered:
            self._probe(log)
        elif log.size - self.indexed > SPARSE_BYTES and not self.absurd:
            self._sparse(log.size)

    def _sparse(self, position: int) -> None:
        self._report("index_sparse", f"no entry for {position - self.indexed} bytes of the log up to {position}", None)

    def _probe(self, log: Source) -> None:
        for number, (relative, position) in enumerate(offset_entries(self.source, self.extent.entries)):
            if number == MAX_PROBES:
                return
            item = batch_at(log, position, log.size) if 0 <= position < log.size else None
            offset = self.base_offset + relative
            if not isinstance(item, Batch):
                self._not_a_batch(offset, position)
            elif not item.legacy and offset < item.base_offset:
                text = f"the entry for position {position} has offset {offset}, but the batch there starts at "
                text += str(item.base_offset)
                self._report("index_offset", text, number * OFFSET_ENTRY_SIZE, offset)

    def close(self) -> None:
        """Close the file."""
        self.source.close()


class TimeCursor:
    """A cursor over a .timeindex. timestamp, relative: of the next entry; NEVER at the end."""

    suffix = ".timeindex"

    def __init__(self, path: Path, base_offset: int, findings: FileProblems, *, tail_is_legal: bool) -> None:
        """Open the file and check its order and length. Raises the errors of Source."""
        self.path, self.base_offset, self._findings = path, base_offset, findings
        self.source = Source(path, window_bytes=_WINDOW)
        self.extent = extent(self.source, TIME_ENTRY_SIZE)
        _report_extent(findings, self.source, self.extent, tail_is_legal=tail_is_legal)
        self.last_timestamp: int | None = None
        self.absurd = _is_absurd(findings, self.source, self.extent, "timeindex_offset")
        self.ordered = self.absurd or self._check_order()
        count = self.extent.entries if self.ordered and not self.absurd else 0
        self.entries: Iterator[tuple[int, int]] = time_entries(self.source, count)
        self.timestamp, self.relative = next(self.entries, _END)

    def _check_order(self) -> bool:
        previous: tuple[int, int] | None = None
        ordered = True
        for number, entry in enumerate(time_entries(self.source, self.extent.entries)):
            if entry[1] < 0 or (previous is not None and (entry[0] <= previous[0] or entry[1] < previous[1])):
                ordered = False
                previous_entry = (
                    f"({_time(previous[0])}, offset {self.base_offset + previous[1]})"
                    if previous
                    else "the start of the file"
                )
                text = f"the entry ({_time(entry[0])}, offset {self.base_offset + entry[1]}) follows {previous_entry}"
                self._findings.add("timeindex_order", self.path, text, position=number * TIME_ENTRY_SIZE)
            previous = entry
        if previous is not None:
            self.last_timestamp = previous[0]
        return ordered

    def pass_batch(self, batch: Batch, previous: int | None, latest: int, *, trusted: bool) -> None:
        """Check the entries up to this batch's last offset.

        latest: the largest timestamp so far, including this batch; trusted: it is known.
        """
        while self.base_offset + self.relative <= batch.last_offset:
            offset = self.base_offset + self.relative
            if trusted:
                first = batch.base_offset if not (batch.legacy and batch.codec) else (previous or 0) + 1
                self._check_entry(offset, first, latest)
            self.timestamp, self.relative = next(self.entries, _END)

    def take_right(self, last: int, latest: int) -> bool:
        """Pass the next entry if it has the offset `last` and the timestamp `latest`.

        Return True if it does and is the only entry for this offset; pass_batch checks a second one.
        """
        if self.base_offset + self.relative != last or self.timestamp != latest:
            return False
        self.timestamp, self.relative = next(self.entries, _END)
        return self.base_offset + self.relative > last

    def _check_entry(self, offset: int, first: int, latest: int) -> None:
        if offset < first:
            self._findings.add("timeindex_offset", self.path, "no batch has this offset", offset=offset)
        elif self.timestamp != latest:
            text = f"the entry has {_time(self.timestamp)}, but the latest record up to its offset has {_time(latest)}"
            self._findings.add("timeindex_timestamp", self.path, text, offset=offset)

    def finish(self, last: int | None, latest: int, *, damaged: bool, complete: bool) -> None:
        """End the check at the end of the log. last: its last offset; latest: its largest timestamp.

        complete: a broker closed the index, so its last entry has the largest timestamp.
        """
        while self.relative < NEVER:
            if not damaged:
                end = "the log is empty" if last is None else f"the log's last offset is {last}"
                text = f"the offset of the entry is after the end of the log: {end}"
                self._findings.add("timeindex_offset", self.path, text, offset=self.base_offset + self.relative)
            self.timestamp, self.relative = next(self.entries, _END)
        index_end = -1 if self.last_timestamp is None else self.last_timestamp
        if self.ordered and not self.absurd and complete and not damaged and index_end < latest:
            index_state = "has no entry" if self.last_timestamp is None else f"ends at {_time(index_end)}"
            text = f"the index {index_state}, but the latest record has {_time(latest)}"
            self._findings.add("timeindex_last", self.path, text)

    def close(self) -> None:
        """Close the file."""
        self.source.close()


def _time(timestamp: int) -> str:
    return format_timestamp(timestamp) or "no time"


def _report_extent(findings: FileProblems, source: Source, size: Extent, *, tail_is_legal: bool) -> None:
    path, kind = source.path, source.path.suffix[1:]
    if size.odd_bytes:
        text = f"{size.odd_bytes} extra bytes after the last whole entry"
        findings.add(f"{kind}_length", path, text, position=source.size - size.odd_bytes)
    if size.tail_bytes and not tail_is_legal:
        text = f"{size.tail_bytes} zero bytes after {size.entries} entries; only an active segment may have them"
        findings.add(f"{kind}_tail", path, text)


def _is_absurd(findings: FileProblems, source: Source, size: Extent, code: str) -> bool:
    """Return True if an index has more entries than its log can have batches. Such an index is not checked further."""
    try:
        log_size = source.path.with_suffix(".log").stat().st_size
    except OSError:
        return False
    max_batches = log_size // SMALLEST_BATCH + 1
    if size.entries <= max_batches:
        return False
    text = f"{size.entries} entries, but a log of {log_size} bytes has at most {max_batches} batches"
    findings.add(code, source.path, text)
    return True
