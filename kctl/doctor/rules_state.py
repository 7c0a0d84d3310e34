"""Rules about the current state of the cluster: the checks of kctl.health.assess as rules.

The check "topics" is not a rule. Topics that it cannot see make the outcome of the partition rules unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kctl.doctor.rule import Evaluate, Issue, Rule, Severity, Versions
from kctl.doctor.rule_facts import RuleFacts, unread_reasons
from kctl.health.model import CheckStatus, Health

# These checks are incomplete if the user may not describe some topics.
_PARTITION_CHECKS = frozenset(
    {
        "offline_partitions", "under_min_isr_partitions", "under_replicated_partitions", "preferred_leaders",
        "replicas",
    }
)  # fmt: skip
_SEVERITIES = {CheckStatus.PROBLEM: Severity.ERROR, CheckStatus.WARNING: Severity.WARNING}


def check_rule_id(check: str) -> str:
    """Return the rule id of a health check, e.g. "offline-partitions"."""
    return check.replace("_", "-")


def _evaluate_check(name: str) -> Evaluate:
    def evaluate(facts: RuleFacts) -> list[Issue]:
        assert isinstance(facts.health, Health)
        return [
            Issue(check.summary, check.subjects, _SEVERITIES[check.status])
            for check in facts.health.checks
            if check.check == name and check.status in _SEVERITIES
        ]

    return evaluate


def _check_reasons(name: str) -> Callable[[RuleFacts], Sequence[str]]:
    def reasons(facts: RuleFacts) -> Sequence[str]:
        if not isinstance(facts.health, Health):
            return unread_reasons(facts, ("health",))
        checks = {name, "topics"} if name in _PARTITION_CHECKS else {name}
        return [reason for check in facts.health.checks if check.check in checks for reason in check.reasons]

    return reasons


def _rule(check: str, severity: Severity, title: str, why: str, fix: str, versions: Versions | None = None) -> Rule:
    return Rule(
        check_rule_id(check), severity, title, ("health",), why, f"`kctl cluster health`, check {check}", fix,
        _evaluate_check(check), versions or Versions(), _check_reasons(check),
    )  # fmt: skip


RULES = (
    _rule(
        "brokers", Severity.ERROR, "Brokers are down or do not respond",
        "Every replica on a broker that is down is missing. Clients of a broker that does not respond run into "
        "timeouts.",
        "Run `kctl broker list`, then start the broker or check its log.",
    ),
    _rule(
        "controller", Severity.ERROR, "There is not exactly one controller",
        "Without a controller, no leader is elected and no topic is created. A quorum with unreachable voters is "
        "close to that state.",
        "Run `kctl controller`, then start the controllers, or check ZooKeeper (`kctl zk stat`). If controllers run "
        "without a leader, run `kctl quorum recover` on their hosts.",
    ),
    _rule(
        "offline_partitions", Severity.ERROR, "Partitions have no leader",
        "Clients cannot read or write these partitions until an in-sync replica is back.",
        "Start the brokers that have the replicas: `kctl topic describe --unavailable`. If the column ELR is shown "
        "(Kafka 4, KIP-966), start those brokers first: they have every committed record.",
    ),
    _rule(
        "under_min_isr_partitions", Severity.ERROR, "Partitions have fewer in-sync replicas than min.insync.replicas",
        "Brokers reject writes with acks=all (NOT_ENOUGH_REPLICAS). Writes with acks=1 are accepted, but since 3.7 "
        "consumers do not see the records until enough replicas are in sync: the high watermark does not advance, and "
        "lag shows 0.",
        "Bring the missing replicas back: `kctl cluster diagnose` reports what they have in common.",
    ),
    _rule(
        "under_replicated_partitions", Severity.ERROR, "Replicas are out of sync",
        "An out-of-sync replica cannot take over. The next failure can stop writes or lose data.",
        "Run `kctl cluster diagnose` to see what the replicas have in common.",
    ),
    _rule(
        "log_dirs", Severity.ERROR, "Log dirs are offline",
        "A broker takes a log dir offline after an I/O error. All replicas in it are missing until the disk is "
        "repaired.",
        "Check the disk. After it is replaced, restart the broker: it copies all replicas back.",
    ),
    _rule(
        "disks", Severity.ERROR, "Disks are nearly full",
        "A broker whose disk is full stops, or takes the log dir offline.",
        "Run `kctl history retention` to see what uses the space. Shorten a retention, move replicas, or add disks.",
        Versions(since=(3, 3)),
    ),
    _rule(
        "preferred_leaders", Severity.WARNING, "Leaders are not on their preferred brokers",
        "After a restart, leaders stay on other brokers until the preferred leaders are elected. The load is uneven.",
        "Run `kctl leader elect --preferred`.",
    ),
    _rule(
        "replicas", Severity.WARNING, "Replicas are spread unevenly",
        "The disks and network of brokers with more replicas fill up first.",
        "Run `kctl topic reassign plan --balance replicas`.",
    ),
)  # fmt: skip
