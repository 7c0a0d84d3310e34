"""Brokers as rows: address, leaders, replicas, disk usage and inferred release."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kctl.brokers.log_dir_rows import LogDirRow, log_dir_rows
from kctl.cluster.api_versions import BrokerApis, fetch_api_versions, release_of
from kctl.cluster.log_dirs import LogDir, fetch_log_dirs
from kctl.cluster.membership import fenced_brokers
from kctl.cluster.rights import may_describe_all_topics
from kctl.errors import KctlError, NotAuthorized, NotFound, NotHealthy
from kctl.health.hidden import hidden_line, hidden_topics
from kctl.health.partitions import partitions_of
from kctl.model import Broker, ClusterState, PartitionState
from kctl.protocol.active_controller import controller_of
from kctl.protocol.quorum import LAST_KNOWN, NO_CONTROLLER_HINT

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient


@dataclass(frozen=True, slots=True)
class BrokerSummary:
    """A broker. state: "up"; "silent": registered, but does not respond; "down": assigned replicas, but not registered.

    host, port, rack: None if the broker is down and its address is unknown. is_controller: with KRaft, True if the
    active controller has this id; None: unknown. leaders, replica_count, not_in_sync: over all topics; None if some
    topics are hidden. size_bytes: of all replicas. used_percent: of the fullest disk. release: see release_of.
    cordoned_log_dirs: log dirs that receive no new replicas. None: unreadable, see error.
    """

    broker: int
    host: str | None
    port: int | None
    rack: str | None
    state: str
    is_controller: bool | None
    leaders: int | None
    replica_count: int | None
    not_in_sync: int | None
    size_bytes: int | None
    used_percent: float | None
    log_dir_count: int | None
    offline_log_dirs: int | None
    cordoned_log_dirs: int | None
    release: str | None
    error: str | None


@dataclass(frozen=True, slots=True)
class BrokerDescription:
    """A broker in full.

    preferred: number of partitions of which it is the preferred leader. partitions_not_in_sync: "orders-3", of the
    visible topics.
    """

    broker: int
    host: str | None
    port: int | None
    rack: str | None
    state: str
    is_controller: bool | None
    leaders: int | None
    preferred: int | None
    replica_count: int | None
    partitions_not_in_sync: tuple[str, ...]
    release: str | None
    log_dirs: tuple[LogDirRow, ...] | None
    error: str | None


@dataclass(frozen=True, slots=True)
class BrokerFacts:
    """The facts about all brokers of a cluster.

    controller: None if unknown. failures: why cluster-wide facts are unknown. unseen: some topics are or may be hidden
    from this user, so counts over topics are unknown. no_controller: why there is no active controller; None: there is
    one, or it is unknown.
    """

    state: ClusterState
    controller: int | None
    fenced: Mapping[int, Broker]
    apis: Mapping[int, BrokerApis | KctlError]
    log_dirs: Mapping[int, Sequence[LogDir] | KctlError]
    failures: tuple[str, ...] = ()
    unseen: bool = False
    no_controller: str | None = None

    def require_controller(self) -> None:
        """Raise NotHealthy if there is no active controller: then the metadata is what the brokers last knew."""
        if self.no_controller is not None:
            raise NotHealthy(self.no_controller, hint=NO_CONTROLLER_HINT)

    @property
    def ids(self) -> list[int]:
        """Return the ids of brokers that are up, registered, or assigned a replica."""
        holding = {node for p in partitions_of(self.state) for node in p.replicas}
        return sorted(holding | self.state.brokers.keys() | self.fenced.keys())

    def broker(self, node: int) -> Broker | None:
        """Return the address of a broker, the last known one if it is down; None if unknown."""
        return self.state.brokers.get(node) or self.fenced.get(node)

    def is_controller(self, node: int) -> bool | None:
        """Return True if it is the controller; None: unknown."""
        return None if self.controller is None else node == self.controller


def read_brokers(client: ClusterClient, selected: Collection[int] | None = None) -> BrokerFacts:
    """Read metadata, and the API versions and log dirs of each (selected) broker.

    Raises NotFound for a selected broker that is not in the cluster, and subclasses of ConnectionFailed.
    """
    state = client.metadata()
    controller = controller_of(client, state)
    failures = [each for each in (controller.unread, LAST_KNOWN if controller.missing else None) if each]
    fenced = fenced_brokers(client)
    if isinstance(fenced, KctlError):
        failures.append(f"brokers that are down may be missing: {fenced.message}")
        fenced = {}
    check_known(selected or (), BrokerFacts(state, controller.id, fenced, {}, {}).ids)
    to_read = [node for node in state.brokers if selected is None or node in selected]
    apis = fetch_api_versions(client, to_read)
    reachable = [node for node, each in apis.items() if not isinstance(each, KctlError)]
    log_dirs = dict(fetch_log_dirs(client, reachable))
    unseen = _hidden_topics_reason(client, state, log_dirs)
    if unseen:
        failures.append(f"the leaders and replicas of brokers are unknown: {unseen}")
    return BrokerFacts(
        state, controller.id, fenced, apis, log_dirs, tuple(failures), unseen=unseen is not None,
        no_controller=controller.missing,
    )  # fmt: skip


def _hidden_topics_reason(
    client: ClusterClient, state: ClusterState, log_dirs: Mapping[int, Sequence[LogDir] | KctlError]
) -> str | None:
    """Return why metadata may omit topics; None if it is complete as far as can be determined."""
    hidden = hidden_topics(client, state, log_dirs)
    if isinstance(hidden, KctlError):
        return hidden.message
    if hidden:
        return hidden_line(hidden)
    # The log dirs are unreadable: metadata is complete if the user may describe any topic.
    denied = any(isinstance(each, NotAuthorized) for each in log_dirs.values())
    if denied and may_describe_all_topics(client) is not True:
        return "this user may not describe all topics"
    return None


def check_known(selected: Collection[int], existing: Collection[int]) -> None:
    """Raise NotFound if any broker is not in the cluster."""
    unknown = sorted(set(selected) - set(existing))
    if unknown:
        what = f"broker {unknown[0]} is" if len(unknown) == 1 else f"brokers {', '.join(map(str, unknown))} are"
        raise NotFound(
            f"{what} not in the cluster",
            hint=f"the cluster has brokers {', '.join(map(str, sorted(existing))) or 'none'}",
        )


def summaries(facts: BrokerFacts) -> list[BrokerSummary]:
    """Return one row per broker, by id. Pure."""
    counts = _PartitionCounts(facts.state)
    return [_summary(node, facts, counts) for node in facts.ids]


class _PartitionCounts:
    """The number of partitions that each broker leads, is the preferred leader of, and holds."""

    def __init__(self, state: ClusterState) -> None:
        self.leaders: dict[int, int] = {}
        self.preferred: dict[int, int] = {}
        self.replicas: dict[int, int] = {}
        self.not_in_sync: dict[int, list[PartitionState]] = {}
        for p in partitions_of(state):
            self.leaders[p.leader] = self.leaders.get(p.leader, 0) + 1
            self.preferred[p.preferred_leader] = self.preferred.get(p.preferred_leader, 0) + 1
            for node in p.replicas:
                self.replicas[node] = self.replicas.get(node, 0) + 1
                if node not in p.isr:
                    self.not_in_sync.setdefault(node, []).append(p)


def _summary(node: int, facts: BrokerFacts, counts: _PartitionCounts) -> BrokerSummary:
    broker = facts.broker(node)
    rows = _rows(facts, node)
    used = [row.used_percent for row in rows or () if row.used_percent is not None]
    return BrokerSummary(
        broker=node,
        host=broker.host if broker else None,
        port=broker.port if broker else None,
        rack=broker.rack if broker else None,
        state=_state(node, facts),
        is_controller=facts.is_controller(node),
        leaders=None if facts.unseen else counts.leaders.get(node, 0),
        replica_count=None if facts.unseen else counts.replicas.get(node, 0),
        not_in_sync=None if facts.unseen else len(counts.not_in_sync.get(node, ())),
        size_bytes=None if rows is None else sum(row.size_bytes for row in rows),
        used_percent=max(used, default=None),
        log_dir_count=None if rows is None else len(rows),
        offline_log_dirs=None if rows is None else sum(row.error is not None for row in rows),
        cordoned_log_dirs=None if rows is None else sum(row.cordoned for row in rows),
        release=_release(node, facts),
        error=_error(node, facts),
    )


def descriptions(facts: BrokerFacts, selected: Collection[int]) -> list[BrokerDescription]:
    """Return the selected brokers, in this order. Pure."""
    counts = _PartitionCounts(facts.state)
    return [_description(node, facts, counts) for node in dict.fromkeys(selected)]


def _description(node: int, facts: BrokerFacts, counts: _PartitionCounts) -> BrokerDescription:
    broker = facts.broker(node)
    rows = _rows(facts, node)
    return BrokerDescription(
        broker=node,
        host=broker.host if broker else None,
        port=broker.port if broker else None,
        rack=broker.rack if broker else None,
        state=_state(node, facts),
        is_controller=facts.is_controller(node),
        leaders=None if facts.unseen else counts.leaders.get(node, 0),
        preferred=None if facts.unseen else counts.preferred.get(node, 0),
        replica_count=None if facts.unseen else counts.replicas.get(node, 0),
        partitions_not_in_sync=tuple(str(p.tp) for p in counts.not_in_sync.get(node, ())),
        release=_release(node, facts),
        log_dirs=None if rows is None else tuple(rows),
        error=_error(node, facts),
    )


def _rows(facts: BrokerFacts, node: int) -> list[LogDirRow] | None:
    dirs = facts.log_dirs.get(node)
    return None if dirs is None or isinstance(dirs, KctlError) else log_dir_rows({node: dirs})


def _state(node: int, facts: BrokerFacts) -> str:
    if node not in facts.state.brokers:
        return "down"
    return "silent" if isinstance(facts.apis.get(node), KctlError) else "up"


def _release(node: int, facts: BrokerFacts) -> str | None:
    apis = facts.apis.get(node)
    return None if apis is None or isinstance(apis, KctlError) else release_of(apis.versions)


def _error(node: int, facts: BrokerFacts) -> str | None:
    for result in (facts.apis.get(node), facts.log_dirs.get(node)):
        if isinstance(result, KctlError):
            return result.message
    return None
