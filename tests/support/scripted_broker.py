"""A server on loopback that answers Kafka requests by a script: byte by byte, as no real broker can be made to."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from kctl.protocol.codes import ApiKey

API_VERSIONS = b"\0\0" + struct.pack(">i", 4) + b"\0\x03\0\0\0\x0c\0\x12\0\0\0\x04\0\x11\0\0\0\x01\0\x24\0\0\0\x02"
METADATA = b"\0\0\0\0\0" + b"\x02" + b"\0\0\0\x01\x02h\0\0\x23\x84\0\0" + b"\0" + b"\0\0\0\x01" + b"\x01" + b"\0"

# (API key, correlation id, body of a request) → the bytes of the response; None closes the connection.
Script = Callable[[int, int, bytes], bytes | None]


def frame(correlation_id: int, body: bytes) -> bytes:
    """Return a response."""
    return struct.pack(">ii", len(body) + 4, correlation_id) + body


@contextmanager
def server(script: Script) -> Iterator[str]:
    """Yield "host:port" of a server that answers requests by `script`, one thread for each connection."""

    def serve(peer: socket.socket) -> None:
        with suppress(OSError, struct.error), peer:
            while True:
                (size,) = struct.unpack(">i", peer.recv(4, socket.MSG_WAITALL))
                request = peer.recv(size, socket.MSG_WAITALL) if 0 < size < 10_000 else b""
                key, _, correlation_id, length = struct.unpack(">hhih", request[:10])
                answer = script(key, correlation_id, request[10 + length :])
                if answer is None:
                    return
                peer.sendall(answer)

    def accept(listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=accept, args=(listener,), daemon=True).start()
        yield f"127.0.0.1:{listener.getsockname()[1]}"


def healthy(key: int, correlation_id: int, _body: bytes) -> bytes | None:
    """Answer ApiVersions and Metadata, and close the connection on other requests."""
    answers: dict[int, bytes] = {ApiKey.API_VERSIONS: API_VERSIONS, ApiKey.METADATA: METADATA}
    return frame(correlation_id, answers[key]) if key in answers else None


def instead(api_key: int, answer: Callable[[int], bytes | None]) -> Script:
    """Return a script that answers one API by a function of the correlation id, and is healthy otherwise."""
    return lambda key, cid, body: answer(cid) if key == api_key else healthy(key, cid, body)
