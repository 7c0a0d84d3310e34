"""The retention report of a live cluster. Shares are read in parallel threads."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from kctl.history.retention import live_reads
from kctl.history.retention.live_plan import RetentionPlan
from kctl.history.retention.live_reads import ConfigRow, LogDirReplicaRow, LogRow
from kctl.history.retention.usage import Usage
from kctl.lag.retention import LeaderLog, LogDirSize, ReplicaSize, TopicRetention
from kctl.protocol.target import Target

_MAX_THREADS = 8
_Row = TypeVar("_Row")


@dataclass(frozen=True)
class LiveUsage:
    """The result of reading a cluster. failures: a line for each reason."""

    usage: Usage
    failures: list[str]


def live_usage(target: Target, plan: RetentionPlan, *, timeout_s: float) -> LiveUsage:
    """Read the shares of the plan. Ages are relative to now."""
    now_ms = time.time_ns() // 1_000_000
    with ThreadPoolExecutor(_MAX_THREADS) as pool:
        logs = _start_reads(pool, live_reads.read_logs, target, plan.partitions, timeout_s)
        log_dirs = _start_reads(pool, live_reads.read_log_dirs, target, plan.brokers, timeout_s)
        configs = _start_reads(pool, live_reads.read_configs, target, plan.topics, timeout_s)
        return usage_of(list(logs()), list(log_dirs()), list(configs()), plan.failures, now_ms=now_ms)


def _start_reads(
    pool: ThreadPoolExecutor,
    reader: Callable[..., Iterator[_Row]],
    target: Target,
    shares: Sequence[Any],
    timeout_s: float,
) -> Callable[[], Iterator[_Row]]:
    """Start reading the shares; the returned function waits for the rows."""
    futures = [pool.submit(_rows, reader, target, share, timeout_s) for share in shares]
    return lambda: (row for future in futures for row in future.result())


def _rows(reader: Callable[..., Iterator[_Row]], target: Target, share: Any, timeout_s: float) -> list[_Row]:
    return list(reader(target, share, timeout_s=timeout_s))


def usage_of(
    logs: Sequence[LogRow],
    log_dirs: Sequence[LogDirReplicaRow],
    configs: Sequence[ConfigRow],
    failures: Iterable[str] = (),
    *,
    now_ms: int,
) -> LiveUsage:
    """Return the usage from the rows. Rows with an error contribute what could be read."""
    usage = Usage(
        replicas=[_replica(row, row.topic) for row in log_dirs if row.topic is not None],
        logs=[LeaderLog(*row[:-1]) for row in logs],
        retention=[TopicRetention(*row[:-1]) for row in configs],
        log_dirs=[
            LogDirSize(row.broker, row.log_dir, row.total_bytes, row.usable_bytes)
            for row in log_dirs
            if row.topic is None and row.log_dir is not None
        ],
        now_ms=now_ms,
    )
    return LiveUsage(usage, [*failures, *_failures(logs, log_dirs, configs)])


def _replica(row: LogDirReplicaRow, topic: str) -> ReplicaSize:
    assert row.partition is not None and row.log_dir is not None and row.size_bytes is not None  # noqa: PT018
    return ReplicaSize(topic, row.partition, row.broker, row.log_dir, row.size_bytes, bool(row.future))


class _Failure(NamedTuple):
    error: str
    subject: str


def _failures(logs: Sequence[LogRow], log_dirs: Sequence[LogDirReplicaRow], configs: Sequence[ConfigRow]) -> list[str]:
    """Return each reason once, with the first subject: one dead broker causes many failures."""
    subjects: dict[str, list[str]] = {}
    for error, subject in (
        *(_Failure(row.error, f"log dirs of broker {row.broker}") for row in log_dirs if row.error is not None),
        *(_Failure(row.error, f"partition {row.topic}-{row.partition}") for row in logs if row.error is not None),
        *(_Failure(row.error, f"configs of topic {row.topic}") for row in configs if row.error is not None),
    ):
        subjects.setdefault(error, []).append(subject)
    return [
        f"{min(names)}{f' and {len(names) - 1} more' if len(names) > 1 else ''}: {error}"
        for error, names in sorted(subjects.items())
    ]
