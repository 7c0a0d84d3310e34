"""The read messages of the ZooKeeper protocol (zookeeper.jute; org.apache.zookeeper.ZooDefs).

A frame is an int32 size and a body, all big-endian. A request is xid, type and record; a response is xid, zxid, error
and record. Strings and buffers have an int32 length (-1: null), vectors an int32 count.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

PING_XID, EVENT_XID = -2, -1
EXISTS, GET_DATA, GET_ACL, PING, GET_CHILDREN, CLOSE = (
    3,
    4,
    6,
    11,
    12,
    -11,
)  # GET_CHILDREN is getChildren2, which returns the stat
NO_NODE, NO_AUTH = -101, -102

_INT = struct.Struct(">i")
_HEADER = struct.Struct(">iqi")
_STAT = struct.Struct(">qqqqiiiqiiq")
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
    """Read the fields of one frame in order. All methods raise MalformedResponse at the end of the frame."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def unpack(self, layout: struct.Struct) -> tuple[int, ...]:
        return layout.unpack(self._take(layout.size))

    def int32(self) -> int:
        return self.unpack(_INT)[0]

    def buffer(self) -> bytes | None:
        size = self.int32()
        return None if size < 0 else self._take(size)

    def text(self) -> str:
        return (self.buffer() or b"").decode("utf-8", "replace")

    def count(self) -> int:
        """Return the length of a vector. Raises if the frame cannot hold that many elements of 4 bytes."""
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
    return _framed(struct.pack(">iqiqi16s?", 0, 0, timeout_ms, 0, 16, bytes(16), True))


def session_timeout_ms(frame: bytes) -> int:
    """Return the session timeout that the server granted (ConnectResponse); 0 if it refused the session."""
    reader = RecordReader(frame)
    reader.int32()  # protocol version
    return reader.int32()


def request(xid: int, kind: int, path: str | None = None, *, watch: bool | None = None) -> bytes:
    """Return the frame of a request. path: None for PING and CLOSE. watch: None for requests without a watch flag."""
    body = struct.pack(">ii", xid, kind)
    if path is not None:
        raw = path.encode()
        body += _INT.pack(len(raw)) + raw
    if watch is not None:
        body += b"\1" if watch else b"\0"
    return _framed(body)


def response(frame: bytes) -> Response:
    """Parse the header of a response. Raises MalformedResponse."""
    reader = RecordReader(frame)
    xid, _zxid, error = reader.unpack(_HEADER)
    return Response(xid, error, reader)


def error_name(code: int) -> str:
    """Return the KeeperException name of an error code."""
    return _NAMES.get(code, f"error {code}")


def _framed(body: bytes) -> bytes:
    return _INT.pack(len(body)) + body
