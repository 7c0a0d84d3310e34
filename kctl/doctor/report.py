"""The report of kctl doctor: findings, rule outcomes, and the facts that are missing."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from kctl.base.text import counted
from kctl.doctor.examine import Finding, RuleOutcome, RuleStatus, examine, select_rules
from kctl.doctor.rule import Rule, Severity
from kctl.doctor.rule_facts import GroupFacts, RuleFacts, lacks_facts
from kctl.doctor.rule_table import RULES, SUBJECTS
from kctl.errors import KctlError, NotFound, NotHealthy
from kctl.health.model import Health
from kctl.model import ClusterState

_FILE_PARTS = frozenset({"files", "broker_files", "clients", "producers", "consumers"})


@dataclass(frozen=True, slots=True)
class DoctorReport:
    """The result of kctl doctor for a cluster or for files.

    cluster_id and the counts: None for files, and for facts that were not requested. releases: the releases of brokers
    or files, e.g. "3.9"; empty if unknown. files: the files that were checked. findings: most urgent first. rules: the
    outcome of each selected rule. unknown: why facts are missing. notes: what was not checked.
    """

    cluster_id: str | None
    broker_count: int | None
    brokers_down: int | None
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

    def require_applicable(self) -> None:
        """Raise NotFound if all rules were skipped and nothing is unknown."""
        if all(each.outcome is RuleStatus.SKIPPED for each in self.rules) and not self.unknown:
            raise NotFound(
                "none of the selected rules applies to the input",
                hint="`kctl doctor --rules -o wide` shows the subject and releases of each rule",
            )

    def at_least(self, severity: Severity) -> list[Finding]:
        """Return the findings of this severity or a more urgent one."""
        return [finding for finding in self.findings if finding.severity.rank <= severity.rank]

    def require_healthy(self, severity: Severity) -> None:
        """Raise NotHealthy if a finding has this severity or a more urgent one."""
        failing = self.at_least(severity)
        if not failing:
            return
        more = f", and {counted(len(failing) - 1, 'other finding')}" if len(failing) > 1 else ""
        raise NotHealthy(
            f"{failing[0].rule}: {failing[0].message}{more}",
            hint=failing[0].fix,
            details={"rules_found": list(dict.fromkeys(each.rule for each in failing))},
        )


@dataclass(frozen=True, slots=True)
class RuleRow:
    """A row of the rule table. subject: a key of kctl.doctor.rule_table.SUBJECTS."""

    rule: str
    subject: str
    severity: Severity
    title: str
    versions: str
    why: str
    fix: str
    source: str


def rule_rows(rules: Collection[Rule] = RULES) -> list[RuleRow]:
    """Return a row for each rule."""
    return [
        RuleRow(r.id, subject, r.severity, r.title, str(r.versions), r.why, r.fix, r.source)
        for subject, subject_rules in SUBJECTS.items()
        for r in subject_rules
        if r in rules
    ]


def choose(only: Collection[str], ignored: Collection[str], about: Collection[str] = ()) -> list[Rule]:
    """Return the rules to apply. about: select rules by subject. Raises UsageError for an unknown rule or subject."""
    return select_rules(SUBJECTS, only, ignored, about)


def need_only_files(rules: Collection[Rule]) -> bool:
    """Return True if every rule reads files, so that none can be applied to a cluster."""
    return bool(rules) and all(_FILE_PARTS.intersection(rule.needs) for rule in rules)


def none_applicable(rules: Collection[Rule], facts: RuleFacts) -> bool:
    """Return True if the facts that each rule needs are missing, so that no rule can be applied."""
    return bool(rules) and all(lacks_facts(facts, rule.needs) for rule in rules)


def report_of(rules: Sequence[Rule], facts: RuleFacts, notes: Sequence[str] = ()) -> DoctorReport:
    """Apply the rules and return the report. Pure."""
    examination = examine(rules, facts)
    counts = {severity: sum(each.severity is severity for each in examination.findings) for severity in Severity}
    state = None if isinstance(facts.state, KctlError) else facts.state
    releases = [str(each) for each in facts.releases.values() if each is not None]
    return DoctorReport(
        cluster_id=_cluster_id(facts, state),
        broker_count=facts.broker_count,
        brokers_down=facts.broker_count - len(state.brokers) if facts.broker_count is not None and state else None,
        topic_count=len(state.topics) if state else None,
        group_count=len(facts.groups.groups) if isinstance(facts.groups, GroupFacts) else None,
        releases=tuple(dict.fromkeys(releases)),
        files=tuple(each.path for each in facts.files or ()),
        error_count=counts[Severity.ERROR],
        warning_count=counts[Severity.WARNING],
        info_count=counts[Severity.INFO],
        findings=examination.findings,
        rules=examination.rules,
        unknown=examination.unknown,
        notes=(*notes, *_version_notes(facts)),
    )


def _cluster_id(facts: RuleFacts, state: ClusterState | None) -> str | None:
    if state is not None:
        return state.cluster_id
    return facts.health.cluster_id if isinstance(facts.health, Health) else None


def _version_notes(facts: RuleFacts) -> list[str]:
    unknown = [owner for owner, releases in facts.releases.items() if releases is None]
    if not unknown:
        return []
    if facts.assumed_releases is None:
        return [f"release unknown for {', '.join(unknown)}: rules of all releases are applied"]
    return [f"{', '.join(unknown)}: assuming Kafka {facts.assumed_releases}; set the release with --kafka-version"]
