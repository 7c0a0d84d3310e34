"""Connections to the brokers of one cluster, and requests to many of them at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kctl.base.address import Address, parse_address
from kctl.base.deadline import Deadline
from kctl.errors import (
    ClusterReplaced,
    ConnectionFailed,
    ConnectionReason,
    ConnectionTimedOut,
    KctlError,
    NotFound,
    OutcomeUnknown,
)
from kctl.model import Broker, ClusterState
from kctl.protocol import preflight
from kctl.protocol.codes import ApiKey
from kctl.protocol.connection import Connection, NoResponse, PeerClosed, Pending
from kctl.protocol.dialer import Dialer
from kctl.protocol.request_version import negotiate

# API keys of requests that change something: without a response, their outcome is unknown.
CHANGES = frozenset(
    {
        ApiKey.PRODUCE, ApiKey.OFFSET_COMMIT, ApiKey.JOIN_GROUP, ApiKey.LEAVE_GROUP, ApiKey.SYNC_GROUP,
        ApiKey.CREATE_TOPICS, ApiKey.DELETE_TOPICS, ApiKey.DELETE_RECORDS, ApiKey.INIT_PRODUCER_ID,
        ApiKey.ADD_PARTITIONS_TO_TXN, ApiKey.ADD_OFFSETS_TO_TXN, ApiKey.END_TXN, ApiKey.WRITE_TXN_MARKERS,
        ApiKey.TXN_OFFSET_COMMIT, ApiKey.CREATE_ACLS, ApiKey.DELETE_ACLS, ApiKey.ALTER_CONFIGS,
        ApiKey.ALTER_REPLICA_LOG_DIRS, ApiKey.CREATE_PARTITIONS, ApiKey.CREATE_DELEGATION_TOKEN,
        ApiKey.RENEW_DELEGATION_TOKEN, ApiKey.EXPIRE_DELEGATION_TOKEN, ApiKey.DELETE_GROUPS,
        ApiKey.ELECT_LEADERS, ApiKey.INCREMENTAL_ALTER_CONFIGS, ApiKey.ALTER_PARTITION_REASSIGNMENTS,
        ApiKey.OFFSET_DELETE, ApiKey.ALTER_CLIENT_QUOTAS, ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
        ApiKey.UPDATE_FEATURES, ApiKey.ADD_RAFT_VOTER, ApiKey.REMOVE_RAFT_VOTER, ApiKey.UNREGISTER_BROKER,
        ApiKey.UNREGISTER_CONTROLLER, ApiKey.ALTER_SHARE_GROUP_OFFSETS, ApiKey.DELETE_SHARE_GROUP_OFFSETS,
    }
)  # fmt: skip


class Brokers:
    """Connections to the brokers of a cluster, opened on demand and reopened when broken. Not thread-safe."""

    def __init__(self, servers: tuple[str, ...], dialer: Dialer, timeout_s: float) -> None:
        self._servers = [parse_address(server) for server in servers]
        self._dialer = dialer
        reached = preflight.preflight(self._servers, dialer, timeout_s=timeout_s)
        self.failures = reached.failures
        self.state = reached.state
        self._cluster_id = reached.state.cluster_id
        self._any = reached.connection
        self._nodes: dict[int, Connection] = {}

    @property
    def reached_address(self) -> Address:
        """Return the address of the connected bootstrap server."""
        return self._any.address

    @property
    def advertised_can_be_reached(self) -> bool:
        """Return True if the connected server is at an advertised address.

        Then an unreachable broker is more likely down than wrongly advertised.
        """
        return any((b.host, b.port) == self.reached_address for b in self.state.brokers.values())

    @property
    def api_versions(self) -> dict[int, tuple[int, int]]:
        """Return API key → (lowest, highest version) of the connected broker."""
        return self._any.api_versions

    def close(self) -> None:
        """Close all connections."""
        for connection in (self._any, *self._nodes.values()):
            connection.close()

    # --- connections ----------------------------------------------------------------------------------------------

    def any_connection(self, deadline: Deadline) -> Connection:
        """Return a connection to any broker. Raises subclasses of ConnectionFailed."""
        for connection in (self._any, *self._nodes.values()):
            if connection.usable:
                return connection
        addresses = [Address(b.host, b.port) for b in self.state.brokers.values()]
        servers = dict.fromkeys((*self._servers, *addresses))
        reached = preflight.preflight(servers, self._dialer, timeout_s=deadline.left_s)
        self._check(reached.state, reached.connection)
        self._any, self.state = reached.connection, reached.state
        return self._any

    def _check(self, state: ClusterState, connection: Connection) -> None:
        """Raise ClusterReplaced if the broker belongs to a different cluster than the first one.

        An address moved, or the cluster was recreated. A plan for the first cluster does not apply to this one.
        """
        if None not in (state.cluster_id, self._cluster_id) and state.cluster_id != self._cluster_id:
            connection.close()
            raise ClusterReplaced(
                f"{connection.address} now belongs to cluster {state.cluster_id}; this command started with cluster"
                f" {self._cluster_id}",
                hint="check both clusters before you retry",
            )

    def connections(self, nodes: Iterable[int | None], deadline: Deadline) -> dict[int | None, Connection | KctlError]:
        """Return a connection or an error for each node id. New connections are opened in parallel."""
        outcomes: dict[int | None, Connection | KctlError] = {}
        missing: dict[int, Broker] = {}
        for node in nodes:
            if node is None:
                outcomes[node] = self._any_or_error(deadline)
                continue
            broker = self._broker(node, deadline)
            if isinstance(broker, KctlError):
                outcomes[node] = broker
            elif (connection := self._connected(broker)) is not None:
                outcomes[node] = connection
            else:
                missing[node] = broker
        if missing:
            for node, outcome in self.dial_known(missing, deadline).items():
                outcomes[node] = outcome
                if isinstance(outcome, Connection):
                    self._nodes[node] = outcome
        return outcomes

    def dial(self, nodes: Iterable[int], deadline: Deadline) -> dict[int, Connection | KctlError]:
        """Open a new connection to each broker. The caller owns and closes it."""
        outcomes: dict[int, Connection | KctlError] = {}
        brokers_by_id: dict[int, Broker] = {}
        for node in nodes:
            broker = self._broker(node, deadline)
            if isinstance(broker, KctlError):
                outcomes[node] = broker
            else:
                brokers_by_id[node] = broker
        return outcomes | self.dial_known(brokers_by_id, deadline)

    def dial_known(self, brokers: Mapping[int, Broker], deadline: Deadline) -> dict[int, Connection | KctlError]:
        """Open connections like `dial`, but without lookups or changes to this object. Thread-safe."""
        addresses = {node: Address(broker.host, broker.port) for node, broker in brokers.items()}
        opened = preflight.open_all(addresses, self._dialer, deadline, check=self._check)
        return {
            node: advertised_error(brokers[node], outcome) if isinstance(outcome, KctlError) else outcome
            for node, outcome in opened.items()
        }

    def _any_or_error(self, deadline: Deadline) -> Connection | KctlError:
        try:
            return self.any_connection(deadline)
        except KctlError as exc:
            return exc

    def _connected(self, broker: Broker) -> Connection | None:
        connection = self._nodes.get(broker.id)
        if connection is None and self._any.address == (broker.host, broker.port):
            connection = self._any
        if connection is None or not connection.usable or connection.address != (broker.host, broker.port):
            return None
        return connection

    def _broker(self, node: int, deadline: Deadline) -> Broker | KctlError:
        if node not in self.state.brokers:
            try:
                self.refresh(deadline)
            except KctlError as exc:
                return exc
        if node not in self.state.brokers:
            ids = ", ".join(map(str, sorted(self.state.brokers)))
            return NotFound(f"broker {node} is not in the cluster", hint=f"current brokers: {ids}")
        return self.state.brokers[node]

    def refresh(self, deadline: Deadline) -> ClusterState:
        """Read brokers and controller again (no topics)."""
        for attempt in (1, 2):
            try:
                self.state = preflight.read_cluster(self.any_connection(deadline), deadline)
                break
            except PeerClosed:
                if attempt == 2:
                    raise
        return self.state

    # --- requests -------------------------------------------------------------------------------------------------

    def ask(
        self, requests: Mapping[int | None, Any], deadline: Deadline, *, changes: bool | None = None
    ) -> dict[int | None, Any]:
        """Send each node its request, all before the first response is read. Return node → response or KctlError.

        If the connection breaks, a read-only request is retried once; a request that changes something is not and
        becomes OutcomeUnknown. changes: whether it changes something (default: by API).
        """
        pinned = {node: request.API_VERSION for node, request in requests.items()}
        answers = self._ask_once(requests, pinned, deadline, changes)
        broken = {node for node, answer in answers.items() if isinstance(answer, PeerClosed)}
        if broken and not deadline.expired:
            again = {node: requests[node] for node in broken}
            answers |= self._ask_once(again, pinned, deadline, changes)
        return answers

    def _ask_once(
        self,
        requests: Mapping[int | None, Any],
        pinned: Mapping[int | None, Any],
        deadline: Deadline,
        changes: bool | None,
    ) -> dict[int | None, Any]:
        answers: dict[int | None, Any] = {}
        pending_by_node: dict[int | None, tuple[Connection, Pending]] = {}
        connections = self.connections(requests, deadline)
        for node, connection in connections.items():
            try:
                if isinstance(connection, KctlError):
                    raise connection
                version = negotiate(requests[node], pinned[node], connection)
                connection.step = f"the {requests[node].name.removesuffix('Request')} request"
                pending_by_node[node] = connection, connection.send_message(requests[node], version, deadline)
            except KctlError as exc:
                answers[node] = exc
        for node, (connection, pending) in pending_by_node.items():
            try:
                answers[node] = connection.receive_message(pending, deadline)
            except ConnectionFailed as exc:
                answers[node] = _no_response_error(exc, requests[node], node, deadline, changes)
        return answers


def _may_change(request: Any) -> bool:
    """Return True if the request may change something. A validate-only request does not."""
    return request.API_KEY in CHANGES and not getattr(request, "validate_only", False)


def _no_response_error(
    exc: ConnectionFailed, request: Any, node: int | None, deadline: Deadline, changes: bool | None
) -> KctlError:
    name = request.name.removesuffix("Request")
    who = "the broker" if node is None else f"broker {node}"
    why = (
        f"did not respond to {name} within {deadline.seconds:g} s"
        if isinstance(exc, NoResponse)
        else f"closed the connection during the {name} request"
    )
    if _may_change(request) if changes is None else changes:
        return OutcomeUnknown(f"{who} {why}: outcome unknown", hint="check the current state before you retry")
    if isinstance(exc, NoResponse):
        return ConnectionTimedOut(
            f"{who} {why}",
            hint="check the load of the broker, or increase --timeout",
            reason=ConnectionReason.NO_RESPONSE,
        )
    return exc


def advertised_error(broker: Broker, exc: KctlError) -> KctlError:
    """Return the error for a broker that is unreachable at its advertised address while another one responded."""
    if not isinstance(exc, ConnectionFailed):
        return exc
    where = Address(broker.host, broker.port)
    return exc.reworded(
        f"broker {broker.id} is unreachable at its advertised address {where}: {exc.message}",
        hint=f"check that broker {broker.id} is up and that this machine can reach its advertised.listeners",
        details={**exc.details, "broker_id": broker.id, "host": broker.host, "port": broker.port},
    )
