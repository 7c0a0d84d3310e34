"""Checking .index and .timeindex while their log is walked: one cursor over the entries of each.

What an entry promises (OffsetIndex, TimeIndex, LogSegment.append and recover):

- (offset, position): a batch begins at the position, and every offset from `offset` on is there or behind it. The
  offset is the last one of what was appended with that batch: of the batch itself on a leader, perhaps of a later
  batch on a follower, perhaps of one of its records after compaction. So it is never behind the next entry's batch.
- (timestamp, offset): no record up to the offset is younger, and the batch with the offset is that young.

Entries are in order of offset, position and timestamp. Where they are not, reads of an index (binary search) find
anything: the order is reported, and then single entries are looked at, not more than MAX_PROBES.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from kctl.base.moments import moment_text
from kctl.segment.format.batch import LOG_OVERHEAD, V0_OVERHEAD, Batch
from kctl.segment.format.index_entries import NEVER, Extent, extent, offset_entries, time_entries
from kctl.segment.format.indexes import OFFSET_ENTRY_SIZE, TIME_ENTRY_SIZE
from kctl.segment.log.source import Source
from kctl.segment.log.walk import batch_at
from kctl.segment.verify.findings import Findings

MAX_PROBES = 1000
SMALLEST_BATCH = LOG_OVERHEAD + V0_OVERHEAD
# A gap between entries that index.interval.bytes (4 kB) and one append of a broker (1 MB, followers 10 MB) do not
# explain.
SPARSE_BYTES = 32 << 20
_END = (NEVER, NEVER)
_WINDOW = 1 << 16


class OffsetCursor:
    """Goes through an .index. relative, position: of the entry that comes next; NEVER behind the last one."""

    suffix = ".index"

    def __init__(self, path: Path, base_offset: int, findings: Findings, *, tail_is_legal: bool) -> None:
        """Opens the file, reports on its order and length. Raises what Source raises."""
        self.path, self.base_offset, self._findings = path, base_offset, findings
        self.source = Source(path, window_bytes=_WINDOW)
        self.extent = extent(self.source, OFFSET_ENTRY_SIZE)
        _report_extent(findings, self.source, self.extent, tail_is_legal=tail_is_legal)
        self.absurd = _is_absurd(findings, self.source, self.extent, "index_position")
        self.ordered = self.absurd or self._check_order()
        count = self.extent.entries if self.ordered and not self.absurd else 0
        self.entries: Iterator[tuple[int, int]] = offset_entries(self.source, count)
        self.relative, self.position = next(self.entries, _END)
        self.indexed = 0  # the position of the last entry that was passed
        self.pending: int | None = None  # its offset, as long as the log has not come to it

    def _check_order(self) -> bool:
        before, ordered = (-1, -1), True
        for number, entry in enumerate(offset_entries(self.source, self.extent.entries)):
            if entry[0] <= before[0] or entry[1] <= before[1]:
                ordered = False
                was = f"(offset {self.base_offset + before[0]}, position {before[1]})" if number else "the beginning"
                text = f"the entry (offset {self.base_offset + entry[0]}, position {entry[1]}) comes behind {was}"
                self._report("index_order", text, number * OFFSET_ENTRY_SIZE)
            before = entry
        return ordered

    def _report(self, code: str, message: str, position: int | None, offset: int | None = None) -> None:
        self._findings.add(code, self.path, message, position=position, offset=offset)

    def pass_batch(self, batch: Batch, previous: int | None, *, trusted: bool) -> None:
        """Check the entries up to this batch. previous: the last offset before it; trusted: whether its header is."""
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
        """Whether the next entry is that of a batch, which ends with the offset `last`, and nothing is to be reported.

        For batches that are as most are; `advance` then passes the entry.
        """
        return (
            position == self.position
            and self.base_offset + self.relative == last
            and self.pending is None
            and position - self.indexed <= SPARSE_BYTES
        )

    def advance(self) -> int:
        """Pass the next entry, which is right. Return the position of the one behind it."""
        self.indexed = self.position
        self.relative, self.position = next(self.entries, _END)
        return self.position

    def pass_position(self, position: int) -> None:
        """The log has no batch that begins before `position` and was not yet shown."""
        while self.position < position:
            self._not_a_batch(self.base_offset + self.relative, self.position)
            self.relative, self.position = next(self.entries, _END)

    def _not_a_batch(self, offset: int, position: int) -> None:
        self._report("index_position", f"no batch begins at position {position} of the log", None, offset)

    def _check_entry(self, offset: int, batch: Batch, previous: int | None) -> None:
        if previous is not None and offset <= previous:
            self._report("index_offset", f"the entry for position {batch.position} says {offset}, and the log is at "
                         f"{batch.base_offset} there: reads from {offset} to {previous} would miss records",
                         None, offset)  # fmt: skip
        elif self.pending is not None and previous is not None and self.pending > previous:
            self._report("index_offset", f"an entry says {self.pending}, and the log comes to it only behind the next "
                         f"entry's position {batch.position}", None, self.pending)  # fmt: skip

    def skip_damage(self, end: int) -> None:
        """Bytes up to `end` cannot be read: entries for them cannot be judged."""
        self.pending = None
        while self.position < end:
            self.relative, self.position = next(self.entries, _END)
        self.indexed = end

    def pass_tail(self, end: int) -> None:
        """Bytes up to `end`, the log's end, are no batches: no entry can be right for them."""
        self.pass_position(end)
        self.indexed = end

    def finish(self, log: Source, last: int | None) -> None:
        """The log ends. last: its last offset. Also looks at the entries of an index out of order."""
        self.pass_position(log.size)
        while self.position < NEVER:
            text = f"position {self.position} is behind the log's end at {log.size}"
            self._report("index_position", text, None, self.base_offset + self.relative)
            self.relative, self.position = next(self.entries, _END)
        if last is not None and self.pending is not None and self.pending > last:
            text = f"the last entry says {self.pending}, and the log ends at {last}"
            self._report("index_offset", f"{text}; in the active segment a broker misplaces the log's end by it", None,
                         self.pending)  # fmt: skip
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
            found = batch_at(log, position, log.size) if 0 <= position < log.size else None
            offset = self.base_offset + relative
            if not isinstance(found, Batch):
                self._not_a_batch(offset, position)
            elif not found.legacy and offset < found.base_offset:
                self._report("index_offset", f"the entry for position {position} says {offset}, and the log is at "
                             f"{found.base_offset} there", number * OFFSET_ENTRY_SIZE, offset)  # fmt: skip

    def close(self) -> None:
        """Close the file."""
        self.source.close()


