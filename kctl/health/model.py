"""Health checks, and the facts of one pass over a cluster that the rules examine."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

from kctl.base.text import counted
from kctl.errors import KctlError, NotHealthy
from kctl.model import Broker, ClusterState, TopicPartition

if TYPE_CHECKING:
    from kctl.cluster.log_dirs import LogDir
    from kctl.cluster.membership import BrokerView
    from kctl.health.eligible import EligibleByPartition, EligibleReplicas
    from kctl.protocol.quorum import Quorum


# Replicas that running reassignments add. KctlError: unknown, so all replicas count. None: not requested.
Adding = Mapping[TopicPartition, Collection[int]] | KctlError | None


class CheckStatus(str, Enum):
    """The result of a check. warning: worth a look, still healthy. problem: not healthy. unknown: not readable."""

    OK = "ok"
    WARNING = "warning"
    PROBLEM = "problem"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Check:
    """The result of one rule.

    subjects: e.g. "orders-3", "broker 2". reasons: what could not be read, and why, even if the rest was enough to find
    a problem.
    """

    check: str
    status: CheckStatus
    summary: str
    subjects: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Facts:
    """The facts of one pass over a cluster.

    state: from the first broker. views: each registered broker's view. log_dirs: with all replicas. min_isr: topic →
    min.insync.replicas, at least for topics with under-replicated partitions. quorum: None with ZooKeeper. fenced:
    brokers that are registered with a KRaft controller but not live. hidden: topics in log dirs that the user may not
    describe. eligible: eligible leader replicas of the partitions at risk.
    """

    state: ClusterState
    views: Mapping[int, BrokerView | KctlError]
    log_dirs: Mapping[int, Sequence[LogDir] | KctlError]
    min_isr: Mapping[str, int | KctlError]
    adding: Adding = None
    quorum: Quorum | KctlError | None = None
    fenced: Mapping[int, Broker] | KctlError = field(default_factory=dict)
    hidden: Collection[str] | KctlError = ()
    eligible: EligibleByPartition = None


@dataclass(frozen=True, slots=True)
class HealthLimits:
    """Limits of the rules.

    brokers: minimum number of brokers; None: not checked. disk_percent: used share of a log dir's disk.
    leader_imbalance_percent: as leader.imbalance.per.broker.percentage. replica_skew_percent: above or below the mean.
    """

    brokers: int | None = None
    disk_percent: float = 90.0
    leader_imbalance_percent: float = 10.0
    replica_skew_percent: float = 20.0


@dataclass(frozen=True, slots=True)
class Health:
    """The results of all checks.

    healthy: every check is OK or a warning. broker_count: live brokers. brokers_down: brokers that host replicas or are
    registered, but are not live. topic_count: internal topics included. eligible: partitions without a leader or under
    min.insync.replicas that have eligible leader replicas (KIP-966); None if the cluster does not support them.
    """

    healthy: bool
    cluster_id: str | None
    controller_id: int | None
    broker_count: int
    brokers_down: int
    topic_count: int
    internal_topics: int
    partition_count: int
    checks: tuple[Check, ...]
    eligible: tuple[EligibleReplicas, ...] | None = None

    @property
    def problems(self) -> list[Check]:
        return [check for check in self.checks if check.status is CheckStatus.PROBLEM]

    @property
    def unknown(self) -> list[str]:
        """Return what could not be read, each reason once."""
        return list(dict.fromkeys(reason for check in self.checks for reason in check.reasons))

    def require_healthy(self) -> None:
        """Raise NotHealthy if a check found a problem."""
        if not self.problems:
            return
        first, hint = self.problems[0], "run `kctl cluster diagnose` to find the common cause"
        missing = [check for check in self.problems if check.check == "controller" and self.controller_id is None]
        if missing:  # explains the others: without a controller, the rest is what the brokers last knew
            first, hint = missing[0], "run `kctl controller`, and start controllers or ZooKeeper servers"
        more = f", and {counted(len(self.problems) - 1, 'other problem')}" if len(self.problems) > 1 else ""
        raise NotHealthy(
            f"{first.check.replace('_', ' ')}: {first.summary}{more}",
            hint=hint,
            details={"problems_found": [check.check for check in self.problems]},
        )
