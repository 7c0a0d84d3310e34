"""The status of a group on a partition, by Burrow's rules. Pure; kctl.history.lag.window applies them to snapshots.

The last commits (Burrow keeps ten) are checked in this order; the first rule that applies decides
(github.com/linkedin/Burrow, core/internal/evaluator/caching.go):

    the current lag is allowed                                        OK
    no commit for longer than the commits in the window span, and
      the group never caught up with a recent log end                 STOP
    an offset went back and has not been reached again                REWIND
    the lag at some commit was allowed                                OK
    all commits have the same offset                                  STALL
    the lag never decreased between commits                           WARN
    otherwise                                                         OK

A group is as bad as its worst partition: WARN, or ERR for STOP, STALL and REWIND.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum, IntEnum
from typing import NamedTuple


class Status(IntEnum):
    """Burrow's states and numbers. Unlike in Burrow, 0 means that there is no verdict. Only groups are ERR."""

    UNKNOWN = 0
    OK = 1
    WARN = 2
    ERR = 3
    STOP = 4
    STALL = 5
    REWIND = 6


# --- groups ---------------------------------------------------------------------------------------------------------


class Standing(str, Enum):
    """The relation of a group to a topic. It decides whether a bad status is an alarm."""

    ACTIVE = "active"  # the group has members
    EMPTY = "empty"  # no members: it may be stopped, or assign partitions manually
    STALE = "stale"  # no members and no commits for a long time
    DEAD = "dead"  # the group was deleted
    ABANDONED = "abandoned"  # the group has members, but they no longer read this topic
    DELETED = "deleted"  # the topic was deleted, only commits remain
    UNKNOWN = "unknown"


NOT_ALARMING = frozenset({Standing.STALE, Standing.DEAD, Standing.ABANDONED, Standing.DELETED})
_SETTLED = frozenset({"Stable", "Reconciling"})  # assignments are complete


class StandingRules(NamedTuple):
    """Thresholds in ms.

    Kafka removes offsets of groups without members after offsets.retention.minutes (default: 7 days).
    """

    stale_after_ms: int = 24 * 3_600_000
    abandoned_after_ms: int = 10 * 60_000


DEFAULT_STANDING_RULES = StandingRules()


def standing_of(
    state: str | None,
    *,
    deleted: bool,
    topic_owned: bool | None,
    unchanged_ms: int | None,
    rules: StandingRules = DEFAULT_STANDING_RULES,
) -> Standing:
    """Return the standing of a group in `state` (as brokers name it; None: unknown) to a topic.

    topic_owned: whether a member is assigned a partition of the topic. unchanged_ms: time without a new commit on the
    topic; None: unknown, so the group is never stale or abandoned.
    """
    if deleted:
        return Standing.DELETED
    if not state or state == "Unknown":
        return Standing.UNKNOWN
    if state == "Dead":
        return Standing.DEAD
    if state == "Empty":
        stale = unchanged_ms is not None and unchanged_ms >= rules.stale_after_ms
        return Standing.STALE if stale else Standing.EMPTY
    idle = unchanged_ms is not None and unchanged_ms >= rules.abandoned_after_ms
    if state in _SETTLED and topic_owned is False and idle:
        return Standing.ABANDONED
    return Standing.ACTIVE


def alarm_of(status: Status, standing: Standing) -> Status:
    """Return the status that counts: OK for groups and topics whose standing raises no alarm."""
    return Status.OK if standing in NOT_ALARMING else status


def group_status(statuses: Iterable[Status]) -> Status:
    """Return the status of a group: OK, WARN or ERR; UNKNOWN if no partition has a verdict."""
    worst = max(statuses, default=Status.UNKNOWN)
    return min(worst, Status.ERR)
