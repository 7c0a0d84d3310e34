"""Abort a transaction in one partition with WriteTxnMarkers (KIP-664), bypassing its coordinator."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from kctl.errors import KctlError, NotFound, OperationFailed, OutcomeUnknown, Reason, Refused
from kctl.model import PartitionState
from kctl.protocol.codes import ErrorCode
from kctl.transactions.hanging import will_end
from kctl.transactions.listing import NEEDS_ALL, all_can_be_listed, describe_transactions, list_transactions
from kctl.transactions.producers import ProducerState, describe_producers

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient

_POLL_S = 0.1


def find_open(client: ClusterClient, partition: PartitionState, start_offset: int) -> ProducerState:
    """Return the producer of the open transaction that starts at this offset. Raises NotFound, and read errors."""
    producers = _producers(client, partition)
    open_ = {p.current_transaction_start_offset: p for p in producers if p.current_transaction_start_offset is not None}
    if start_offset not in open_:
        offsets = ", ".join(map(str, sorted(open_)))
        raise NotFound(
            f"no open transaction of {partition.tp} starts at offset {start_offset}",
            hint=f"open transactions start at: {offsets}" if offsets else "the partition has no open transactions",
        )
    return open_[start_offset]


def _producers(client: ClusterClient, partition: PartitionState) -> list[ProducerState]:
    producers, failed = describe_producers(client, [partition])
    if failed:
        raise failed[partition.tp]
    return producers


def refuse_live(client: ClusterClient, producer: ProducerState) -> None:
    """Raise Refused if a coordinator knows the transaction, or if this is unknown.

    Its coordinator will end it. If that is a commit, an abort in this partition would commit only part of it.
    """
    listed, failed = list_transactions(client, producer_ids=[producer.producer_id])
    if failed:
        error = next(iter(failed.values()))
        raise Refused(
            f"unknown whether a coordinator knows the transaction: {error.message}",
            hint="use --force to abort it anyway",
            reason=Reason.UNREADABLE,
        )
    if not listed and not all_can_be_listed(client):
        raise Refused(
            "unknown whether a coordinator knows the transaction: you may not describe every transactional id",
            hint=f"{NEEDS_ALL}; use --force to abort it anyway",
            reason=Reason.UNREADABLE,
        )
    for name, state in describe_transactions(client, [row.transactional_id for row in listed]).items():
        if isinstance(state, KctlError):
            raise Refused(f"the coordinator of {name} could not be queried: {state.message}", reason=Reason.UNREADABLE)
        if will_end(state, producer):
            raise Refused(
                f"transactional id {name} is {state.state} with {producer.tp} in its transaction: its coordinator will"
                " end it",
                hint=f"wait at most {state.transaction_timeout_ms:,} ms, or abort it here with --force",
                reason=Reason.NOT_READY,
            )


def refuse_changed(client: ClusterClient, partition: PartitionState, planned: ProducerState) -> None:
    """Raise Refused or NotFound if the transaction changed during confirmation.

    A marker ends whichever transaction of the producer is open when it is written.
    """
    assert planned.current_transaction_start_offset is not None
    now = find_open(client, partition, planned.current_transaction_start_offset)
    if (now.producer_id, now.producer_epoch) != (planned.producer_id, planned.producer_epoch):
        raise Refused(
            f"another transaction is open there now: producer id {now.producer_id}, epoch {now.producer_epoch}",
            hint="nothing was changed",
            reason=Reason.CHANGED_MEANWHILE,
        )


def abort_transaction(
    client: ClusterClient, partition: PartitionState, producer: ProducerState, *, timeout_s: float
) -> None:
    """Write an abort marker, and wait until the transaction is closed.

    Raises OperationFailed, OutcomeUnknown, and the broker's error.
    """
    response = client.send(_request(producer), node_id=partition.leader)
    codes = [row.error_code for marker in response.markers for topic in marker.topics for row in topic.partitions]
    code = codes[0] if codes else -1
    if code:
        raise _error(code, producer)
    deadline = time.monotonic() + timeout_s
    while True:
        try:
            remaining = [p for p in _producers(client, partition) if _is_same_transaction(p, producer)]
        except KctlError as exc:
            raise OutcomeUnknown(f"the marker was written, but could not be read back: {exc.message}") from None
        if not remaining:
            return
        if time.monotonic() > deadline:
            raise OperationFailed(f"the marker was accepted, but the transaction of {producer.tp} is still open")
        time.sleep(_POLL_S)


def _is_same_transaction(one: ProducerState, other: ProducerState) -> bool:
    return (one.producer_id, one.current_transaction_start_offset) == (
        other.producer_id,
        other.current_transaction_start_offset,
    )


def _request(producer: ProducerState) -> Any:
    from kafka.protocol.producer import WriteTxnMarkersRequest

    marker = WriteTxnMarkersRequest.WritableTxnMarker
    topic = marker.WritableTxnMarkerTopic(name=producer.topic, partition_indexes=[producer.partition])
    return WriteTxnMarkersRequest(
        markers=[
            marker(
                producer_id=producer.producer_id,
                producer_epoch=producer.producer_epoch,
                transaction_result=False,
                topics=[topic],
                # A producer that never ended a transaction has no epoch yet
                # (TransactionsCommand.AbortTransactionCommand).
                coordinator_epoch=producer.coordinator_epoch or 0,
            )
        ],
        max_version=1,
    )


def _error(code: int, producer: ProducerState) -> KctlError:
    from kctl.protocol.client import error_for

    denied = code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    hint = "this requires ClusterAction on the cluster" if denied else None
    return error_for(
        code, None, subject=f"transaction of producer id {producer.producer_id} in {producer.tp}", hint=hint
    )
