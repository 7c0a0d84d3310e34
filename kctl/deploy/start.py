"""Start a cluster: only stopped nodes, after all checks. On failure, the started nodes are stopped again.

Checks first that the ports are free and the data belongs to this cluster. Starts all ZooKeepers together, waits until
the old registrations of the brokers have expired in ZooKeeper (a broker would die with NodeExists), and then starts all
brokers together.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from kctl.base.deadline import Deadline
from kctl.deploy import health
from kctl.deploy.data import check_data, check_registered_cluster
from kctl.deploy.files import write_missing
from kctl.deploy.host import Host
from kctl.deploy.interrupts import deferred_interrupts
from kctl.deploy.layout import BrokerNode, ClusterSpec, Node, ZooKeeperNode
from kctl.deploy.logs import log_excerpt
from kctl.deploy.nodes import NodeKind, NodeProcess, java_command, kind_of, note_stopped, observe, write_record
from kctl.deploy.process import ProcessIdentity
from kctl.deploy.runtime.class_archive import kafka_archives
from kctl.deploy.runtime.java import Java
from kctl.deploy.waiting import NoProgress, ProgressReporter, wait_until
from kctl.errors import Busy, ConnectionFailed, NotFound, OperationFailed, TimedOut

DEFAULT_TIMEOUT_S = 120.0
_UNDO_S = 10.0
_IN_SYNC_S = 10.0
_LINGER_S = 3.0
# Environment of a JVM: nothing that changes how it runs (JAVA_TOOL_OPTIONS, KAFKA_OPTS …), and nothing secret.
_KEPT_ENVIRONMENT = ("PATH", "HOME", "USER", "LOGNAME", "TMPDIR", "LD_LIBRARY_PATH")


@dataclass(frozen=True, slots=True)
class StartResult:
    """The result. started: nodes that this call started; resumed: nodes that were paused; already_running: others."""

    name: str
    bootstrap_servers: tuple[str, ...]
    zookeeper: str
    started: tuple[str, ...]
    already_running: tuple[str, ...]
    resumed: tuple[str, ...]
    duration_ms: int

    @property
    def changed(self) -> bool:
        return bool(self.started or self.resumed)


@dataclass
class _Spawned:
    node: Node
    identity: ProcessIdentity
    log_offset: int


@dataclass
class _Start:
    """One start in progress.

    expected: nodes that must be ready at the end. attempted: nodes that kctl tried to start. spawned: their processes.
    """

    host: Host
    spec: ClusterSpec
    java: Java
    deadline: Deadline
    progress: ProgressReporter
    expected: Sequence[Node]
    archive_flags: Mapping[NodeKind, Sequence[str]]
    attempted: list[Node] = field(default_factory=list)
    spawned: list[_Spawned] = field(default_factory=list)

    @property
    def broker_ids(self) -> set[int]:
        return {node.id for node in self.expected if isinstance(node, BrokerNode)}


def start(
    host: Host,
    spec: ClusterSpec,
    *,
    java: Java,
    only: Collection[str] | None = None,
    timeout_s: float = DEFAULT_TIMEOUT_S,
    progress: ProgressReporter | None = None,
    archive_flags: Mapping[NodeKind, Sequence[str]] | None = None,
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
    run = _Start(
        host,
        spec,
        java,
        Deadline(timeout_s),
        progress or NoProgress(),
        expected,
        _archive_flags(spec, java, archive_flags),
    )
    write_missing(host, spec)
    _check_ports(host, spec, down)
    for node in down:
        check_data(host, spec, node)
    resumed = _resume(host, targets)
    with _undone_on_failure(run):
        _start_zookeepers(run, [n for n in down if isinstance(n, ZooKeeperNode)])
        _start_brokers(run, [n for n in down if isinstance(n, BrokerNode)])
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
    spec: ClusterSpec, java: Java, overrides: Mapping[NodeKind, Sequence[str]] | None
) -> Mapping[NodeKind, Sequence[str]]:
    if overrides is not None:
        return overrides
    archives = kafka_archives(java, spec.kafka_libs, spec.kafka_version)
    return {kind: archive.options_to_use() for kind, archive in archives.items()}


def check_runtime(spec: ClusterSpec) -> None:
    """Raise NotFound if the cluster's Kafka does not exist any more."""
    if not spec.kafka_libs.is_dir():
        raise NotFound(
            f"Kafka {spec.kafka_version} of cluster {spec.name} is missing: {spec.kafka_libs} does not exist",
            hint=f"restore it, or run `kctl runtime install --kafka-version {spec.kafka_version}`",
        )


def _check_ports(host: Host, spec: ClusterSpec, nodes: list[Node]) -> None:
    for node in nodes:
        for port in node.ports:
            if _becomes_free(host, port):
                continue
            owner = host.port_owner(port)
            raise Busy(
                f"port {port} of {node.name} is in use by {owner or 'an outgoing connection'}",
                hint=f"stop that process, or destroy cluster {spec.name} and create it with another --base-port",
                details={"node": node.name, "port": port, "pid": owner.pid if owner else None},
            )


def _becomes_free(host: Host, port: int) -> bool:
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
def _undone_on_failure(run: _Start) -> Iterator[None]:
    try:
        yield
    except BaseException:
        run.progress.update("stopping the started nodes")
        with deferred_interrupts():
            _undo(run)
        raise


