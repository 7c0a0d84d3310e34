"""The faults of a run, stored in its folder, so that the run can be evaluated even if kctl was killed."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path

from kctl.errors import InvalidFile, OperationFailed
from kctl.validate.report.gaps import Fault

_NAME = "faults.jsonl"


def note_fault(folder: Path, fault: Fault) -> None:
    """Record a fault, before it is injected. Raises OperationFailed."""
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
    """Return the recorded faults in order. Skip a torn last line: its fault was not injected. Raises InvalidFile."""
    path = folder / _NAME
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return []
    try:
        rows = [json.loads(line) for line in data[: data.rfind(b"\n") + 1].splitlines()]
        return [Fault(str(row["name"]), int(row["at_ns"]), tuple(map(int, row["brokers"]))) for row in rows]
    except (ValueError, KeyError, TypeError):
        raise InvalidFile(f"{path} is not a fault log of kctl") from None
