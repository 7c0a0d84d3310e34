"""The records of internal topics, as the decoders of DumpLogSegments print them."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from kctl.segment.dump.kafka_text_options import Parsed, Parser, ToolCrash
from kctl.segment.format.hash_order import mutable_set_order
from kctl.segment.format.internal_messages import (
    DELETE_STATES,
    SEGMENT_STATES,
    TRANSACTION_STATES,
    CoordinatorKeys,
    InternalPart,
    UnknownType,
    check_remote,
    check_transaction,
    coordinator_record,
    framed,
    group_keys,
    metadata_part,
    share_keys,
    transaction_keys,
    transaction_part,
)
from kctl.segment.format.messages import BadMessage, json_text, uuid_text
from kctl.segment.format.record import StoredRecord
from kctl.segment.format.release import Release

# --- __consumer_offsets, __share_group_state, and with Kafka 4 __transaction_state ----------------------------------


def _coordinator(keys: CoordinatorKeys) -> Parser:
    """Return a parser of records with these keys. Kafka 3.9 decodes values of unknown versions, Kafka 4 does not."""
    lenient = keys.release is Release.KAFKA_3_9
    decoder = "using offset topic decoder" if lenient else "using the specified decoder"

    def parse(record: StoredRecord) -> Parsed:
        if record.key is None:
            raise ToolCrash(f"Failed to decode message at offset {record.offset} {decoder} (message had a missing key)")
        return _coordinator_text(record, record.key, keys, lenient=lenient)

    return parse


def _coordinator_text(record: StoredRecord, key_data: bytes, keys: CoordinatorKeys, *, lenient: bool) -> Parsed:
    try:
        key, value = coordinator_record(key_data, record.value, keys, lenient=lenient)
    except UnknownType as exc:
        return Parsed(f"Unknown record type {exc.number} at offset {record.offset}, skipping.", None, str(exc))
    except BadMessage as exc:
        return Parsed(f"Error at offset {record.offset}, skipping. {exc.java_message or 'null'}", None, str(exc))
    key_text = _data_text("type", key.version, key.data)
    if value is None:
        return Parsed(key_text, "<DELETE>", key.problem)
    problem = key.problem or value.problem
    if value.definition.name == "TransactionLogValue":
        problem = _name_state(value.data) or problem
    return Parsed(key_text, _data_text("version", value.version, value.data), problem)


def _name_state(transaction: dict[str, Any]) -> str | None:
    """Replace the number of a transaction's state by its name, or by text if unknown. Return what is wrong."""
    problem = None
    try:
        check_transaction(transaction)
    except BadMessage as exc:
        problem = str(exc)
    status = transaction["transactionStatus"]
    has_name = 0 <= status < len(TRANSACTION_STATES)
    transaction["transactionStatus"] = TRANSACTION_STATES[status] if has_name else str(status)
    return problem


def _data_text(word: str, version: int, data: dict[str, Any]) -> str:
    return json_text({word: str(version), "data": data})


# --- __transaction_state of 3.9 -------------------------------------------------------------------------------------


def _transaction_text(record: StoredRecord) -> Parsed:
    if record.key is None:
        raise ToolCrash("a record without a key")
    try:
        key = transaction_part(record.key, "TransactionLogKey", Release.KAFKA_3_9)
        if key.values is None:
            return Parsed(f"unknown::version={key.version}", None, key.problem)
        key_text = f"transaction_metadata::transactionalId={key.values['transactionalId']}"
        if record.value is None:
            return Parsed(key_text, "<DELETE>", key.problem)
        value = transaction_part(record.value, "TransactionLogValue", Release.KAFKA_3_9)
        if value.values is None:
            raise ToolCrash(f"Unknown version {value.version} from the transaction log message value")
        return Parsed(key_text, _transaction(value.values), key.problem or value.problem)
    except BadMessage as exc:
        raise ToolCrash(exc.java_message or "a message that ends too early") from None


def _transaction(value: dict[str, Any]) -> str:
    state = check_transaction(value)
    partitions: list[tuple[str, int]] = []
    if state != "Empty":
        partitions = [(t["topic"], p) for t in value["transactionPartitions"] for p in t["partitionIds"]]
    names = ",".join(f"{topic}-{partition}" for topic, partition in mutable_set_order(partitions))
    return (
        f"producerId:{value['producerId']},producerEpoch:{value['producerEpoch']},state={state},partitions=[{names}],"
        f"txnLastUpdateTimestamp={value['transactionLastUpdateTimestampMs']},txnTimeoutMs={value['transactionTimeoutMs']}"
    )


# --- __cluster_metadata ---------------------------------------------------------------------------------------------


