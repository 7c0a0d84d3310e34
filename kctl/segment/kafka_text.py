"""A dump as kafka-dump-log.sh prints it, byte for byte (kafka.tools.DumpLogSegments of Kafka 3.9.2).

Where the JVM's tool ends with an exception, what it printed before is the same; then the dump goes on behind the
damage. Mismatches of indexes and offsets are collected, and printed on stderr at the end of all files.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from kctl.errors import KctlError
from kctl.segment import indexes
from kctl.segment.batch import CODECS, V2_HEADER, Batch, crc_is_valid
from kctl.segment.compression import BadPayload, decompress
from kctl.segment.control import control_text
from kctl.segment.fast_text import FastText, records_text
from kctl.segment.java_text import java_utf8
from kctl.segment.producer_snapshot import BadSnapshot, parse_snapshot
from kctl.segment.query import all_records
from kctl.segment.record import BadRecords, Record
from kctl.segment.source import Source
from kctl.segment.walk import Damage, batch_at, resync

MAX_BYTES = 2**31 - 1
_FAST_PIECES = 32
MAX_MESSAGE_BYTES = 5 * 1024 * 1024
Write = Callable[[bytes], object]
# (record) → key text, value text; None: not printed. Raises Dies where the JVM's tool does.
Parser = Callable[[Record], tuple[str | None, str | None]]


class Dies(Exception):
    """The JVM's tool would end here with an exception: `message` is what it is about."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


@dataclass(frozen=True, slots=True)
class Found:
    """Damage, for the exit code and for stderr. position: in the file, None when it is about the whole."""

    path: Path
    position: int | None
    message: str


@dataclass(frozen=True, slots=True)
class KafkaTextOptions:
    """The options of DumpLogSegments."""

    deep: bool = False
    parser: Parser | None = None  # None: contents are not printed
    plain: bool = False  # the parser shows both as UTF-8 text
    skip_record_metadata: bool = False
    verify_only: bool = False
    sanity_only: bool = False
    max_bytes: int = MAX_BYTES
    max_message_bytes: int = MAX_MESSAGE_BYTES


