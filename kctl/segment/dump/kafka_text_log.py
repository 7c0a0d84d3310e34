"""The batches and records of a log, or of a part of it, as DumpLogSegments prints them."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from pathlib import Path

from kctl.segment.dump.fast_batches import batch_line, write_batches
from kctl.segment.dump.fast_text import FastText, records_text
from kctl.segment.dump.kafka_text_batch import _timestamp_type, batch_text
from kctl.segment.dump.kafka_text_options import DumpDamage, KafkaTextOptions, ToolCrash, Write
from kctl.segment.dump.query import all_records, wrong_inner_crc
from kctl.segment.format.batch import (
    CODECS,
    Batch,
)
from kctl.segment.format.compression import BadPayload
from kctl.segment.format.java_text import java_utf8
from kctl.segment.format.record import BadRecords, StoredRecord
from kctl.segment.format.record_columns import whole_payload
from kctl.segment.format.release import Release
from kctl.segment.log.source import Source
from kctl.segment.log.walk import (
    Damage,
    Effort,
    batches,
    content_of,
    is_preallocated,
    is_valid,
    preallocated_text,
    resync,
)

_NO_OFFSET = -1


@dataclass
class TextResult:
    """The result of a part of a log, besides its text.

    gaps: pairs of adjacent offsets that are not consecutive, in order. first_offset, last_offset: of the records, -1
    for none. valid_bytes: bytes of valid batches. crashed: Kafka's tool would have crashed there. open_end: the part
    ends in damage without a valid batch after it.
    """

    gaps: array[int] = field(default_factory=lambda: array("q"))
    first_offset: int = _NO_OFFSET
    last_offset: int = _NO_OFFSET
    valid_bytes: int = 0
    crashed: bool = False
    open_end: bool = False
    findings: DumpDamage = field(default_factory=DumpDamage)

    def follow(self, offset: int) -> None:
        """Add the offset of the next record."""
        if self.last_offset not in {_NO_OFFSET, offset - 1}:
            self.gaps.extend((self.last_offset, offset))
        if self.first_offset == _NO_OFFSET:
            self.first_offset = offset

    def append(self, part: TextResult) -> None:
        """Add the next part of the log."""
        if part.first_offset != _NO_OFFSET:
            self.follow(part.first_offset)
            self.last_offset = part.last_offset
        self.gaps.extend(part.gaps)
        self.valid_bytes += part.valid_bytes
        self.crashed |= part.crashed
        self.open_end = part.open_end
        self.findings.extend(part.findings)


class LogText:
    """The text of a part of a log; `result` has everything else."""

    def __init__(self, path: Path, options: KafkaTextOptions, write: Write) -> None:
        self.result = TextResult()
        self._path, self._options, self._write = path, options, write
        self._open_line = False
        self._effort = Effort(0)

    def dump(self, source: Source, start: int, end: int, *, search: bool = False) -> None:
        """Write the text of the batches from `start` on, up to `end`. search: start at the first valid batch."""
        self._effort = Effort(end - start)
        position = resync(source, start, end, self._effort) if search else start
        self.result.open_end = position is None
        while position is not None:
            position = self._stretch(source, position, end)

    def _stretch(self, source: Source, start: int, end: int) -> int | None:
        """Write batches up to where Kafka's tool would stop. Return the position to continue from; None at the end."""
        if not self._options.deep:
            begin, start = start, write_batches(source, start, end, self._write)
            self.result.valid_bytes += start - begin
        for item in batches(source, start, end):
            if isinstance(item, Damage):
                return self._damage(source, item, end)
            try:
                self._batch(source, item)
            except (ToolCrash, BadRecords, BadPayload) as exc:
                self._end_line()
                self.result.findings.add(self._path, item.position, str(exc))
                self.result.crashed = True
                next_valid = resync(source, item.position + (1 if item.magic < 0 else item.size), end, self._effort)
                self.result.open_end = next_valid is None
                return next_valid
            self.result.valid_bytes += item.size
            if not self._options.deep:
                return item.next_position
        return None

    def _damage(self, source: Source, damage: Damage, end: int) -> int | None:
        if not damage.throws:  # an incomplete batch is the end for a broker too
            if end == source.size and not is_preallocated(source, damage):
                self.result.findings.add(self._path, damage.position, damage.message)
            return None
        self.result.crashed = True
        if end == source.size and is_preallocated(source, damage):
            text = f"{preallocated_text(damage.length)}; Kafka's tool ends here with an exception"
            self.result.findings.note(self._path, damage.position, text)
        else:
            self.result.findings.add(self._path, damage.position, damage.message)
        next_valid = damage.position + damage.length
        self.result.open_end = next_valid >= end
        return None if self.result.open_end else next_valid

    # --- lines ------------------------------------------------------------------------------------------------------

    def _line(self, text: str) -> None:
        self._write(text.encode("utf-8", "surrogateescape") + b"\n")
        self._open_line = False

    def _partial(self, text: str) -> None:
        """Write a part of a line, which Kafka's tool flushes before it decodes the content and may crash."""
        self._write(text.encode("utf-8", "surrogateescape"))
        self._open_line = True

    def _end_line(self) -> None:
        if self._open_line:
            self._write(b"\n")
            self._open_line = False

    # --- batches and records ----------------------------------------------------------------------------------------

    def _batch(self, source: Source, batch: Batch) -> None:
        valid = is_valid(source, batch)
        if not valid:
            self.result.findings.add(self._path, batch.position, "the CRC does not match")
        line = batch_line(batch) if valid else None
        if line is not None:
            self._write(line)
        else:
            self._unusual_batch(batch, valid=valid)
        if self._options.deep:
            self._contents(batch, content_of(source, batch, self._options.record_bytes))

    def _unusual_batch(self, batch: Batch, *, valid: bool) -> None:
        head, tail = batch_text(batch, valid=valid)
        if batch.magic < 0 or batch.codec >= len(CODECS):
            self._partial(head)
            what = f"magic {batch.magic}" if batch.magic < 0 else f"compression type {batch.codec}"
            raise ToolCrash(f"{what} is unknown")
        self._line(head + tail)

    def _contents(self, batch: Batch, content: memoryview) -> None:
        plain = self._options.parser is None or self._options.plain
        if plain and not (batch.legacy or batch.control):
            fast = self._fast(batch, content)
            if fast is not None:
                self.result.follow(fast.first_offset)
                for pair in fast.gaps:
                    self.result.gaps.extend(pair)
                self._write(fast.lines)
                self.result.last_offset = fast.last_offset
                return
        for record in all_records(batch, content, limit=self._options.record_bytes, lenient=True):
            self.result.follow(record.offset)
            self.result.last_offset = record.offset
            self._record(batch, record)
            if record.legacy_problem is not None:
                self.result.findings.add(self._path, batch.position, record.legacy_problem)
            elif batch.codec and not record.legacy_valid:
                self.result.findings.add(self._path, batch.position, wrong_inner_crc(record))

    def _fast(self, batch: Batch, content: memoryview) -> FastText | None:
        options = self._options
        payload = whole_payload(batch, content, limit=options.record_bytes)
        if payload is None:
            return None
        return records_text(
            batch,
            payload,
            contents=options.parser is not None,
            metadata=not options.skip_record_metadata,
            release=options.release,
        )

    def _record(self, batch: Batch, record: StoredRecord) -> None:
        options = self._options
        text = "" if options.skip_record_metadata else record_text(batch, record, options.release)
        if options.parser is not None and not batch.control:
            self._partial(text)
            if record.legacy_problem is not None:
                raise ToolCrash(record.legacy_problem)
            key, value, problem = options.parser(record)
            text = ""
            if problem is not None:
                self.result.findings.undecoded(self._path, batch.position, f"offset {record.offset}: {problem}")
            prefix = "| " if options.skip_record_metadata else " "
            if key is not None:
                text = f"{prefix}key: {key}"
            if value is not None:
                separator = prefix if key is None and options.release is not Release.KAFKA_3_9 else " "
                text += f"{separator}payload: {value}"
        elif batch.control:
            text = self._control(batch, record, text)
        self._line(text)

    def _control(self, batch: Batch, record: StoredRecord, text: str) -> str:
        """Write the start of a control record's line. Return the rest: its content, which may crash Kafka's tool."""
        from kctl.segment.format.control import control_problem, control_text  # their definitions take time to load

        if text:
            self._partial(text)
            text = control_text(record, self._options.release)
        problem = control_problem(record)
        if problem is not None:
            self.result.findings.undecoded(self._path, batch.position, f"offset {record.offset}: {problem}")
        return text


def record_text(batch: Batch, record: StoredRecord, release: Release) -> str:
    """Return the line of a record, without its content."""
    kind = "NoTimestampType" if batch.magic == 0 else _timestamp_type(batch)
    key_size, value_size = record.legacy_lengths or (_length(record.key), _length(record.value))
    text = f"| offset: {record.offset} {kind}: {record.timestamp} keySize: {key_size} valueSize: {value_size}"
    if batch.legacy:
        brace = "}" if release is Release.KAFKA_3_9 else ""
        return f"{text} isValid: {'true' if record.legacy_valid else 'false'} crc: {record.legacy_crc}{brace}"
    keys = ",".join(java_utf8(key) for key, _ in record.headers)
    return f"{text} sequence: {record.sequence} headerKeys: [{keys}]"


def _length(data: bytes | None) -> int:
    return -1 if data is None else len(data)
