"""The metadata quorum of a KRaft cluster (KIP-595, KIP-836), as kafka-metadata-quorum describes it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from kctl.base.deadline import Deadline
from kctl.base.parallel import run_all
from kctl.errors import KctlError, OperationFailed

if TYPE_CHECKING:
    from kctl.base.address import Address
    from kctl.model import ClusterState
    from kctl.protocol.connection import Connection
    from kctl.protocol.dialer import Dialer

_METADATA_TOPIC = "__cluster_metadata"
_CONTROLLERS = 2  # EndpointType of DescribeCluster
LAST_KNOWN = "without an active controller, brokers and partitions are as the brokers last knew them"
NO_CONTROLLER_HINT = (
    "start controllers until a majority of the voters is up; `kctl quorum recover` explains why there is no leader"
)


@dataclass(frozen=True, slots=True)
class QuorumReplica:
    """A voter or an observer. lag: records of the metadata log that it has not fetched; None: unknown.

    last_fetch_timestamp_ms, last_caught_up_timestamp_ms: by the leader's clock, ms since the epoch; None if the leader
    does not report them (before 3.3), or if a voter has not fetched since the election.
    """

    id: int
    directory_id: str | None
    log_end_offset: int | None
    lag: int | None
    last_fetch_timestamp_ms: int | None
    last_caught_up_timestamp_ms: int | None


@dataclass(frozen=True, slots=True)
class QuorumNode:
    """The address of a controller listener (Kafka 3.9)."""

    id: int
    listener: str
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class Quorum:
    """The metadata quorum. leader_id: None if there is no leader. nodes: empty before Kafka 3.9.

    problem: why there is no leader, if only the brokers' settings and single controllers could be read; then
    leader_epoch and high_watermark are -1, `voters` is empty, and `nodes` has the controllers that are known.
    """

    leader_id: int | None
    leader_epoch: int
    high_watermark: int
    voters: tuple[QuorumReplica, ...]
    observers: tuple[QuorumReplica, ...]
    nodes: tuple[QuorumNode, ...]
    problem: str | None = None

    @property
    def no_controller(self) -> str | None:
        """Return the message that there is no active controller, with the reason if known; None if there is one."""
        if self.leader_id is not None:
            return None
        return f"no active controller: {self.problem or 'the metadata quorum has no leader'}"


def read_controllers(connection: Connection, deadline: Deadline) -> ClusterState:
    """Return the registered controllers as the brokers of a state, and the active one, from a controller (KIP-919).

    Controllers that are down are included. Raises NotSupported before Kafka 3.7, NotAuthorized.
    """
    from kafka.protocol.admin import DescribeClusterRequest

    from kctl.model import Broker, ClusterState
    from kctl.protocol.error_meanings import error_for

    request = DescribeClusterRequest(endpoint_type=_CONTROLLERS, min_version=1)
    answer = ask_connection(connection, request, deadline)
    if answer.error_code:
        raise error_for(answer.error_code, answer.error_message, subject="the controllers")
    return ClusterState(
        cluster_id=answer.cluster_id,
        controller_id=_optional(answer.controller_id),
        brokers={row.broker_id: Broker(row.broker_id, row.host, row.port, row.rack) for row in answer.brokers},
        topics={},
    )


def ask_controllers(servers: Sequence[Address], dialer: Dialer, *, timeout_s: float) -> Quorum | None:
    """Return the quorum as its leader reports it, from controller listeners. Only the leader can describe it.

    None if no server responds as the leader in time.
    """
    deadline = Deadline(timeout_s)
    answers = run_all({server: partial(_ask_controller, server, dialer, deadline) for server in servers}, deadline)
    quorums = [quorum for quorum in answers.values() if not isinstance(quorum, KctlError)]
    return max(quorums, key=lambda quorum: quorum.leader_epoch, default=None)


def responding_controllers(servers: Mapping[int, Address], dialer: Dialer, *, timeout_s: float) -> frozenset[int]:
    """Return the controllers that accept a connection and respond to ApiVersions."""
    from kctl.protocol.connection import Connection

    deadline = Deadline(timeout_s)

    def respond(server: Address) -> None:
        with closing(Connection(server, dialer)) as connection:
            connection.open(deadline)

    answers = run_all({node: partial(respond, server) for node, server in servers.items()}, deadline)
    return frozenset(node for node, answer in answers.items() if not isinstance(answer, KctlError))


def silent_replicas(quorum: Quorum, replicas: Iterable[QuorumReplica], *, limit_ms: int) -> list[QuorumReplica]:
    """Return the replicas that have not fetched from the leader for `limit_ms`, by the leader's clock.

    None of them is silent if the leader does not report times (before 3.3).
    """
    now_ms = max((r.last_caught_up_timestamp_ms or 0 for r in quorum.voters if r.id == quorum.leader_id), default=0)
    return [
        replica
        for replica in replicas
        if replica.id != quorum.leader_id and now_ms - (replica.last_fetch_timestamp_ms or 0) > limit_ms
    ]


def _ask_controller(server: Address, dialer: Dialer, deadline: Deadline) -> Quorum:
    from kctl.protocol.connection import Connection

    with closing(Connection(server, dialer)) as connection:
        connection.open(deadline)
        return quorum_in(ask_connection(connection, quorum_request(), deadline))


def ask_connection(connection: Connection, request: Any, deadline: Deadline) -> Any:
    """Send a kafka-python request over one connection, and return the response."""
    from kctl.protocol.request_version import negotiate

    pending = connection.send_message(request, negotiate(request, None, connection), deadline)
    return connection.receive_message(pending, deadline)


def quorum_request() -> Any:
    """Return a DescribeQuorum request."""
    from kafka.protocol.admin import DescribeQuorumRequest

    topic = DescribeQuorumRequest.TopicData
    return DescribeQuorumRequest(
        topics=[topic(topic_name=_METADATA_TOPIC, partitions=[topic.PartitionData(partition_index=0)])]
    )


def quorum_in(answer: Any) -> Quorum:
    """Return the quorum in a DescribeQuorum response. Raises the error in it."""
    from kctl.protocol.error_meanings import error_for

    if answer.error_code:
        raise error_for(
            answer.error_code,
            getattr(answer, "error_message", None),
            subject="the metadata quorum",
            hint="requires the ACL operation DESCRIBE on the cluster",
        )
    rows = [row for each in answer.topics for row in each.partitions]
    if not rows:
        raise OperationFailed("cannot read the metadata quorum: the broker's response does not describe it")
    row = rows[0]
    if row.error_code:
        raise error_for(row.error_code, getattr(row, "error_message", None), subject="the metadata quorum")
    return parse_quorum(row, getattr(answer, "nodes", None) or ())


def parse_quorum(row: Any, nodes: Any) -> Quorum:
    """Return the quorum from the partition of a DescribeQuorum response, and its nodes."""
    leader = None if row.leader_id < 0 else row.leader_id
    ends = {r.replica_id: r.log_end_offset for r in row.current_voters}
    leader_end = _optional(ends.get(row.leader_id, -1))
    return Quorum(
        leader_id=leader,
        leader_epoch=row.leader_epoch,
        high_watermark=row.high_watermark,
        voters=tuple(_replica(r, leader_end) for r in row.current_voters),
        observers=tuple(_replica(r, leader_end) for r in row.observers),
        nodes=tuple(QuorumNode(n.node_id, each.name, each.host, each.port) for n in nodes for each in n.listeners),
    )


def _replica(row: Any, leader_end: int | None) -> QuorumReplica:
    end = _optional(row.log_end_offset)
    directory = getattr(row, "replica_directory_id", None)
    return QuorumReplica(
        id=row.replica_id,
        directory_id=None if directory is None or not directory.int else _kafka_uuid(directory),
        log_end_offset=end,
        lag=None if end is None or leader_end is None else max(0, leader_end - end),
        last_fetch_timestamp_ms=_optional(row.last_fetch_timestamp),
        last_caught_up_timestamp_ms=_optional(row.last_caught_up_timestamp),
    )


def _optional(value: int | None) -> int | None:
    return None if value is None or value < 0 else value


def _kafka_uuid(value: Any) -> str:
    """Return a UUID as Kafka writes it: base64url without padding."""
    import base64

    return base64.urlsafe_b64encode(value.bytes).decode().rstrip("=")
