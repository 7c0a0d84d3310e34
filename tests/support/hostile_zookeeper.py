"""A ZooKeeper on loopback that behaves correctly up to one response, and then as a test chooses.

It has the nodes /, /brokers/ids/1 and /many. No real server announces 2 GB or sends byte by byte on demand.
"""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

SRVR = b"Zookeeper version: 3.8.4\nLatency min/avg/max: 0/0.0/0\nMode: standalone\nNode count: 5\n"
CONNECT, EXISTS, GET_DATA, GET_ACL, PING, GET_CHILDREN, CLOSE = 0, 3, 4, 6, 11, 12, -11
STAT = struct.pack(">qqqqiiiqiiq", 1, 1, 0, 0, 0, 0, 0, 0, 4, 1, 1)
NODES = {
    "/": ["brokers", "many"],
    "/brokers": ["ids"],
    "/brokers/ids": ["1"],
    "/brokers/ids/1": [],
    "/many": [f"n{number:07d}" for number in range(300_000)],
}

# Replaces a response. Arguments: the server, the socket, the correct frame.
Behavior = Callable[["HostileZooKeeper", socket.socket, bytes], None]


def _silent(server: HostileZooKeeper, _peer: socket.socket, _frame: bytes) -> None:
    server.over.wait()


def _drip(server: HostileZooKeeper, peer: socket.socket, frame: bytes) -> None:
    for byte in struct.pack(">i", 1000) + frame[4:] + bytes(990):
        peer.sendall(bytes([byte]))
        if server.over.wait(0.02):
            return


def _fast_drip(server: HostileZooKeeper, peer: socket.socket, _frame: bytes) -> None:
    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    peer.sendall(struct.pack(">i", 1_000_000))
    while not server.over.wait(0.0005):
        peer.sendall(b"\0")


def _huge_length(server: HostileZooKeeper, peer: socket.socket, _frame: bytes) -> None:
    peer.sendall(struct.pack(">i", 2**31 - 1))
    with suppress(OSError):
        while not server.over.is_set():
            peer.sendall(bytes(65536))


def _negative_length(server: HostileZooKeeper, peer: socket.socket, _frame: bytes) -> None:
    peer.sendall(struct.pack(">i", -7) + bytes(8))
    server.over.wait()


def _garbage(_server: HostileZooKeeper, peer: socket.socket, frame: bytes) -> None:
    peer.sendall(frame[:20] + b"\xff" * max(0, len(frame) - 20))


def _huge_count(server: HostileZooKeeper, peer: socket.socket, frame: bytes) -> None:
    body = frame[4:20] + b"\x7f\xff\xff\xff" * 4
    peer.sendall(struct.pack(">i", len(body)) + body)
    server.over.wait()


def _empty(_server: HostileZooKeeper, peer: socket.socket, _frame: bytes) -> None:
    peer.sendall(struct.pack(">i", 0))


def _wrong_xid(server: HostileZooKeeper, peer: socket.socket, frame: bytes) -> None:
    peer.sendall(frame[:4] + b"\x7a\x7a\x7a\x7a" + frame[8:])
    server.over.wait()


def _events(server: HostileZooKeeper, peer: socket.socket, _frame: bytes) -> None:
    """Send only unrequested events, as fast as the network allows."""
    event = struct.pack(">iqi", -1, 0, 0) + struct.pack(">iii", 1, 3, 0)
    with suppress(OSError):
        while not server.over.wait(0.0005):
            peer.sendall(struct.pack(">i", len(event)) + event)


def _close(_server: HostileZooKeeper, peer: socket.socket, _frame: bytes) -> None:
    peer.shutdown(socket.SHUT_RDWR)


def _close_in_the_middle(_server: HostileZooKeeper, peer: socket.socket, frame: bytes) -> None:
    peer.sendall(frame[: max(5, len(frame) // 2)])
    peer.shutdown(socket.SHUT_RDWR)


BEHAVIORS: dict[str, Behavior] = {
    "silent": _silent,
    "drip": _drip,
    "fast drip": _fast_drip,
    "huge length": _huge_length,
    "negative length": _negative_length,
    "garbage": _garbage,
    "huge count": _huge_count,
    "empty": _empty,
    "wrong xid": _wrong_xid,
    "events": _events,
    "close": _close,
    "close in the middle": _close_in_the_middle,
}


class HostileZooKeeper:
    """A server whose `behavior` begins at `stage`: a type of request, or CONNECT for the session itself."""

    def __init__(self, stage: int | None, behavior: str) -> None:
        self.stage, self.behavior = stage, BEHAVIORS[behavior]
        self.over = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"

    def serve(self) -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=self._talk, args=(self._listener.accept()[0],), daemon=True).start()

    def close(self) -> None:
        self.over.set()
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _talk(self, peer: socket.socket) -> None:
        with suppress(OSError, struct.error), peer:
            head = peer.recv(4, socket.MSG_WAITALL)
            if head == b"srvr":
                peer.sendall(SRVR)
                return
            peer.recv(struct.unpack(">i", head)[0], socket.MSG_WAITALL)
            self._give(CONNECT, peer, struct.pack(">iiqi16s?", 0, 5000, 7, 16, bytes(16), False))
            while True:
                request = peer.recv(struct.unpack(">i", peer.recv(4, socket.MSG_WAITALL))[0], socket.MSG_WAITALL)
                xid, kind = struct.unpack_from(">ii", request)
                if kind == CLOSE:
                    return
                path = request[12 : 12 + struct.unpack_from(">i", request, 8)[0]].decode() if len(request) > 8 else ""
                self._give(kind, peer, struct.pack(">iq", xid, 1) + _record(kind, path))

    def _give(self, kind: int, peer: socket.socket, body: bytes) -> None:
        frame = struct.pack(">i", len(body)) + body
        if kind == self.stage:
            self.behavior(self, peer, frame)
        else:
            peer.sendall(frame)


def _record(kind: int, path: str) -> bytes:
    """Return the error code and the record of the correct response."""
    if kind == PING:
        return bytes(4)
    if path not in NODES and not path.startswith("/many/"):
        return struct.pack(">i", -101)
    names = NODES.get(path, [])
    if kind == GET_DATA:
        return bytes(4) + struct.pack(">i", 4) + b"data" + STAT
    if kind == GET_ACL:
        return bytes(4) + struct.pack(">iii5si6s", 1, 31, 5, b"world", 6, b"anyone") + STAT
    if kind == GET_CHILDREN:
        rows = b"".join(struct.pack(">i", len(name)) + name.encode() for name in names)
        return bytes(4) + struct.pack(">i", len(names)) + rows + STAT
    return bytes(4) + STAT


@contextmanager
def hostile_zookeeper(stage: int | None = None, behavior: str = "silent") -> Iterator[HostileZooKeeper]:
    """Yield a running server."""
    server = HostileZooKeeper(stage, behavior)
    threading.Thread(target=server.serve, daemon=True).start()
    try:
        yield server
    finally:
        server.close()
