"""The features of a cluster: finalized levels, and the levels that each broker and controller supports."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING

from kctl.base.address import Address
from kctl.base.deadline import Deadline
from kctl.base.parallel import run_all
from kctl.cluster.api_versions import (
    BrokerApis,
    VersionRange,
    api_versions_request,
    fetch_api_versions,
    parse_api_versions,
)
from kctl.errors import ConnectionTimedOut, KctlError, NotHealthy, NotSupported
from kctl.features.levels import KRAFT_VERSION, METADATA_VERSION, release_of_level
from kctl.protocol.active_controller import describe_quorum
from kctl.protocol.codes import ApiKey
from kctl.protocol.quorum import ask_connection

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient
    from kctl.protocol.dialer import Dialer

_ASK_S = 5.0


class NodeRole(str, Enum):
    """The role of a node. A node with both roles counts as a broker: both support the same levels."""

    BROKER = "broker"
    CONTROLLER = "controller"

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True, slots=True)
class NodeFeatures:
    """The levels that a node supports, by feature; a feature that is absent has only level 0.

    release: Kafka's release, derived from metadata.version, e.g. "4.4"; None if the node does not report it.
    """

    role: NodeRole
    node_id: int
    supported: Mapping[str, VersionRange]
    release: str | None

    @property
    def name(self) -> str:
        return f"{self.role} {self.node_id}"

    def range_of(self, feature: str) -> VersionRange:
        """Return the supported levels of a feature."""
        return self.supported.get(feature, VersionRange(0, 0))


@dataclass(frozen=True, slots=True)
class SilentNode:
    """A node whose features could not be read, and why. node_id: None for all controllers, if their ids are unknown."""

    role: NodeRole
    node_id: int | None
    reason: str

    @property
    def name(self) -> str:
        return f"the {self.role}s" if self.node_id is None else f"{self.role} {self.node_id}"


@dataclass(frozen=True, slots=True)
class ClusterFeatures:
    """The features of a cluster. finalized: the level in force of each feature above level 0.

    epoch: the offset in the metadata log up to which the finalized levels were read. silent: nodes that did not
    respond; the active controller also checks them, by their registrations, before it changes a level.
    """

    finalized: Mapping[str, int]
    epoch: int | None
    nodes: tuple[NodeFeatures, ...]
    silent: tuple[SilentNode, ...] = ()

    def level(self, feature: str) -> int:
        """Return the finalized level; 0 if the feature is not in use."""
        return self.finalized.get(feature, 0)

    @property
    def names(self) -> tuple[str, ...]:
        """Return all features that a node supports or that are finalized, metadata.version and kraft.version first."""
        names = {name for node in self.nodes for name in node.supported} | set(self.finalized)
        return tuple(sorted(names, key=lambda name: (name != METADATA_VERSION, name != KRAFT_VERSION, name)))


def read_features(client: ClusterClient) -> ClusterFeatures:
    """Read the finalized levels, and ask every live broker and every voter for the levels that it supports.

    Raises NotSupported with ZooKeeper, the error of a broker if none responds, subclasses of ConnectionFailed.
    """
    if client.api_version(ApiKey.DESCRIBE_QUORUM) is None:
        raise NotSupported(
            "the cluster uses ZooKeeper, which has no features to finalize",
            hint="with ZooKeeper, brokers have inter.broker.protocol.version: `kctl config get broker/1`",
        )
    answers = _ask_brokers(client)
    try:
        controllers = _ask_controllers(client, {node for _, node in answers})
    except KctlError as exc:  # needs DESCRIBE on the cluster; the active controller checks all controllers itself
        features = assemble(answers)
        return replace(features, silent=(*features.silent, SilentNode(NodeRole.CONTROLLER, None, exc.message)))
    return assemble(answers | {(NodeRole.CONTROLLER, node): answer for node, answer in controllers.items()})


def read_levels(client: ClusterClient) -> Mapping[str, int]:
    """Return the finalized levels, from the live brokers alone. Raises the error of a broker if none responds."""
    return assemble(_ask_brokers(client)).finalized


def read_levels_of_each(client: ClusterClient) -> dict[int, Mapping[str, int]]:
    """Return the finalized levels as each live broker that responds knows them."""
    answers = fetch_api_versions(client, list(client.metadata(()).brokers))
    return {node: _finalized(answer) for node, answer in answers.items() if not isinstance(answer, KctlError)}


def assemble(answers: Mapping[tuple[NodeRole, int], BrokerApis | KctlError]) -> ClusterFeatures:
    """Return the features of the cluster from the answers of its nodes. Pure.

    The finalized levels come from the node with the highest epoch.
    """
    readable = {node: answer for node, answer in answers.items() if isinstance(answer, BrokerApis)}
    newest = max(readable.values(), key=_epoch, default=None)
    in_order = sorted(readable.items(), key=lambda item: item[0])
    return ClusterFeatures(
        finalized={} if newest is None else _finalized(newest),
        epoch=None if newest is None else newest.finalized_epoch,
        nodes=tuple(_node(role, node, apis) for (role, node), apis in in_order),
        silent=tuple(
            SilentNode(role, node, answer.message)
            for (role, node), answer in sorted(answers.items(), key=lambda item: item[0])
            if isinstance(answer, KctlError)
        ),
    )


def _epoch(apis: BrokerApis) -> int:
    return -1 if apis.finalized_epoch is None else apis.finalized_epoch


def _finalized(apis: BrokerApis) -> dict[str, int]:
    return {each.feature: each.finalized_version for each in apis.features if each.finalized_version}


def _node(role: NodeRole, node_id: int, apis: BrokerApis) -> NodeFeatures:
    supported = {
        each.feature: VersionRange(each.min_version, each.max_version)
        for each in apis.features
        if each.min_version is not None and each.max_version is not None
    }
    highest = supported.get(METADATA_VERSION)
    return NodeFeatures(role, node_id, supported, None if highest is None else release_of_level(highest.highest))


def _ask_brokers(client: ClusterClient) -> dict[tuple[NodeRole, int], BrokerApis | KctlError]:
    answers = fetch_api_versions(client, list(client.metadata(()).brokers))
    errors = [answer for answer in answers.values() if isinstance(answer, KctlError)]
    if errors and len(errors) == len(answers):
        raise errors[0]
    return {(NodeRole.BROKER, node): answer for node, answer in answers.items()}


def _ask_controllers(client: ClusterClient, brokers: Collection[int]) -> dict[int, BrokerApis | KctlError]:
    """Ask the voters that are not brokers, on the controller listener (KIP-919). Their addresses require Kafka 3.9."""
    from kctl.protocol.dialer import Dialer

    quorum = describe_quorum(client)
    if quorum is None:
        return {}
    if quorum.no_controller is not None:
        raise NotHealthy(quorum.no_controller)
    dialer = Dialer(client.target.security, controllers=True)
    addresses = {node.id: Address(node.host, node.port) for node in quorum.nodes if node.id not in brokers}
    deadline = Deadline(_ASK_S)
    answers = run_all(
        {node: partial(_ask, node, server, dialer, deadline) for node, server in addresses.items()}, deadline
    )
    voters = {voter.id for voter in quorum.voters} - set(brokers)
    silent = ConnectionTimedOut("no response in time")
    unknown = NotSupported("releases before Kafka 3.9 do not report its address")
    return {node: answers.get(node, silent if node in addresses else unknown) for node in voters}


def _ask(node: int, server: Address, dialer: Dialer, deadline: Deadline) -> BrokerApis:
    from kctl.protocol.connection import Connection

    with closing(Connection(server, dialer)) as connection:
        connection.open(deadline)
        response = ask_connection(connection, api_versions_request(), deadline)
        answer = parse_api_versions(f"controller {node}", response)
    if isinstance(answer, KctlError):
        raise answer
    return answer