class TimeCursor:
    """Goes through a .timeindex. timestamp, relative: of the entry that comes next; NEVER behind the last one."""

    suffix = ".timeindex"

    def __init__(self, path: Path, base_offset: int, findings: Findings, *, tail_is_legal: bool) -> None:
        """Opens the file, reports on its order and length. Raises what Source raises."""
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
        before: tuple[int, int] | None = None
        ordered = True
        for number, entry in enumerate(time_entries(self.source, self.extent.entries)):
            if entry[1] < 0 or (before is not None and (entry[0] <= before[0] or entry[1] < before[1])):
                ordered = False
                was = f"({_time(before[0])}, offset {self.base_offset + before[1]})" if before else "the beginning"
                text = f"the entry ({_time(entry[0])}, offset {self.base_offset + entry[1]}) comes behind {was}"
                self._findings.add("timeindex_order", self.path, text, position=number * TIME_ENTRY_SIZE)
            before = entry
        if before is not None:
            self.last_timestamp = before[0]
        return ordered

    def pass_batch(self, batch: Batch, previous: int | None, latest: int, *, trusted: bool) -> None:
        """Check the entries up to this batch's last offset. latest: the largest timestamp so far, this one included;
        trusted: whether that is known."""
        while self.base_offset + self.relative <= batch.last_offset:
            offset = self.base_offset + self.relative
            if trusted:
                first = batch.base_offset if not (batch.legacy and batch.codec) else (previous or 0) + 1
                self._check_entry(offset, first, latest)
            self.timestamp, self.relative = next(self.entries, _END)

    def take_right(self, last: int, latest: int) -> bool:
        """Pass the next entry if it is that of the offset `last` and the timestamp `latest`.

        Return whether it is right, and the only one for this offset: pass_batch looks at a second one.
        """
        if self.base_offset + self.relative != last or self.timestamp != latest:
            return False
        self.timestamp, self.relative = next(self.entries, _END)
        return self.base_offset + self.relative > last

    def _check_entry(self, offset: int, first: int, latest: int) -> None:
        if offset < first:
            self._findings.add("timeindex_offset", self.path, "no batch has this offset", offset=offset)
        elif self.timestamp != latest:
            text = (
                f"the entry says {_time(self.timestamp)}, and the latest record up to its offset is of {_time(latest)}"
            )
            self._findings.add("timeindex_timestamp", self.path, text, offset=offset)

    def finish(self, last: int | None, latest: int, *, damaged: bool, complete: bool) -> None:
        """The log ends. last: its last offset; latest: its largest timestamp; complete: whether a broker has closed
        the index, with the latest timestamp as its last entry."""
        while self.relative < NEVER:
            if not damaged:
                end = "the log is empty" if last is None else f"the log ends at {last}"
                text = f"the entry's offset is behind the log's end: {end}"
                self._findings.add("timeindex_offset", self.path, text, offset=self.base_offset + self.relative)
            self.timestamp, self.relative = next(self.entries, _END)
        known = -1 if self.last_timestamp is None else self.last_timestamp
        if self.ordered and not self.absurd and complete and not damaged and known < latest:
            ends = "has no entry" if self.last_timestamp is None else f"ends at {_time(known)}"
            text = f"the index {ends}, and the latest record is of {_time(latest)}"
            self._findings.add("timeindex_last", self.path, text)

    def close(self) -> None:
        """Close the file."""
        self.source.close()


def _time(timestamp: int) -> str:
    return moment_text(timestamp) or "no time"


def _report_extent(findings: Findings, source: Source, size: Extent, *, tail_is_legal: bool) -> None:
    path, kind = source.path, source.path.suffix[1:]
    if size.odd_bytes:
        text = f"{size.odd_bytes} bytes behind the last whole entry"
        findings.add(f"{kind}_length", path, text, position=source.size - size.odd_bytes)
    if size.tail_bytes and not tail_is_legal:
        text = f"{size.tail_bytes} zero bytes behind {size.entries} entries, which only an active segment may have"
        findings.add(f"{kind}_tail", path, text)


def _is_absurd(findings: Findings, source: Source, size: Extent, code: str) -> bool:
    """Whether an index has more entries than its log can have batches: then nothing in it is worth a look."""
    try:
        log_size = source.path.with_suffix(".log").stat().st_size
    except OSError:
        return False
    most = log_size // SMALLEST_BATCH + 1
    if size.entries <= most:
        return False
    text = f"{size.entries} entries, and a log of {log_size} bytes cannot have more than {most} batches"
    findings.add(code, source.path, text)
    return True
