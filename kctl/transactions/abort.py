"""Ending one transaction in one partition, behind the coordinators' back. WriteTxnMarkers (KIP-664)."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from kctl.errors import KctlError, NotFound, OperationFailed, OutcomeUnknown, Refused
from kctl.model import PartitionState
from kctl.protocol.codes import ErrorCode
from kctl.transactions.hanging import holds
from kctl.transactions.listing import NEEDS_ALL, all_can_be_listed, describe_transactions, list_transactions
from kctl.transactions.producers import Producer, describe_producers

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient

_POLL_S = 0.1


def find_open(client: ClusterClient, partition: PartitionState, start_offset: int) -> Producer:
    """The producer whose transaction begins there. Raises NotFound, and what could not be seen."""
    producers = _producers(client, partition)
    open_ = {p.current_transaction_start_offset: p for p in producers if p.current_transaction_start_offset is not None}
    if start_offset not in open_:
        known = ", ".join(map(str, sorted(open_)))
        raise NotFound(
            f"no transaction of {partition.tp} is open that begins at offset {start_offset}",
            hint=f"open ones begin at: {known}" if known else "none is open there",
        )
    return open_[start_offset]


def _producers(client: ClusterClient, partition: PartitionState) -> list[Producer]:
    producers, failed = describe_producers(client, [partition])
    if failed:
        raise failed[partition.tp]
    return producers


def refuse_live(client: ClusterClient, producer: Producer) -> None:
    """Raise Refused when a coordinator knows of the transaction, or it cannot be told: it would end it by itself, and a
    commit of it would be half."""
    listed, failed = list_transactions(client, producer_ids=[producer.producer_id])
    if failed:
        error = next(iter(failed.values()))
        raise Refused(
            f"whether a coordinator knows of it cannot be told: {error.message}",
            hint="--force ends it all the same",
        )
    if not listed and not all_can_be_listed(client):
        raise Refused(
            "whether a coordinator knows of it cannot be told: not every transactional id may be described",
            hint=f"{NEEDS_ALL}; --force ends it all the same",
        )
    for name, state in describe_transactions(client, [row.transactional_id for row in listed]).items():
        if isinstance(state, KctlError):
            raise Refused(f"what the coordinator of {name} knows cannot be told: {state.message}")
        if holds(state, producer):
            raise Refused(
                f"transactional id {name} is {state.state} and has {producer.tp} in its transaction: its"
                " coordinator ends it",
                hint=f"it does after {state.transaction_timeout_ms:,} ms at the latest; --force ends it here and now",
            )


def refuse_changed(client: ClusterClient, partition: PartitionState, planned: Producer) -> None:
    """Raise Refused, or NotFound, when it is not the transaction any more that was shown: somebody took time to say
    yes, and a marker ends whatever the producer has open by then."""
    assert planned.current_transaction_start_offset is not None
    now = find_open(client, partition, planned.current_transaction_start_offset)
    if (now.producer_id, now.producer_epoch) != (planned.producer_id, planned.producer_epoch):
        raise Refused(
            f"another transaction is open there by now: producer id {now.producer_id}, epoch {now.producer_epoch}",
            hint="nothing was changed",
        )


def abort_transaction(
    client: ClusterClient, partition: PartitionState, producer: Producer, *, timeout_s: float
) -> None:
    """Write an abort marker, and wait until the transaction is not open any more. Raises OperationFailed …"""
    answer = client.send(_request(producer), node_id=partition.leader)
    codes = [row.error_code for marker in answer.markers for topic in marker.topics for row in topic.partitions]
    code = codes[0] if codes else -1
    if code:
        raise _error(code, producer)
    deadline = time.monotonic() + timeout_s
    while True:
        try:
            left = [p for p in _producers(client, partition) if _same(p, producer)]
        except KctlError as exc:
            raise OutcomeUnknown(f"the marker was written, but could not be read back: {exc.message}") from None
        if not left:
            return
        if time.monotonic() > deadline:
            raise OperationFailed(f"the marker was taken, but the transaction of {producer.tp} is still open")
        time.sleep(_POLL_S)


def _same(one: Producer, other: Producer) -> bool:
    return (one.producer_id, one.current_transaction_start_offset) == (
        other.producer_id,
        other.current_transaction_start_offset,
    )


def _request(producer: Producer) -> Any:
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
                # A producer that never ended a transaction has none yet (TransactionsCommand.AbortTransactionCommand).
                coordinator_epoch=producer.coordinator_epoch or 0,
            )
        ],
        max_version=1,
    )


def _error(code: int, producer: Producer) -> KctlError:
    from kctl.protocol.client import error_for

    denied = code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    hint = "it needs an ACL for ClusterAction on the cluster" if denied else None
    return error_for(
        code, None, subject=f"transaction of producer id {producer.producer_id} in {producer.tp}", hint=hint
    )
