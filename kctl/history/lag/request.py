"""The query that a lag source evaluates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kctl.history.lag.live_pass import LivePass
from kctl.history.lag.status import DEFAULT_STANDING_RULES, StandingRules
from kctl.history.lag.window import DEFAULT_RULES, WindowRules
from kctl.lag.selection import EVERY, Names

if TYPE_CHECKING:
    from kctl.history.commits.commit_times import CommitTimes


PARTITION, TOPIC, GROUP = "partition", "topic", "group"


@dataclass(frozen=True, slots=True)
class LagQuery:
    """A lag query: the last reading with from_ms ≤ at_ms < to_ms of each partition of the selected groups and topics.

    store: None if only the passes in `live`, which were just taken, are read. lookback_ms: how far before from_ms
    snapshots are read. since_ms: the newest complete pass (None: there is none); anything missing from it was
    deleted. began_ms: the first pass that is read. long_ago_ms: a much older pass (None: there is none), of which only
    commits are read; a group without newer commits is stale (kctl.history.lag.status.Standing.STALE). states: group
    states, in lower case; None: all. judged: there is history to judge by. offsets_logs: log dirs or partition folders
    of __consumer_offsets, visible to every executor, for commit times. commit_times: commit times that are already
    known. passes: all passes that are read, if commit times are requested.
    """

    store: str | None
    from_ms: int
    to_ms: int
    lookback_ms: int
    since_ms: int | None
    began_ms: int
    rules: WindowRules = DEFAULT_RULES
    groups: Names = EVERY
    topics: Names = EVERY
    states: frozenset[str] | None = None
    by: str = PARTITION
    judged: bool = True
    live: tuple[LivePass, ...] = ()
    standing: StandingRules = DEFAULT_STANDING_RULES
    long_ago_ms: int | None = None
    offsets_logs: tuple[str, ...] = ()
    commit_times: CommitTimes | None = None
    passes: tuple[int, ...] = ()
