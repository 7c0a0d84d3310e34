"""What a report says: a plain value, whose field names are the JSON keys of `kctl history report` and never change.

Time is cut into `Span.buckets` buckets of `bucket_ms` each, from `from_at` on. A series has a value for each bucket,
None where nothing was read in it, or not all: for lag and time lag the largest of its readings (an alarm must not be
averaged away), for sizes the last one.
Rules: lag.status_rows for groups, retention.outlook for log dirs and topics, report.findings
for what is urgent. Durations and ETAs count from the reading, in ms; None: never, or not known.
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
    """kctl.history.lag.status.Status by name. STOP, STALL and REWIND are of partitions, ERR of groups."""

    UNKNOWN = "UNKNOWN"
    OK = "OK"
    WARN = "WARN"
    ERR = "ERR"
    STOP = "STOP"
    STALL = "STALL"
    REWIND = "REWIND"


@dataclass(frozen=True, slots=True)
class Gap:
    """A time without passes, after the pass at from_at until to_at.

    passes: how many were due, by the collector's interval. open: lasts until the end of the requested span.
    """

    from_at: datetime
    to_at: datetime
    passes: int
    open: bool


@dataclass(frozen=True, slots=True)
class Span:
    """The time that is reported. passes: read in it; incomplete: of them, those that lack something, failures: why, in
    words; missed: passes that were due and left out because one took too long; gaps: when none were made."""

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
    """A group over time. timeline covers all buckets; a ghost (kctl.history.lag.status.Standing) is OK in it."""

    group: str
    lag: Series
    time_lag_ms: Series
    timeline: list[StatusSpan]


@dataclass(frozen=True, slots=True)
class GroupReport:
    """A group at its last reading, as in `kctl history lag --by group`, and over time.

    gone: later passes have no commits of it.
    """

    now: GroupStatus
    gone: bool
    lag_over_time: Series
    time_lag_over_time: Series
    timeline: list[StatusSpan]


@dataclass(frozen=True, slots=True)
class LogDirReport:
    """A log dir, as `kctl history retention --by log-dir` has it, and the bytes of its replicas over time.

    error: why it is offline. silent_since: since when its broker did not answer: the figures are from before. Of the
    causes there are the largest alone.
    """

    now: LogDirOutlook
    error: str | None
    size_over_time: Series
    silent_since: datetime | None = None


@dataclass(frozen=True, slots=True)
class SilentBroker:
    """A broker that did not tell the newest pass of its log dirs, and should have. since: the first pass it did not
    answer; None: none of the span. log_dirs: how many it had."""

    broker: int
    since: datetime | None
    log_dir_count: int


@dataclass(frozen=True, slots=True)
class TopicReport:
    """A topic, as `kctl history retention` has it, and the bytes of all its replicas over time."""

    now: TopicOutlook
    size_over_time: Series


@dataclass(frozen=True, slots=True)
class Overview:
    """How much there is of each. Groups are counted by the status that counts; of partitions, all are.

    time_lag_at_least_ms: the longest; time_lag_ms: the same, None where it is only known to be longer.
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
    """What a finding is about."""

    GROUP = "group"
    LOG_DIR = "log dir"
    TOPIC = "topic"
    BROKER = "broker"
    COLLECTOR = "collector"


@dataclass(frozen=True, slots=True)
class Finding:
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
    span: Span
    overview: Overview
    findings: list[Finding]
    groups: list[GroupReport]
    partitions: list[PartitionStatus]
    brokers: list[BrokerOutlook]
    log_dirs: list[LogDirReport]
    topics: list[TopicReport]
    losses: list[DiskLoss]
    lacking: list[str]
    silent_brokers: list[SilentBroker] = field(default_factory=list)
    missing_tables: list[str] = field(default_factory=list)
