"""Checking one log file, and its indexes on the way: each batch's header, offsets and CRC, with `deep` its records.

The walk is a tight loop over the window for batches that are as most are; it leaves anything else, one batch at a
time, to the plain way, which knows all rules and reports.
"""

from __future__ import annotations

from kctl.segment.format.batch import (
    BATCH_HEADER,
    CODEC_MASK,
    CODECS,
    CRC_COVERS,
    LOG_OVERHEAD,
    V2_HEADER,
    Batch,
    parse_v2,
)
from kctl.segment.format.index_entries import NEVER
from kctl.segment.format.record import BadRecords
from kctl.segment.log.source import Source
from kctl.segment.log.walk import (
    Damage,
    Effort,
    all_zero,
    batch_at,
    content_of,
    is_valid,
    preallocated_text,
    resync,
)
from kctl.segment.verify.findings import Findings, Severity
from kctl.segment.verify.log_facts import FARTHEST, Companions, LogFacts, LogOptions
from kctl.segment.verify.records import check_records

_FAST_BYTES = 4 << 20  # larger batches go the plain way
_STRETCH_BYTES = 16 << 20  # between two signs of progress
_SHORTEST = V2_HEADER - LOG_OVERHEAD
_MAGICS = frozenset({0, 1, 2})
# What is wrong with batches whose CRC, and so their number of offsets, is right.
_OF_VALID = frozenset({"batch_magic", "batch_codec", "batch_count", "batch_too_large", "records"})
_UNUSUAL = ~0x0F  # attributes besides the codec and the timestamp's type


