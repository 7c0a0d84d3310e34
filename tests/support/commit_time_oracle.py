"""The commit time of an offset in plain Python: the oracle of kctl.history.commits.commit_times."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

from kctl.history.commits.matching import SLACK_MS


class CommitTime(NamedTuple):
    """A commit that took effect at `at_ms`. committed_offset None: a deletion; commit_ms: its time, if known."""

    at_ms: int
    committed_offset: int | None
    commit_ms: int | None


def commit_time_of(
    commits: Sequence[CommitTime], at_ms: int, committed_offset: int | None, *, slack_ms: int = SLACK_MS
) -> int | None:
    """Return when `committed_offset`, read at `at_ms`, was committed; None if unknown.

    commits: of one group and partition, in the order of the log. A time before the previous one counts as the
    previous time: successive leaders of the log may have different clocks.
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
