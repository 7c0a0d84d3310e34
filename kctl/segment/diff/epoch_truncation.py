"""Compute where a follower truncates its log before it fetches, by leader epochs (KIP-101, KIP-279).

Rules: LeaderEpochFileCache.endOffsetFor for the leader, AbstractFetcherThread.getOffsetTruncationState for the
follower. The diverging epoch in a fetch response (KIP-595) leads to the same offset.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class EpochHistory:
    """The leader epochs of a replica. epochs: (epoch, start offset), both ascending; end: the log end offset."""

    epochs: tuple[tuple[int, int], ...]
    end: int

    @property
    def latest(self) -> int | None:
        return self.epochs[-1][0] if self.epochs else None

    def leading(self, epoch: int) -> EpochHistory:
        """Return the history after the replica became the leader with `epoch`, which starts at the log end offset."""
        return EpochHistory((*self.epochs, (epoch, self.end)), self.end)

    def end_of(self, epoch: int) -> tuple[int, int] | None:
        """Return (the largest known epoch up to `epoch`, its end offset); None if no later epoch is known."""
        if epoch == self.latest:
            return epoch, self.end
        number = bisect_right(self.epochs, epoch, key=lambda each: each[0])
        if number == len(self.epochs):
            return None
        return (self.epochs[number - 1][0] if number else epoch), self.epochs[number][1]


def history(epochs: Iterable[tuple[int, int]], end: int) -> EpochHistory:
    """Return the history from entries that may be damaged. Entries out of order are dropped."""
    ordered: list[tuple[int, int]] = []
    for epoch, start in epochs:
        if not ordered or (epoch > ordered[-1][0] and start >= ordered[-1][1]):
            ordered.append((epoch, start))
    return EpochHistory(tuple(ordered), end)


def truncation(leader: EpochHistory, follower: EpochHistory) -> int | None:
    """Return the offset to which `follower` truncates after `leader` became the leader.

    None: the epochs do not determine it; the follower truncates to its high watermark.
    """
    if follower.latest is None or leader.latest is None:
        return None
    leads = leader.leading(max(leader.latest, follower.latest) + 1)
    requested, end = follower.latest, follower.end
    while True:
        answer = leads.end_of(requested)
        assert answer is not None  # the new epoch is later than any requested one
        entry = follower.end_of(answer[0])
        if entry is None:
            return min(answer[1], end)
        end = min(end, entry[1])
        if entry[0] == answer[0]:
            return min(answer[1], end)
        requested = entry[0]  # an earlier epoch: the follower truncates to its end, and requests again
