"""Decode the records of internal topics by Kafka's message definitions. Rendering is in kctl.segment.dump.

__consumer_offsets: CoordinatorRecordSerde (KIP-848); the version in front of a key is its type. __share_group_state:
ShareCoordinatorRecordSerde (KIP-932), Kafka 4.1 and later; 4.0, a preview, wrote other records with the same version.
__transaction_state: TransactionLog (KIP-98), in Kafka 4 TransactionCoordinatorRecordSerde.
__cluster_metadata: MetadataRecordSerde (KIP-631). __remote_log_metadata: RemoteLogMetadataSerde (KIP-405).
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from kctl.base.binary_layout import INT16
from kctl.segment.format.messages import BadMessage, Message, MessageReader, message, messages, read, to_json
from kctl.segment.format.record import StoredRecord
from kctl.segment.format.release import Release

TRANSACTION_STATES = (
    "Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort", "Dead", "PrepareEpochFence",
)  # fmt: skip
SEGMENT_STATES = (
    "COPY_SEGMENT_STARTED", "COPY_SEGMENT_FINISHED", "DELETE_SEGMENT_STARTED", "DELETE_SEGMENT_FINISHED",
)  # fmt: skip
DELETE_STATES = ("DELETE_PARTITION_MARKED", "DELETE_PARTITION_STARTED", "DELETE_PARTITION_FINISHED")
_FRAME_VERSION = 1
_CONSUMER = "consumer"


class InternalPart(NamedTuple):
    """A decoded key or value.

    version: the number in front of it (for keys, the type); data: like Kafka's JSON converters. problem: why the
    decoded data may be wrong, although Kafka's tool reports no error.
    """

    definition: Message
    version: int
    data: dict[str, Any]
    problem: str | None = None


class UnknownType(ValueError):
    """A key has an unknown type."""

    def __init__(self, number: int) -> None:
        super().__init__(f"unknown record type {number}")
        self.number = number


# --- coordinators: __consumer_offsets, __share_group_state, __transaction_state -------------------------------------


class CoordinatorKeys(NamedTuple):
    """The definitions of a topic's keys by the type in front of a key. Values have the same name, and the release."""

    release: Release
    by_type: Mapping[int, Message]


@lru_cache(maxsize=len(Release))
def group_keys(release: Release) -> CoordinatorKeys:
    """Return the keys of __consumer_offsets: of groups of all types (KIP-848, KIP-932, KIP-1071) and of commits."""
    keys = [each for each in messages(release) if each.name.endswith("Key")]
    if release is not Release.KAFKA_3_9:
        keys = [each for each in keys if "Group" in each.name or "OffsetCommit" in each.name]
        return CoordinatorKeys(release, {key.api_key: key for key in keys if key.api_key is not None})
    # In 3.9, the type is the key's version. Its tool does not support share groups.
    keys = [each for each in keys if not each.name.startswith(("Share", "Transaction"))]
    versions = {version: key for key in keys for version in range(key.versions[0], key.versions[1] + 1)}
    return CoordinatorKeys(release, versions)


@lru_cache(maxsize=1)
def all_group_keys() -> CoordinatorKeys:
    """Return the keys of __consumer_offsets as brokers of any release write them."""
    keys = group_keys(Release.KAFKA_4_4)
    commit = message("OffsetCommitKey", keys.release)
    return keys._replace(by_type={**keys.by_type, 0: commit})  # keys of type 0 have values of every version


@lru_cache(maxsize=1)
def transaction_keys() -> CoordinatorKeys:
    """Return the keys of __transaction_state."""
    release = Release.KAFKA_4_4
    return CoordinatorKeys(release, {0: message("TransactionLogKey", release)})


@lru_cache(maxsize=1)
def share_keys() -> CoordinatorKeys:
    """Return the keys of __share_group_state."""
    release = Release.KAFKA_4_4
    return CoordinatorKeys(release, {0: message("ShareSnapshotKey", release), 1: message("ShareUpdateKey", release)})


