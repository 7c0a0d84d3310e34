"""A rule: one thing that can be wrong with a cluster, a broker's file or a client's; why it matters; what mends it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from kctl.doctor.releases import Release, Releases, dotted

if TYPE_CHECKING:
    from kctl.doctor.rule_facts import RuleFacts


class Severity(str, Enum):
    """error: data can be lost, or something does not work. warning: it hurts when more fails. info: to know."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"

    @property
    def rank(self) -> int:
        """0 is the worst."""
        return list(Severity).index(self)


@dataclass(frozen=True, slots=True)
class Versions:
    """The releases of Kafka that a rule holds for: since one, and before another; None is no limit."""

    since: Release | None = None
    before: Release | None = None

    def holds_for(self, found: Releases) -> bool:
        """Whether it holds for any release that it may be."""
        too_old = self.since is not None and found.highest is not None and found.highest < self.since
        too_new = self.before is not None and found.lowest >= self.before
        return not too_old and not too_new

    def __str__(self) -> str:
        if self.since and self.before:
            return f"since {dotted(self.since)}, before {dotted(self.before)}"
        if self.since:
            return f"since {dotted(self.since)}"
        return f"before {dotted(self.before)}" if self.before else "all"


ALL = Versions()


@dataclass(frozen=True, slots=True)
class Found:
    """What a rule found. subjects: what it is about: «broker 1», «orders», «group billing». severity: where it is not
    the rule's own."""

    message: str
    subjects: tuple[str, ...] = ()
    severity: Severity | None = None


Evaluate = Callable[["RuleFacts"], Sequence[Found]]


@dataclass(frozen=True, slots=True)
class Rule:
    """needs: the fields of RuleFacts that it looks at; what of them could not be read makes it unknown.

    source: where the reader finds it: Kafka's documentation, a KIP, a class, a measurement. why, fix: some sentences.
    evaluate: pure; never given what it needs as None. unread_of: what of its needs could not be read, where it knows
    better than kctl.doctor.rule_facts.unread.
    """

    id: str
    severity: Severity
    title: str
    needs: tuple[str, ...]
    why: str
    source: str
    fix: str
    evaluate: Evaluate
    versions: Versions = ALL
    unread_of: Callable[[RuleFacts], Sequence[str]] | None = None


def grouped_by_message(rows: Iterable[tuple[str, str | None]]) -> list[Found]:
    """(subject, what is said of it, None for nothing) → one finding for each different thing that is said. Pure."""
    subjects: dict[str, list[str]] = {}
    for subject, message in rows:
        if message is not None:
            subjects.setdefault(message, []).append(subject)
    return [Found(message, tuple(each)) for message, each in subjects.items()]
