"""Collect the lag of groups in one batched pass over a cluster.

Requests, regardless of the number of groups: ListGroups to each broker (or one FindCoordinator for named groups),
OffsetFetch and DescribeGroups to each coordinator, one Metadata for the topics that occur, ListOffsets LATEST and
EARLIEST to each leader. The end is read before the start, so a start can only lie beyond its end if records were
deleted meanwhile.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kctl.cluster.groups.coordinators import ask_coordinators
from kctl.cluster.groups.describe import describe_groups, list_groups
from kctl.cluster.groups.model import SHARE, WITHOUT_MEMBERS, Group, Groups, Member
from kctl.cluster.groups.names import check_group_id, missing_groups
from kctl.cluster.groups.newer_groups import StartOffset
from kctl.cluster.log_offsets import LEADER_PAUSES_S, LogOffsets, read_log_offsets
from kctl.cluster.offsets import Committed, fetch_committed_each
from kctl.errors import KctlError, NotFound
from kctl.lag.row_markers import with_control_records
from kctl.lag.rules import LagRow, ahead_of, lag_of, lost_of
from kctl.lag.share_groups import partitions_of, read_start_offsets, share_rows
from kctl.model import TopicPartition

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient


@dataclass(frozen=True)
class LagReport:
    """Rows sorted by group, topic and partition, and what is missing in them.

    groups: every group examined, also those without rows; share groups only if named or requested. share: the start
    offsets of share groups; rows include them only if requested. deleted: partitions with commits that no longer exist
    (their offsets are None). unread: partitions whose leader did not respond, with the reason. failed: groups and
    brokers that could not be read at all, with the reason.
    """

    rows: list[LagRow]
    groups: dict[str, Group]
    deleted: list[TopicPartition] = field(default_factory=list)
    unread: dict[TopicPartition, str] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    share: dict[str, tuple[StartOffset, ...]] = field(default_factory=dict)

    @property
    def complete(self) -> bool:
        """Return True if everything requested was read."""
        return not self.unread and not self.failed


def collect_lag(
    client: ClusterClient,
    groups: Collection[str] | None = None,
    *,
    topics: Collection[str] | None = None,
    members: bool = True,
) -> list[LagRow]:
    """Return the rows of `collect`."""
    return collect(client, groups, topics=topics, members=members).rows


def collect(
    client: ClusterClient,
    groups: Collection[str] | None = None,
    *,
    topics: Collection[str] | None = None,
    members: bool = True,
    states: Collection[str] | None = None,
    share: bool = False,
    control_records: int = 0,
) -> LagReport:
    """Return the lag of `groups` (None: all), in all of their topics or only `topics`.

    members: add the member that each partition is assigned to, and rows for assigned partitions without a commit.
    states: only groups in these states. share: add rows of share groups, by their start offsets. control_records: for
    this many partitions with small lags, count the offsets that hold no message, which takes a Fetch to each leader.
    Raises NotFound if a named group does not exist, and the errors of `ClusterClient` if no broker is reachable.
    """
    described = _describe(client, groups, members=members)
    failed = {name: error.message for name, error in described.failed_groups.items()}
    failed |= {name: error.message for name, error in described.unlisted.items()}
    selected = {
        name: group
        for name, group in described.groups.items()
        if (groups is not None or share or group.type != SHARE) and (states is None or group.state.lower() in states)
    }
    committed = _commits_of(client, selected, failed)
    start_offsets = read_start_offsets(client, selected, failed) if groups is not None or share else {}
    owners = {name: owners_of(selected[name]) for name in committed} if members else {}
    share_tps = [partitions_of(rows) for rows in start_offsets.values()] if share else []
    partitions = _partitions([*committed.values(), *share_tps], owners.values(), topics)
    offsets, deleted, unread = read_log_offsets(client, partitions)
    offsets |= _read_again(client, committed, offsets)
    # Drop assigned partitions that do not exist and have no commit: a streams task can have a partition number that
    # only one of its source topics has.
    owners = {
        name: {tp: member for tp, member in owned.items() if tp not in deleted or tp in committed[name]}
        for name, owned in owners.items()
    }
    deleted &= set[TopicPartition]().union(*committed.values(), *share_tps)
    rows = [
        row
        for name in sorted(committed)
        for row in _rows(selected[name], committed[name], owners.get(name, {}), offsets, topics)
    ]
    if share:
        for name, starts in start_offsets.items():
            rows += share_rows(selected[name], starts, offsets, topics)
        rows.sort(key=lambda row: (row.group, row.topic, row.partition))
    if control_records:
        rows = with_control_records(client, rows, max_partitions=control_records, share_groups=start_offsets)
    reasons = {tp: error.message for tp, error in unread.items()}
    return LagReport(rows, selected, sorted(deleted), reasons, failed, start_offsets)


def _describe(client: ClusterClient, groups: Collection[str] | None, *, members: bool) -> Groups:
    """Return the groups with these names, or all. Raises NotFound, and the error if no named group could be read."""
    if groups is None:
        described = all_groups(client, members=members)
    else:
        described = describe_groups(client, map(check_group_id, groups))
    _raise_unknown(client, described)
    if groups is not None and described.failed_groups and not described.groups:
        raise next(iter(described.failed_groups.values()))
    return described


def _read_again(
    client: ClusterClient, committed: Mapping[str, Committed], offsets: Mapping[TopicPartition, LogOffsets]
) -> dict[TopicPartition, LogOffsets]:
    """Return the offsets of logs that end before a commit: a new leader's high watermark may lag for a moment."""
    if not (beyond := _commits_beyond_end(committed, offsets)):
        return {}
    time.sleep(LEADER_PAUSES_S[-1])
    offsets_now, _, _ = read_log_offsets(client, beyond)
    return offsets_now


