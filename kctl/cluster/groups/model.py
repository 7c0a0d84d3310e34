"""Groups and their members, whatever protocol they speak."""

from __future__ import annotations

from dataclasses import dataclass

from kctl.cluster.groups.streams import StreamsMember, Topology
from kctl.errors import KctlError
from kctl.model import TopicPartition

CLASSIC, CONSUMER, SHARE, STREAMS = "classic", "consumer", "share", "streams"  # types, as ListGroups has them
TYPES = (CLASSIC, CONSUMER, SHARE, STREAMS)
WITHOUT_MEMBERS = frozenset({"Empty", "Dead"})  # states


@dataclass(frozen=True, slots=True)
class Member:
    """A consumer in a group and what it was given.

    partitions is None when its format is not a consumer's. topics: what it subscribed to, None when that is not known;
    topics_regex instead of it or beside it. target, epoch: with the protocol of KIP-848 (share groups have an epoch):
    the partitions that it shall have, and of which generation what it has is. owned: of a classic member, the
    partitions that it had when it joined. type: of a member of a consumer group, «classic» while the group changes its
    protocol. streams: of a member of a streams group, which has tasks instead of an assignment; partitions are then
    what its active tasks read, as far as that can be told.
    """

    member_id: str
    group_instance_id: str | None
    client_id: str
    host: str
    partitions: tuple[TopicPartition, ...] | None
    rack: str | None = None
    topics: tuple[str, ...] | None = None
    topics_regex: str | None = None
    epoch: int | None = None
    target: tuple[TopicPartition, ...] | None = None
    owned: tuple[TopicPartition, ...] | None = None
    type: str | None = None
    streams: StreamsMember | None = None


@dataclass(frozen=True, slots=True)
class Group:
    """A group as its coordinator (a broker id) knows it. members is None when it was not asked, or cannot be.

    protocol: the assignor. epoch, assignment_epoch: of all but classic groups. topology: of a streams group.
    """

    group: str
    state: str
    protocol_type: str
    type: str | None
    coordinator: int
    protocol: str | None = None
    members: tuple[Member, ...] | None = None
    epoch: int | None = None
    assignment_epoch: int | None = None
    topology: Topology | None = None


@dataclass(frozen=True, slots=True)
class Groups:
    """Groups by id, sorted; and what could not be had, with the reason: groups, and what did not tell its groups, a
    «broker 3» or the offsets topic, whose partitions without a leader nobody coordinates."""

    groups: dict[str, Group]
    unlisted: dict[str, KctlError]
    failed_groups: dict[str, KctlError]