def coordinator_record(
    key: bytes, value: bytes | None, keys: CoordinatorKeys, *, lenient: bool = False
) -> tuple[InternalPart, InternalPart | None]:
    """Return the decoded key and value; value None: a tombstone. Raises UnknownType, BadMessage.

    lenient: see messages.read.
    """
    number, content = _with_version(key, "key")
    definition = keys.by_type.get(number)
    if definition is None:
        raise UnknownType(number)
    version = number if definition.versions[0] <= number <= definition.versions[1] else definition.versions[0]
    values, problem = _read(definition, content, version, "key", lenient=lenient, stored_version=number)
    key_part = InternalPart(definition, number, values, problem)
    if value is None:
        return key_part, None
    version, content = _with_version(value, "value")
    definition = message(definition.name.removesuffix("Key") + "Value", keys.release)
    if not (lenient or definition.versions[0] <= version <= definition.versions[1]):
        raise BadMessage(f"Found an unknown record version {version} for {number} type")
    values, problem = _read(definition, content, version, "value", lenient=lenient)
    if definition.name == "GroupMetadataValue" and values["protocolType"] == _CONSUMER:
        _decode_members(values["members"], keys.release)
    return key_part, InternalPart(definition, version, values, problem)


def _with_version(data: bytes, name: str) -> tuple[int, bytes]:
    if len(data) < INT16.size:
        raise BadMessage(f"Could not read version from {name}'s buffer.")
    return INT16.unpack_from(data)[0], data[INT16.size :]


def _read(
    definition: Message, data: bytes, version: int, name: str, *, lenient: bool, stored_version: int | None = None
) -> tuple[dict[str, Any], str | None]:
    """Return the fields as JSON, and the problem (see InternalPart). stored_version: if it is not `version`."""
    reader = MessageReader(data)
    try:
        values = read(definition, reader, version, lenient=lenient)
    except BadMessage as exc:
        raise BadMessage(
            f"Could not read record with version {version if stored_version is None else stored_version} "
            f"from {name}'s buffer due to: {exc.java_message or 'null'}."
        ) from None
    return to_json(definition.fields, values, definition.nearest(version)), _problem(definition, version, reader, name)


def _problem(definition: Message, version: int, reader: MessageReader, name: str) -> str | None:
    if not definition.versions[0] <= version <= definition.versions[1]:
        return f"unknown version {version} of {definition.name}"
    return f"{reader.left} extra bytes after the {name}" if reader.left else None


def _decode_members(members: list[dict[str, Any]], release: Release) -> None:
    """Decode the subscription and assignment of consumer group members, which are bytes (ConsumerProtocol)."""
    for member in members:
        for field, name in (
            ("subscription", "ConsumerProtocolSubscription"),
            ("assignment", "ConsumerProtocolAssignment"),
        ):
            data = base64.b64decode(member[field])
            if len(data) < INT16.size:
                continue
            (version,) = INT16.unpack_from(data)
            definition = message(name, release)
            try:
                values = read(definition, MessageReader(data[INT16.size :]), version)
            except BadMessage:
                continue  # keep the bytes
            member[field] = to_json(definition.fields, values, version)


class TransactionPart(NamedTuple):
    """A key or value of __transaction_state. values: None if the version is unknown; problem: see InternalPart."""

    definition: Message
    version: int
    values: dict[str, Any] | None
    problem: str | None


def transaction_part(data: bytes, name: str, release: Release) -> TransactionPart:
    """Decode a key or value by the name of its definition. Raises BadMessage."""
    if len(data) < INT16.size:
        raise BadMessage(None)
    (version,) = INT16.unpack_from(data)
    definition, reader = message(name, release), MessageReader(data[INT16.size :])
    is_known = definition.versions[0] <= version <= definition.versions[1]
    values = read(definition, reader, version) if is_known else None
    return TransactionPart(definition, version, values, _problem(definition, version, reader, name))


