"""What of a report needs a person, the most urgent first. Pure.

- A collector that makes no passes any more, and a broker that does not answer: all else may be old.
- A group is named when its status is ERR or WARN: kctl.history.report.verdict has made it so where it will lose
  messages within a week, or where its commits lie beyond the end of the log.
- A log dir is named when it is offline, or full within a week, or all but full; log dirs on one volume once.
- A topic is named when its log cleaner stands still (kctl.history.retention.tombstones).

A group's severity is its status. Of log dirs, ERR is what is lost already or will be within a day; the rest is WARN.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta

from kctl.base.grouping import grouped
from kctl.base.text import counted
from kctl.base.units import format_duration, format_size
from kctl.history.lag.status_rows import GroupStatus, PartitionStatus
from kctl.history.report.model import (
    Finding,
    FindingKind,
    GroupReport,
    LogDirReport,
    SilentBroker,
    Span,
    State,
    StatusSpan,
    TopicReport,
)
from kctl.history.report.verdict import DAY_MS, WEEK_MS
from kctl.history.retention.outlook import LogDirOutlook, TopicOutlook

MOST = 200
ALL_BUT_FULL = 0.95  # of a volume
_NEVER_DUE = {FindingKind.COLLECTOR: -3.0, FindingKind.BROKER: -2.0, FindingKind.LOG_DIR: -1.0}
_MOST_CAUSES = 3
_LEAST_SHARE = 0.05  # of what fills a disk: less is not named


def findings(
    span: Span,
    groups: Iterable[GroupReport],
    partitions: Iterable[PartitionStatus],
    log_dirs: Iterable[LogDirReport],
    topics: Iterable[TopicReport],
    silent: Iterable[SilentBroker] = (),
) -> list[Finding]:
    """At most MOST of them. groups and partitions: the worst first."""
    of_group = grouped(partitions, lambda row: row.group)
    found = [
        *_collector(span),
        *map(_silent, silent),
        *_log_dirs(log_dirs),
        *(_group(row, of_group.get(row.now.group, []), span) for row in groups if _needs_someone(row)),
        *(_topic(row.now) for row in topics if row.now.cleaner_stands_still),
    ]
    return sorted(found, key=_urgency)[:MOST]


def _urgency(finding: Finding) -> tuple[bool, float]:
    """What makes figures old first, then log dirs that are offline or full, what is due, and what is not; else they
    stay as they come."""
    never = _NEVER_DUE.get(finding.kind, float("inf"))
    return finding.severity is not State.ERR, never if finding.due_ms is None else finding.due_ms


# --- groups ---------------------------------------------------------------------------------------------------------


def _needs_someone(row: GroupReport) -> bool:
    return not row.gone and row.now.status in {State.ERR, State.WARN}


def _group(row: GroupReport, partitions: Sequence[PartitionStatus], span: Span) -> Finding:
    now = row.now
    since, before_span = _since(row.timeline, now.status, span)
    return Finding(
        severity=State.ERR if now.status == State.ERR else State.WARN,
        kind=FindingKind.GROUP,
        name=now.group,
        broker=None,
        what=", ".join(_of_group(now, partitions)),
        advice=_advice(now, partitions),
        since=since,
        due_ms=now.loss_ms,
        before_span=before_span,
    )


_VERDICTS = {
    "STOP": "commits nothing",
    "STALL": "commits, but its offset stands still",
    "REWIND": "its offset went back",
    "WARN": "falls behind",
}


def _of_group(now: GroupStatus, partitions: Sequence[PartitionStatus]) -> Iterator[str]:
    status = _burrow(partitions)
    verdict = _VERDICTS.get(status or "")
    if _is_held(partitions):
        yield "waits for a transaction that is open"
    elif _is_set_back(partitions) and status != "REWIND":
        yield f"{_VERDICTS['REWIND']}, and since then it {verdict}"
    elif verdict:
        yield verdict
    elif not (now.ahead or now.loss_ms is not None):
        yield f"is in {now.status}"
    if now.ahead:
        yield f"its committed offset is {counted(now.ahead, 'offset')} beyond the end of the log"
    if now.lag:
        age = now.time_lag_at_least_ms
        more = ">" if now.time_lag_ms is None else ""
        yield f"{counted(now.lag, 'message')} behind{f' ({more}{format_duration(age)})' if age else ''}"
    if now.lost:
        yield f"{counted(now.lost, 'message')} deleted before they were read"
    if now.loss_ms is not None:
        yield f"will lose {'more' if now.lost else 'messages'}"


def _burrow(partitions: Sequence[PartitionStatus]) -> str | None:
    """The status of the worst partition by how its offsets moved: what a report raises it to says nothing of that."""
    worst = partitions[0] if partitions else None
    if worst is None or worst.status in _VERDICTS:
        return None if worst is None else worst.status
    return worst.burrow_status


def _is_held(partitions: Sequence[PartitionStatus]) -> bool:
    """All that is unread where it stands still lies behind open transactions (isolation.level=read_committed)."""
    still = [row for row in partitions if row.status in {"STOP", "STALL"}]
    return bool(still) and all(row.held_by_transaction for row in still)


def _is_set_back(partitions: Sequence[PartitionStatus]) -> bool:
    """An offset went back in the span, and what it has to read again is not read yet."""
    return any(
        "REWIND" in {row.status, row.worst_status} and row.status in {"STOP", "STALL", "REWIND"} for row in partitions
    )


def _advice(now: GroupStatus, partitions: Sequence[PartitionStatus]) -> str:
    worst = partitions[0] if partitions else None
    status = _burrow(partitions)
    if now.ahead and status not in {"STOP", "STALL"}:
        return "was its topic recreated, or the log truncated? set the offset with `kctl group reset-offsets`"
    if _is_held(partitions):
        return "its producer hangs or is gone: `kafka-transactions.sh find-hanging` names it, and `abort` ends it"
    if _is_set_back(partitions) and status != "REWIND":
        return f"see whether the reset was meant; {_of_consumers(now, worst)}"
    if status in {"STOP", "STALL"}:
        return _of_consumers(now, worst)
    if status == "REWIND":
        return "its offsets were reset, or an old commit came late: see whether that was meant"
    if now.consumed_per_s is not None and now.produced_per_s is not None and now.consumed_per_s < now.produced_per_s:
        return f"it reads {_rate(now.consumed_per_s)} of {_rate(now.produced_per_s)}: give it more or faster consumers"
    return "keep its topics longer until it has caught up: `kctl history retention --what-if` tells what that takes"


def _of_consumers(now: GroupStatus, worst: PartitionStatus | None) -> str:
    if now.state == "Empty":
        return "it has no members: start its consumers"
    stuck = worst is not None and worst.status == "STALL"
    return f"look at {_client(worst)}: {'stuck on a message' if stuck else 'hung, or it cannot commit'}?"


def _client(worst: PartitionStatus | None) -> str:
    if worst is None or worst.client_id is None:
        return "its consumers"
    return f"client {worst.client_id} on {(worst.host or '?').removeprefix('/')}"


def _rate(per_s: float) -> str:
    return f"{per_s:,.0f}/s" if per_s >= 10 or per_s == 0 else f"{per_s:.2g}/s"


def _since(timeline: Sequence[StatusSpan], status: str | None, span: Span) -> tuple[datetime | None, bool]:
    """When the status began, and whether before the span. Gaps in which nothing else was seen do not end it."""
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


# --- what makes figures old -----------------------------------------------------------------------------------------


def _collector(span: Span) -> Iterator[Finding]:
    for gap in span.gaps:
        if gap.open:
            lasted = format_duration((gap.to_at - gap.from_at) // timedelta(milliseconds=1))
            what = f"makes no snapshots: the last one is {lasted} old, and so is all that is told here"
            advice = "start `kctl history snapshot` again"
            yield Finding(State.ERR, FindingKind.COLLECTOR, "of snapshots", None, what, advice, gap.from_at, None)


def _silent(broker: SilentBroker) -> Finding:
    what = f"did not answer: {counted(broker.log_dir_count, 'log dir')} of it are shown as they were before"
    if not broker.log_dir_count:
        what = "did not answer: nothing is known of its log dirs"
    elif broker.log_dir_count == 1:
        what = "did not answer: its log dir is shown as it was before"
    advice = "see whether it runs; what it leads has no leader, or another one, and its replicas fall behind"
    name, before = str(broker.broker), broker.since is None
    return Finding(State.ERR, FindingKind.BROKER, name, None, what, advice, broker.since, None, before)


# --- log dirs, topics -----------------------------------------------------------------------------------------------


def _log_dirs(rows: Iterable[LogDirReport]) -> Iterator[Finding]:
    seen: set[tuple[int, str]] = set()
    for row in rows:
        now = row.now
        if row.error is not None:
            what = f"is offline: {row.error}"
            advice = "its replicas are not to be had there: mend or replace the disk, and start the broker again"
            yield _log_dir(now, State.ERR, what, advice, None)
        elif row.silent_since is None and (now.broker, now.log_dir) not in seen:
            seen |= {(now.broker, other) for other in now.same_volume}
            yield from _filling(now)


def _filling(now: LogDirOutlook) -> Iterator[Finding]:
    used = None if now.disk_used is None else f"{now.disk_used:.0%} of its volume used"
    if now.full_ms is not None and now.full_ms <= WEEK_MS:
        parts = ["is full" if now.full_ms <= 0 else "fills up", used, _growing(now), _causes(now)]
        severity = State.ERR if now.full_ms <= DAY_MS else State.WARN
        advice = "a broker stops at a full disk: `kctl history retention --what-if` shows what less retention frees"
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
