"""Tables and sentences about runs of reassignments: previews, progress, results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from kctl.base.text import counted
from kctl.base.units import format_duration, format_size
from kctl.commands.terminal.output import Column, Table, jsonable
from kctl.reassign.run.progress import MovePhase, RunProgress
from kctl.reassign.run.steps import Mode, ReassignmentOutcome, ReassignmentPhase, RunState

if TYPE_CHECKING:
    from kctl.reassign.run.outcome import RunResult
    from kctl.reassign.run.prepare import RunPreview
    from kctl.reassign.run.reached import NotReached
    from kctl.reassign.run.run_status import ReassignmentStatus, RunSummary
    from kctl.reassign.run.verify import PlanVerification

_SHOWN = 20
_APPLY = "not started on this machine: carry it out with `kctl topic reassign apply PLAN`"


# --- previews and progress -----------------------------------------------------------------------------------------


def sentences(summary: RunPreview) -> list[str]:
    """Return the effects of a run, for the operator to confirm."""
    many = f"{summary.moves:,} replicas are copied" if summary.moves else "nothing is copied"
    copies = "1 replica is copied" if summary.moves == 1 else many
    lines = [f"{counted(summary.partition_count, 'partition')} in {counted(summary.batches, 'batch')}: {copies}"]
    if summary.moves:
        lines[0] += f", {format_size(summary.bytes)}"
    if summary.unknown_sizes:
        lines[0] += f" and {summary.unknown_sizes:,} of unknown size"
    if summary.reorders and summary.moves:
        lines[0] += f"; nothing to copy for {counted(summary.reorders, 'partition')}"
    if summary.removed_replicas:
        one = summary.removed_replicas == 1
        many = f"{summary.removed_replicas:,} replicas are removed: their partitions have"
        removed = "1 replica is removed: its partition has" if one else many
        lines.append(f"{removed} fewer afterwards")
    if summary.reached:
        lines.append(f"{counted(summary.reached, 'partition')} already at the target")
    if summary.throttle_bytes is not None and summary.duration_ms:
        rate = format_size(summary.throttle_bytes)
        lines.append(f"takes at least {format_duration(summary.duration_ms)} at {rate}/s per broker")
    elif summary.moves and summary.throttle_bytes is None:
        lines.append(
            "no throttle (the plan's rate is used only for the estimate); to set one per broker: --throttle 50MB/s"
        )
    return lines


def question(summary: RunPreview, source: str) -> str:
    """Return the question to confirm a run. source: the plan, or the run that is rolled back."""
    if summary.moves:
        size = format_size(summary.bytes) + (" and more" if summary.unknown_sizes else "")
        less = f" and remove {summary.removed_replicas:,}" if summary.removed_replicas else ""
        what = f"{counted(summary.moves, 'replica')} ({size}){less} on {summary.cluster}"
    elif summary.removed_replicas:
        what = f"{counted(summary.removed_replicas, 'replica')} of {counted(summary.partition_count, 'partition')}"
        verb = "remove" if summary.kind == "rollback" else "Remove"
        text = f"{verb} {what} on {summary.cluster}, copying nothing?"
        return f"Roll back {source}: {text}" if summary.kind == "rollback" else text
    else:
        what = f"the replicas of {counted(summary.partition_count, 'partition')} on {summary.cluster}, copying nothing"
    return f"Roll back {source}: move {what}?" if summary.kind == "rollback" else f"Move {what}?"


_LABELS = {
    "reached": "already at target",
    "reorders": "nothing to copy",
    "removed_replicas": "replicas removed",
    "throttle_bytes": "throttle",
    "duration_ms": "takes at least",
}


def preview_table(summary: RunPreview) -> Table:
    """Return a preview as a table."""
    rows = [
        {"what": _LABELS.get(key, key.replace("_", " ")), "value": _cell(key, value)}
        for key, value in jsonable(summary).items()
    ]
    return Table([Column("what", "PLAN"), Column("value", " ")], rows)


def _cell(key: str, value: Any) -> Any:
    if value is None or isinstance(value, (str, list)):
        return value or "-"
    if key in {"bytes", "throttle_bytes"}:
        return format_size(value) + ("/s" if key == "throttle_bytes" else "")
    return format_duration(value) if key == "duration_ms" else f"{value:,}"


def progress_line(p: RunProgress) -> str:
    """Return e.g. "copying 12/40, batch 2/7: 1.2 GB of 4.5 GB, 48 MB/s, 1m 10s left". 12/40: partitions done."""
    count = f"{p.phase.value} {p.partitions_done:,}/{p.partition_count:,}"
    count += f", batch {p.batch:,}/{p.batches:,}" if p.batches > 1 else ""
    if p.phase is not MovePhase.COPYING:
        return count
    parts = [f"{format_size(p.done_bytes)} of {format_size(p.total_bytes)}"]
    if p.rate_bytes is not None:
        parts.append(f"{format_size(round(p.rate_bytes))}/s")
    if p.eta_ms is not None:
        parts.append(f"{format_duration(max(p.eta_ms // 1000 * 1000, 1000))} left")
    return f"{count}: {', '.join(parts)}"


def rest_line(state: RunState, *, rate_bytes: int | None) -> str:
    """Return e.g. "apply of p.json: 12 replicas (1.7 MB) in 2 of 3 batches left, at 50 MB/s per broker"."""

    plan = state.plan
    name = f"{plan.kind} of {plan.source}"
    batches = len(plan.batches) - state.batches_done
    if state.mode is Mode.CANCELLED:
        return f"{name}, which is being canceled"
    if not batches:
        return f"{name}: all batches are done, the final steps remain"
    moves, size = plan.rest(state.batches_done)
    what = f"{counted(moves, 'replica')} ({format_size(size)})" if moves else "nothing to copy"
    rate = "without a throttle" if rate_bytes is None else f"at {format_size(rate_bytes)}/s per broker"
    return f"{name}: {what} in {batches:,} of {counted(len(plan.batches), 'batch')} left, {rate}"


def would_pause(run: RunSummary, *, now: bool) -> str:
    """Return the effect of `pause`."""
    batch = f"batch {run.batches_done + 1:,} of {run.batches:,}"
    first = f"cancel {counted(run.in_flight, 'partition')} in flight" if now else f"complete {batch}"
    if run.state in {ReassignmentPhase.PAUSED, ReassignmentPhase.CANCELLING}:
        return f"{run.kind} of {run.source} is already {run.state.value}"
    if not run.in_flight:
        return f"would pause {run.kind} of {run.source} before {batch}, and restore throttles"
    return f"would {first}, then pause {run.kind} of {run.source} and restore throttles"


def would_cancel(run: RunSummary) -> str:
    """Return the effect of `cancel`, e.g. "3 partitions in flight return, 9 that were moved stay"."""
    returning = f"{counted(run.in_flight, 'partition')} in flight {'returns' if run.in_flight == 1 else 'return'}"
    stay = "1 that was moved stays" if run.reached == 1 else f"{run.reached:,} that were moved stay"
    return f"{returning}, {stay}"


# --- results ------------------------------------------------------------------------------------------------------


def unfinished(result: RunResult) -> list[str]:
    """Return a phrase for each goal of a run that was not reached."""
    phrases = [f"{name} is down and keeps a throttle of the run" for name in result.throttles_left]
    if result.outcome is ReassignmentOutcome.CANCELLED:
        return phrases
    if result.failures:
        phrases.append(f"{counted(len(result.failures), 'partition')} not at the target")
    phrases += [
        f"broker {row.broker} still holds {counted(row.replica_count, 'replica')}: {some(row.partitions)}"
        for row in result.brokers_left
    ]
    if result.not_elected:
        names = some(list(result.not_elected))
        phrases.append(f"{counted(len(result.not_elected), 'partition')} not led by the preferred replica: {names}")
    return phrases


def moved_note(result: RunResult) -> str:
    """Return what a canceled run had moved, and how to move it back."""
    one = result.reached == 1
    stay = (
        "1 partition was already moved and stays"
        if one
        else f"{result.reached:,} partitions were already moved and stay"
    )
    if result.kind == "rollback":
        return f"{stay}; to roll back the others as well: `kctl topic reassign rollback PLAN`"
    return f"{stay}; to move {'it' if one else 'them'} back: `kctl topic reassign rollback`"


def next_steps(result: RunResult | PlanVerification, *, started: bool = True) -> list[str]:
    """Return the commands that complete the plan. started: a run of the plan was started on this machine."""
    steps = []
    if result.in_flight:
        steps.append("moves in flight complete by themselves: `kctl topic reassign status` shows them")
    if result.as_before:
        steps.append("carry out the rest with `kctl topic reassign apply PLAN`" if started else _APPLY)
    if result.elsewhere:
        steps.append("partitions were moved by others since the plan: make a new plan from the current state")
    stranded = [row for row in result.brokers_left if row.without_leader]
    if stranded:
        count = counted(sum(row.without_leader for row in stranded), "partition")
        steps.append(f"{count} without a leader cannot be copied: start a broker with a replica, or delete the topics")
    # The steps above cover replicas that this plan has not moved yet.
    rest = [row for row in result.brokers_left if row.replica_count > row.without_leader]
    if rest and not result.failures:
        options = " ".join(f"--remove-broker {row.broker}" for row in rest)
        steps.append(f"plan the rest with `kctl topic reassign plan {options}`")
    return steps


def some(names: Sequence[str]) -> str:
    """Return the first names, and the number of others."""
    return ", ".join(names[:3]) + (f" and {len(names) - 3:,} more" if len(names) > 3 else "")


def tables(result: RunResult) -> list[Table]:
    """Return a result as tables: partitions by outcome, and the failures."""
    size = f", {format_size(result.bytes)}" if result.moves else ""
    title = f"{result.kind} on {result.cluster} {result.outcome.value}: {counted(result.moves, 'replica')} copied{size}"
    if result.taken_back:
        title += f"; {counted(result.taken_back, 'partition')} returned to the original replicas"
    outputs = [counts_table(result, title), *failures_table(result.failures)]
    if result.not_elected:
        failed = [{"partition": tp, "reason": why} for tp, why in list(result.not_elected.items())[:_SHOWN]]
        outputs.append(Table([Column("partition"), Column("reason", "NOT ELECTED")], failed))
    return outputs


def counts_table(result: RunResult | PlanVerification, title: str | None = None) -> Table:
    """Return the number of partitions in each state."""
    counts = {
        "reached": result.reached,
        "in flight": result.in_flight,
        "as before": result.as_before,
        "elsewhere": result.elsewhere,
    }
    rows = [{"outcome": name, "partitions": count} for name, count in counts.items() if count]
    return Table([Column("outcome"), Column("partitions", align="right")], rows, title=title)


def failures_table(failures: Sequence[NotReached]) -> list[Table]:
    """Return the partitions that are not at their target; no table if there are none."""
    if not failures:
        return []
    reason = Column("reason", show=_without_subject)
    columns = [Column("topic"), Column("partition", "PART", align="right"), Column("standing"), reason]
    return [Table(columns, jsonable(failures[:_SHOWN]), title=_first(len(failures)))]


def _without_subject(line: str) -> str:
    """Return "it is still being moved" for "orders-0: it …": the row has the partition. Topic names have no colon."""
    return line.partition(": ")[2] or line


def shortened(value: str | None) -> str:
    """Return a list of throttled replicas, shortened; other values unchanged."""
    entries = (value or "-").split(",")
    return ",".join(entries[:3]) + (f" and {len(entries) - 3:,} more" if len(entries) > 3 else "")


def _first(count: int) -> str | None:
    return f"first {_SHOWN} of {count:,}; all: -o json" if count > _SHOWN else None


def status_tables(status: ReassignmentStatus) -> list[Table]:
    """Return a status as tables."""
    outputs = []
    if status.run is not None:
        run = status.run
        rows = {
            "run": f"{run.kind} of {run.source}, {run.state.value}" + (f" (pid {run.pid})" if run.pid else ""),
            "batches": f"{run.batches_done:,} of {run.batches:,} done",
            "partitions": f"{run.reached:,} of {run.partition_count:,} reached, {run.in_flight:,} in flight, "
            f"{run.as_before:,} as before" + (f", {run.elsewhere:,} elsewhere" if run.elsewhere else ""),
            "throttle": run.throttle + (f": {', '.join(run.throttles_left)}" if run.throttles_left else ""),
            "began": run.began_at,
            "last entry": run.last_at,
            "journal": run.journal,
        }
        outputs.append(
            Table([Column("key", "RUN"), Column("value", " ")], [{"key": k, "value": v} for k, v in rows.items()])
        )
    columns = [
        Column("topic"),
        Column("partition", "PART", align="right"),
        Column("replicas", "TO"),
        Column("adding"),
        Column("removing"),
        Column("copied_bytes", "COPIED", show=format_size, align="right"),
        Column("size_bytes", "OF", show=format_size, align="right"),
        Column("ours", "KCTL'S"),
    ]
    rows_moving = [
        {**row, "replicas": row["replicas"] if row["log_dir"] is None else f"{row['broker']}:{row['log_dir']}"}
        for row in jsonable(status.moving[:_SHOWN])
    ]
    outputs.append(Table(columns, rows_moving, title=_first(len(status.moving))))
    return outputs


def status_lines(status: ReassignmentStatus) -> list[str]:
    """Return the notes below the tables, one per line; warnings are in `status_warnings`."""
    from kctl.reassign.run.settings import summarize_settings

    lines = []
    if status.run is None:
        lines.append("no reassignment of this cluster was started on this machine")
    if not status.moving:
        lines.append("no partitions are moving in the cluster")
    if status.throttles:
        lines.append(f"throttles are set: {summarize_settings(status.throttles)} (details: -o json)")
        if status.run is None or (status.todo is None and not status.run.alive):
            lines.append(
                "if a run of kctl left them, `kctl topic reassign cancel --plan FILE` removes them and cancels the"
                " moves in flight"
            )
    if status.todo:
        lines.append(status.todo)
    return lines


def status_warnings(status: ReassignmentStatus) -> list[str]:
    """Return changes that others made to the throttle, brokers that moves wait for, and unreadable brokers."""
    lines = [] if status.run is None else list(status.run.throttle_changes)
    for node in status.down:
        waiting = sum(1 for row in status.moving if node in row.adding)
        lines.append(f"broker {node} is down: {counted(waiting, 'partition')} cannot be copied to it until it is up")
    if status.throttles_unread:
        name, why = next(iter(status.throttles_unread.items()))
        more = len(status.throttles_unread) - 1
        lines.append(f"cannot read the throttles of {name}" + (f" and {more:,} more" if more else "") + f": {why}")
    return lines
