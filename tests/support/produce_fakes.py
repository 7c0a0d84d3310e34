"""A broker that responds to Produce requests as a test chooses, and a client that connects to it."""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable
from contextlib import suppress
from typing import Any, ClassVar

from kctl.errors import KctlError
from kctl.model import Broker, ClusterState, PartitionState, TopicState
from kctl.protocol.wire import CLIENT_ID

_BODY = 14 + len(CLIENT_ID)  # after length, API key, version, correlation id and client id
Judge = Callable[[int], "tuple[int, int]"]  # partition → error code, base offset


class FakeBroker:
    """The other end of a connection. judge: decides about a batch. throttle_ms: in each response."""

    api_versions: ClassVar = {0: (0, 9)}

    def __init__(self) -> None:
        ours, self._end = socket.socketpair()
        self._end.setblocking(False)
        self._ours = ours
        self._in = b""
        self.requests: list[tuple[int, list[int]]] = []  # requests without a response: correlation id, partitions
        self.seen: list[list[int]] = []
        self.judge: Judge = lambda _partition: (0, 0)
        self.throttle_ms = 0

    def hand_over(self) -> tuple[socket.socket, float]:
        return self._ours, float("inf")

    def close(self) -> None:
        self._end.close()
        self.requests.clear()

    @property
    def left(self) -> bool:
        return self._ours.fileno() < 0

    def listen(self, at_most: int = 1 << 30) -> None:
        """Receive the data that has arrived."""
        with suppress(OSError):  # nothing more, or closed
            while at_most > 0 and (data := self._end.recv(min(at_most, 1 << 20))):
                self._in += data
                at_most -= len(data)
        while len(self._in) >= 4 and len(self._in) >= 4 + (size := int.from_bytes(self._in[:4], "big")):
            frame, self._in = self._in[: 4 + size], self._in[4 + size :]
            self.seen.append(_partitions(frame))
            self.requests.append((int.from_bytes(frame[8:12], "big"), self.seen[-1]))

    def answer(self) -> None:
        """Respond to the oldest request, like brokers do."""
        correlation_id, partitions = self.requests.pop(0)
        rows = b""
        for partition in partitions:
            code, offset = self.judge(partition)
            rows += struct.pack(">ihqqqihh", partition, code, offset, -1, 0, 0, -1, -1)[:-2]
        body = struct.pack(">ih1si", 1, 1, b"t", len(partitions)) + rows + struct.pack(">i", self.throttle_ms)
        self.say(struct.pack(">ii", 4 + len(body), correlation_id) + body)

    def say(self, data: bytes) -> None:
        self._end.sendall(data)


def _partitions(frame: bytes) -> list[int]:
    at = _BODY + 2 + 2 + 4 + 4 + 2 + 1  # transactional id, acks, timeout, topics, `t`
    (count,) = struct.unpack_from(">i", frame, at)
    at += 4
    found = []
    for _ in range(count):
        partition, size = struct.unpack_from(">ii", frame, at)
        found.append(partition)
        at += 8 + size
    assert at == len(frame)
    return found


class FakeClient:
    """A client that connects to `broker`, then to a new one each time."""

    def __init__(self, known: ClusterState) -> None:
        self.known = known
        self.brokers = [FakeBroker()]
        self.outcome: KctlError | None = None

    def dial_known(self, brokers: list[Broker], timeout_s: float) -> dict[int, Any]:
        if self.brokers[-1].left:
            self.brokers.append(FakeBroker())
        return {broker.id: self.outcome or self.brokers[-1] for broker in brokers}

    def metadata(self, topics: list[str], timeout_s: float) -> ClusterState:
        return self.known


def state(partitions: int, leader: int = 1) -> ClusterState:
    rows = tuple(PartitionState("t", number, leader, 0, (1,), (1,), ()) for number in range(partitions))
    return ClusterState("c", 1, {1: Broker(1, "h", 1, None)}, {"t": TopicState("t", False, None, rows)})
