"""When an offset was committed, in plain Python: the oracle of kctl.history.commits.commit_times."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

from kctl.history.commits.matching import SLACK_MS


class CommitTime(NamedTuple):
    """A commit that took effect at `at_ms`. committed_offset None: a removal; commit_ms: when it was made, if known."""

    at_ms: int
    committed_offset: int | None
    commit_ms: int | None


def commit_time_of(
    commits: Sequence[CommitTime], at_ms: int, committed_offset: int | None, *, slack_ms: int = SLACK_MS
) -> int | None:
    """When `committed_offset`, seen at `at_ms`, was committed; None: not known.

    commits: of one group and partition, in the order of the log. Times that go back count as the latest before: brokers
    whose clocks differ have led the log one after the other.
    """
    if committed_offset is None or committed_offset < 0:
        return None
    times = list(accumulate((each.at_ms for each in commits), max))
    place = bisect_right(times, at_ms) - 1
    if place >= 0 and commits[place].committed_offset == committed_offset:
        return commits[place].commit_ms
    for later in range(place + 1, len(commits)):
        if times[later] > at_ms + slack_ms:
            break
        if commits[later].committed_offset == committed_offset:
            return commits[later].commit_ms
    return None
