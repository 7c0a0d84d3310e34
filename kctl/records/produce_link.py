"""A connection to one broker that never blocks: requests out, answers in, several under way at once."""

from __future__ import annotations

import itertools
import ssl
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from kctl.connection import MAX_RESPONSE_BYTES, Connection
from kctl.records import produce_wire
from kctl.wire import WireError

if TYPE_CHECKING:
    import socket

    from kctl.records.produce_batch import ClosedBatch

MAX_REQUESTS = 5
_CHUNK = 64 * 1024
_MAX_PIECES = 64
_UNANSWERED_BYTES = 1 << 20  # with acks=0 nothing else bounds what is under way


class Broken(Exception):
    """The connection is of no use any more."""


class Request(NamedTuple):
    """Batches under way. written_at: how many bytes this connection has written when all of it is written."""

    correlation_id: int
    batches: tuple[ClosedBatch, ...]
    sent: float
    written_at: int


class Link:
    """Not for several threads. With acks=0 there are no answers: a request is over when it has been written."""

    def __init__(self, node: int, connection: Connection, version: int, acks: int) -> None:
        self.node = node
        self.version = version
        self._sock, self.login_ends = connection.hand_over()
        self._sock.setblocking(False)
        self._acks = acks
        self._out: deque[memoryview] = deque()
        self._queued = self._written = 0
        self._in = bytearray()
        self._ids = itertools.count(1)
        self.requests: deque[Request] = deque()
        self.last_answer = 0.0

    @property
    def socket(self) -> socket.socket:
        return self._sock

    @property
    def wants_to_write(self) -> bool:
        return bool(self._out)

    @property
    def has_room(self) -> bool:
        """Whether another request may be sent."""
        if time.monotonic() > self.login_ends:
            return False
        return len(self.requests) < MAX_REQUESTS and (
            self._acks != 0 or self._queued - self._written < _UNANSWERED_BYTES
        )

    @property
    def waited_s(self) -> float:
        """How long the broker has given no answer that it owes."""
        return time.monotonic() - max(self.requests[0].sent, self.last_answer) if self.requests else 0.0

    @property
    def worn_out(self) -> bool:
        """The login has ended, and nothing is under way: close it and open another (KIP-368)."""
        return not self.requests and time.monotonic() > self.login_ends

    def send(self, topic: str, timeout_ms: int, batches: Sequence[ClosedBatch], producer: tuple[int, int]) -> None:
        """Begin a request."""
        correlation_id = next(self._ids)
        encoded = [(batch.partition, *batch.encode(*producer)) for batch in batches]
        pieces = produce_wire.encode(self.version, correlation_id, topic, self._acks, timeout_ms, encoded)
        self._out.extend(memoryview(piece) for piece in pieces if piece)
        self._queued += sum(map(len, pieces))
        self.requests.append(Request(correlation_id, tuple(batches), time.monotonic(), self._queued))

    def write(self) -> list[ClosedBatch]:
        """Write what the socket takes; with acks=0, the batches that are thereby done. Raises Broken."""
        try:
            while self._out:
                if isinstance(self._sock, ssl.SSLSocket):
                    count = self._sock.send(self._out[0])
                else:
                    count = self._sock.sendmsg(list(itertools.islice(self._out, _MAX_PIECES)))
                self._drop(count)
        except (BlockingIOError, ssl.SSLWantWriteError, ssl.SSLWantReadError):
            pass
        except OSError as exc:
            raise Broken(str(exc)) from None
        done: list[ClosedBatch] = []
        while self._acks == 0 and self.requests and self.is_written(self.requests[0]):
            done.extend(self.requests.popleft().batches)
        return done

    def _drop(self, count: int) -> None:
        self._written += count
        while count:
            if count < len(self._out[0]):
                self._out[0] = self._out[0][count:]
                return
            count -= len(self._out.popleft())

    def is_written(self, request: Request) -> bool:
        """Whether the broker may have all of it: one that is cut short is not carried out."""
        return self._written >= request.written_at

    def read(self) -> list[tuple[Request, list[produce_wire.Answer]]]:
        """The answers that have come. Raises Broken for nonsense, and when the connection ends behind the last one."""
        ended: str | None = None
        try:
            while data := self._sock.recv(_CHUNK):
                self._in += data
            ended = "closed by the broker"
        except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
            pass
        except OSError as exc:
            ended = str(exc)
        answers = self._answers()
        if ended and not answers:
            raise Broken(ended)
        if answers:
            self.last_answer = time.monotonic()
        return answers

    def _answers(self) -> list[tuple[Request, list[produce_wire.Answer]]]:
        found = []
        while len(self._in) >= 4:
            size = int.from_bytes(self._in[:4], "big", signed=True)
            if not 4 <= size <= MAX_RESPONSE_BYTES:
                raise Broken("an answer that makes no sense")
            if len(self._in) < 4 + size:
                break
            body = bytes(self._in[8 : 4 + size])
            correlation_id = int.from_bytes(self._in[4:8], "big", signed=True)
            del self._in[: 4 + size]
            if not self.requests or self.requests[0].correlation_id != correlation_id:
                raise Broken("an answer that nobody asked for")
            try:
                answers = produce_wire.decode(body, self.version)
            except WireError:
                raise Broken("an answer that cannot be read") from None
            found.append((self.requests.popleft(), answers))
        return found

    def close(self) -> None:
        """Close it; what is under way stays in `requests`."""
        with suppress(OSError):
            self._sock.close()
