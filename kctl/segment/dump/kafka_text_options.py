"""Options and findings of a dump in the format of DumpLogSegments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from kctl.segment.dump import query
from kctl.segment.format.record import StoredRecord
from kctl.segment.format.release import Release

MAX_BYTES = 2**31 - 1
MAX_MESSAGE_BYTES = 5 * 1024 * 1024
MAX_FINDINGS = 1000
Write = Callable[[bytes], object]


class Parsed(NamedTuple):
    """The key and value of a record as text; None: not printed. problem: why they are uncertain."""

    key: str | None
    value: str | None
    problem: str | None = None


# Raises ToolCrash where Kafka's tool crashes.
Parser = Callable[[StoredRecord], Parsed]


class ToolCrash(Exception):
    """Kafka's tool would crash here with an exception. message: the reason."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


@dataclass(frozen=True, slots=True)
class DumpFinding:
    """Damage, reported on stderr and by the exit code. position: in the file; None: the whole file.

    note: not damage, although Kafka's tool crashes there.
    """

    path: Path
    position: int | None
    message: str
    note: bool = False


class DumpDamage:
    """The damage that a dump found.

    count: all damage; undecoded_count: undecoded records; first: the first findings and notes.
    """

    def __init__(self) -> None:
        self.count = 0
        self.undecoded_count = 0
        self.first: list[DumpFinding] = []

    def undecoded(self, path: Path, position: int, message: str) -> None:
        """Add a record that cannot be decoded with certainty."""
        self.undecoded_count += 1
        self.add(path, position, message)

    def add(self, path: Path, position: int | None, message: str) -> None:
        """Add damage."""
        self.count += 1
        if len(self.first) < MAX_FINDINGS:
            self.first.append(DumpFinding(path, position, message))

    def note(self, path: Path, position: int, message: str) -> None:
        """Add a note, which is not damage."""
        if len(self.first) < MAX_FINDINGS:
            self.first.append(DumpFinding(path, position, message, note=True))

    def extend(self, others: DumpDamage) -> None:
        """Add all findings of another run."""
        self.count += others.count
        self.undecoded_count += others.undecoded_count
        self.first += others.first[: MAX_FINDINGS - len(self.first)]


@dataclass(frozen=True, slots=True)
class KafkaTextOptions:
    """The options of DumpLogSegments. release: whose text to print; the parser is of the same release."""

    release: Release = Release.KAFKA_3_9
    deep: bool = False
    parser: Parser | None = None  # None: contents are not printed
    plain: bool = False  # the parser shows key and value as UTF-8 text
    skip_record_metadata: bool = False
    verify_only: bool = False
    sanity_only: bool = False
    max_bytes: int = MAX_BYTES
    max_message_bytes: int = MAX_MESSAGE_BYTES

    @property
    def record_bytes(self) -> int:
        """Return the maximum size of a record.

        In DumpLogSegments, --max-message-size limits only the search from an index entry, and records may be larger.
        Here it can only raise kctl's limit.
        """
        return max(self.max_message_bytes, query.MAX_MESSAGE_BYTES)
