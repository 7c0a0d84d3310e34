"""Where a store's files are, what their names say, and which of them count: pure, the same for every file system.

    DIR/kctl-store.json                                             {"format", "version", "cluster_id"}
    DIR/.lock                                                       held by the collector (flock)
    DIR/<table>/date=YYYY-MM-DD/hour=HH/pass-<at_ms>.parquet        the rows of one pass
    DIR/<table>/date=YYYY-MM-DD/hour=HH/hour-<through_ms>.parquet   the rows of all passes of that hour up to through_ms

at_ms and through_ms have 13 digits; the hour is that of at_ms, in UTC. A file that is being written has another name
(`.…tmp`), and is renamed when it is on the disk.

Which files count is decided by the names in the hour's folder of `passes` alone, in which each pass and each
compaction puts its file last:

- `passes/…/hour-T.parquet` with the largest T: in every table `hour-T.parquet` counts, and nothing else that is not
  later than T.
- `passes/…/pass-A.parquet` with A > T: in every table `pass-A.parquet` counts.

So a pass, or a compaction, counts in all tables at once or in none, and no row counts twice while files that a
compaction has replaced are still there. A table may lack a file that counts: then it has no rows (`passes.tables`
tells which tables have some).
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
    """What a name says. compacted: all passes of the hour up to at_ms, not the one at at_ms."""

    at_ms: int
    compacted: bool

    @property
    def name(self) -> str:
        return f"{'hour' if self.compacted else 'pass'}-{self.at_ms:013d}.parquet"


class Hour(NamedTuple):
    """An hour of UTC, by its first millisecond."""

    start_ms: int

    @property
    def end_ms(self) -> int:
        """The first millisecond that is not in it."""
        return self.start_ms + HOUR_MS

    @property
    def path(self) -> str:
        """«date=2026-11-22/hour=09»."""
        at = datetime.fromtimestamp(self.start_ms / 1000, timezone.utc)
        return f"date={at:%Y-%m-%d}/hour={at:%H}"


def hour_of(at_ms: int) -> Hour:
    """The hour that a time lies in."""
    return Hour(at_ms - at_ms % HOUR_MS)


def parse_hour(date: str, hour: str) -> Hour | None:
    """The hour of two folders' names, «date=…» and «hour=…»; None when they are not ours."""
    day, number = _DATE.fullmatch(date), _HOUR.fullmatch(hour)
    if not day or not number:
        return None
    try:
        at = datetime.strptime(f"{day[1]} {number[1]} +0000", "%Y-%m-%d %H %z")
    except ValueError:
        return None
    return Hour(round(at.timestamp()) * 1000)


def parse_name(name: str) -> DataFile | None:
    """What a file's name says; None when it is not ours."""
    match = _FILE.fullmatch(name)
    return DataFile(int(match[2]), match[1] == "hour") if match else None


@dataclass(frozen=True, slots=True)
class Counting:
    """The files of one hour that count, in the order of their time. through_ms: compacted up to there; None: not."""

    hour: Hour
    files: tuple[DataFile, ...]
    through_ms: int | None


def counting(hour: Hour, names: Collection[str]) -> Counting:
    """Which files count, by the names in the hour's folder of `passes`. Names that are not ours say nothing."""
    result = [file for name in names if (file := parse_name(name)) and hour_of(file.at_ms) == hour]
    through = max((file.at_ms for file in result if file.compacted), default=None)
    passes = sorted(file for file in result if not file.compacted and (through is None or file.at_ms > through))
    first = () if through is None else (DataFile(through, compacted=True),)
    return Counting(hour, (*first, *passes), through)


def hours(from_ms: int, to_ms: int) -> Iterator[Hour]:
    """Every hour with a moment in [from_ms, to_ms)."""
    start = hour_of(from_ms).start_ms
    while start < to_ms:
        yield Hour(start)
        start += HOUR_MS