def check_transaction(values: dict[str, Any]) -> str:
    """Return the name of a transaction's state. Raises BadMessage for values that TransactionLog rejects."""
    status = values["transactionStatus"]
    if not 0 <= status < len(TRANSACTION_STATES):
        raise BadMessage(f"Unknown transaction state id {status} from the transaction status message")
    state = TRANSACTION_STATES[status]
    if state != "Empty" and values["transactionPartitions"] is None:
        raise BadMessage("a transaction without partitions")
    return state


# --- framed messages: __cluster_metadata, __remote_log_metadata -----------------------------------------------------


@lru_cache(maxsize=2 * len(Release))
def _by_api_key(release: Release, *, remote: bool) -> dict[int, Message]:
    """Return the definitions by type, for the metadata log or the remote log metadata; types of both start at 0."""
    names = ("RemoteLog", "RemotePartition")
    return {
        each.api_key: each
        for each in messages(release)
        if each.api_key is not None and each.name.endswith("Record") and each.name.startswith(names) == remote
    }


def framed(data: bytes, release: Release, *, remote: bool, lenient: bool = False) -> InternalPart:
    """Decode frame version, type and version (unsigned varints) and the message after them (AbstractApiMessageSerde).

    The returned data are raw values, not JSON. lenient: see coordinator_record. Raises BadMessage.
    """
    reader = MessageReader(data)
    frame = _short_varint(reader, "frame version")
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
    key, version = _short_varint(reader, "type"), _short_varint(reader, "version")
    definition = _by_api_key(release, remote=remote).get(key)
    if definition is None:
        raise BadMessage(f"org.apache.kafka.common.errors.UnsupportedVersionException: Unknown metadata id {key}")
    try:
        values = read(definition, reader, version, lenient=lenient)
    except BadMessage:
        raise BadMessage(f"Failed to deserialize record with type {key}") from None
    if reader.left:
        raise BadMessage(f"Found {reader.left} byte(s) of garbage after {key}")
    return InternalPart(definition, version, values, _problem(definition, version, reader, "value"))


def check_remote(definition: Message, values: dict[str, Any]) -> None:
    """Raise BadMessage for values that the classes of remote log metadata reject."""
    if definition.name == "RemotePartitionDeleteMetadataRecord":
        if not 0 <= values["remotePartitionDeleteState"] < len(DELETE_STATES):
            raise BadMessage(None)
        return
    no_state = not 0 <= values["remoteLogSegmentState"] < len(SEGMENT_STATES)
    if definition.name == "RemoteLogSegmentMetadataRecord":
        start, end = values["startOffset"], values["endOffset"]
        if start < 0:
            text = f"Unexpected start offset = {start}. StartOffset for a remote segment cannot be negative"
            raise BadMessage(text)
        if end < start:
            text = f"Unexpected end offset = {end}. EndOffset for a remote segment cannot be less than startOffset"
            raise BadMessage(f"{text} = {start}")
    elif no_state:
        raise BadMessage("state can not be null")
    if "segmentLeaderEpochs" in values and not values["segmentLeaderEpochs"]:
        raise BadMessage("segmentLeaderEpochs can not be null or empty")
    if no_state:
        raise BadMessage("state can not be null")


def _short_varint(reader: MessageReader, field_name: str) -> int:
    try:
        value = reader.unsigned_varint()
    except BadMessage:
        raise BadMessage(f"Error while reading {field_name}") from None
    if value > 0x7FFF:
        raise BadMessage(f"Value for {field_name} was too large.")
    return value


def metadata_part(record: StoredRecord, release: Release, *, remote: bool, lenient: bool = False) -> InternalPart:
    """Decode a record of __cluster_metadata or __remote_log_metadata. lenient: see messages.read. Raises BadMessage."""
    part = framed(record.value or b"", release, remote=remote, lenient=lenient)
    definition = part.definition
    if remote:
        check_remote(definition, part.data)
    return part._replace(data=to_json(definition.fields, part.data, definition.nearest(part.version)))
