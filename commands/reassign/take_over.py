"""`kctl topic reassign cancel --plan FILE`: taking back moves whose journal is not here."""

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
    from kctl.reassign.run.take_over import TakenOver

_NAMED = 20
_VALUE = 40


def cancel_plan(inv: Invocation, plan: Path, *, dry_run: bool) -> None:
    """Show what of the plan is in flight and throttled, ask, take it back."""
    from kctl.reassign.plan_file.read import read_plan
    from kctl.reassign.run import operations
    from kctl.reassign.run.outcome import RunResult

    file = read_plan(plan)

    def report(found: TakenOver) -> None:
        _warn(found)
        if found.in_flight and not file.has_before:
            output.warn(
                "the file does not say in which order the replicas were: the first one may be another than before"
            )

    with inv.connect() as client:

        def confirm(found: TakenOver, basis: Basis) -> None:
            for line in _lines(found):
                output.note(line)
            inv.confirm(f"{_question(found)} on {client.target.name}?", target=client.target, basis=basis)

        outcome = operations.cancel_plan(
            client, file, str(plan), TerminalOperator(), report=report, confirm=None if dry_run else confirm
        )
        if isinstance(outcome, RunResult):
            show(inv, outcome)
        elif dry_run:
            shown = {"plan": str(plan), "in_flight": outcome.in_flight, "throttles": outcome.settings}
            changed = bool(outcome.in_flight or outcome.throttle)
            inv.emit(shown, lambda: [_moves_table(outcome), _throttles_table(outcome)], changed=changed)
            output.note("nothing was changed (--dry-run)")
        else:
            inv.report_change(changed=False)
            output.note(f"nothing of {plan} is in flight, and no throttle is set on its brokers and topics")


def _warn(found: TakenOver) -> None:
    if found.in_flight:
        output.warn("a kctl that still carries the plan out elsewhere would begin its next batch: stop it first")
    if found.foreign:
        names = some(found.foreign)
        output.warn(
            f"{counted(len(found.foreign), 'partition')} moved elsewhere than the plan says, left alone: {names}"
        )
    for name, why in list(found.unread.items())[:_NAMED]:
        output.warn(f"throttles of {name} are not looked at, and stay as they are: {why}")


def _lines(found: TakenOver) -> list[str]:
    """What is done, each thing a line."""
    lines = [f"{name}: goes back to the replicas of before" for name in found.in_flight[:_NAMED]]
    if len(found.in_flight) > _NAMED:
        lines.append(f"and {len(found.in_flight) - _NAMED:,} more partitions (--dry-run -o json has all)")
    lines += [_becomes(found, row) for row in found.settings[:_NAMED]]
    if len(found.settings) > _NAMED:
        lines.append(f"and {len(found.settings) - _NAMED:,} more settings (--dry-run -o json has all)")
    return lines


def _becomes(found: TakenOver, row: ThrottleSetting) -> str:
    resource = Resource("topic" if row.kind == "topic" else "broker", row.name)
    value = row.value if len(row.value) <= _VALUE else row.value[: _VALUE - 1] + "…"
    done = "is deleted" if found.throttle.before[resource][row.setting] is None else "loses the plan's replicas"
    return f"{row.kind} {row.name}: {row.setting}={value} {done}"


def _question(found: TakenOver) -> str:
    parts = []
    if found.in_flight:
        parts.append(f"take back {counted(len(found.in_flight), 'partition')}")
    if found.settings:
        parts.append(f"take away {counted(len(found.settings), 'throttle setting')}")
    text = " and ".join(parts)
    return text[0].upper() + text[1:]


def _moves_table(found: TakenOver) -> Table:
    return Table([Column("partition", "IN FLIGHT")], [{"partition": name} for name in found.in_flight[:_NAMED]])


def _throttles_table(found: TakenOver) -> Table:
    columns = [Column("kind", "THROTTLED"), Column("name", " "), Column("setting"), Column("value")]
    return Table(columns, jsonable(found.settings[:_NAMED]))
