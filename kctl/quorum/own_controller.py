"""The controllers of a cluster that kctl set up on this machine: find those that run, and stop one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kctl.deploy.data import find_cluster
from kctl.deploy.host import Host, LocalHost
from kctl.deploy.layout import ControllerNode
from kctl.deploy.nodes import observe

if TYPE_CHECKING:
    from kctl.deploy.waiting import ProgressReporter
    from kctl.quorum.facts import QuorumFacts


@dataclass(frozen=True, slots=True)
class OwnController:
    """A node with the controller role in a cluster that kctl set up.

    node: its name, e.g. "controller-101". dedicated: not also a broker. running: the ids of all controllers of the
    cluster whose processes run.
    """

    cluster: str
    node: str
    dedicated: bool
    running: frozenset[int]


def find_own(facts: QuorumFacts, node_id: int, host: Host | None = None) -> OwnController | None:
    """Return the node if kctl set up its cluster on this machine, otherwise None."""
    host = host or LocalHost()
    spec = find_cluster(host, facts.cluster_id)
    if spec is None:
        return None
    voters = {voter.id for voter in spec.voters}
    processes = [each for each in observe(host, spec) if each.node.id in voters]
    for each in processes:
        if each.node.id == node_id:
            running = frozenset(other.node.id for other in processes if other.running)
            return OwnController(spec.name, each.node.name, isinstance(each.node, ControllerNode), running)
    return None


def stop_own(own: OwnController, *, timeout_s: float, progress: ProgressReporter | None = None) -> None:
    """Stop the node. Raises TimedOut if its process does not end, Busy if another kctl changes the cluster."""
    from kctl.deploy.lifecycle import stop_cluster

    stop_cluster(own.cluster, nodes=[own.node], timeout_s=timeout_s, progress=progress)
