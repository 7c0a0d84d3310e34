"""The outcome of a rule, and the facts of one pass over a cluster that the rules judge."""

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
    from kctl.cluster.quorum import Quorum


# Replicas that running reassignments add; why nobody could tell them: then all replicas count; None: not asked.
Adding = Mapping[TopicPartition, Collection[int]] | KctlError | None


class Status(str, Enum):
    """problem: not healthy. warning: to be looked at, no reason to stop. unknown: it could not be read."""

    OK = "ok"
    WARNING = "warning"
    PROBLEM = "problem"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Check:
    """What one rule found. subjects: what it is about, «orders-3», «broker 2»; reasons: what could not be read, and
    why, also where the rest was enough to find a problem.
    """

    check: str
    status: Status
    summary: str
    subjects: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Facts:
    """One pass over a cluster.

    state: as the broker that was asked first has it. views: what each registered broker says of the others. log_dirs:
    with all replicas. min_isr: topic → min.insync.replicas, of the topics with partitions under replication at least.
    quorum: None with ZooKeeper. fenced: brokers that are registered with a KRaft controller and not alive. hidden:
    topics on the disks that this user may not describe.
    """

    state: ClusterState
    views: Mapping[int, BrokerView | KctlError]
    log_dirs: Mapping[int, Sequence[LogDir] | KctlError]
    min_isr: Mapping[str, int | KctlError]
    adding: Adding = None
    quorum: Quorum | KctlError | None = None
    fenced: Mapping[int, Broker] | KctlError = field(default_factory=dict)
    hidden: Collection[str] | KctlError = ()


@dataclass(frozen=True, slots=True)
class Limits:
    """brokers: how many there have to be, None for no opinion. disk_percent: of a log dir's disk, used.

    leader_imbalance_percent: as leader.imbalance.per.broker.percentage. replica_skew_percent: above or below the mean.
    """

    brokers: int | None = None
    disk_percent: float = 90.0
    leader_imbalance_percent: float = 10.0
    replica_skew_percent: float = 20.0


@dataclass(frozen=True, slots=True)
class Health:
    """healthy: no check found a problem, and none could not be made. topics: with the internal ones."""

    healthy: bool
    cluster_id: str | None
    controller_id: int | None
    broker_count: int
    topic_count: int
    internal_topics: int
    partition_count: int
    checks: tuple[Check, ...]

    @property
    def problems(self) -> list[Check]:
        return [check for check in self.checks if check.status is Status.PROBLEM]

    @property
    def unknown(self) -> list[str]:
        """What could not be read, each with its reason, once."""
        return list(dict.fromkeys(reason for check in self.checks for reason in check.reasons))

    def require_healthy(self) -> None:
        """Raise NotHealthy if a check found a problem."""
        if not self.problems:
            return
        first = self.problems[0]
        more = f", and {counted(len(self.problems) - 1, 'other problem')}" if len(self.problems) > 1 else ""
        raise NotHealthy(
            f"{first.check.replace('_', ' ')}: {first.summary}{more}",
            hint="`kctl cluster diagnose` looks for what they have in common",
            details={"problems_found": [check.check for check in self.problems]},
        )
