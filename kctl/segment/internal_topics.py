"""The records of Kafka's own topics, as DumpLogSegments' decoders print them.

__consumer_offsets: CoordinatorRecordSerde (KIP-848); the version in front of a key tells its type.
__transaction_state: TransactionLog (KIP-98). __cluster_metadata: MetadataRecordSerde (KIP-631).
__remote_log_metadata: RemoteLogMetadataSerde (KIP-405).
"""

from __future__ import annotations

import base64
import re
import struct
from functools import lru_cache
from typing import Any

from kctl.segment.kafka_text_options import Dies
from kctl.segment.messages import BadMessage, Message, Reader, json_text, message, messages, read, to_json, uuid_text
from kctl.segment.record import Record
from kctl.segment.scala_order import mutable_set_order

Parsed = tuple[str | None, str | None]
_VERSION = struct.Struct(">h")
_FRAME_VERSION = 1
_CONSUMER = "consumer"
_TRANSACTION_STATES = (
    "Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort", "Dead", "PrepareEpochFence",
)  # fmt: skip
_SEGMENT_STATES = (
    "COPY_SEGMENT_STARTED", "COPY_SEGMENT_FINISHED", "DELETE_SEGMENT_STARTED", "DELETE_SEGMENT_FINISHED",
)  # fmt: skip
_DELETE_STATES = ("DELETE_PARTITION_MARKED", "DELETE_PARTITION_STARTED", "DELETE_PARTITION_FINISHED")


# --- __consumer_offsets ---------------------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def _group_keys() -> dict[int, Message]:
    """The version in front of a key → its definition; the value's has the same name."""
    keys = [found for found in messages() if found.name.endswith("Key") and "Group" in found.name]
    keys = [found for found in keys if not found.name.startswith("Share")]  # 3.9's tool does not know them
    keys.append(message("OffsetCommitKey"))
    return {version: key for key in keys for version in range(key.versions[0], key.versions[1] + 1)}


def offsets_text(record: Record) -> Parsed:
    """A record of __consumer_offsets."""
    if record.key is None:
        raise Dies(
            f"Failed to decode message at offset {record.offset} using offset topic decoder (message had a missing key)"
        )
    try:
        version, key = _with_version(record.key, "key")
        definition = _group_keys().get(version)
        if definition is None:
            return f"Unknown record type {version} at offset {record.offset}, skipping.", None
        shown_key = _shown("type", version, to_json(definition.fields, _read(definition, key, version, "key"), version))
        if record.value is None:
            return shown_key, "<DELETE>"
        version, content = _with_version(record.value, "value")
        definition = message(definition.name.removesuffix("Key") + "Value")
        values = to_json(definition.fields, _read(definition, content, version, "value"), version)
        if definition.name == "GroupMetadataValue" and values["protocolType"] == _CONSUMER:
            _open_members(values["members"])
        return shown_key, _shown("version", version, values)
    except BadMessage as exc:
        return f"Error at offset {record.offset}, skipping. {exc.said or 'null'}", None


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


def _shown(word: str, version: int, data: dict[str, Any]) -> str:
    return json_text({word: str(version), "data": data})


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


# --- __transaction_state --------------------------------------------------------------------------------------------


def transaction_text(record: Record) -> Parsed:
    """A record of __transaction_state."""
    if record.key is None:
        raise Dies("a record without a key")
    try:
        version, data = _short(record.key)
        key = message("TransactionLogKey")
        if not key.versions[0] <= version <= key.versions[1]:
            return f"unknown::version={version}", None
        name = read(key, Reader(data), version)["transactionalId"]
        shown = f"transaction_metadata::transactionalId={name}"
        if record.value is None:
            return shown, "<DELETE>"
        version, data = _short(record.value)
        value = message("TransactionLogValue")
        if not value.versions[0] <= version <= value.versions[1]:
            raise Dies(f"Unknown version {version} from the transaction log message value")
        return shown, _transaction(read(value, Reader(data), version))
    except BadMessage as exc:
        raise Dies(exc.said or "a message that ends too early") from None


def _short(data: bytes) -> tuple[int, bytes]:
    if len(data) < _VERSION.size:
        raise BadMessage(None)
    return _VERSION.unpack_from(data)[0], data[_VERSION.size :]


def _transaction(value: dict[str, Any]) -> str:
    status = value["transactionStatus"]
    if not 0 <= status < len(_TRANSACTION_STATES):
        raise Dies(f"Unknown transaction state id {status} from the transaction status message")
    state = _TRANSACTION_STATES[status]
    partitions: list[tuple[str, int]] = []
    if state != "Empty":
        if value["transactionPartitions"] is None:
            raise Dies("a transaction without partitions")
        partitions = [(t["topic"], p) for t in value["transactionPartitions"] for p in t["partitionIds"]]
    shown = ",".join(f"{topic}-{partition}" for topic, partition in mutable_set_order(partitions))
    return (
        f"producerId:{value['producerId']},producerEpoch:{value['producerEpoch']},state={state},partitions=[{shown}],"
        f"txnLastUpdateTimestamp={value['transactionLastUpdateTimestampMs']},txnTimeoutMs={value['transactionTimeoutMs']}"
    )


