"""What `wait: {until: …}` looks at: the steps that gave what it asks for are done again, when they only look."""

from __future__ import annotations

from kctl.playbook.expressions.syntax import parse
from kctl.playbook.model import Playbook, Step
from kctl.playbook.operations import Operations


def reads_before_wait(playbook: Playbook, waiting: Step, known: Operations) -> list[Step]:
    """The steps behind the registers in a wait's condition: the last one before it of each, when it is an operation
    that changes nothing and has no loop. Raises ExpressionError, NotFound for an operation."""
    until = waiting.arguments.get("until")
    if not isinstance(until, str):
        return []
    names = {used.name for used in parse(until).names}
    found: dict[str, Step] = {}
    for step in playbook.all_steps():
        if step is waiting:
            break
        if step.register in names:
            found[str(step.register)] = step
        if step.kind == "set":  # another value of that name
            for name in step.arguments:
                found.pop(str(name), None)
    return [
        step for step in found.values()
        if step.is_operation and step.loop is None and not known.find(step.kind).changes
    ]  # fmt: skip
