"""Elections in words: what is left alone, what failed, and how far from even leaders are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from kctl.base.text import counted
from kctl.commands.terminal import output
from kctl.errors import NotHealthy, OperationFailed

if TYPE_CHECKING:
    from kctl.leader.balance import Balance
    from kctl.leader.election import Election, OnProgress


_NAMED = 10  # partitions that are told one by one


@contextmanager
def progress_of(title: str) -> Iterator[OnProgress]:
    """Show the progress of elections."""
    with output.progress(title) as bar:
        yield bar.update


def warn_of_skipped(plan: Sequence[Election]) -> None:
    """Warn of partitions that no election can help."""
    skipped = [row for row in plan if row.result == "skipped"]
    for row in skipped[:_NAMED]:
        output.warn(f"{row.tp} is left alone: {row.reason}")
    if len(skipped) > _NAMED:
        output.warn(f"and {counted(len(skipped) - _NAMED, 'more partition')} left alone")


def judge_elections(plan: Sequence[Election]) -> None:
    """Raise OperationFailed for elections that failed, NotHealthy for partitions that were left alone."""
    failed = [f"{row.tp}: {row.reason}" for row in plan if row.result == "failed"]
    if failed:
        raise OperationFailed(
            f"{len(failed)} of {counted(len(plan), 'partition')} without the wanted leader: {few(failed)}",
            hint="`kctl leader status` shows the leaders now; the same command again tries the rest",
        )
    skipped = [f"{row.tp}: {row.reason}" for row in plan if row.result == "skipped"]
    if skipped:
        raise NotHealthy(
            f"{counted(len(skipped), 'partition')} left alone: {few(skipped)}",
            hint="start the brokers that are down, wait until replicas are in sync, then elect again",
        )


def judge_reorders(done: Balance) -> None:
    """Raise OperationFailed for partitions whose replicas could not be put into another order."""
    if done.failed:
        failed = [f"{tp}: {reason}" for tp, reason in sorted(done.failed.items())]
        raise OperationFailed(
            f"{len(failed)} of {counted(len(done.reorders), 'partition')} not put into the new order: {few(failed)}",
            hint="run it again: it plans from what there is then",
        )


def few(lines: Sequence[str]) -> str:
    more = f"; and {len(lines) - 3} more" if len(lines) > 3 else ""
    return "; ".join(lines[:3]) + more


def certificate(planned: Balance) -> str:
    """How many leaders change, and that it cannot be done with fewer."""
    plan = planned.plan
    if not plan.leader_changes:
        todo = sum(row.result == "would elect" for row in planned.elections)
        told = "the preferred leaders are spread evenly already"
        return told + (f"; to elect: {counted(todo, 'partition')} led by others" if todo else "")
    changes = counted(plan.leader_changes, "partition")
    if plan.leader_changes <= plan.leader_lower_bound:
        return f"{changes} with another preferred leader; no plan needs fewer than {plan.leader_lower_bound:,}"
    return f"{changes} with another preferred leader; at least {plan.leader_lower_bound:,} are needed"
