"""Read and write the offsets of groups of all types: committed offsets, or the start offsets of share groups."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from kctl.cluster.groups.coordinators import ask_coordinators
from kctl.cluster.groups.model import SHARE, Group
from kctl.cluster.offsets import Commit, fetch_commits_each
from kctl.errors import KctlError, NotFound
from kctl.groups.commit import CommitErrors, OffsetToCommit, commit_offsets
from kctl.groups.open_commits import open_commits
from kctl.groups.share_offsets import Starts, read_starts, set_starts
from kctl.groups.streams_topics import internal_topics
from kctl.model import TopicPartition

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient


def fetch_commits(
    client: ClusterClient, groups: Sequence[str], *, coordinators: Mapping[str, int] | None = None
) -> dict[str, dict[TopicPartition, Commit] | KctlError]:
    """Return all committed offsets of each group. coordinators: those that are known."""
    return ask_coordinators(
        client, groups, lambda by_node: fetch_commits_each(client, by_node), coordinators=coordinators
    )


class CurrentOffsets(NamedTuple):
    """The offsets of groups, by group. A group that does not exist has none.

    committed: start offsets of share groups. readable: the partitions that a group reads: for share groups also those
    without a start offset, for streams groups the input topics. lags: of share groups, as reported by
    the coordinator; None: unknown.
    """

    committed: Mapping[str, dict[TopicPartition, Commit]]
    readable: Mapping[str, Collection[TopicPartition]]
    lags: Mapping[str, dict[TopicPartition, int | None]]


def read_current(client: ClusterClient, groups: Mapping[str, Group]) -> CurrentOffsets:
    """Return the offsets of existing groups. Raises the error of a group that could not be read."""
    coordinators = {name: group.coordinator for name, group in groups.items()}
    share = [name for name, group in groups.items() if group.type == SHARE]
    others = [name for name in groups if name not in share]
    committed: dict[str, dict[TopicPartition, Commit]] = defaultdict(dict)
    readable: dict[str, Collection[TopicPartition]] = defaultdict(tuple)
    lags: dict[str, dict[TopicPartition, int | None]] = defaultdict(dict)
    for name, commits in fetch_commits(client, others, coordinators=coordinators).items() if others else ():
        if isinstance(commits, KctlError):
            raise commits
        internal = internal_topics(groups[name])
        committed[name], readable[name] = commits, [tp for tp in commits if tp.topic not in internal]
    for name, starts in read_starts(client, share, coordinators=coordinators).items():
        if isinstance(starts, KctlError):
            raise starts
        committed[name], readable[name] = _as_commits(starts), list(starts)
        lags[name] = {tp: row.lag for tp, row in starts.items()}
    return CurrentOffsets(committed, readable, lags)


def _as_commits(starts: Starts) -> dict[TopicPartition, Commit]:
    return {tp: Commit(row.start_offset, -1, "") for tp, row in starts.items() if row.start_offset is not None}


def write_offsets(
    client: ClusterClient,
    offsets: Mapping[str, Mapping[TopicPartition, OffsetToCommit]],
    share: Collection[str],
    coordinators: Mapping[str, int],
) -> dict[str, CommitErrors]:
    """Return group → partition → the error, or None if the offset was committed, or set for a group in `share`."""
    commits = {group: each for group, each in offsets.items() if group not in share}
    starts = {group: {tp: entry.offset for tp, entry in offsets[group].items()} for group in offsets if group in share}
    outcomes = commit_offsets(client, commits, coordinators=coordinators) if commits else {}
    return outcomes | set_starts(client, starts, coordinators=coordinators)


def read_offsets(
    client: ClusterClient, groups: Sequence[str], share: Collection[str], coordinators: Mapping[str, int]
) -> dict[str, dict[TopicPartition, Commit] | KctlError]:
    """Return the offsets of existing groups; a share group that does not exist yet has none."""
    others = [group for group in groups if group not in share]
    names = [group for group in groups if group in share]
    offsets = fetch_commits(client, others, coordinators=coordinators) if others else {}
    for name, starts in read_starts(client, names, coordinators=coordinators).items():
        absent = isinstance(starts, NotFound) and name not in coordinators
        offsets[name] = {} if absent else starts if isinstance(starts, KctlError) else _as_commits(starts)
    return offsets


def unsettled_offsets(
    client: ClusterClient,
    partitions: Mapping[str, Collection[TopicPartition]],
    share: Collection[str],
    coordinators: Mapping[str, int],
) -> dict[str, set[TopicPartition]]:
    """Return the partitions with an offset in an open transaction; share groups have no such offsets."""
    committing = {group: tps for group, tps in partitions.items() if group not in share}
    return open_commits(client, committing, coordinators=coordinators) if committing else {}
