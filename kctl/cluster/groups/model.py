"""Groups and their members, for all protocols."""

from __future__ import annotations

from dataclasses import dataclass

from kctl.cluster.groups.streams import StreamsMember, Topology
from kctl.errors import KctlError
from kctl.model import TopicPartition

CLASSIC, CONSUMER, SHARE, STREAMS = "classic", "consumer", "share", "streams"  # types, as in ListGroups
TYPES = (CLASSIC, CONSUMER, SHARE, STREAMS)
WITHOUT_MEMBERS = frozenset({"Empty", "Dead"})  # states


@dataclass(frozen=True, slots=True)
class Member:
    """A member of a group and its assignment.

    partitions: None if the assignment is not in the consumer format. topics: subscribed topics, None: unknown;
    topics_regex: a subscribed pattern. epoch, target: KIP-848 only (share groups have an epoch): the member epoch, and
    the target assignment. owned: partitions that a classic member owned when it joined. type: the member's protocol,
    "classic" in a newer group while the group changes protocols. streams: only in a streams group, whose members have
    tasks instead of an assignment; partitions are then the sources of the member's active tasks, as far as known.
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
    """A group as described by its coordinator (a broker id).

    members: None if not requested or not available. protocol: the assignor. epoch, assignment_epoch: of all but classic
    groups. topology: of a streams group.
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
    """Groups by id, sorted, and the reason for everything that is missing.

    unlisted: by source that could not list its groups, "broker 3" or the offsets topic (if partitions have no leader).
    """

    groups: dict[str, Group]
    unlisted: dict[str, KctlError]
    failed_groups: dict[str, KctlError]
