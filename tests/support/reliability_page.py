"""The measured tables of docs/reliability.md, from stored runs in tests/bench/validations.

`python tests/support/reliability_page.py` regenerates them. `… take NAME REPORT_FOLDER` stores the report of a
`kctl validate … --report`, with the machine and its load, and then regenerates them: NAME is `all` or `matrix`.
"""

from __future__ import annotations

import io
import json
import re
import sys
from contextlib import redirect_stdout
from datetime import datetime, timezone
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

from kctl.commands.terminal import output
from kctl.commands.validate.tables import matrix_tables, result_tables

ROOT = Path(__file__).resolve().parents[2]
TARGET = ROOT / "docs" / "reliability.md"
KEPT = ROOT / "tests" / "bench" / "validations"
# Keys that the tables do not need, or that concern only that machine.
_LEFT_OUT = frozenset({"records", "missing", "writes_per_second", "evidence", "run", "topic", "cluster_id"})


def take(name: str, report: Path) -> None:
    """Store a run."""
    sys.path.insert(0, str(ROOT / "tests" / "bench"))
    from measure import machine

    body = json.loads((report / "report.json").read_text())
    kept = {"at": datetime.now(timezone.utc).isoformat(timespec="seconds"), "machine": machine(), **_shorter(body)}
    (KEPT / f"{name}.json").write_text(json.dumps(kept, indent=1) + "\n")


def _shorter(value: Any) -> Any:
    if isinstance(value, list):
        return [_shorter(each) for each in value]
    if isinstance(value, dict):
        return {key: _shorter(each) for key, each in value.items() if key not in _LEFT_OUT}
    return value


def page(text: str) -> str:
    """Return the page with each part between markers regenerated."""
    for name, make in (("all", _all), ("matrix", _matrix)):
        mark = rf"(<!-- measured: {name} -->\n).*?(<!-- end -->\n)"
        measured = make(json.loads((KEPT / f"{name}.json").read_text()))
        parts = re.split(mark, text, maxsplit=1, flags=re.DOTALL)
        assert len(parts) == 4, f"the page has no part of {name}"
        text = parts[0] + parts[1] + measured + parts[2] + parts[3]
    return text


def _all(body: dict[str, Any]) -> str:
    return _text(result_tables(body["scenarios"])) + _taken(body, sum(row["duration_ms"] for row in body["scenarios"]))


def _matrix(body: dict[str, Any]) -> str:
    matrix = SimpleNamespace(rows=body["matrix"])
    return _text(matrix_tables(matrix)) + _taken(body, body["setups"][0]["duration_ms"])  # type: ignore[arg-type]


def _text(tables: list[output.Table]) -> str:
    shown = io.StringIO()
    with redirect_stdout(shown), mock.patch.dict("os.environ", {"COLUMNS": "140"}):
        output.emit(None, tables, None)
    return f"```text\n{shown.getvalue()}```\n\n"


def _taken(body: dict[str, Any], duration_ms: int) -> str:
    found = body["machine"]
    memory = round(found["memory_bytes"] / 1e9)
    return (
        f"Taken on {body['at'][:10]} in {duration_ms / 1000:.0f} s, three brokers of Kafka 3.9.2 with ZooKeeper and\n"
        f"`zookeeper.session.timeout.ms=6000` on one machine: {found['cores']} × {found['cpu']}, {memory} GB, Linux "
        f"{found['kernel']}, load {found['load_1m']:.1f}.\n"
    )


if __name__ == "__main__":
    if sys.argv[1:2] == ["take"]:
        take(sys.argv[2], Path(sys.argv[3]))
    TARGET.write_text(page(TARGET.read_text(encoding="utf-8")), encoding="utf-8")
