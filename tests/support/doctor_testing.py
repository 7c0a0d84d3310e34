"""Builders of doctor facts: a cluster, its topics, groups and ZooKeeper, and files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from health_testing import facts as health_facts
from health_testing import partition, state
from kctl.cluster.log_dirs import LogDir, LogDirReplica
from kctl.doctor.examine import Finding, examine
from kctl.doctor.read_files import file_facts, read_broker_file, read_client_file
from kctl.doctor.releases import Releases, parse_releases
from kctl.doctor.rule_facts import EffectiveSettings, GroupFacts, GroupState, RuleFacts, ZooKeeperFacts
from kctl.doctor.rule_table import RULES
from kctl.errors import KctlError
from kctl.health.assess import assess
from kctl.lag.rules import LagRow
from kctl.model import ClusterState
from kctl.zookeeper.nodes import Grant
from kctl.zookeeper.servers import Server

BY_ID = {rule.id: rule for rule in RULES}
ANYBODY = [Grant("world", "anyone", ["read", "write", "create", "delete", "admin"])]
READERS = [Grant("world", "anyone", ["read"]), Grant("sasl", "kafka", ["read", "write", "create", "delete", "admin"])]
CLOSED = [Grant("sasl", "kafka", ["read", "write", "create", "delete", "admin"])]


def found_by(rule_id: str, facts: RuleFacts) -> list[Finding]:
    """Return the findings of one rule."""
    return list(examine([BY_ID[rule_id]], facts).findings)


def release(text: str = "3.9") -> Releases:
    releases = parse_releases(text)
    assert releases is not None
    return releases


def of_broker_file(folder: Path, text: str, version: str | None = None, name: str = "server.properties") -> RuleFacts:
    """Return the facts about a server.properties file."""
    path = folder / name
    path.write_text(text)
    path.chmod(0o600)
    return file_facts([read_broker_file(str(path), parse_releases(version))], [])


def of_client_file(folder: Path, name: str, text: str, version: str | None = None, mode: int = 0o600) -> RuleFacts:
    """Return the facts about a producer or consumer file."""
    path = folder / name
    path.write_text(text)
    path.chmod(mode)
    return file_facts([], [read_client_file(str(path), parse_releases(version))])


def of_health(cluster: ClusterState | None = None, **others: Any) -> RuleFacts:
    """Return the facts about the health of a cluster (default: three brokers and a healthy partition)."""
    seen = health_facts(cluster or state([partition("123", "123")]), **others)
    return RuleFacts(health=assess(seen), state=seen.state, log_dirs=seen.log_dirs, releases={"broker 1": release()})


def broker(owner: str = "broker 1", *, version: str | None = "3.9", **values: str) -> EffectiveSettings:
    """Return the settings of a broker; _ in a name stands for a dot."""
    settings = {name.replace("_", "."): value for name, value in values.items()}
    return EffectiveSettings(owner, settings, frozenset(settings), parse_releases(version))


def of_brokers(*brokers: EffectiveSettings, **others: Any) -> RuleFacts:
    return RuleFacts(
        brokers={each.owner: each for each in brokers},
        releases={each.owner: each.releases for each in brokers},
        **others,
    )


def of_topics(
    cluster: ClusterState, configs: Mapping[str, Mapping[str, str] | KctlError] | None = None, version: str = "3.9"
) -> RuleFacts:
    """Return the facts about topics with their own settings; topics without an entry have none."""
    topics: dict[str, EffectiveSettings | KctlError] = {
        name: EffectiveSettings(name, {"cleanup.policy": "delete", "min.insync.replicas": "2"})
        for name in cluster.topics
    }
    for name, values in (configs or {}).items():
        if isinstance(values, KctlError):
            topics[name] = values
        else:
            topics[name] = EffectiveSettings(name, {"cleanup.policy": "delete", **values}, frozenset(values))
    return RuleFacts(state=cluster, topics=topics, releases={"broker 1": release(version)})


def group(name: str = "g", state_: str = "Stable", members: Mapping[str, int | None] | None = None, **more: Any) -> Any:
    """Return a group that reads topic t."""
    return GroupState(
        name, state_, {"m1": 1} if members is None else members, **{"subscribed": frozenset({"t"}), **more}
    )


def of_groups(*groups: GroupState, rows: Sequence[LagRow] = (), watched_ms: int | None = None) -> RuleFacts:
    """Return the facts about groups that read topic t with two partitions."""
    cluster = state([partition("123", "123"), partition("123", "123", number=1)])
    group_facts = GroupFacts({each.group: each for each in groups}, rows, (), watched_ms)
    return RuleFacts(state=cluster, groups=group_facts, releases={"broker 1": release()})


def row(lag: int, lost: int = 0, *, group_: str = "g", client: str | None = None) -> LagRow:
    return LagRow(group_, "Stable", "t", 0, 0, 0, lag, lag, lost, client)


def of_zookeeper(
    modes: Sequence[str | None] = ("leader", "follower", "follower"),
    grants: Mapping[str, Sequence[Grant] | None] | None = None,
    users: int | None = 0,
) -> RuleFacts:
    """Return the facts about an ensemble; a server without a mode does not respond."""
    servers = [
        Server(f"zk{i}:2181", healthy=bool(mode), mode=mode, problem=None if mode else "refused the connection")
        for i, mode in enumerate(modes, start=1)
    ]
    return RuleFacts(zookeeper=ZooKeeperFacts(servers, grants or {}, users), releases={"broker 1": release()})


def log_dir(used: int, free: int | None, topic: str = "t") -> LogDir:
    """Return a log dir with one replica of `used` bytes."""
    total = None if free is None else used + free
    return LogDir("/data", total, free, [LogDirReplica(topic, 0, used, 0, False)])
