"""Brokers as rows: where they are, what they lead and hold, how full their disks are, which release they seem to be."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kctl.brokers.log_dir_rows import LogDirRow, log_dir_rows
from kctl.cluster.api_versions import BrokerApis, fetch_api_versions, release_of
from kctl.cluster.log_dirs import LogDir, fetch_log_dirs
from kctl.cluster.membership import fenced_brokers
from kctl.cluster.quorum import controller_of
from kctl.cluster.rights import may_describe_all_topics
from kctl.errors import KctlError, NotAuthorized, NotFound
from kctl.health.hidden import hidden_line, hidden_topics
from kctl.health.partitions import partitions_of
from kctl.model import Broker, ClusterState, PartitionState

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient


@dataclass(frozen=True, slots=True)
class BrokerSummary:
    """A broker. state: «up»; «silent», registered but without an answer; «down», others hold it for a replica's broker.

    host, port, rack: None when it is down and nobody tells. controller: with KRaft, whether the active one has this id;
    None when nobody could tell.
    leaders, replicas: of all topics; not_in_sync: of its replicas; None with topics that may not be described.
    size_bytes: all its replicas; used_percent: of the fullest log dir's disk; release: see release_of. None where it
    could not be read: error says why.
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
    release: str | None
    error: str | None


@dataclass(frozen=True, slots=True)
class BrokerDescription:
    """A broker in full. preferred: partitions whose preferred leader it is; partitions_not_in_sync: «orders-3», of the
    topics that are seen.
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
    """What is known of all brokers of a cluster. controller: None when nobody could tell: failures say why, and what
    else is not known that is of no one broker. unseen: topics that may not be described, or it is not known whether
    there are any: what is counted over topics is not known.
    """

    state: ClusterState
    controller: int | None
    fenced: Mapping[int, Broker]
    apis: Mapping[int, BrokerApis | KctlError]
    log_dirs: Mapping[int, Sequence[LogDir] | KctlError]
    failures: tuple[str, ...] = ()
    unseen: bool = False

    @property
    def ids(self) -> list[int]:
        """Brokers that are up, registered, or said to hold a replica."""
        holding = {node for p in partitions_of(self.state) for node in p.replicas}
        return sorted(holding | self.state.brokers.keys() | self.fenced.keys())

    def broker(self, node: int) -> Broker | None:
        """Where a broker is, or was; None when nobody tells of one that is down."""
        return self.state.brokers.get(node) or self.fenced.get(node)

    def is_controller(self, node: int) -> bool | None:
        """None when nobody could tell."""
        return None if self.controller is None else node == self.controller


def read_brokers(client: ClusterClient, wanted: Collection[int] | None = None) -> BrokerFacts:
    """Ask for metadata, and each broker (or those wanted) for its API versions and log dirs.

    Raises NotFound for a broker wanted that nobody knows, ConnectionFailed's subclasses.
    """
    state = client.metadata()
    controller, failure = controller_of(client, state)
    failures = [failure] if failure else []
    fenced = fenced_brokers(client)
    if isinstance(fenced, KctlError):
        failures.append(f"brokers that are down may be missing: {fenced.message}")
        fenced = {}
    check_known(wanted or (), BrokerFacts(state, controller, fenced, {}, {}).ids)
    asked = [node for node in state.brokers if wanted is None or node in wanted]
    apis = fetch_api_versions(client, asked)
    able = [node for node, found in apis.items() if not isinstance(found, KctlError)]
    log_dirs = dict(fetch_log_dirs(client, able))
    unseen = _unseen_topics(client, state, log_dirs)
    if unseen:
        failures.append(f"leaders and replicas of brokers are not known: {unseen}")
    return BrokerFacts(state, controller, fenced, apis, log_dirs, tuple(failures), unseen=unseen is not None)


def _unseen_topics(
    client: ClusterClient, state: ClusterState, log_dirs: Mapping[int, Sequence[LogDir] | KctlError]
) -> str | None:
    """Why metadata may not be of all topics; None when it is, as far as can be told."""
    found = hidden_topics(client, state, log_dirs)
    if isinstance(found, KctlError):
        return found.message
    if found:
        return hidden_line(found)
    # The disks did not tell: then who may describe any topic sees all.
    denied = any(isinstance(each, NotAuthorized) for each in log_dirs.values())
    if denied and may_describe_all_topics(client) is not True:
        return "this user may not describe all topics"
    return None


def check_known(wanted: Collection[int], known: Collection[int]) -> None:
    """Raise NotFound when one of the brokers is not in the cluster."""
    unknown = sorted(set(wanted) - set(known))
    if unknown:
        what = f"broker {unknown[0]} is" if len(unknown) == 1 else f"brokers {', '.join(map(str, unknown))} are"
        raise NotFound(
            f"{what} not in the cluster", hint=f"the brokers: {', '.join(map(str, sorted(known))) or 'none'}"
        )


def summaries(facts: BrokerFacts) -> list[BrokerSummary]:
    """A row for each broker, by id. Pure."""
    counts = _Counts(facts.state)
    return [_summary(node, facts, counts) for node in facts.ids]


class _Counts:
    """What each broker leads, should lead, and holds."""

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


def _summary(node: int, facts: BrokerFacts, counts: _Counts) -> BrokerSummary:
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
        release=_release(node, facts),
        error=_error(node, facts),
    )


def descriptions(facts: BrokerFacts, wanted: Collection[int]) -> list[BrokerDescription]:
    """The brokers wanted, in that order. Pure."""
    counts = _Counts(facts.state)
    return [_description(node, facts, counts) for node in dict.fromkeys(wanted)]


def _description(node: int, facts: BrokerFacts, counts: _Counts) -> BrokerDescription:
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
    for found in (facts.apis.get(node), facts.log_dirs.get(node)):
        if isinstance(found, KctlError):
            return found.message
    return None
