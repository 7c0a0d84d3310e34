"""How runs of reassignments look: what they will do, how far they are, what came of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from kctl.base.text import counted
from kctl.base.units import format_duration, format_size
from kctl.commands.terminal.output import Column, Table, jsonable

if TYPE_CHECKING:
    from kctl.reassign.run.outcome import RunResult
    from kctl.reassign.run.prepare import Preview
    from kctl.reassign.run.progress import Progress
    from kctl.reassign.run.reached import NotReached
    from kctl.reassign.run.run_status import RunOverview, Status
    from kctl.reassign.run.steps import RunState
    from kctl.reassign.run.verify import Verification

_SHOWN = 20
_APPLY = "it was not begun on this machine: `kctl topic reassign apply PLAN` carries it out"


# --- before and while ----------------------------------------------------------------------------------------------


def sentences(shown: Preview) -> list[str]:
    """What a run will do, for the one who is asked."""
    many = f"{shown.moves:,} replicas are copied" if shown.moves else "nothing is copied"
    copies = "1 replica is copied" if shown.moves == 1 else many
    lines = [f"{counted(shown.partition_count, 'partition')} in {counted(shown.batches, 'batch')}: {copies}"]
    if shown.moves:
        lines[0] += f", {format_size(shown.bytes)}"
    if shown.unknown_sizes:
        lines[0] += f" and {shown.unknown_sizes:,} of unknown size"
    if shown.reorders and shown.moves:
        lines[0] += f"; nothing to copy for {counted(shown.reorders, 'partition')}"
    if shown.removed_replicas:
        one = shown.removed_replicas == 1
        removed = (
            "1 replica is removed: its partition has"
            if one
            else f"{shown.removed_replicas:,} replicas are removed: their partitions have"
        )
        lines.append(f"{removed} fewer then")
    if shown.reached:
        lines.append(f"{counted(shown.reached, 'partition')} are where they are to be already")
    if shown.throttle_bytes is not None and shown.duration_ms:
        rate = format_size(shown.throttle_bytes)
        lines.append(f"at {rate}/s for each broker it takes at least {format_duration(shown.duration_ms)}")
    elif shown.moves and shown.throttle_bytes is None:
        lines.append("no throttle: it takes what bandwidth there is (--throttle 50MB/s limits it)")
    return lines


def question(shown: Preview, source: str) -> str:
    """What is asked before a run. source: the plan, or the run that is rolled back."""
    if shown.moves:
        size = format_size(shown.bytes) + (" and more" if shown.unknown_sizes else "")
        less = f" and remove {shown.removed_replicas:,}" if shown.removed_replicas else ""
        what = f"{counted(shown.moves, 'replica')} ({size}){less} on {shown.cluster}"
    elif shown.removed_replicas:
        what = f"{counted(shown.removed_replicas, 'replica')} of {counted(shown.partition_count, 'partition')}"
        verb = "remove" if shown.kind == "rollback" else "Remove"
        asked = f"{verb} {what} on {shown.cluster}, and copy none?"
        return f"Roll back {source}: {asked}" if shown.kind == "rollback" else asked
    else:
        what = f"the replicas of {counted(shown.partition_count, 'partition')} on {shown.cluster}, without a copy"
    return f"Roll back {source}: move {what}?" if shown.kind == "rollback" else f"Move {what}?"


_LABELS = {
    "reached": "there already",
    "reorders": "nothing to copy for",
    "removed_replicas": "replicas removed",
    "throttle_bytes": "throttle",
    "duration_ms": "takes at least",
}


def preview_table(shown: Preview) -> Table:
    """A preview for people."""
    rows = [
        {"what": _LABELS.get(key, key.replace("_", " ")), "value": _shown(key, value)}
        for key, value in jsonable(shown).items()
    ]
    return Table([Column("what", "PLAN"), Column("value", " ")], rows)


def _shown(key: str, value: Any) -> Any:
    if value is None or isinstance(value, (str, list)):
        return value or "-"
    if key in {"bytes", "throttle_bytes"}:
        return format_size(value) + ("/s" if key == "throttle_bytes" else "")
    return format_duration(value) if key == "duration_ms" else f"{value:,}"


def progress_line(p: Progress) -> str:
    """«2/7: 1.2 of 4.5 GB, 48 MB/s, 1m 10s left»."""
    parts = [f"{p.batch}/{p.batches}: {format_size(p.done_bytes)} of {format_size(p.total_bytes)}"]
    if p.rate_bytes is not None:
        parts.append(f"{format_size(round(p.rate_bytes))}/s")
    if p.total_bytes and p.done_bytes >= p.total_bytes:
        parts.append("coming in sync")
    elif p.eta_ms is not None:
        parts.append(f"{format_duration(max(p.eta_ms // 1000 * 1000, 1000))} left")
    return ", ".join(parts)


def rest_line(state: RunState, *, rate_bytes: int | None) -> str:
    """«apply of p.json: 12 replicas (1.7 MB) in 2 of 3 batches are left, at 50 MB/s for each broker»."""
    from kctl.reassign.run.steps import Mode

    plan = state.plan
    name = f"{plan.kind} of {plan.source}"
    batches = len(plan.batches) - state.batches_done
    if state.mode is Mode.CANCELLED:
        return f"{name}: it is being cancelled"
    if not batches:
        return f"{name}: everything is moved, what is left is to end it"
    moves, size = plan.rest(state.batches_done)
    what = f"{counted(moves, 'replica')} ({format_size(size)})" if moves else "nothing to copy"
    rate = "without a throttle" if rate_bytes is None else f"at {format_size(rate_bytes)}/s for each broker"
    return f"{name}: {what} in {batches:,} of {counted(len(plan.batches), 'batch')} left, {rate}"


def would_pause(run: RunOverview, *, now: bool) -> str:
    """What `pause` would do."""
    batch = f"batch {run.batches_done + 1:,} of {run.batches:,}"
    first = f"take back {counted(run.in_flight, 'partition')} in flight" if now else f"let {batch} end"
    if run.state in {"paused", "cancelling"}:
        return f"{run.kind} of {run.source} is {run.state} already"
    if not run.in_flight:
        return f"it would pause {run.kind} of {run.source} before {batch}, and take its throttles away"
    return f"it would {first}, then pause {run.kind} of {run.source} and take its throttles away"


def would_cancel(run: RunOverview) -> str:
    """What `cancel` does: «3 partitions in flight go back, 9 that were moved stay»."""
    back = f"{counted(run.in_flight, 'partition')} in flight {'goes' if run.in_flight == 1 else 'go'} back"
    stay = (
        f"{run.reached:,} that {'was' if run.reached == 1 else 'were'} moved {'stays' if run.reached == 1 else 'stay'}"
    )
    return f"{back}, {stay}"


# --- after --------------------------------------------------------------------------------------------------------


def what_is_left(result: RunResult) -> list[str]:
    """A phrase for each thing that a run was to reach and has not."""
    left = [f"{name} is down and keeps a throttle of the run" for name in result.throttles_left]
    if result.outcome == "cancelled":
        return left
    if result.failures:
        left.append(f"{counted(len(result.failures), 'partition')} not where they are to be")
    left += [
        f"broker {row.broker} still holds {counted(row.replica_count, 'replica')}: {some(row.partitions)}"
        for row in result.brokers_left
    ]
    if result.not_elected:
        names = some(list(result.not_elected))
        left.append(f"{counted(len(result.not_elected), 'partition')} not led by the preferred replica: {names}")
    return left


def stays(result: RunResult) -> str:
    """What a cancelled run had moved, and how to take it back."""
    one = result.reached == 1
    stay = (
        "1 partition had been moved and stays so"
        if one
        else f"{result.reached:,} partitions had been moved and stay so"
    )
    if result.kind == "rollback":
        return f"{stay}; `kctl topic reassign rollback PLAN` takes the others back as well"
    return f"{stay}; `kctl topic reassign rollback` takes {'it' if one else 'them'} back"


def ways_on(found: RunResult | Verification, *, begun: bool = True) -> list[str]:
    """What to type for what is not there yet. begun: a run of the plan was begun on this machine."""
    ways = []
    if found.in_flight:
        ways.append("what is in flight arrives by itself: `kctl topic reassign status` shows it")
    if found.as_before:
        ways.append("`kctl topic reassign apply PLAN` carries out the rest" if begun else _APPLY)
    if found.elsewhere:
        ways.append("others have moved partitions since the plan: a new plan begins from where they are")
    stranded = [row for row in found.brokers_left if row.without_leader]
    if stranded:
        count = counted(sum(row.without_leader for row in stranded), "partition")
        ways.append(f"{count} without a leader cannot be copied: start a broker that has them, or delete their topics")
    # What the plan itself has still to move away is told above.
    rest = [row for row in found.brokers_left if row.replica_count > row.without_leader]
    if rest and not found.failures:
        options = " ".join(f"--remove-broker {row.broker}" for row in rest)
        ways.append(f"`kctl topic reassign plan {options}` plans the rest")
    return ways


def some(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3:,} more" if len(names) > 3 else "")


def tables(result: RunResult) -> list[Table]:
    """A result for people: partitions by outcome, and whatever failed."""
    size = f", {format_size(result.bytes)}" if result.moves else ""
    title = f"{result.kind} on {result.cluster} {result.outcome}: {counted(result.moves, 'replica')} copied{size}"
    if result.taken_back:
        title += f"; {counted(result.taken_back, 'partition')} taken back"
    found = [counts_table(result, title), *failures_table(result.failures)]
    if result.not_elected:
        failed = [{"partition": tp, "reason": why} for tp, why in list(result.not_elected.items())[:_SHOWN]]
        found.append(Table([Column("partition"), Column("reason", "NOT ELECTED")], failed))
    return found


def counts_table(result: RunResult | Verification, title: str | None = None) -> Table:
    """Partitions by where they stand."""
    counts = {
        "reached": result.reached,
        "in flight": result.in_flight,
        "as before": result.as_before,
        "elsewhere": result.elsewhere,
    }
    rows = [{"outcome": name, "partitions": count} for name, count in counts.items() if count]
    return Table([Column("outcome"), Column("partitions", align="right")], rows, title=title)


def failures_table(failures: Sequence[NotReached]) -> list[Table]:
    """Partitions that are not where they are to be; none when there are none."""
    if not failures:
        return []
    reason = Column("reason", show=_without_subject)
    columns = [Column("topic"), Column("partition", "PART", align="right"), Column("standing"), reason]
    return [Table(columns, jsonable(failures[:_SHOWN]), title=_first(len(failures)))]


def _without_subject(line: str) -> str:
    """«orders-0: it is still being moved» beside its topic and partition. No topic's name has a colon."""
    return line.partition(": ")[2] or line


