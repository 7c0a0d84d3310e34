"""Where a follower cuts its log off before it fetches: the rule by leader epochs (KIP-101, KIP-279).

Rules: LeaderEpochFileCache.endOffsetFor for the leader's answer, AbstractFetcherThread.getOffsetTruncationState for
what the follower makes of it; the diverging epoch in a fetch response (KIP-595) leads to the same offset.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class EpochHistory:
    """epochs: (epoch, start offset), both growing; end: the log end offset."""

    epochs: tuple[tuple[int, int], ...]
    end: int

    @property
    def latest(self) -> int | None:
        return self.epochs[-1][0] if self.epochs else None

    def leading(self, epoch: int) -> EpochHistory:
        """The history of a replica that becomes the leader with `epoch`: it begins at its log end offset."""
        return EpochHistory((*self.epochs, (epoch, self.end)), self.end)

    def end_of(self, epoch: int) -> tuple[int, int] | None:
        """(the largest known epoch up to `epoch`, where it ends); None when none of that age or younger is known."""
        if epoch == self.latest:
            return epoch, self.end
        number = bisect_right(self.epochs, epoch, key=lambda entry: entry[0])
        if number == len(self.epochs):
            return None
        return (self.epochs[number - 1][0] if number else epoch), self.epochs[number][1]


def history(epochs: Iterable[tuple[int, int]], end: int) -> EpochHistory:
    """A history of what was found, which may be damaged: what is out of order is left out."""
    kept: list[tuple[int, int]] = []
    for epoch, start in epochs:
        if not kept or (epoch > kept[-1][0] and start >= kept[-1][1]):
            kept.append((epoch, start))
    return EpochHistory(tuple(kept), end)


def truncation(leader: EpochHistory, follower: EpochHistory) -> int | None:
    """The offset at which `follower` ends after `leader` became the leader; None: the epochs do not tell, and the
    follower goes back to its high watermark."""
    if follower.latest is None or leader.latest is None:
        return None
    leads = leader.leading(max(leader.latest, follower.latest) + 1)
    asked, end = follower.latest, follower.end
    while True:
        answer = leads.end_of(asked)
        assert answer is not None  # the new epoch is younger than whatever is asked for
        own = follower.end_of(answer[0])
        if own is None:
            return min(answer[1], end)
        end = min(end, own[1])
        if own[0] == answer[0]:
            return min(answer[1], end)
        asked = own[0]  # an older one: the follower has cut off what came after it, and asks again
