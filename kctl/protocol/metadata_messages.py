"""The Metadata request and response, versions 1 to 12, encoded and decoded without a client library."""

from __future__ import annotations

import base64
from collections.abc import Collection, Sequence
from dataclasses import replace
from uuid import UUID

from kctl.base.binary_layout import INT16, INT32, Layout, array_of
from kctl.errors import KctlError, NotAuthorized
from kctl.model import Broker, ClusterState, PartitionState, TopicState
from kctl.protocol.codes import ApiKey, ErrorCode
from kctl.protocol.wire import Reader, compact_string, frame, string, unsigned_varint

METADATA_MIN, METADATA_MAX = 1, 12  # v1 (0.10.0): controller, null for all topics; v12 (2.8): topic ids
_METADATA_NO_CREATION = 4  # v4 (0.11): allow_auto_topic_creation
_METADATA_OPERATIONS = 8  # v8 (2.3): authorized operations, a bit for each code of AclOperation
_NO_OPERATIONS = -(2**31)  # the broker does not report them
_NO_UUID = bytes(16)

# The beginning of a partition in a Metadata response, before v7 without the leader's epoch.
_PARTITION = Layout(error_code=INT16, partition_index=INT32, leader_id=INT32)
_PARTITION_V7 = Layout(**_PARTITION.fields, leader_epoch=INT32)


def metadata_is_flexible(version: int) -> bool:
    """Return True for versions from 9 (KIP-482)."""
    return version >= 9


class MetadataRequest:
    """A Metadata request and the reader of its responses, in the shape of kafka-python's requests.

    topics: None for all, empty for none. operations: also request the operations that the user may perform on
    each topic (KIP-430, Kafka 2.3). keep_errors: see `decode_metadata`. Never creates a topic: before v4, a broker
    with auto.create.topics.enable creates the topics that a request names, so all topics are requested instead.
    """

    name = "MetadataRequest"
    API_KEY = ApiKey.METADATA
    API_VERSION: int | None = None
    max_version = METADATA_MAX

    def __init__(
        self, topics: Collection[str] | None = None, *, operations: bool = False, keep_errors: bool = False
    ) -> None:
        self.topics = None if topics is None else dict.fromkeys(topics)
        self.min_version = _METADATA_OPERATIONS if operations else METADATA_MIN
        self._operations, self._keep_errors = operations, keep_errors
        self._correlation_id = 0

    def body(self, version: int) -> bytes:
        """Return the request without its header."""
        names = None if self.topics and version < _METADATA_NO_CREATION else self.topics
        return encode_metadata(version, names, operations=self._operations)

    def read(self, reader: Reader, version: int) -> ClusterState:
        """Return the response without topics that were not requested. Raises the errors of `decode_metadata`."""
        state = decode_metadata(reader, version, keep_errors=self._keep_errors or version < _METADATA_NO_CREATION)
        if self.topics is None or version >= _METADATA_NO_CREATION:
            return state
        selected_topics = {name: topic for name, topic in state.topics.items() if name in self.topics}
        failed = {name: error for name, error in state.failed.items() if name in self.topics}
        if failed and not self._keep_errors:
            raise next(iter(failed.values()))
        return replace(state, topics=selected_topics, failed=failed)

    # What kctl.protocol.connection calls on kafka-python's requests, their headers and their response classes.

    def with_header(self, *, correlation_id: int, client_id: str) -> None:  # noqa: ARG002 - `frame` has the client id
        self._correlation_id = correlation_id

    @property
    def header(self) -> MetadataRequest:
        return self

    def get_response_class(self) -> MetadataRequest:
        return self

    def flexible_version_q(self, version: int) -> bool:
        return metadata_is_flexible(version)

    def encode(self, **_framing: bool) -> bytes:
        version = self.API_VERSION or METADATA_MIN
        flexible = metadata_is_flexible(version)
        return frame(self.API_KEY, version, self._correlation_id, self.body(version), flexible=flexible)

    def decode(self, data: memoryview, *, version: int) -> ClusterState:
        return self.read(Reader(data, metadata_is_flexible(version)), version)


def encode_metadata(version: int, topics: Collection[str] | None, *, operations: bool = False) -> bytes:
    """Return a MetadataRequest v1 to v12. topics: None for all, empty for none; operations: from v8."""
    flexible = metadata_is_flexible(version)
    out = bytearray()
    if flexible:
        out += unsigned_varint(0 if topics is None else len(topics) + 1)
    else:
        out += INT32.pack(-1 if topics is None else len(topics))
    for name in topics or ():
        out += _NO_UUID if version >= 10 else b""
        out += compact_string(name) + b"\0" if flexible else string(name)
    if version >= _METADATA_NO_CREATION:
        out += b"\0"  # allow_auto_topic_creation
    if 8 <= version <= 10:
        out += b"\0"  # include_cluster_authorized_operations
    if version >= _METADATA_OPERATIONS:
        out += b"\1" if operations else b"\0"  # include_topic_authorized_operations
    return bytes(out + b"\0") if flexible else bytes(out)


