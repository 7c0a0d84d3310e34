"""Commits as columns, and which of them take effect, by the rules of kctl.segment.format.offset_commits.

A commit outside of transactions always takes effect at its position in the log, and drops pending commits of its key.
So only transactional commits, and commits with the same keys, are processed one by one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from kctl.history.evaluate.window_rules import Flags, Ints
from kctl.segment.format.offset_commits import GroupPartition, OffsetCommit, PendingCommits


class Marker(NamedTuple):
    """The end of a producer's transaction, after the first `place` commits."""

    place: int
    producer_id: int
    commit: bool
    at_ms: int


@dataclass(frozen=True, slots=True)
class Commits:
    """Commits in the order of the log, as if each took effect immediately. key: an index into `keys`.

    removed: tombstones. has_time: the value contains the commit time, in commit_ms. producer_id: -1 outside of
    transactions. markers: ends of transactions among the commits.
    """

    keys: list[GroupPartition]
    key: Ints
    at_ms: Ints
    committed_offset: Ints
    removed: Flags
    has_time: Flags
    commit_ms: Ints
    leader_epoch: Ints
    log_offset: Ints
    producer_id: Ints
    markers: tuple[Marker, ...] = ()

    def __len__(self) -> int:
        return len(self.key)

    def at(self, places: Ints) -> Commits:
        """Return the commits at these indices, without markers."""
        return Commits(
            self.keys,
            self.key[places],
            self.at_ms[places],
            self.committed_offset[places],
            self.removed[places],
            self.has_time[places],
            self.commit_ms[places],
            self.leader_epoch[places],
            self.log_offset[places],
            self.producer_id[places],
        )


def applied(commits: Commits, pending: PendingCommits[GroupPartition, OffsetCommit]) -> Commits:
    """Return the commits that take effect: immediately, or when their transaction is committed.

    Transactional commits become pending.
    """
    inside = (commits.producer_id >= 0) & ~commits.removed
    if not commits.markers and not len(pending) and not inside.any():
        return commits
    # Compare decoded keys: a key can have several encodings.
    busy = pending.keys() | {commits.keys[each] for each in np.unique(commits.key[inside]).tolist()}
    selected = np.array([key in busy for key in commits.keys], dtype=bool)
    places = np.flatnonzero(selected[commits.key])
    ended: list[tuple[int, OffsetCommit]] = []
    markers = iter([*commits.markers, None])
    marker = next(markers)
    for place, (producer_id, result) in zip(places.tolist(), _rows(commits, places, inside), strict=True):
        while marker is not None and marker.place <= place:
            ended += _ended(marker, pending)
            marker = next(markers)
        if producer_id >= 0:
            pending.add(producer_id, result.key, result.log_offset, result)
        else:
            pending.supersede(result.key)
    while marker is not None:
        ended += _ended(marker, pending)
        marker = next(markers)
    return _merged(commits, np.flatnonzero(~inside), ended)


def _ended(marker: Marker, pending: PendingCommits[GroupPartition, OffsetCommit]) -> list[tuple[int, OffsetCommit]]:
    result = pending.end(marker.producer_id, commit=marker.commit)
    return [(marker.place, each._replace(at_ms=marker.at_ms)) for _, each in result]


def _rows(commits: Commits, places: Ints, inside: Flags) -> Iterator[tuple[int, OffsetCommit]]:
    """Yield the commits at these indices as plain values, with their producer; -1 outside of transactions."""
    columns = (
        np.where(inside[places], commits.producer_id[places], -1),
        commits.key[places],
        commits.at_ms[places],
        commits.committed_offset[places],
        commits.has_time[places],
        commits.commit_ms[places],
        commits.leader_epoch[places],
        commits.log_offset[places],
    )
    keys = commits.keys
    for producer_id, key, at_ms, offset, timed, commit_ms, epoch, log_offset in zip(
        *(each.tolist() for each in columns), strict=True
    ):
        yield (
            producer_id,
            OffsetCommit(
                keys[key], at_ms, offset, commit_ms if timed else None, epoch if epoch >= 0 else None, log_offset, True
            ),
        )


def _merged(commits: Commits, places: Ints, ended: list[tuple[int, OffsetCommit]]) -> Commits:
    """Return the commits at `places`, merged in order with the commits of ended transactions."""
    if not ended:
        return commits.at(places)
    keys = list(commits.keys)
    codes = {key: code for code, key in enumerate(keys)}
    for _, each in ended:
        if each.key not in codes:
            codes[each.key] = len(keys)
            keys.append(each.key)
    rows = np.array(
        [
            (
                2 * place, codes[each.key], each.at_ms, each.committed_offset, each.commit_ms is not None,
                each.commit_ms or 0, -1 if each.leader_epoch is None else each.leader_epoch, each.log_offset,
            )
            for place, each in ended
        ],
        dtype=np.int64,
    )  # fmt: skip
    behind, key, at_ms, offset, has_time, commit_ms, epoch, log_offset = rows.T
    order = np.argsort(np.concatenate([2 * places + 1, behind]), kind="stable")

    def both(one: Any, other: Any) -> Any:
        return np.concatenate([one[places], other])[order]

    return Commits(
        keys=keys,
        key=both(commits.key, key),
        at_ms=both(commits.at_ms, at_ms),
        committed_offset=both(commits.committed_offset, offset),
        removed=both(commits.removed, np.zeros(len(ended), dtype=bool)),
        has_time=both(commits.has_time, has_time.astype(bool)),
        commit_ms=both(commits.commit_ms, commit_ms),
        leader_epoch=both(commits.leader_epoch, epoch),
        log_offset=both(commits.log_offset, log_offset),
        producer_id=both(commits.producer_id, np.zeros(len(ended), dtype=np.int64)),
    )
