"""A dump as kafka-dump-log.sh prints it, byte for byte (kafka.tools.DumpLogSegments of Kafka 3.9.2).

Where the JVM's tool ends with an exception, what it printed before is the same; then the dump goes on behind the
damage. Mismatches of indexes and offsets are collected, and printed on stderr at the end of all files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from kctl.errors import KctlError
from kctl.segment.dump.kafka_text_log import LogText, TextResult
from kctl.segment.dump.kafka_text_mismatches import Mismatches
from kctl.segment.dump.kafka_text_names import absolute, as_java, base_offset_of, snapshot_id, suffix_of
from kctl.segment.dump.kafka_text_options import MAX_BYTES, Dies, Findings, Found, KafkaTextOptions, Write
from kctl.segment.format.compression import BadPayload
from kctl.segment.format.record import BadRecords
from kctl.segment.log.parallel import PART_BYTES, Processes, in_order, parts
from kctl.segment.log.source import Source

if TYPE_CHECKING:
    from kctl.segment.dump.kafka_text_index import IndexText


class KafkaText:
    """One run over several files. ignored: files that are none of Kafka's, by name. unreadable: why files could not be
    read that were asked for."""

    def __init__(self, options: KafkaTextOptions, write: Write, processes: Processes | None = None) -> None:
        """processes: work on the parts of large logs; they write where `write` does."""
        self.ignored: list[str] = []
        self.unreadable: list[KctlError] = []
        self._options, self._write, self._processes = options, write, processes
        self._findings = Findings()
        self._mismatches = Mismatches()
        self._beside: IndexText | None = None

    @property
    def found(self) -> list[Found]:
        """Damage so far: the first of it."""
        return self._findings.kept

    @property
    def found_count(self) -> int:
        """All damage so far, ignored files as well."""
        return self._findings.count + len(self.ignored)

    @property
    def undecoded_count(self) -> int:
        """Records that could not be decoded, or not for sure."""
        return self._findings.undecoded_count

    def mismatches(self) -> Iterator[str]:
        """The lines for stderr."""
        return self._mismatches.lines()

    def dump(self, name: str) -> None:
        """One file, by its suffix. name: as it was given. What cannot be read is `found`."""
        shown = as_java(name)
        self._line(f"Dumping {shown}")
        path = Path(name)
        self._mismatches.file = absolute(name)
        try:
            dumper = self._dumper(suffix_of(path.name))
            if dumper is None:
                self.ignored.append(shown)
                return
            dumper(path, shown)
        except (Dies, BadRecords, BadPayload, KctlError) as exc:
            self._failed(path, exc.message if isinstance(exc, KctlError) else str(exc))

    def _failed(self, path: Path, message: str) -> None:
        """The file is damaged, or what belongs to it is missing; or it cannot be read at all."""
        try:
            Source(path).close()
        except KctlError as exc:
            self.unreadable.append(exc)
        else:
            self._findings.add(path, None, message)

    def _dumper(self, suffix: str) -> Callable[[Path, str], None] | None:
        if suffix in {".log", ".checkpoint"}:
            return self._log
        if self._beside is None:
            from kctl.segment.dump.kafka_text_index import IndexText

            self._beside = IndexText(self._options, self._line, self._findings, self._mismatches)
        beside = self._beside
        return {
            ".index": beside.offset_index,
            ".timeindex": beside.time_index,
            ".snapshot": beside.snapshot,
            ".txnindex": beside.transaction_index,
        }.get(suffix)

    def _line(self, text: str) -> None:
        self._write(text.encode("utf-8", "surrogateescape") + b"\n")

    def _log(self, path: Path, _shown: str) -> None:
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
        self._mismatches.add(self._mismatches.gaps, *result.gaps)
        trailing = end - result.valid_bytes
        if trailing > 0 and self._options.max_bytes == MAX_BYTES and not result.dead:
            self._line(f"Found {trailing} invalid bytes at the end of {path.name}")

    def _text(self, path: Path, source: Source, end: int) -> TextResult:
        if self._processes is None or not self._options.deep or end < 2 * PART_BYTES:
            text = LogText(path, self._options, self._write)
            text.dump(source, 0, end)
            return text.result

        def part(start: int, stop: int, search: bool, write: Write) -> TextResult:
            text = LogText(path, self._options, write)
            with Source(path) as own:  # a file position of its own
                text.dump(own, start, min(stop, own.size), search=search)
            return text.result

        whole = TextResult()
        for result in in_order(parts(source, end), part, self._processes):
            whole.append(result)
        return whole
