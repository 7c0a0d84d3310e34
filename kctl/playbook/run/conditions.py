"""The `when` of a step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kctl.playbook.expressions.evaluation import condition
from kctl.playbook.expressions.syntax import parse
from kctl.playbook.model import Step


def reason_of_when(step: Step, variables: Mapping[str, Any]) -> str | None:
    """Return why the step's `when` skips it, None if it does not."""
    if step.when is None or condition(step.when, variables):
        return None
    return f"when: {' '.join(str(step.when).split())}"


def is_when_per_item(step: Step) -> bool:
    """Return True if `when` must be evaluated for each item of the loop."""
    if step.loop is None or not isinstance(step.when, str):
        return False
    return any(used.name in {"item", "index"} for used in parse(step.when).names)
