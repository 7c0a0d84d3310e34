"""The messages of ZooKeeper's protocol for reading (zookeeper.jute; org.apache.zookeeper.ZooDefs).

A frame is int32 size and body, all big-endian. A request is xid, type and record; an answer is xid, zxid, error and
record. Strings and buffers have an int32 length (-1: null), vectors an int32 count.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

PING_XID, EVENT_XID = -2, -1
EXISTS, GET_DATA, GET_ACL, PING, GET_CHILDREN, CLOSE = 3, 4, 6, 11, 12, -11  # GET_CHILDREN: with the stat (2)
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
    return _framed(struct.pack(">iqiqi16s?", 0, 0, timeout_ms, 0, 16, bytes(16), True))


def session_timeout_ms(frame: bytes) -> int:
    """What the server granted (ConnectResponse); 0 when it does not give a session."""
    reader = Reader(frame)
    reader.int32()  # the protocol's version
    return reader.int32()


def request(xid: int, kind: int, path: str | None = None, *, watch: bool | None = None) -> bytes:
    """A whole frame. path: None for PING and CLOSE. watch: None where a request has no such flag."""
    body = struct.pack(">ii", xid, kind)
    if path is not None:
        raw = path.encode()
        body += _INT.pack(len(raw)) + raw
    if watch is not None:
        body += b"\1" if watch else b"\0"
    return _framed(body)


def answer(frame: bytes) -> Answer:
    """The header of an answer. Raises BadAnswer."""
    reader = Reader(frame)
    xid, _zxid, error = reader.unpack(_HEADER)
    return Answer(xid, error, reader)


def error_name(code: int) -> str:
    """Return KeeperException's name for an error code."""
    return _NAMES.get(code, f"error {code}")


def _framed(body: bytes) -> bytes:
    return _INT.pack(len(body)) + body