# --- __cluster_metadata ---------------------------------------------------------------------------------------------


@lru_cache(maxsize=2)
def _by_api_key(remote: bool) -> dict[int, Message]:
    """Types of the metadata log, or of the remote log's, which count from 0 as well."""
    names = ("RemoteLog", "RemotePartition")
    return {
        found.api_key: found
        for found in messages()
        if found.api_key is not None and found.name.startswith(names) == remote
    }


def metadata_text(record: Record) -> Parsed:
    """A record of __cluster_metadata; its key is never shown."""
    try:
        definition, version, values = _framed(record.value or b"", remote=False)
        data = to_json(definition.fields, values, version)
        kind = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", definition.name).upper()
        return None, json_text({"type": kind, "version": version, "data": data})
    except BadMessage as exc:
        return None, f"Error at {record.offset}, skipping. {exc.said or 'null'}"


def _framed(data: bytes, *, remote: bool) -> tuple[Message, int, dict[str, Any]]:
    """Frame version, type and version, each an unsigned varint, then the message (AbstractApiMessageSerde)."""
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


# --- __remote_log_metadata ------------------------------------------------------------------------------------------


def remote_text(record: Record) -> Parsed:
    """A record of __remote_log_metadata; its key is never shown."""
    try:
        if record.value is None:
            raise BadMessage('Cannot invoke "java.nio.ByteBuffer.remaining()" because the return value of '
                             '"org.apache.kafka.common.record.Record.value()" is null')  # fmt: skip
        definition, _, values = _framed(record.value, remote=True)
        return None, _REMOTE[definition.name](values)
    except BadMessage as exc:
        return None, f"Error at offset {record.offset}, skipping. {exc.said or 'null'}"


def _segment(values: dict[str, Any]) -> str:
    return (
        f"RemoteLogSegmentMetadata{{remoteLogSegmentId={_segment_id(values)}, startOffset={values['startOffset']}, "
        f"endOffset={values['endOffset']}, brokerId={values['brokerId']}, maxTimestampMs={values['maxTimestampMs']}, "
        f"eventTimestampMs={values['eventTimestampMs']}, segmentLeaderEpochs={_epochs(values)}, "
        f"segmentSizeInBytes={values['segmentSizeInBytes']}, customMetadata={_custom(values)}, "
        f"state={_state(values)}}}"
    )


def _update(values: dict[str, Any]) -> str:
    return (
        f"RemoteLogSegmentMetadataUpdate{{remoteLogSegmentId={_segment_id(values)}, customMetadata={_custom(values)}, "
        f"state={_state(values)}, eventTimestampMs={values['eventTimestampMs']}, brokerId={values['brokerId']}}}"
    )


def _snapshot(values: dict[str, Any]) -> str:
    return (
        f"RemoteLogSegmentMetadataSnapshot{{segmentId={uuid_text(values['segmentId'])}, "
        f"startOffset={values['startOffset']}, endOffset={values['endOffset']}, "
        f"maxTimestampMs={values['maxTimestampMs']}, segmentLeaderEpochs={_epochs(values)}, "
        f"segmentSizeInBytes={values['segmentSizeInBytes']}, customMetadata={_custom(values)}, state={_state(values)}}}"
    )


def _partition_delete(values: dict[str, Any]) -> str:
    state = _name(_DELETE_STATES, values["remotePartitionDeleteState"])
    return (
        f"RemotePartitionDeleteMetadata{{topicPartition={_topic_id_partition(values['topicIdPartition'])}, "
        f"state={state}, eventTimestampMs={values['eventTimestampMs']}, brokerId={values['brokerId']}}}"
    )


def _segment_id(values: dict[str, Any]) -> str:
    found = values["remoteLogSegmentId"]
    where = _topic_id_partition(found["topicIdPartition"])
    return f"RemoteLogSegmentId{{topicIdPartition={where}, id={uuid_text(found['id'])}}}"


def _topic_id_partition(found: dict[str, Any]) -> str:
    return f"{uuid_text(found['id'])}:{found['name']}-{found['partition']}"


def _epochs(values: dict[str, Any]) -> str:
    epochs = {entry["leaderEpoch"]: entry["offset"] for entry in values["segmentLeaderEpochs"]}
    if not epochs:
        raise BadMessage("segmentLeaderEpochs can not be null or empty")
    return "{" + ", ".join(f"{epoch}={epochs[epoch]}" for epoch in sorted(epochs)) + "}"


def _custom(values: dict[str, Any]) -> str:
    data = values["customMetadata"]
    return "Optional.empty" if data is None else f"Optional[CustomMetadata{{{len(data)} bytes}}]"


def _state(values: dict[str, Any]) -> str:
    return _name(_SEGMENT_STATES, values["remoteLogSegmentState"])


def _name(names: tuple[str, ...], number: int) -> str:
    return names[number] if 0 <= number < len(names) else "null"


_REMOTE = {
    "RemoteLogSegmentMetadataRecord": _segment,
    "RemoteLogSegmentMetadataUpdateRecord": _update,
    "RemoteLogSegmentMetadataSnapshotRecord": _snapshot,
    "RemotePartitionDeleteMetadataRecord": _partition_delete,
}
