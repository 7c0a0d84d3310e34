"""kctl's own messages against kafka-python's, which knows all versions; and against garbage."""

from __future__ import annotations

import uuid
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kctl.errors import KctlError, NotAuthorized
from kctl.model import Broker, PartitionState, TopicState
from kctl.protocol import wire
from kctl.protocol.metadata_messages import (
    METADATA_MAX,
    METADATA_MIN,
    MetadataRequest,
    decode_metadata,
    encode_metadata,
    metadata_is_flexible,
    topic_id_from_text,
    topic_id_text,
)

VERSIONS = range(METADATA_MIN, METADATA_MAX + 1)
TOPIC_ID = uuid.UUID("12345678-1234-5678-9abc-123456789abc")


def _reader(version: int, **fields: Any) -> wire.Reader:
    return wire.Reader(_response(version, **fields), metadata_is_flexible(version))


def _response(version: int, *, error_code: int = 0, operations: set[int] | None = None) -> bytes:
    from kafka.protocol.metadata import MetadataResponse

    topic: Any = MetadataResponse.MetadataResponseTopic
    partition = topic.MetadataResponsePartition
    broker: Any = MetadataResponse.MetadataResponseBroker
    rows = [
        partition(error_code=0, partition_index=1, leader_id=2, leader_epoch=5, replica_nodes=[2, 1], isr_nodes=[2],
                  offline_replicas=[1]),
        partition(error_code=5, partition_index=0, leader_id=-1, leader_epoch=7, replica_nodes=[], isr_nodes=[],
                  offline_replicas=[]),
    ]  # fmt: skip
    message = MetadataResponse(
        throttle_time_ms=3,
        brokers=[
            broker(node_id=1, host="één", port=9092, rack="r1"),
            broker(node_id=2, host="b2", port=9093, rack=None),
        ],
        cluster_id="cid",
        controller_id=2,
        topics=[
            topic(
                error_code=error_code,
                name="orders",
                topic_id=TOPIC_ID,
                is_internal=True,
                partitions=rows,
                authorized_operations=operations,
            )
        ],
    )
    encoded: bytes = message.encode(version=version)
    return encoded


@pytest.mark.parametrize("version", VERSIONS)
def test_metadata_response(version: int) -> None:
    reader = wire.Reader(_response(version), metadata_is_flexible(version))
    state = decode_metadata(reader, version)
    assert reader.position == len(_response(version)) - (1 if version >= 9 else 0) - (4 if 8 <= version <= 10 else 0)
    assert state.brokers == {1: Broker(1, "één", 9092, "r1"), 2: Broker(2, "b2", 9093, None)}
    assert state.cluster_id == ("cid" if version >= 2 else None)
    assert state.controller_id == 2
    epochs = (7, 5) if version >= 7 else (-1, -1)
    partitions = (
        PartitionState("orders", 0, -1, epochs[0], (), (), ()),
        PartitionState("orders", 1, 2, epochs[1], (2, 1), (2,), (1,) if version >= 5 else ()),
    )
    topic_id = topic_id_text(TOPIC_ID) if version >= 10 else None
    assert state.topics == {"orders": TopicState("orders", True, topic_id, partitions)}


@pytest.mark.parametrize("topics", [None, (), ("orders",), ("a", "é" * 200)])
@pytest.mark.parametrize("version", VERSIONS)
def test_metadata_request(version: int, topics: tuple[str, ...] | None) -> None:
    from kafka.protocol.metadata import MetadataRequest

    found: Any = MetadataRequest.decode(encode_metadata(version, topics), version=version)
    assert (None if found.topics is None else tuple(t.name for t in found.topics)) == topics
    if version >= 4:
        assert found.allow_auto_topic_creation is False


def _request(version: int, **options: Any) -> Any:
    from kafka.protocol.metadata import MetadataRequest as KafkaPythonRequest

    return KafkaPythonRequest.decode(MetadataRequest(["orders"], **options).body(version), version=version)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_request_never_creates_a_topic(version: int) -> None:
    assert (_request(version).topics is None) == (version < 4)
    other = MetadataRequest(["other"]).read(_reader(version), version)
    assert set(other.topics) == (set() if version < 4 else {"orders"})
    assert set(MetadataRequest(["orders"]).read(_reader(version), version).topics) == {"orders"}


