"""Request leader elections: preferred since 2.2 (KIP-183), unclean since 2.4 (KIP-460)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from kctl.errors import KctlError
from kctl.model import TopicPartition
from kctl.protocol.codes import ApiKey, ErrorCode
from kctl.protocol.partition_requests import PER_REQUEST, Outcomes, ask_controller, needs_alter, numbers_by_topic

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient

PREFERRED, UNCLEAN = 0, 1
_TIMEOUT_MS = 15_000  # timeout in the controller, which responds as soon as leaders are elected


def why_no_election(client: ClusterClient) -> str | None:
    """Return why preferred leaders cannot be elected on request; None if they can."""
    if client.api_version(ApiKey.ELECT_LEADERS) is not None:
        return None
    return "brokers before 2.2 do not support leader elections on request"


def elect_leaders(
    client: ClusterClient,
    partitions: Collection[TopicPartition] | None,
    *,
    unclean: bool = False,
    batch: int = PER_REQUEST,
) -> Outcomes:
    """Elect leaders. Return the error of each partition; None if it has the requested leader.

    partitions: None for all that need an election. unclean: any live replica becomes leader of a partition without one,
    and records that only other replicas have are lost. Otherwise the preferred replica becomes leader if it is in sync.
    Raises the errors of `ask_controller`: nothing was done.
    """
    from kafka.protocol.admin import ElectLeadersRequest

    def request(chunk: Sequence[TopicPartition]) -> Any:
        return ElectLeadersRequest(
            election_type=UNCLEAN if unclean else PREFERRED,
            topic_partitions=[
                ElectLeadersRequest.TopicPartitions(topic=topic, partitions=numbers)
                for topic, numbers in numbers_by_topic(chunk).items()
            ],
            timeout_ms=_TIMEOUT_MS,
            min_version=1 if unclean else 0,
        )

    if partitions is None:
        partitions = _partitions_to_elect(client, unclean)
    return ask_controller(client, sorted(partitions), request, _parse, per_request=batch)


def _partitions_to_elect(client: ClusterClient, unclean: bool) -> list[TopicPartition]:
    state = client.metadata()
    return [
        p.tp
        for topic in state.topics.values()
        for p in topic.partitions
        if (p.offline if unclean else p.leader != p.preferred_leader)
    ]


def _parse(response: Any) -> dict[TopicPartition, KctlError | None]:
    from kctl.protocol.client import error_for

    if response.error_code:
        raise error_for(response.error_code, None, subject="elections", hint=needs_alter(response.error_code))
    errors: dict[TopicPartition, KctlError | None] = {}
    for topic in response.replica_election_results:
        for row in topic.partition_result:
            tp = TopicPartition(topic.topic, row.partition_id)
            elected = row.error_code in {ErrorCode.NONE, ErrorCode.ELECTION_NOT_NEEDED}
            errors[tp] = None if elected else error_for(row.error_code, row.error_message, subject=str(tp))
    return errors
