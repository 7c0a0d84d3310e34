"""Log start and end offsets, and other requests to the leaders of many partitions at once."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from kctl.cluster.offsets import OffsetSpec, fetch_offsets_each
from kctl.errors import KctlError, NotAuthorized, OperationFailed
from kctl.model import ClusterState, TopicPartition

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient


LEADER_PAUSES_S = (0.2, 0.8)

ByLeader: TypeAlias = Mapping[int, Sequence[TopicPartition]]

_Answer = TypeVar("_Answer")


@dataclass(frozen=True, slots=True)
class LogOffsets:
    """The log start and log end offset of a partition."""

    start: int
    end: int


def read_log_offsets(
    client: ClusterClient,
    partitions: Collection[TopicPartition],
    *,
    read_committed: bool = False,
    state: ClusterState | None = None,
) -> tuple[dict[TopicPartition, LogOffsets], set[TopicPartition], dict[TopicPartition, KctlError]]:
    """Return both ends of each partition's log; the partitions that do not exist; why others are unreadable.

    Leaders that have just changed are looked up again, at most twice. state: current metadata with all of these
    partitions, which saves the first lookup.
    """

    def both_ends(by_leader: ByLeader) -> dict[TopicPartition, LogOffsets | KctlError]:
        ends = fetch_offsets_each(client, by_leader, OffsetSpec.LATEST, read_committed=read_committed)
        starts = fetch_offsets_each(client, by_leader, OffsetSpec.EARLIEST)
        return {tp: _both(starts[tp], end) for tp, end in ends.items()}

    return ask_leaders(client, partitions, both_ends, state)


def read_offsets_at(
    client: ClusterClient, partitions: Collection[TopicPartition], time_ms: int
) -> tuple[dict[TopicPartition, int], set[TopicPartition], dict[TopicPartition, KctlError]]:
    """Return the first offset with a timestamp of at least time_ms, -1 if there is none; see `read_log_offsets`."""
    return ask_leaders(client, partitions, lambda by_leader: fetch_offsets_each(client, by_leader, time_ms))


def _both(start: int | KctlError, end: int | KctlError) -> LogOffsets | KctlError:
    if isinstance(end, KctlError):
        return end
    return start if isinstance(start, KctlError) else LogOffsets(start, end)


def ask_leaders(
    client: ClusterClient,
    partitions: Collection[TopicPartition],
    ask: Callable[[ByLeader], Mapping[TopicPartition, _Answer | KctlError]],
    state: ClusterState | None = None,
) -> tuple[dict[TopicPartition, _Answer], set[TopicPartition], dict[TopicPartition, KctlError]]:
    """Return the leaders' responses; the partitions that do not exist; why the other partitions have no response.

    ask: maps partitions by leader to a response for each partition. It is called again for partitions that failed,
    after a new lookup of their leaders, at most twice. A topic that may not be described does not fail the others.
    state: current metadata with all of the partitions.
    """
    answers: dict[TopicPartition, _Answer] = {}
    missing: set[TopicPartition] = set()
    denied: dict[TopicPartition, KctlError] = {}
    unread: dict[TopicPartition, KctlError] = {}
    pending: Collection[TopicPartition] = partitions
    for pause in (*LEADER_PAUSES_S, None):
        if not pending:
            break
        current = state or client.metadata({tp.topic for tp in pending}, keep_errors=True)
        state = None
        unread = {tp: current.failed[tp.topic] for tp in pending if tp.topic in current.failed}
        by_leader, unknown, leaderless = _by_leader(current, [tp for tp in pending if tp not in unread])
        missing |= unknown
        unread |= {tp: OperationFailed("no leader") for tp in leaderless}
        for tp, answer in ask(by_leader).items():
            if isinstance(answer, KctlError):
                unread[tp] = answer
            else:
                answers[tp] = answer
        denied |= {tp: error for tp, error in unread.items() if isinstance(error, NotAuthorized)}
        pending = [tp for tp in unread if tp not in denied]
        if pending and pause is not None:
            time.sleep(pause)
    return answers, missing, unread | denied


def _by_leader(
    state: ClusterState, partitions: Iterable[TopicPartition]
) -> tuple[dict[int, list[TopicPartition]], set[TopicPartition], list[TopicPartition]]:
    """Return the partitions by leader; those that do not exist; those without a leader."""
    leaders = {p.tp: p.leader for topic in state.topics.values() for p in topic.partitions}
    by_leader: dict[int, list[TopicPartition]] = {}
    missing: set[TopicPartition] = set()
    leaderless: list[TopicPartition] = []
    for tp in partitions:
        leader = leaders.get(tp)
        if leader is None:
            missing.add(tp)
        elif leader < 0:
            leaderless.append(tp)
        else:
            by_leader.setdefault(leader, []).append(tp)
    return by_leader, missing, leaderless