@dataclass
class KafkaText:
    """One run over several files. found: damage so far."""

    options: KafkaTextOptions
    write: Write
    found: list[Found] = field(default_factory=list)
    _mismatches: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    _time_mismatches: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    _out_of_order: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    _not_found: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    _gaps: dict[str, list[tuple[int, int]]] = field(default_factory=dict)

    # --- files ------------------------------------------------------------------------------------------------------

    def dump(self, name: str) -> None:
        """One file, by its suffix. name: as it was given. What cannot be read is `found`."""
        self._line(f"Dumping {_as_java(name)}")
        path = Path(name)
        try:
            suffix = _suffix(path.name)
            dumper = _DUMPERS.get(suffix)
            if dumper is None:
                self.found.append(Found(path, None, f"Ignoring unknown file {_as_java(name)}"))
                return
            dumper(self, path, _as_java(name))
        except (Dies, BadRecords, BadPayload) as exc:
            self.found.append(Found(path, None, str(exc)))
        except KctlError as exc:
            self.found.append(Found(path, None, exc.message))

    def _line(self, text: str) -> None:
        self.write(text.encode("utf-8", "surrogateescape") + b"\n")

    def _log(self, path: Path, _shown: str) -> None:
        if path.name.endswith(".log"):
            self._line(f"Log starting offset: {_base_offset(path)}")
        elif path.name == "bootstrap.checkpoint":
            self._line("KRaft bootstrap snapshot")
        else:
            offset, epoch = _snapshot_id(path)
            self._line(f"Snapshot end offset: {offset}, epoch: {epoch}")
        with Source(path) as source:
            self._batches(source, path, min(source.size, self.options.max_bytes))

    def _batches(self, source: Source, path: Path, end: int) -> None:
        position, valid, last_offset, dead = 0, 0, -1, False
        while True:
            found = batch_at(source, position, end)
            if found is None or (isinstance(found, Damage) and not found.dies):
                if isinstance(found, Damage) and end == source.size:
                    self.found.append(Found(path, position, found.message))
                break
            if isinstance(found, Batch):
                try:
                    last_offset = self._batch(source, path, found, last_offset)
                    position += found.size
                    valid += found.size
                    continue
                except (Dies, BadRecords, BadPayload) as exc:
                    self._ends_line()
                    message, following = str(exc), position + found.size
                    if found.magic < 0:
                        following = position + 1
            else:
                message, following = found.message, position + 1
            dead = True
            self.found.append(Found(path, position, message))
            next_position = resync(source, following, end)
            if next_position is None:
                break
            position = next_position
        trailing = end - valid
        if trailing > 0 and self.options.max_bytes == MAX_BYTES and not dead:
            self._line(f"Found {trailing} invalid bytes at the end of {path.name}")

    _open_line = False

    def _partial(self, text: str) -> None:
        """A part of a line, flushed as the JVM's tool does before it may die."""
        self.write(text.encode("utf-8", "surrogateescape"))
        self._open_line = True

    def _ends_line(self) -> None:
        if self._open_line:
            self.write(b"\n")
            self._open_line = False

    # --- batches and records ----------------------------------------------------------------------------------------

    def _batch(self, source: Source, path: Path, batch: Batch, last_offset: int) -> int:
        content = source.read(batch.position, batch.size)
        valid = crc_is_valid(batch, content)
        if not valid:
            self.found.append(Found(path, batch.position, "the CRC is not that of the batch"))
        head, tail = batch_text(batch, valid=valid)
        self._partial(head)
        if tail is None:
            if batch.magic < 0:
                raise Dies(f"Invalid magic used in LegacyRecord: {batch.magic}")
            raise Dies(f"Unknown compression type id: {batch.codec}")
        self._line(tail)
        self._open_line = False
        return self._contents(path, batch, content, last_offset) if self.options.deep else last_offset

    def _contents(self, path: Path, batch: Batch, content: memoryview, last_offset: int) -> int:
        """The records' lines; the last record's offset."""
        plain = self.options.parser is None or self.options.plain
        if plain and not (batch.legacy or batch.control):
            fast = self._fast(batch, content)
            if fast is not None:
                self._gaps_between(path, last_offset, fast)
                self.write(fast.lines)
                return fast.last_offset
        for record in all_records(batch, content, limit=self.options.max_message_bytes):
            if last_offset not in {-1, record.offset - 1}:
                self._gap(path, last_offset, record.offset)
            last_offset = record.offset
            self._record(batch, record)
        return last_offset

    def _gaps_between(self, path: Path, last_offset: int, fast: FastText) -> None:
        if last_offset not in {-1, fast.first_offset - 1}:
            self._gap(path, last_offset, fast.first_offset)
        for first, second in fast.gaps:
            self._gap(path, first, second)

    def _gap(self, path: Path, first: int, second: int) -> None:
        self._gaps.setdefault(os.path.abspath(path), []).insert(0, (first, second))  # noqa: PTH100

    def _fast(self, batch: Batch, content: memoryview) -> FastText | None:
        payload = bytes(content[V2_HEADER:])
        if batch.codec:
            pieces = []
            try:
                for piece in decompress(
                    batch.codec, content[V2_HEADER:], magic=2, limit=self.options.max_message_bytes
                ):
                    pieces.append(piece)
                    if len(pieces) > _FAST_PIECES:
                        return None
            except BadPayload:
                return None
            payload = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        options = self.options
        return records_text(
            batch, payload, contents=options.parser is not None, metadata=not options.skip_record_metadata
        )

    def _record(self, batch: Batch, record: Record) -> None:
        options = self.options
        text = "" if options.skip_record_metadata else record_text(batch, record)
        if options.parser is not None and not batch.control:
            self._partial(text)
            key, value = options.parser(record)
            text = ""
            if key is not None:
                text = f"{'| ' if options.skip_record_metadata else ' '}key: {key}"
            if value is not None:
                text += f" payload: {value}"
        self._line(text)
        self._open_line = False

    # --- indexes ----------------------------------------------------------------------------------------------------

    def _offset_index(self, path: Path, shown: str) -> None:
        base = _base_offset(path)
        with Source(path.with_name(f"{path.name.split('.')[0]}.log")) as log:
            data = _whole(path)
            entries = indexes.offset_entries(data, base)
            if not entries:
                self._line(f"{shown} is empty.")
                return
            if self.options.sanity_only:
                self._sanity(indexes.offset_index_problem(os.path.abspath(path), data, base), shown)  # noqa: PTH100
                return
            for number, entry in enumerate(entries):
                if entry.offset == base and number > 0:
                    return
                found = self._first_in_slice(log, entry.position)
                if found.last_offset != entry.offset:
                    pair = (entry.offset, found.last_offset)
                    self._mismatches.setdefault(os.path.abspath(path), []).insert(0, pair)  # noqa: PTH100
                if not self.options.verify_only:
                    self._line(f"offset: {entry.offset} position: {entry.position}")

    def _first_in_slice(self, log: Source, position: int) -> Batch:
        if position < 0 or position > log.size:
            raise Dies(f"Slice from position {position} exceeds end position of the log")
        end = min(position + self.options.max_message_bytes, log.size)
        found = batch_at(log, position, end)
        if not isinstance(found, Batch):
            raise Dies(found.message if found else "there is no batch at this position")
        return found

    def _sanity(self, problem: str | None, shown: str) -> None:
        if problem is not None:
            raise Dies(problem)
        self._line(f"{shown} passed sanity check.")

    def _time_index(self, path: Path, shown: str) -> None:
        base, stem = _base_offset(path), path.name.split(".")[0]
        with Source(path.with_name(f"{stem}.log")) as log:
            data = _whole(path)
            if self.options.sanity_only:
                self._sanity(indexes.time_index_problem(os.path.abspath(path), data, base), shown)  # noqa: PTH100
                return
            index_path = path.with_name(f"{stem}.index")
            if not index_path.exists():
                raise Dies(f"{index_path} does not exist")  # the JVM's tool makes an empty one here, and dies
            offsets = indexes.offset_entries(_whole(index_path), base)
            previous = -1
            for number, entry in enumerate(indexes.time_entries(data, base)):
                if entry.offset == base and number > 0:
                    return
                self._check_time(log, path, entry, indexes.lookup(offsets, entry.offset), previous)
                if not self.options.verify_only:
                    self._line(f"timestamp: {entry.timestamp} offset: {entry.offset}")
                previous = entry.timestamp

    def _check_time(self, log: Source, path: Path, entry: indexes.TimeEntry, position: int, previous: int) -> None:
        name = os.path.abspath(path)  # noqa: PTH100 - links are not followed
        if position > log.size or position < 0:
            raise Dies(f"Slice from position {position} exceeds end position of the log")
        for batch in _java_batches(log, position):
            if batch.last_offset < entry.offset:
                continue
            if batch.last_offset != entry.offset:
                self._not_found.setdefault(name, []).append((entry.offset, batch.last_offset))
                return
            content = log.read(batch.position, batch.size)
            youngest = max(
                (r.timestamp for r in all_records(batch, content, limit=self.options.max_message_bytes)), default=-1
            )
            youngest = max(youngest, -1)
            if youngest != entry.timestamp:
                self._time_mismatches.setdefault(name, []).append((entry.timestamp, youngest))
            if previous >= entry.timestamp:
                self._out_of_order.setdefault(name, []).append((entry.timestamp, previous))
            return
        self._not_found.setdefault(name, []).append((entry.offset, -1))

    def _snapshot(self, path: Path, _shown: str) -> None:
        try:
            entries = parse_snapshot(_whole(path))
        except BadSnapshot as exc:
            self.found.append(Found(path, None, str(exc)))
            return
        for entry in entries:
            self._line(_producer_text(entry))

    def _transaction_index(self, path: Path, _shown: str) -> None:
        _base_offset(path)
        for txn in indexes.transaction_entries(_whole(path)):
            if txn.version > 0:
                raise Dies(f"Unexpected aborted transaction version {txn.version} in transaction index {path}")
            self._line(
                f"version: {txn.version} producerId: {txn.producer_id} firstOffset: {txn.first_offset} "
                f"lastOffset: {txn.last_offset} lastStableOffset: {txn.last_stable_offset}"
            )

    # --- the end ----------------------------------------------------------------------------------------------------

    def mismatches(self) -> Iterator[str]:
        """The lines for stderr, in the JVM tool's order."""
        for name, pairs in self._mismatches.items():
            yield f"Mismatches in :{_as_java(name)}"
            yield from (f"  Index offset: {index}, log offset: {log}" for index, log in pairs)
        for name, pairs in self._time_mismatches.items():
            yield f"Found timestamp mismatch in :{_as_java(name)}"
            yield from (f"  Index timestamp: {index}, log timestamp: {log}" for index, log in pairs)
        for name, pairs in self._out_of_order.items():
            yield f"Found out of order timestamp in :{_as_java(name)}"
            yield from (f"  Index timestamp: {index}, Previously indexed timestamp: {last}" for index, last in pairs)
        for pairs in self._not_found.values():
            yield "The following indexed offsets are not found in the log."
            yield from (f"Indexed offset: {index}, found log offset: {log}" for index, log in pairs)
        for name, pairs in self._gaps.items():
            yield f"Non-consecutive offsets in {_as_java(name)}"
            yield from (f"  {first} is followed by {second}" for first, second in pairs)


