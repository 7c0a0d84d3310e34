"""A broker on loopback that behaves correctly up to one request, and then as a test chooses.

It is a whole cluster: broker 1, topic `t` with one partition, the empty group `g` that has a commit. No real broker
sends a response byte by byte, or with a length of 2 GB, on demand.
"""

from __future__ import annotations

import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any
from uuid import UUID

LIST_OFFSETS, METADATA, OFFSET_FETCH, FIND_COORDINATOR = 2, 3, 9, 10
DESCRIBE_GROUPS, LIST_GROUPS, API_VERSIONS = 15, 16, 18
TOPIC_ID = UUID("00000000-0000-0000-0000-00000000002a")
_DRIP_S = 0.02
_EARLIEST = (-2).to_bytes(8, "big", signed=True)  # in a ListOffsets request

# Handles a request. Arguments: the socket, the correct response (None: no such API), the correlation id.
Behavior = Callable[["HostileBroker", socket.socket, bytes], None]


def _silent(broker: HostileBroker, _peer: socket.socket, _answer: bytes) -> None:
    broker.over.wait()


def _drip(broker: HostileBroker, peer: socket.socket, answer: bytes) -> None:
    """Send a response of 1,000 bytes, byte by byte."""
    for byte in struct.pack(">i", 1000) + answer[4:8] + bytes(990):
        peer.sendall(bytes([byte]))
        if broker.over.wait(_DRIP_S):
            return


def _fast_drip(broker: HostileBroker, peer: socket.socket, answer: bytes) -> None:
    """Send a response of 1 MB, byte by byte, as fast as the network allows."""
    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    peer.sendall(struct.pack(">i", 1_000_000) + answer[4:8])
    while not broker.over.wait(0.0005):
        peer.sendall(b"\0")


def _garbage(_broker: HostileBroker, peer: socket.socket, answer: bytes) -> None:
    """Send a frame with the right length and correlation id, and a meaningless body."""
    peer.sendall(answer[:8] + b"\xff" * max(8, len(answer) - 8))


def _huge_count(_broker: HostileBroker, peer: socket.socket, answer: bytes) -> None:
    peer.sendall(struct.pack(">i", 24) + answer[4:8] + b"\x7f\xff\xff\xff" * 5)


def _huge_length(broker: HostileBroker, peer: socket.socket, answer: bytes) -> None:
    peer.sendall(struct.pack(">i", 2**31 - 1) + answer[4:8])
    with suppress(OSError):
        while not broker.over.is_set():
            peer.sendall(bytes(65536))


def _negative_length(broker: HostileBroker, peer: socket.socket, _answer: bytes) -> None:
    peer.sendall(struct.pack(">i", -5) + bytes(16))
    broker.over.wait()


def _wrong_correlation(broker: HostileBroker, peer: socket.socket, answer: bytes) -> None:
    peer.sendall(answer[:4] + b"\x7a\x7a\x7a\x7a" + answer[8:])
    broker.over.wait()


def _close(_broker: HostileBroker, peer: socket.socket, _answer: bytes) -> None:
    peer.shutdown(socket.SHUT_RDWR)