def _undo(run: _Start) -> None:
    """Stop the nodes that this call started, at first with SIGTERM, then with SIGKILL. Other nodes keep running.

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

    if not wait_until(all_ended, Deadline(_UNDO_S)):
        for identity in identities:
            run.host.signal(identity, signal.SIGKILL)
        wait_until(all_ended, Deadline(_UNDO_S))


def _spawn(run: _Start, node: Node) -> None:
    host, spec = run.host, run.spec
    run.attempted.append(node)
    write_record(host, spec, node, "running")
    offset = host.size(spec.log_path(node)) or 0
    environment = {key: os.environ[key] for key in _KEPT_ENVIRONMENT if key in os.environ}
    environment["LANG"] = "C.UTF-8"
    identity = host.spawn(
        java_command(spec, node, run.java.executable, archive_flags=run.archive_flags.get(kind_of(node), ())),
        cwd=spec.folder(node),
        env=environment,
        output=spec.console_path(node),
    )
    run.spawned.append(_Spawned(node, identity, offset))
    write_record(host, spec, node, "running", identity)


def _check_alive(run: _Start) -> None:
    """Raise OperationFailed with the end of the log if a started process has died."""
    for spawned in run.spawned:
        if not run.host.is_running(spawned.identity):
            excerpt = log_excerpt(run.host, run.spec, spawned.node, since=spawned.log_offset)
            raise OperationFailed(
                f"{spawned.node.name} of cluster {run.spec.name} did not start: its process ended",
                hint="\n".join(["the end of its log:", *excerpt]) if excerpt else "its log is empty",
                details={"node": spawned.node.name, "log": excerpt},
            )


def _too_slow(run: _Start, lacking: list[str]) -> TimedOut:
    """Return the error for a wait that timed out."""
    return TimedOut(
        f"cluster {run.spec.name} was not ready within {run.deadline.seconds:g} s: {'; '.join(lacking)}",
        hint=f"raise --timeout, or find the cause with `kctl cluster logs {run.spec.name}`",
    )


def _start_zookeepers(run: _Start, nodes: list[ZooKeeperNode]) -> None:
    for node in nodes:
        _spawn(run, node)
    expected = {node.id for node in run.expected if isinstance(node, ZooKeeperNode)}
    modes: dict[int, str | None] = {}

    def ready() -> bool:
        _check_alive(run)
        modes.update(health.ensemble_modes(run.spec))
        answering = {n for n, mode in modes.items() if mode is not None}
        run.progress.update("waiting for ZooKeeper", len(answering), len(run.expected))
        return expected <= answering and health.ensemble_serves(modes)

    if not wait_until(ready, run.deadline):
        silent = [f"zookeeper-{n} does not serve" for n, mode in modes.items() if mode is None]
        raise _too_slow(run, silent or ["ZooKeeper has no leader"])


def _start_brokers(run: _Start, nodes: list[BrokerNode]) -> None:
    if not run.broker_ids:
        return
    with health.registry(run.spec, timeout_s=max(run.deadline.left_s, 1.0)) as registry:
        check_registered_cluster(run.host, run.spec, registry.cluster_id(), nodes)
        _await_expired_sessions(run, registry, {node.id for node in nodes})
        for node in nodes:
            _spawn(run, node)
        _await_registered(run, registry)
        topics = _topics(registry)
    _await_answers(run)
    _await_topics(run, topics)
    _await_in_sync(run)


def _await_expired_sessions(run: _Start, registry: health.Registry, restarted_ids: set[int]) -> None:
    stale = restarted_ids

    def expired() -> bool:
        nonlocal stale
        with contextlib.suppress(ConnectionFailed):
            stale = restarted_ids & registry.broker_ids()
        if stale:
            listed = ", ".join(map(str, sorted(stale)))
            run.progress.update(f"waiting until the old session of broker {listed} has expired")
        return not stale

    if restarted_ids and not wait_until(expired, run.deadline):
        raise _too_slow(run, [f"broker {b} is still registered in ZooKeeper" for b in sorted(stale)])


def _await_registered(run: _Start, registry: health.Registry) -> None:
    missing = run.broker_ids
    controller: int | None = None

    def registered() -> bool:
        nonlocal missing, controller
        _check_alive(run)
        with contextlib.suppress(ConnectionFailed):
            missing = run.broker_ids - registry.broker_ids()
            controller = registry.controller_id()
        run.progress.update("waiting for the brokers", len(run.expected) - len(missing), len(run.expected))
        return not missing and controller is not None

    if not wait_until(registered, run.deadline):
        absent = [f"broker {b} has not registered" for b in sorted(missing)]
        raise _too_slow(run, absent or ["there is no controller"])


def _await_answers(run: _Start) -> None:
    unready: list[str] = []

    def answering() -> bool:
        _check_alive(run)
        unready[:] = health.unready_brokers(run.spec, run.broker_ids)
        return not unready

    run.progress.update("waiting until every broker knows the others", len(run.expected), len(run.expected))
    if not wait_until(answering, run.deadline):
        raise _too_slow(run, unready)


def _topics(registry: health.Registry) -> set[str]:
    with contextlib.suppress(ConnectionFailed):
        return registry.topics()
    return set()


def _await_topics(run: _Start, topics: set[str]) -> None:
    """Wait until restarted brokers know the topics. They learn of them a moment later than the other brokers."""

    def topics_known() -> bool:
        _check_alive(run)
        run.progress.update("waiting until every broker knows the topics")
        answers = health.ask_brokers(run.spec, run.broker_ids, topics=True)
        return all(answer.topics >= topics for answer in answers.values())

    if topics:
        wait_until(topics_known, run.deadline.at_most(_IN_SYNC_S))


def _await_in_sync(run: _Start) -> None:
    """Wait a few seconds for replicas to catch up. They take longer if much was written in the meantime."""

    def in_sync() -> bool:
        _check_alive(run)
        behind = health.behind(run.spec, run.broker_ids)
        if behind:
            run.progress.update(f"waiting until {behind} partitions are in sync again")
        return behind == 0

    wait_until(in_sync, run.deadline.at_most(_IN_SYNC_S))
