"""What the doctor says: findings, what each rule came to, and what could not be told."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from kctl.base.text import counted
from kctl.doctor.examine import Finding, RuleOutcome, chosen_rules, examine, parts_needed
from kctl.doctor.rule import Rule, Severity
from kctl.doctor.rule_facts import GroupFacts, RuleFacts, absent
from kctl.doctor.rule_table import RULES, SUBJECTS
from kctl.errors import KctlError, NotHealthy
from kctl.health.model import Health
from kctl.model import ClusterState

_OF_FILES = frozenset({"files", "broker_files", "clients", "producers", "consumers"})


@dataclass(frozen=True, slots=True)
class DoctorReport:
    """cluster_id and the counts: None of files, and of what was not looked at. files: those that were read.

    releases: what brokers (or the files' readers) seem to be, «3.9»; empty when nobody could tell. findings: the worst
    first. rules: what became of each rule that was chosen. unknown: what could not be read. notes: what was not asked.
    """

    cluster_id: str | None
    broker_count: int | None
    topic_count: int | None
    group_count: int | None
    releases: tuple[str, ...]
    files: tuple[str, ...]
    error_count: int
    warning_count: int
    info_count: int
    findings: tuple[Finding, ...]
    rules: tuple[RuleOutcome, ...]
    unknown: tuple[str, ...]
    notes: tuple[str, ...]

    def at_least(self, severity: Severity) -> list[Finding]:
        """The findings that are as bad, or worse."""
        return [each for each in self.findings if each.severity.rank <= severity.rank]

    def require_healthy(self, severity: Severity) -> None:
        """Raise NotHealthy if a finding has this severity or a worse one."""
        bad = self.at_least(severity)
        if not bad:
            return
        more = f", and {counted(len(bad) - 1, 'other finding')}" if len(bad) > 1 else ""
        raise NotHealthy(
            f"{bad[0].rule}: {bad[0].message}{more}",
            hint=bad[0].fix,
            details={"rules_found": list(dict.fromkeys(each.rule for each in bad))},
        )


@dataclass(frozen=True, slots=True)
class RuleRow:
    """A rule as it stands in the table. subject: what it is about; see kctl.doctor.rule_table."""

    rule: str
    subject: str
    severity: Severity
    title: str
    versions: str
    why: str
    fix: str
    source: str


def rule_rows(rules: Collection[Rule] = RULES) -> list[RuleRow]:
    """The table of rules."""
    return [
        RuleRow(r.id, subject, r.severity, r.title, str(r.versions), r.why, r.fix, r.source)
        for subject, own in SUBJECTS.items()
        for r in own
        if r in rules
    ]


def choose(only: Collection[str], ignored: Collection[str], about: Collection[str] = ()) -> list[Rule]:
    """The rules to apply. about: subjects. Raises UsageError for one that does not exist."""
    return chosen_rules(SUBJECTS, only, ignored, about)


def only_of_files(rules: Collection[Rule]) -> bool:
    """Whether a cluster has nothing that any of them looks at."""
    return bool(rules) and all(_OF_FILES.intersection(rule.needs) for rule in rules)


def nothing_for(rules: Collection[Rule], facts: RuleFacts) -> bool:
    """Whether none of them has anything to look at."""
    return bool(rules) and all(absent(facts, rule.needs) for rule in rules)


def parts_of(rules: Collection[Rule]) -> frozenset[str]:
    """What has to be read for them: fields of RuleFacts."""
    return parts_needed(rules)


def report_of(rules: Sequence[Rule], facts: RuleFacts, notes: Sequence[str] = ()) -> DoctorReport:
    """Judge. Pure."""
    found = examine(rules, facts)
    counts = {severity: sum(each.severity is severity for each in found.findings) for severity in Severity}
    state = None if isinstance(facts.state, KctlError) else facts.state
    told = [str(each) for each in facts.releases.values() if each is not None]
    return DoctorReport(
        cluster_id=_cluster_id(facts, state),
        broker_count=facts.broker_count,
        topic_count=len(state.topics) if state else None,
        group_count=len(facts.groups.groups) if isinstance(facts.groups, GroupFacts) else None,
        releases=tuple(dict.fromkeys(told)),
        files=tuple(each.path for each in facts.files or ()),
        error_count=counts[Severity.ERROR],
        warning_count=counts[Severity.WARNING],
        info_count=counts[Severity.INFO],
        findings=found.findings,
        rules=found.rules,
        unknown=found.unknown,
        notes=(*notes, *_version_notes(facts)),
    )


def _cluster_id(facts: RuleFacts, state: ClusterState | None) -> str | None:
    if state is not None:
        return state.cluster_id
    return facts.health.cluster_id if isinstance(facts.health, Health) else None


def _version_notes(facts: RuleFacts) -> list[str]:
    silent = [where for where, found in facts.releases.items() if found is None]
    if not silent:
        return []
    if facts.assumed is None:
        return [f"which release it is cannot be told of {', '.join(silent)}: rules of all releases are applied"]
    return [f"{', '.join(silent)}: taken to be of Kafka {facts.assumed}; --kafka-version says which it is"]