class LogCheck:
    """One walk over a log."""

    def __init__(
        self, source: Source, base_offset: int | None, findings: Findings, companions: Companions, options: LogOptions
    ) -> None:
        """base_offset: None when the file's name has none that its batches must keep to (KRaft's snapshots)."""
        self._source, self._findings, self._options = source, findings, options
        self._path = source.path
        self._index, self._times = companions.index, companions.times
        self._transactions, self._epochs = companions.transactions, companions.epochs
        self.facts = LogFacts(source.path, base_offset, source.size)
        self._base = base_offset or 0
        self._expected = self._base  # the next batch's base offset, when nothing is missing
        self._doubtful = False  # behind damage: what was before is not known
        self._effort = Effort(source.size)
        self._ends_whole = True  # up to the first bytes that are none of a batch's, and these are at the end
        self._open: list[int] = []  # findings whose last offset is told by the next valid batch
        self._in_range = False  # behind what is not valid, and no valid batch has come yet
        self._open_from: int | None = None  # the first offset that is not in a valid batch

    def run(self) -> LogFacts:
        """Walk it from front to back. Raises OperationFailed when it cannot be read."""
        position = last_progress = 0
        while position < self._source.size:
            if not self._options.deep and not self._in_range:
                position = self._check_ordinary(position)
            position = self._check_next(position)
            if self._options.progress is not None and position - last_progress >= _FAST_BYTES:
                self._options.progress(position - last_progress)
                last_progress = position
        if self._options.progress is not None:
            self._options.progress(self._source.size - last_progress)
        self._finish()
        return self.facts

    # --- batches as most are ------------------------------------------------------------------------------------------

    def _check_ordinary(self, position: int) -> int:  # noqa: C901, PLR0912 - one piece: see below
        """Check ordinary batches from `position` on, as far as they are in the window. Return where the others begin.

        Ordinary: magic 2, valid, neither transactional nor control, no offset missing, the leader epoch of the one
        before, and with index entries that are right.

        One piece: with the conditions on the header in a function, verifying 600,000 batches of one record takes 1.1
        times as long (0.82 instead of 0.74 s).
        """
        from kctl.base.checksum import crc32c

        source, index, times = self._source, self._index, self._times
        if not source.start <= position < source.start + len(source.window):
            source.load(position, V2_HEADER)
        window, start = source.window, source.start
        limit, at = len(window), position - start
        unpack, codecs = BATCH_HEADER.unpack_from, len(CODECS)
        expected, latest = self._expected, self.facts.max_timestamp
        epoch, last_allowed = self._epochs.current, min(self._base + FARTHEST, self._epochs.until - 1)
        open_producers = self._transactions is not None and bool(self._transactions.transactions.tracker.open)
        entry_position = NEVER if index is None else index.position
        entry_offset = NEVER if times is None else self._base + times.relative
        batches = records = 0
        while not self._doubtful:
            if at + V2_HEADER > limit:
                if start + at - position > _STRETCH_BYTES:
                    break
                window = source.load(start + at, V2_HEADER)
                start, at, limit = source.start, 0, len(window)
                if limit < V2_HEADER:
                    break
            (base, length, leader, magic, crc, attributes, delta, _, newest, producer, _, _, count) = unpack(window, at)
            stop, last = at + LOG_OVERHEAD + length, base + delta
            if (
                base != expected
                or count != delta + 1
                or delta < 0
                or magic != 2
                or attributes & _UNUSUAL
                or attributes & CODEC_MASK >= codecs
                or leader != epoch
                or last > last_allowed
                or length < _SHORTEST
                or (open_producers and producer >= 0)
            ):
                break
            if stop > limit:
                if length > _FAST_BYTES or start + stop > source.size or start + at - position > _STRETCH_BYTES:
                    break
                window = source.load(start + at, LOG_OVERHEAD + length)
                start, at, limit, stop = source.start, 0, len(window), LOG_OVERHEAD + length
            if stop > limit or crc32c(window[at + CRC_COVERS : stop]) != crc:
                break
            highest = newest if newest > latest else latest  # noqa: FURB136 - max() takes four times as long
            if start + at >= entry_position and not index.is_right(start + at, last):  # type: ignore[union-attr]
                break
            if last >= entry_offset:
                if not times.take_right(last, highest):  # type: ignore[union-attr]
                    break
                entry_offset = self._base + times.relative  # type: ignore[union-attr]
            if start + at >= entry_position:
                entry_position = index.advance()  # type: ignore[union-attr]
            latest, expected, at = highest, last + 1, stop
            batches += 1
            records += count
        if batches:
            self._note_ordinary(batches, records, expected, latest)
        return start + at

    def _note_ordinary(self, batches: int, records: int, next_offset: int, latest: int) -> None:
        """Take up batches without a finding, up to `next_offset`. latest: the largest timestamp so far."""
        facts = self.facts
        facts.batches += batches
        facts.records += records
        facts.max_timestamp = latest
        facts.last_offset = next_offset - 1
        if facts.first_offset is None:
            facts.first_offset = self._expected
        self._expected = next_offset

    # --- one at a time ------------------------------------------------------------------------------------------------

    def _check_next(self, position: int) -> int:
        """Check what is at `position`; where the next begins."""
        item = batch_at(self._source, position, self._source.size)
        if item is None:
            return self._source.size
        if isinstance(item, Damage):
            return self._damage(item)
        self._check_batch(item)
        return item.next_position

    def _check_batch(self, batch: Batch) -> None:
        previous = self.facts.last_offset
        valid = is_valid(self._source, batch)
        if valid:
            self._check_header(batch)
        else:
            self._report_crc(batch)
        in_order = self._check_order(batch)
        if valid and in_order:
            self._end_range(batch.base_offset - 1 if not (batch.legacy and batch.codec) else None)
        # The CRC covers neither offset nor epoch: what fits between the others is taken as it is.
        trusted = in_order and (valid or batch.base_offset == self._expected)
        self._note_compaction(batch, valid=valid, trusted=trusted)
        if valid:
            self.facts.max_timestamp = max(self.facts.max_timestamp, batch.max_timestamp)
        self._check_entries(batch, previous, valid=valid, trusted=trusted)
        self._note(batch, trusted=trusted)
        if valid:
            self._check_content(batch)
        elif self._transactions is not None:
            self._transactions.skip_damage(batch.last_offset + 1 if trusted else None)

    def _report_crc(self, batch: Batch) -> None:
        self._begin_range()
        self._add("batch_crc", f"the CRC is not that of the batch{self._magic_note(batch)}", batch, ranged=True)
        self._note_damage(batch.position)
        self._ends_whole = False

    def _note_compaction(self, batch: Batch, *, valid: bool, trusted: bool) -> None:
        facts = self.facts
        if trusted and batch.base_offset > self._expected and facts.last_offset is not None and not self._doubtful:
            facts.compacted = True
        if valid and not batch.legacy and batch.record_count != batch.last_offset_delta + 1:
            facts.compacted = True

    def _check_entries(self, batch: Batch, previous: int | None, *, valid: bool, trusted: bool) -> None:
        """Check the index entries up to this batch."""
        if self._index is not None:
            self._index.pass_batch(batch, previous, trusted=trusted and valid and not self._doubtful)
        if self._times is not None and trusted:
            times_known = valid and self.facts.damaged_at is None
            self._times.pass_batch(batch, previous, self.facts.max_timestamp, trusted=times_known)

    def _note(self, batch: Batch, *, trusted: bool) -> None:
        facts = self.facts
        facts.batches += 1
        facts.records += max(batch.record_count, 0)
        if trusted:
            if facts.first_offset is None:
                facts.first_offset = batch.base_offset
            facts.last_offset = batch.last_offset
            self._expected = batch.last_offset + 1
            self._doubtful = False

    def _check_content(self, batch: Batch) -> None:
        """What needs a valid batch: epochs, transactions, records."""
        self._epochs.pass_batch(batch, self._path, self._findings)
        following = self._transactions
        if following is not None:
            following.transactions.compacted = following.transactions.compacted or self.facts.compacted
        needs = self._options.deep or (following is not None and batch.producer_id >= 0)
        if not needs:
            return
        try:
            content = content_of(self._source, batch, self._options.max_message_bytes)
        except BadRecords as exc:
            self._add("batch_too_large", f"not decoded: {exc}", batch)
            return
        if following is not None and batch.producer_id >= 0:
            following.pass_batch(self._path, batch, content)
        if self._options.deep:
            self._check_records(batch, content)

    def _check_records(self, batch: Batch, content: memoryview) -> None:
        if batch.codec >= len(CODECS) or batch.magic not in _MAGICS or batch.record_count < 0:
            return  # said already
        for code, message, offset in check_records(batch, content, limit=self._options.max_message_bytes):
            self._add(code, message, batch, offset)

    def _add(self, code: str, message: str, batch: Batch, offset: int | None = None, *, ranged: bool = False) -> None:
        """ranged: it concerns all offsets up to the next valid batch."""
        where = batch.base_offset if offset is None else offset
        concerned: tuple[int | None, int | None] = (None, None)
        if code in _OF_VALID and offset is None:
            concerned = (batch.base_offset, batch.last_offset)
        if ranged:
            concerned = (self._open_from, None)
        number = self._findings.add(
            code, self._path, message, position=batch.position, offset=where, concerned=concerned
        )
        if ranged and number is not None:
            self._open.append(number)

    def _begin_range(self) -> None:
        """What comes is not valid. The offsets between the valid batches before and behind are concerned."""
        if self._in_range:
            return
        begins = self.facts.base_offset is not None or self.facts.last_offset is not None
        self._in_range, self._open_from = True, self._expected if begins else None

    def _end_range(self, last: int | None) -> None:
        """A valid batch ends what was not. last: the offset before it; None when it does not tell."""
        first, self._in_range, self._open_from = self._open_from, False, None
        for number in self._open:
            nothing = first is not None and last is not None and last < first  # nothing is missing between them
            self._findings.concern(number, *((None, None) if nothing else (first, last)))
        self._open.clear()

    def _magic_note(self, batch: Batch) -> str:
        """What is to be said of the magic of a batch whose CRC is wrong. The CRC of magic 2 does not cover it."""
        note = "" if batch.magic in _MAGICS else f"; magic {batch.magic} is unknown"
        if not batch.legacy or batch.size < V2_HEADER:
            return note
        as_v2 = parse_v2(self._source.read(batch.position, V2_HEADER), 0, batch.position)._replace(magic=2)
        if is_valid(self._source, as_v2):
            return f"{note or f'; magic {batch.magic} is wrong'}; as magic 2 its CRC is right"
        return note

    def _check_header(self, batch: Batch) -> None:
        if batch.magic not in _MAGICS:
            self._add("batch_magic", f"magic {batch.magic} is unknown", batch)
        if batch.codec >= len(CODECS):
            self._add("batch_codec", f"compression type {batch.codec} is unknown", batch)
        offsets = batch.last_offset_delta + 1
        if not batch.legacy and not 0 <= batch.record_count <= offsets:
            self._add("batch_count", f"{batch.record_count} records in {offsets} offsets", batch)

    def _check_order(self, batch: Batch) -> bool:
        """Whether its offsets are where they belong, which is reported otherwise."""
        before, first, last = self.facts.last_offset, batch.base_offset, batch.last_offset
        if not batch.legacy and batch.last_offset_delta < 0:
            self._add("offset_order", f"a batch from {first} to {last}", batch)
        elif before is not None and (first if not batch.legacy else last) <= before:
            self._add("offset_order", f"offsets {first} to {last} come behind {before}", batch)
        elif self.facts.base_offset is not None and first < self._base:
            self._add("offset_before_base", f"offset {first} is before the segment's base offset {self._base}", batch)
        else:
            if self.facts.base_offset is not None and last - self._base > FARTHEST:
                text = f"offset {last} is more than {FARTHEST} behind the base offset {self._base}"
                self._add("offset_overflow", text, batch)
            return True
        return False

    # --- damage -------------------------------------------------------------------------------------------------------

    def _note_damage(self, position: int) -> None:
        if self.facts.damaged_at is None:
            self.facts.damaged_at = position

    def _damage(self, item: Damage) -> int:
        """Report bytes that are no batch; where the next batch begins."""
        following = resync(self._source, item.position + 1, self._source.size, self._effort)
        end = self._source.size if following is None else following
        length = end - item.position
        self._begin_range()
        self._note_damage(item.position)
        at_end = following is None and self._options.active
        zeros = all_zero(self._source, item.position, end)
        text = f"{length} zero bytes" if zeros else f"{item.message}; {length} bytes cannot be read"
        code = "garbage"
        if at_end and zeros:
            code, text = "zero_tail", preallocated_text(length)
        elif at_end and item.code == "incomplete":
            code = "batch_incomplete"
        if code != "garbage" and self._options.clean:
            text += "; .kafka_cleanshutdown is there: the next start does not cut it off"
        if following is None and not self._options.active:
            text += ", and later segments follow"
        concerned = (None if code == "zero_tail" else self._open_from, None)
        # A broker that stops cleanly removes what it preallocated: its next start would fail on the zeros.
        severity = Severity.WARNING if code == "zero_tail" and self._options.clean else None
        number = self._findings.add(
            code, self._path, text, position=item.position, concerned=concerned, severity=severity
        )
        if number is not None and following is not None:
            self._open.append(number)
        self._ends_whole = self._ends_whole and code != "garbage"
        if self._index is not None:
            self._index.pass_position(item.position)
            if code == "garbage":
                self._index.skip_damage(end)
            else:
                self._index.pass_tail(end)
        if self._transactions is not None:
            self._transactions.skip_damage(self._offset_at(following))
        self._doubtful = True
        return end

    def _offset_at(self, position: int | None) -> int | None:
        batch = None if position is None else batch_at(self._source, position, self._source.size)
        return batch.base_offset if isinstance(batch, Batch) else None

    def _finish(self) -> None:
        facts = self.facts
        if self._index is not None:
            self._index.finish(self._source, facts.last_offset if self._ends_whole else None)
        if self._times is not None:
            self._times.finish(facts.last_offset, facts.max_timestamp, damaged=not self._ends_whole,
                               complete=self._options.complete)  # fmt: skip
        if self._transactions is not None:
            self._transactions.finish()