_DUMPERS: dict[str, Callable[[KafkaText, Path, str], None]] = {
    ".log": KafkaText._log,  # noqa: SLF001
    ".checkpoint": KafkaText._log,  # noqa: SLF001
    ".index": KafkaText._offset_index,  # noqa: SLF001
    ".timeindex": KafkaText._time_index,  # noqa: SLF001
    ".snapshot": KafkaText._snapshot,  # noqa: SLF001
    ".txnindex": KafkaText._transaction_index,  # noqa: SLF001
}


def batch_text(batch: Batch, *, valid: bool) -> tuple[str, str | None]:
    """A batch's line in two parts; the second is None where the JVM's tool dies between them."""
    if batch.legacy:
        head = f"offset: {batch.base_offset}"
        kind = "NoTimestampType" if batch.magic == 0 else _timestamp_type(batch)
    else:
        horizon = batch.delete_horizon_ms
        head = (
            f"baseOffset: {batch.base_offset} lastOffset: {batch.last_offset} count: {batch.record_count} "
            f"baseSequence: {batch.base_sequence} lastSequence: {batch.last_sequence} "
            f"producerId: {batch.producer_id} producerEpoch: {batch.producer_epoch} "
            f"partitionLeaderEpoch: {batch.partition_leader_epoch} "
            f"isTransactional: {'true' if batch.transactional else 'false'} "
            f"isControl: {'true' if batch.control else 'false'} deleteHorizonMs: {_optional_long(horizon)}"
        )
        kind = _timestamp_type(batch)
    if batch.magic < 0 or batch.codec >= len(CODECS):
        return head, None
    return head, (
        f" position: {batch.position} {kind}: {batch.max_timestamp} size: {batch.size} magic: {batch.magic} "
        f"compresscodec: {CODECS[batch.codec]} crc: {batch.crc} isvalid: {'true' if valid else 'false'}"
    )


