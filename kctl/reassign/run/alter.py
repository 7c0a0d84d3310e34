"""Requests to move replicas: between brokers (KIP-455, brokers 2.4 or later) and between log dirs (KIP-113).

Neither request is atomic: each partition succeeds or fails by itself (KafkaController.processApiPartitionReassignment,
ReplicaManager.alterReplicaLogDirs), so the error of each partition is returned.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kctl.errors import KctlError
from kctl.model import TopicPartition
from kctl.protocol.codes import ErrorCode
from kctl.protocol.partition_requests import ask_controller, needs_alter, numbers_by_topic

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient

_TIMEOUT_MS = 60_000


def alter_reassignments(
    client: ClusterClient, targets: Mapping[TopicPartition, tuple[int, ...] | None]
) -> dict[TopicPartition, KctlError]:
    """Request replicas (broker ids, the preferred leader first); None cancels. Return the errors.

    Canceling a partition that is not moving is not an error. A target replaces the one in progress. No error means the
    move was accepted, not completed. After OutcomeUnknown, check whether the partition moves. Raises the errors of
    `ask_controller` if no request took effect.
    """
    from kafka.protocol.admin import AlterPartitionReassignmentsRequest

    topic_class = AlterPartitionReassignmentsRequest.ReassignableTopic
    partition_class = topic_class.ReassignablePartition

    def request(chunk: Sequence[TopicPartition]) -> Any:
        return AlterPartitionReassignmentsRequest(
            timeout_ms=_TIMEOUT_MS,
            topics=[
                topic_class(
                    name=topic,
                    partitions=[
                        partition_class(partition_index=number, replicas=_ids(targets[TopicPartition(topic, number)]))
                        for number in numbers
                    ],
                )
                for topic, numbers in numbers_by_topic(chunk).items()
            ],
        )

    def parse(response: Any) -> dict[TopicPartition, KctlError | None]:
        from kctl.protocol.client import error_for

        if response.error_code:
            hint = needs_alter(response.error_code)
            raise error_for(response.error_code, response.error_message, subject="reassignments", hint=hint)
        errors: dict[TopicPartition, KctlError | None] = {}
        for topic in response.responses:
            for row in topic.partitions:
                tp = TopicPartition(topic.name, row.partition_index)
                not_moving = row.error_code == ErrorCode.NO_REASSIGNMENT_IN_PROGRESS and targets.get(tp) is None
                accepted = not row.error_code or not_moving
                errors[tp] = None if accepted else error_for(row.error_code, row.error_message, subject=str(tp))
        return errors

    outcomes = ask_controller(client, sorted(targets), request, parse)
    return {tp: error for tp, error in outcomes.items() if error is not None}


def _ids(replicas: tuple[int, ...] | None) -> list[int] | None:
    return None if replicas is None else list(replicas)


def alter_log_dirs(
    client: ClusterClient, targets: Mapping[int, Mapping[str, Sequence[TopicPartition]]]
) -> dict[tuple[int, TopicPartition], KctlError]:
    """Request log dirs for replicas: broker → path → partitions. Return the errors.

    A replica that is not on the broker yet is not an error: the broker remembers its log dir until it arrives, or until
    the broker restarts. A replica that is on the broker is copied, and switches over when the copy is complete.
    """
    from kafka.protocol.admin import AlterReplicaLogDirsRequest

    dir_class = AlterReplicaLogDirsRequest.AlterReplicaLogDir
    requests = {
        node: AlterReplicaLogDirsRequest(
            dirs=[
                dir_class(
                    path=path,
                    topics=[
                        dir_class.AlterReplicaLogDirTopic(name=topic, partitions=numbers)
                        for topic, numbers in numbers_by_topic(partitions).items()
                    ],
                )
                for path, partitions in dirs.items()
            ]
        )
        for node, dirs in targets.items()
    }
    failed: dict[tuple[int, TopicPartition], KctlError] = {}
    for node, response in client.send_each(requests).items():
        partitions = [tp for partitions in targets[node].values() for tp in partitions]
        failed |= {(node, tp): error for tp, error in _log_dir_errors(node, partitions, response).items()}
    return failed


def _log_dir_errors(node: int, partitions: Sequence[TopicPartition], response: Any) -> dict[TopicPartition, KctlError]:
    from kctl.protocol.client import error_for

    if isinstance(response, KctlError):
        return dict.fromkeys(partitions, response)
    codes = {
        TopicPartition(topic.topic_name, row.partition_index): row.error_code
        for topic in response.results
        for row in topic.partitions
    }
    return {
        tp: error_for(codes.get(tp, -1), None, subject=f"{tp} on broker {node}")
        for tp in partitions
        if codes.get(tp, -1) not in {0, ErrorCode.REPLICA_NOT_AVAILABLE}
    }
