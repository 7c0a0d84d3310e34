"""Output of a playbook's run: each step as it runs, and a summary at the end."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from kctl.base.text import counted
from kctl.base.units import format_duration
from kctl.commands.terminal import output
from kctl.commands.terminal.output import Column, Table, jsonable
from kctl.playbook.run.states import StepState

if TYPE_CHECKING:
    from kctl.playbook.run.report import RunReport, StepReport

_MAX_ROWS = 50  # displayed of a plan
_MAX_ROW = 400  # characters per row
_PARTS = {"steps": "", "on_failure": "on failure ", "finally": "finally "}
_STYLES = {
    StepState.FAILED: "red",
    StepState.UNKNOWN: "yellow",
    StepState.CHANGED: "green",
    StepState.WOULD_CHANGE: "green",
}


class LiveLines:
    """A printer of steps on stderr: the name when a step starts, its state when it ends."""

    def __init__(self) -> None:
        self._current: StepReport | None = None

    def began(self, report: StepReport) -> None:
        _print(f"{_lead(report)}{report.name}")
        self._current = report

    def planned(self, report: StepReport, value: Any) -> None:
        for line in plan_lines(value):
            _print(f"{_indent(report)}plan: {line}")

    def noted(self, report: StepReport, line: str) -> None:
        _print(f"{_indent(report)}| {line}")

    def ended(self, report: StepReport) -> None:
        text = outcome_line(report)
        if self._current is report:
            _print(f"{_indent(report)}{text}")
        else:  # an include, or a step that did not start: other steps were printed in between
            _print(f"{_lead(report)}{report.name}: {text}")
        self._current = None

    def interrupted(self) -> None:
        _print("interrupted: running the final steps; interrupt again to skip them")


def _print(line: str) -> None:
    """Print a line. Errors are ignored: the run must continue without a terminal or with a full disk."""
    with suppress(OSError):
        output.note(line)


def _lead(report: StepReport) -> str:
    return f"{'    ' * report.depth}[{_PARTS[report.part]}{report.number}/{report.of}] "


def _indent(report: StepReport) -> str:
    return "    " * (report.depth + 1)


def outcome_line(report: StepReport) -> str:
    """Return e.g. "changed, 350ms", "skipped: when: x > 1", "failed, 1s: reason"."""
    state = "unknown" if report.state is None else report.state.value
    parts = [f"{state} before" if report.before else state]
    if report.items is not None:
        parts.append(counted(report.items, "item"))
    if report.attempts > 1:
        parts.append(counted(report.attempts, "attempt"))
    if report.started_at is not None and report.state is not StepState.SKIPPED:
        parts.append(format_duration(report.duration_ms))
    return ", ".join(parts) + (f": {report.message}" if report.message else "")


def plan_lines(value: Any) -> list[str]:
    """Format the result of a dry run: one line per row."""
    rows = value if isinstance(value, list) else [value]
    lines = [_row(each)[:_MAX_ROW] for each in rows[:_MAX_ROWS]]
    return lines + ([f"and {len(rows) - _MAX_ROWS:,} more"] if len(rows) > _MAX_ROWS else [])


def _row(row: Any) -> str:
    if not isinstance(row, Mapping):
        return row if isinstance(row, str) else json.dumps(row, ensure_ascii=False)
    cells = {key: each for key, each in row.items() if each is not None and each not in ([], {})}
    return ", ".join(f"{key} {_plain(each)}" for key, each in cells.items())


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


# --- at the end -------------------------------------------------------------------------------------------------------


def title(report: RunReport) -> str:
    """Return a one-line summary of the run."""
    on = f" on {report.target}" if report.target else ""
    dry = "dry run of " if report.check else ""
    counts = ", ".join(f"{number:,} {state}" for state, number in report.counts.items() if number)
    return f"{dry}{report.playbook}{on}: {report.status} after {format_duration(report.duration_ms)}; steps: {counts}"


def tables(report: RunReport) -> Sequence[Table]:
    """Return a row per step, for `-o wide`."""
    columns = [
        Column("step", name=True),
        Column("state", style=lambda row: _STYLES.get(row["state"])),
        Column("operation", wide=True),
        Column("duration_ms", "TIME", show=format_duration, align="right"),
        Column("attempts", align="right", wide=True),
        Column("message"),
    ]
    rows = [
        {**jsonable(each), "duration_ms": None if each.state is StepState.SKIPPED else each.duration_ms}
        for each in report.steps
    ]
    return [Table(columns, rows, title=title(report))]
