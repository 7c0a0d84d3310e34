"""A report folder: report.json, report.md and a plot of each scenario."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kctl.base.text import printable
from kctl.errors import OperationFailed, UsageError
from kctl.validate.report.plot_svg import plot_svg
from kctl.validate.report.sentences import OPTIONS, budget_status, missing_line, unmeasured_line, why_not

if TYPE_CHECKING:
    from kctl.validate.matrix import MatrixRow
    from kctl.validate.run import ScenarioResult

_MARKDOWN = str.maketrans({char: f"\\{char}" for char in "\\`*_|[]<>"})

_COUNTS = (
    "sent", "acked", "failed", "indeterminate", "log_records", "delivered", "lost", "duplicated", "out_of_order",
)  # fmt: skip


def check_folder(folder: Path) -> None:
    """Raise UsageError if a report cannot be written to the folder; called before any work is done."""
    if folder.is_dir():
        if os.access(folder, os.R_OK) and any(folder.iterdir()):
            raise UsageError(f"{folder} is not empty", hint="choose a folder that does not exist")
    elif folder.exists() or folder.is_symlink():
        raise UsageError(f"{folder} is not a folder")
    elif not folder.absolute().parent.is_dir():
        raise UsageError(f"the folder {folder.absolute().parent} does not exist")
    into = folder if folder.is_dir() else folder.absolute().parent
    if not os.access(into, os.R_OK | os.W_OK | os.X_OK):
        raise UsageError(f"{into} is not writable", hint="choose a folder that this user can write to")


def write_report(
    folder: Path, value: Mapping[str, Any], results: Sequence[ScenarioResult], matrix: Sequence[MatrixRow] = ()
) -> None:  # fmt: skip
    """Write a report. value: from kctl.validate.report.report. Raises OperationFailed."""
    try:
        folder.mkdir(exist_ok=True)
        files = {"report.json": json.dumps(value, indent=2, default=str) + "\n"}
        files["report.md"] = "\n".join(markdown(value, results, matrix)) + "\n"
        for result in results:
            title = f"{label(result)}: acknowledged writes per second"
            files[f"{label(result)}.svg"] = plot_svg(result.plot, title)
        for name, text in files.items():
            (folder / name).write_text(text, encoding="utf-8")
    except OSError as exc:
        raise OperationFailed(f"cannot write the report in {folder}: {exc.strerror}") from None


def label(result: ScenarioResult) -> str:
    """Return the label of a result in its run: the end of its topic's name."""
    return result.folder.name


def markdown(
    value: Mapping[str, Any], results: Sequence[ScenarioResult], matrix: Sequence[MatrixRow] = ()
) -> Iterator[str]:
    """Yield the lines of report.md. Pure."""
    yield f"# Validation of {_text(value['cluster'])}"
    yield ""
    brokers = ", ".join(map(str, value["brokers"]))
    yield f"Cluster id {_text(value['cluster_id'])}, brokers {brokers}, run {value['run']}."
    yield f"**{'Passed.' if value['ok'] else 'Failed.'}**"
    if value.get("failed"):
        yield f"The run did not complete: {_text(value['failed'])}"
    for row in value.get("left_out", ()):
        yield f"{row['scenario']} was skipped: {_text(row['reason'])}"
    yield from (unmeasured_line(name) for name in value.get("unmeasured", ()))
    yield from (f"Doubt: {_text(each)}" for each in value.get("doubts", ()))
    if matrix:
        yield ""
        yield from _table(
            ("acks", "idempotence", "min.insync", "acked", "failed", "lost", "duplicated", "out of order", "result"),
            [
                (row.acks, "yes" if row.idempotence else "no", row.min_insync_replicas, row.acked, row.failed, row.lost,
                 row.duplicated, row.out_of_order, row.meaning)
                for row in matrix
            ],
        )  # fmt: skip
    for result, row in zip(results, value.get("scenarios", value.get("setups", ())), strict=True):
        yield from _section(result, row)


def _section(result: ScenarioResult, row: Mapping[str, Any]) -> Iterator[str]:
    yield from ("", f"## {label(result)}: {'passed' if row['ok'] else 'failed'}", "")
    min_isr = f"min.insync.replicas={row['min_insync_replicas']}"
    idempotence = f"idempotence {'on' if row['idempotence'] else 'off'}"
    yield f"acks={row['acks']}, {idempotence}, {min_isr}, topic {_text(row['topic'])}."
    yield ""
    yield from _table([name.replace("_", " ") for name in _COUNTS], [[row[name] for name in _COUNTS]])
    yield ""
    head = ("fault", "at s", "longest gap ms", "new controller ms", "new leader ms", "full ISR ms")
    keys = ("name", "at_s", "longest_gap_ms", "to_new_controller_ms", "to_new_leader_ms", "to_full_isr_ms")
    before = ["(before)", "", row["gap_before_ms"], "", "", ""]
    yield from _table(head, [before, *([fault[key] for key in keys] for fault in row["faults"])])
    yield ""
    if row["budgets"]:
        budgets = [
            [OPTIONS[each["budget"]], each["limit_ms"], each["longest_ms"], budget_status(each)]
            for each in row["budgets"]
        ]
        yield from _table(("budget", "limit ms", "longest ms", "kept"), budgets)
        yield ""
    partitions = [
        [each["partition"], ", ".join(map(str, row["assignment"][each["partition"]])), each["gap_before_ms"],
         each["gap_after_ms"]]
        for each in row["partitions"]
    ]  # fmt: skip
    yield from _table(("partition", "replicas", "longest gap before ms", "after ms"), partitions)
    yield ""
    yield from (f"- {_text(line)}" for line in why_not(result.verdict))
    yield from (f"- {_text(missing_line(each))}" for each in result.missing)
    yield f"\n![writes per second]({label(result)}.svg)"


def _table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield f"|{'---|' * len(head)}"
    for row in rows:
        yield f"| {' | '.join('' if cell is None else _text(cell) for cell in row)} |"


def _text(value: object) -> str:
    return printable(str(value)).translate(_MARKDOWN)
