"""Rules of an offset reset: the new offset of a partition, and how many messages are skipped or read again. Pure.

As in Kafka's tool (ConsumerGroupCommand.prepareOffsetsToReset): out-of-range offsets are clamped to the log. For a time
after the last message, the new offset is the log end. A partition without a commit cannot be shifted, and its current
offset is the log end.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

from kctl.base.timestamps import format_timestamp, parse_timestamp
from kctl.base.units import parse_duration_ms
from kctl.cluster.log_offsets import LogOffsets
from kctl.errors import Reason, Refused, UsageError

_ISO_DURATION = re.compile(
    r"P(?:([0-9]{1,9})D)?(?:T(?:([0-9]{1,9})H)?(?:([0-9]{1,9})M)?(?:([0-9]{1,9}(?:\.[0-9]{1,3})?)S)?)?"
)
_MAX_OFFSET = 2**63 - 1


class To(str, Enum):
    """The base of the new offset."""

    EARLIEST = "earliest"
    LATEST = "latest"
    CURRENT = "current"
    OFFSET = "offset"  # value: the offset
    TIME = "time"  # value: ms since 1970
    SHIFT = "shift"  # value: number of messages forward (or back)
    GIVEN = "given"  # explicit offsets, from a file or another group


@dataclass(frozen=True, slots=True)
class ResetTarget:
    """A new position. value: see To."""

    to: To
    value: int = 0


@dataclass(frozen=True, slots=True)
class NewOffset:
    """An offset to commit. note: why it is not the requested offset."""

    offset: int
    note: str | None = None


def parse_offset(text: str) -> int:
    """Parse an offset of 0 or more. Raises UsageError."""
    if not text.isascii() or not text.isdigit() or int(text[:20]) > _MAX_OFFSET:
        raise UsageError(f"{text!r} is not an offset", hint="use a number, or --to-earliest or --to-latest")
    return int(text)


def parse_shift(text: str) -> int:
    """Parse a shift: "100", "+100" or "-100". Raises UsageError."""
    if not re.fullmatch(r"[+-]?[0-9]{1,18}", text):
        raise UsageError(f"{text!r} is not a number of messages", hint="use e.g. 100 or -100")
    return int(text)


def parse_ago(text: str, now_ms: int) -> int:
    """Return the time a duration before now_ms: "2h", or "PT2H" as in Kafka's tool. Raises UsageError."""
    match = _ISO_DURATION.fullmatch(text)
    if match is None or not any(match.groups()):
        return now_ms - parse_duration_ms(text)
    days, hours, minutes, seconds = (float(part or 0) for part in match.groups())
    return now_ms - round(1000 * (seconds + 60 * (minutes + 60 * (hours + 24 * days))))


def parse_time(text: str, now_ms: int) -> int:
    """Parse a time; return ms since 1970. Raises UsageError."""
    return parse_timestamp(text, now_ms=now_ms)


def new_offset(
    target: ResetTarget,
    committed: int | None,
    log: LogOffsets,
    *,
    at_time: int | None = None,
    explicit: int | None = None,
    noun: str = "commit",
) -> NewOffset:
    """Return the new offset of a partition with this commit and this log.

    at_time: the first offset of To.TIME, -1 if no message is that recent. explicit: the offset of To.GIVEN. noun: what
    `committed` is called in messages. Raises Refused if there is no commit to start from.
    """
    if target.to is To.EARLIEST:
        return NewOffset(log.start)
    if target.to is To.LATEST:
        return NewOffset(log.end)
    if target.to is To.CURRENT:
        return NewOffset(committed) if committed is not None else NewOffset(log.end, f"no {noun}: set to the log end")
    if target.to is To.TIME:
        return _at(target.value, at_time, log)
    if target.to is To.SHIFT:
        if committed is None:
            raise Refused(f"no {noun} to shift", reason=Reason.NOTHING_TO_DO)
        return within_log(committed + target.value, log)
    return within_log(target.value if target.to is To.OFFSET else explicit or 0, log)


def _at(time_ms: int, offset: int | None, log: LogOffsets) -> NewOffset:
    if offset is None or offset < 0:
        return NewOffset(log.end, f"no message since {format_timestamp(time_ms)}: set to the log end")
    return within_log(offset, log)


def within_log(offset: int, log: LogOffsets) -> NewOffset:
    """Return `offset`, clamped to the log."""
    if offset > log.end:
        return NewOffset(log.end, f"{offset} is after the log end")
    if offset < log.start:
        return NewOffset(log.start, f"{offset} is before the log start")
    return NewOffset(offset)


def skipped(old: int | None, new: int, log: LogOffsets) -> int | None:
    """Return how many unread messages in the log the change skips; None without a commit."""
    return None if old is None else max(new - max(old, log.start), 0)


def read_again(old: int | None, new: int, log: LogOffsets) -> int | None:
    """Return how many messages in the log are read again; None without a commit."""
    return None if old is None else max(min(old, log.end) - max(new, log.start), 0)
