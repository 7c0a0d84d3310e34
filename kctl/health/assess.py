"""All health rules, applied to the facts of one pass."""

from __future__ import annotations

from kctl.cluster.topics import hidden
from kctl.errors import KctlError, NotAuthorized
from kctl.health.brokers import check_brokers, check_controller, check_leaders, check_replicas, missing_brokers
from kctl.health.disks import check_disks, check_log_dirs
from kctl.health.eligible import eligible_rows
from kctl.health.hidden import check_topics
from kctl.health.model import CheckStatus, Facts, Health, HealthLimits
from kctl.health.partitions import check_offline, check_under_min_isr, check_under_replicated, partitions_of


def assess(facts: Facts, limits: HealthLimits | None = None) -> Health:
    """Return the result of every check. Pure."""
    limits = limits or HealthLimits()
    checks = (
        check_brokers(facts, limits),
        check_controller(facts),
        check_topics(facts),
        check_offline(facts),
        check_under_min_isr(facts),
        check_under_replicated(facts),
        check_log_dirs(facts),
        check_disks(facts, limits),
        check_leaders(facts, limits),
        check_replicas(facts, limits),
    )
    return Health(
        healthy=all(check.status in {CheckStatus.OK, CheckStatus.WARNING} for check in checks),
        cluster_id=facts.state.cluster_id,
        controller_id=_controller(facts),
        broker_count=len(facts.state.brokers),
        brokers_down=len(missing_brokers(facts)),
        topic_count=len(facts.state.topics),
        internal_topics=sum(hidden(topic) for topic in facts.state.topics.values()),
        partition_count=sum(1 for _ in partitions_of(facts.state)),
        checks=checks,
        eligible=eligible_rows(facts.state, facts.eligible),
    )


def are_facts_hidden(facts: Facts) -> bool:
    """Return True if the user lacks the rights to read some facts: waiting does not make them known. Pure."""
    answers = (facts.quorum, facts.hidden, *facts.log_dirs.values(), *facts.min_isr.values())
    some_hidden = not isinstance(facts.hidden, KctlError) and bool(facts.hidden)
    return some_hidden or any(isinstance(answer, NotAuthorized) for answer in answers)


def _controller(facts: Facts) -> int | None:
    """Return the controller id. With KRaft, Metadata names a random broker, so the quorum's leader is used."""
    if facts.quorum is None:
        return facts.state.controller_id
    return getattr(facts.quorum, "leader_id", None)
