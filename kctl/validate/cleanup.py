"""Clean up after a run: start ZooKeeper servers and brokers, then delete the topics. Failures stay in the journal."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from kctl.base import journal
from kctl.base.deadline import Deadline
from kctl.base.journal import Journal
from kctl.base.outcomes import ItemResult
from kctl.errors import KctlError, OperationFailed
from kctl.protocol.client import connect
from kctl.protocol.target import Target
from kctl.restart.live_cluster import LiveCluster
from kctl.topics.delete import DeletedTopic, delete_topics
from kctl.validate.fault_injection import START_S, Breaker, FaultInjection
from kctl.validate.leftovers import DELETED, END, RunLeftovers, leftovers_of, unfinished

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient

_CONNECT_S = 60.0
_DELETE_S = 60.0
_RETRY_S = 1.0
ProgressLine = Callable[[str], None]


def clean_up(
    run_journal: Journal,
    injection: FaultInjection,
    target: Target,
    *,
    outcome: str,
    start_s: float = START_S,
    progress: ProgressLine | None = None,
) -> None:
    """Clean up the topics and nodes in the journal, and end the journal. start_s: start timeout, at least START_S.

    Raises OperationFailed if the clean-up is incomplete. The journal then stays open, and the next run retries.
    """
    remains = leftovers_of(run_journal.entries, name=str(run_journal.path))
    if remains.evidence is not None:
        # A .task file holds credentials; its process was killed before it read and deleted the file.
        for path in remains.evidence.glob("*/*.task"):
            path.unlink(missing_ok=True)
    report = progress or _silent
    failures = _repair_nodes(Breaker(injection, run_journal), remains, target, max(start_s, START_S), report)
    if remains.topics:
        report("deleting the topics of the validation")
        try:
            delete_all(run_journal, target, remains.topics)
        except KctlError as exc:
            failures.append(exc.message)
    if failures:
        raise OperationFailed(
            f"clean-up after the validation failed: {'; '.join(failures)}",
            hint="the next `kctl validate` of this cluster retries it; `kctl cluster status` shows what is running",
        )
    run_journal.append(END, outcome=outcome)


def _repair_nodes(
    breaker: Breaker, remains: RunLeftovers, target: Target, start_s: float, progress: ProgressLine
) -> list[str]:
    """Start all nodes again. Return the failures."""

    def responds(broker: int) -> bool:
        return _responds(target, remains, broker, start_s)

    failures = []
    servers = [node for node in remains.nodes if not node.isdigit()]
    if servers:  # ZooKeeper servers or controllers; first: brokers require them
        progress(f"starting {', '.join(servers)} again")
        try:
            breaker.start_servers(servers, start_s)
        except KctlError as exc:
            failures.append(f"{', '.join(servers)}: {exc.message}")
    for node, act in remains.nodes.items():
        if node.isdigit():
            progress(f"starting broker {node} again")
            try:
                breaker.repair(int(node), act, responds, start_s)
            except KctlError as exc:
                failures.append(f"{node}: {exc.message}")
    return failures


def _responds(target: Target, remains: RunLeftovers, broker: int, timeout_s: float) -> bool:
    """Return True if the broker responds within the timeout. Its address comes from the other brokers."""
    deadline = Deadline(timeout_s)
    with LiveCluster(target, list(remains.brokers.values())) as cluster:
        while not cluster.answers(broker):
            if deadline.expired:
                return False
            time.sleep(_RETRY_S)
    return True


def delete_all(run_journal: Journal, target: Target, topics: Sequence[str]) -> None:
    """Delete the topics that exist, over a new connection. Raises like `delete`, and ConnectionFailed."""
    with _connected(target) as client:
        delete(run_journal, client, topics)


def delete(run_journal: Journal, client: ClusterClient, topics: Sequence[str]) -> None:
    """Delete topics of the run.

    The controller decides whether a topic exists, because a broker that has just started may not know it yet. Raises
    OperationFailed if one still exists.
    """
    rows = [DeletedTopic(topic, ItemResult.WOULD_DELETE, None, None, None, None) for topic in topics]
    failures = []
    for row in delete_topics(client, rows, timeout_s=_DELETE_S):
        if row.result is ItemResult.DELETED:
            run_journal.append(DELETED, topic=row.topic)
        else:
            failures.append(f"topic {row.topic} could not be deleted: {row.error}")
    if failures:
        raise OperationFailed("; ".join(failures))


def _connected(target: Target) -> ClusterClient:
    """Return a connection, with retries: brokers that have just started do not respond at once."""
    deadline = Deadline(_CONNECT_S)
    while True:
        try:
            return connect(target, timeout_s=max(1.0, deadline.left_s))
        except KctlError:
            if deadline.expired:
                raise
            time.sleep(_RETRY_S)


def clean_earlier(
    injection: FaultInjection, target: Target, cluster_id: str, *, progress: ProgressLine, start_s: float = START_S
) -> list[RunLeftovers]:  # fmt: skip
    """Clean up after killed runs on this machine. Return their leftovers. Raises like `clean_up`."""
    cleaned_runs = []
    for path in unfinished(cluster_id):
        with journal.resume(path) as run_journal:
            remains = leftovers_of(run_journal.entries, name=str(path))
            if remains:
                progress(f"cleaning up after an earlier validation that was killed ({path.stem})")
            clean_up(run_journal, injection, target, outcome="killed", start_s=start_s, progress=progress)
            if remains:
                cleaned_runs.append(remains)
    return cleaned_runs


def _silent(_: str) -> None:
    pass
