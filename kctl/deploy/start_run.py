"""One start of a cluster in progress: its processes, and the waits that ZooKeeper and KRaft layouts share."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kctl.base.deadline import Deadline
from kctl.deploy import health
from kctl.deploy.host import Host
from kctl.deploy.layout import BrokerNode, ClusterSpec, Node
from kctl.deploy.logs import log_excerpt
from kctl.deploy.nodes import java_command, write_record
from kctl.deploy.process import ProcessIdentity
from kctl.deploy.runtime.java import Java
from kctl.deploy.waiting import ProgressReporter, wait_until
from kctl.errors import OperationFailed, TimedOut

_IN_SYNC_S = 10.0
# Variables that a JVM inherits: none that change how it runs (JAVA_TOOL_OPTIONS, KAFKA_OPTS …), and no secrets.
_INHERITED_VARIABLES = ("PATH", "HOME", "USER", "LOGNAME", "TMPDIR", "LD_LIBRARY_PATH")


@dataclass
class _Spawned:
    node: Node
    identity: ProcessIdentity
    log_offset: int


@dataclass
class StartRun:
    """One start in progress.

    expected: nodes that must be ready at the end. attempted: nodes that kctl tried to start. spawned: their processes.
    archive_flags: Java's options by the name of the node.
    """

    host: Host
    spec: ClusterSpec
    java: Java
    deadline: Deadline
    progress: ProgressReporter
    expected: Sequence[Node]
    archive_flags: Mapping[str, Sequence[str]]
    attempted: list[Node] = field(default_factory=list)
    spawned: list[_Spawned] = field(default_factory=list)

    @property
    def broker_ids(self) -> set[int]:
        return {node.id for node in self.expected if isinstance(node, BrokerNode)}


def spawn_node(run: StartRun, node: Node) -> None:
    host, spec = run.host, run.spec
    run.attempted.append(node)
    write_record(host, spec, node, "running")
    offset = host.size(spec.log_path(node)) or 0
    environment = {key: os.environ[key] for key in _INHERITED_VARIABLES if key in os.environ}
    environment["LANG"] = "C.UTF-8"
    identity = host.spawn(
        java_command(spec, node, run.java.executable, archive_flags=run.archive_flags.get(node.name, ())),
        cwd=spec.folder(node),
        env=environment,
        output=spec.console_path(node),
    )
    run.spawned.append(_Spawned(node, identity, offset))
    write_record(host, spec, node, "running", identity)


def check_alive(run: StartRun) -> None:
    """Raise OperationFailed with the end of the log if a started process has died."""
    for spawned in run.spawned:
        if not run.host.is_running(spawned.identity):
            excerpt = log_excerpt(run.host, run.spec, spawned.node, since=spawned.log_offset)
            raise OperationFailed(
                f"{spawned.node.name} of cluster {run.spec.name} did not start: its process ended",
                hint="\n".join(["the end of its log:", *excerpt]) if excerpt else "its log is empty",
                details={"node": spawned.node.name, "log": excerpt},
            )


def too_slow(run: StartRun, lacking: list[str], node: Node | None = None) -> TimedOut:
    """Return the error for a wait that timed out, with the end of a node's log, which a failed create removes."""
    hint = f"raise --timeout; if the cluster still exists, `kctl cluster logs {run.spec.name}` shows its logs"
    excerpt: list[str] = []
    for spawned in run.spawned:
        if spawned.node == node:
            excerpt = log_excerpt(run.host, run.spec, node, since=spawned.log_offset)
            hint = "\n".join([hint, f"the end of {node.name}'s log:", *excerpt])
    return TimedOut(
        f"cluster {run.spec.name} was not ready within {run.deadline.seconds:g} s: {'; '.join(lacking)}",
        hint=hint,
        details={"log": excerpt} if excerpt else {},
    )


def await_answers(run: StartRun) -> None:
    unready: dict[int, str] = {}

    def answering() -> bool:
        nonlocal unready
        check_alive(run)
        unready = health.unready_brokers(run.spec, run.broker_ids)
        return not unready

    run.progress.update("waiting until every broker knows the others", len(run.expected), len(run.expected))
    if not wait_until(answering, run.deadline):
        raise too_slow(run, list(unready.values()), run.spec.broker(next(iter(unready))))


def await_topics(run: StartRun, topics: set[str]) -> None:
    """Wait until restarted brokers know the topics. They learn of them a moment later than the other brokers."""

    def topics_known() -> bool:
        check_alive(run)
        run.progress.update("waiting until every broker knows the topics")
        answers = health.ask_brokers(run.spec, run.broker_ids, topics=True)
        return all(answer.topics >= topics for answer in answers.values())

    if topics:
        wait_until(topics_known, run.deadline.at_most(_IN_SYNC_S))


def await_in_sync(run: StartRun) -> None:
    """Wait up to 10 seconds for replicas to catch up. Replicas with more to copy catch up later; this is no error."""

    def in_sync() -> bool:
        check_alive(run)
        behind = health.behind(run.spec, run.broker_ids)
        if behind:
            run.progress.update(f"waiting until {behind} partitions are in sync again")
        return behind == 0

    wait_until(in_sync, run.deadline.at_most(_IN_SYNC_S))
