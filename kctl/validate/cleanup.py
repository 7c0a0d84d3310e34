"""Taking back what a run made and broke: ZooKeepers and brokers first, then its topics. What fails stays noted."""

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
from kctl.validate.leftovers import DELETED, END, Left, left_by, unfinished
from kctl.validate.means import START_S, Breaker, Means

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient

_CONNECT_S = 60.0
_DELETE_S = 60.0
_AGAIN_S = 1.0
Told = Callable[[str], None]


def clean_up(
    held: Journal, means: Means, target: Target, *, outcome: str, start_s: float = START_S, told: Told | None = None
) -> None:
    """Take back all that the journal says is left, and end it. Harmless when nothing is. start_s: for a
    start, and never less than START_S.

    Raises OperationFailed with what could not be taken back: the journal is not ended then, and the next run tries.
    """
    left = left_by(held.entries, name=str(held.path))
    if left.evidence is not None:
        for path in left.evidence.glob("*/*.task"):  # has the login; its reader was killed before it took it
            path.unlink(missing_ok=True)

    tell = told or _silent
    failures = _mend(Breaker(means, held), left, target, max(start_s, START_S), tell)
    if left.topics:
        tell("deleting the topics of the validation")
        try:
            delete_all(held, target, left.topics)
        except KctlError as exc:
            failures.append(exc.message)
    if failures:
        raise OperationFailed(
            f"not all is as it was before the validation: {'; '.join(failures)}",
            hint="the next kctl validate of this cluster tries it again; kctl cluster status tells what runs",
        )
    held.append(END, outcome=outcome)


def _mend(breaker: Breaker, left: Left, target: Target, start_s: float, told: Told) -> list[str]:
    """Bring back all nodes; what could not be."""

    def answers(broker: int) -> bool:
        return _answers(target, left, broker, start_s)

    failures = []
    zookeepers = [node for node in left.nodes if not node.isdigit()]
    if zookeepers:  # first: brokers need them
        told(f"starting {', '.join(zookeepers)} again")
        try:
            breaker.start_zookeepers(start_s, zookeepers)
        except KctlError as exc:
            failures.append(f"{', '.join(zookeepers)}: {exc.message}")
    for node, act in left.nodes.items():
        if node.isdigit():
            told(f"starting broker {node} again")
            try:
                breaker.mend(int(node), act, answers, start_s)
            except KctlError as exc:
                failures.append(f"{node}: {exc.message}")
    return failures


def _answers(target: Target, left: Left, broker: int, timeout_s: float) -> bool:
    """Does it, by then? The others are asked for its address."""
    deadline = Deadline(timeout_s)
    with LiveCluster(target, list(left.brokers.values())) as cluster:
        while not cluster.answers(broker):
            if deadline.expired:
                return False
            time.sleep(_AGAIN_S)
    return True


def delete_all(held: Journal, target: Target, topics: Sequence[str]) -> None:
    """Delete them as far as they exist, with a client of its own. Raises as `delete`, and ConnectionFailed."""
    with _connected(target) as client:
        delete(held, client, topics)


def delete(held: Journal, client: ClusterClient, topics: Sequence[str]) -> None:
    """Topics of the run, as far as they exist: the controller says whether they do. A broker that was started a moment
    ago may not know of them yet. Raises OperationFailed when one is still there.
    """
    rows = [DeletedTopic(topic, ItemResult.WOULD_DELETE, None, None, None, None) for topic in topics]
    failures = []
    for row in delete_topics(client, rows, timeout_s=_DELETE_S):
        if row.result is ItemResult.DELETED:
            held.append(DELETED, topic=row.topic)
        else:
            failures.append(f"topic {row.topic} could not be deleted: {row.error}")
    if failures:
        raise OperationFailed("; ".join(failures))


def _connected(target: Target) -> ClusterClient:
    """Brokers that were just started do not answer at once."""
    deadline = Deadline(_CONNECT_S)
    while True:
        try:
            return connect(target, timeout_s=max(1.0, deadline.left_s))
        except KctlError:
            if deadline.expired:
                raise
            time.sleep(_AGAIN_S)


def clean_earlier(
    means: Means, target: Target, cluster_id: str, *, told: Told, start_s: float = START_S
) -> list[Left]:  # fmt: skip
    """Take back what earlier runs of this machine left that were killed; what that was. Raises as `clean_up`."""
    cleaned = []
    for path in unfinished(cluster_id):
        with journal.resume(path) as held:
            left = left_by(held.entries, name=str(path))
            if left:
                told(f"an earlier validation was ended before it had cleaned up ({path.stem}): doing that now")
            clean_up(held, means, target, outcome="killed", start_s=start_s, told=told)
            if left:
                cleaned.append(left)
    return cleaned


def _silent(_: str) -> None:
    pass
