"""Which offset a partition gets, and what that means for whoever reads on. Pure rules.

As Kafka's own tool has them (ConsumerGroupCommand.prepareOffsetsToReset): an offset outside of the log becomes the end
of the log that is nearer; a time after the last message is the log's end; a partition without a commit has no offset to
shift, and the log's end as its current one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

from kctl.base.moments import moment_text, parse_moment
from kctl.base.units import parse_duration_ms
from kctl.cluster.log_offsets import LogOffsets
from kctl.errors import Refused, UsageError

_ISO_DURATION = re.compile(
    r"P(?:([0-9]{1,9})D)?(?:T(?:([0-9]{1,9})H)?(?:([0-9]{1,9})M)?(?:([0-9]{1,9}(?:\.[0-9]{1,3})?)S)?)?"
)
_MAX_OFFSET = 2**63 - 1


class To(str, Enum):
    """What the new offset is reckoned from."""

    EARLIEST = "earliest"
    LATEST = "latest"
    CURRENT = "current"
    OFFSET = "offset"  # value: the offset
    TIME = "time"  # value: ms since 1970
    SHIFT = "shift"  # value: how many messages on (or back)
    GIVEN = "given"  # an offset for each partition, from a file or another group


@dataclass(frozen=True, slots=True)
class Target:
    """Where to go. value: see To."""

    to: To
    value: int = 0


@dataclass(frozen=True, slots=True)
class NewOffset:
    """An offset to commit; note: why it is not the one that was asked for."""

    offset: int
    note: str | None = None


def parse_offset(text: str) -> int:
    """An offset of 0 or more. Raises UsageError."""
    if not text.isascii() or not text.isdigit() or int(text[:20]) > _MAX_OFFSET:
        raise UsageError(f"{text!r} is not an offset", hint="--to-earliest and --to-latest are the ends of the log")
    return int(text)


def parse_shift(text: str) -> int:
    """«100», «+100», «-100». Raises UsageError."""
    if not re.fullmatch(r"[+-]?[0-9]{1,18}", text):
        raise UsageError(f"{text!r} is not a number of messages", hint="write for example -100 or 100")
    return int(text)


def parse_ago(text: str, now_ms: int) -> int:
    """The moment a duration before now_ms: «2h», or «PT2H» as Kafka's tool takes it. Raises UsageError."""
    match = _ISO_DURATION.fullmatch(text)
    if match is None or not any(match.groups()):
        return now_ms - parse_duration_ms(text)
    days, hours, minutes, seconds = (float(part or 0) for part in match.groups())
    return now_ms - round(1000 * (seconds + 60 * (minutes + 60 * (hours + 24 * days))))


def parse_time(text: str, now_ms: int) -> int:
    """A moment in ms since 1970. Raises UsageError."""
    return parse_moment(text, now_ms=now_ms)


def new_offset(
    target: Target, committed: int | None, log: LogOffsets, *, at_time: int | None = None, given: int | None = None
) -> NewOffset:
    """The offset for a partition with this commit and this log.

    at_time: the first offset of To.TIME, −1 when no message is so new. given: that of To.GIVEN.
    Raises Refused where there is nothing to reckon from.
    """
    if target.to is To.EARLIEST:
        return NewOffset(log.start)
    if target.to is To.LATEST:
        return NewOffset(log.end)
    if target.to is To.CURRENT:
        return NewOffset(committed) if committed is not None else NewOffset(log.end, "no commit: the log's end")
    if target.to is To.TIME:
        return _at(target.value, at_time, log)
    if target.to is To.SHIFT:
        if committed is None:
            raise Refused("there is no commit to shift")
        return within_log(committed + target.value, log)
    return within_log(target.value if target.to is To.OFFSET else given or 0, log)


def _at(time_ms: int, offset: int | None, log: LogOffsets) -> NewOffset:
    if offset is None or offset < 0:
        return NewOffset(log.end, f"no message since {moment_text(time_ms)}: the log's end")
    return within_log(offset, log)


def within_log(offset: int, log: LogOffsets) -> NewOffset:
    """`offset`, or the end of the log that is nearer."""
    if offset > log.end:
        return NewOffset(log.end, f"{offset} lies behind the log's end")
    if offset < log.start:
        return NewOffset(log.start, f"{offset} lies before the log's start")
    return NewOffset(offset)


def skipped(old: int | None, new: int, log: LogOffsets) -> int | None:
    """Messages in the log that would have been read and will not be; None without a commit."""
    return None if old is None else max(new - max(old, log.start), 0)


def read_again(old: int | None, new: int, log: LogOffsets) -> int | None:
    """Messages in the log that were read and will be again; None without a commit."""
    return None if old is None else max(min(old, log.end) - max(new, log.start), 0)
