"""Steps that must not be repeated silently if it is unknown whether they ran.

Most operations describe a target state or resume from their own journals, so repeating them is safe. The operations in
this module are exceptions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from kctl.playbook.model import Step

Arguments = Mapping[str, Any]


def _always(_arguments: Arguments) -> bool:
    return True


def _has(name: str) -> Callable[[Arguments], bool]:
    return lambda arguments: arguments.get(name) is not None


# Operation → function that returns True if a repetition with these arguments has another effect.
UNSAFE_REPEATS: dict[str, Callable[[Arguments], bool]] = {
    "produce": _always,  # produces duplicates
    "consume": _has("group"),  # continues at the committed offsets
    "group.reset_offsets": _has("shift_by"),  # shifts again
    "cluster.kill": _always,  # the leader or controller may have changed
    "cluster.pause": _always,
}


def repeatable(step: Step, arguments: Arguments) -> bool:
    """Return True if the step may be repeated when it is unknown whether it ran."""
    if step.dry_run:
        return True
    if step.kind == "run":
        return arguments.get("repeatable") is True
    rule = UNSAFE_REPEATS.get(step.kind.replace("-", "_"))
    return rule is None or not rule(arguments)
