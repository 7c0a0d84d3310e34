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

from collections.abc import Iterable, Sequence
from enum import Enum, IntEnum
from itertools import pairwise
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


class Commit(NamedTuple):
    """A committed offset, when it was committed (ms), and how many messages it was behind; None: not known."""

    offset: int
    at_ms: int
    lag: int | None


def commit_status(
    commits: Sequence[Commit],
    log_ends: Iterable[int],
    lag: int,
    now_ms: int,
    *,
    allowed_lag: int = 0,
    steady_is_ok: bool = False,
) -> Status:
    """The verdict on `commits` (oldest first, at least one) as of now.

    log_ends: the last readings of the log end. lag: the current one, end − last commit: what was deleted unread counts.
    steady_is_ok: WARN only where the lag has grown. Burrow warns also of a lag that stays the same while offsets
    advance: a group that keeps up at a distance. Raises ValueError without commits.
    """
    if not commits:
        raise ValueError("no commits to judge")
    if lag <= allowed_lag:
        return Status.OK
    if is_stopped(commits, now_ms) and not was_caught_up(commits, log_ends):
        return Status.STOP
    back = first_rewind(commits)
    if back is not None and not is_regained(commits, back):
        return Status.REWIND
    if not is_always_behind(commits, allowed_lag):
        return Status.OK
    if is_stalled(commits):
        return Status.STALL
    if never_less_behind(commits) and not (steady_is_ok and not _has_grown(commits)):
        return Status.WARN
    return Status.OK


def is_stopped(commits: Sequence[Commit], now_ms: int) -> bool:
    """The time since the last commit is longer than the time from the first to the last."""
    first, last = commits[0].at_ms, commits[-1].at_ms
    return now_ms - last > last - first


def was_caught_up(commits: Sequence[Commit], log_ends: Iterable[int]) -> bool:
    """In one of the last readings, the log ended at or before the last commit."""
    return any(end <= commits[-1].offset for end in log_ends)


def first_rewind(commits: Sequence[Commit]) -> int | None:
    """Where an offset is first less than the one before."""
    return next((i for i in range(1, len(commits)) if commits[i].offset < commits[i - 1].offset), None)


def is_regained(commits: Sequence[Commit], rewind: int) -> bool:
    """Whether the offset before the rewind was reached again."""
    before = commits[rewind - 1].offset
    return any(commit.offset >= before for commit in commits[rewind:])


def is_always_behind(commits: Iterable[Commit], allowed_lag: int) -> bool:
    """No commit had an allowed lag; lags that are not known say nothing."""
    return all(commit.lag is None or commit.lag > allowed_lag for commit in commits)


def is_stalled(commits: Sequence[Commit]) -> bool:
    """All commits have the same offset."""
    return all(commit.offset == commits[0].offset for commit in commits)


def never_less_behind(commits: Iterable[Commit]) -> bool:
    """No lag is less than the one before; lags that are not known are passed over."""
    lags = [commit.lag for commit in commits if commit.lag is not None]
    return all(after >= before for before, after in pairwise(lags))


def _has_grown(commits: Iterable[Commit]) -> bool:
    lags = [commit.lag for commit in commits if commit.lag is not None]
    return bool(lags) and lags[-1] > lags[0]


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
