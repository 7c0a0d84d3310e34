"""Operations on existing clusters by name; those that change something hold the cluster's lock.

The parts: `start` and `stop` (whole clusters or single nodes), `faults` (kill, pause), `status`, `logs`. Clusters are
created in `create` and removed in `destroy`.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from kctl.deploy import faults, store
from kctl.deploy.create import put_cluster_context
from kctl.deploy.data import cluster_id_on_disk
from kctl.deploy.host import Host, LocalHost
from kctl.deploy.layout import ClusterSpec
from kctl.deploy.nodes import observe
from kctl.deploy.runtime.java import find_java
from kctl.deploy.start import DEFAULT_TIMEOUT_S as START_TIMEOUT_S
from kctl.deploy.start import StartResult, check_runtime, start
from kctl.deploy.status import ClusterStatus, cluster_status
from kctl.deploy.stop import DEFAULT_TIMEOUT_S as STOP_TIMEOUT_S
from kctl.deploy.stop import StopResult, stop
from kctl.deploy.waiting import ProgressReporter
from kctl.errors import NotFound


@dataclass(frozen=True, slots=True)
class RestartResult:
    """Both halves of a restart."""

    name: str
    stopped: StopResult
    started: StartResult

    @property
    def changed(self) -> bool:
        return self.stopped.changed or self.started.changed


def load_cluster(name: str, host: Host | None = None) -> ClusterSpec:
    """Return the description of a cluster. Raises NotFound, InvalidFile."""
    return store.load(host or LocalHost(), name)


def node_names(spec: ClusterSpec, chosen: Collection[str] | None) -> frozenset[str] | None:
    """Return the names of nodes selected by name or broker id; None for all. Raises NotFound."""
    if not chosen:
        return None
    names = set()
    for text in chosen:
        node = faults.named_node(spec, text)
        if node is None:
            names_text = ", ".join(n.name for n in spec.nodes)
            raise NotFound(f"cluster {spec.name} has no node {text}", hint=f"its nodes: {names_text}")
        names.add(node.name)
    return frozenset(names)


def running_nodes(spec: ClusterSpec, chosen: Collection[str] | None = None, host: Host | None = None) -> list[str]:
    """Return the names of the selected nodes that run."""
    only = node_names(spec, chosen)
    processes = observe(host or LocalHost(), spec)
    return [n.node.name for n in processes if n.running and (only is None or n.node.name in only)]


def own_cluster_id(name: str, host: Host | None = None) -> str | None:
    """Return the cluster id on disk, by the cluster's name."""
    host = host or LocalHost()
    return cluster_id_on_disk(host, store.load(host, name))


def check_startable(name: str, host: Host | None = None) -> None:
    """Raise NotSupported if there is no Java, NotFound if the cluster's Kafka is missing: nodes could not restart."""
    find_java()
    check_runtime(load_cluster(name, host))


def start_cluster(
    name: str,
    *,
    nodes: Collection[str] | None = None,
    timeout_s: float = START_TIMEOUT_S,
    progress: ProgressReporter | None = None,
    host: Host | None = None,
) -> StartResult:
    """Start a cluster by name; also complete an interrupted create, and restore the context."""
    host = host or LocalHost()
    store.load(host, name)
    java = find_java()
    with store.lock_cluster(name):
        spec = store.load(host, name)
        only = node_names(spec, nodes)
        result = start(host, spec, java=java, only=only, timeout_s=timeout_s, progress=progress)
        put_cluster_context(spec, make_current=False)
    return result


def stop_cluster(
    name: str,
    *,
    nodes: Collection[str] | None = None,
    timeout_s: float = STOP_TIMEOUT_S,
    force: bool = False,
    progress: ProgressReporter | None = None,
    host: Host | None = None,
) -> StopResult:
    """Stop a cluster by name."""
    host = host or LocalHost()
    store.load(host, name)
    with store.lock_cluster(name):
        spec = store.load(host, name)
        only = node_names(spec, nodes)
        return stop(host, spec, only=only, timeout_s=timeout_s, force=force, progress=progress)


def restart_cluster(
    name: str,
    *,
    nodes: Collection[str] | None = None,
    timeout_s: float = START_TIMEOUT_S,
    force: bool = False,
    progress: ProgressReporter | None = None,
    host: Host | None = None,
) -> RestartResult:
    """Stop, then start, under one lock. timeout_s: the limit for each. Stopped nodes are started as well."""
    host = host or LocalHost()
    store.load(host, name)
    java = find_java()
    with store.lock_cluster(name):
        spec = store.load(host, name)
        only = node_names(spec, nodes)
        stopped = stop(host, spec, only=only, timeout_s=timeout_s, force=force, progress=progress)
        started = start(host, spec, java=java, only=only, timeout_s=timeout_s, progress=progress)
        put_cluster_context(spec, make_current=False)
    return RestartResult(name, stopped, started)


def inflict_fault(
    name: str, chosen: faults.FaultTarget, fault: faults.Fault, *, host: Host | None = None
) -> faults.FaultResult:
    """Inflict a fault on a cluster, by its name."""
    host = host or LocalHost()
    with store.lock_cluster(name):
        return faults.inflict(host, store.load(host, name), chosen, fault)


def status_of(name: str, host: Host | None = None) -> ClusterStatus:
    """Return the status of a cluster by name, without its lock."""
    host = host or LocalHost()
    return cluster_status(host, store.load(host, name))