def record_text(batch: Batch, record: Record) -> str:
    """A record's line without its content."""
    kind = "NoTimestampType" if batch.magic == 0 else _timestamp_type(batch)
    text = (
        f"| offset: {record.offset} {kind}: {record.timestamp} keySize: {_length(record.key)} "
        f"valueSize: {_length(record.value)}"
    )
    if batch.legacy:
        # The brace is the tool's own.
        return f"{text} isValid: {'true' if record.legacy_valid else 'false'} crc: {record.legacy_crc}}}"
    keys = ",".join(java_utf8(key) for key, _ in record.headers)
    text += f" sequence: {record.sequence} headerKeys: [{keys}]"
    return text + control_text(record) if batch.control else text


def _java_batches(log: Source, position: int) -> Iterator[Batch]:
    while True:
        found = batch_at(log, position, log.size)
        if found is None or (isinstance(found, Damage) and not found.dies):
            return
        if isinstance(found, Damage):
            raise Dies(found.message)
        yield found
        position += found.size


def _timestamp_type(batch: Batch) -> str:
    return "LogAppendTime" if batch.log_append_time else "CreateTime"


def _optional_long(value: int | None) -> str:
    return "OptionalLong.empty" if value is None else f"OptionalLong[{value}]"


def _length(data: bytes | None) -> int:
    return -1 if data is None else len(data)


def _producer_text(entry: object) -> str:
    from kctl.segment.producer_snapshot import ProducerEntry

    assert isinstance(entry, ProducerEntry)
    first = None if entry.current_transaction_first_offset == -1 else entry.current_transaction_first_offset
    text = (
        f"producerId: {entry.producer_id} producerEpoch: {entry.producer_epoch} "
        f"coordinatorEpoch: {entry.coordinator_epoch} currentTxnFirstOffset: {_optional_long(first)} "
        f"lastTimestamp: {entry.timestamp} "
    )
    if entry.last_offset < 0:
        return text
    return text + (
        f"firstSequence: {entry.first_sequence} lastSequence: {entry.last_sequence} lastOffset: {entry.last_offset} "
        f"offsetDelta: {entry.offset_delta} timestamp: {entry.timestamp}"
    )


# --- names, and text as Java has it ---------------------------------------------------------------------------------


def _suffix(name: str) -> str:
    position = name.rfind(".")
    if position < 0:
        raise Dies(f"begin -1, end {len(name)}, length {len(name)}")
    return name[position:]


def _base_offset(path: Path) -> int:
    stem = path.name.split(".")[0]
    digits = stem[1:] if stem[:1] in {"+", "-"} else stem
    if not (digits.isascii() and digits.isdigit()) or not -(2**63) <= int(stem) < 2**63:
        raise Dies(f'For input string: "{stem}"')
    return int(stem)


def _snapshot_id(path: Path) -> tuple[int, int]:
    """OFFSET-EPOCH.checkpoint (org.apache.kafka.snapshot.Snapshots)."""
    stem = path.name.removesuffix(".checkpoint")
    offset, epoch = stem[:20], stem[21:31]
    if not (offset.isascii() and offset.isdigit() and epoch.isascii() and epoch.isdigit()):
        raise Dies(f'For input string: "{offset}"')
    return int(offset), int(epoch)


def _whole(path: Path) -> bytes:
    with Source(path) as source:
        return bytes(source.read(0, source.size))


def _as_java(name: str) -> str:
    """java.io.File's way with a path: no repeated and no closing slashes."""
    while "//" in name:
        name = name.replace("//", "/")
    return name.rstrip("/") if len(name) > 1 else name
