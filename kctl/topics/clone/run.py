"""Run a clone: create the topic, copy and verify the records, and keep the journal."""

from __future__ import annotations

import os
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from kctl.base.journal import Journal
from kctl.base.outcomes import ItemResult
from kctl.cluster.log_offsets import read_log_offsets
from kctl.configs.dynamic import Resource, alter_dynamic
from kctl.errors import OperationFailed
from kctl.model import TopicPartition
from kctl.records.produce.batch import compressor
from kctl.topics.clone.copying import CopyOutcome, CopyProgress, CopyRequest, copy_records
from kctl.topics.clone.journal import (
    CloneStep,
    CloneTask,
    Pair,
    begin,
    configs_at_creation,
    lock_unfinished,
    pairs_entry,
)
from kctl.topics.clone.plan import ClonedPartition, ClonedTopic, ClonePlan
from kctl.topics.clone.resume import resume_points
from kctl.topics.create import create_topics, plan_create
from kctl.topics.new_topic import NewTopic
from kctl.topics.offsets import failure_lines

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient


def clone(
    client: ClusterClient,
    plan: ClonePlan,
    *,
    compression: str = "none",
    timeout_s: float = 30.0,
    progress: CopyProgress | None = None,
) -> ClonedTopic:
    """Create the topic and copy the records, or resume a copy. Compare the record counts with the new log ends.

    Raises OperationFailed if the topic was not created. Later failures are in the result: the topic exists, but is
    incomplete. Raises Busy, and the errors of `resume_points`.
    """
    if plan.task is None:
        problem = _create(client, plan.topic, timeout_s)
        return replace(plan.clone, result=ItemResult.FAILED if problem else ItemResult.CLONED, error=problem)
    compress = compressor(compression)
    with ExitStack() as stack:
        problem = None
        if plan.journal is None:
            open_journal, points, problem = _begin(client, plan.task, plan.topic, stack, timeout_s)
        else:
            open_journal, points = _resume(client, plan.task.target, plan.journal, stack, timeout_s)
        if problem is not None:
            return replace(plan.clone, result=ItemResult.FAILED, error=problem)
        request = CopyRequest(
            plan.task.source, plan.task.target, points, {number: log.end for number, log in plan.task.logs.items()},
            compression, compress, timeout_s,
            lambda pairs: open_journal.append(CloneStep.POSITIONS.value, **pairs_entry(pairs)),
        )  # fmt: skip
        return _copy(client, plan, request, open_journal, progress)


def _create(client: ClusterClient, topic: NewTopic, timeout_s: float) -> str | None:
    """Return why the created topic cannot be used yet. Raises OperationFailed if it was not created."""
    (created,) = create_topics(client, [topic], plan_create(client, [topic]), timeout_s=timeout_s)
    if created.result is not ItemResult.CREATED:
        raise OperationFailed(f"topic {topic.name} was not created: {created.error}")
    return created.error


def _begin(
    client: ClusterClient, task: CloneTask, topic: NewTopic, stack: ExitStack, timeout_s: float
) -> tuple[Journal, dict[int, Pair], str | None]:
    """Create the topic. The journal starts before the topic exists."""
    topic = replace(topic, configs=configs_at_creation(topic.configs))
    planned = plan_create(client, [topic])
    open_journal = stack.enter_context(begin(task))
    (created,) = create_topics(client, [topic], planned, timeout_s=timeout_s)
    if created.result is not ItemResult.CREATED:
        open_journal.append(CloneStep.END.value, outcome="not created")
        raise OperationFailed(f"topic {topic.name} was not created: {created.error}")
    _append_created(client, open_journal, topic.name)
    return open_journal, {number: (0, log.start) for number, log in task.logs.items()}, created.error


def _append_created(client: ClusterClient, open_journal: Journal, target: str) -> None:
    state = client.metadata([target]).topics.get(target)
    if state is None:
        raise OperationFailed(f"topic {target} cannot be read back")
    open_journal.append(CloneStep.CREATED.value, target_id=state.topic_id)


def _resume(
    client: ClusterClient, target: str, path: Path, stack: ExitStack, timeout_s: float
) -> tuple[Journal, dict[int, Pair]]:
    """Lock the journal of an interrupted copy, and compare it with the cluster again."""
    open_journal, state = lock_unfinished(path, target)
    stack.enter_context(open_journal)
    points = resume_points(client, state, timeout_s=timeout_s)
    if not state.created:
        _append_created(client, open_journal, target)
    pairs = {number: [point] for number, point in points.items()}
    open_journal.append(CloneStep.RESUME.value, **pairs_entry(pairs), pid=os.getpid())
    return open_journal, points


def _copy(
    client: ClusterClient, plan: ClonePlan, request: CopyRequest, open_journal: Journal, progress: CopyProgress | None
) -> ClonedTopic:
    """Copy, verify, set LogAppendTime. End the journal if the copy is complete or cannot be completed."""
    outcome = copy_records(client, request, progress=progress)
    row, problem, foreign = _verify(client, plan, outcome)
    deferred = {k: v for k, v in plan.topic.configs.items() if k not in configs_at_creation(plan.topic.configs)}
    if deferred and problem is None:
        resource = Resource.topic(request.target)
        problem = next((e.message for e in alter_dynamic(client, {resource: deferred}).values()), None)
    if problem is None or foreign:
        open_journal.append(CloneStep.END.value, outcome="failed" if problem else "complete")
    return replace(row, result=ItemResult.FAILED if problem else ItemResult.CLONED, error=problem)


def _verify(client: ClusterClient, plan: ClonePlan, outcome: CopyOutcome) -> tuple[ClonedTopic, str | None, bool]:
    """Return the result, the first problem, and whether other producers wrote to the target."""
    assert plan.task is not None
    problem = outcome.problem
    targets = {number: TopicPartition(plan.task.target, number) for number in plan.task.logs}
    ends, _, failed = read_log_offsets(client, list(targets.values()))
    copied = tuple(
        ClonedPartition(
            number, log.start, log.end, outcome.records[number], ends[target].end if target in ends else None
        )
        for number, log in plan.task.logs.items()
        for target in [targets[number]]
    )
    row = replace(plan.clone, records=sum(outcome.records.values()), copied=copied)
    if problem is None and failed:
        problem = f"the copy could not be verified: {'; '.join(failure_lines(failed))}"
    mismatch = _mismatch(copied) if problem is None else None
    return row, problem or mismatch, outcome.foreign or mismatch is not None


def _mismatch(copied: tuple[ClonedPartition, ...]) -> str | None:
    for each in copied:
        if each.log_end_offset != each.records:
            return (
                f"partition {each.partition} ends at {each.log_end_offset}, but {each.records} records were copied: "
                "another producer writes to it"
            )
    return None
