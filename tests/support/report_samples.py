"""Reports for tests: figures that are easy to recognize, names that try to break out of the page."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

from kctl.history.lag.status_rows import GroupStatus, PartitionStatus
from kctl.history.report.buckets import status_spans
from kctl.history.report.findings import findings
from kctl.history.report.model import GroupReport, LogDirReport, Report, ReportSpan, State, TopicReport
from kctl.history.report.overview import overview
from kctl.history.retention.outlook import BrokerOutlook, LogDirOutlook, TopicOutlook
from kctl.history.retention.reader_losses import DiskLoss

FROM = datetime(2026, 9, 21, 10, 0, tzinfo=timezone.utc)
BUCKETS = 60
HOSTILE = (
    "</script><script>window.broken=1</script>",
    "<img src=x onerror='window.broken=1'>",
    '"><svg onload=window.broken=1>',
    "<!--<script>",
    "\u202egnp.exe\u2028line",
    "{{7*7}}${7*7}@REPORT@@SCRIPT@",
    "__proto__",
)


def group_report(name: str, lag: int, status: State = State.OK, *, gone: bool = False) -> GroupReport:
    """Return a group whose lag rose to `lag`, with a gap, and a status for the second half of the time."""
    states = [State.OK] * (BUCKETS // 2) + [status] * (BUCKETS // 2 - 1) + [None]
    series: list[int | None] = [lag * i // BUCKETS for i in range(BUCKETS)]
    series[7] = None
    now = GroupStatus(
        group=name, state="Stable", topic_count=1, partition_count=3, at=FROM + timedelta(hours=1),
        status=status.value, lag=lag, max_lag=lag, lost=lag // 10, control_records=None, not_committed=0, unknown=0,
        time_lag_ms=lag * 10,
        time_lag_at_least_ms=lag * 10,
        consumed_per_s=12.5, produced_per_s=20.0, catch_up_ms=None, deletion_ms=3_600_000 if lag else None,
        loss_ms=3_600_000 if lag else None, last_commit=FROM, lag_before=0, worst_status=status.value,
    )  # fmt: skip
    return GroupReport(now, gone, series, [0] * BUCKETS, status_spans(states))


def partition_status(group: str, topic: str, partition: int, lag: int, status: State = State.OK) -> PartitionStatus:
    """Return a partition that is `lag` behind."""
    return PartitionStatus(
        group=group, state="Stable", topic=topic, partition=partition, at=FROM + timedelta(hours=1),
        status=status.value, burrow_status=status.value, standing="active", committed_offset=100, log_start_offset=0,
        log_end_offset=100 + lag, lag=lag, lost=0, undecided=0, control_records=None, time_lag_ms=5_000,
        time_lag_at_least_ms=5_000, consumed_per_s=1.0, produced_per_s=2.0, catch_up_ms=None,
        deletion_by_time_ms=7_200_000, deletion_by_bytes_ms=None, deletion_ms=7_200_000, loss_ms=7_200_000,
        last_commit=FROM, unchanged_ms=60_000, client_id="client", host="/h", observations=10, first_at=FROM,
        readings=60, lag_before=0, peak_lag=lag,
        worst_status=status.value,
    )  # fmt: skip


def log_dir_report(broker: int, log_dir: str, size: int, *, error: str | None = None) -> LogDirReport:
    """Return a log dir on a volume of 1 TB."""
    now = LogDirOutlook(
        broker=broker, log_dir=log_dir, topic_count=2, replica_count=6, size_bytes=size, total_bytes=10**12,
        usable_bytes=10**12 - 2 * size, disk_used=2 * size / 10**12, retention_bytes_used=None, oldest_timestamp=FROM,
        oldest_age_ms=3_600_000, retention_ms_used=0.5, observed_ms=3_600_000, written_bytes_per_hour=size / 50,
        growth_bytes_per_hour=size / 100, same_volume=[], full_ms=86_400_000, full_at=FROM, growing_to_bytes=None,
        unknown_replicas=0, causes=[],
    )  # fmt: skip
    return LogDirReport(now, error, [size * (i + 60) // 119 for i in range(BUCKETS)])


def topic_report(name: str, size: int) -> TopicReport:
    """Return a topic with three replicas."""
    now = TopicOutlook(
        topic=name, partition_count=3, replica_count=9, size_bytes=size, replicas_bytes=3 * size,
        cleanup_policy="delete", segment_bytes=2**30, retention_bytes=-1, retention_bytes_used=None,
        oldest_timestamp=FROM, oldest_age_ms=562_000_000, retention_ms=604_800_000, retention_ms_used=0.93,
        observed_ms=3_600_000, written_bytes_per_hour=size / 25, growth_bytes_per_hour=size / 50,
        ceiling_bytes=None, unlimited=False, skew=1.1, dirty_ratio_at_least=None, cleaner_stands_still=None,
    )  # fmt: skip
    return TopicReport(now, [3 * size] * BUCKETS)


def broker_report(broker: int, size: int) -> BrokerOutlook:
    """Return a broker with two log dirs."""
    return BrokerOutlook(
        broker=broker, log_dir_count=2, topic_count=2, replica_count=12, size_bytes=size, disk_used=0.5,
        retention_bytes_used=None, oldest_timestamp=FROM, oldest_age_ms=3_600_000, retention_ms_used=0.5,
        observed_ms=3_600_000, written_bytes_per_hour=size / 25, growth_bytes_per_hour=size / 50,
        full_log_dir="/data/1", full_ms=86_400_000, full_at=FROM,
    )  # fmt: skip


def sample_report(groups: int = 12, partitions: int = 40) -> Report:
    """Return a cluster of some size, with hostile names first in each list."""
    statuses = [State.ERR, State.WARN, State.OK, State.UNKNOWN]
    names = [*HOSTILE, *(f"group-{i:04d}" for i in range(groups))]
    found = [group_report(name, 1000 - i, statuses[i % 4]) for i, name in enumerate(names)]
    topics = [topic_report(name, 10**9 - i) for i, name in enumerate((*HOSTILE, "orders", "payments"))]
    dirs = [log_dir_report(b, f"/data/{d}", 10**11 * b + d) for b in (1, 2, 3) for d in (1, 2)]
    dirs.append(log_dir_report(4, HOSTILE[1], 4 * 10**11, error=HOSTILE[0]))
    rows = [
        partition_status(names[i % len(names)], topics[i % len(topics)].now.topic, i, i, statuses[i % 4])
        for i in range(partitions)
    ]
    span = ReportSpan(FROM, FROM + timedelta(hours=1), 60_000, BUCKETS, 60, 1, [f"broker 3: {HOSTILE[1]}"], 2)
    brokers = [broker_report(broker, 10**11 * broker) for broker in (1, 2, 3, 4)]
    losses = [
        DiskLoss(1, "/data/1", 86_400_000, FROM, name, 2, 900 - i, i, 5, 3_600_000) for i, name in enumerate(names)
    ]
    return Report(
        cluster_id=HOSTILE[0],
        made_at=FROM + timedelta(hours=1, seconds=3),
        span=span,
        overview=overview([(group.now, group.gone) for group in found], dirs, topics),
        findings=findings(span, found, rows, dirs, topics),
        groups=found,
        partitions=rows,
        brokers=brokers,
        log_dirs=dirs,
        topics=topics,
        losses=losses[:20],
        lacking=[f"passes/x.parquet: {HOSTILE[1]}"],
    )
