"""Nodes of ZooKeeper: read one, list what is below it, walk a tree. All paths are relative to the chroot."""

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
from kctl.errors import NotAuthorized, NotFound, Refused, UsageError
from kctl.zookeeper.client import Children, NoAuth, NoNode
from kctl.zookeeper.decode import HIDDEN, decode, meaning

if TYPE_CHECKING:
    from kctl.zookeeper.client import ZooKeeper
    from kctl.zookeeper.wire import Stat

# org.apache.zookeeper.common.PathUtils.validatePath
_NOT_IN_PATHS = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\uf8ff\ufff0-\uffff]")
_MAX_COMPARED = 10_000  # names, for a hint
_AT_ONCE = 500  # requests that wait for their answers
_GRANTS = ((1, "read"), (2, "write"), (4, "create"), (8, "delete"), (16, "admin"))


@dataclass(frozen=True, slots=True)
class NodeStat:
    """What ZooKeeper keeps about a node. Zxids and session ids are hexadecimal, as ZooKeeper writes them.

    session: of the client whose end deletes the node; None for one that stays.
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
    """A node with its content. value: decoded, see kctl.zookeeper.decode. text: the data as it is; None when it is no
    UTF-8 (then base64 has it) and when something of it is hidden.
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
    """A node in a list or a tree. depth: below the node that was named, whose children have 1.

    readable: False where its ACL denies it; what it is like is then not known.
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
    """Who may do what with a node. id: of `digest` only the user, the hash is hidden."""

    scheme: str
    id: str
    permissions: list[str]


def parse_path(text: str) -> str:
    """An absolute path without a slash at its end; «brokers/ids» is «/brokers/ids». Raises UsageError."""
    path = "/" + text.strip("/")
    parts = path.split("/")[1:]
    if path != "/" and any(part in {"", ".", ".."} for part in parts):
        raise UsageError(f"{text!r} is not a path in ZooKeeper", hint="write it like /brokers/ids")
    if _NOT_IN_PATHS.search(path):
        raise UsageError(f"{text!r}: ZooKeeper has no such characters in paths")
    return path


def child_path(path: str, name: str) -> str:
    return f"/{name}" if path == "/" else f"{path}/{name}"


@contextmanager
def reading(client: ZooKeeper, path: str) -> Iterator[None]:
    """Turns errors about a node into NotFound, with what is there instead, and NotAuthorized with a hint."""
    try:
        yield
    except NoNode:
        raise NotFound(f"ZooKeeper has no node {path}{_below(client)}", hint=_nearby(client, path)) from None
    except NoAuth:
        raise NotAuthorized(
            f"not authorized to read the node {path}", hint="kctl zk acl shows who may, where that may be read"
        ) from None


def _below(client: ZooKeeper) -> str:
    return f" below the chroot {client.chroot}" if client.chroot else ""


def _nearby(client: ZooKeeper, path: str) -> str | None:
    """What the deepest parent that exists has instead."""
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
        meant = [child_path(path, each) for each in closest(name, names)]
        if meant:
            return f"did you mean {' or '.join(meant)}?"
        return f"{path} has {', '.join(sorted(names)[:12])}" if names else f"{path} has no children"
    return None


def read_stat(client: ZooKeeper, path: str) -> NodeStat:
    """What ZooKeeper keeps about a node. Raises NotFound."""
    with reading(client, path):
        stat = client.exists(path)
        if stat is None:
            raise NoNode(path)
    return _stat(path, stat)


def read_node(client: ZooKeeper, path: str, *, show_secrets: bool = False) -> Node:
    """A node with its decoded content. Raises NotFound, NotAuthorized."""
    with reading(client, path):
        data, stat = client.get(path)
    return node_of(path, data, stat, show_secrets=show_secrets, chroot=client.chroot)


def node_of(path: str, data: bytes | None, stat: Stat, *, show_secrets: bool, chroot: str = "") -> Node:
    """A node from what ZooKeeper gave. chroot: what the path is below; it may be any node. Pure."""
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
        _moment(stat.ctime),
        _moment(stat.mtime),
        stat.version,
        stat.cversion,
        stat.aversion,
        _hex(stat.ephemeralOwner) if stat.ephemeralOwner else None,
        _hex(stat.czxid),
        _hex(stat.mzxid),
        _hex(stat.pzxid),
    )


def _moment(time_ms: int) -> datetime:
    try:
        return datetime.fromtimestamp(time_ms / 1000, timezone.utc)
    except (ValueError, OverflowError, OSError):  # a clock that was far off
        return datetime.fromtimestamp(0, timezone.utc)


def _hex(number: int) -> str:
    return f"0x{number & (2**64 - 1):x}"


def read_data(client: ZooKeeper, path: str, *, show_secrets: bool = False) -> bytes:
    """A node's bytes as they are. Raises NotFound, NotAuthorized; Refused when they hold a secret to be hidden."""
    with reading(client, path):
        data, _ = client.get(path)
    if decode(client.chroot + path, data, show_secrets=show_secrets).hidden:
        raise Refused(f"{path} holds a secret", hint="give --show-secrets as well")
    return data


