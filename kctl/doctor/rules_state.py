"""Rules about the cluster's state at this moment: the checks of kctl.health.assess, as rules.

Its check «topics» finds nothing: what it cannot see makes the rules about partitions unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kctl.doctor.rule import Evaluate, Found, Rule, Severity, Versions
from kctl.doctor.rule_facts import RuleFacts, unread
from kctl.health.model import Health, Status

# Partitions of topics that may not be described are not judged: it is not known that all is well.
_OF_PARTITIONS = frozenset(
    {
        "offline_partitions", "under_min_isr_partitions", "under_replicated_partitions", "preferred_leaders",
        "replicas",
    }
)  # fmt: skip
_SEVERITIES = {Status.PROBLEM: Severity.ERROR, Status.WARNING: Severity.WARNING}


def check_rule_id(check: str) -> str:
    """The id of the rule that a check is: «offline-partitions»."""
    return check.replace("_", "-")


def _of_check(name: str) -> Evaluate:
    def evaluate(facts: RuleFacts) -> list[Found]:
        assert isinstance(facts.health, Health)
        return [
            Found(check.summary, check.subjects, _SEVERITIES[check.status])
            for check in facts.health.checks
            if check.check == name and check.status in _SEVERITIES
        ]

    return evaluate


def _reasons(name: str) -> Callable[[RuleFacts], Sequence[str]]:
    def unread_of(facts: RuleFacts) -> Sequence[str]:
        if not isinstance(facts.health, Health):
            return unread(facts, ("health",))
        checks = {name, "topics"} if name in _OF_PARTITIONS else {name}
        return [reason for check in facts.health.checks if check.check in checks for reason in check.reasons]

    return unread_of


def _rule(check: str, severity: Severity, title: str, why: str, fix: str, versions: Versions | None = None) -> Rule:
    return Rule(
        check_rule_id(check), severity, title, ("health",), why, f"the check «{check}» of `kctl cluster health`", fix,
        _of_check(check), versions or Versions(), _reasons(check),
    )  # fmt: skip


RULES = (
    _rule(
        "brokers", Severity.ERROR, "Brokers are down or silent",
        "What a broker that is down holds has one copy less, and clients of a silent one wait for its answers.",
        "`kctl broker list`, then start it again or look into its log.",
    ),
    _rule(
        "controller", Severity.ERROR, "There is not exactly one controller",
        "Without a controller no leader is elected and no topic made; a quorum with silent voters is near that.",
        "`kctl controller`, then start the controllers, or look at ZooKeeper.",
    ),
    _rule(
        "offline_partitions", Severity.ERROR, "Partitions have no leader",
        "Nobody can read or write them until a replica that is in sync is back.",
        "Start the brokers that have them: `kctl topic list --unavailable`.",
    ),
    _rule(
        "under_min_isr_partitions", Severity.ERROR, "Partitions have fewer in sync than min.insync.replicas",
        "Writes with acks=all are refused (NOT_ENOUGH_REPLICAS). With acks=1 they are taken and, since 3.7, not given "
        "to readers until enough are in sync again: the high watermark stands still, and lag shows 0.",
        "Bring the missing replicas back: `kctl cluster diagnose` says what they have in common.",
    ),
    _rule(
        "under_replicated_partitions", Severity.ERROR, "Replicas are not in sync",
        "A replica that is behind cannot take over; the next failure may cost writes, or data.",
        "`kctl cluster diagnose` says what they have in common.",
    ),
    _rule(
        "log_dirs", Severity.ERROR, "Log dirs are offline",
        "A broker gives up on a log dir after an I/O error: all replicas in it are lost to the cluster until then.",
        "Look at the disk; after it was replaced, start the broker again: it copies everything back.",
    ),
    _rule(
        "disks", Severity.ERROR, "Disks are nearly full",
        "A broker whose disk is full stops, or takes the log dir offline.",
        "`kctl history retention` shows what fills them; shorten a retention, move replicas, or add disks.",
        Versions(since=(3, 3)),
    ),
    _rule(
        "preferred_leaders", Severity.WARNING, "Leaders are not where they should be",
        "After a restart leaders stay on other brokers until somebody elects the preferred ones: load is uneven.",
        "`kctl leader elect --preferred`.",
    ),
    _rule(
        "replicas", Severity.WARNING, "Replicas are spread unevenly",
        "Brokers with more replicas than the rest are the first whose disk and network are full.",
        "`kctl topic reassign plan --balance replicas`.",
    ),
)  # fmt: skip
