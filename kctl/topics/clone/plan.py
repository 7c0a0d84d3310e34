"""A new topic like another one: partitions, replication factor, configs; its records, when they are asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from kctl.cluster.log_offsets import LogOffsets, read_log_offsets
from kctl.cluster.topic_configs import fetch_topic_configs
from kctl.cluster.topic_names import check_name
from kctl.cluster.topics import hidden, known_topics
from kctl.configs.dynamic import Resource, alter_dynamic
from kctl.errors import AlreadyExists, KctlError, OperationFailed, Refused, UsageError
from kctl.model import TopicPartition
from kctl.topics.create import create_topics, plan_create
from kctl.topics.new_topic import NewTopic
from kctl.topics.offsets import failure_lines
from kctl.topics.own_configs import set_on_topic

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient

_EXISTS = (
    "a clone is always a new topic. If a copy that was interrupted left it, it is not whole:\n"
    "`kctl topic delete {name}` shows what is in it and asks; then clone again"
)
_TIMESTAMP_TYPE = "message.timestamp.type"


@dataclass(frozen=True, slots=True)
class ClonedPartition:
    """The records of one partition. source_log_start_offset, source_log_end_offset: what of the source is copied, as it
    was at the beginning; read_committed, so that it ends before the first open transaction.

    records: copied and acknowledged; fewer than offsets after compaction and with transactions. log_end_offset: of the
    new partition, read back; None before.
    """

    partition: int
    source_log_start_offset: int
    source_log_end_offset: int
    records: int
    log_end_offset: int | None


@dataclass(frozen=True, slots=True)
class ClonedTopic:
    """What becomes of the clone. result: «would clone», «cloned» or «failed».

    configs: those set on the source itself, throttles of its moves left out. records: copied; None without data.
    """

    source_topic: str
    topic: str
    result: str
    partition_count: int
    replication_factor: int
    configs: dict[str, str]
    records: int | None
    copied: tuple[ClonedPartition, ...]
    error: str | None = None


@dataclass(frozen=True, slots=True)
class ClonePlan:
    """What to make, and what to copy into it: the log of each partition, empty without data. cautions: a line each."""

    topic: NewTopic
    clone: ClonedTopic
    logs: dict[TopicPartition, LogOffsets]
    cautions: tuple[str, ...]


def plan_clone(client: ClusterClient, source: str, name: str, *, data: bool) -> ClonePlan:
    """Checked by the controller without doing it. Raises NotFound for an unknown source, AlreadyExists for a target
    that is there, Refused for what the controller refuses, for records or configs that cannot be read.
    """
    if source == name:
        raise UsageError(f"{source} cannot be cloned into itself")
    check_name(name)
    state = known_topics(client, [source])
    topic = state.topics[source]
    if data and hidden(topic):
        raise Refused(f"{source} is Kafka's own: its records mean something in it only")
    configs = fetch_topic_configs(client, [source], state.brokers)[source]
    if isinstance(configs, KctlError):
        raise configs
    own = set_on_topic(configs)
    new = NewTopic(name, len(topic.partitions), topic.replication_factor, None, own)
    try:
        plan_create(client, [new])
    except AlreadyExists as exc:
        raise AlreadyExists(exc.message, hint=_EXISTS.format(name=name)) from None
    logs: dict[TopicPartition, LogOffsets] = {}
    cautions: list[str] = []
    if data:
        logs, cautions = _logs(client, [p.tp for p in topic.partitions])
    copied = tuple(ClonedPartition(tp.partition, log.start, log.end, 0, None) for tp, log in sorted(logs.items()))
    row = ClonedTopic(source, name, "would clone", len(topic.partitions), topic.replication_factor, own, None, copied)
    return ClonePlan(new, row, logs, tuple(cautions))


def _logs(
    client: ClusterClient, partitions: list[TopicPartition]
) -> tuple[dict[TopicPartition, LogOffsets], list[str]]:
    """What is to be copied; and what of the logs is not."""
    logs, _, failed = read_log_offsets(client, partitions, read_committed=True)
    if failed:
        raise Refused("; ".join(failure_lines(failed)), hint="nothing was made")
    ends, _, _ = read_log_offsets(client, partitions)
    undecided = {tp: ends[tp].end - log.end for tp, log in logs.items() if tp in ends and ends[tp].end > log.end}
    cautions = [f"{tp}: {count:,} offsets behind an open transaction are not copied" for tp, count in undecided.items()]
    return logs, cautions


def clone(
    client: ClusterClient,
    plan: ClonePlan,
    *,
    compression: str = "none",
    timeout_s: float = 30.0,
    progress: Callable[[str, float, float], None] | None = None,
) -> ClonedTopic:
    """Make the topic, copy the records, and compare their numbers with what the new logs have.

    LogAppendTime is set behind the copy, so that records keep their times. Raises OperationFailed when the topic was
    not made. What fails later is in the result: the topic is there then, and not whole.
    """
    late = {key: value for key, value in plan.topic.configs.items() if key == _TIMESTAMP_TYPE and plan.logs}
    topic = replace(plan.topic, configs={k: v for k, v in plan.topic.configs.items() if k not in late})
    (made,) = create_topics(client, [topic], plan_create(client, [topic]), timeout_s=timeout_s)
    if made.result != "created":
        raise OperationFailed(f"topic {topic.name} was not made: {made.error}")
    row = plan.clone
    problem = made.error
    if plan.logs and problem is None:
        row, problem = _with_records(client, plan, compression, timeout_s, progress)
    if late and problem is None:
        resource = Resource.topic(topic.name)
        problem = next((e.message for e in alter_dynamic(client, {resource: late}).values()), None)
    return replace(row, result="failed" if problem else "cloned", error=problem)


def _with_records(
    client: ClusterClient,
    plan: ClonePlan,
    compression: str,
    timeout_s: float,
    progress: Callable[[str, float, float], None] | None,
) -> tuple[ClonedTopic, str | None]:
    """Copy and verify; what went wrong."""
    from kctl.topics.clone.copying import copy_records

    counts, problem = copy_records(
        client, plan.logs, plan.topic.name, compression=compression, timeout_s=timeout_s, progress=progress
    )
    targets = {TopicPartition(plan.topic.name, tp.partition): tp for tp in plan.logs}
    ends, _, failed = read_log_offsets(client, list(targets))
    copied = tuple(
        ClonedPartition(
            tp.partition, log.start, log.end, counts.get(tp, 0), ends[target].end if target in ends else None
        )
        for target, tp in sorted(targets.items())
        for log in [plan.logs[tp]]
    )
    row = replace(plan.clone, records=sum(counts.values()), copied=copied)
    wrong = [each for each in copied if each.log_end_offset is not None and each.log_end_offset != each.records]
    if problem is None and failed:
        problem = f"the copy could not be verified: {'; '.join(failure_lines(failed))}"
    if problem is None and wrong:
        problem = (
            f"partition {wrong[0].partition} ends at {wrong[0].log_end_offset}, and {wrong[0].records} records were "
            "copied: somebody else has written to it"
        )
    return row, problem
