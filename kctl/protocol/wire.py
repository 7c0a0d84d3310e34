"""The few Kafka messages that every command needs, encoded and decoded without a client library.

A command like `topic list` is one ApiVersions and one Metadata request: importing a whole client for them would
cost more than the rest of the command. Everything else goes through kafka-python's message classes.

A frame is int32 size, header, body, all big-endian (https://kafka.apache.org/protocol):

    request header v1   int16 api_key, int16 api_version, int32 correlation_id, nullable string client_id
    request header v2   the same, then tagged fields (flexible versions, KIP-482)
    response header     int32 correlation_id; v1 (flexible versions, except ApiVersions): then tagged fields

Strings are an int16 length and UTF-8, arrays an int32 count; in flexible versions both have an unsigned varint of
length + 1, and every structure ends in tagged fields.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import NamedTuple
from uuid import UUID

from kctl.base.binary_layout import INT16, INT32, INT64, Layout, array_of
from kctl.errors import KctlError, NotAuthorized
from kctl.model import Broker, ClusterState, PartitionState, TopicState
from kctl.protocol.codes import ApiKey, ErrorCode

API_VERSIONS_FLEXIBLE, API_VERSIONS_MAX = 3, 4  # v3 (2.4): KIP-511; v4 (3.9) has the same layout
METADATA_MIN, METADATA_MAX = 1, 12  # v1 (0.10.0): controller, null for all topics; v12 (2.8): topic ids
_METADATA_NO_CREATION = 4  # v4 (0.11): allow_auto_topic_creation
_METADATA_OPERATIONS = 8  # v8 (2.3): authorized operations, a bit for each code of AclOperation
_NO_OPERATIONS = -(2**31)  # the broker does not report them
CLIENT_ID = "kctl"

# A request header v1; the client id follows.
_REQUEST_HEADER = Layout(
    api_key=INT16,
    api_version=INT16,
    correlation_id=INT32,
    client_id_length=INT16,
)
# The beginning of every response.
RESPONSE_HEADER = Layout(
    size=INT32,  # bytes after this field
    correlation_id=INT32,
)
_API_RANGE = Layout(api_key=INT16, min_version=INT16, max_version=INT16)
# The beginning of a partition in a Metadata response, before v7 without the leader's epoch.
_PARTITION = Layout(error_code=INT16, partition_index=INT32, leader_id=INT32)
_PARTITION_V7 = Layout(**_PARTITION.fields, leader_epoch=INT32)
_NO_UUID = bytes(16)


class WireError(Exception):
    """Bytes that do not follow the layout."""


class Reader:
    """Reads one response body. All methods raise WireError at its end."""

    def __init__(self, data: bytes | bytearray | memoryview, flexible: bool = False) -> None:
        self._data = bytes(data)
        self._at = 0
        self.flexible = flexible

    @property
    def data(self) -> bytes:
        return self._data

    @property
    def position(self) -> int:
        return self._at

    def take(self, count: int) -> bytes:
        end = self._at + count
        if count < 0 or end > len(self._data):
            raise WireError("cut short")
        piece = self._data[self._at : end]
        self._at = end
        return piece

    def int8(self) -> int:
        return self.take(1)[0]

    def int16(self) -> int:
        return int(INT16.unpack(self.take(INT16.size))[0])

    def int32(self) -> int:
        return int(INT32.unpack(self.take(INT32.size))[0])

    def int64(self) -> int:
        return int(INT64.unpack(self.take(INT64.size))[0])

    def unsigned_varint(self) -> int:
        value = shift = 0
        while True:
            byte = self.int8()
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7
            if shift > 28:
                raise WireError("varint too long")

    def count(self) -> int:
        """An array's length; -1 for null."""
        return self.unsigned_varint() - 1 if self.flexible else self.int32()

    def nullable_string(self) -> str | None:
        length = self.unsigned_varint() - 1 if self.flexible else self.int16()
        return None if length < 0 else self.take(length).decode("utf-8", "replace")

    def string(self) -> str:
        return self.nullable_string() or ""

    def nullable_bytes(self) -> bytes | None:
        length = self.unsigned_varint() - 1 if self.flexible else self.int32()
        return None if length < 0 else self.take(length)

    def tags(self) -> None:
        """Skip the tagged fields that end a structure of a flexible version."""
        if self.flexible:
            for _ in range(self.unsigned_varint()):
                self.unsigned_varint()
                self.take(self.unsigned_varint())


def string(text: str) -> bytes:
    """A string of a version that is not flexible."""
    raw = text.encode()
    return INT16.pack(len(raw)) + raw


def compact_string(text: str) -> bytes:
    """A string of a flexible version."""
    raw = text.encode()
    return unsigned_varint(len(raw) + 1) + raw


