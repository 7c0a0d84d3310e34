"""How runs of reassignments look: what they will do, how far they are, what came of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from kctl.commands.output import Column, Table, jsonable
from kctl.commands.views import counted
from kctl.units import format_duration, format_size

if TYPE_CHECKING:
    from kctl.reassign.outcome import NotReached, RunResult
    from kctl.reassign.prepare import Preview
    from kctl.reassign.progress import Progress
    from kctl.reassign.run_status import Status
    from kctl.reassign.verify import Verification

_SHOWN = 20
_APPLY = "it was not begun on this machine: `kctl topic reassign apply PLAN` carries it out"


# --- before and while ----------------------------------------------------------------------------------------------


def sentences(shown: Preview) -> list[str]:
    """What a run will do, for the one who is asked."""
    copies = "1 replica is copied" if shown.moves == 1 else f"{shown.moves:,} replicas are copied"
    lines = [f"{counted(shown.partitions, 'partition')} in {counted(shown.batches, 'batch')}: {copies}"]
    if shown.moves:
        lines[0] += f", {format_size(shown.bytes)}"
    if shown.unknown_sizes:
        lines[0] += f" and {shown.unknown_sizes:,} of unknown size"
    if shown.reorders:
        lines[0] += f"; {counted(shown.reorders, 'partition')} without a copy"
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
        what = f"{counted(shown.moves, 'replica')} ({size}) on {shown.cluster}"
    else:
        what = f"the replicas of {counted(shown.partitions, 'partition')} on {shown.cluster}, without a copy"
    return f"Roll back {source}: move {what}?" if shown.kind == "rollback" else f"Move {what}?"


_LABELS = {
    "reached": "there already",
    "reorders": "without a copy",
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
    if p.eta_ms is not None:
        parts.append(f"{format_duration(max(p.eta_ms // 1000 * 1000, 1000))} left")
    return ", ".join(parts)


# --- after --------------------------------------------------------------------------------------------------------


def what_is_left(result: RunResult) -> list[str]:
    """A phrase for each thing that a run was to reach and has not."""
    left = [f"{name} is down and keeps a throttle of the run" for name in result.throttles_left]
    if result.outcome == "cancelled":
        return left
    if result.failures:
        left.append(f"{counted(len(result.failures), 'partition')} not where they are to be")
    left += [
        f"broker {row.broker} still holds {counted(row.replicas, 'replica')}: {some(row.partitions)}"
        for row in result.brokers_left
    ]
    if result.not_elected:
        names = some(list(result.not_elected))
        left.append(f"{counted(len(result.not_elected), 'partition')} not led by the preferred replica: {names}")
    return left


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
    rest = [row for row in found.brokers_left if row.replicas > row.without_leader]
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
    columns = [Column("topic"), Column("partition", "PART", align="right"), Column("standing"), Column("reason")]
    return [Table(columns, jsonable(failures[:_SHOWN]), title=_first(len(failures)))]


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
            "partitions": f"{run.reached:,} of {run.partitions:,} reached, {run.in_flight:,} in flight, "
            f"{run.as_before:,} as before" + (f", {run.elsewhere:,} elsewhere" if run.elsewhere else ""),
            "throttle": run.throttle,
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
    found.append(Table(columns, jsonable(status.moving[:_SHOWN]), title=_first(len(status.moving))))
    return found
