"""The reads that `wait: {until: …}` repeats: read-only steps whose registers its condition uses."""

from __future__ import annotations

from kctl.playbook.expressions.syntax import parse
from kctl.playbook.model import Playbook, Step
from kctl.playbook.operations import Operations


def reads_before_wait(playbook: Playbook, waiting: Step, definitions: Operations) -> list[Step]:
    """Return the read-only steps whose registers are in a wait's condition.

    For each register, only the last step that sets it before the wait counts, and only if that step is a read-only
    operation without a loop. Raises ExpressionError, NotFound for an operation.
    """
    until = waiting.arguments.get("until")
    if not isinstance(until, str):
        return []
    names = {used.name for used in parse(until).names}
    reads: dict[str, Step] = {}
    for step in playbook.all_steps():
        if step is waiting:
            break
        if step.register in names:
            reads[str(step.register)] = step
        if step.kind == "set":  # replaces the register
            for name in step.arguments:
                reads.pop(str(name), None)
    return [
        step for step in reads.values()
        if step.is_operation and step.loop is None and not definitions.find(step.kind).changes
    ]  # fmt: skip