def list_children(client: ZooKeeper, path: str, *, limit: int) -> tuple[list[ChildNode], int]:
    """The children of a node by name, `limit` at most, and how many there are. Raises NotFound, NotAuthorized."""
    with reading(client, path):
        names = sorted(client.get_children(path), key=_natural)
    rows = _ask_each(client, [child_path(path, name) for name in names[:limit]], 1)
    return [row for row, _ in rows], len(names)


def _natural(name: str) -> tuple[tuple[bool, int, str], ...]:
    """Numbers by their value: partition 10 behind 9."""
    parts = re.findall(r"[0-9]{1,18}|[^0-9]+|[0-9]+", name)
    return tuple((not part[0].isdigit(), int(part) if part.isascii() and part.isdigit() else 0, part) for part in parts)


def walk(client: ZooKeeper, path: str, *, depth: int, limit: int) -> tuple[list[ChildNode], bool]:
    """The nodes below one, parents first, and whether `limit` of them ended it. Raises NotFound, NotAuthorized.

    Level by level, with many requests on their way at once. Of each level the first `limit` are enough.
    """
    with reading(client, path):
        names = client.get_children(path)
    paths = _below_each([(path, names)])
    below: dict[str, list[ChildNode]] = {}
    cut = False
    for level in range(1, depth + 1):
        if not paths:
            break
        cut = cut or len(paths) > limit
        answers = _ask_each(client, paths[:limit], level)
        for row, _ in answers:
            below.setdefault(row.path.rpartition("/")[0] or "/", []).append(row)
        paths = _below_each([(row.path, children) for row, children in answers])
    found = list(islice(_parents_first(path, below), limit + 1))
    return found[:limit], cut or len(found) > limit


def _below_each(parents: Sequence[tuple[str, Sequence[str]]]) -> list[str]:
    return [child_path(path, name) for path, names in parents for name in sorted(names, key=_natural)]


def _parents_first(path: str, below: Mapping[str, Sequence[ChildNode]]) -> Iterator[ChildNode]:
    pending = list(reversed(below.get(path, ())))
    while pending:
        row = pending.pop()
        yield row
        pending += reversed(below.get(row.path, ()))


def _ask_each(client: ZooKeeper, paths: Sequence[str], depth: int) -> list[tuple[ChildNode, list[str]]]:
    """Nodes with the names of their children, many requests on their way at once. One that went away is left out."""
    found: list[tuple[ChildNode, list[str]]] = []
    for start in range(0, len(paths), _AT_ONCE):
        chunk = paths[start : start + _AT_ONCE]
        for path, answer in zip(chunk, client.children_of_each(chunk), strict=True):
            if isinstance(answer, NoAuth):
                found.append((_closed(path, depth), []))
            elif isinstance(answer, Children):
                found.append((_child(path, depth, answer.stat), answer.names))
    return found


def _closed(path: str, depth: int) -> ChildNode:
    # Since 3.8.4 not even its stat is told (ZOOKEEPER-2590).
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
        _moment(stat.ctime),
        _moment(stat.mtime),
    )


def read_acl(client: ZooKeeper, path: str, *, show_secrets: bool = False) -> list[Grant]:
    """Who may do what with a node. Raises NotFound, NotAuthorized."""
    with reading(client, path):
        entries = client.get_acl(path)
    return [grant_of(each.scheme, each.id, each.permissions, show_secrets=show_secrets) for each in entries]


def grant_of(scheme: str, id_: str, permissions: int, *, show_secrets: bool) -> Grant:
    """An entry of an ACL as ZooKeeper has it (org.apache.zookeeper.ZooDefs.Perms). Pure."""
    user, colon, _hash = id_.partition(":")
    if scheme == "digest" and colon and not show_secrets:
        id_ = f"{user}:{HIDDEN}"
    return Grant(scheme, id_, [word for bit, word in _GRANTS if permissions & bit])