def _commits_of(client: ClusterClient, groups: Mapping[str, Group], failed: dict[str, str]) -> dict[str, Committed]:
    """Return the committed offsets of the groups; failures are added to `failed`."""
    coordinators = {name: group.coordinator for name, group in groups.items()}
    names = [name for name, group in groups.items() if group.type != SHARE]
    committed: dict[str, Committed] = {}
    responses = ask_coordinators(client, names, lambda by: fetch_committed_each(client, by), coordinators=coordinators)
    for name, response in responses.items():
        if isinstance(response, KctlError):
            failed[name] = response.message
        else:
            committed[name] = response
    return committed


def _commits_beyond_end(
    committed: Mapping[str, Committed], offsets: Mapping[TopicPartition, LogOffsets]
) -> set[TopicPartition]:
    """Return partitions in which a group has committed an offset beyond the end of the log."""
    return {
        tp for each in committed.values() for tp, offset in each.items() if tp in offsets and offset > offsets[tp].end
    }


def all_groups(client: ClusterClient, *, members: bool) -> Groups:
    """Return every group with its state. members: describe the groups that can have members, too."""
    listed = list_groups(client)
    names = [
        name
        for name, group in listed.groups.items()
        if group.type != SHARE and (not group.state or (members and group.state not in WITHOUT_MEMBERS))
    ]
    if not names:
        return listed
    described = describe_groups(client, names, listing=listed)
    deleted = {name for name, error in described.failed_groups.items() if isinstance(error, NotFound)}
    failed = {name: error for name, error in described.failed_groups.items() if name not in deleted}
    existing = {name: group for name, group in listed.groups.items() if name not in deleted}
    return Groups(existing | described.groups, listed.unlisted, failed)


def _raise_unknown(client: ClusterClient, described: Groups) -> None:
    missing = [name for name, error in described.failed_groups.items() if isinstance(error, NotFound)]
    if missing:
        raise missing_groups(client, missing)


def owners_of(group: Group) -> dict[TopicPartition, Member]:
    return {tp: member for member in group.members or () for tp in member.partitions or ()}


def _partitions(
    committed: Iterable[Collection[TopicPartition]],
    assigned: Iterable[Collection[TopicPartition]],
    topics: Collection[str] | None,
) -> set[TopicPartition]:
    everything = set().union(*committed, *assigned)
    return everything if topics is None else {tp for tp in everything if tp.topic in topics}


def _rows(
    group: Group,
    committed: Committed,
    owners: Mapping[TopicPartition, Member],
    offsets: Mapping[TopicPartition, LogOffsets],
    topics: Collection[str] | None,
) -> Sequence[LagRow]:
    rows: list[LagRow] = []
    for tp in sorted(committed.keys() | owners.keys()):
        if topics is not None and tp.topic not in topics:
            continue
        at, log, owner = committed.get(tp), offsets.get(tp), owners.get(tp)
        start, end = (log.start, log.end) if log else (None, None)
        client_id, host = (owner.client_id, owner.host) if owner else (None, None)
        rows.append(
            LagRow(
                group.group,
                group.state,
                tp.topic,
                tp.partition,
                at,
                start,
                end,
                lag_of(at, start, end),
                lost_of(at, start),
                client_id,
                host,
                ahead_of(at, end),
            )
        )
    return rows
