"""One look at the cluster, as the gate of a rolling restart needs it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kctl.cluster.quorum import Quorum
from kctl.errors import KctlError
from kctl.health.model import Adding
from kctl.model import ClusterState

MinIsr = Mapping[str, int | KctlError]


@dataclass(frozen=True, slots=True)
class Seen:
    """One look, as far as the gate needs it. quorum: None with ZooKeeper, else it, or why it does not tell.

    zookeeper: why it cannot be reached; None when it can, or nobody said where it is. silent: brokers that are listed
    and do not answer themselves, and why: one that crashed or hangs is listed, and in ISRs, until its session ends.
    """

    state: ClusterState
    min_isr: MinIsr
    adding: Adding
    quorum: Quorum | KctlError | None = None
    zookeeper: str | None = None
    silent: Mapping[int, str] = field(default_factory=dict)