def _metadata_text(record: StoredRecord, release: Release) -> Parsed:
    """Return the text of a record of __cluster_metadata; its key is never printed."""
    try:
        part = metadata_part(record, release, remote=False, lenient=True)
        kind = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", part.definition.name).upper()
        return Parsed(None, json_text({"type": kind, "version": part.version, "data": part.data}), part.problem)
    except BadMessage as exc:
        return Parsed(None, f"Error at {record.offset}, skipping. {exc.java_message or 'null'}", str(exc))


# --- __remote_log_metadata ------------------------------------------------------------------------------------------


def _remote_text(record: StoredRecord, release: Release) -> Parsed:
    """Return the text of a record of __remote_log_metadata; its key is never printed."""
    try:
        if record.value is None:
            package = "record" if release is Release.KAFKA_3_9 else "record.internal"
            raise BadMessage('Cannot invoke "java.nio.ByteBuffer.remaining()" because the return value of '
                             f'"org.apache.kafka.common.{package}.Record.value()" is null')  # fmt: skip
        part: InternalPart = framed(record.value, release, remote=True, lenient=True)
        check_remote(part.definition, part.data)
        return Parsed(None, _REMOTE[part.definition.name](part.data), part.problem)
    except BadMessage as exc:
        return Parsed(None, f"Error at offset {record.offset}, skipping. {exc.java_message or 'null'}", str(exc))


def _segment(values: dict[str, Any]) -> str:
    return (
        f"RemoteLogSegmentMetadata{{remoteLogSegmentId={_segment_id(values)}, startOffset={values['startOffset']}, "
        f"endOffset={values['endOffset']}, brokerId={values['brokerId']}, maxTimestampMs={values['maxTimestampMs']}, "
        f"eventTimestampMs={values['eventTimestampMs']}, segmentLeaderEpochs={_epochs(values)}, "
        f"segmentSizeInBytes={values['segmentSizeInBytes']}, customMetadata={_custom(values)}, "
        f"state={_state(values)}{_transaction_index(values)}}}"
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
        f"segmentSizeInBytes={values['segmentSizeInBytes']}, customMetadata={_custom(values)}, "
        f"state={_state(values)}{_transaction_index(values)}}}"
    )


def _partition_delete(values: dict[str, Any]) -> str:
    state = _name(DELETE_STATES, values["remotePartitionDeleteState"])
    return (
        f"RemotePartitionDeleteMetadata{{topicPartition={_topic_id_partition(values['topicIdPartition'])}, "
        f"state={state}, eventTimestampMs={values['eventTimestampMs']}, brokerId={values['brokerId']}}}"
    )


def _segment_id(values: dict[str, Any]) -> str:
    values = values["remoteLogSegmentId"]
    where = _topic_id_partition(values["topicIdPartition"])
    return f"RemoteLogSegmentId{{topicIdPartition={where}, id={uuid_text(values['id'])}}}"


def _topic_id_partition(values: dict[str, Any]) -> str:
    return f"{uuid_text(values['id'])}:{values['name']}-{values['partition']}"


def _epochs(values: dict[str, Any]) -> str:
    epochs = {entry["leaderEpoch"]: entry["offset"] for entry in values["segmentLeaderEpochs"]}
    return "{" + ", ".join(f"{epoch}={epochs[epoch]}" for epoch in sorted(epochs)) + "}"


def _custom(values: dict[str, Any]) -> str:
    data = values["customMetadata"]
    return "Optional.empty" if data is None else f"Optional[CustomMetadata{{{len(data)} bytes}}]"


def _state(values: dict[str, Any]) -> str:
    return _name(SEGMENT_STATES, values["remoteLogSegmentState"])


def _transaction_index(values: dict[str, Any]) -> str:
    """Return the text of a field that Kafka 4 added."""
    if "txnIndexEmpty" not in values:
        return ""
    return f", txnIdxEmpty={'true' if values['txnIndexEmpty'] else 'false'}"


def _name(names: tuple[str, ...], number: int) -> str:
    return names[number] if 0 <= number < len(names) else "null"


_REMOTE = {
    "RemoteLogSegmentMetadataRecord": _segment,
    "RemoteLogSegmentMetadataUpdateRecord": _update,
    "RemoteLogSegmentMetadataSnapshotRecord": _snapshot,
    "RemotePartitionDeleteMetadataRecord": _partition_delete,
}


# By the name of the option without "_decoder".
TEXTS: dict[str, Callable[[Release], Parser]] = {
    "offsets": lambda release: _coordinator(group_keys(release)),
    "transaction_log": lambda release: (
        _transaction_text if release is Release.KAFKA_3_9 else _coordinator(transaction_keys())
    ),
    "cluster_metadata": lambda release: lambda record: _metadata_text(record, release),
    "remote_log_metadata": lambda release: lambda record: _remote_text(record, release),
    "share_group_state": lambda _: _coordinator(share_keys()),
}