def decode_metadata(reader: Reader, version: int, *, keep_errors: bool = False) -> ClusterState:
    """Return a MetadataResponse v1 to v12 as a ClusterState, without topics that do not exist.

    Raises NotAuthorized for a topic that the user may not describe, KctlError for other topic errors (with keep_errors
    they are the state's `failed`), WireError.
    """
    if version >= 3:
        reader.int32()  # throttle_time_ms
    brokers = {}
    for _ in range(reader.count()):
        broker = Broker(reader.int32(), reader.string(), reader.int32(), reader.nullable_string())
        reader.tags()
        brokers[broker.id] = broker
    cluster_id = reader.nullable_string() if version >= 2 else None
    controller = reader.int32()
    topics: dict[str, TopicState] = {}
    failed: dict[str, KctlError] = {}
    operations: dict[str, frozenset[int]] = {}
    partitions = _PartitionReader(reader, version)
    for _ in range(reader.count()):
        name, topic, allowed = _topic(reader, version, partitions)
        if allowed is not None:
            operations[name] = allowed
        if isinstance(topic, KctlError):
            if not keep_errors:
                raise topic
            failed[name] = topic
        elif topic is not None:
            topics[name] = topic
    return ClusterState(cluster_id, controller if controller >= 0 else None, brokers, topics, failed, operations)


def _topic(
    reader: Reader, version: int, partitions: _PartitionReader
) -> tuple[str, TopicState | KctlError | None, frozenset[int] | None]:
    """Return the name of the next topic, the topic (None: it does not exist), and the operations that are allowed."""
    error = reader.int16()
    name = reader.string()
    topic_id = UUID(bytes=reader.take(16)) if version >= 10 else UUID(int=0)
    internal = bool(reader.int8())
    states = partitions.read(name)
    bits = reader.int32() if version >= _METADATA_OPERATIONS else _NO_OPERATIONS  # topic_authorized_operations
    reader.tags()
    if error in _ABSENT:
        return name, None, None
    if error not in _PRESENT:
        return name, _topic_error(error, name), None
    states.sort(key=lambda state: state.partition)
    allowed = None if bits == _NO_OPERATIONS else frozenset(code for code in range(31) if bits >> code & 1)
    return name, TopicState(name, internal, topic_id_text(topic_id), tuple(states)), allowed


_ABSENT = {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.INVALID_TOPIC_EXCEPTION, ErrorCode.UNKNOWN_TOPIC_ID}

_PRESENT = {ErrorCode.NONE, ErrorCode.LEADER_NOT_AVAILABLE}  # the latter: the topic has just been created


def _topic_error(code: int, name: str) -> KctlError:
    if code == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
        return NotAuthorized(
            f"topic {name!r}: not authorized to describe it",
            hint="ask for the ACL operation Describe on the topic",
        )
    from kctl.protocol.error_meanings import error_for

    return error_for(code, None, subject=f"topic {name!r}")


def topic_id_text(topic_id: UUID | None) -> str | None:
    """Return a topic id as Kafka writes it (org.apache.kafka.common.Uuid, base64url); None if missing or zero."""
    return base64.urlsafe_b64encode(topic_id.bytes).decode().rstrip("=") if topic_id and topic_id.int else None


def topic_id_from_text(text: str) -> UUID:
    """Parse a topic id as Kafka writes it. Raises ValueError."""
    return UUID(bytes=base64.urlsafe_b64decode(text + "=="))


class _PartitionReader:
    """A parser of a topic's partitions. It avoids a call for each field: a large response is mostly partitions.

    After a partition's head come arrays of int32 (replica_nodes, isr_nodes and, from v5, offline_replicas) and tagged
    fields.
    """

    def __init__(self, reader: Reader, version: int) -> None:
        self._reader = reader
        self._head = _PARTITION_V7 if version >= 7 else _PARTITION
        self._arrays = 3 if version >= 5 else 2
        self._known: dict[bytes, tuple[int, ...]] = {}  # lists of replicas repeat

    def read(self, topic: str) -> list[PartitionState]:
        reader, head = self._reader, self._head
        result = []
        for _ in range(reader.count()):
            _, partition, leader, *epochs = head.unpack(reader.take(head.size))
            replicas, isr, offline = self._lists()
            reader.tags()
            epoch = epochs[0] if epochs else -1
            result.append(PartitionState(topic, partition, leader, epoch, replicas, isr, offline))
        return result

    def _lists(self) -> Sequence[tuple[int, ...]]:
        reader, cache = self._reader, self._known
        lists = []
        for _ in range(self._arrays):
            count = reader.count()
            raw = reader.take(INT32.size * count) if count > 0 else b""
            values = cache.get(raw)
            if values is None:
                values = cache[raw] = array_of(INT32, len(raw) // INT32.size).unpack(raw)
            lists.append(values)
        return lists if self._arrays == 3 else [*lists, ()]
