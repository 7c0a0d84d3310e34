"""ZooKeeper protocol messages for reading nodes (zookeeper.jute; org.apache.zookeeper.ZooDefs).

A frame is an int32 size and a body, all big-endian. A request is xid, type and record; a response is xid, zxid, error
and record. Strings and buffers have an int32 length (-1: null), vectors an int32 count.
"""

from __future__ import annotations

from typing import NamedTuple

from kctl.base.binary_layout import BOOLEAN, INT32, INT64, Layout, fixed_bytes

PING_XID, EVENT_XID = -2, -1
EXISTS, GET_DATA, GET_ACL, PING, CLOSE = 3, 4, 6, 11, -11
GET_CHILDREN = 12  # getChildren2, which returns the stat
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
    read_only=BOOLEAN,  # accept a server without a quorum
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


class MalformedResponse(Exception):
    """The bytes do not follow the protocol."""


class Stat(NamedTuple):
    """The stat of a node, with the protocol's field names. Times are in ms since the epoch."""

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
    """An entry of an ACL. permissions: bits of org.apache.zookeeper.ZooDefs.Perms."""

    permissions: int
    scheme: str
    id: str


class Response(NamedTuple):
    """The header of a response, and a reader positioned at its record."""

    xid: int
    error: int
    reader: RecordReader


class RecordReader:
    """A reader of the fields of one frame, in order. All methods raise MalformedResponse at the end of the frame."""

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
        """Return the length of a vector. Raises MalformedResponse if the frame cannot hold so many 4-byte elements."""
        count = max(0, self.int32())
        if count > (len(self._data) - self._at) // 4:
            raise MalformedResponse("the count exceeds the frame")
        return count

    def stat(self) -> Stat:
        return Stat(*self.unpack(_STAT))

    def names(self) -> list[str]:
        return [self.text() for _ in range(self.count())]

    def acl(self) -> list[AclEntry]:
        return [AclEntry(self.int32(), self.text(), self.text()) for _ in range(self.count())]

    def _take(self, size: int) -> bytes:
        chunk = self._data[self._at : self._at + size]
        if len(chunk) < size:
            raise MalformedResponse("the frame is truncated")
        self._at += size
        return chunk


def connect_request(timeout_ms: int) -> bytes:
    """Return the frame that opens a session (ConnectRequest). Read-only servers without a quorum are accepted."""
    return _framed(
        _CONNECT_REQUEST.encode(
            protocol_version=0, last_zxid_seen=0, timeout_ms=timeout_ms, session_id=0, password_length=16,
            password=bytes(16), read_only=True,
        )
    )  # fmt: skip


def session_timeout_ms(frame: bytes) -> int:
    """Return the session timeout that the server granted (ConnectResponse); 0 if it rejected the session."""
    reader = RecordReader(frame)
    reader.int32()  # protocol version
    return reader.int32()


def request(xid: int, kind: int, path: str | None = None, *, watch: bool | None = None) -> bytes:
    """Return the frame of a request. path: None for PING and CLOSE. watch: None for requests without a watch flag."""
    body = _REQUEST_HEADER.pack(xid, kind)
    if path is not None:
        raw = path.encode()
        body += INT32.pack(len(raw)) + raw
    if watch is not None:
        body += b"\1" if watch else b"\0"
    return _framed(body)


def response(frame: bytes) -> Response:
    """Parse the header of a response. Raises MalformedResponse."""
    reader = RecordReader(frame)
    xid, _zxid, error = reader.unpack(_RESPONSE_HEADER)
    return Response(xid, error, reader)


def error_name(code: int) -> str:
    """Return the KeeperException name of an error code."""
    return _NAMES.get(code, f"error {code}")


def _framed(body: bytes) -> bytes:
    return INT32.pack(len(body)) + body
