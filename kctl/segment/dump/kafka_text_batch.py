"""The line of a batch, as Kafka's DumpLogSegments writes it."""

from __future__ import annotations

from kctl.segment.format.batch import (
    CONTROL_MASK,
    DELETE_HORIZON_MASK,
    TRANSACTIONAL_MASK,
    Batch,
)


def batch_text(batch: Batch, *, valid: bool) -> tuple[str, str]:
    """Return a batch's line in two parts. With an unknown codec or magic, Kafka's tool ends between them."""
    if batch.legacy:
        kind = "NoTimestampType" if batch.magic == 0 else _timestamp_type(batch)
        return f"offset: {batch.base_offset}", _tail(batch, kind, valid=valid)
    first = batch.base_timestamp
    attributes = batch.attributes
    head = (
        f"baseOffset: {batch.base_offset} lastOffset: {batch.last_offset} count: {batch.record_count} "
        f"baseSequence: {batch.base_sequence} lastSequence: {batch.last_sequence} "
        f"producerId: {batch.producer_id} producerEpoch: {batch.producer_epoch} "
        f"partitionLeaderEpoch: {batch.partition_leader_epoch} "
        f"isTransactional: {'true' if attributes & TRANSACTIONAL_MASK else 'false'} "
        f"isControl: {'true' if attributes & CONTROL_MASK else 'false'} "
        f"deleteHorizonMs: {f'OptionalLong[{first}]' if attributes & DELETE_HORIZON_MASK else 'OptionalLong.empty'}"
    )
    return head, _tail(batch, _timestamp_type(batch), valid=valid)


def _tail(batch: Batch, kind: str, *, valid: bool) -> str:
    return (
        f" position: {batch.position} {kind}: {batch.max_timestamp} size: {batch.size} magic: {batch.magic} "
        f"compresscodec: {batch.codec_name} crc: {batch.crc} isvalid: {'true' if valid else 'false'}"
    )


def _timestamp_type(batch: Batch) -> str:
    return "LogAppendTime" if batch.log_append_time else "CreateTime"
