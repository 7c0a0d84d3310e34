"""Apply rules to facts: findings, the outcome of each rule, and the facts that are missing."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from kctl.base.suggestions import did_you_mean
from kctl.doctor.rule import ALL, Rule, Severity
from kctl.doctor.rule_facts import RuleFacts, lacks_facts, unread_reasons
from kctl.errors import UsageError


class RuleStatus(str, Enum):
    """The outcome of a rule.

    ok: everything was readable, no problem. found: see the findings. unknown: some needed facts were unreadable, and
    the rest shows no problem. skipped: the facts were not requested, or the rule does not apply to this release.
    """

    OK = "ok"
    FOUND = "found"
    UNKNOWN = "unknown"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Finding:
    """A problem, with its explanation and fix.

    versions: Kafka releases that the rule applies to. version_known: False if the release of a broker or file is
    unknown, so the rule may not apply.
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
    """The outcome of one rule. reasons: which facts were unreadable (also beside findings), or why it was skipped."""

    rule: str
    outcome: RuleStatus
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Examination:
    """The result of all rules. findings: most urgent first. unknown: why facts are missing, each reason once."""

    findings: tuple[Finding, ...]
    rules: tuple[RuleOutcome, ...]
    unknown: tuple[str, ...]


def select_rules(
    subjects: Mapping[str, Sequence[Rule]], only: Collection[str], ignored: Collection[str], about: Collection[str] = ()
) -> list[Rule]:
    """Return the rules in `only` and those of the subjects in `about`, without those in `ignored`.

    Without `only` and `about`: all rules. Raises UsageError for an unknown rule or subject.
    """
    for name in about:
        if name not in subjects:
            hint = did_you_mean(name, subjects) or f"subjects: {', '.join(subjects)}"
            raise UsageError(f"unknown subject {name!r}", hint=hint)
    rules = [(subject, rule) for subject, subject_rules in subjects.items() for rule in subject_rules]
    rule_ids = {rule.id for _, rule in rules}
    for name in (*only, *ignored):
        if name not in rule_ids:
            raise UsageError(
                f"unknown rule {name!r}", hint=did_you_mean(name, rule_ids) or "`kctl doctor --rules` lists the rules"
            )
    every = not only and not about
    return [
        rule for subject, rule in rules if (every or rule.id in only or subject in about) and rule.id not in ignored
    ]


def parts_needed(rules: Iterable[Rule]) -> frozenset[str]:
    """Return the fields of RuleFacts that these rules read."""
    return frozenset(part for rule in rules for part in rule.needs)


def examine(rules: Sequence[Rule], facts: RuleFacts) -> Examination:
    """Apply each rule. Pure."""
    findings: list[Finding] = []
    outcomes: list[RuleOutcome] = []
    unknown: dict[str, None] = {}
    for rule in rules:
        skipped = skip_reason(rule, facts)
        if skipped:
            outcomes.append(RuleOutcome(rule.id, RuleStatus.SKIPPED, (skipped,)))
            continue
        reasons = rule.unread_reasons(facts) if rule.unread_reasons else unread_reasons(facts, rule.needs)
        unknown.update(dict.fromkeys(reasons))
        rule_findings = [] if _is_unreadable(rule, facts) else _findings(rule, facts)
        findings += rule_findings
        status = RuleStatus.FOUND if rule_findings else RuleStatus.UNKNOWN if reasons else RuleStatus.OK
        outcomes.append(RuleOutcome(rule.id, status, tuple(reasons)))
    findings.sort(key=lambda finding: finding.severity.rank)
    return Examination(tuple(findings), tuple(outcomes), tuple(unknown))


def _findings(rule: Rule, facts: RuleFacts) -> list[Finding]:
    version_known = rule.versions == ALL or all(facts.releases.values())
    return [
        Finding(
            rule.id, issue.severity or rule.severity, rule.title, issue.message, issue.subjects, rule.why, rule.fix,
            rule.source, str(rule.versions), version_known,
        )
        for issue in rule.evaluate(facts)
    ]  # fmt: skip


def skip_reason(rule: Rule, facts: RuleFacts) -> str | None:
    """Return why a rule cannot be applied to these facts; None if it can. Pure."""
    if lacks_facts(facts, rule.needs):
        missing = (name.replace("_", " ") for name in rule.needs if getattr(facts, name) is None)
        return f"not checked: {', '.join(missing)}"
    possible = [releases or facts.assumed_releases for releases in facts.releases.values()]
    releases = [each for each in possible if each is not None]
    if releases and len(releases) == len(possible) and not any(rule.versions.applies_to(each) for each in releases):
        return f"applies to releases {rule.versions}; this is {', '.join(dict.fromkeys(map(str, releases)))}"
    return None


def _is_unreadable(rule: Rule, facts: RuleFacts) -> bool:
    """Return True if a field that the rule needs could not be read at all."""
    return any(isinstance(getattr(facts, name), Exception) for name in rule.needs)
