"""Which steps must not be done a second time unasked, when nobody knows whether they were done.

Operations describe the state that shall be, or take their own journals up; so they are harmless twice. These are not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from kctl.playbook.model import Step

Arguments = Mapping[str, Any]


def _always(_arguments: Arguments) -> bool:
    return True


def _given(name: str) -> Callable[[Arguments], bool]:
    return lambda arguments: arguments.get(name) is not None


# Operation → whether with these arguments it does something else the second time.
NOT_TWICE: dict[str, Callable[[Arguments], bool]] = {
    "produce": _always,  # the records would be there twice
    "consume": _given("group"),  # goes on where the first one committed
    "group.reset_offsets": _given("shift_by"),  # would go further
    "cluster.kill": _always,  # the leader, or the controller, is another one by now
    "cluster.pause": _always,
}


def repeatable(step: Step, arguments: Arguments) -> bool:
    """Whether the step may be done again when nobody knows whether it was done."""
    if step.dry_run:
        return True
    if step.kind == "run":
        return arguments.get("repeatable") is True
    rule = NOT_TWICE.get(step.kind.replace("-", "_"))
    return rule is None or not rule(arguments)
