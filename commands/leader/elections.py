"""Sentences about elections: skipped partitions, and the changes and lower bound of a balance."""

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


_SHOWN = 10  # partitions with a line of their own


@contextmanager
def progress_of(title: str) -> Iterator[OnProgress]:
    """Show the progress of elections."""
    with output.progress(title) as bar:
        yield bar.update


def warn_of_skipped(plan: Sequence[Election]) -> None:
    """Warn about partitions that are skipped."""
    skipped = [row for row in plan if row.result is ItemResult.SKIPPED]
    for row in skipped[:_SHOWN]:
        output.warn(f"{row.tp} is skipped: {row.reason}")
    if len(skipped) > _SHOWN:
        output.warn(f"and {counted(len(skipped) - _SHOWN, 'more partition')} skipped")


def certificate(planned: LeaderBalance) -> str:
    """Return how many preferred leaders change, and the lower bound."""
    plan = planned.plan
    if not plan.leader_changes:
        election_count = sum(row.result is ItemResult.WOULD_ELECT for row in planned.elections)
        text = "the preferred leaders are already balanced"
        return text + (f"; to elect: {counted(election_count, 'partition')} led by others" if election_count else "")
    changes = counted(plan.leader_changes, "partition")
    if plan.leader_changes <= plan.leader_lower_bound:
        return f"{changes} with another preferred leader; no plan needs fewer than {plan.leader_lower_bound:,}"
    return f"{changes} with another preferred leader; at least {plan.leader_lower_bound:,} are needed"
