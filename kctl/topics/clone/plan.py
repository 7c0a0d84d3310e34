"""What a clone creates and copies: planned, checked and shown before anything is changed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from kctl.base.outcomes import ItemResult
from kctl.cluster.log_offsets import LogOffsets, read_log_offsets
from kctl.cluster.topic_configs import fetch_topic_configs
from kctl.cluster.topic_names import check_name
from kctl.cluster.topics import hidden, known_topics
from kctl.errors import AlreadyExists, KctlError, Refused, UsageError
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
    "a clone is always a new topic. A copy that was interrupted is resumed by its user on its machine. Otherwise\n"
    "`kctl topic delete {name}` shows what is in it and asks; then clone again"
)


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
    """What becomes of the clone. result: "would clone", "would resume", "cloned" or "failed".

    configs: those set on the source itself, throttles of its moves left out. records: copied, by interrupted runs too;
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
    """What to create, and what to copy into it. task: None without data. journal: of the copy to resume, None for a
    new one. warnings: a line each."""

    topic: NewTopic
    clone: ClonedTopic
    task: CloneTask | None
    journal: Path | None
    warnings: tuple[str, ...]


def plan_clone(client: ClusterClient, source: str, name: str, *, data: bool, timeout_s: float = 30.0) -> ClonePlan:
    """Return the plan, checked by the controller without doing it; with data, of the copy that was interrupted if the
    target is its topic.

    Raises NotFound for an unknown source, AlreadyExists for a target that exists, Refused for what the controller
    refuses, for records or configs that cannot be read, and for a copy that cannot be resumed.
    """
    if source == name:
        raise UsageError(f"{source} cannot be cloned into itself")
    check_name(name)
    state = known_topics(client, [source])
    topic = state.topics[source]
    cluster_id = state.cluster_id or ""
    if data:
        if hidden(topic):
            raise Refused(f"{source} is Kafka's own: its records mean something in it only")
        interrupted = unfinished(cluster_id, name)
        if interrupted is not None and name in client.metadata([name]).topics:
            return _plan_resume(client, source, *interrupted, timeout_s)
    configs = fetch_topic_configs(client, [source], state.brokers)[source]
    if isinstance(configs, KctlError):
        raise configs
    own = set_on_topic(configs)
    new = NewTopic(name, len(topic.partitions), topic.replication_factor, None, own)
    try:
        plan_create(client, [new])
    except AlreadyExists as exc:
        raise AlreadyExists(exc.message, hint=_EXISTS.format(name=name)) from None
    row = ClonedTopic(
        source, name, ItemResult.WOULD_CLONE, len(topic.partitions), topic.replication_factor, own, None, ()
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
            f"topic {task.target} exists already, as the incomplete copy of {task.source}",
            hint=f"`{resume_command(task.source, task.target)}` resumes that copy",
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


def _logs(
    client: ClusterClient, partitions: list[TopicPartition]
) -> tuple[dict[TopicPartition, LogOffsets], list[str]]:
    """Return what is to be copied, and a warning for each partition of which a part is not."""
    logs, _, failed = read_log_offsets(client, partitions, read_committed=True)
    if failed:
        raise Refused("; ".join(failure_lines(failed)), hint="nothing was made")
    ends, _, _ = read_log_offsets(client, partitions)
    undecided = {tp: ends[tp].end - log.end for tp, log in logs.items() if tp in ends and ends[tp].end > log.end}
    warnings = [f"{tp}: {count:,} offsets behind an open transaction are not copied" for tp, count in undecided.items()]
    return logs, warnings
