"""The environment of a run: clock, programs, prompts, output. Commands and tests provide it."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from kctl.playbook.operations import Operations

if TYPE_CHECKING:
    from kctl.deploy.process import Completed
    from kctl.playbook.run.report import StepReport


class StepChoice(str, Enum):
    """An answer to the prompt before each step (--step)."""

    DO = "do"
    SKIP = "skip"
    STOP = "stop"


class RunClock(Protocol):
    """A clock. now_s is monotonic; wall is the time of day in UTC."""

    def now_s(self) -> float: ...

    def wall(self) -> datetime: ...

    def sleep(self, seconds: float) -> None: ...


class Programs(Protocol):
    """A function that runs a program: kctl.deploy.process.run."""

    def __call__(
        self,
        argv: Sequence[str],
        *,
        timeout_s: float,
        env: Mapping[str, str] | None,
        cwd: Path | None,
        input: bytes | None,  # noqa: A002 - as process.run names it
    ) -> Completed: ...


class Person(Protocol):
    """The user at the prompt."""

    def confirm(self, question: str) -> None:
        """Ask for confirmation. Raises NotConfirmed."""

    def choose(self, report: StepReport) -> StepChoice:
        """Ask what to do with a step (--step). Raises NotConfirmed without a terminal."""


class Observer(Protocol):
    """An observer of a run. Secrets are already hidden."""

    def began(self, report: StepReport) -> None: ...

    def planned(self, report: StepReport, value: Any) -> None:
        """Show the output of an operation's dry run."""

    def noted(self, report: StepReport, line: str) -> None: ...

    def ended(self, report: StepReport) -> None: ...

    def interrupted(self) -> None:
        """Report that only the final steps will run."""


class RealClock:
    """The system clock."""

    def now_s(self) -> float:
        return time.monotonic()

    def wall(self) -> datetime:
        return datetime.now(timezone.utc)

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


@dataclass(frozen=True)
class RunEnvironment:
    """The environment of a run. program_variables: environment variables of programs, without secrets."""

    definitions: Operations
    clock: RunClock
    programs: Programs
    person: Person
    observer: Observer
    program_variables: Mapping[str, str] = field(default_factory=lambda: without_parameters(os.environ), repr=False)


def without_parameters(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment without parameters, which programs see only if the playbook passes them."""
    from kctl.playbook.parameters import ENVIRONMENT

    return {name: value for name, value in environment.items() if not name.startswith(ENVIRONMENT)}
