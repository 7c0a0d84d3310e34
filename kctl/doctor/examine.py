"""Rules over facts: what they found, what could not be told, and which of them had nothing to look at."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from kctl.base.suggestions import did_you_mean
from kctl.doctor.rule import ALL, Rule, Severity
from kctl.doctor.rule_facts import RuleFacts, absent, unread
from kctl.errors import UsageError


class Outcome(str, Enum):
    """ok: looked, and found nothing. found: see the findings. unknown: what it needs could not be read, or not all of
    it, and nothing was found in the rest. skipped: nothing to look at, or it does not hold for this release."""

    OK = "ok"
    FOUND = "found"
    UNKNOWN = "unknown"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Finding:
    """What a rule found, with all that its reader has to know. versions: the releases of Kafka that the rule holds for.

    version_known: False when nobody could tell whether it holds here.
    """

    rule: str
    severity: Severity
    title: str
    message: str
    subjects: tuple[str, ...]
    why: str
    fix: str
    source: str
    versions: str
    version_known: bool


@dataclass(frozen=True, slots=True)
class RuleOutcome:
    """What became of a rule. reasons: what could not be read, also beside findings; why it was skipped."""

    rule: str
    outcome: Outcome
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Examination:
    """findings: the worst first. unknown: what could not be read, each reason once."""

    findings: tuple[Finding, ...]
    rules: tuple[RuleOutcome, ...]
    unknown: tuple[str, ...]

    def at_least(self, severity: Severity) -> list[Finding]:
        """The findings that are as bad, or worse."""
        return [each for each in self.findings if each.severity.rank <= severity.rank]


def chosen_rules(
    subjects: Mapping[str, Sequence[Rule]], only: Collection[str], ignored: Collection[str], about: Collection[str] = ()
) -> list[Rule]:
    """The rules named and those of the subjects named, or all, without those ignored. Raises UsageError for a rule or
    subject that does not exist."""
    for name in about:
        if name not in subjects:
            hint = did_you_mean(name, subjects) or f"there are {', '.join(subjects)}"
            raise UsageError(f"there are no rules about {name!r}", hint=hint)
    rules = [(subject, rule) for subject, own in subjects.items() for rule in own]
    known = {rule.id for _, rule in rules}
    for name in (*only, *ignored):
        if name not in known:
            raise UsageError(
                f"there is no rule {name!r}", hint=did_you_mean(name, known) or "`kctl doctor --rules` lists them"
            )
    every = not only and not about
    return [
        rule for subject, rule in rules if (every or rule.id in only or subject in about) and rule.id not in ignored
    ]


def parts_needed(rules: Iterable[Rule]) -> frozenset[str]:
    """The fields of RuleFacts that these rules look at."""
    return frozenset(part for rule in rules for part in rule.needs)


def examine(rules: Sequence[Rule], facts: RuleFacts) -> Examination:
    """Apply each rule. Pure."""
    findings: list[Finding] = []
    outcomes: list[RuleOutcome] = []
    unknown: dict[str, None] = {}
    for rule in rules:
        skipped = why_skipped(rule, facts)
        if skipped:
            outcomes.append(RuleOutcome(rule.id, Outcome.SKIPPED, (skipped,)))
            continue
        reasons = rule.unread_of(facts) if rule.unread_of else unread(facts, rule.needs)
        unknown.update(dict.fromkeys(reasons))
        own = [] if _nothing_read(rule, facts) else _findings(rule, facts)
        findings += own
        outcome = Outcome.FOUND if own else Outcome.UNKNOWN if reasons else Outcome.OK
        outcomes.append(RuleOutcome(rule.id, outcome, tuple(reasons)))
    findings.sort(key=lambda each: each.severity.rank)
    return Examination(tuple(findings), tuple(outcomes), tuple(unknown))


def _findings(rule: Rule, facts: RuleFacts) -> list[Finding]:
    known = rule.versions == ALL or all(facts.releases.values())
    return [
        Finding(
            rule.id, found.severity or rule.severity, rule.title, found.message, found.subjects, rule.why, rule.fix,
            rule.source, str(rule.versions), known,
        )
        for found in rule.evaluate(facts)
    ]  # fmt: skip


def why_skipped(rule: Rule, facts: RuleFacts) -> str | None:
    """Why a rule has nothing to say here; None when it has. Pure."""
    if absent(facts, rule.needs):
        missing = (name.replace("_", " ") for name in rule.needs if getattr(facts, name) is None)
        return f"not looked at: {', '.join(missing)}"
    found = (each or facts.assumed for each in facts.releases.values())
    told = [each for each in found if each is not None]
    if told and len(told) == len(facts.releases) and not any(rule.versions.holds_for(each) for each in told):
        return f"it holds {rule.versions}, and this is {', '.join(dict.fromkeys(map(str, told)))}"
    return None


def _nothing_read(rule: Rule, facts: RuleFacts) -> bool:
    """Whether a part that the rule cannot do without is an error as a whole."""
    return any(isinstance(getattr(facts, name), Exception) for name in rule.needs)