def unsigned_varint(value: int) -> bytes:
    """7 bits a byte, the lowest first."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def frame(api_key: int, version: int, correlation_id: int, body: bytes, *, flexible: bool = False) -> bytes:
    """A whole request, size first."""
    header = request_header(api_key, version, correlation_id) + (b"\0" if flexible else b"")
    return INT32.pack(len(header) + len(body)) + header + body


def request_header(api_key: int, version: int, correlation_id: int) -> bytes:
    """Return a request header v1."""
    client = CLIENT_ID.encode()
    return _REQUEST_HEADER.pack(api_key, version, correlation_id, len(client)) + client


# --- ApiVersions (KIP-35) -----------------------------------------------------------------------------------------


def encode_api_versions(version: int) -> bytes:
    """ApiVersionsRequest v0 to v4; from v3 with the client's name and version, which brokers check (KIP-511)."""
    if version < API_VERSIONS_FLEXIBLE:
        return b""
    from kctl import __version__

    software_version = re.sub(r"[^A-Za-z0-9.-]", "-", __version__)
    return compact_string(CLIENT_ID) + compact_string(software_version) + b"\0"


def decode_api_versions(reader: Reader, version: int = 0) -> tuple[int, dict[int, tuple[int, int]]]:
    """ApiVersionsResponse v0 to v4: error code, and api key → (lowest, highest version).

    The header never has tagged fields. With UNSUPPORTED_VERSION the body is of version 0, whatever was asked.
    """
    error = reader.int16()
    reader.flexible = version >= API_VERSIONS_FLEXIBLE and error != ErrorCode.UNSUPPORTED_VERSION
    ranges = {}
    for _ in range(reader.count()):
        key, low, high = _API_RANGE.unpack(reader.take(_API_RANGE.size))
        reader.tags()
        ranges[key] = (low, high)
    return error, ranges


# --- SaslHandshake v1, SaslAuthenticate v1 (KIP-43, KIP-152, KIP-368) ----------------------------------------------


class SaslHandshake(NamedTuple):
    """error_code 33: the mechanism is not enabled; 34: the listener has no SASL."""

    error_code: int
    mechanisms: tuple[str, ...]


class SaslAuthentication(NamedTuple):
    """session_lifetime_ms: 0 when the session does not end."""

    error_code: int
    error_message: str | None
    auth_bytes: bytes
    session_lifetime_ms: int


def decode_sasl_handshake(reader: Reader) -> SaslHandshake:
    """SaslHandshakeResponse v0 and v1."""
    error = reader.int16()
    return SaslHandshake(error, tuple(reader.string() for _ in range(reader.int32())))


def encode_sasl_authenticate(token: bytes) -> bytes:
    """SaslAuthenticateRequest v0 and v1."""
    return INT32.pack(len(token)) + token


def decode_sasl_authenticate(reader: Reader, version: int) -> SaslAuthentication:
    """SaslAuthenticateResponse v0 and v1."""
    error, message, token = reader.int16(), reader.nullable_string(), reader.nullable_bytes()
    lifetime = reader.int64() if version >= 1 else 0
    return SaslAuthentication(error, message, token or b"", max(0, lifetime))


# --- Metadata -----------------------------------------------------------------------------------------------------


def metadata_is_flexible(version: int) -> bool:
    """Versions from 9 (KIP-482)."""
    return version >= 9


class MetadataRequest:
    """A Metadata request and the reader of its responses, in the shape of kafka-python's requests.

    topics: None for all, empty for none. operations: whether to ask for the operations that the user may perform on
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
        """Return the response without topics that were not requested. Raises what `decode_metadata` raises."""
        state = decode_metadata(reader, version, keep_errors=self._keep_errors or version < _METADATA_NO_CREATION)
        if self.topics is None or version >= _METADATA_NO_CREATION:
            return state
        kept = {name: topic for name, topic in state.topics.items() if name in self.topics}
        failed = {name: error for name, error in state.failed.items() if name in self.topics}
        if failed and not self._keep_errors:
            raise next(iter(failed.values()))
        return replace(state, topics=kept, failed=failed)

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
    from kctl.protocol.error_codes import error_for

    return error_for(code, None, subject=f"topic {name!r}")


def topic_id_text(topic_id: UUID | None) -> str | None:
    """A topic id as Kafka writes it (org.apache.kafka.common.Uuid): base64url. None for none, also for all zeros."""
    return base64.urlsafe_b64encode(topic_id.bytes).decode().rstrip("=") if topic_id and topic_id.int else None


def topic_id_from_text(text: str) -> UUID:
    """The reverse. Raises ValueError."""
    return UUID(bytes=base64.urlsafe_b64decode(text + "=="))


class _PartitionReader:
    """The partitions of a topic: the part that counts at 100,000 partitions, so it avoids calls for each field.

    After its head come arrays of int32 (replica_nodes, isr_nodes and, from v5, offline_replicas) and tagged fields.
    """

    def __init__(self, reader: Reader, version: int) -> None:
        self._reader = reader
        self._head = _PARTITION_V7 if version >= 7 else _PARTITION
        self._arrays = 3 if version >= 5 else 2
        self._known: dict[bytes, tuple[int, ...]] = {}  # the same few replica lists come again and again

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
        reader, known = self._reader, self._known
        lists = []
        for _ in range(self._arrays):
            count = reader.count()
            raw = reader.take(INT32.size * count) if count > 0 else b""
            values = known.get(raw)
            if values is None:
                values = known[raw] = array_of(INT32, len(raw) // INT32.size).unpack(raw)
            lists.append(values)
        return lists if self._arrays == 3 else [*lists, ()]
