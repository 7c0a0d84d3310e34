"""The findings of a report: problems that need attention, most urgent first. Pure.

- A collector that stopped and a broker that does not respond: all other values may be stale.
- A group in ERR or WARN. kctl.history.report.verdict raises the status of groups that will lose messages within a week
  or whose commits are beyond the end of the log.
- A log dir that is offline, full within a week, or nearly full. Log dirs on one volume are one finding.
- A topic whose log cleaner is stalled (kctl.history.retention.tombstones).

The severity of a group is its status. Log dirs are ERR if they are offline or full within a day, otherwise WARN.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta

from kctl.base.grouping import grouped
from kctl.base.text import counted
from kctl.base.units import format_duration, format_size
from kctl.history.lag.status_rows import GroupStatus, PartitionStatus
from kctl.history.report.attention import NEARLY_FULL, group_needs_attention
from kctl.history.report.model import (
    FindingKind,
    GroupReport,
    LogDirReport,
    ReportFinding,
    ReportSpan,
    SilentBroker,
    State,
    StatusSpan,
    TopicReport,
)
from kctl.history.report.verdict import DAY_MS, WEEK_MS
from kctl.history.retention.outlook import LogDirOutlook, TopicOutlook

MAX_FINDINGS = 200
_NEVER_DUE = {FindingKind.COLLECTOR: -3.0, FindingKind.BROKER: -2.0, FindingKind.LOG_DIR: -1.0}
_MAX_CAUSES = 3
_MIN_SHARE = 0.05  # of the growth of a disk; smaller causes are omitted


def findings(
    span: ReportSpan,
    groups: Iterable[GroupReport],
    partitions: Iterable[PartitionStatus],
    log_dirs: Iterable[LogDirReport],
    topics: Iterable[TopicReport],
    silent: Iterable[SilentBroker] = (),
) -> list[ReportFinding]:
    """Return at most MAX_FINDINGS findings. groups and partitions: worst first."""
    of_group = grouped(partitions, lambda row: row.group)
    issues = [
        *_collector(span),
        *map(_silent, silent),
        *_log_dirs(log_dirs),
        *(_group(row, of_group.get(row.now.group, []), span) for row in groups if _has_finding(row)),
        *(_topic(row.now) for row in topics if row.now.cleaner_stands_still),
    ]
    return sorted(issues, key=_urgency)[:MAX_FINDINGS]


def _urgency(finding: ReportFinding) -> tuple[bool, float]:
    """Return the sort key: causes of stale values, offline or full log dirs, then by due time.

    Ties keep their order.
    """
    never = _NEVER_DUE.get(finding.kind, float("inf"))
    return finding.severity is not State.ERR, never if finding.due_ms is None else finding.due_ms


# --- groups ---------------------------------------------------------------------------------------------------------


def _has_finding(row: GroupReport) -> bool:
    return group_needs_attention(row) and row.now.status in {State.ERR, State.WARN}


def _group(row: GroupReport, partitions: Sequence[PartitionStatus], span: ReportSpan) -> ReportFinding:
    now = row.now
    since, before_span = _since(row.timeline, now.status, span)
    return ReportFinding(
        severity=State.ERR if now.status == State.ERR else State.WARN,
        kind=FindingKind.GROUP,
        name=now.group,
        broker=None,
        what=", ".join(_problems(now, partitions)),
        advice=_advice(now, partitions),
        since=since,
        due_ms=now.loss_ms,
        before_span=before_span,
    )


_VERDICTS = {
    "STOP": "commits nothing",
    "STALL": "commits, but its offset does not advance",
    "REWIND": "its offset went back",
    "WARN": "falls behind",
}


def _problems(now: GroupStatus, partitions: Sequence[PartitionStatus]) -> Iterator[str]:
    status = _burrow(partitions)
    verdict = _VERDICTS.get(status or "")
    if _is_held(partitions):
        yield "waits for an open transaction"
    elif _was_rewound(partitions) and status != "REWIND":
        yield f"{_VERDICTS['REWIND']}, and since then the group {verdict}"
    elif verdict:
        yield verdict
    elif not (now.ahead or now.loss_ms is not None):
        yield f"is in {now.status}"
    if now.ahead:
        yield f"committed offset is {counted(now.ahead, 'offset')} beyond the end of the log"
    if now.lag:
        age = now.time_lag_at_least_ms
        more = ">" if now.time_lag_ms is None else ""
        yield f"{counted(now.lag, 'message')} behind{f' ({more}{format_duration(age)})' if age else ''}"
    if now.lost:
        yield f"{counted(now.lost, 'message')} deleted before they were read"
    if now.loss_ms is not None:
        yield f"will lose {'more' if now.lost else 'messages'}"


def _burrow(partitions: Sequence[PartitionStatus]) -> str | None:
    """Return the Burrow status of the worst partition. Its row may show a status that the report raised."""
    worst = partitions[0] if partitions else None
    if worst is None or worst.status in _VERDICTS:
        return None if worst is None else worst.status
    return worst.burrow_status


def _is_held(partitions: Sequence[PartitionStatus]) -> bool:
    """Return True if open transactions hide all unread messages of stalled partitions from the group.

    This happens only to consumers with isolation.level=read_committed.
    """
    stalled = [row for row in partitions if row.status in {"STOP", "STALL"}]
    return bool(stalled) and all(row.held_by_transaction for row in stalled)


def _was_rewound(partitions: Sequence[PartitionStatus]) -> bool:
    """Return True if an offset went back within the span and has not been reached again."""
    return any(
        "REWIND" in {row.status, row.worst_status} and row.status in {"STOP", "STALL", "REWIND"} for row in partitions
    )


def _advice(now: GroupStatus, partitions: Sequence[PartitionStatus]) -> str:
    worst = partitions[0] if partitions else None
    status = _burrow(partitions)
    if now.ahead and status not in {"STOP", "STALL"}:
        return "check whether the topic was recreated or truncated, and set the offset with `kctl group reset-offsets`"
    if _is_held(partitions):
        return "the producer hangs or has exited: find it with `kctl transaction hanging`, then abort the transaction"
    if _was_rewound(partitions) and status != "REWIND":
        return f"check whether the reset was intended; {_consumer_advice(now, worst)}"
    if status in {"STOP", "STALL"}:
        return _consumer_advice(now, worst)
    if status == "REWIND":
        return "the offsets were reset or an old commit arrived late: check whether that was intended"
    if now.consumed_per_s is not None and now.produced_per_s is not None and now.consumed_per_s < now.produced_per_s:
        return f"reads {_rate(now.consumed_per_s)} of {_rate(now.produced_per_s)}: add or speed up consumers"
    return "raise the topics' retention until the group catches up; estimate it with `kctl history retention --what-if`"


def _consumer_advice(now: GroupStatus, worst: PartitionStatus | None) -> str:
    if now.state == "Empty":
        return "the group has no members: start its consumers"
    stuck = worst is not None and worst.status == "STALL"
    return f"check {_client(worst)}: {'it may be stuck on a message' if stuck else 'it may hang or fail to commit'}"


def _client(worst: PartitionStatus | None) -> str:
    if worst is None or worst.client_id is None:
        return "its consumers"
    return f"client {worst.client_id} on {(worst.host or '?').removeprefix('/')}"


def _rate(per_s: float) -> str:
    return f"{per_s:,.0f}/s" if per_s >= 10 or per_s == 0 else f"{per_s:.2g}/s"


def _since(timeline: Sequence[StatusSpan], status: str | None, span: ReportSpan) -> tuple[datetime | None, bool]:
    """Return when the status began, and True if that was before the span. Buckets without a status are skipped."""
    first: int | None = None
    for each in reversed(timeline):
        if each.status in {None, State.UNKNOWN}:
            continue
        if each.status != status:
            break
        first = each.first
    if not first:
        return None, first == 0
    return span.from_at + timedelta(milliseconds=first * span.bucket_ms), False


# --- stale values --------------------------------------------------------------------------------------------------


def _collector(span: ReportSpan) -> Iterator[ReportFinding]:
    for gap in span.gaps:
        if gap.open:
            age = format_duration((gap.to_at - gap.from_at) // timedelta(milliseconds=1))
            what = f"no snapshots: the last one is {age} old, so all values are stale"
            advice = "restart `kctl history snapshot`"
            yield ReportFinding(State.ERR, FindingKind.COLLECTOR, "of snapshots", None, what, advice, gap.from_at, None)


def _silent(broker: SilentBroker) -> ReportFinding:
    what = f"did not respond: {counted(broker.log_dir_count, 'log dir')} shown with stale values"
    if not broker.log_dir_count:
        what = "did not respond: its log dirs are unknown"
    elif broker.log_dir_count == 1:
        what = "did not respond: its log dir is shown with stale values"
    advice = "check whether the broker runs: its partitions may have no leader, and its replicas fall behind"
    name, before = str(broker.broker), broker.since is None
    return ReportFinding(State.ERR, FindingKind.BROKER, name, None, what, advice, broker.since, None, before)


# --- log dirs, topics -----------------------------------------------------------------------------------------------


def _log_dirs(rows: Iterable[LogDirReport]) -> Iterator[ReportFinding]:
    reported: set[tuple[int, str]] = set()
    for row in rows:
        now = row.now
        if row.error is not None:
            what = f"is offline: {row.error}"
            advice = "its replicas are unavailable: repair or replace the disk, then restart the broker"
            yield _log_dir(now, State.ERR, what, advice, None)
        elif row.silent_since is None and (now.broker, now.log_dir) not in reported:
            reported |= {(now.broker, other) for other in now.same_volume}
            yield from _filling(now)


def _filling(now: LogDirOutlook) -> Iterator[ReportFinding]:
    used = None if now.disk_used is None else f"{now.disk_used:.0%} of the volume used"
    if now.full_ms is not None and now.full_ms <= WEEK_MS:
        parts = ["is full" if now.full_ms <= 0 else "fills up", used, _growing(now), _causes(now)]
        severity = State.ERR if now.full_ms <= DAY_MS else State.WARN
        advice = "a broker stops on a full disk; see what less retention frees with `kctl history retention --what-if`"
        yield _log_dir(now, severity, ", ".join(part for part in parts if part), advice, now.full_ms)
    elif now.disk_used is not None and now.disk_used >= NEARLY_FULL:
        advice = "not growing now, but there is no headroom: move replicas or delete data"
        yield _log_dir(now, State.WARN, f"is nearly full: {used}", advice, None)


def _growing(now: LogDirOutlook) -> str | None:
    if now.growth_bytes_per_hour is None:
        return None
    return f"growing {format_size(round(now.growth_bytes_per_hour))}/h"


def _causes(now: LogDirOutlook) -> str | None:
    if not now.causes:
        return None
    large = [each for each in now.causes[:_MAX_CAUSES] if each.share >= _MIN_SHARE]
    topics = ", ".join(f"{each.topic or 'others'} {each.share:.0%}" for each in large)
    return f"filled by {topics or 'many topics'}"


def _log_dir(now: LogDirOutlook, severity: State, what: str, advice: str, due_ms: int | None) -> ReportFinding:
    return ReportFinding(severity, FindingKind.LOG_DIR, now.log_dir, now.broker, what, advice, None, due_ms)


def _topic(now: TopicOutlook) -> ReportFinding:
    dirty = "" if now.dirty_ratio_at_least is None else f": at least {now.dirty_ratio_at_least:.0%} is not compacted"
    return ReportFinding(
        State.WARN,
        FindingKind.TOPIC,
        now.topic,
        None,
        f"log cleaner is stalled{dirty}",
        "check log-cleaner.log on the leaders for the error; restarting the broker restarts the cleaner",
        None,
        None,
    )
