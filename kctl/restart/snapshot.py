"""One snapshot of the cluster for the gate of a rolling restart."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kctl.errors import KctlError
from kctl.health.model import Adding
from kctl.model import ClusterState
from kctl.protocol.quorum import Quorum

MinIsr = Mapping[str, int | KctlError]


@dataclass(frozen=True, slots=True)
class GateSnapshot:
    """A snapshot of the cluster for the gate.

    quorum: None with ZooKeeper, the error if it cannot be read. zookeeper: why ZooKeeper is unreachable; None if it is
    reachable or its address is unknown. silent: brokers that are listed but do not respond, with the reason: a broker
    that crashed or hangs stays listed and in ISRs until its session ends. controllers: dedicated KRaft
    controllers of the run that respond.
    """

    state: ClusterState
    min_isr: MinIsr
    adding: Adding
    quorum: Quorum | KctlError | None = None
    zookeeper: str | None = None
    silent: Mapping[int, str] = field(default_factory=dict)
    controllers: frozenset[int] = frozenset()

    @property
    def up(self) -> frozenset[int]:
        """Return the ids of brokers that are listed and of controllers that respond."""
        return self.controllers | self.state.brokers.keys()
