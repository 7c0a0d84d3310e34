"""Turn goals into a plan: read the cluster or an export, plan, cut into batches."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kctl.health.collect import min_isr_of
from kctl.reassign.planner.execution import Execution, plan_execution
from kctl.reassign.planner.goals import Goals
from kctl.reassign.planner.live_cluster import PlanInput, read_cluster, read_export, select_topics
from kctl.reassign.planner.plan import Plan, make_plan
from kctl.reassign.planner.warnings import about_min_isr, about_unnamed, lowered_topics

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient

Connect = Callable[[], "ClusterClient"]
Progress = Callable[[str], AbstractContextManager[object]]


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """A request for a plan. topics, patterns: all topics if both are empty. export: a file of `kctl cluster export`.

    rate_bytes, max_concurrent_moves, batch_bytes: see plan_execution. options: recorded in the plan file.
    """

    goals: Goals
    topics: tuple[str, ...] = ()
    patterns: tuple[re.Pattern[str], ...] = ()
    export: Path | None = None
    rate_bytes: int | None = None
    max_concurrent_moves: int | None = None
    batch_bytes: int | None = None
    options: Mapping[str, Any] = field(default_factory=dict)


def plan_request(
    request: PlanRequest, connect: Connect, *, progress: Progress, warn: Callable[[str], None]
) -> tuple[Plan, Execution]:
    """Return the smallest plan and its execution. connect: called only to read the cluster.

    progress: shown around each long step; warn: called with a line for each unreadable part. Raises the errors of
    reading and of make_plan.
    """
    snapshot = _read_input(request, connect, progress)
    for line in snapshot.lacks:
        warn(line)
    snapshot = select_topics(snapshot, request.topics, request.patterns)
    with progress("planning"):
        plan = make_plan(snapshot.cluster, request.goals, snapshot.log_dirs)
    warnings = about_unnamed([broker.id for broker in plan.cluster.brokers], request.goals, snapshot.unnamed)
    if request.export is None:
        warnings = [*warnings, *_min_isr_warnings(plan, connect)]
    plan = replace(plan, warnings=[*plan.warnings, *warnings])
    execution = plan_execution(
        plan,
        goals=request.options,
        rate_bytes=request.rate_bytes,
        max_concurrent_moves=request.max_concurrent_moves,
        batch_bytes=request.batch_bytes,
    )
    return plan, execution


def _read_input(request: PlanRequest, connect: Connect, progress: Progress) -> PlanInput:
    if request.export is not None:
        return read_export(request.export)
    with connect() as client, progress("reading the cluster"):
        return read_cluster(client)


def _min_isr_warnings(plan: Plan, connect: Connect) -> list[str]:
    """Return warnings about acks=all. Reads the cluster only if a topic gets fewer replicas."""
    lowered = lowered_topics(plan.cluster.topics, plan.cluster.topic_of, plan.changes)
    if not lowered:
        return []
    with connect() as client:
        return about_min_isr(lowered, min_isr_of(client, lowered, client.metadata(()).brokers))
