"""What of a report needs a person, the most urgent first. Pure.

- A group is named when its status is ERR or WARN, or when it will lose messages within a week.
- A log dir is named when it is offline, or full within a week, or all but full; log dirs on one volume once.
- A topic is named when its log cleaner stands still (kctl.lag.tombstones).

ERR is what is lost already or will be within a day, and a group that is in ERR; the rest is WARN.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta

from kctl.lag.outlook import LogDirOutlook, TopicOutlook
from kctl.lag.report import GroupStatus, PartitionStatus
from kctl.report.model import Finding, FindingKind, GroupReport, LogDirReport, Span, State, StatusSpan, TopicReport
from kctl.text import counted
from kctl.units import format_duration, format_size

MOST = 200
DAY_MS = 24 * 3_600_000
WEEK_MS = 7 * DAY_MS
ALL_BUT_FULL = 0.95  # of a volume
_MOST_CAUSES = 3
_LEAST_SHARE = 0.05  # of what fills a disk: less is not named


def findings(
    span: Span,
    groups: Iterable[GroupReport],
    partitions: Iterable[PartitionStatus],
    log_dirs: Iterable[LogDirReport],
    topics: Iterable[TopicReport],
) -> list[Finding]:
    """At most MOST of them. groups and partitions: the worst first."""
    worst: dict[str, PartitionStatus] = {}
    for row in partitions:
        worst.setdefault(row.group, row)
    found = [
        *_log_dirs(log_dirs),
        *(_group(row, worst.get(row.now.group), span) for row in groups if _needs_someone(row)),
        *(_topic(row.now) for row in topics if row.now.cleaner_stands_still),
    ]
    return sorted(found, key=_urgency)[:MOST]


def _urgency(finding: Finding) -> tuple[bool, float]:
    """Log dirs that are offline or full first, then what is due, then what is not; else they stay as they come."""
    never = -1.0 if finding.kind is FindingKind.LOG_DIR else float("inf")
    return finding.severity is not State.ERR, never if finding.due_ms is None else finding.due_ms


def _within(due_ms: int | None, limit_ms: int) -> bool:
    return due_ms is not None and due_ms <= limit_ms


# --- groups ---------------------------------------------------------------------------------------------------------


def _needs_someone(row: GroupReport) -> bool:
    return not row.gone and (row.now.status in {State.ERR, State.WARN} or _within(row.now.loss_ms, WEEK_MS))


def _group(row: GroupReport, worst: PartitionStatus | None, span: Span) -> Finding:
    now = row.now
    severe = now.status == State.ERR or bool(now.lost) or _within(now.loss_ms, DAY_MS)
    return Finding(
        severity=State.ERR if severe else State.WARN,
        kind=FindingKind.GROUP,
        name=now.group,
        broker=None,
        what=", ".join(_of_group(now, worst)),
        advice=_advice(now, worst),
        since=_since(row.timeline, now.status, span),
        due_ms=now.loss_ms,
    )


_VERDICTS = {
    "STOP": "commits nothing",
    "STALL": "commits, but its offset stands still",
    "REWIND": "its offset went back",
    "WARN": "falls behind",
}


def _of_group(now: GroupStatus, worst: PartitionStatus | None) -> Iterator[str]:
    status = None if worst is None else worst.status
    if now.status in {State.ERR, State.WARN}:
        yield _VERDICTS.get(status or "", f"is in {now.status}")
    if now.lag:
        age = now.time_lag_at_least_ms
        yield f"{counted(now.lag, 'message')} behind{f' ({format_duration(age)})' if age else ''}"
    if now.lost:
        yield f"{counted(now.lost, 'message')} deleted before they were read"
    if now.loss_ms is not None:
        yield f"will lose {'more' if now.lost else 'messages'}"


def _advice(now: GroupStatus, worst: PartitionStatus | None) -> str:
    status = None if worst is None else worst.status
    if status in {"STOP", "STALL"} and now.state == "Empty":
        return "it has no members: start its consumers"
    if status in {"STOP", "STALL"}:
        return (
            f"look at {_client(worst)}: {'stuck on a message' if status == 'STALL' else 'hung, or it cannot commit'}?"
        )
    if status == "REWIND":
        return "its offsets were reset, or an old commit came late: see whether that was meant"
    if now.consumed_per_s is not None and now.produced_per_s is not None and now.consumed_per_s < now.produced_per_s:
        return f"it reads {_rate(now.consumed_per_s)} of {_rate(now.produced_per_s)}: give it more or faster consumers"
    return "keep its topics longer until it has caught up: `kctl spark retention --what-if` tells what that takes"


def _client(worst: PartitionStatus | None) -> str:
    if worst is None or worst.client_id is None:
        return "its consumers"
    return f"client {worst.client_id} on {(worst.host or '?').removeprefix('/')}"


def _rate(per_s: float) -> str:
    return f"{per_s:,.0f}/s" if per_s >= 10 or per_s == 0 else f"{per_s:.2g}/s"


def _since(timeline: Sequence[StatusSpan], status: str | None, span: Span) -> datetime | None:
    """When the status began. None: before the span, or not known."""
    last = next((each for each in reversed(timeline) if each.status is not None), None)
    if last is None or last.status != status or last.first == 0:
        return None
    return span.from_at + timedelta(milliseconds=last.first * span.bucket_ms)


# --- log dirs, topics -----------------------------------------------------------------------------------------------


def _log_dirs(rows: Iterable[LogDirReport]) -> Iterator[Finding]:
    seen: set[tuple[int, str]] = set()
    for row in rows:
        now = row.now
        if row.error is not None:
            what = f"is offline: {row.error}"
            advice = "its replicas are not to be had there: mend or replace the disk, and start the broker again"
            yield _log_dir(now, State.ERR, what, advice, None)
        elif (now.broker, now.log_dir) not in seen:
            seen |= {(now.broker, other) for other in now.same_volume}
            yield from _filling(now)


def _filling(now: LogDirOutlook) -> Iterator[Finding]:
    used = None if now.disk_used is None else f"{now.disk_used:.0%} of its volume used"
    if now.full_ms is not None and now.full_ms <= WEEK_MS:
        parts = ["is full" if now.full_ms <= 0 else "fills up", used, _growing(now), _causes(now)]
        severity = State.ERR if now.full_ms <= DAY_MS else State.WARN
        advice = "a broker stops at a full disk: `kctl spark retention --what-if` tells what a shorter retention frees"
        yield _log_dir(now, severity, ", ".join(part for part in parts if part), advice, now.full_ms)
    elif now.disk_used is not None and now.disk_used >= ALL_BUT_FULL:
        advice = "it does not grow as it was seen, and there is no room if it does: move replicas, or delete something"
        yield _log_dir(now, State.WARN, f"is all but full: {used}", advice, None)


def _growing(now: LogDirOutlook) -> str | None:
    if now.growth_bytes_per_hour is None:
        return None
    return f"{format_size(round(now.growth_bytes_per_hour))} more an hour"


def _causes(now: LogDirOutlook) -> str | None:
    if not now.causes:
        return None
    large = [each for each in now.causes[:_MOST_CAUSES] if each.share >= _LEAST_SHARE]
    named = ", ".join(f"{each.topic or 'others'} {each.share:.0%}" for each in large)
    return f"filled by {named or 'many topics'}"


def _log_dir(now: LogDirOutlook, severity: State, what: str, advice: str, due_ms: int | None) -> Finding:
    return Finding(severity, FindingKind.LOG_DIR, now.log_dir, now.broker, what, advice, None, due_ms)


def _topic(now: TopicOutlook) -> Finding:
    dirty = (
        "" if now.dirty_ratio_at_least is None else f": {now.dirty_ratio_at_least:.0%} of it or more is not compacted"
    )
    return Finding(
        State.WARN,
        FindingKind.TOPIC,
        now.topic,
        None,
        f"its log cleaner stands still{dirty}",
        "look for its error in log-cleaner.log of the leaders; a restart of the broker starts it again",
        None,
        None,
    )
