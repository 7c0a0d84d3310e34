"""A non-blocking connection to one broker, with several requests in flight."""

from __future__ import annotations

import itertools
import ssl
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from kctl.base.binary_layout import INT32
from kctl.protocol.connection import MAX_RESPONSE_BYTES, Connection
from kctl.protocol.wire import RESPONSE_HEADER, WireError
from kctl.records.produce import wire as produce_wire

if TYPE_CHECKING:
    import socket

    from kctl.records.produce.batch import ClosedBatch

MAX_REQUESTS = 5
_CHUNK = 64 * 1024
_MAX_PIECES = 64
_UNANSWERED_BYTES = 1 << 20  # the limit of unsent bytes with acks=0, where responses do not limit them
_THROTTLED_AFTER = 6  # from this version on, a broker responds first, then mutes the connection (KIP-219)


class LinkBroken(Exception):
    """The connection is unusable."""


class Request(NamedTuple):
    """Batches in flight. written_at: the connection's count of written bytes when the request is fully written."""

    correlation_id: int
    batches: tuple[ClosedBatch, ...]
    sent_at: float
    written_at: int


class Link:
    """A connection to one broker. Not thread-safe. With acks=0, a request is complete once it is written."""

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
        self.life = time.monotonic()  # the last read or write; in the future while throttled
        self.ended: str | None = None  # why it is unusable once the responses so far are read

    @property
    def socket(self) -> socket.socket:
        return self._sock

    @property
    def wants_to_write(self) -> bool:
        return bool(self._out)

    @property
    def has_room(self) -> bool:
        """Return True if another request may be sent."""
        now = time.monotonic()
        if now > self.login_ends or now < self.life:
            return False
        return len(self.requests) < MAX_REQUESTS and (
            self._acks != 0 or self._queued - self._written < _UNANSWERED_BYTES
        )

    @property
    def waited_s(self) -> float:
        """Return how long the broker has neither read nor responded, not counting the throttle time of a quota."""
        return time.monotonic() - max(self.requests[0].sent_at, self.life) if self.requests else 0.0

    @property
    def worn_out(self) -> bool:
        """Return True if the login has expired and nothing is in flight: the connection must be replaced (KIP-368)."""
        return not self.requests and time.monotonic() > self.login_ends

    def send(self, topic: str, timeout_ms: int, batches: Sequence[ClosedBatch], producer: tuple[int, int]) -> None:
        """Queue a request."""
        correlation_id = next(self._ids)
        encoded = [(batch.partition, *batch.encode(*producer)) for batch in batches]
        pieces = produce_wire.encode(self.version, correlation_id, topic, self._acks, timeout_ms, encoded)
        self._out.extend(memoryview(piece) for piece in pieces if piece)
        self._queued += sum(map(len, pieces))
        self.requests.append(Request(correlation_id, tuple(batches), time.monotonic(), self._queued))

    def write(self) -> list[ClosedBatch]:
        """Write what the socket accepts. With acks=0, return the batches that are now complete. Raises LinkBroken."""
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
            raise LinkBroken(str(exc)) from None
        done: list[ClosedBatch] = []
        while self._acks == 0 and self.requests and self.is_written(self.requests[0]):
            done.extend(self.requests.popleft().batches)
        return done

    def _drop(self, count: int) -> None:
        self._written += count
        self.life = max(self.life, time.monotonic())
        while count:
            if count < len(self._out[0]):
                self._out[0] = self._out[0][count:]
                return
            count -= len(self._out.popleft())

    def is_written(self, request: Request) -> bool:
        """Return True if the broker may have the whole request; brokers ignore incomplete requests."""
        return self._written >= request.written_at

    def read(self) -> list[tuple[Request, list[produce_wire.Answer]]]:
        """Return the responses received; set `ended` if no others will follow."""
        try:
            while data := self._sock.recv(_CHUNK):
                self._in += data
            self.ended = "closed by the broker"
        except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
            pass
        except OSError as exc:
            self.ended = str(exc)
        return self._answers()

    def _answers(self) -> list[tuple[Request, list[produce_wire.Answer]]]:
        responses: list[tuple[Request, list[produce_wire.Answer]]] = []
        while len(self._in) >= INT32.size:
            (size,) = INT32.unpack_from(self._in)
            if not INT32.size <= size <= MAX_RESPONSE_BYTES:
                self.ended = "invalid size of a response"
                break
            end = INT32.size + size
            if len(self._in) < end:
                break
            _, correlation_id = RESPONSE_HEADER.unpack_from(self._in)
            body = bytes(self._in[RESPONSE_HEADER.size : end])
            del self._in[:end]
            if not self.requests or self.requests[0].correlation_id != correlation_id:
                self.ended = "unexpected correlation id of a response"
                break
            try:
                answers, throttle_ms = produce_wire.decode(body, self.version)
            except WireError:
                self.ended = "cannot parse a response"
                break
            throttle_s = throttle_ms / 1000 if self.version >= _THROTTLED_AFTER else 0.0
            self.life = max(self.life, time.monotonic() + throttle_s)
            responses.append((self.requests.popleft(), answers))
        return responses

    def close(self) -> None:
        """Close the connection; requests in flight stay in `requests`."""
        with suppress(OSError):
            self._sock.close()
