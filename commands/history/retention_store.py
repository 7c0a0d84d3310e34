"""kctl history retention over a store of snapshots."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kctl.commands.history.engine import Run
from kctl.commands.history.options import check_span, show_duration
from kctl.commands.terminal import output
from kctl.commands.terminal.invocation import Invocation
from kctl.commands.terminal.output import Table, jsonable
from kctl.errors import NotFound, NotHealthy, Refused, UsageError

if TYPE_CHECKING:
    from kctl.history.lag.explain import Line
    from kctl.history.retention.outlook import LogDirOutlook, Outlook
    from kctl.history.retention.store_reads import StoreReads
    from kctl.history.retention.what_if import Change
    from kctl.lag.selection import Names

_OLD_MS = 10 * 60_000  # a newest snapshot that is older is told


@dataclass(frozen=True)
class Asked:
    """What the options come to. Passes with from_ms ≤ at_ms < to_ms are looked at; old_ms: how old the newest one is,
    when nothing else was asked for. wide: tables have all columns."""

    store: Path
    topics: Names
    by: str
    show: str
    change: Change | None
    from_ms: int
    to_ms: int
    old_ms: int | None
    full_within_ms: int | None
    explain: bool
    wide: bool = False


@dataclass
class Result:
    """log_dirs: as far as they were looked at."""

    errors: list[str] = field(default_factory=list)
    log_dirs: list[LogDirOutlook] = field(default_factory=list)


def asked_of(
    store: Path,
    topics: Names,
    by: str,
    show: str,
    what_if: Sequence[str] | None,
    *,
    last: str,
    from_: str | None,
    to: str | None,
    full_within: str | None,
    explain: bool,
    wide: bool = False,
) -> Asked:
    """Check the options, and look for the newest snapshot. Raises UsageError, NotFound, and what open_store does."""
    from kctl.base.moments import parse_moment
    from kctl.base.units import parse_duration_ms
    from kctl.history.retention.what_if import parse_change
    from kctl.history.snapshots.passes import iso, latest_ms, newest_ms
    from kctl.history.snapshots.store import open_store

    change = parse_change(what_if) if what_if else None
    within = None if full_within is None else parse_duration_ms(full_within)
    if explain and (show != "usage" or change is not None or by in {"broker", "replica"}):
        raise UsageError("--explain tells of topics, partitions and log dirs", hint="use it with --by topic or log-dir")
    now_ms, opened = time.time_ns() // 1_000_000, open_store(store)
    until_ms = None if to is None else parse_moment(to, now_ms=now_ms)
    newest = latest_ms(opened, now_ms) if until_ms is None else newest_ms(opened, until_ms)
    if newest is None:
        raise NotFound(f"{store} has no snapshot of that time", hint="`kctl history snapshot` collects them")
    to_ms = newest + 1 if until_ms is None else until_ms
    from_ms = max(to_ms - parse_duration_ms(last), 0) if from_ is None else parse_moment(from_, now_ms=now_ms)
    if from_ is None:
        check_span(0, now_ms, now_ms, last=last)
    else:
        check_span(from_ms, now_ms + 1 if to is None else to_ms, now_ms)
    if from_ms >= to_ms:
        raise NotFound(f"{store} has no snapshot since then", hint=f"its newest one is of {iso(newest)}")
    old_ms = None if to is not None else now_ms - newest
    return Asked(store, topics, by, show, change, from_ms, to_ms, old_ms, within, explain, wide)


def report(inv: Invocation, run: Run, asked: Asked) -> Result:
    """Read the store and show what was asked for."""
    from kctl.history.snapshots.remote import as_given, text_of

    result = Result()
    with run.watched("reading snapshots"):
        reads = run.store_reads(text_of(asked.store), asked.from_ms, asked.to_ms)
        outlook, _ = reads.outlook()
        if asked.full_within_ms is not None:
            result.log_dirs = outlook.by_log_dir()
        shown = report_of(asked, reads, outlook)
        result.errors = as_given(reads.errors, asked.store)
        run.write(shown.rows, shown.row)
    span = outlook.now_ms - max(asked.from_ms, min((r.growth.first_ms for r in outlook.disks.replicas), default=0))
    run.emit(inv, shown.result, lambda: shown.tables)
    if asked.old_ms is not None and asked.old_ms > _OLD_MS:
        output.note(f"the newest snapshot is {show_duration(asked.old_ms)} old: figures are of then")
    if span <= 0 and asked.show == "usage":
        output.note("there is one snapshot of that time: growth takes two")
    return result


@dataclass
class Shown:
    """result: as the formats other than tables have it; rows: what is written as Parquet; tables are made late."""

    result: Any
    rows: Sequence[Any]
    row: type[Any]
    make: Callable[[], list[Table]]

    @property
    def tables(self) -> list[Table]:
        return self.make()


def report_of(asked: Asked, reads: StoreReads, outlook: Outlook) -> Shown:
    """What was asked for, as rows. Raises NotFound for a topic that was named and is not there."""
    from kctl.commands.history import retention_view as view
    from kctl.history.retention.outlook import SkewRow
    from kctl.history.retention.reader_losses import DiskLoss, TombstoneRow, disk_losses, tombstones

    _check_topics(asked.topics, outlook)
    if asked.change is not None:
        return _what_if(asked, asked.change, reads, outlook)
    if asked.show == "losses":
        losses = disk_losses(outlook, reads.readers(outlook, chosen=asked.topics))
        return Shown(losses, losses, DiskLoss, lambda: [view.losses_table(losses)])
    if asked.show == "skew":
        skews = [row for row in outlook.skews() if row.topic is None or row.topic in asked.topics]
        return Shown(skews, skews, SkewRow, lambda: [view.skew_table(skews)])
    if asked.show == "tombstones":
        found = tombstones(reads.readers(outlook, chosen=asked.topics), outlook.disks.configs)
        return Shown(found, found, TombstoneRow, lambda: [view.tombstones_table(found)])
    read, row_type = _usage(outlook, asked.by)
    rows = [row for row in read if not hasattr(row, "topic") or row.topic in asked.topics]
    if not asked.explain:
        return Shown(rows, rows, row_type, lambda: [view.usage_table(rows, asked.by, outlook=True, wide=asked.wide)])
    lines = [_explained(row) for row in rows]
    told = [
        jsonable(row) | {"explain": [line._asdict() for line in each]}
        for row, (_, each) in zip(rows, lines, strict=True)
    ]
    return Shown(
        told,
        rows,
        row_type,
        lambda: [view.usage_table(rows, asked.by, outlook=True, wide=asked.wide), *view.explanations(lines)],
    )


def _check_topics(topics: Names, outlook: Outlook) -> None:
    """Raise NotFound if a topic given by name is missing, or if the patterns match no topic."""
    if topics.everything:
        return
    known = {*outlook.disks.configs, *(row.topic for row in outlook.disks.replicas)}
    missing = sorted(set(topics.exact) - known)
    if missing:
        raise NotFound(f"topic {missing[0]!r} is not in the snapshots", hint="`kctl topic list` shows the topics")
    if not any(name in topics for name in known):
        raise topics.nothing("topic")


def _usage(outlook: Outlook, by: str) -> tuple[Sequence[Any], type[Any]]:
    from kctl.history.retention import outlook as rows

    reports: dict[str, tuple[Callable[[], Sequence[Any]], type[Any]]] = {
        "topic": (outlook.by_topic, rows.TopicOutlook),
        "partition": (outlook.by_partition, rows.PartitionOutlook),
        "replica": (outlook.by_replica, rows.ReplicaOutlook),
        "broker": (outlook.by_broker, rows.BrokerOutlook),
        "log-dir": (outlook.by_log_dir, rows.LogDirOutlook),
    }
    report, row = reports[by]
    return report(), row


def _explained(row: Any) -> tuple[str, Sequence[Line]]:
    from kctl.history.retention.explain import explain_log_dir, explain_logs

    if hasattr(row, "log_dir"):
        return f"broker {row.broker}, {row.log_dir}", explain_log_dir(row)
    name = f"{row.topic}, partition {row.partition}" if hasattr(row, "partition") else row.topic
    return name, explain_logs(row)


def _what_if(asked: Asked, change: Change, reads: StoreReads, outlook: Outlook) -> Shown:
    from kctl.commands.history.retention_view import what_if_tables
    from kctl.history.retention.what_if_report import TopicWhatIf, what_if

    moments = [] if change.retention_ms is None or change.retention_ms < 0 else [outlook.now_ms - change.retention_ms]
    ends = reads.ends_near(moments, outlook.now_ms)
    found = what_if(outlook, change, asked.topics, reads.readers(outlook, chosen=asked.topics), ends)
    return Shown(found, found.topics, TopicWhatIf, lambda: what_if_tables(found))


def judge(asked: Asked, result: Result) -> None:
    """Raise NotHealthy when a disk is full within the time that was given."""
    if asked.full_within_ms is None:
        return
    within = show_duration(asked.full_within_ms)
    for row in result.log_dirs:
        if row.full_after_ms is not None and row.full_after_ms < asked.full_within_ms:
            output.warn(
                f"{row.log_dir} of broker {row.broker} is full later than in {show_duration(row.full_after_ms)}:"
                f" whether within {within} is not known, as {show_duration(row.observed_ms or 0)} of snapshots are too"
                " little for that"
            )
    if not any(row.full_ms is not None or row.growth_bytes_per_hour is not None for row in result.log_dirs):
        raise Refused(
            "cannot tell whether a log dir will be full in that time: no log dir has a known growth",
            hint="growth needs two snapshots of a log dir: collect them with `kctl history snapshot`",
        )
    soon = [row for row in result.log_dirs if row.full_ms is not None and row.full_ms < asked.full_within_ms]
    if not soon:
        return
    first = min(soon, key=lambda row: row.full_ms or 0)
    assert first.full_ms is not None
    dirs = "1 log dir is" if len(soon) == 1 else f"{len(soon)} log dirs are"
    raise NotHealthy(
        f"{dirs} full within {within}: {first.log_dir} of broker {first.broker} in {show_duration(first.full_ms)}",
        hint="`kctl history retention --by log-dir --explain` tells by what",
        details={"log_dirs": len(soon), "full_ms": first.full_ms},
    )