@pytest.mark.parametrize("version", [1, 12])
def test_errors_of_requested_topics(version: int) -> None:
    with pytest.raises(NotAuthorized):
        MetadataRequest(["orders"]).read(_reader(version, error_code=29), version)
    state = MetadataRequest(["orders"], keep_errors=True).read(_reader(version, error_code=29), version)
    assert (state.topics, list(state.failed)) == ({}, ["orders"])


@pytest.mark.parametrize("version", range(8, METADATA_MAX + 1))
def test_operations(version: int) -> None:
    assert [_request(version, operations=asked).include_topic_authorized_operations for asked in (False, True)] == [
        False, True,
    ]  # fmt: skip
    assert decode_metadata(_reader(version, operations={3, 8}), version).operations == {"orders": {3, 8}}
    assert decode_metadata(_reader(version, operations=set()), version).operations == {"orders": set()}
    assert decode_metadata(_reader(version), version).operations == {}


@pytest.mark.parametrize(("code", "present"), [(0, True), (5, True), (3, False), (17, False), (100, False)])
def test_topics_that_do_not_exist_are_absent(code: int, present: bool) -> None:
    state = decode_metadata(wire.Reader(_response(12, error_code=code), flexible=True), 12)
    assert ("orders" in state.topics) == present


def test_a_topic_that_may_not_be_described() -> None:
    with pytest.raises(NotAuthorized, match="orders"):
        decode_metadata(wire.Reader(_response(12, error_code=29), flexible=True), 12)
    with pytest.raises(KctlError, match="UNKNOWN_SERVER_ERROR"):
        decode_metadata(wire.Reader(_response(12, error_code=-1), flexible=True), 12)
    state = decode_metadata(wire.Reader(_response(12, error_code=29), flexible=True), 12, keep_errors=True)
    assert (state.topics, type(state.failed["orders"])) == ({}, NotAuthorized)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_response_cut_anywhere_is_an_error(version: int) -> None:
    whole = _response(version)
    for length in range(len(whole) - 5):
        with pytest.raises(wire.WireError):
            decode_metadata(wire.Reader(whole[:length], metadata_is_flexible(version)), version)


@given(st.binary(max_size=200), st.sampled_from(VERSIONS))
def test_garbage_is_an_error_of_ours(data: bytes, version: int) -> None:
    with suppress(wire.WireError, KctlError):
        decode_metadata(wire.Reader(data, metadata_is_flexible(version)), version)


def test_topic_ids_are_kafkas() -> None:
    assert topic_id_text(TOPIC_ID) == "EjRWeBI0VniavBI0VniavA"
    assert topic_id_from_text("EjRWeBI0VniavBI0VniavA") == TOPIC_ID
    assert topic_id_text(uuid.UUID(int=0)) is None
    assert topic_id_text(None) is None


@pytest.mark.parametrize("value", [0, 1, 127, 128, 300, 2**21, 2**28, 2**31 - 1])
def test_varints(value: int) -> None:
    assert wire.Reader(wire.unsigned_varint(value)).unsigned_varint() == value


def test_sasl_messages() -> None:
    handshake = wire.decode_sasl_handshake(wire.Reader(b"\x00\x21\x00\x00\x00\x01\x00\x05PLAIN"))
    assert handshake == (33, ("PLAIN",))
    body = b"\x00\x3a\x00\x02no\x00\x00\x00\x01x" + (60_000).to_bytes(8, "big")
    assert wire.decode_sasl_authenticate(wire.Reader(body), 1) == (58, "no", b"x", 60_000)
    assert wire.decode_sasl_authenticate(wire.Reader(b"\0\0\xff\xff\0\0\0\0"), 0) == (0, None, b"", 0)


def test_api_versions() -> None:
    body = b"\0\0\0\0\0\x02" + b"\0\x03\0\0\0\x0c" + b"\0\x12\0\0\0\x04"
    assert wire.decode_api_versions(wire.Reader(body)) == (0, {3: (0, 12), 18: (0, 4)})


def test_a_frame() -> None:
    assert wire.frame(18, 0, 7, b"") == b"\0\0\0\x0e\0\x12\0\0\0\0\0\x07\0\x04kctl"
    assert wire.frame(3, 12, 7, b"x", flexible=True) == b"\0\0\0\x10\0\x03\0\x0c\0\0\0\x07\0\x04kctl\0x"
