"""What a run needs of the world, and whom it tells what happens: given by the command, and by tests."""

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


class Choice(str, Enum):
    """What somebody says who is asked before each step."""

    DO = "do"
    SKIP = "skip"
    STOP = "stop"


class Clock(Protocol):
    """now_s goes on steadily; wall is the time of day, in UTC."""

    def now_s(self) -> float: ...

    def wall(self) -> datetime: ...

    def sleep(self, seconds: float) -> None: ...


class Programs(Protocol):
    """How `run` runs a program: kctl.deploy.process.run."""

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
    """Who sits there."""

    def confirm(self, question: str) -> None:
        """Raises NotConfirmed."""

    def choose(self, report: StepReport) -> Choice:
        """Before a step, with --step. Raises NotConfirmed when nobody is there."""


class Observer(Protocol):
    """Who is told what happens, while it does. Texts have no secrets any more."""

    def began(self, report: StepReport) -> None: ...

    def planned(self, report: StepReport, value: Any) -> None:
        """What an operation's dry run printed."""

    def noted(self, report: StepReport, line: str) -> None: ...

    def ended(self, report: StepReport) -> None: ...

    def interrupted(self) -> None:
        """The final steps are all that is still done."""


class RealClock:
    """Time as it is."""

    def now_s(self) -> float:
        return time.monotonic()

    def wall(self) -> datetime:
        return datetime.now(timezone.utc)

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


@dataclass(frozen=True)
class RunEnvironment:
    """What a run acts on and reports to. program_variables: the environment of programs, without secrets."""

    known: Operations
    clock: Clock
    programs: Programs
    person: Person
    observer: Observer
    program_variables: Mapping[str, str] = field(default_factory=lambda: without_parameters(os.environ), repr=False)


def without_parameters(environment: Mapping[str, str]) -> dict[str, str]:
    """An environment for programs: values of parameters are for the playbook, which may give them on."""
    from kctl.playbook.parameters import ENVIRONMENT

    return {name: value for name, value in environment.items() if not name.startswith(ENVIRONMENT)}
