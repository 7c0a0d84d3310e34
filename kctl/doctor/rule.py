"""A rule of kctl doctor: one thing that can be wrong, why it matters, and how to fix it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from kctl.doctor.releases import Release, Releases, format_release

if TYPE_CHECKING:
    from kctl.doctor.rule_facts import RuleFacts


class Severity(str, Enum):
    """The urgency of a finding.

    error: data can be lost, or something does not work. warning: the next failure can cause an outage or data loss.
    info: no action is needed.
    """

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"

    @property
    def rank(self) -> int:
        """Return the position in the order of urgency; 0 is the most urgent."""
        return list(Severity).index(self)


@dataclass(frozen=True, slots=True)
class Versions:
    """The Kafka releases that a rule applies to: from `since` up to, but not including, `before`. None: no limit."""

    since: Release | None = None
    before: Release | None = None

    def applies_to(self, releases: Releases) -> bool:
        """Return True if the rule applies to at least one of the possible releases."""
        too_old = self.since is not None and releases.highest is not None and releases.highest < self.since
        too_new = self.before is not None and releases.lowest >= self.before
        return not too_old and not too_new

    def __str__(self) -> str:
        if self.since and self.before:
            return f"since {format_release(self.since)}, before {format_release(self.before)}"
        if self.since:
            return f"since {format_release(self.since)}"
        return f"before {format_release(self.before)}" if self.before else "all"


ALL = Versions()


@dataclass(frozen=True, slots=True)
class Issue:
    """One problem that a rule detected.

    subjects: the objects with the problem, e.g. "broker 1", "orders", "group billing". severity: overrides the severity
    of the rule; None: the rule's own.
    """

    message: str
    subjects: tuple[str, ...] = ()
    severity: Severity | None = None


Evaluate = Callable[["RuleFacts"], Sequence[Issue]]


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule, with everything that a finding shows.

    needs: fields of RuleFacts that the rule reads; if a part of them is unreadable, the outcome is "unknown". source:
    where the rule comes from, e.g. Kafka's documentation, a KIP, a class, a measurement. why, fix: one or more
    sentences. evaluate: pure; called only if no field in `needs` is None. unread_reasons: overrides
    kctl.doctor.rule_facts.unread_reasons for rules that know more precisely what is missing.
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
    unread_reasons: Callable[[RuleFacts], Sequence[str]] | None = None


def grouped_by_message(rows: Iterable[tuple[str, str | None]]) -> list[Issue]:
    """Return one issue per distinct message, with all its subjects. Pure.

    rows: (subject, message); None as message: no problem.
    """
    subjects: dict[str, list[str]] = {}
    for subject, message in rows:
        if message is not None:
            subjects.setdefault(message, []).append(subject)
    return [Issue(message, tuple(names)) for message, names in subjects.items()]
