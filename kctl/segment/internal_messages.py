"""What the records of Kafka's own topics hold, by the definitions of its messages; how it is shown is told elsewhere.

__consumer_offsets: CoordinatorRecordSerde (KIP-848); the version in front of a key tells its type.
__share_group_state: ShareCoordinatorRecordSerde (KIP-932), Kafka 4.1 and later. __transaction_state: TransactionLog
(KIP-98). __cluster_metadata: MetadataRecordSerde (KIP-631). __remote_log_metadata: RemoteLogMetadataSerde (KIP-405).
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from kctl.segment.messages import BadMessage, Message, Reader, message, messages, read, to_json
from kctl.segment.record import Record

TRANSACTION_STATES = (
    "Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort", "Dead", "PrepareEpochFence",
)  # fmt: skip
SEGMENT_STATES = (
    "COPY_SEGMENT_STARTED", "COPY_SEGMENT_FINISHED", "DELETE_SEGMENT_STARTED", "DELETE_SEGMENT_FINISHED",
)  # fmt: skip
DELETE_STATES = ("DELETE_PARTITION_MARKED", "DELETE_PARTITION_STARTED", "DELETE_PARTITION_FINISHED")
_VERSION = struct.Struct(">h")
_FRAME_VERSION = 1
_CONSUMER = "consumer"


class Part(NamedTuple):
    """A key or a value. version: the number in front of it, a key's type; data: as Kafka's JSON converters have it."""

    definition: Message
    version: int
    data: dict[str, Any]


class UnknownType(ValueError):
    """A key of a type that is not known."""

    def __init__(self, number: int) -> None:
        super().__init__(f"unknown record type {number}")
        self.number = number


# --- coordinators: __consumer_offsets, __share_group_state, __transaction_state -------------------------------------


@lru_cache(maxsize=1)
def group_keys() -> Mapping[int, Message]:
    """The version in front of a key of __consumer_offsets → its definition; the value's has the same name."""
    keys = [found for found in messages() if found.name.endswith("Key") and "Group" in found.name]
    keys = [found for found in keys if not found.name.startswith("Share")]  # 3.9's tool does not know them
    keys.append(message("OffsetCommitKey"))
    return {version: key for key in keys for version in range(key.versions[0], key.versions[1] + 1)}


@lru_cache(maxsize=1)
def share_keys() -> Mapping[int, Message]:
    """The same of __share_group_state, where the number in front is the type's."""
    return {0: message("ShareSnapshotKey"), 1: message("ShareUpdateKey")}


def coordinator_record(key: bytes, value: bytes | None, keys: Mapping[int, Message]) -> tuple[Part, Part | None]:
    """Key and value; None is a deletion. Raises UnknownType, BadMessage."""
    number, content = _with_version(key, "key")
    definition = keys.get(number)
    if definition is None:
        raise UnknownType(number)
    version = number if definition.versions[0] <= number <= definition.versions[1] else definition.versions[0]
    values = to_json(definition.fields, _read(definition, content, version, "key"), version)
    key_part = Part(definition, number, values)
    if value is None:
        return key_part, None
    version, content = _with_version(value, "value")
    definition = message(definition.name.removesuffix("Key") + "Value")
    values = to_json(definition.fields, _read(definition, content, version, "value"), version)
    if definition.name == "GroupMetadataValue" and values["protocolType"] == _CONSUMER:
        _open_members(values["members"])
    return key_part, Part(definition, version, values)


def _with_version(data: bytes, name: str) -> tuple[int, bytes]:
    if len(data) < _VERSION.size:
        raise BadMessage(f"Could not read version from {name}'s buffer.")
    return _VERSION.unpack_from(data)[0], data[_VERSION.size :]


def _read(definition: Message, data: bytes, version: int, name: str) -> dict[str, Any]:
    try:
        return read(definition, Reader(data), version)
    except BadMessage as exc:
        raise BadMessage(
            f"Could not read record with version {version} from {name}'s buffer due to: {exc.said or 'null'}."
        ) from None


def _open_members(members: list[dict[str, Any]]) -> None:
    """Members of a consumer group carry their subscription and assignment as bytes (ConsumerProtocol)."""
    for member in members:
        for field, name in (
            ("subscription", "ConsumerProtocolSubscription"),
            ("assignment", "ConsumerProtocolAssignment"),
        ):
            data = base64.b64decode(member[field])
            if len(data) < _VERSION.size:
                continue
            (version,) = _VERSION.unpack_from(data)
            definition = message(name)
            try:
                values = read(definition, Reader(data[_VERSION.size :]), version)
            except BadMessage:
                continue  # the bytes stay as they are
            member[field] = to_json(definition.fields, values, version)


def transaction_part(data: bytes, name: str) -> tuple[Message, int, dict[str, Any] | None]:
    """A key or value of __transaction_state by its definition's name; None of an unknown version. Raises BadMessage."""
    if len(data) < _VERSION.size:
        raise BadMessage(None)
    (version,) = _VERSION.unpack_from(data)
    definition = message(name)
    if not definition.versions[0] <= version <= definition.versions[1]:
        return definition, version, None
    return definition, version, read(definition, Reader(data[_VERSION.size :]), version)


# --- framed messages: __cluster_metadata, __remote_log_metadata -----------------------------------------------------


@lru_cache(maxsize=2)
def _by_api_key(remote: bool) -> dict[int, Message]:
    """Types of the metadata log, or of the remote log's, which count from 0 as well."""
    names = ("RemoteLog", "RemotePartition")
    return {
        found.api_key: found
        for found in messages()
        if found.api_key is not None and found.name.endswith("Record") and found.name.startswith(names) == remote
    }


def framed(data: bytes, *, remote: bool) -> tuple[Message, int, dict[str, Any]]:
    """Frame version, type and version, each an unsigned varint, then the message (AbstractApiMessageSerde).

    The definition, the version and the values, not yet as JSON. Raises BadMessage.
    """
    reader = Reader(data)
    frame = _small(reader, "frame version")
    if frame == 0:
        raise BadMessage(
            "Could not deserialize metadata record with frame version 0. Note that upgrades from the preview release "
            "of KRaft in 2.8 to newer versions are not supported."
        )
    if frame != _FRAME_VERSION:
        raise BadMessage(
            f"Could not deserialize metadata record due to unknown frame version {frame}(only frame version "
            f"{_FRAME_VERSION} is supported)"
        )
    key, version = _small(reader, "type"), _small(reader, "version")
    definition = _by_api_key(remote).get(key)
    if definition is None:
        raise BadMessage(f"org.apache.kafka.common.errors.UnsupportedVersionException: Unknown metadata id {key}")
    try:
        values = read(definition, reader, version)
    except BadMessage:
        raise BadMessage(f"Failed to deserialize record with type {key}") from None
    if reader.left:
        raise BadMessage(f"Found {reader.left} byte(s) of garbage after {key}")
    return definition, version, values


def _small(reader: Reader, what: str) -> int:
    try:
        value = reader.unsigned_varint()
    except BadMessage:
        raise BadMessage(f"Error while reading {what}") from None
    if value > 0x7FFF:
        raise BadMessage(f"Value for {what} was too large.")
    return value


def metadata_part(record: Record, *, remote: bool) -> Part:
    """A record of __cluster_metadata or __remote_log_metadata. Raises BadMessage."""
    definition, version, values = framed(record.value or b"", remote=remote)
    return Part(definition, version, to_json(definition.fields, values, version))