def _close_in_the_middle(_broker: HostileBroker, peer: socket.socket, answer: bytes) -> None:
    peer.sendall(answer[: max(6, len(answer) // 2)])
    peer.shutdown(socket.SHUT_RDWR)


def _text(broker: HostileBroker, peer: socket.socket, _answer: bytes) -> None:
    peer.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
    broker.over.wait()


BEHAVIORS: dict[str, Behavior] = {
    "silent": _silent,
    "drip": _drip,
    "fast drip": _fast_drip,
    "garbage": _garbage,
    "huge count": _huge_count,
    "huge length": _huge_length,
    "negative length": _negative_length,
    "wrong correlation": _wrong_correlation,
    "close": _close,
    "close in the middle": _close_in_the_middle,
    "text": _text,
}


class HostileBroker:
    """A broker whose `behavior` begins at `stage`: `tcp`, `tls`, or an API key. asked: the API keys of requests so far.

    ranges: API key → reported versions; missing ones are kafka-python's. api_versions_range: the supported versions of
    ApiVersions; another one gets UNSUPPORTED_VERSION in the format of version 0 (KIP-511).
    """

    def __init__(
        self,
        stage: str | int | None = None,
        behavior: str = "silent",
        *,
        ranges: dict[int, tuple[int, int]] | None = None,
        api_versions_range: tuple[int, int] = (0, 4),
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.stage, self.behavior = stage, BEHAVIORS[behavior]
        self.ranges, self.api_versions_range, self.tls = ranges, api_versions_range, tls
        self.asked: list[int] = []
        self.over = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port: int = self._listener.getsockname()[1]

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def serve(self) -> None:
        with suppress(OSError):
            while True:
                peer = self._listener.accept()[0]
                threading.Thread(target=self._talk, args=(peer,), daemon=True).start()

    def close(self) -> None:
        self.over.set()
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _talk(self, peer: socket.socket) -> None:
        with suppress(OSError, struct.error, ssl.SSLError), peer:
            if self.stage in {"tcp", "tls"}:
                if self.stage == "tls":
                    peer.recv(1)
                self.behavior(self, peer, struct.pack(">ii", 16, 1) + bytes(12))
                return
            self._answer_all(self.tls.wrap_socket(peer, server_side=True) if self.tls else peer)

    def _answer_all(self, peer: socket.socket) -> None:
        while True:
            (size,) = struct.unpack(">i", _exactly(peer, 4))
            request = _exactly(peer, size)
            key, version, correlation = struct.unpack_from(">hhi", request)
            self.asked.append(key)
            answer = self._answer(key, version, correlation, earliest=_EARLIEST in request)
            if key == self.stage:
                self.behavior(self, peer, answer)
                continue
            peer.sendall(answer)

    def _answer(self, key: int, version: int, correlation: int, *, earliest: bool) -> bytes:
        low, high = self.api_versions_range
        if key == API_VERSIONS and not low <= version <= high:
            return _frame(correlation, struct.pack(">hihhh", 35, 1, API_VERSIONS, low, high))
        response = _response(self, key, end=0 if earliest else 5)
        if response is None:
            return _frame(correlation, bytes(16))
        flexible = response.flexible_version_q(version) and key != API_VERSIONS
        return _frame(correlation, (b"\0" if flexible else b"") + bytes(response.encode(version=version)))

    def all_ranges(self) -> dict[int, tuple[int, int]]:
        from kafka.protocol.broker_version_data import BROKER_API_VERSIONS

        newest = BROKER_API_VERSIONS[max(BROKER_API_VERSIONS)]
        ranges = dict(newest) if self.ranges is None else dict(self.ranges)
        return {**ranges, API_VERSIONS: self.api_versions_range}


def _response_classes() -> dict[int, Any]:
    from kafka.protocol import admin, consumer, metadata, producer

    found = [value for module in (metadata, admin, consumer, producer) for value in vars(module).values()]
    return {each.API_KEY: each for each in found if getattr(each, "name", "").endswith("Response")}


def _response(broker: HostileBroker, key: int, *, end: int) -> Any:
    """Return the response of a broker with one topic and one group, empty for other requests. None: no such API."""
    cls = _response_classes().get(key)
    if cls is None:
        return None
    if key == API_VERSIONS:
        rows = [cls.ApiVersion(api_key=k, min_version=low, max_version=high)
                for k, (low, high) in broker.all_ranges().items()]  # fmt: skip
        return cls(error_code=0, api_keys=rows, throttle_time_ms=0)
    if key == METADATA:
        return _metadata(broker, cls)
    if key == FIND_COORDINATOR:
        place = {"node_id": 1, "host": "127.0.0.1", "port": broker.port, "error_code": 0, "error_message": None}
        return cls(**place, throttle_time_ms=0, coordinators=[cls.Coordinator(key="g", **place)])
    if key == LIST_GROUPS:
        row = cls.ListedGroup(group_id="g", protocol_type="consumer", group_state="Empty", group_type="classic")
        return cls(throttle_time_ms=0, error_code=0, groups=[row])
    if key == DESCRIBE_GROUPS:
        row = cls.DescribedGroup(error_code=0, group_id="g", group_state="Empty", protocol_type="consumer",
                                 protocol_data="", members=[])  # fmt: skip
        return cls(throttle_time_ms=0, groups=[row])
    if key == OFFSET_FETCH:
        group = cls.OffsetFetchResponseGroup
        topic = group.OffsetFetchResponseTopics
        commit = {"partition_index": 0, "committed_offset": 3, "committed_leader_epoch": -1, "metadata": "",
                  "error_code": 0}  # fmt: skip
        old = cls.OffsetFetchResponseTopic
        rows = [topic(name="t", partitions=[topic.OffsetFetchResponsePartitions(**commit)])]
        old_rows = [old(name="t", partitions=[old.OffsetFetchResponsePartition(**commit)])]
        groups = [group(group_id="g", topics=rows, error_code=0)]
        return cls(throttle_time_ms=0, error_code=0, topics=old_rows, groups=groups)
    if key == LIST_OFFSETS:
        topic = cls.ListOffsetsTopicResponse
        row = topic.ListOffsetsPartitionResponse(partition_index=0, error_code=0, timestamp=-1, offset=end,
                                                 leader_epoch=0)  # fmt: skip
        return cls(throttle_time_ms=0, topics=[topic(name="t", partitions=[row])])
    return cls()


def _metadata(broker: HostileBroker, cls: Any) -> Any:
    partition = cls.MetadataResponseTopic.MetadataResponsePartition(
        error_code=0, partition_index=0, leader_id=1, leader_epoch=0, replica_nodes=[1], isr_nodes=[1],
        offline_replicas=[],
    )  # fmt: skip
    topic = cls.MetadataResponseTopic(
        error_code=0, name="t", topic_id=TOPIC_ID, is_internal=False, partitions=[partition],
        authorized_operations={3, 4, 5, 6, 7, 8, 10, 11},
    )  # fmt: skip
    place = cls.MetadataResponseBroker(node_id=1, host="127.0.0.1", port=broker.port, rack=None)
    return cls(throttle_time_ms=0, brokers=[place], cluster_id="hostile", controller_id=1, topics=[topic],
               authorized_operations={3, 4, 5, 6, 7, 8, 10, 11}, error_code=0)  # fmt: skip


def _frame(correlation: int, body: bytes) -> bytes:
    return struct.pack(">ii", len(body) + 4, correlation) + body


def _exactly(peer: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        piece = peer.recv(count - len(data))
        if not piece:
            raise OSError("closed")
        data += piece
    return data


@contextmanager
def hostile_broker(
    stage: str | int | None = None, behavior: str = "silent", **settings: Any
) -> Iterator[HostileBroker]:
    """Yield a running broker."""
    broker = HostileBroker(stage, behavior, **settings)
    threading.Thread(target=broker.serve, daemon=True).start()
    try:
        yield broker
    finally:
        broker.close()
