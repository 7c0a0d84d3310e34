"""Pruning: the topics that a topics file does not list."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from kctl.base.name_patterns import matches, parse_patterns
from kctl.base.outcomes import ItemResult
from kctl.base.text import counted
from kctl.cluster.topics import hidden
from kctl.errors import NotConfirmed, Reason, Refused
from kctl.model import ClusterState
from kctl.topics.apply import AppliedTopic, ApplyPlan
from kctl.topics.delete import DeletedTopic, delete_topics, losses
from kctl.topics.spec import TopicSpec

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient


def refuse_empty_file(file: Path, specs: Sequence[TopicSpec], match: Sequence[str]) -> None:
    """Raise Refused if pruning would delete every topic, because the file lists none."""
    if not specs and not match:
        raise Refused(
            f"{file} contains no topics: --prune would delete every topic",
            hint="limit it with --prune-match",
            reason=Reason.COUNT_MISMATCH,
        )


def topics_to_prune(
    client: ClusterClient, state: ClusterState, plan: ApplyPlan, match: Sequence[str]
) -> tuple[list[DeletedTopic], list[str]]:
    """Return the topics that are not in the file, with what would be lost, and what is unknown about it."""
    patterns = parse_patterns("--prune-match", match)
    listed = {spec.name for spec in plan.specs}
    chosen = [
        topic
        for name, topic in sorted(state.topics.items())
        if name not in listed and not hidden(topic) and (not patterns or matches(name, patterns))
    ]
    return losses(client, state, chosen) if chosen else ([], [])


def check_count(to_prune: Sequence[DeletedTopic], expect: int | None, *, unattended: bool) -> None:
    """Raise Refused if the number of topics is not `expect`, NotConfirmed if it must be set. unattended: no prompt."""
    if expect is not None and expect != len(to_prune):
        raise Refused(
            f"--prune would delete {len(to_prune)} topics, but --prune-expect is {expect}",
            hint="nothing was changed",
            reason=Reason.COUNT_MISMATCH,
        )
    if to_prune and expect is None and unattended:
        raise NotConfirmed(
            f"not confirmed: --prune would delete {counted(len(to_prune), 'topic')}",
            hint=f"review them with --dry-run, then add --prune-expect {len(to_prune)}",
        )


def prune(
    client: ClusterClient, applied: Sequence[AppliedTopic], to_prune: Sequence[DeletedTopic], *, timeout_s: float
) -> Sequence[DeletedTopic]:
    """Delete topics, unless an earlier change failed."""
    if not to_prune or any(row.result is ItemResult.FAILED for row in applied):
        return to_prune
    return delete_topics(client, to_prune, timeout_s=timeout_s)


def pruned_rows(rows: Sequence[DeletedTopic]) -> list[AppliedTopic]:
    """Return the deletions as rows of the result of `topic apply`."""
    return [AppliedTopic(row.topic, row.result, (), row.error) for row in rows]
