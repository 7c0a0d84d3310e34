"""Limits of a lag report: the values of --fail-on. Pure.

    WARN, ERR                       the status is this or worse (ERR: STOP, STALL or REWIND)
    STOP, STALL, REWIND             the status is exactly this
    lag>N, lost>N                   messages, not counting known control records. A commit beyond the end of the log
                                    breaks any lag limit
    time-lag>5m, catch-up>1h        durations; a lower bound of the time lag counts, too
    deletion<1h, loss<1h            unread messages are deleted, or the group loses some, within this time

Unknown values break no limit. The report prints how many there are.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kctl.base.units import format_duration, parse_duration_ms
from kctl.errors import UsageError
from kctl.history.lag.status import Status
from kctl.lag.gate import By

if TYPE_CHECKING:
    from kctl.history.lag.status_rows import LagStatus

_SHAPE = re.compile(r"\s*([A-Za-z-]+)\s*(?:([<>])\s*(\S.*?)\s*)?")
_HINT = "use WARN, ERR, STOP, STALL, REWIND, lag>N, lost>N, time-lag>5m, catch-up>1h, deletion<1h or loss<1h"
_AT_LEAST = {"WARN": Status.WARN, "ERR": Status.ERR}
_EXACTLY = {"STOP": Status.STOP, "STALL": Status.STALL, "REWIND": Status.REWIND}


def _time_lag(row: LagStatus) -> int | None:
    return row.time_lag_ms if row.time_lag_ms is not None else row.time_lag_at_least_ms


# name → (comparison that breaks the limit, value of the row, True for durations)
_METRICS: dict[str, tuple[str, Callable[[LagStatus], int | None], bool]] = {
    "lag": (">", lambda row: row.messages, False),
    "lost": (">", lambda row: row.lost, False),
    "time-lag": (">", _time_lag, True),
    "catch-up": (">", lambda row: row.catch_up_ms, True),
    "deletion": ("<", lambda row: row.deletion_ms, True),
    "loss": ("<", lambda row: row.loss_ms, True),
}


@dataclass(frozen=True, slots=True)
class Limit:
    """One limit. text: as the user wrote it. limit: messages or ms; unused for a status."""

    text: str
    name: str
    limit: int = 0

    @property
    def partitions_only(self) -> bool:
        """Return True if the limit applies to partitions only."""
        return self.name in _EXACTLY

    def breaks(self, row: LagStatus) -> bool:
        """Return True if the row breaks the limit."""
        if self.name in _METRICS:
            if self.name == "lag" and row.ahead:
                return True
            side, value_of, _ = _METRICS[self.name]
            value = value_of(row)
            return value is not None and (value > self.limit if side == ">" else value < self.limit)
        if row.status is None:
            return False
        status = Status[row.status]
        return status >= _AT_LEAST[self.name] if self.name in _AT_LEAST else status is _EXACTLY[self.name]

    def unknown(self, row: LagStatus) -> bool:
        """Return True if the row cannot be checked: unknown status or lag, or unknown time lag of a row with lag."""
        if self.name == "time-lag":
            return bool(row.lag) and _time_lag(row) is None
        if self.name == "lag":
            return row.lag is None and not _without_commit(row)
        return self.name not in _METRICS and row.status in {None, Status.UNKNOWN.name} and not _without_commit(row)

    def predicate(self, rows: int) -> str:
        """Return the predicate for a number of rows that break the limit: "are ERR", "is over lag>5"."""
        is_ = "is" if rows == 1 else "are"
        if self.name in _METRICS:
            return f"{is_} over {self.text}"
        return f"{is_} WARN or worse" if self.name == "WARN" else f"{is_} {self.name}"

    def describe(self, row: LagStatus) -> str:
        """Return the row's value as a predicate, e.g. "has lag 1,200"."""
        if self.name not in _METRICS:
            return f"is {row.status}"
        _, value_of, duration = _METRICS[self.name]
        value = value_of(row)
        if self.name == "lag" and row.ahead and not (value and value > self.limit):
            return f"has committed {row.ahead:,} beyond the end of the log"
        assert value is not None
        noun = self.name.replace("-", " ")
        if not duration:
            return f"has {noun} {value:,}"
        at_least = "at least " if self.name == "time-lag" and row.time_lag_ms is None else ""
        return f"has {noun} {at_least}{format_duration(value)}"


def _without_commit(row: LagStatus) -> bool:
    return getattr(row, "committed_offset", 0) is None


def parse_limit(text: str) -> Limit:
    """Parse the text of a limit. Raises UsageError."""
    match = _SHAPE.fullmatch(text)
    name = match[1] if match else ""
    if match and match[2] is None and name.upper() in {**_AT_LEAST, **_EXACTLY}:
        return Limit(text, name.upper())
    if not match or match[2] is None or name.lower() not in _METRICS:
        raise UsageError(f"--fail-on {text!r} is not a limit", hint=_HINT)
    side, _, duration = _METRICS[name.lower()]
    if match[2] != side:
        raise UsageError(f"--fail-on {text!r}: {name.lower()} needs the form {name.lower()}{side}…", hint=_HINT)
    if duration:
        return Limit(text, name.lower(), parse_duration_ms(match[3]))
    if not re.fullmatch(r"[0-9]{1,18}", match[3]):
        raise UsageError(f"--fail-on {text!r}: {match[3]!r} is not a number of messages", hint=_HINT)
    return Limit(text, name.lower(), int(match[3]))


@dataclass(frozen=True, slots=True)
class BrokenLimit:
    """A limit broken by a number of rows, and the worst of these rows."""

    limit: Limit
    rows: int
    worst: LagStatus


def broken_limits(rows: Sequence[LagStatus], limits: Iterable[Limit]) -> list[BrokenLimit]:
    """Return the broken limits, in the order of `limits`. rows: worst first."""
    result = []
    for limit in limits:
        over = [row for row in rows if limit.breaks(row)]
        if over:
            result.append(BrokenLimit(limit, len(over), _worst(limit, over)))
    return result


def _worst(limit: Limit, rows: Sequence[LagStatus]) -> LagStatus:
    if limit.name not in _METRICS:
        return rows[0]
    side, value_of, _ = _METRICS[limit.name]
    return (max if side == ">" else min)(rows, key=lambda row: value_of(row) or 0)


def unknown(rows: Iterable[LagStatus], limits: Sequence[Limit]) -> int:
    """Return the number of rows that could not be checked against some limit."""
    return sum(any(limit.unknown(row) for limit in limits) for row in rows)


def parse_limits(texts: Iterable[str], by: By) -> list[Limit]:
    """Parse limits. Raises UsageError if a limit does not apply to rows of `by`."""
    limits = [parse_limit(text) for text in texts]
    for limit in limits:
        if limit.partitions_only and by is not By.PARTITION:
            raise UsageError(
                f"--fail-on {limit.text} applies to partitions only: a {by.value} is OK, WARN or ERR", hint="use ERR"
            )
    return limits
