"""Runs of shipped playbooks for their tests."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from in_process import InProcess
from kctl_testing import Result


@dataclass(frozen=True)
class BookRun:
    """The outcome of a run, from its report."""

    result: Result
    report: Mapping[str, Any]

    @property
    def code(self) -> int:
        return self.result.code

    @property
    def status(self) -> str:
        return str(self.report["status"])

    def step(self, name: str) -> Mapping[str, Any]:
        """Return a step of the run."""
        return next(dict(each) for each in self.report["steps"] if each["step"] == name)

    def told(self, name: str) -> str:
        return str(self.step(name)["message"])

    def states(self) -> dict[str, str]:
        return {each["step"]: each["state"] for each in self.report["steps"]}

    def __str__(self) -> str:
        return str(self.result)


class Books:
    """kctl with its own HOME, where the cluster for playbooks is the current context."""

    NAME = "books"

    def __init__(self, home: Path, shared: Mapping[str, str]) -> None:
        self.kctl = InProcess(home, shared)

    def run(self, name: str, *options: str, **parameters: str) -> BookRun:
        """Run a playbook, and return its report as printed by `-o json`."""
        given = [word for key, value in parameters.items() for word in ("-p", f"{key}={value}")]
        result = self.kctl("playbook", "run", name, *given, *options, "-o", "json")
        assert result.out, str(result)
        return BookRun(result, json.loads(result.out))
