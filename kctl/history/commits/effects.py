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
    """The end of a producer's transaction, after the first `position` commits."""

    position: int
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

    def at(self, indices: Ints) -> Commits:
        """Return the commits at these indices, without markers."""
        return Commits(
            self.keys,
            self.key[indices],
            self.at_ms[indices],
            self.committed_offset[indices],
            self.removed[indices],
            self.has_time[indices],
            self.commit_ms[indices],
            self.leader_epoch[indices],
            self.log_offset[indices],
            self.producer_id[indices],
        )


def applied(commits: Commits, pending: PendingCommits[GroupPartition, OffsetCommit]) -> Commits:
    """Return the commits that take effect: immediately, or when their transaction is committed.

    Transactional commits become pending.
    """
    inside = (commits.producer_id >= 0) & ~commits.removed
    if not commits.markers and not len(pending) and not inside.any():
        return commits
    # Compare decoded keys: a key can have several encodings.
    transactional_keys = pending.keys() | {commits.keys[each] for each in np.unique(commits.key[inside]).tolist()}
    selected = np.array([key in transactional_keys for key in commits.keys], dtype=bool)
    indices = np.flatnonzero(selected[commits.key])
    ended: list[tuple[int, OffsetCommit]] = []
    markers = iter([*commits.markers, None])
    marker = next(markers)
    for index, (producer_id, result) in zip(indices.tolist(), _rows(commits, indices, inside), strict=True):
        while marker is not None and marker.position <= index:
            ended += _end_transaction(marker, pending)
            marker = next(markers)
        if producer_id >= 0:
            pending.add(producer_id, result.key, result.log_offset, result)
        else:
            pending.supersede(result.key)
    while marker is not None:
        ended += _end_transaction(marker, pending)
        marker = next(markers)
    return _merged(commits, np.flatnonzero(~inside), ended)


def _end_transaction(
    marker: Marker, pending: PendingCommits[GroupPartition, OffsetCommit]
) -> list[tuple[int, OffsetCommit]]:
    result = pending.end(marker.producer_id, commit=marker.commit)
    return [(marker.position, each._replace(at_ms=marker.at_ms)) for _, each in result]


def _rows(commits: Commits, indices: Ints, inside: Flags) -> Iterator[tuple[int, OffsetCommit]]:
    """Yield the commits at these indices as plain values, with their producer; -1 outside of transactions."""
    columns = (
        np.where(inside[indices], commits.producer_id[indices], -1),
        commits.key[indices],
        commits.at_ms[indices],
        commits.committed_offset[indices],
        commits.has_time[indices],
        commits.commit_ms[indices],
        commits.leader_epoch[indices],
        commits.log_offset[indices],
    )
    keys = commits.keys
    for producer_id, key, at_ms, offset, has_time, commit_ms, epoch, log_offset in zip(
        *(each.tolist() for each in columns), strict=True
    ):
        yield (
            producer_id,
            OffsetCommit(
                keys[key], at_ms, offset, commit_ms if has_time else None, epoch if epoch >= 0 else None,
                log_offset, True,
            ),
        )  # fmt: skip


def _merged(commits: Commits, indices: Ints, ended: list[tuple[int, OffsetCommit]]) -> Commits:
    """Return the commits at `indices`, merged in order with the commits of ended transactions."""
    if not ended:
        return commits.at(indices)
    keys = list(commits.keys)
    codes = {key: code for code, key in enumerate(keys)}
    for _, each in ended:
        if each.key not in codes:
            codes[each.key] = len(keys)
            keys.append(each.key)
    # Even ranks: commits of transactions that ended before the commit at this index. Odd ranks: that commit itself.
    rows = np.array(
        [
            (
                2 * index, codes[each.key], each.at_ms, each.committed_offset, each.commit_ms is not None,
                each.commit_ms or 0, -1 if each.leader_epoch is None else each.leader_epoch, each.log_offset,
            )
            for index, each in ended
        ],
        dtype=np.int64,
    )  # fmt: skip
    ranks, key, at_ms, offset, has_time, commit_ms, epoch, log_offset = rows.T
    order = np.argsort(np.concatenate([2 * indices + 1, ranks]), kind="stable")

    def both(column: Any, transactional: Any) -> Any:
        return np.concatenate([column[indices], transactional])[order]

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
