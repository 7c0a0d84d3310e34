"""Where logs begin and end, and other questions to the leaders of many partitions at once."""

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
    """Both ends of one partition's log."""

    start: int
    end: int


def read_log_offsets(
    client: ClusterClient,
    partitions: Collection[TopicPartition],
    *,
    read_committed: bool = False,
    state: ClusterState | None = None,
) -> tuple[dict[TopicPartition, LogOffsets], set[TopicPartition], dict[TopicPartition, KctlError]]:
    """Both ends of each partition's log; which partitions do not exist; and which could not be read, and why.

    Leaders that have just changed are looked up again, twice. state: metadata of now with all of these partitions,
    which saves looking for leaders first.
    """

    def both_ends(by_leader: ByLeader) -> dict[TopicPartition, LogOffsets | KctlError]:
        ends = fetch_offsets_each(client, by_leader, OffsetSpec.LATEST, read_committed=read_committed)
        starts = fetch_offsets_each(client, by_leader, OffsetSpec.EARLIEST)
        return {tp: _both(starts[tp], end) for tp, end in ends.items()}

    return ask_leaders(client, partitions, both_ends, state)


def read_offsets_at(
    client: ClusterClient, partitions: Collection[TopicPartition], time_ms: int
) -> tuple[dict[TopicPartition, int], set[TopicPartition], dict[TopicPartition, KctlError]]:
    """As `read_log_offsets`: the offset of the first record that is not older than time_ms, −1 when none is."""
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
    """The answers of leaders; which partitions do not exist; and which had none, and why.

    ask: given partitions by leader, the answer about each. It is asked again about those that failed, after looking up
    their leaders anew, twice. A topic that may not be described has no answers, and takes none from the others.
    state: metadata of now with all of the partitions.
    """
    answers: dict[TopicPartition, _Answer] = {}
    deleted: set[TopicPartition] = set()
    refused: dict[TopicPartition, KctlError] = {}
    unread: dict[TopicPartition, KctlError] = {}
    pending: Collection[TopicPartition] = partitions
    for pause in (*LEADER_PAUSES_S, None):
        if not pending:
            break
        known = state or client.metadata({tp.topic for tp in pending}, keep_errors=True)
        state = None
        unread = {tp: known.failed[tp.topic] for tp in pending if tp.topic in known.failed}
        by_leader, gone, leaderless = _by_leader(known, [tp for tp in pending if tp not in unread])
        deleted |= gone
        unread |= {tp: OperationFailed("no leader") for tp in leaderless}
        for tp, answer in ask(by_leader).items():
            if isinstance(answer, KctlError):
                unread[tp] = answer
            else:
                answers[tp] = answer
        refused |= {tp: error for tp, error in unread.items() if isinstance(error, NotAuthorized)}
        pending = [tp for tp in unread if tp not in refused]
        if pending and pause is not None:
            time.sleep(pause)
    return answers, deleted, unread | refused


def _by_leader(
    state: ClusterState, partitions: Iterable[TopicPartition]
) -> tuple[dict[int, list[TopicPartition]], set[TopicPartition], list[TopicPartition]]:
    """Partitions by the broker that leads them; those that do not exist; those without a leader."""
    leaders = {p.tp: p.leader for topic in state.topics.values() for p in topic.partitions}
    by_leader: dict[int, list[TopicPartition]] = {}
    gone: set[TopicPartition] = set()
    leaderless: list[TopicPartition] = []
    for tp in partitions:
        leader = leaders.get(tp)
        if leader is None:
            gone.add(tp)
        elif leader < 0:
            leaderless.append(tp)
        else:
            by_leader.setdefault(leader, []).append(tp)
    return by_leader, gone, leaderless
