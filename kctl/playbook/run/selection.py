"""Select the steps to run: --from, --limit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kctl.base.suggestions import did_you_mean
from kctl.errors import UsageError
from kctl.playbook.model import Playbook, Step


@dataclass(frozen=True, slots=True)
class Selection:
    """The selected steps. first: the step to start with. only: the steps to run. Final steps always run."""

    first: str | None = None
    only: tuple[str, ...] = ()

    def reason_against(self, playbook: Playbook, step: Step) -> str | None:
        """Return why a step is skipped, or None."""
        if self.only and step.id not in self.only:
            return "not in --limit"
        if self.first is not None:
            ids = [each.id for each in playbook.steps]
            if ids.index(step.id) < ids.index(self.first):
                return f"before --from {self.first}"
        return None


def selection(playbook: Playbook, first: str | None, only: Sequence[str]) -> Selection:
    """Return the selection. Raises UsageError for unknown steps."""
    ids = [each.id for each in playbook.steps]
    for step_id in [*([first] if first is not None else []), *only]:
        if step_id not in ids:
            hint = did_you_mean(step_id, ids) or f"see `kctl playbook show {playbook.name}`"
            raise UsageError(f"{playbook.name} has no step {step_id}", hint=hint)
    return Selection(first, tuple(only))