def shortened(value: str | None) -> str:
    """A list of throttled replicas as its beginning; other values whole."""
    entries = (value or "-").split(",")
    return ",".join(entries[:3]) + (f" and {len(entries) - 3:,} more" if len(entries) > 3 else "")


def _first(count: int) -> str | None:
    return f"the first {_SHOWN} of {count:,}; -o json has all" if count > _SHOWN else None


def status_tables(status: Status) -> list[Table]:
    """A status for people."""
    found = []
    if status.run is not None:
        run = status.run
        rows = {
            "run": f"{run.kind} of {run.source}, {run.state}" + (f" (pid {run.pid})" if run.pid else ""),
            "batches": f"{run.batches_done:,} of {run.batches:,} done",
            "partitions": f"{run.reached:,} of {run.partition_count:,} reached, {run.in_flight:,} in flight, "
            f"{run.as_before:,} as before" + (f", {run.elsewhere:,} elsewhere" if run.elsewhere else ""),
            "throttle": run.throttle + (f": {', '.join(run.throttles_left)}" if run.throttles_left else ""),
            "began": run.began_at,
            "last entry": run.last_at,
            "journal": run.journal,
        }
        found.append(
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
        Column("ours"),
    ]
    rows_moving = [
        {**row, "replicas": row["replicas"] if row["log_dir"] is None else f"{row['broker']}:{row['log_dir']}"}
        for row in jsonable(status.moving[:_SHOWN])
    ]
    found.append(Table(columns, rows_moving, title=_first(len(status.moving))))
    return found


