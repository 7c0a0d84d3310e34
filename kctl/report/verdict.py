"""The one verdict of a report on a partition of a group: Burrow's status, raised by what the figures foretell. Pure.

Burrow's rules judge how offsets moved. They call a group OK that loses messages tomorrow, or whose committed offset
lies beyond the end of the log. A report counts groups, colors rows and names findings by one status, so it is raised
here, before anything is added up:

- ERR: messages are lost within a day; or more is committed than the log has; or a WARN that has lost some already.
- WARN: messages are lost within a week.

`burrow_status` stays what it is, and so do STOP, STALL and REWIND. Where the group's standing makes the partition
nobody's alarm, nothing is raised.
"""

from __future__ import annotations

from dataclasses import replace

from kctl.lag.report import PartitionStatus
from kctl.lag.status import NOT_ALARMING, Standing, Status

DAY_MS = 24 * 3_600_000
WEEK_MS = 7 * DAY_MS


def with_verdict(row: PartitionStatus) -> PartitionStatus:
    """The row with the status that counts in a report."""
    status = Status.UNKNOWN if row.status is None else Status[row.status]
    raised = _raised(row, status)
    return row if raised <= status else replace(row, status=raised.name)


def is_due(loss_ms: int | None, within_ms: int) -> bool:
    """Whether messages are lost within so long."""
    return loss_ms is not None and loss_ms <= within_ms


def _raised(row: PartitionStatus, status: Status) -> Status:
    if Standing(row.standing) in NOT_ALARMING:
        return status
    if row.ahead or is_due(row.loss_ms, DAY_MS):
        return Status.ERR
    warned = status is Status.WARN or is_due(row.loss_ms, WEEK_MS)
    if not warned:
        return status
    return Status.ERR if row.lost else Status.WARN
