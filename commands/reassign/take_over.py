"""`kctl topic reassign cancel --plan FILE`: cancel moves without a journal."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from kctl.base.text import counted
from kctl.commands.reassign.run import TerminalOperator, show
from kctl.commands.reassign.tables import some
from kctl.commands.terminal import output
from kctl.commands.terminal.invocation import Invocation
from kctl.commands.terminal.output import Column, Table, jsonable
from kctl.configs.dynamic import Resource

if TYPE_CHECKING:
    from kctl.cluster.unchanged import Basis
    from kctl.reassign.run.settings import ThrottleSetting
    from kctl.reassign.run.take_over import PlanInFlight

_SHOWN = 20
_MAX_VALUE_CHARS = 40


def cancel_plan(inv: Invocation, plan: Path, *, dry_run: bool) -> None:
    """Show which of the plan's partitions are in flight and throttled, confirm, and cancel."""
    from kctl.reassign.plan_file.read import read_plan
    from kctl.reassign.run import operations
    from kctl.reassign.run.outcome import RunResult

    file = read_plan(plan)

    def report(in_flight: PlanInFlight) -> None:
        _warn(in_flight)
        if in_flight.in_flight and not file.has_before:
            output.warn("the file does not have the original order of the replicas: the preferred leader may change")

    with inv.connect() as client:

        def confirm(in_flight: PlanInFlight, basis: Basis) -> None:
            for line in _lines(in_flight):
                output.note(line)
            inv.confirm(f"{_question(in_flight)} on {client.target.name}?", target=client.target, basis=basis)

        outcome = operations.cancel_plan(
            client, file, str(plan), TerminalOperator(), report=report, confirm=None if dry_run else confirm
        )
        if isinstance(outcome, RunResult):
            show(inv, outcome)
        elif dry_run:
            summary = {"plan": str(plan), "in_flight": outcome.in_flight, "throttles": outcome.settings}
            changed = bool(outcome.in_flight or outcome.throttle)
            inv.emit(summary, lambda: [_moves_table(outcome), _throttles_table(outcome)], changed=changed)
            output.note("nothing was changed (--dry-run)")
        else:
            inv.report_change(changed=False)
            output.note(f"no partition of {plan} is in flight, and its brokers and topics have no throttle")


def _warn(in_flight: PlanInFlight) -> None:
    if in_flight.in_flight:
        output.warn("if kctl still carries the plan out elsewhere, stop it first: it would start the next batch")
    if in_flight.foreign:
        names = some(in_flight.foreign)
        output.warn(
            f"{counted(len(in_flight.foreign), 'partition')} moving to other targets than planned, left alone: {names}"
        )
    for name, why in list(in_flight.unread.items())[:_SHOWN]:
        output.warn(f"cannot read the throttles of {name}, which stay as they are: {why}")


def _lines(in_flight: PlanInFlight) -> list[str]:
    """Return one line per change."""
    lines = [f"{name}: returns to its original replicas" for name in in_flight.in_flight[:_SHOWN]]
    if len(in_flight.in_flight) > _SHOWN:
        lines.append(f"and {len(in_flight.in_flight) - _SHOWN:,} more partitions (--dry-run -o json has all)")
    lines += [_setting_change(in_flight, row) for row in in_flight.settings[:_SHOWN]]
    if len(in_flight.settings) > _SHOWN:
        lines.append(f"and {len(in_flight.settings) - _SHOWN:,} more settings (--dry-run -o json has all)")
    return lines


def _setting_change(in_flight: PlanInFlight, row: ThrottleSetting) -> str:
    resource = Resource("topic" if row.kind == "topic" else "broker", row.name)
    value = row.value if len(row.value) <= _MAX_VALUE_CHARS else row.value[: _MAX_VALUE_CHARS - 1] + "…"
    change = "is deleted" if in_flight.throttle.before[resource][row.setting] is None else "loses the plan's replicas"
    return f"{row.kind} {row.name}: {row.setting}={value} {change}"


def _question(in_flight: PlanInFlight) -> str:
    parts = []
    if in_flight.in_flight:
        parts.append(f"cancel the moves of {counted(len(in_flight.in_flight), 'partition')}")
    if in_flight.settings:
        parts.append(f"remove {counted(len(in_flight.settings), 'throttle setting')}")
    text = " and ".join(parts)
    return text[0].upper() + text[1:]


def _moves_table(in_flight: PlanInFlight) -> Table:
    return Table([Column("partition", "IN FLIGHT")], [{"partition": name} for name in in_flight.in_flight[:_SHOWN]])


def _throttles_table(in_flight: PlanInFlight) -> Table:
    columns = [Column("kind", "THROTTLED"), Column("name", " "), Column("setting"), Column("value")]
    return Table(columns, jsonable(in_flight.settings[:_SHOWN]))
