"""A dump as kafka-dump-log.sh prints it, byte for byte (DumpLogSegments of Kafka 3.9.2 and 4.4.0).

Where Kafka's tool ends with an exception, the output up to there is the same; the dump then continues after the damage.
Mismatches of indexes and offsets are collected and printed on stderr after all files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from kctl.errors import KctlError
from kctl.segment.dump.kafka_text_log import LogText, TextResult
from kctl.segment.dump.kafka_text_mismatches import Mismatches
from kctl.segment.dump.kafka_text_names import absolute, as_java, base_offset_of, snapshot_id, suffix_of
from kctl.segment.dump.kafka_text_options import MAX_BYTES, DumpDamage, DumpFinding, KafkaTextOptions, ToolCrash, Write
from kctl.segment.format.compression import BadPayload
from kctl.segment.format.record import BadRecords
from kctl.segment.log.parallel import PART_BYTES, Processes, in_order, parts
from kctl.segment.log.source import Source

if TYPE_CHECKING:
    from kctl.segment.dump.kafka_text_index import IndexText


class KafkaText:
    """One run over several files.

    ignored: files whose names are not those of Kafka files. unreadable: why requested files could not be read.
    """

    def __init__(self, options: KafkaTextOptions, write: Write, processes: Processes | None = None) -> None:
        """processes: they dump parts of large logs, and write to the same output as `write`."""
        self.ignored: list[str] = []
        self.unreadable: list[KctlError] = []
        self._options, self._write, self._processes = options, write, processes
        self._findings = DumpDamage()
        self._mismatches = Mismatches(options.release)
        self._index_text: IndexText | None = None

    @property
    def findings(self) -> list[DumpFinding]:
        """Return the first pieces of damage so far."""
        return self._findings.first

    @property
    def finding_count(self) -> int:
        """Return the number of all damaged places so far, including ignored files."""
        return self._findings.count + len(self.ignored)

    @property
    def undecoded_count(self) -> int:
        """Return the number of records that could not be decoded with certainty."""
        return self._findings.undecoded_count

    def mismatches(self) -> Iterator[str]:
        """Yield the lines for stderr."""
        return self._mismatches.lines()

    @property
    def expected_lines(self) -> int:
        """Return the number of lines of `mismatches` that report no mismatch."""
        return self._mismatches.expected_lines

    def dump(self, name: str) -> None:
        """Dump a file according to its suffix. name: as on the command line. Damage is added to `findings`."""
        java_name = as_java(name)
        self._line(f"Dumping {java_name}")
        path = Path(name)
        self._mismatches.file = absolute(name)
        try:
            dumper = self._dumper(suffix_of(path.name, self._options.release))
            if dumper is None:
                self.ignored.append(java_name)
                return
            dumper(path, java_name)
        except (ToolCrash, BadRecords, BadPayload, KctlError) as exc:
            self._failed(path, exc.message if isinstance(exc, KctlError) else str(exc))

    def _failed(self, path: Path, message: str) -> None:
        """Record that a file is damaged, lacks a companion file, or is unreadable."""
        try:
            Source(path).close()
        except KctlError as exc:
            self.unreadable.append(exc)
        else:
            self._findings.add(path, None, message)

    def _dumper(self, suffix: str) -> Callable[[Path, str], None] | None:
        if suffix in {".log", ".checkpoint"}:
            return self._log
        if self._index_text is None:
            from kctl.segment.dump.kafka_text_index import IndexText

            self._index_text = IndexText(self._options, self._line, self._findings, self._mismatches)
        index_text = self._index_text
        return {
            ".index": index_text.offset_index,
            ".timeindex": index_text.time_index,
            ".snapshot": index_text.snapshot,
            ".txnindex": index_text.transaction_index,
        }.get(suffix)

    def _line(self, text: str) -> None:
        self._write(text.encode("utf-8", "surrogateescape") + b"\n")

    def _log(self, path: Path, _name: str) -> None:
        if path.name.endswith(".log"):
            self._line(f"Log starting offset: {base_offset_of(path)}")
        elif path.name == "bootstrap.checkpoint":
            self._line("KRaft bootstrap snapshot")
        else:
            offset, epoch = snapshot_id(path)
            self._line(f"Snapshot end offset: {offset}, epoch: {epoch}")
        with Source(path) as source:
            end = min(source.size, self._options.max_bytes)
            result = self._text(path, source, end)
        self._findings.extend(result.findings)
        self._mismatches.start_log(result.first_offset)
        self._mismatches.add(self._mismatches.gaps, *result.gaps)
        trailing = end - result.valid_bytes
        if trailing > 0 and self._options.max_bytes == MAX_BYTES and not result.crashed:
            self._line(f"Found {trailing} invalid bytes at the end of {path.name}")

    def _text(self, path: Path, source: Source, end: int) -> TextResult:
        if self._processes is None or not self._options.deep or end < 2 * PART_BYTES:
            text = LogText(path, self._options, self._write)
            text.dump(source, 0, end)
            return text.result

        def part(start: int, stop: int, search: bool, write: Write) -> TextResult:
            text = LogText(path, self._options, write)
            with Source(path) as part_source:  # a separate file position
                text.dump(part_source, start, min(stop, part_source.size), search=search)
            return text.result

        whole = TextResult()
        for result in in_order(parts(source, end), part, self._processes):
            whole.append(result)
        return whole
