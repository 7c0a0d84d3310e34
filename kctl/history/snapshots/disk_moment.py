"""Logs, configs and log dirs of a store at a time, and log end offsets at earlier times.

The newest pass may be incomplete (a broker was down, a file is damaged): then the newest rows of the minutes before it
are used too. A complete pass is used alone: objects that it does not contain no longer exist.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kctl.history.snapshots import schema
from kctl.history.snapshots.layout import HOUR_MS
from kctl.history.snapshots.passes import PassInfo, newest_ms, passes
from kctl.history.snapshots.read import read_table
from kctl.history.snapshots.store import Damaged, Store
from kctl.lag.log_config import LogConfig
from kctl.lag.rates import LogEnd
from kctl.lag.retention import LeaderLog, LogDirSize

_BACK_MS = 30 * 60_000  # how long before an incomplete pass rows are still used
_CONFIGS_BACK_MS = HOUR_MS + _BACK_MS  # all configs are stored once per hour
_GAP_MS = HOUR_MS  # maximum distance of a pass from the requested time
Partition = tuple[str, int]
ReportDamage = Callable[[Damaged], None]


@dataclass(frozen=True)
class DiskMoment:
    """The state of logs and log dirs.

    at_ms, failures: of the newest pass. log_dir_errors: why log dirs are offline, by broker and path.
    """

    at_ms: int
    failures: tuple[str, ...]
    logs: list[LeaderLog]
    configs: dict[str, LogConfig]
    log_dirs: list[LogDirSize]
    log_dir_errors: dict[tuple[int, str], str]


def disk_moment(store: Store, from_ms: int, to_ms: int, *, damaged: ReportDamage) -> DiskMoment | None:
    """Return the state at the newest pass with from_ms ≤ at_ms < to_ms; None if there is no such pass."""
    newest = _newest_pass(store, from_ms, to_ms, damaged)
    if newest is None:
        return None
    end = newest.at_ms + 1
    begin = newest.at_ms if newest.complete else max(end - _BACK_MS, 0)
    logs = [_log(row) for row in _newest(store, schema.LOGS, begin, end, damaged)]
    topics = {log.topic for log in logs}
    dirs = list(_newest(store, schema.LOG_DIRS, begin, end, damaged))
    return DiskMoment(
        at_ms=newest.at_ms,
        failures=newest.failures,
        logs=logs,
        configs={name: config for name, config in _configs(store, end, damaged).items() if name in topics},
        log_dirs=[LogDirSize(row["broker"], row["log_dir"], row["total_bytes"], row["usable_bytes"]) for row in dirs],
        log_dir_errors={(row["broker"], row["log_dir"]): row["error"] for row in dirs if row["error"] is not None},
    )


def newest_configs(store: Store, *, damaged: ReportDamage) -> dict[str, LogConfig]:
    """Return the configs of each topic from the newest snapshots."""
    newest = newest_ms(store)
    if newest is None:
        return {}
    return _configs(store, newest + 1, damaged)


def _configs(store: Store, end_ms: int, damaged: ReportDamage) -> dict[str, LogConfig]:
    rows = _newest(store, schema.CONFIGS, max(end_ms - _CONFIGS_BACK_MS, 0), end_ms, damaged)
    return {row["topic"]: LogConfig(**{name: row[name] for name in LogConfig._fields}) for row in rows}


def ends_near(store: Store, moment_ms: int, until_ms: int, *, damaged: ReportDamage) -> dict[Partition, list[LogEnd]]:
    """Return the end of each log in the last pass before a time, and in the first pass at or after it.

    Only passes within an hour of the time and before until_ms are used.
    """
    result: dict[Partition, list[LogEnd]] = {}
    around = passes(store, max(moment_ms - _GAP_MS, 0), min(moment_ms + _GAP_MS, until_ms), damaged=damaged)
    before = [each.at_ms for each in around if each.at_ms < moment_ms][-1:]
    after = [each.at_ms for each in around if each.at_ms >= moment_ms][:1]
    for at_ms in (*before, *after):
        columns = ("at_ms", "topic", "partition", "log_end_offset")
        for row in _rows(store, schema.LOGS, at_ms, at_ms + 1, damaged, columns):
            if row["log_end_offset"] is not None and row["log_end_offset"] >= 0:
                partition = (row["topic"], row["partition"])
                result.setdefault(partition, []).append(LogEnd(at_ms, row["log_end_offset"]))
    return result


def _newest_pass(store: Store, from_ms: int, to_ms: int, damaged: ReportDamage) -> PassInfo | None:
    """Return the newest pass; the search goes back hour by hour."""
    for hour in reversed(store.hours()):
        if hour.start_ms < to_ms and hour.end_ms > from_ms:
            result = passes(store, max(from_ms, hour.start_ms), min(to_ms, hour.end_ms), damaged=damaged)
            if result:
                return result[-1]
    return None


def _log(row: Mapping[str, Any]) -> LeaderLog:
    names = ("topic", "partition", "leader", "log_start_offset", "log_end_offset", "oldest_timestamp_ms")
    return LeaderLog(*(row[name] for name in names))


def _newest(store: Store, table: str, from_ms: int, to_ms: int, damaged: ReportDamage) -> Iterable[Mapping[str, Any]]:
    """Return the newest row of each key, in the order of the keys."""
    key = schema.SORT_KEYS[table][:-1]
    result: dict[tuple[Any, ...], Mapping[str, Any]] = {}
    for row in _rows(store, table, from_ms, to_ms, damaged):
        name = tuple(row[column] for column in key)
        if name not in result or result[name]["at_ms"] < row["at_ms"]:
            result[name] = row
    return [result[name] for name in sorted(result)]


def _rows(
    store: Store, table: str, from_ms: int, to_ms: int, damaged: ReportDamage, columns: tuple[str, ...] | None = None
) -> Iterator[Mapping[str, Any]]:
    for batch in read_table(store, table, from_ms, to_ms, damaged=damaged, columns=columns):
        yield from batch.to_pylist()
