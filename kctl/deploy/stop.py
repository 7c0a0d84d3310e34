"""Stop a cluster: all brokers before any ZooKeeper or dedicated controller.

A stopping broker moves its leaders (controlled shutdown), which requires the controller and ZooKeeper. So the other
brokers stop first, all together, and then the controller. Without ZooKeeper, a broker may hang in its shutdown; the
deadline ends the wait, and --force kills the process.

Combined KRaft nodes are controllers too, so all of them stop together. On a busy machine, one may be the last before a
controller has released it. It would wait for a majority of the voters that has ended, so it is killed after a while.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from kctl.base.deadline import Deadline
from kctl.deploy import health
from kctl.deploy.host import Host
from kctl.deploy.layout import BrokerNode, ClusterSpec
from kctl.deploy.nodes import NodeProcess, note_stopped, observe
from kctl.deploy.quorum import read_quorum
from kctl.deploy.waiting import NoProgress, ProgressReporter, wait_until
from kctl.errors import KctlError, TimedOut

DEFAULT_TIMEOUT_S = 60.0
_FORCED_S = 10.0
_METADATA_S = 10.0  # a KRaft leader waits up to 5 s for a successor
_REMIND_S = 3.0
_LAST_NODES_S = 20.0  # for combined nodes that are no majority any more


@dataclass(frozen=True, slots=True)
class StopResult:
    """The result. stopped: nodes that ended; already_stopped: did not run.

    killed: by --force after the deadline, or the last combined nodes, which cannot end without the others.
    """

    name: str
    stopped: tuple[str, ...]
    killed: tuple[str, ...]
    already_stopped: tuple[str, ...]
    duration_ms: int

    @property
    def changed(self) -> bool:
        return bool(self.stopped or self.killed)


@dataclass
class _Stop:
    host: Host
    spec: ClusterSpec
    deadline: Deadline
    force: bool
    progress: ProgressReporter
    killed: list[str]
    metadata_serves: bool = True
    majority: int = 0  # of combined voters, if this run stops all of them and they had a leader


def stop(
    host: Host,
    spec: ClusterSpec,
    *,
    only: Collection[str] | None = None,
    timeout_s: float = DEFAULT_TIMEOUT_S,
    force: bool = False,
    progress: ProgressReporter | None = None,
) -> StopResult:
    """Stop every node that runs, or those named in `only`.

    Raises TimedOut if a node does not end in time and `force` is not set. A node that is killed recovers its log at the
    next start; no record that all in-sync replicas acknowledged is lost.
    """
    began = time.monotonic()
    run = _Stop(host, spec, Deadline(timeout_s), force, progress or NoProgress(), [])
    before = [n for n in observe(host, spec) if only is None or n.node.name in only]
    running = [n for n in before if n.running]
    brokers = [n for n in running if isinstance(n.node, BrokerNode)]
    for process in before:
        note_stopped(host, spec, process.node)
    controller = None
    if spec.uses_kraft:
        run.metadata_serves = not brokers or _quorum_serves(spec, running)
        if only is None and run.metadata_serves and not spec.controllers:
            run.majority = len(spec.voters) // 2 + 1
    else:
        run.metadata_serves = not brokers or health.ensemble_serves(health.ensemble_modes(spec, timeout_s=0.5))
        controller = _controller(spec) if run.metadata_serves and len(brokers) > 1 else None
    _end(run, [n for n in brokers if n.node.id != controller])
    _end(run, [n for n in brokers if n.node.id == controller])
    # Without clients, these stop at once. Give them time even if the brokers used up the deadline.
    run.deadline = Deadline(max(run.deadline.left_s, _METADATA_S))
    _end(run, [n for n in running if not isinstance(n.node, BrokerNode)])
    return StopResult(
        name=spec.name,
        stopped=tuple(n.node.name for n in running if n.node.name not in run.killed),
        killed=tuple(run.killed),
        already_stopped=tuple(n.node.name for n in before if not n.running),
        duration_ms=round((time.monotonic() - began) * 1000),
    )


def _quorum_serves(spec: ClusterSpec, running: Sequence[NodeProcess]) -> bool:
    quorum = read_quorum(spec, [n.node.id for n in running])
    return quorum is not None and quorum.leader_id is not None


def _controller(spec: ClusterSpec) -> int | None:
    try:
        with health.registry(spec, timeout_s=2.0) as registry:
            return registry.controller_id()
    except KctlError:
        return None


def _end(run: _Stop, nodes: Sequence[NodeProcess]) -> None:
    """Signal all of these processes at once, and wait until they end."""
    if not nodes:
        return
    remaining = list(nodes)
    reminded = Deadline(0)
    last_nodes: Deadline | None = None

    def ended() -> bool:
        nonlocal reminded, last_nodes
        remaining[:] = [n for n in remaining if n.identity is not None and run.host.is_running(n.identity)]
        if remaining and len(remaining) < run.majority:
            last_nodes = last_nodes or Deadline(_LAST_NODES_S)
            if last_nodes.expired and not run.killed:
                _signal(run, remaining, signal.SIGKILL)
                run.killed.extend(n.node.name for n in remaining)
        if remaining and reminded.expired:
            # Repeat the signal after a while: the first one may have come before the JVM handled signals. A second one
            # is harmless.
            _signal(run, remaining, signal.SIGTERM)
            _signal(run, remaining, signal.SIGCONT)  # a paused process handles SIGTERM only after it resumes
            reminded = Deadline(_REMIND_S)
        run.progress.update(
            f"stopping {', '.join(n.node.name for n in remaining)}", len(nodes) - len(remaining), len(nodes)
        )
        return not remaining

    if not wait_until(ended, run.deadline, every_s=0.05):
        _force(run, remaining)


def _signal(run: _Stop, nodes: Sequence[NodeProcess], number: signal.Signals) -> None:
    for process in nodes:
        assert process.identity is not None
        run.host.signal(process.identity, number)


def _force(run: _Stop, survivors: list[NodeProcess]) -> None:
    names = ", ".join(n.node.name for n in survivors)
    if not run.force:
        if run.spec.uses_kraft and any(isinstance(n.node, BrokerNode) for n in survivors):
            # In a combined layout, the quorum may have lost its majority during this stop.
            run.metadata_serves = _quorum_serves(run.spec, [n for n in observe(run.host, run.spec) if n.running])
        service = (
            "the metadata quorum has no active controller, and a broker waits for one to finish its shutdown"
            if run.spec.uses_kraft
            else "ZooKeeper does not respond, and a broker waits for it"
        )
        why = "" if run.metadata_serves else f": {service}"
        retry = "raise --timeout" if run.metadata_serves else f"run `kctl cluster start {run.spec.name}` first"
        raise TimedOut(
            f"{names} of cluster {run.spec.name} did not stop within {run.deadline.seconds:g} s{why}",
            hint=f"{retry}, or kill the processes with `kctl cluster stop {run.spec.name} --force`",
            details={"running": [n.node.name for n in survivors]},
        )
    _signal(run, survivors, signal.SIGKILL)
    run.killed.extend(n.node.name for n in survivors)
    if not wait_until(lambda: not _alive(run, survivors), Deadline(_FORCED_S)):
        raise TimedOut(f"{names} of cluster {run.spec.name} did not end after SIGKILL")


def _alive(run: _Stop, nodes: Sequence[NodeProcess]) -> bool:
    return any(n.identity is not None and run.host.is_running(n.identity) for n in nodes)
