"""Watch a node and its children.

A ZooKeeper watch fires once and does not report what changed, so kctl reads the node again and sets a new watch. Two
changes in quick succession can appear as one; the last state that is shown is the current one.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, Literal

from kctl.errors import ConnectionFailed, ConnectionReason
from kctl.zookeeper.client import NoNode
from kctl.zookeeper.nodes import Node, child_path, node_of, translating_errors

if TYPE_CHECKING:
    from kctl.zookeeper.client import ZooKeeper

ChangeEvent = Literal["is", "absent", "created", "changed", "deleted", "child added", "child removed"]
_POLL_S = 0.5  # bounds the reaction to Ctrl-C
_RECONNECT_POLL_S = 0.1


@dataclass(frozen=True, slots=True)
class NodeChange:
    """A change to a node or its children.

    time: when kctl detected the change. path: of the node or child. value, version: of the node, after the change.
    """

    time: datetime
    event: ChangeEvent
    path: str
    value: Any = None
    version: int | None = None
    children: int | None = None


@dataclass(frozen=True, slots=True)
class _NodeSnapshot:
    """A node (None: it does not exist) and the names of its children."""

    node: Node | None
    children: frozenset[str]


def watch(
    client: ZooKeeper, path: str, *, limit_s: float | None, lost_after_s: float, show_secrets: bool = False
) -> Iterator[NodeChange]:
    """Yield the current state ("is" or "absent"), then each change until limit_s has passed.

    The node may be created and deleted during the watch. Raises NotAuthorized, and ConnectionFailed after lost_after_s
    without a connection.
    """
    until = None if limit_s is None else time.monotonic() + limit_s
    before = _take_snapshot(client, path, show_secrets)
    yield _change("is" if before.node is not None else "absent", path, before)
    while until is None or time.monotonic() < until:
        if not client.wait_for_event(_POLL_S if until is None else max(0.0, min(_POLL_S, until - time.monotonic()))):
            continue
        after = _retry_snapshot(client, path, lost_after_s, show_secrets)
        yield from changes(path, before, after)
        before = after


def _retry_snapshot(client: ZooKeeper, path: str, lost_after_s: float, show_secrets: bool) -> _NodeSnapshot:
    """Take a snapshot; if the connection is lost, retry over a new one."""
    deadline = time.monotonic() + lost_after_s
    while True:
        try:
            return _take_snapshot(client, path, show_secrets)
        except ConnectionFailed:
            if time.monotonic() > deadline:
                raise ConnectionFailed(
                    "the connection to ZooKeeper was lost",
                    hint="check that the ensemble has a quorum (kctl zk stat), or raise --timeout to wait longer",
                    reason=ConnectionReason.CONNECTION_CLOSED,
                ) from None
        time.sleep(_RECONNECT_POLL_S)


def _take_snapshot(client: ZooKeeper, path: str, show_secrets: bool) -> _NodeSnapshot:
    """Read the node and set watches for the next change."""
    with translating_errors(client, path):
        if client.exists(path, watch=True) is not None:
            try:
                data, stat = client.get(path)
                names = client.get_children(path, watch=True)
                return _NodeSnapshot(
                    node_of(path, data, stat, show_secrets=show_secrets, chroot=client.chroot), frozenset(names)
                )
            except NoNode:  # deleted meanwhile
                pass
    return _NodeSnapshot(None, frozenset())


def changes(path: str, before: _NodeSnapshot, after: _NodeSnapshot) -> Iterator[NodeChange]:
    """Yield the changes between two snapshots. Pure except for the time."""
    old, new = before.node, after.node
    if new is None:
        if old is not None:
            yield _change("deleted", path, after)
        return
    if old is None:
        yield _change("created", path, after)
    elif old.stat.czxid != new.stat.czxid:
        yield _change("deleted", path, _NodeSnapshot(None, frozenset()))
        yield _change("created", path, after)
    elif old.stat.mzxid != new.stat.mzxid:
        yield _change("changed", path, after)
    for name in sorted(before.children - after.children):
        yield NodeChange(_now(), "child removed", child_path(path, name))
    for name in sorted(after.children - before.children):
        yield NodeChange(_now(), "child added", child_path(path, name))


def _change(event: ChangeEvent, path: str, snapshot: _NodeSnapshot) -> NodeChange:
    node = snapshot.node
    if node is None:
        return NodeChange(_now(), event, path)
    value = node.value if node.value is not None else node.base64
    return NodeChange(_now(), event, path, value, node.stat.version, len(snapshot.children))


def _now() -> datetime:
    return datetime.now(timezone.utc)
