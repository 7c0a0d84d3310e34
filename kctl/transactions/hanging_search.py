"""The search for hanging transactions in a cluster, and its verdict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from kctl.base.text import counted
from kctl.cluster.rights import may_describe_all_topics
from kctl.cluster.topics import chosen_states, only_chosen
from kctl.errors import KctlError, NotFound, NotHealthy, OperationFailed
from kctl.model import PartitionState, TopicPartition
from kctl.transactions.hanging import HangingTransaction, find_hanging, old_transactions
from kctl.transactions.listing import STATES_TOPIC, require_readable
from kctl.transactions.producers import describe_producers

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient


@dataclass(frozen=True)
class HangingRequest:
    """The partitions to search, and the age of a hanging transaction.

    topics, patterns: names and regular expressions (default: all topics). partitions: partition numbers; None: all.
    broker: only partitions led by this broker. longer_than_ms: transaction.max.timeout.ms of the brokers.
    """

    topics: Sequence[str]
    patterns: Sequence[str]
    partitions: Sequence[int] | None
    broker: int | None
    longer_than_ms: int


@dataclass(frozen=True)
class HangingReport:
    """The result of a search. unreadable: partitions → error. all_visible: False if brokers may have omitted topics."""

    transactions: list[HangingTransaction]
    unreadable: dict[TopicPartition, KctlError]
    all_visible: bool

    @property
    def complete(self) -> bool:
        return self.all_visible and not self.unreadable

    def require_none(self) -> None:
        """Raise OperationFailed if the search was incomplete, NotHealthy if there are hanging transactions."""
        require_readable(self.unreadable, "partition")
        if not self.all_visible:
            raise OperationFailed(
                "the result may be incomplete: you may not describe every topic",
                hint="this requires Describe on topic *; --topic TOPIC checks a single topic",
            )
        if self.transactions:
            raise NotHealthy(
                f"{counted(len(self.transactions), 'hanging transaction')}",
                hint="abort one with `kctl transaction abort TOPIC --partition N --start-offset OFFSET`",
            )


def search_hanging(client: ClusterClient, request: HangingRequest) -> HangingReport:
    """Search partitions for hanging transactions. Raises the first error if no partition is readable, NotFound."""
    partitions = _partitions(client, request)
    producers, unreadable = describe_producers(client, partitions)
    if unreadable and len(unreadable) == len(partitions):
        raise next(iter(unreadable.values()))
    now = datetime.now(timezone.utc)
    old = old_transactions(producers, now=now, longer_than_ms=request.longer_than_ms)
    transactions = find_hanging(client, old, now=now)
    selected = bool(request.topics or request.patterns)
    return HangingReport(transactions, unreadable, selected or may_describe_all_topics(client) is not False)


def _partitions(client: ClusterClient, request: HangingRequest) -> list[PartitionState]:
    state = only_chosen(client, request.topics, request.patterns)
    # Only coordinators write to this topic, and never in a transaction; few users may read it.
    names = [name for name in sorted(state.topics) if name != STATES_TOPIC or name in request.topics]
    partitions = chosen_states([state.topics[name] for name in names], request.partitions)
    if request.broker is None:
        return partitions
    if request.broker not in state.brokers:
        ids = ", ".join(map(str, sorted(state.brokers)))
        raise NotFound(f"broker {request.broker} is not in the cluster", hint=f"the cluster has brokers {ids}")
    return [partition for partition in partitions if partition.leader == request.broker]
