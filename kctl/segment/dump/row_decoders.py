"""Decoders for the keys and values of rows: messages of internal topics as objects, numbers as numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from kctl.base.binary_layout import FLOAT64, INT32, INT64
from kctl.segment.dump.rows import DecodedRecord, RowDecoder, encoded, plain
from kctl.segment.format.internal_messages import (
    DELETE_STATES,
    SEGMENT_STATES,
    TRANSACTION_STATES,
    CoordinatorKeys,
    InternalPart,
    UnknownType,
    all_group_keys,
    check_transaction,
    coordinator_record,
    metadata_part,
    share_keys,
    transaction_part,
)
from kctl.segment.format.messages import BadMessage, to_json
from kctl.segment.format.record import StoredRecord
from kctl.segment.format.release import Release

JSON = "json"
_RELEASE = Release.KAFKA_4_4  # its definitions include the records of earlier releases
_NUMBERS = {"long": INT64, "integer": INT32, "double": FLOAT64}


# --- internal topics: {"type": the message's name, "version": …, "data": its fields under Kafka's names} ---------


def _coordinator(keys: Callable[[], CoordinatorKeys]) -> RowDecoder:
    def decode(record: StoredRecord) -> DecodedRecord:
        if record.key is None:
            return plain(record, error="a record without a key")
        try:
            key, value = coordinator_record(record.key, record.value, keys())
        except (UnknownType, BadMessage) as exc:
            return plain(record, error=str(exc))
        if value is None:
            return DecodedRecord(_object(key), JSON, None, None, key.problem)
        return DecodedRecord(_object(key), JSON, _object(value), JSON, key.problem or value.problem)

    return decode


def _transaction(record: StoredRecord) -> DecodedRecord:
    if record.key is None:
        return plain(record, error="a record without a key")
    try:
        key = _transaction_part(record.key, "TransactionLogKey")
        if record.value is None:
            return DecodedRecord(_object(key), JSON, None, None, key.problem)
        value = _transaction_part(record.value, "TransactionLogValue")
    except BadMessage as exc:
        return plain(record, error=str(exc))
    return DecodedRecord(_object(key), JSON, _object(value), JSON, key.problem or value.problem)


def _transaction_part(data: bytes, name: str) -> InternalPart:
    definition, version, values, problem = transaction_part(data, name, _RELEASE)
    if values is None:
        raise BadMessage(problem)
    if name == "TransactionLogValue":
        check_transaction(values)
    return InternalPart(definition, version, to_json(definition.fields, values, version), problem)


def _metadata(*, remote: bool) -> RowDecoder:
    def decode(record: StoredRecord) -> DecodedRecord:
        try:
            part = metadata_part(record, _RELEASE, remote=remote)
        except BadMessage as exc:
            return plain(record, error=str(exc))
        return DecodedRecord(*encoded(record.key), _object(part), JSON, part.problem)

    return decode


# Fields with the number of a state, and the names of the states.
_STATES = {
    "transactionStatus": TRANSACTION_STATES,
    "remoteLogSegmentState": SEGMENT_STATES,
    "remotePartitionDeleteState": DELETE_STATES,
}


def _object(part: InternalPart) -> dict[str, Any]:
    data = part.data
    for field, names in _STATES.items():
        number = data.get(field)
        if isinstance(number, int) and 0 <= number < len(names):
            data[field] = names[number]
    return {"type": part.definition.name, "version": part.version, "data": data}


INTERNAL_TOPICS: dict[str, RowDecoder] = {
    "offsets": _coordinator(all_group_keys),
    "share_group_state": _coordinator(share_keys),
    "transaction_log": _transaction,
    "cluster_metadata": _metadata(remote=False),
    "remote_log_metadata": _metadata(remote=True),
}


# --- string, long, integer, double, bytes ---------------------------------------------------------------------------


def of_types(key: str, value: str) -> RowDecoder:
    """Return a decoder of keys and values. key, value: names in decoders.DECODERS."""

    def decode(record: StoredRecord) -> DecodedRecord:
        first, second = _typed(record.key, key), _typed(record.value, value)
        return DecodedRecord(*first[:2], *second[:2], first[2] or second[2])

    return decode


def _typed(data: bytes | None, name: str) -> tuple[Any, str | None, str | None]:
    """Return the value, its encoding and the error."""
    layout = _NUMBERS.get(name)
    if data is None or name == "string":
        return *encoded(data), None
    if layout is None:
        return *encoded(data, text=False), None
    if len(data) != layout.size:
        return *encoded(data), f"{len(data)} bytes are not a valid {name}"
    (number,) = layout.unpack(data)
    # JSON has neither NaN nor infinity.
    return (str(number) if isinstance(number, float) and not math.isfinite(number) else number), name, None
