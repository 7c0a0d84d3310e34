"""What coordinators know of transactions. ListTransactions, DescribeTransactions (KIP-664)."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from kctl.errors import KctlError, UsageError
from kctl.groups.coordinators import TRANSACTION, ByCoordinator, ask_coordinators, failure, send_in_chunks
from kctl.model import TopicPartition
from kctl.suggestions import did_you_mean

if TYPE_CHECKING:
    from kctl.client import ClusterClient

# org.apache.kafka.clients.admin.TransactionState
STATES = (
    "Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort", "Dead",
    "PrepareEpochFence",
)  # fmt: skip


@dataclass(frozen=True)
class TransactionListing:
    """coordinator: a broker's id."""

    transactional_id: str
    coordinator: int
    producer_id: int
    transaction_state: str


@dataclass(frozen=True)
class Transaction:
    """transaction_start_time and duration_ms are null while none is open. partitions: «topic-0»."""

    transactional_id: str
    coordinator: int
    producer_id: int
    producer_epoch: int
    transaction_state: str
    transaction_timeout_ms: int
    transaction_start_time: datetime | None
    duration_ms: int | None
    partitions: list[str]


def parse_states(texts: Iterable[str]) -> list[str]:
    """«ongoing» → Ongoing. Raises UsageError."""
    by_folded = {state.casefold(): state for state in STATES}
    found = []
    for text in texts:
        if text.casefold() not in by_folded:
            hint = did_you_mean(text, STATES) or f"one of {', '.join(STATES)}"
            raise UsageError(f"--state {text!r} is unknown", hint=hint)
        found.append(by_folded[text.casefold()])
    return list(dict.fromkeys(found))


def list_transactions(
    client: ClusterClient,
    *,
    states: Sequence[str] = (),
    producer_ids: Collection[int] = (),
    duration_ms: int | None = None,
) -> tuple[list[TransactionListing], dict[int, KctlError]]:
    """The transactions of all coordinators, sorted, and the brokers that could not be asked.

    Brokers leave out the transactional ids that may not be described, without a word. duration_ms: only those that have
    been open for longer (KIP-994, brokers ≥ 3.8). Raises NotSupported; the error of the brokers when all failed.
    """
    from kafka.protocol.admin import ListTransactionsRequest

    brokers = sorted(client.metadata(()).brokers)
    request = {
        node: ListTransactionsRequest(
            state_filters=list(states),
            producer_id_filters=sorted(producer_ids),
            **({} if duration_ms is None else {"duration_filter": duration_ms, "min_version": 1}),
        )
        for node in brokers
    }
    found: list[TransactionListing] = []
    failed: dict[int, KctlError] = {}
    for node, answer in client.send_each(request).items():
        error = answer if isinstance(answer, KctlError) else _error(answer, node)
        if error is not None:
            failed[node] = error
            continue
        found += [
            TransactionListing(row.transactional_id, node, row.producer_id, row.transaction_state)
            for row in answer.transaction_states
        ]
    if failed and len(failed) == len(brokers):
        raise next(iter(failed.values()))
    return sorted(found, key=lambda row: (row.transactional_id, row.coordinator)), failed


def _error(answer: Any, node: int) -> KctlError | None:
    from kctl.client import error_for

    return error_for(answer.error_code, None, subject=f"transactions of broker {node}") if answer.error_code else None


def describe_transactions(client: ClusterClient, ids: Iterable[str]) -> dict[str, Transaction | KctlError]:
    """By transactional id, a failure being a value: NotFound, NotAuthorized …"""

    def ask(by_node: ByCoordinator) -> dict[str, Transaction | KctlError]:
        nodes = {name: node for node, names in by_node.items() for name in names}
        return send_in_chunks(client, by_node, _request, lambda answer: _parse(answer, nodes))

    return ask_coordinators(client, ids, ask, key_type=TRANSACTION)


def _request(ids: Sequence[str]) -> object:
    from kafka.protocol.admin import DescribeTransactionsRequest

    return DescribeTransactionsRequest(transactional_ids=list(ids))


def _parse(answer: Any, nodes: dict[str, int]) -> dict[str, Transaction | KctlError]:
    now_ms = round(time.time() * 1000)
    return {
        row.transactional_id: failure(row.error_code, None, row.transactional_id, key_type=TRANSACTION)
        if row.error_code
        else _transaction(row, nodes[row.transactional_id], now_ms)
        for row in answer.transaction_states
    }


def _transaction(row: Any, node: int, now_ms: int) -> Transaction:
    open_ = row.transaction_start_time_ms >= 0
    return Transaction(
        transactional_id=row.transactional_id,
        coordinator=node,
        producer_id=row.producer_id,
        producer_epoch=row.producer_epoch,
        transaction_state=row.transaction_state,
        transaction_timeout_ms=row.transaction_timeout_ms,
        transaction_start_time=moment(row.transaction_start_time_ms) if open_ else None,
        duration_ms=max(0, now_ms - row.transaction_start_time_ms) if open_ else None,
        partitions=[
            str(TopicPartition(topic.topic, number)) for topic in row.topics for number in sorted(topic.partitions)
        ],
    )


def moment(ms: int) -> datetime | None:
    """A broker's time; None where there is none, or it is none."""
    try:
        return datetime.fromtimestamp(ms / 1000, timezone.utc) if ms >= 0 else None
    except (ValueError, OverflowError, OSError):
        return None
