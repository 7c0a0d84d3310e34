"""Steps that have ended according to the journal: completeness of their values, and the items of their loops."""

from __future__ import annotations

from kctl.playbook.model import Step
from kctl.playbook.run.run_journal import EndedStep, RunJournal


def is_whole(journal: RunJournal, step: Step, ended: EndedStep, key: str) -> bool:
    """Return True if the journal has the whole value of the step, or of each item of its loop."""
    return ended.whole and (step.loop is None or all(each.whole for each in ended_items(journal, key)))


def ended_items(journal: RunJournal, key: str) -> list[EndedStep]:
    """Return the items of a loop that have ended."""
    items: list[EndedStep] = []
    while (ended := journal.done(f"{key}[{len(items)}]")) is not None:
        items.append(ended)
    return items
