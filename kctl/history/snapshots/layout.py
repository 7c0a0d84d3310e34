"""The layout of a store: the folders and names of its files, and which files are valid. Pure, for any file system.

    DIR/kctl-store.json                                             {"format", "version", "cluster_id"}
    DIR/.lock                                                       held by the collector (flock)
    DIR/<table>/date=YYYY-MM-DD/hour=HH/pass-<at_ms>.parquet        the rows of one pass
    DIR/<table>/date=YYYY-MM-DD/hour=HH/hour-<through_ms>.parquet   the rows of all passes of that hour up to through_ms

at_ms and through_ms have 13 digits; the hour is that of at_ms, in UTC. A file that is being written has a temporary
name (`.…tmp`), and is renamed after it is synced to disk.

Only the names in the hour's folder of `passes` determine which files are valid. Each pass and each compaction writes
its file there last:

- `passes/…/hour-T.parquet` with the largest T: in every table `hour-T.parquet` is valid, and no other file up to T.
- `passes/…/pass-A.parquet` with A > T: in every table `pass-A.parquet` is valid.

So a pass or a compaction becomes valid in all tables at once, and no row is counted twice while replaced files still
exist. If a table lacks a valid file, it has no rows of these passes (`passes.tables` lists the tables that have rows).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import NamedTuple

STORE_FILE = "kctl-store.json"
LOCK_FILE = ".lock"
HOUR_MS = 3_600_000

_FILE = re.compile(r"(pass|hour)-([0-9]{13})\.parquet", re.ASCII)
_DATE = re.compile(r"date=([0-9]{4}-[0-9]{2}-[0-9]{2})", re.ASCII)
_HOUR = re.compile(r"hour=([0-9]{2})", re.ASCII)


class DataFile(NamedTuple):
    """The parts of a file name. compacted: all passes of the hour up to at_ms; else the pass at at_ms."""

    at_ms: int
    compacted: bool

    @property
    def name(self) -> str:
        return f"{'hour' if self.compacted else 'pass'}-{self.at_ms:013d}.parquet"


class Hour(NamedTuple):
    """An hour in UTC, identified by its first millisecond."""

    start_ms: int

    @property
    def end_ms(self) -> int:
        """Return the first millisecond after the hour."""
        return self.start_ms + HOUR_MS

    @property
    def path(self) -> str:
        """Return the folder of the hour, e.g. "date=2026-11-22/hour=09"."""
        at = datetime.fromtimestamp(self.start_ms / 1000, timezone.utc)
        return f"date={at:%Y-%m-%d}/hour={at:%H}"


def hour_of(at_ms: int) -> Hour:
    """Return the hour of a time."""
    return Hour(at_ms - at_ms % HOUR_MS)


def parse_hour(date: str, hour: str) -> Hour | None:
    """Parse the names of two folders, "date=…" and "hour=…"; None for foreign names."""
    day, number = _DATE.fullmatch(date), _HOUR.fullmatch(hour)
    if not day or not number:
        return None
    try:
        at = datetime.strptime(f"{day[1]} {number[1]} +0000", "%Y-%m-%d %H %z")
    except ValueError:
        return None
    return Hour(round(at.timestamp()) * 1000)


def parse_name(name: str) -> DataFile | None:
    """Parse a file name; None for a foreign name."""
    match = _FILE.fullmatch(name)
    return DataFile(int(match[2]), match[1] == "hour") if match else None


@dataclass(frozen=True, slots=True)
class ValidFiles:
    """The valid files of an hour, in order of time. through_ms: end of the compacted passes; None: not compacted."""

    hour: Hour
    files: tuple[DataFile, ...]
    through_ms: int | None


def valid_files(hour: Hour, names: Collection[str]) -> ValidFiles:
    """Return the valid files, from the names in the hour's folder of `passes`. Foreign names are ignored."""
    result = [file for name in names if (file := parse_name(name)) and hour_of(file.at_ms) == hour]
    through = max((file.at_ms for file in result if file.compacted), default=None)
    passes = sorted(file for file in result if not file.compacted and (through is None or file.at_ms > through))
    first = () if through is None else (DataFile(through, compacted=True),)
    return ValidFiles(hour, (*first, *passes), through)


def hours(from_ms: int, to_ms: int) -> Iterator[Hour]:
    """Yield every hour that overlaps [from_ms, to_ms)."""
    start = hour_of(from_ms).start_ms
    while start < to_ms:
        yield Hour(start)
        start += HOUR_MS
