"""What a dump as DumpLogSegments is asked for, and what it finds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from kctl.segment.dump import query
from kctl.segment.format.record import Record

MAX_BYTES = 2**31 - 1
MAX_MESSAGE_BYTES = 5 * 1024 * 1024
KEPT = 1000
Write = Callable[[bytes], object]


class Parsed(NamedTuple):
    """A record's key and value as text; None: not printed. problem: why they are not known for sure."""

    key: str | None
    value: str | None
    problem: str | None = None


# Raises Dies where the JVM's tool does.
Parser = Callable[[Record], Parsed]


class Dies(Exception):
    """The JVM's tool would end here with an exception: `message` is what it is about."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


@dataclass(frozen=True, slots=True)
class Found:
    """Damage, for the exit code and for stderr. position: in the file, None when it is about the whole.

    note: it is no damage, though the JVM's tool ends there.
    """

    path: Path
    position: int | None
    message: str
    note: bool = False


class Findings:
    """All damage of a run. count: of it; undecoded_count: of it, records; kept: the first KEPT, and notes."""

    def __init__(self) -> None:
        self.count = 0
        self.undecoded_count = 0
        self.kept: list[Found] = []

    def undecoded(self, path: Path, position: int, message: str) -> None:
        """A record that cannot be decoded, or not for sure."""
        self.undecoded_count += 1
        self.add(path, position, message)

    def add(self, path: Path, position: int | None, message: str) -> None:
        """One more."""
        self.count += 1
        if len(self.kept) < KEPT:
            self.kept.append(Found(path, position, message))

    def note(self, path: Path, position: int, message: str) -> None:
        """What is worth knowing, and is no damage."""
        if len(self.kept) < KEPT:
            self.kept.append(Found(path, position, message, note=True))

    def extend(self, others: Findings) -> None:
        """All of another run."""
        self.count += others.count
        self.undecoded_count += others.undecoded_count
        self.kept += others.kept[: KEPT - len(self.kept)]


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

    @property
    def record_bytes(self) -> int:
        """The largest record that is read. DumpLogSegments' --max-message-size is about its way through an index, and
        records may be larger; here it can only raise the limit."""
        return max(self.max_message_bytes, query.MAX_MESSAGE_BYTES)