def status_lines(status: Status) -> list[str]:
    """What stands beside the tables, a line each; warnings are `status_warnings`."""
    from kctl.reassign.run.settings import summarize_settings

    lines = []
    if status.run is None:
        lines.append("no reassignment of this cluster was begun on this machine")
    if not status.moving:
        lines.append("nothing moves in the cluster")
    if status.throttles:
        lines.append(f"throttles are set: {summarize_settings(status.throttles)} (-o json has each)")
        if status.run is None or (status.todo is None and not status.run.alive):
            lines.append(
                "what a run of kctl has left, `kctl topic reassign cancel --plan FILE` takes away with what is in"
                " flight of FILE; others are their owners'"
            )
    if status.todo:
        lines.append(status.todo)
    return lines


def status_warnings(status: Status) -> list[str]:
    """Return remarks: changes of the throttle by others, brokers that moves wait for, and unreadable brokers."""
    lines = [] if status.run is None else list(status.run.throttle_changes)
    for node in status.down:
        waiting = sum(1 for row in status.moving if node in row.adding)
        lines.append(f"broker {node} is down: {counted(waiting, 'partition')} cannot arrive there until it is up")
    if status.throttles_unread:
        name, why = next(iter(status.throttles_unread.items()))
        more = len(status.throttles_unread) - 1
        lines.append(f"throttles of {name}" + (f" and {more:,} more" if more else "") + f" could not be read: {why}")
    return lines
