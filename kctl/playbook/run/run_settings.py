"""The settings of a run, and its outcome."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kctl.playbook.run.report import StepReport
from kctl.playbook.run.selection import Selection
from kctl.playbook.run.states import Failure


@dataclass(frozen=True)
class RunSettings:
    """The settings of a run.

    check: dry run. diff: show plans before changes. ask: confirm each step. confirmed: context or address → the name
    that confirms changes to its protected cluster.
    """

    check: bool = False
    diff: bool = False
    ask: bool = False
    selection: Selection = field(default_factory=Selection)
    confirmed: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """The end of a run. failure: the first failure that was not ignored."""

    exit_code: int
    failure: Failure | None
    interrupted: bool
    steps: list[StepReport]
