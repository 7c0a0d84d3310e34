"""The messages of ZooKeeper's protocol for reading (zookeeper.jute; org.apache.zookeeper.ZooDefs).

A frame is int32 size and body, all big-endian. A request is xid, type and record; an answer is xid, zxid, error and
record. Strings and buffers have an int32 length (-1: null), vectors an int32 count.
"""

from __future__ import annotations

from typing import NamedTuple

from kctl.base.binary_layout import BOOLEAN, INT32, INT64, Layout, fixed_bytes

PING_XID, EVENT_XID = -2, -1
EXISTS, GET_DATA, GET_ACL, PING, GET_CHILDREN, CLOSE = 3, 4, 6, 11, 12, -11  # GET_CHILDREN: with the stat (2)
NO_NODE, NO_AUTH = -101, -102

_REQUEST_HEADER = Layout(xid=INT32, type=INT32)
_RESPONSE_HEADER = Layout(xid=INT32, zxid=INT64, error=INT32)
_CONNECT_REQUEST = Layout(
    protocol_version=INT32,
    last_zxid_seen=INT64,
    timeout_ms=INT32,
    session_id=INT64,  # 0: a new session
    password_length=INT32,
    password=fixed_bytes(16),
    read_only=BOOLEAN,  # also connect to a server without a quorum
)
# The fields of Stat.
_STAT = Layout(
    czxid=INT64,
    mzxid=INT64,
    ctime=INT64,
    mtime=INT64,
    version=INT32,
    cversion=INT32,
    aversion=INT32,
    ephemeral_owner=INT64,
    data_length=INT32,
    num_children=INT32,
    pzxid=INT64,
)
_NAMES = {
    -1: "SystemError", -2: "RuntimeInconsistency", -3: "DataInconsistency", -4: "ConnectionLoss",
    -5: "MarshallingError", -6: "Unimplemented", -7: "OperationTimeout", -8: "BadArguments", -112: "SessionExpired",
    -115: "AuthFailed", -118: "SessionMoved", -119: "NotReadOnly", -124: "SessionClosedRequireAuth",
    -127: "ThrottledOp",
}  # fmt: skip


class BadAnswer(Exception):
    """The bytes do not follow the protocol."""


class Stat(NamedTuple):
    """The stat of a node, with the names of the protocol. Times are in ms since the epoch."""

    czxid: int
    mzxid: int
    ctime: int
    mtime: int
    version: int
    cversion: int
    aversion: int
    ephemeralOwner: int  # noqa: N815 - ZooKeeper's names
    dataLength: int  # noqa: N815
    numChildren: int  # noqa: N815
    pzxid: int


class AclEntry(NamedTuple):
    """permissions: bits, as org.apache.zookeeper.ZooDefs.Perms has them."""

    permissions: int
    scheme: str
    id: str


class Answer(NamedTuple):
    """The header of a response, and the offset of its record."""

    xid: int
    error: int
    reader: Reader


class Reader:
    """A reader of one frame. All methods raise BadAnswer at its end."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def unpack(self, layout: Layout) -> tuple[int, ...]:
        return layout.unpack(self._take(layout.size))

    def int32(self) -> int:
        return int(INT32.unpack(self._take(INT32.size))[0])

    def buffer(self) -> bytes | None:
        size = self.int32()
        return None if size < 0 else self._take(size)

    def text(self) -> str:
        return (self.buffer() or b"").decode("utf-8", "replace")

    def count(self) -> int:
        """Of a vector; each of its elements has four bytes at least."""
        count = max(0, self.int32())
        if count > (len(self._data) - self._at) // 4:
            raise BadAnswer("a count beyond the end")
        return count

    def stat(self) -> Stat:
        return Stat(*self.unpack(_STAT))

    def names(self) -> list[str]:
        return [self.text() for _ in range(self.count())]

    def acl(self) -> list[AclEntry]:
        return [AclEntry(self.int32(), self.text(), self.text()) for _ in range(self.count())]

    def _take(self, size: int) -> bytes:
        piece = self._data[self._at : self._at + size]
        if len(piece) < size:
            raise BadAnswer("cut short")
        self._at += size
        return piece


def connect_request(timeout_ms: int) -> bytes:
    """A new session, also with a server that has no quorum and only reads (ConnectRequest)."""
    return _framed(
        _CONNECT_REQUEST.encode(
            protocol_version=0, last_zxid_seen=0, timeout_ms=timeout_ms, session_id=0, password_length=16,
            password=bytes(16), read_only=True,
        )
    )  # fmt: skip


def session_timeout_ms(frame: bytes) -> int:
    """What the server granted (ConnectResponse); 0 when it does not give a session."""
    reader = Reader(frame)
    reader.int32()  # the protocol's version
    return reader.int32()


def request(xid: int, kind: int, path: str | None = None, *, watch: bool | None = None) -> bytes:
    """A whole frame. path: None for PING and CLOSE. watch: None where a request has no such flag."""
    body = _REQUEST_HEADER.pack(xid, kind)
    if path is not None:
        raw = path.encode()
        body += INT32.pack(len(raw)) + raw
    if watch is not None:
        body += b"\1" if watch else b"\0"
    return _framed(body)


def answer(frame: bytes) -> Answer:
    """The header of an answer. Raises BadAnswer."""
    reader = Reader(frame)
    xid, _zxid, error = reader.unpack(_RESPONSE_HEADER)
    return Answer(xid, error, reader)


def error_name(code: int) -> str:
    """Return KeeperException's name for an error code."""
    return _NAMES.get(code, f"error {code}")


def _framed(body: bytes) -> bytes:
    return INT32.pack(len(body)) + body
