"""Receive an exact number of bytes from a peer, with a deadline that a slow peer cannot extend."""

from __future__ import annotations

import socket

from kctl.base.deadline import Deadline

_CHUNK = 256 * 1024


class ReceiveBuffer:
    """The bytes that have arrived but have not been taken yet.

    late_reads: maximum number of reads after the deadline. They receive data that has already arrived, because another
    peer may have used up the time. The limit stops a peer that sends one byte at a time.
    """

    def __init__(self, *, late_reads: int) -> None:
        self._data = bytearray()
        self._late_reads = late_reads

    def __len__(self) -> int:
        return len(self._data)

    def __bytes__(self) -> bytes:
        return bytes(self._data)

    def clear(self) -> None:
        """Drop the bytes."""
        self._data.clear()

    def take(self, sock: socket.socket, size: int, deadline: Deadline) -> bytes:
        """Return the next `size` bytes. Raises TimeoutError, EOFError if the peer has closed, and OSError."""
        data = self._data
        late = 0
        while len(data) < size:
            late += deadline.expired
            if late > self._late_reads:
                raise TimeoutError
            sock.settimeout(max(0.001, deadline.left_s))
            piece = sock.recv(_CHUNK)
            if not piece:
                raise EOFError
            data += piece
        chunk = bytes(data[:size])
        del data[:size]
        return chunk
