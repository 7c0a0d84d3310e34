"""How a group does on a partition, by Burrow's rules. Pure; kctl.history.lag.window applies them to snapshots.

A group commits an offset now and then. The last commits (Burrow keeps ten) are looked at, in this order; the first
rule that applies is the verdict (github.com/linkedin/Burrow, core/internal/evaluator/caching.go):

    current lag is allowed                                            OK
    longer silent than the commits took, and in none of the
      last readings of the log end was everything read                STOP
    an offset went back, and has not been reached again               REWIND
    some commit's lag was allowed                                     OK
    all commits have one offset                                       STALL
    the lag was never less than at the commit before                  WARN
    otherwise                                                         OK

A group is as bad as its worst partition: WARN, or ERR for each of STOP, STALL and REWIND.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum, IntEnum
from typing import NamedTuple


class Status(IntEnum):
    """Burrow's states and their numbers; 0 is, other than there, what cannot be judged. ERR is only of groups."""

    UNKNOWN = 0
    OK = 1
    WARN = 2
    ERR = 3
    STOP = 4
    STALL = 5
    REWIND = 6


# --- groups ---------------------------------------------------------------------------------------------------------


class Standing(str, Enum):
    """What a group is to a topic, beside how it does: why a status may be no alarm."""

    ACTIVE = "active"  # it has members
    EMPTY = "empty"  # it has none: it may be stopped, or assign partitions by hand
    STALE = "stale"  # it has none, and has not moved for long: nobody misses it
    DEAD = "dead"  # the group is gone
    ABANDONED = "abandoned"  # it has members, and none of them reads this topic any more
    DELETED = "deleted"  # the topic is gone, only commits are left
    UNKNOWN = "unknown"


NOT_ALARMING = frozenset({Standing.STALE, Standing.DEAD, Standing.ABANDONED, Standing.DELETED})
_SETTLED = frozenset({"Stable", "Reconciling"})  # members have what they were assigned


class StandingRules(NamedTuple):
    """Times in ms. Kafka's own offsets.retention.minutes removes what has no members after seven days."""

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
    """What a group in `state` (as brokers name it, None: not known) is to a topic.

    topic_owned: some member is assigned some partition of it. unchanged_ms: for how long no partition of the topic
    was seen with a new commit; None: not known, which never makes a group stale or abandoned.
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
    """The status that counts: ghost groups and topics are behind for ever, and that is nobody's alarm."""
    return Status.OK if standing in NOT_ALARMING else status


def group_status(statuses: Iterable[Status]) -> Status:
    """A group's: OK, WARN, ERR; UNKNOWN when none of its partitions could be judged."""
    worst = max(statuses, default=Status.UNKNOWN)
    return min(worst, Status.ERR)
