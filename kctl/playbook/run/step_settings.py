"""The settings of a step after evaluating its expressions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kctl.base.units import parse_duration_ms
from kctl.playbook.expressions.evaluation import render
from kctl.playbook.expressions.limits import ExpressionError
from kctl.playbook.model import Step
from kctl.playbook.read_steps import MAX_RETRIES


@dataclass(frozen=True, slots=True)
class StepSettings:
    """The settings of a step. timeout: for an operation's --timeout; timeout_s: the same in seconds."""

    retries: int
    delay_s: float
    timeout: str | None
    timeout_s: float | None
    context: str | None
    stdin: bytes


def settings_of(step: Step, variables: Mapping[str, Any]) -> StepSettings:
    """Evaluate the settings of a step. Raises ExpressionError, and UsageError for invalid durations."""
    timeout = _text(step, "timeout", variables)
    stdin = _text(step, "stdin", variables) or ""
    return StepSettings(
        retries=_retries(step, variables),
        delay_s=_delay_s(step, variables),
        timeout=timeout,
        timeout_s=None if timeout is None else parse_duration_ms(timeout) / 1000,
        context=_text(step, "context", variables),
        stdin=stdin.encode("utf-8", "surrogateescape"),
    )


def items_of(step: Step, variables: Mapping[str, Any]) -> list[Any] | None:
    """Return the items of a step's loop; None without a loop. Raises ExpressionError."""
    if step.loop is None:
        return None
    items = render(step.loop, variables)
    if not isinstance(items, list):
        raise ExpressionError(f"the loop of {step.id} is not a list", hint="for a mapping, use `| items`")
    return items


def _text(step: Step, key: str, variables: Mapping[str, Any]) -> str | None:
    value = render(getattr(step, key), variables)
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ExpressionError(f"{key} of {step.id} must be a string")
    return str(value)


def _retries(step: Step, variables: Mapping[str, Any]) -> int:
    value = render(step.retries, variables)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MAX_RETRIES:
        raise ExpressionError(f"retries of {step.id} must be 0 to {MAX_RETRIES:,}, not {value!r}")
    return value


def _delay_s(step: Step, variables: Mapping[str, Any]) -> float:
    value = render(step.delay_s, variables)
    return value if isinstance(value, float) else parse_duration_ms(str(value)) / 1000
