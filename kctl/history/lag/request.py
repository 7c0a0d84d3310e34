"""The question that a lag source answers."""

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
class LagQuestion:
    """What is asked: the last reading with from_ms ≤ at_ms < to_ms of each partition of chosen groups and topics.

    store None: only of `live`, passes that were just made. lookback_ms: how far before from_ms snapshots are read.
    since_ms: the newest complete pass; what was read before it and not in it is gone. None: no pass was complete.
    began_ms: the first pass that is read. long_ago_ms: a pass from long before, of which only commits are read: what
    has not moved since is nobody's any more (kctl.history.lag.status.Standing.STALE). None: there is none.
    states: of groups, in lower case; None: all. judged: there is history.
    offsets_logs: log dirs, or folders of partitions, of __consumer_offsets, which every executor sees: they know when
    commits were made. commit_times: they are known already. passes: all that are read, where commit times are wanted.
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
