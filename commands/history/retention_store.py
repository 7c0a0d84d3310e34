"""kctl history retention over a snapshot store."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kctl.commands.history.engine import ReportRun
from kctl.commands.history.options import check_span, show_duration
from kctl.commands.terminal import output
from kctl.commands.terminal.invocation import Invocation
from kctl.commands.terminal.output import Table, jsonable
from kctl.errors import NotFound, NotHealthy, Reason, Refused, UsageError

if TYPE_CHECKING:
    from kctl.history.lag.explain import Line
    from kctl.history.retention.outlook import LogDirOutlook, Outlook
    from kctl.history.retention.store_reads import StoreReads
    from kctl.history.retention.what_if import Change
    from kctl.lag.selection import Names

_OLD_MS = 10 * 60_000  # note if the newest snapshot is older


@dataclass(frozen=True)
class StoreRequest:
    """Parsed options of a report over a store.

    Snapshots with from_ms ≤ at_ms < to_ms are read. old_ms: age of the newest snapshot; None if --to is set. wide: show
    all columns.
    """

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
class StoreResult:
    """Outcome of a report. log_dirs: empty unless --full-within is set."""

    errors: list[str] = field(default_factory=list)
    log_dirs: list[LogDirOutlook] = field(default_factory=list)


def store_request(
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
) -> StoreRequest:
    """Validate the options and find the newest snapshot. Raises UsageError, NotFound, and the errors of open_store."""
    from kctl.base.timestamps import parse_timestamp
    from kctl.base.units import parse_duration_ms
    from kctl.history.retention.what_if import parse_change
    from kctl.history.snapshots.passes import iso, latest_ms, newest_ms
    from kctl.history.snapshots.store import open_store

    change = parse_change(what_if) if what_if else None
    within = None if full_within is None else parse_duration_ms(full_within)
    if explain and (show != "usage" or change is not None or by in {"broker", "replica"}):
        raise UsageError(
            "--explain works for topics, partitions and log dirs only", hint="use --by topic or --by log-dir"
        )
    now_ms, opened = time.time_ns() // 1_000_000, open_store(store)
    until_ms = None if to is None else parse_timestamp(to, now_ms=now_ms)
    newest = latest_ms(opened, now_ms) if until_ms is None else newest_ms(opened, until_ms)
    if newest is None:
        raise NotFound(f"{store} has no snapshot of that time", hint="collect snapshots with `kctl history snapshot`")
    to_ms = newest + 1 if until_ms is None else until_ms
    from_ms = max(to_ms - parse_duration_ms(last), 0) if from_ is None else parse_timestamp(from_, now_ms=now_ms)
    if from_ is None:
        check_span(0, now_ms, now_ms, last=last)
    else:
        check_span(from_ms, now_ms + 1 if to is None else to_ms, now_ms)
    if from_ms >= to_ms:
        raise NotFound(f"{store} has no snapshot since then", hint=f"its newest snapshot was taken at {iso(newest)}")
    old_ms = None if to is not None else now_ms - newest
    return StoreRequest(store, topics, by, show, change, from_ms, to_ms, old_ms, within, explain, wide)


def report(inv: Invocation, run: ReportRun, request: StoreRequest) -> StoreResult:
    """Read the store and show the requested report."""
    from kctl.history.snapshots.remote import as_given, text_of

    result = StoreResult()
    with run.watched("reading snapshots"):
        reads = run.store_reads(text_of(request.store), request.from_ms, request.to_ms)
        outlook, _ = reads.outlook()
        if request.full_within_ms is not None:
            result.log_dirs = outlook.by_log_dir()
        content = report_of(request, reads, outlook)
        result.errors = as_given(reads.errors, request.store)
        run.write(content.rows, content.row)
    span = outlook.now_ms - max(request.from_ms, min((r.growth.first_ms for r in outlook.disks.replicas), default=0))
    run.emit(inv, content.result, lambda: content.tables)
    if request.old_ms is not None and request.old_ms > _OLD_MS:
        output.note(f"the newest snapshot is {show_duration(request.old_ms)} old: values are as of then")
    if span <= 0 and request.show == "usage":
        output.note("only one snapshot in that time span: growth needs two")
    return result


@dataclass
class StoreReport:
    """A report ready to be shown.

    result: for formats other than tables. rows: written as Parquet. Tables are built on demand.
    """

    result: Any
    rows: Sequence[Any]
    row: type[Any]
    make: Callable[[], list[Table]]

    @property
    def tables(self) -> list[Table]:
        return self.make()


def report_of(request: StoreRequest, reads: StoreReads, outlook: Outlook) -> StoreReport:
    """Return the requested report. Raises NotFound for an exact topic name that is not in the snapshots."""
    from kctl.commands.history import retention_view as view
    from kctl.history.retention.outlook import SkewRow
    from kctl.history.retention.reader_losses import DiskLoss, TombstoneRow, disk_losses, tombstones

    _check_topics(request.topics, outlook)
    if request.change is not None:
        return _what_if(request, request.change, reads, outlook)
    if request.show == "losses":
        losses = disk_losses(outlook, reads.readers(outlook, chosen=request.topics))
        return StoreReport(losses, losses, DiskLoss, lambda: [view.losses_table(losses)])
    if request.show == "skew":
        skews = [row for row in outlook.skews() if row.topic is None or row.topic in request.topics]
        return StoreReport(skews, skews, SkewRow, lambda: [view.skew_table(skews)])
    if request.show == "tombstones":
        tombstone_rows = tombstones(reads.readers(outlook, chosen=request.topics), outlook.disks.configs)
        return StoreReport(
            tombstone_rows, tombstone_rows, TombstoneRow, lambda: [view.tombstones_table(tombstone_rows)]
        )
    all_rows, row_type = _usage(outlook, request.by)
    rows = [row for row in all_rows if not hasattr(row, "topic") or row.topic in request.topics]
    if not request.explain:
        return StoreReport(
            rows, rows, row_type, lambda: [view.usage_table(rows, request.by, outlook=True, wide=request.wide)]
        )
    lines = [_explained(row) for row in rows]
    explained = [
        jsonable(row) | {"explain": [line._asdict() for line in each]}
        for row, (_, each) in zip(rows, lines, strict=True)
    ]
    return StoreReport(
        explained,
        rows,
        row_type,
        lambda: [view.usage_table(rows, request.by, outlook=True, wide=request.wide), *view.explanations(lines)],
    )


def _check_topics(topics: Names, outlook: Outlook) -> None:
    """Raise NotFound if a topic given by name is missing, or if the patterns match no topic."""
    if topics.everything:
        return
    stored = {*outlook.disks.configs, *(row.topic for row in outlook.disks.replicas)}
    missing = sorted(set(topics.exact) - stored)
    if missing:
        raise NotFound(f"topic {missing[0]!r} is not in the snapshots", hint="`kctl topic list` shows the topics")
    if not any(name in topics for name in stored):
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


def _what_if(request: StoreRequest, change: Change, reads: StoreReads, outlook: Outlook) -> StoreReport:
    from kctl.commands.history.retention_view import what_if_tables
    from kctl.history.retention.what_if_report import TopicWhatIf, what_if

    timestamps = (
        [] if change.retention_ms is None or change.retention_ms < 0 else [outlook.now_ms - change.retention_ms]
    )
    ends = reads.ends_near(timestamps, outlook.now_ms)
    effect = what_if(outlook, change, request.topics, reads.readers(outlook, chosen=request.topics), ends)
    return StoreReport(effect, effect.topics, TopicWhatIf, lambda: what_if_tables(effect))


def judge(request: StoreRequest, result: StoreResult) -> None:
    """Raise NotHealthy if a disk is full within --full-within."""
    if request.full_within_ms is None:
        return
    within = show_duration(request.full_within_ms)
    for row in result.log_dirs:
        if row.full_after_ms is not None and row.full_after_ms < request.full_within_ms:
            output.warn(
                f"{row.log_dir} on broker {row.broker} will not be full within {show_duration(row.full_after_ms)}:"
                f" {show_duration(row.observed_ms or 0)} of snapshots are too few to predict {within}"
            )
    if not any(row.full_ms is not None or row.growth_bytes_per_hour is not None for row in result.log_dirs):
        raise Refused(
            "cannot predict when log dirs are full: the growth of every log dir is unknown",
            hint="collect at least two snapshots with `kctl history snapshot`",
            reason=Reason.UNREADABLE,
        )
    soon = [row for row in result.log_dirs if row.full_ms is not None and row.full_ms < request.full_within_ms]
    if not soon:
        return
    first = min(soon, key=lambda row: row.full_ms or 0)
    assert first.full_ms is not None
    dirs = "1 log dir is" if len(soon) == 1 else f"{len(soon)} log dirs are"
    raise NotHealthy(
        f"{dirs} full within {within}: {first.log_dir} on broker {first.broker} in {show_duration(first.full_ms)}",
        hint="run `kctl history retention --by log-dir --explain` for the causes",
        details={"log_dirs": len(soon), "full_ms": first.full_ms},
    )
