"""Read ZooKeeper nodes: one node, its children, or a tree. All paths are relative to the chroot."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timezone
from itertools import islice
from typing import TYPE_CHECKING, Any

from kctl.base.suggestions import closest
from kctl.errors import NotAuthorized, NotFound, Reason, Refused, UsageError
from kctl.zookeeper.client import Children, NoAuth, NoNode
from kctl.zookeeper.decode import HIDDEN, decode, meaning

if TYPE_CHECKING:
    from kctl.zookeeper.client import ZooKeeper
    from kctl.zookeeper.wire import Stat

# org.apache.zookeeper.common.PathUtils.validatePath
_INVALID_CHARACTERS = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\uf8ff\ufff0-\uffff]")
_MAX_COMPARED = 10_000  # names compared for a suggestion
_MAX_IN_FLIGHT = 500  # requests
_PERMISSIONS = ((1, "read"), (2, "write"), (4, "create"), (8, "delete"), (16, "admin"))


@dataclass(frozen=True, slots=True)
class NodeStat:
    """The metadata of a node. Zxids and session ids are hexadecimal, as ZooKeeper prints them.

    session: the session that owns an ephemeral node; None for a persistent node.
    """

    path: str
    meaning: str | None
    data_bytes: int
    children: int
    created: datetime
    modified: datetime
    version: int
    children_version: int
    acl_version: int
    session: str | None
    czxid: str
    mzxid: str
    pzxid: str


@dataclass(frozen=True, slots=True)
class Node:
    """A node with its content.

    value: decoded, see kctl.zookeeper.decode. text: the raw data; None if it is not UTF-8 (see base64) or contains
    hidden secrets.
    """

    path: str
    meaning: str | None
    value: Any
    hidden: bool
    text: str | None
    base64: str | None
    stat: NodeStat


@dataclass(frozen=True, slots=True)
class ChildNode:
    """A node in a list or a tree. depth: 1 for the children of the requested node.

    readable: False if the ACL denies access; the details from the stat are then None.
    """

    name: str
    path: str
    depth: int
    meaning: str | None
    readable: bool
    children: int | None
    data_bytes: int | None
    ephemeral: bool | None
    version: int | None
    created: datetime | None
    modified: datetime | None


@dataclass(frozen=True, slots=True)
class Grant:
    """An entry of an ACL. id: for the scheme digest, the user with a hidden hash."""

    scheme: str
    id: str
    permissions: list[str]


def parse_path(text: str) -> str:
    """Return an absolute path without a trailing slash: "brokers/ids" becomes "/brokers/ids". Raises UsageError."""
    path = "/" + text.strip("/")
    parts = path.split("/")[1:]
    if path != "/" and any(part in {"", ".", ".."} for part in parts):
        raise UsageError(f"{text!r} is not a ZooKeeper path", hint="write it like /brokers/ids")
    if _INVALID_CHARACTERS.search(path):
        raise UsageError(f"{text!r} contains characters that ZooKeeper does not allow in paths")
    return path


def child_path(path: str, name: str) -> str:
    """Return the path of a child node."""
    return f"/{name}" if path == "/" else f"{path}/{name}"


@contextmanager
def translating_errors(client: ZooKeeper, path: str) -> Iterator[None]:
    """Turn NoNode into NotFound with similar paths as a hint, and NoAuth into NotAuthorized with a hint."""
    try:
        yield
    except NoNode:
        raise NotFound(
            f"ZooKeeper has no node {path}{_chroot_text(client)}", hint=_similar_paths(client, path)
        ) from None
    except NoAuth:
        raise NotAuthorized(
            f"not authorized to read the node {path}", hint=f"`kctl zk acl {path}` shows the ACL, if it is readable"
        ) from None


def _chroot_text(client: ZooKeeper) -> str:
    return f" below the chroot {client.chroot}" if client.chroot else ""


def _similar_paths(client: ZooKeeper, path: str) -> str | None:
    """Return a hint with the children of the deepest existing parent."""
    while path != "/":
        path, _, name = path.rpartition("/")
        path = path or "/"
        try:
            names = client.get_children(path)
        except NoNode:
            continue
        except NoAuth:
            return None
        names = names[:_MAX_COMPARED]
        similar = [child_path(path, each) for each in closest(name, names)]
        if similar:
            return f"did you mean {' or '.join(similar)}?"
        return f"children of {path}: {', '.join(sorted(names)[:12])}" if names else f"{path} has no children"
    return None


def read_stat(client: ZooKeeper, path: str) -> NodeStat:
    """Return the metadata of a node. Raises NotFound."""
    with translating_errors(client, path):
        stat = client.exists(path)
        if stat is None:
            raise NoNode(path)
    return _stat(path, stat)


def read_node(client: ZooKeeper, path: str, *, show_secrets: bool = False) -> Node:
    """Return a node with its decoded content. Raises NotFound, NotAuthorized."""
    with translating_errors(client, path):
        data, stat = client.get(path)
    return node_of(path, data, stat, show_secrets=show_secrets, chroot=client.chroot)


def node_of(path: str, data: bytes | None, stat: Stat, *, show_secrets: bool, chroot: str = "") -> Node:
    """Return a node from its raw data and stat. chroot: the node that the path is relative to. Pure."""
    data = data or b""
    content = decode(chroot + path, data, show_secrets=show_secrets)
    text = None
    if not content.hidden:
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError:
            text = None
    encoded = None if content.hidden or text is not None else base64.b64encode(data).decode("ascii")
    return Node(path, meaning(path), content.value, content.hidden, text, encoded, _stat(path, stat))


def _stat(path: str, stat: Stat) -> NodeStat:
    return NodeStat(
        path,
        meaning(path),
        stat.dataLength,
        stat.numChildren,
        _timestamp(stat.ctime),
        _timestamp(stat.mtime),
        stat.version,
        stat.cversion,
        stat.aversion,
        _hex(stat.ephemeralOwner) if stat.ephemeralOwner else None,
        _hex(stat.czxid),
        _hex(stat.mzxid),
        _hex(stat.pzxid),
    )


def _timestamp(time_ms: int) -> datetime:
    try:
        return datetime.fromtimestamp(time_ms / 1000, timezone.utc)
    except (ValueError, OverflowError, OSError):  # the server's clock was far off
        return datetime.fromtimestamp(0, timezone.utc)


def _hex(number: int) -> str:
    return f"0x{number & (2**64 - 1):x}"


def read_data(client: ZooKeeper, path: str, *, show_secrets: bool = False) -> bytes:
    """Return the raw data of a node. Raises NotFound, NotAuthorized; Refused if it contains a secret."""
    with translating_errors(client, path):
        data, _ = client.get(path)
    if decode(client.chroot + path, data, show_secrets=show_secrets).hidden:
        raise Refused(f"{path} contains a secret", hint="add --show-secrets to print it", reason=Reason.UNSAFE)
    return data


def list_children(client: ZooKeeper, path: str, *, limit: int) -> tuple[list[ChildNode], int]:
    """Return at most `limit` children sorted by name, and their total number. Raises NotFound, NotAuthorized."""
    with translating_errors(client, path):
        names = sorted(client.get_children(path), key=_natural)
    rows = _read_each(client, [child_path(path, name) for name in names[:limit]], 1)
    return [row for row, _ in rows], len(names)


def _natural(name: str) -> tuple[tuple[bool, int, str], ...]:
    """Return a sort key that orders numbers by value: partition 10 after partition 9."""
    parts = re.findall(r"[0-9]{1,18}|[^0-9]+|[0-9]+", name)
    return tuple((not part[0].isdigit(), int(part) if part.isascii() and part.isdigit() else 0, part) for part in parts)


def walk(client: ZooKeeper, path: str, *, depth: int, limit: int) -> tuple[list[ChildNode], bool]:
    """Return at most `limit` nodes below a node, parents first, and True if there are more.

    Reads level by level, with pipelined requests, and at most `limit` nodes per level. Raises NotFound, NotAuthorized.
    """
    with translating_errors(client, path):
        names = client.get_children(path)
    paths = _child_paths([(path, names)])
    children_of: dict[str, list[ChildNode]] = {}
    truncated = False
    for level in range(1, depth + 1):
        if not paths:
            break
        truncated = truncated or len(paths) > limit
        results = _read_each(client, paths[:limit], level)
        for row, _ in results:
            children_of.setdefault(row.path.rpartition("/")[0] or "/", []).append(row)
        paths = _child_paths([(row.path, children) for row, children in results])
    rows = list(islice(_parents_first(path, children_of), limit + 1))
    return rows[:limit], truncated or len(rows) > limit


def _child_paths(parents: Sequence[tuple[str, Sequence[str]]]) -> list[str]:
    return [child_path(path, name) for path, names in parents for name in sorted(names, key=_natural)]


def _parents_first(path: str, children_of: Mapping[str, Sequence[ChildNode]]) -> Iterator[ChildNode]:
    pending = list(reversed(children_of.get(path, ())))
    while pending:
        row = pending.pop()
        yield row
        pending += reversed(children_of.get(row.path, ()))


def _read_each(client: ZooKeeper, paths: Sequence[str], depth: int) -> list[tuple[ChildNode, list[str]]]:
    """Return each node with the names of its children. Requests are pipelined; nodes deleted meanwhile are skipped."""
    rows: list[tuple[ChildNode, list[str]]] = []
    for start in range(0, len(paths), _MAX_IN_FLIGHT):
        chunk = paths[start : start + _MAX_IN_FLIGHT]
        for path, result in zip(chunk, client.children_of_each(chunk), strict=True):
            if isinstance(result, NoAuth):
                rows.append((_unreadable_child(path, depth), []))
            elif isinstance(result, Children):
                rows.append((_child(path, depth, result.stat), result.names))
    return rows


def _unreadable_child(path: str, depth: int) -> ChildNode:
    # Since 3.8.4, ZooKeeper does not return the stat of unreadable nodes (ZOOKEEPER-2590).
    name = path.rpartition("/")[2]
    return ChildNode(name, path, depth, meaning(path), False, None, None, None, None, None, None)


def _child(path: str, depth: int, stat: Stat) -> ChildNode:
    return ChildNode(
        path.rpartition("/")[2],
        path,
        depth,
        meaning(path),
        True,
        stat.numChildren,
        stat.dataLength,
        stat.ephemeralOwner != 0,
        stat.version,
        _timestamp(stat.ctime),
        _timestamp(stat.mtime),
    )


def read_acl(client: ZooKeeper, path: str, *, show_secrets: bool = False) -> list[Grant]:
    """Return the ACL of a node. Raises NotFound, NotAuthorized."""
    with translating_errors(client, path):
        entries = client.get_acl(path)
    return [grant_of(each.scheme, each.id, each.permissions, show_secrets=show_secrets) for each in entries]


def grant_of(scheme: str, id_: str, permissions: int, *, show_secrets: bool) -> Grant:
    """Return an ACL entry from its wire format (org.apache.zookeeper.ZooDefs.Perms). Pure."""
    user, colon, _hash = id_.partition(":")
    if scheme == "digest" and colon and not show_secrets:
        id_ = f"{user}:{HIDDEN}"
    return Grant(scheme, id_, [word for bit, word in _PERMISSIONS if permissions & bit])
