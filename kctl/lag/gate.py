"""Check a lag report against a limit."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from enum import Enum
from typing import Any

from kctl.errors import NotFound, NotHealthy
from kctl.lag.rules import GroupLag, LagRow, TopicLag, by_group, by_topic

_MAX_NAMED = 5


class By(str, Enum):
    """The grouping of rows for sums."""

    PARTITION = "partition"
    TOPIC = "topic"
    GROUP = "group"

    @property
    def row_type(self) -> type:
        """Return the class of the rows that `rows_by` returns."""
        return {By.PARTITION: LagRow, By.TOPIC: TopicLag, By.GROUP: GroupLag}[self]


def rows_by(rows: Sequence[LagRow], by: By) -> Sequence[LagRow] | list[TopicLag] | list[GroupLag]:
    """Return the rows, added up by topic or group."""
    if by is By.TOPIC:
        return by_topic(rows)
    return by_group(rows) if by is By.GROUP else rows


def check_lag(rows: Sequence[Any], by: By, max_lag: int | None, named: Collection[str] = ()) -> str | None:
    """Check rows as `kctl lag --max-lag` does. Return a warning about rows that could not be checked.

    rows: of `rows_by`. max_lag: None for no limit. named: groups given by name. Raises the errors of check_limit and
    require_known.
    """
    check_limit(rows, by, max_lag)
    return None if max_lag is None else require_known(rows, by, named)


def check_limit(rows: Sequence[Any], by: By, max_lag: int | None) -> None:
    """Check each row against `max_lag`, in messages.

    Raises NotHealthy if a row is over the limit, or its commit is beyond the end of the log.
    """
    if max_lag is None:
        return
    over = [row for row in rows if row.lag is not None and row.messages > max_lag]
    beyond = [row for row in rows if row.ahead]
    if over:
        worst = max(over, key=lambda row: row.messages)
        what = by.value if len(over) == 1 else f"{by.value}s"
        raise NotHealthy(
            f"{len(over)} {what} over the limit of {max_lag}: {row_name(worst)} has a lag of {worst.lag}",
            hint="",
            details={"over_limit": len(over), "max_lag": max_lag, "beyond_end": len(beyond)},
        )
    if beyond:
        raise NotHealthy(
            f"{row_name(beyond[0])}: the committed offset is {beyond[0].ahead} beyond the end of the log",
            hint="consumers restart according to auto.offset.reset; set the offset with `kctl group reset-offsets`",
            details={"over_limit": 0, "max_lag": max_lag, "beyond_end": len(beyond)},
        )


def require_known(rows: Sequence[Any], by: By, named: Collection[str] = ()) -> str | None:
    """Fail a gate that has nothing to check. Return a warning about rows that were not checked.

    named: groups given by name. Raises NotHealthy if a group in `named` has no known lag, NotFound if no lag is
    known at all.
    """
    groups_with_lag = {row.group for row in rows if row.lag is not None}
    unknown = [name for name in dict.fromkeys(named) if name not in groups_with_lag]
    if unknown:
        raise NotHealthy(
            f"lag not checked: it is unknown for group {', '.join(unknown[:_MAX_NAMED])}",
            hint="run `kctl group describe` to see whether the group has committed offsets",
            details={"unknown": unknown},
        )
    if not groups_with_lag:
        raise NotFound("lag not checked: no group has a known lag", hint="run `kctl group list` to see the groups")
    without = [row for row in rows if row.lag is None]
    if not without:
        return None
    what = by.value if len(without) == 1 else f"{by.value}s"
    return f"lag not checked for {len(without)} {what}, because it is unknown: {row_name(without[0])}"


def row_name(row: Any) -> str:
    """Return the name of a row of a lag report, e.g. "group billing, orders, partition 3"."""
    parts = [f"group {row.group}"]
    if hasattr(row, "topic"):
        parts.append(row.topic)
    if hasattr(row, "partition"):
        parts.append(f"partition {row.partition}")
    return ", ".join(parts)
