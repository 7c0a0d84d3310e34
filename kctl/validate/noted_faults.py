"""The faults of a run in its folder, so that it can be judged when the kctl that did them is gone."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path

from kctl.errors import InvalidFile, OperationFailed
from kctl.validate.report.gaps import Fault

_NAME = "faults.jsonl"


def note_fault(folder: Path, fault: Fault) -> None:
    """Before it is done. Raises OperationFailed."""
    line = json.dumps(asdict(fault)).encode() + b"\n"
    try:
        fd = os.open(folder / _NAME, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            os.write(fd, line)
        finally:
            os.close(fd)
    except OSError as exc:
        raise OperationFailed(f"cannot write {folder / _NAME}: {exc.strerror}") from None


def read_faults(folder: Path) -> list[Fault]:
    """In their order; none when none was noted. A torn last line is one that was not done. Raises InvalidFile."""
    path = folder / _NAME
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return []
    try:
        rows = [json.loads(line) for line in data[: data.rfind(b"\n") + 1].splitlines()]
        return [Fault(str(row["name"]), int(row["at_ns"]), tuple(map(int, row["brokers"]))) for row in rows]
    except (ValueError, KeyError, TypeError):
        raise InvalidFile(f"{path} is not what kctl notes of faults") from None
