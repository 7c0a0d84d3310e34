"""Transactions as coordinators report them: ListTransactions, DescribeTransactions (KIP-664)."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from kctl.base.suggestions import did_you_mean
from kctl.base.text import counted
from kctl.cluster.groups.coordinators import TRANSACTION, ByCoordinator, ask_coordinators, failure, send_in_chunks
from kctl.cluster.groups.names import check_id
from kctl.errors import KctlError, NotAuthorized, NotFound, OperationFailed, UsageError
from kctl.model import TopicPartition
from kctl.protocol.codes import ErrorCode

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient

# org.apache.kafka.clients.admin.TransactionState
STATES = (
    "Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort", "Dead",
    "PrepareEpochFence",
)  # fmt: skip
NEEDS_ALL = "this requires Describe on transactional-id *"
STATES_TOPIC = "__transaction_state"
_ANY_NAME = "kctl-may-describe-any"


@dataclass(frozen=True)
class TransactionListing:
    """An entry in a list of transactions. coordinator: a broker id."""

    transactional_id: str
    coordinator: int
    producer_id: int
    state: str


@dataclass(frozen=True)
class Transaction:
    """The description of a transactional id.

    transaction_start_time, duration_ms: null if no transaction is open. topic_partitions: "topic-0".
    """

    transactional_id: str
    coordinator: int
    producer_id: int
    producer_epoch: int
    state: str
    transaction_timeout_ms: int
    transaction_start_time: datetime | None
    duration_ms: int | None
    topic_partitions: list[str]


def parse_states(texts: Iterable[str]) -> list[str]:
    """Parse states, ignoring case: "ongoing" is Ongoing. Raises UsageError."""
    by_folded = {state.casefold(): state for state in STATES}
    states = []
    for text in texts:
        if text.casefold() not in by_folded:
            hint = did_you_mean(text, STATES) or f"use one of {', '.join(STATES)}"
            raise UsageError(f"--state {text!r} is unknown", hint=hint)
        states.append(by_folded[text.casefold()])
    return list(dict.fromkeys(states))


def list_transactions(
    client: ClusterClient,
    *,
    states: Sequence[str] = (),
    producer_ids: Collection[int] = (),
    duration_ms: int | None = None,
) -> tuple[list[TransactionListing], dict[str, KctlError]]:
    """Return the transactions of all coordinators, sorted, and the errors by the name of what is unreadable.

    Names are "broker 3", "__transaction_state-5" (no leader), or "__transaction_state" if it is unknown whether all
    its partitions have a leader. Brokers omit transactional ids that may not be described (`all_can_be_listed`).
    duration_ms: only transactions open for longer (KIP-994, brokers ≥ 3.8). Raises NotSupported; the brokers' error if
    all failed.
    """
    from kafka.protocol.admin import ListTransactionsRequest

    brokers, failed = _coordinators(client)
    request = {
        node: ListTransactionsRequest(
            state_filters=list(states),
            producer_id_filters=sorted(producer_ids),
            duration_filter=-1 if duration_ms is None else duration_ms,
            min_version=0 if duration_ms is None else 1,
        )
        for node in brokers
    }
    transactions: list[TransactionListing] = []
    for node, response in client.send_each(request).items():
        error = response if isinstance(response, KctlError) else _error(response, node)
        if error is not None:
            failed[f"broker {node}"] = error
            continue
        transactions += [
            TransactionListing(row.transactional_id, node, row.producer_id, row.transaction_state)
            for row in response.transaction_states
        ]
    if all(f"broker {node}" in failed for node in brokers):
        raise next(iter(failed.values()))
    return sorted(transactions, key=lambda row: (row.transactional_id, row.coordinator)), failed


def _coordinators(client: ClusterClient) -> tuple[list[int], dict[str, KctlError]]:
    """Return the brokers, and the partitions of __transaction_state without a leader, whose contents are unknown."""
    try:
        state = client.metadata([STATES_TOPIC])
    except NotAuthorized:
        unreadable = NotAuthorized(
            f"topic {STATES_TOPIC} may not be described, so coordinators may be missing",
            hint=f"this requires Describe on topic {STATES_TOPIC}",
        )
        return sorted(client.metadata(()).brokers), {STATES_TOPIC: unreadable}
    topic = state.topics.get(STATES_TOPIC)
    leaderless = [partition.tp for partition in topic.partitions if partition.leader < 0] if topic else []
    hint = "find its brokers with `kctl topic describe --internal`, and start them"
    return sorted(state.brokers), {str(tp): OperationFailed(f"{tp} has no leader", hint=hint) for tp in leaderless}


def _error(response: Any, node: int) -> KctlError | None:
    from kctl.protocol.client import error_for

    return (
        error_for(response.error_code, None, subject=f"transactions of broker {node}") if response.error_code else None
    )


def all_can_be_listed(client: ClusterClient) -> bool:
    """Return True if the user may describe any transactional id; brokers silently omit others from lists.

    Any broker can answer, because it checks authorization before it looks for the coordinator. Nothing is created.
    """
    response = client.send(_request([_ANY_NAME]))
    return all(row.error_code != ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED for row in response.transaction_states)


def describe_transactions(client: ClusterClient, ids: Iterable[str]) -> dict[str, Transaction | KctlError]:
    """Return the description or error of each transactional id. Raises UsageError for invalid ids."""
    checked_ids = [_checked(name) for name in ids]

    def describe(by_node: ByCoordinator) -> dict[str, Transaction | KctlError]:
        nodes = {name: node for node, names in by_node.items() for name in names}
        return send_in_chunks(client, by_node, _request, lambda response: _parse(response, nodes))

    return ask_coordinators(client, checked_ids, describe, key_type=TRANSACTION)


def _checked(name: str) -> str:
    if not name:
        raise UsageError("the transactional id is empty")
    return check_id(name, "transactional id")


def missing_transactional_id(client: ClusterClient, error: NotFound, name: str) -> NotFound:
    """Return the error for an unknown id, with similar ids as a hint."""
    try:
        listed, _ = list_transactions(client)
    except KctlError:
        return error
    ids = [row.transactional_id for row in listed]
    hint = did_you_mean(name, ids) or "list the ids with `kctl transaction list`; brokers forget unused ids"
    return error.reworded(error.message, hint=hint)


def _request(ids: Sequence[str]) -> object:
    from kafka.protocol.admin import DescribeTransactionsRequest

    return DescribeTransactionsRequest(transactional_ids=list(ids))


def _parse(response: Any, nodes: dict[str, int]) -> dict[str, Transaction | KctlError]:
    now_ms = round(time.time() * 1000)
    return {
        row.transactional_id: failure(row.error_code, None, row.transactional_id, key_type=TRANSACTION)
        if row.error_code
        else _transaction(row, nodes[row.transactional_id], now_ms)
        for row in response.transaction_states
    }


def _transaction(row: Any, node: int, now_ms: int) -> Transaction:
    open_ = row.transaction_start_time_ms >= 0
    return Transaction(
        transactional_id=row.transactional_id,
        coordinator=node,
        producer_id=row.producer_id,
        producer_epoch=row.producer_epoch,
        state=row.transaction_state,
        transaction_timeout_ms=row.transaction_timeout_ms,
        transaction_start_time=broker_time(row.transaction_start_time_ms) if open_ else None,
        duration_ms=max(0, now_ms - row.transaction_start_time_ms) if open_ else None,
        topic_partitions=[
            str(tp)
            for tp in sorted(TopicPartition(topic.topic, number) for topic in row.topics for number in topic.partitions)
        ],
    )


def broker_time(ms: int) -> datetime | None:
    """Return a broker's time; None if it is missing or invalid."""
    try:
        return datetime.fromtimestamp(ms / 1000, timezone.utc) if ms >= 0 else None
    except (ValueError, OverflowError, OSError):
        return None


def require_readable(failed: Mapping[Any, KctlError], noun: str) -> None:
    """Raise OperationFailed, with the first errors, if anything could not be read. noun: of an unreadable item."""
    if not failed:
        return
    errors = list(dict.fromkeys(error.message for error in failed.values()))
    more = f"; and {len(errors) - 3:,} more" if len(errors) > 3 else ""
    raise OperationFailed(
        f"{counted(len(failed), noun)} could not be read: {'; '.join(errors[:3])}{more}",
        hint=next(iter(failed.values())).hint,
    )
