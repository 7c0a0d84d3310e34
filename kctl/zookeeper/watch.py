"""What happens to a node and its children, as it happens.

ZooKeeper tells that something changed, once, and not what: it is read again, and a new watch is left with each reading.
Two changes shortly one after the other can so be seen as one; the state that is shown last is the state that there is.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, Literal

from kctl.errors import ConnectionFailed
from kctl.zookeeper.client import NoNode
from kctl.zookeeper.nodes import Node, child_path, node_of, reading

if TYPE_CHECKING:
    from kctl.zookeeper.client import ZooKeeper

ChangeEvent = Literal["is", "absent", "created", "changed", "deleted", "child added", "child removed"]
_LOOK_S = 0.5  # how soon Ctrl-C is noticed
_RECONNECT_POLL_S = 0.1


@dataclass(frozen=True, slots=True)
class Change:
    """time: when it was seen. path: of the node itself, or of the child. value, version: of the node as it is now."""

    time: datetime
    event: ChangeEvent
    path: str
    value: Any = None
    version: int | None = None
    children: int | None = None


@dataclass(frozen=True, slots=True)
class _Seen:
    node: Node | None
    children: frozenset[str]


def watch(
    client: ZooKeeper, path: str, *, limit_s: float | None, lost_after_s: float, show_secrets: bool = False
) -> Iterator[Change]:
    """First what is there («is» or «absent»), then each change until limit_s is over. A node may come and go.

    Raises NotAuthorized, and ConnectionFailed when there was no connection for lost_after_s.
    """
    until = None if limit_s is None else time.monotonic() + limit_s
    before = _look(client, path, show_secrets)
    yield _change("is" if before.node is not None else "absent", path, before)
    while until is None or time.monotonic() < until:
        if not client.wait_for_event(_LOOK_S if until is None else max(0.0, min(_LOOK_S, until - time.monotonic()))):
            continue
        after = _look_again(client, path, lost_after_s, show_secrets)
        yield from changes(path, before, after)
        before = after


def _look_again(client: ZooKeeper, path: str, lost_after_s: float, show_secrets: bool) -> _Seen:
    """`_look`, over a new connection where the one before was lost."""
    lost = time.monotonic() + lost_after_s
    while True:
        try:
            return _look(client, path, show_secrets)
        except ConnectionFailed:
            if time.monotonic() > lost:
                raise ConnectionFailed(
                    "the connection to ZooKeeper was lost",
                    hint="does the ensemble have a quorum? raise --timeout to wait longer",
                ) from None
        time.sleep(_RECONNECT_POLL_S)


def _look(client: ZooKeeper, path: str, show_secrets: bool) -> _Seen:
    """The node as it is now, with watches left that are events on the next change."""
    with reading(client, path):
        if client.exists(path, watch=True) is not None:
            try:
                data, stat = client.get(path)
                names = client.get_children(path, watch=True)
                return _Seen(
                    node_of(path, data, stat, show_secrets=show_secrets, chroot=client.chroot), frozenset(names)
                )
            except NoNode:  # gone meanwhile
                pass
    return _Seen(None, frozenset())


def changes(path: str, before: _Seen, after: _Seen) -> Iterator[Change]:
    """What lies between two looks. Pure, but for the time."""
    old, new = before.node, after.node
    if new is None:
        if old is not None:
            yield _change("deleted", path, after)
        return
    if old is None:
        yield _change("created", path, after)
    elif old.stat.czxid != new.stat.czxid:
        yield _change("deleted", path, _Seen(None, frozenset()))
        yield _change("created", path, after)
    elif old.stat.mzxid != new.stat.mzxid:
        yield _change("changed", path, after)
    for name in sorted(before.children - after.children):
        yield Change(_now(), "child removed", child_path(path, name))
    for name in sorted(after.children - before.children):
        yield Change(_now(), "child added", child_path(path, name))


def _change(event: ChangeEvent, path: str, seen: _Seen) -> Change:
    node = seen.node
    if node is None:
        return Change(_now(), event, path)
    value = node.value if node.value is not None else node.base64
    return Change(_now(), event, path, value, node.stat.version, len(seen.children))


def _now() -> datetime:
    return datetime.now(timezone.utc)
