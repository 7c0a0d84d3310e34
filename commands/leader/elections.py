"""Elections in words: what is left alone, and how far from even leaders are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from kctl.base.outcomes import ItemResult
from kctl.base.text import counted
from kctl.commands.terminal import output

if TYPE_CHECKING:
    from kctl.leader.balance import LeaderBalance
    from kctl.leader.election import Election, OnProgress


_NAMED = 10  # partitions that are told one by one


@contextmanager
def progress_of(title: str) -> Iterator[OnProgress]:
    """Show the progress of elections."""
    with output.progress(title) as bar:
        yield bar.update


def warn_of_skipped(plan: Sequence[Election]) -> None:
    """Warn of partitions that no election can help."""
    skipped = [row for row in plan if row.result is ItemResult.SKIPPED]
    for row in skipped[:_NAMED]:
        output.warn(f"{row.tp} is left alone: {row.reason}")
    if len(skipped) > _NAMED:
        output.warn(f"and {counted(len(skipped) - _NAMED, 'more partition')} left alone")


def certificate(planned: LeaderBalance) -> str:
    """How many leaders change, and that it cannot be done with fewer."""
    plan = planned.plan
    if not plan.leader_changes:
        todo = sum(row.result is ItemResult.WOULD_ELECT for row in planned.elections)
        told = "the preferred leaders are spread evenly already"
        return told + (f"; to elect: {counted(todo, 'partition')} led by others" if todo else "")
    changes = counted(plan.leader_changes, "partition")
    if plan.leader_changes <= plan.leader_lower_bound:
        return f"{changes} with another preferred leader; no plan needs fewer than {plan.leader_lower_bound:,}"
    return f"{changes} with another preferred leader; at least {plan.leader_lower_bound:,} are needed"
