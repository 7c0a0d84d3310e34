"""The verdict of a report on a partition of a group: Burrow's status, raised by the forecast of losses. Pure.

Burrow's rules judge how offsets moved. By these rules a group is OK even if it loses messages tomorrow, or if its
committed offset is beyond the end of the log. A report counts groups, colors rows and names findings by one status, so
the status is raised here, before any sums:

- ERR: messages are lost within a day; or the commit is beyond the end of the log; or a WARN that has already lost some.
- WARN: messages are lost within a week.

`burrow_status` is unchanged, and so are STOP, STALL and REWIND. If the group's standing raises no alarm, the status is
not raised.
"""

from __future__ import annotations

from dataclasses import replace

from kctl.history.lag.status import NOT_ALARMING, Standing, Status
from kctl.history.lag.status_rows import PartitionStatus

DAY_MS = 24 * 3_600_000
WEEK_MS = 7 * DAY_MS


def with_verdict(row: PartitionStatus) -> PartitionStatus:
    """Return the row with the status for the report."""
    status = Status.UNKNOWN if row.status is None else Status[row.status]
    raised = _raised(row, status)
    return row if raised <= status else replace(row, status=raised.name)


def is_due(loss_ms: int | None, within_ms: int) -> bool:
    """Return True if messages will be lost within `within_ms`."""
    return loss_ms is not None and loss_ms <= within_ms


def _raised(row: PartitionStatus, status: Status) -> Status:
    if Standing(row.standing) in NOT_ALARMING:
        return status
    if row.ahead or is_due(row.loss_ms, DAY_MS):
        return Status.ERR
    is_warning = status is Status.WARN or is_due(row.loss_ms, WEEK_MS)
    if not is_warning:
        return status
    return Status.ERR if row.lost else Status.WARN
