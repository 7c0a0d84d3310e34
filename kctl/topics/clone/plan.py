"""Plan a clone: what it creates and copies, checked before anything is changed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from kctl.base.outcomes import ItemResult
from kctl.cluster.log_offsets import LogOffsets, read_log_offsets
from kctl.cluster.topic_configs import fetch_topic_configs
from kctl.cluster.topic_names import check_name
from kctl.cluster.topics import hidden, known_topics
from kctl.errors import AlreadyExists, KctlError, OperationFailed, Reason, Refused, UsageError
from kctl.model import TopicPartition, TopicState
from kctl.topics.clone.journal import CloneState, CloneTask, refuse_while_held, unfinished
from kctl.topics.clone.resume import resume_points
from kctl.topics.create import plan_create
from kctl.topics.new_topic import NewTopic
from kctl.topics.offsets import failure_lines
from kctl.topics.own_configs import set_on_topic

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient

_EXISTS = (
    "a clone must be a new topic. An interrupted copy can only be resumed by the same user on the same machine. "
    "Otherwise\n`kctl topic delete {name}` shows what the topic contains and asks; then clone again"
)


@dataclass(frozen=True, slots=True)
class ClonedPartition:
    """The copied records of one partition.

    source_log_start_offset, source_log_end_offset: the range to copy, fixed at the start; it ends before the first open
    transaction. records: copied and acknowledged; fewer than offsets after compaction and with transactions.
    log_end_offset: of the new partition, read back; None before the copy.
    """

    partition: int
    source_log_start_offset: int
    source_log_end_offset: int
    records: int
    log_end_offset: int | None


@dataclass(frozen=True, slots=True)
class ClonedTopic:
    """The result of a clone. result: would clone, would resume, cloned or failed.

    configs: those set on the source itself, without replication throttles. records: copied, interrupted runs included;
    None without data.
    """

    source_topic: str
    topic: str
    result: ItemResult
    partition_count: int
    replication_factor: int
    configs: dict[str, str]
    records: int | None
    copied: tuple[ClonedPartition, ...]
    error: str | None = None


@dataclass(frozen=True, slots=True)
class ClonePlan:
    """The topic to create, and the records to copy into it.

    task: None without data. journal: of the copy to resume; None for a new copy. warnings: one line each.
    """

    topic: NewTopic
    clone: ClonedTopic
    task: CloneTask | None
    journal: Path | None
    warnings: tuple[str, ...]


def plan_clone(client: ClusterClient, source: str, name: str, *, data: bool, timeout_s: float = 30.0) -> ClonePlan:
    """Return the plan, validated by the controller; with data, possibly the plan to resume an interrupted copy.

    Raises NotFound for an unknown source, AlreadyExists for an existing target, Refused for what the controller
    rejects, for unreadable records or configs, and for a copy that cannot be resumed.
    """
    if source == name:
        raise UsageError(f"{source} cannot be cloned into itself")
    check_name(name)
    state = known_topics(client, [source])
    topic = state.topics[source]
    cluster_id = state.cluster_id or ""
    if data:
        if hidden(topic):
            raise Refused(
                f"{source} is an internal topic: its records are useless elsewhere", reason=Reason.INTERNAL_TOPIC
            )
        interrupted = unfinished(cluster_id, name)
        if interrupted is not None and name in client.metadata([name]).topics:
            return _plan_resume(client, source, *interrupted, timeout_s)
    configs = fetch_topic_configs(client, [source], state.brokers)[source]
    if isinstance(configs, KctlError):
        raise configs
    topic_configs = set_on_topic(configs)
    new = NewTopic(name, len(topic.partitions), topic.replication_factor, None, topic_configs)
    try:
        plan_create(client, [new])
    except AlreadyExists as exc:
        raise AlreadyExists(exc.message, hint=_EXISTS.format(name=name)) from None
    row = ClonedTopic(
        source, name, ItemResult.WOULD_CLONE, len(topic.partitions), topic.replication_factor, topic_configs, None, ()
    )
    if not data:
        return ClonePlan(new, row, None, None, ())
    return _plan_copy(client, topic, new, row, cluster_id)


def _plan_copy(client: ClusterClient, topic: TopicState, new: NewTopic, row: ClonedTopic, cluster_id: str) -> ClonePlan:
    logs, warnings = _logs(client, [p.tp for p in topic.partitions])
    task = CloneTask(
        topic.name, topic.topic_id, new.name, cluster_id, row.replication_factor, row.configs,
        {tp.partition: log for tp, log in sorted(logs.items())},
    )  # fmt: skip
    copied = tuple(ClonedPartition(number, log.start, log.end, 0, None) for number, log in task.logs.items())
    return ClonePlan(new, replace(row, copied=copied), task, None, tuple(warnings))


def _plan_resume(client: ClusterClient, source: str, path: Path, state: CloneState, timeout_s: float) -> ClonePlan:
    task = state.task
    refuse_while_held(path, task.target)
    if task.source != source:
        raise AlreadyExists(
            f"topic {task.target} already exists, as an incomplete copy of {task.source}",
            hint=f"resume that copy with `{resume_command(task.source, task.target)}`",
        )
    points = resume_points(client, state, timeout_s=timeout_s)
    copied = tuple(
        ClonedPartition(number, log.start, log.end, points[number][0], points[number][0])
        for number, log in task.logs.items()
    )
    row = ClonedTopic(
        source, task.target, ItemResult.WOULD_RESUME, len(task.logs), task.replication_factor, dict(task.configs),
        sum(each.records for each in copied), copied,
    )  # fmt: skip
    new = NewTopic(task.target, len(task.logs), task.replication_factor, None, dict(task.configs))
    return ClonePlan(new, row, task, path, ())


def resume_command(source: str, target: str) -> str:
    """Return the command that resumes a copy."""
    return f"kctl topic clone {source} {target} --data"


def next_step(source: str, target: str, *, data: bool) -> str:
    """Return what to do about an incomplete clone."""
    delete = f"delete the topic with `kctl topic delete {target}`"
    if not data:
        return f"{delete}, then clone again"
    return f"resume the copy with `{resume_command(source, target)}`, or {delete}"


def require_complete(row: ClonedTopic, *, data: bool) -> None:
    """Raise OperationFailed if the clone is incomplete. data: records were to be copied."""
    if row.error:
        raise OperationFailed(
            f"topic {row.topic} exists but is incomplete: {row.error}",
            hint=next_step(row.source_topic, row.topic, data=data),
        )


def _logs(
    client: ClusterClient, partitions: list[TopicPartition]
) -> tuple[dict[TopicPartition, LogOffsets], list[str]]:
    """Return the ranges to copy, and a warning for each partition with an open transaction."""
    logs, _, failed = read_log_offsets(client, partitions, read_committed=True)
    if failed:
        raise Refused("; ".join(failure_lines(failed)), hint="nothing was created", reason=Reason.UNREADABLE)
    ends, _, _ = read_log_offsets(client, partitions)
    undecided = {tp: ends[tp].end - log.end for tp, log in logs.items() if tp in ends and ends[tp].end > log.end}
    warnings = [f"{tp}: {count:,} offsets after an open transaction are not copied" for tp, count in undecided.items()]
    return logs, warnings
