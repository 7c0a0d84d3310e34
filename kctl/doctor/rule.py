"""A rule: one thing that can be wrong with a cluster, a broker's file or a client's; why it matters; what mends it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from kctl.doctor.rule_facts import RuleFacts

Release = tuple[int, ...]  # (3, 9), (0, 10, 1)


class Severity(str, Enum):
    """error: data can be lost, or something does not work. warning: it hurts when more fails. info: to know."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"

    @property
    def rank(self) -> int:
        """0 is the worst."""
        return list(Severity).index(self)


class Releases(NamedTuple):
    """The release that something seems to be, lowest and highest that it can be; highest None: or a later one."""

    lowest: Release
    highest: Release | None

    def __str__(self) -> str:
        low = dotted(self.lowest)
        return f"{low}+" if self.highest is None else low if same(self) else f"{low} to {dotted(self.highest)}"


def same(found: Releases) -> bool:
    """Whether it is one release."""
    return found.lowest == found.highest


def dotted(release: Release) -> str:
    """«3.9»"""
    return ".".join(map(str, release))


def parse_releases(text: str | None) -> Releases | None:
    """«3.9», «2.4 to 2.6», «4.3+», «3.9.2», «3.9-IV0»; None for what is none of these. Pure."""
    match = re.fullmatch(r"(\d+(?:\.\d+)+)(?:-IV\d+)?(\+)?(?: to (\d+(?:\.\d+)+))?", (text or "").strip())
    if match is None:
        return None
    low = _release(match[1])
    return Releases(low, None if match[2] else _release(match[3]) if match[3] else low)


def _release(text: str) -> Release:
    return tuple(int(part) for part in text.split("."))


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
