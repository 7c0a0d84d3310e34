"""Log dirs and topics of a report: rows of kctl.history.retention.store_reads, with sizes over time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from kctl.history.lag.request import LagQuery
from kctl.history.report.lag_series import Times
from kctl.history.report.model import LogDirReport, SilentBroker, TopicReport
from kctl.history.report.silent import silent_brokers
from kctl.history.report.size_series import SizeWatch
from kctl.history.retention.outlook import BrokerOutlook, Outlook
from kctl.history.retention.reader_losses import DiskLoss, disk_losses
from kctl.history.retention.store_reads import StoreReads
from kctl.history.snapshots.passes import PassInfo
from kctl.history.snapshots.store import Store
from kctl.lag.retention import at

MAX_CAUSES = 10  # for each log dir; otherwise there would be one for each topic


class DiskReports(NamedTuple):
    """Log dirs, sorted by when they are full; topics, largest first; groups, largest losses first.

    silent: brokers that did not respond to the newest pass. errors: read failures.
    """

    brokers: list[BrokerOutlook]
    log_dirs: list[LogDirReport]
    topics: list[TopicReport]
    losses: list[DiskLoss]
    silent: list[SilentBroker]
    errors: list[str]


def disk_reports(store: Store, query: LagQuery, times: Times, span_passes: Sequence[PassInfo]) -> DiskReports:
    """Return the reports on disks for the passes `span_passes`, and losses of the selected groups and topics.

    Raises KctlError.
    """
    sizes = SizeWatch(times)
    reads = StoreReads(store, query.from_ms, query.to_ms, watch=sizes.watch)
    outlook, moment = reads.outlook()
    by_log_dir = outlook.by_log_dir()
    silent = silent_brokers(span_passes, _reported_ms(outlook), [row.broker for row in by_log_dir])
    since = {each.broker: each.since or at(span_passes[0].at_ms) for each in silent}
    log_dirs = [
        LogDirReport(
            replace(row, causes=row.causes[:MAX_CAUSES]),
            moment.log_dir_errors.get((row.broker, row.log_dir)),
            sizes.log_dir(row.broker, row.log_dir),
            since.get(row.broker),
        )
        for row in by_log_dir
    ]
    topics = [TopicReport(row, sizes.topic(row.topic)) for row in outlook.by_topic()]
    topics.sort(key=lambda each: (-each.now.replicas_bytes, each.now.topic))
    losses: list[DiskLoss] = []
    if any(row.now.full_ms is not None for row in log_dirs):
        readers = [each for each in reads.readers(outlook, chosen=query.topics) if each.group in query.groups]
        losses = disk_losses(outlook, readers)
    return DiskReports(
        outlook.by_broker(),
        sorted(log_dirs, key=_first_full),
        topics,
        losses,
        silent,
        [text for text in reads.errors if text not in moment.failures],  # the groups' plan reports these
    )


def _reported_ms(outlook: Outlook) -> dict[int, int]:
    """Return when each broker last reported its log dirs."""
    result: dict[int, int] = {}
    replicas = ((each.broker, each.growth.last_ms) for each in outlook.disks.replicas)
    for broker, last_ms in (*((each.broker, each.growth.last_ms) for each in outlook.disks.volumes), *replicas):
        result[broker] = max(result.get(broker, 0), last_ms)
    return result


def _first_full(row: LogDirReport) -> tuple[bool, float, float, int, str]:
    eta = float("inf") if row.now.full_ms is None else float(row.now.full_ms)
    return (row.error is None, eta, -(row.now.disk_used or 0.0), row.now.broker, row.now.log_dir)
