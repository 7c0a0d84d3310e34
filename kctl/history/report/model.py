"""The data of a report. The field names are the JSON keys of `kctl history report` and never change.

Time is divided into `ReportSpan.buckets` buckets of `bucket_ms` each, starting at `from_at`. A series has a value for
each bucket; None: nothing was read, or not everything. For lag and time lag, the value is the maximum of the readings
(an average would hide alarms); for sizes, the last one. Rules: lag.status_rows for groups, retention.outlook for log
dirs and topics, report.findings for urgency. Durations and ETAs are relative to the reading, in ms; None: never, or
unknown.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum

from kctl.history.lag.status_rows import GroupStatus, PartitionStatus
from kctl.history.retention.outlook import BrokerOutlook, LogDirOutlook, TopicOutlook
from kctl.history.retention.reader_losses import DiskLoss

Series = list[int | None]


class State(str, Enum):
    """kctl.history.lag.status.Status by name. Only partitions are STOP, STALL or REWIND; only groups are ERR."""

    UNKNOWN = "UNKNOWN"
    OK = "OK"
    WARN = "WARN"
    ERR = "ERR"
    STOP = "STOP"
    STALL = "STALL"
    REWIND = "REWIND"


@dataclass(frozen=True, slots=True)
class Gap:
    """A time without passes, from the pass at from_at to to_at.

    passes: number of passes due, by the collector's interval. open: the gap lasts to the end of the requested span.
    """

    from_at: datetime
    to_at: datetime
    passes: int
    open: bool


@dataclass(frozen=True, slots=True)
class ReportSpan:
    """The time span of a report.

    passes: number of passes read. incomplete: number of incomplete passes. failures: why they are incomplete. missed:
    number of passes skipped because the previous one took too long. gaps: times without passes.
    """

    from_at: datetime
    to_at: datetime
    bucket_ms: int
    buckets: int
    passes: int
    incomplete: int
    failures: list[str]
    missed: int
    gaps: list[Gap] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class StatusSpan:
    """A status for `count` buckets starting at bucket `first`: the worst of each bucket. None: nothing was read."""

    first: int
    count: int
    status: State | None


@dataclass(frozen=True, slots=True)
class GroupSeries:
    """A group over time.

    timeline: covers all buckets. Groups whose standing raises no alarm (kctl.history.lag.status.Standing) are OK.
    """

    group: str
    lag: Series
    time_lag_ms: Series
    timeline: list[StatusSpan]


@dataclass(frozen=True, slots=True)
class GroupReport:
    """A group at its last reading, as in `kctl history lag --by group`, and over time.

    gone: later passes have no commits of the group.
    """

    now: GroupStatus
    gone: bool
    lag_over_time: Series
    time_lag_over_time: Series
    timeline: list[StatusSpan]


@dataclass(frozen=True, slots=True)
class LogDirReport:
    """A log dir, as in `kctl history retention --by log-dir`, and the bytes of its replicas over time.

    now: with the largest causes only. error: why the log dir is offline. silent_since: time since which its broker has
    not responded; the values are older.
    """

    now: LogDirOutlook
    error: str | None
    size_over_time: Series
    silent_since: datetime | None = None


@dataclass(frozen=True, slots=True)
class SilentBroker:
    """A broker that did not report its log dirs to the newest pass.

    since: first pass without a response; None: it responded to no pass of the span. log_dir_count: number of its log
    dirs.
    """

    broker: int
    since: datetime | None
    log_dir_count: int


@dataclass(frozen=True, slots=True)
class TopicReport:
    """A topic, as in `kctl history retention`, and the bytes of all its replicas over time."""

    now: TopicOutlook
    size_over_time: Series


@dataclass(frozen=True, slots=True)
class Overview:
    """The totals of a report. Groups are counted by their reported status.

    time_lag_at_least_ms: longest time lag. time_lag_ms: the same value; None if it is only a lower bound.
    """

    group_count: int
    groups_ok: int
    groups_warn: int
    groups_err: int
    groups_unknown: int
    partition_count: int
    lag: int | None
    lost: int | None
    time_lag_ms: int | None
    time_lag_at_least_ms: int | None
    next_loss_ms: int | None
    broker_count: int
    log_dir_count: int
    offline_log_dirs: int
    topic_count: int
    replicas_bytes: int
    growth_bytes_per_hour: float | None
    next_full_ms: int | None


class FindingKind(str, Enum):
    """The kind of object that a finding is about."""

    GROUP = "group"
    LOG_DIR = "log dir"
    TOPIC = "topic"
    BROKER = "broker"
    COLLECTOR = "collector"


@dataclass(frozen=True, slots=True)
class ReportFinding:
    """A problem that needs attention.

    severity: ERR or WARN. name: of the group, log dir (on `broker`) or topic. what: the problem; advice: what to do.
    since: when it began; None with before_span: before the span. due_ms: when messages are lost or the disk is full.
    """

    severity: State
    kind: FindingKind
    name: str
    broker: int | None
    what: str
    advice: str
    since: datetime | None
    due_ms: int | None
    before_span: bool = False


@dataclass(frozen=True, slots=True)
class Report:
    """A complete report, each part sorted worst or largest first; the overview also counts rows beyond the limits.

    findings: problems that need attention (kctl.history.report.findings). partitions: as in `kctl history lag`.
    brokers: as in `kctl history retention --by broker`. losses: as in `kctl history retention --show losses`. lacking:
    read failures. silent_brokers: brokers with stale values. missing_tables: tables that the store does not have.
    """

    cluster_id: str | None
    made_at: datetime
    span: ReportSpan
    overview: Overview
    findings: list[ReportFinding]
    groups: list[GroupReport]
    partitions: list[PartitionStatus]
    brokers: list[BrokerOutlook]
    log_dirs: list[LogDirReport]
    topics: list[TopicReport]
    losses: list[DiskLoss]
    lacking: list[str]
    silent_brokers: list[SilentBroker] = field(default_factory=list)
    missing_tables: list[str] = field(default_factory=list)
