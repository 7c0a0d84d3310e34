"""Start a cluster: only stopped nodes, after all checks. On failure, the started nodes are stopped again.

Checks first that the ports are free and the data belongs to this cluster. With ZooKeeper: starts all ZooKeepers
together, waits until the old registrations of the brokers have expired in ZooKeeper (a broker would die with
NodeExists), and then starts all brokers together. With KRaft: see kctl.deploy.start_kraft.
"""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from kctl.base.deadline import Deadline
from kctl.deploy.config.files import write_missing
from kctl.deploy.data import check_data
from kctl.deploy.host import Host
from kctl.deploy.interrupts import deferred_interrupts
from kctl.deploy.layout import BrokerNode, ClusterSpec, Node, Release, ZooKeeperNode
from kctl.deploy.nodes import ArchiveKind, NodeProcess, archive_kind_of, note_stopped, observe
from kctl.deploy.runtime.class_archive import kafka_archives
from kctl.deploy.runtime.java import Java
from kctl.deploy.start_kraft import start_kraft
from kctl.deploy.start_run import StartRun
from kctl.deploy.start_zookeeper import start_brokers, start_zookeepers
from kctl.deploy.waiting import NoProgress, ProgressReporter, wait_until
from kctl.errors import Busy, NotFound

DEFAULT_TIMEOUT_S = 120.0
_UNDO_TIMEOUT_S = 10.0
_LINGER_S = 3.0


@dataclass(frozen=True, slots=True)
class StartResult:
    """The result. started: nodes that this call started; resumed: formerly paused nodes; already_running: others."""

    name: str
    bootstrap_servers: tuple[str, ...]
    zookeeper: str | None
    started: tuple[str, ...]
    already_running: tuple[str, ...]
    resumed: tuple[str, ...]
    duration_ms: int

    @property
    def changed(self) -> bool:
        return bool(self.started or self.resumed)


def start(
    host: Host,
    spec: ClusterSpec,
    *,
    java: Java,
    only: Collection[str] | None = None,
    timeout_s: float = DEFAULT_TIMEOUT_S,
    progress: ProgressReporter | None = None,
    archive_flags: Mapping[ArchiveKind, Sequence[str]] | None = None,
) -> StartResult:
    """Start the stopped nodes, resume the paused ones, and wait until the cluster is ready.

    archive_flags: Java's flags for class archives; None: use the existing archives (kctl.deploy.runtime.class_archive).
    only: names of the nodes to start; other nodes stay as they are, and start does not wait for them. Raises Busy (a
    port is in use), Refused (another cluster's data), OperationFailed (a process died; with the end of its log) or
    TimedOut. On failure, also on Ctrl-C, the nodes that this call started are stopped again.
    """
    began = time.monotonic()
    check_runtime(spec)
    before = observe(host, spec)
    targets = [n for n in before if only is None or n.node.name in only]
    down = [n.node for n in targets if not n.running]
    expected = [n.node for n in before if n.running or n in targets]
    run = StartRun(
        host,
        spec,
        java,
        Deadline(timeout_s),
        progress or NoProgress(),
        expected,
        _archive_flags(spec, down, java, archive_flags),
    )
    write_missing(host, spec)
    _check_ports(host, spec, down)
    for node in down:
        check_data(host, spec, node)
    resumed = _resume(host, targets)
    with _undone_on_failure(run):
        if spec.uses_kraft:
            start_kraft(run, down)
        else:
            start_zookeepers(run, [n for n in down if isinstance(n, ZooKeeperNode)])
            start_brokers(run, [n for n in down if isinstance(n, BrokerNode)])
    return StartResult(
        name=spec.name,
        bootstrap_servers=spec.bootstrap_servers,
        zookeeper=spec.zookeeper_connect,
        started=tuple(node.name for node in down),
        already_running=tuple(n.node.name for n in targets if n.running and n.node.name not in resumed),
        resumed=resumed,
        duration_ms=round((time.monotonic() - began) * 1000),
    )


def _archive_flags(
    spec: ClusterSpec, nodes: Sequence[Node], java: Java, overrides: Mapping[ArchiveKind, Sequence[str]] | None
) -> dict[str, Sequence[str]]:
    """Return Java's options for class archives by the name of the node."""
    if overrides is not None:
        return {node.name: overrides.get(archive_kind_of(spec, node), ()) for node in nodes}
    flags: dict[Release, Mapping[ArchiveKind, Sequence[str]]] = {}
    for release in {spec.release_of(node) for node in nodes}:
        archives = kafka_archives(java, release.libs, release.version)
        flags[release] = {kind: archive.options_to_use() for kind, archive in archives.items()}
    return {node.name: flags[spec.release_of(node)].get(archive_kind_of(spec, node), ()) for node in nodes}


def check_runtime(spec: ClusterSpec) -> None:
    """Raise NotFound if the jars of a node no longer exist."""
    for release in sorted({spec.release_of(node) for node in spec.nodes}, key=lambda each: each.version):
        check_release(spec, release)


def check_release(spec: ClusterSpec, release: Release) -> None:
    """Raise NotFound if the jars of this release no longer exist."""
    if not release.libs.is_dir():
        raise NotFound(
            f"Kafka {release.version} of cluster {spec.name} is missing: {release.libs} does not exist",
            hint=f"restore it, or run `kctl runtime install --kafka-version {release.version}`",
        )


def _check_ports(host: Host, spec: ClusterSpec, nodes: list[Node]) -> None:
    for node in nodes:
        for port in node.ports:
            if _await_free(host, port):
                continue
            owner = host.port_owner(port)
            raise Busy(
                f"port {port} of {node.name} is in use by {owner or 'an outgoing connection'}",
                hint=f"stop that process, or destroy cluster {spec.name} and create it with another --base-port",
                details={"node": node.name, "port": port, "pid": owner.pid if owner else None},
            )


def _await_free(host: Host, port: int) -> bool:
    """Return True if the port is free, or becomes so when an ended process's connections expire."""
    deadline = Deadline(_LINGER_S)
    while not host.port_is_free(port):
        if deadline.expired or host.port_owner(port) is not None:
            return False
        time.sleep(0.1)
    return True


def _resume(host: Host, before: list[NodeProcess]) -> tuple[str, ...]:
    """Resume paused processes. Return their names."""
    resumed = []
    for process in before:
        if process.identity is not None:
            usage = host.usage(process.identity)
            if usage is not None and usage.state == "T" and host.signal(process.identity, signal.SIGCONT):
                resumed.append(process.node.name)
    return tuple(resumed)


@contextlib.contextmanager
def _undone_on_failure(run: StartRun) -> Iterator[None]:
    try:
        yield
    except BaseException:
        run.progress.update("stopping the started nodes")
        with deferred_interrupts():
            _undo(run)
        raise


def _undo(run: StartRun) -> None:
    """Stop only the processes that this call started: with SIGTERM, then with SIGKILL.

    Look up the processes again: Ctrl-C may have come after a process started and before it was recorded.
    """
    started = [p for p in observe(run.host, run.spec) if p.node in run.attempted]
    identities = [p.identity for p in started if p.identity is not None]
    for identity in identities:
        run.host.signal(identity, signal.SIGTERM)
    for process in started:
        note_stopped(run.host, run.spec, process.node)

    def all_ended() -> bool:
        return not any(run.host.is_running(identity) for identity in identities)

    if not wait_until(all_ended, Deadline(_UNDO_TIMEOUT_S)):
        for identity in identities:
            run.host.signal(identity, signal.SIGKILL)
        wait_until(all_ended, Deadline(_UNDO_TIMEOUT_S))
