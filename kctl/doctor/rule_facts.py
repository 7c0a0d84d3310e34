"""What rules look at: values that were read, KctlErrors in place of those that could not be, None for what nobody
asked for. A cluster, a broker's file and a client's file are the same kind of value with other parts filled in.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kctl.doctor.releases import Releases
from kctl.errors import KctlError

if TYPE_CHECKING:
    from kctl.cluster.api_versions import Feature
    from kctl.cluster.log_dirs import LogDir
    from kctl.configs.diff import Difference
    from kctl.health.model import Health
    from kctl.lag.rules import LagRow
    from kctl.model import ClusterState
    from kctl.zookeeper.nodes import Grant
    from kctl.zookeeper.servers import Server


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of one broker, or in one file. values: what holds, a default too; None: not set, or not told.

    What is set and not told (a secret, a config provider's variable) may be anything: see `hidden`.

    given: names that somebody has set. where: «broker 1», «server.properties». releases: None when nobody can tell.
    """

    where: str
    values: Mapping[str, str | None]
    given: frozenset[str] = frozenset()
    releases: Releases | None = None

    def text(self, name: str) -> str | None:
        """The value; None too when there is no such setting, or it is empty."""
        return self.values.get(name) or None

    def hidden(self, name: str) -> bool:
        """Whether it is set, and nobody tells to what."""
        return name in self.given and self.values.get(name) is None

    def number(self, name: str) -> int | None:
        """The value of a whole number; None for anything else."""
        try:
            return int(self.values.get(name) or "")
        except ValueError:
            return None

    def truth(self, name: str) -> bool | None:
        """The value of a boolean; None for anything else."""
        return {"true": True, "false": False}.get((self.values.get(name) or "").strip().lower())

    def items(self, name: str) -> list[str]:
        """The items of a list."""
        return [item for item in (part.strip() for part in (self.values.get(name) or "").split(",")) if item]


@dataclass(frozen=True, slots=True)
class GroupState:
    """A group at one moment. members: member id → how many partitions it has (None: not known); None: not told.

    subscribed: topics that its members asked for, as far as they say. epoch: of newer groups. rebalances: how many were
    seen while it was watched; None when it was not.
    """

    group: str
    state: str
    members: Mapping[str, int | None] | None
    subscribed: frozenset[str] = frozenset()
    epoch: int | None = None
    rebalances: int | None = None


@dataclass(frozen=True, slots=True)
class GroupFacts:
    """All groups, the lag of each of their partitions, and what of them could not be read. watched_ms: None: once."""

    groups: Mapping[str, GroupState]
    rows: Sequence[LagRow] = ()
    unread: tuple[str, ...] = ()
    watched_ms: int | None = None


@dataclass(frozen=True, slots=True)
class ZooKeeperFacts:
    """The servers of the ensemble, and who may do what with nodes: path → grants; None: not even that may be seen.

    scram_users: how many users have credentials there; None when that could not be read.
    """

    servers: Sequence[Server]
    grants: Mapping[str, Sequence[Grant] | None]
    scram_users: int | None
    unread: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FileFacts:
    """A .properties file as it stands. unknown: key → names that were probably meant. stray_lines: how many keys look
    like no name, and may be a part of a secret. wrong: key → what its value is not. outdated: what to say of names and
    values that are gone. mode: permission bits. secrets: keys that hold a password. variables: keys of which a config
    provider has the value."""

    path: str
    unknown: Mapping[str, Sequence[str]] = field(default_factory=dict)
    stray_lines: int = 0
    wrong: Mapping[str, str] = field(default_factory=dict)
    outdated: tuple[str, ...] = ()
    mode: int = 0o600
    secrets: tuple[str, ...] = ()
    variables: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RuleFacts:
    """brokers: by id, or by file. topics: the settings of each. reached: the host through which brokers were found.

    broker_count: with those that are down; None where a file stands alone. feature_levels: of brokers, by id.
    differences: of brokers' settings. broker_files, client_files: with what only a file shows. producers, consumers,
    clients: files by what they are for; clients: all of them. assumed: what those are taken to be of which nobody can
    tell the release.
    """

    health: Health | KctlError | None = None
    state: ClusterState | KctlError | None = None
    brokers: Mapping[str, Settings | KctlError] | None = None
    broker_count: int | None = None
    features: Mapping[str, Sequence[Feature] | KctlError] | None = None
    differences: Sequence[Difference] | KctlError | None = None
    topics: Mapping[str, Settings | KctlError] | None = None
    log_dirs: Mapping[int, Sequence[LogDir] | KctlError] | None = None
    groups: GroupFacts | KctlError | None = None
    zookeeper: ZooKeeperFacts | KctlError | None = None
    reached: str | None = None
    files: Sequence[FileFacts] | None = None
    broker_files: Sequence[Settings] | None = None
    clients: Sequence[Settings] | None = None
    producers: Sequence[Settings] | None = None
    consumers: Sequence[Settings] | None = None
    releases: Mapping[str, Releases | None] = field(default_factory=dict)
    assumed: Releases | None = None


def read_brokers(facts: RuleFacts) -> list[Settings]:
    """The brokers whose settings were read."""
    return [each for each in (facts.brokers or {}).values() if not isinstance(each, KctlError)]


def read_topics(facts: RuleFacts) -> list[tuple[str, Settings]]:
    """The topics whose settings were read, by name."""
    return [(name, each) for name, each in sorted((facts.topics or {}).items()) if not isinstance(each, KctlError)]


def with_zookeeper(settings: Settings) -> bool:
    """Whether a broker keeps its metadata in ZooKeeper."""
    return bool(settings.text("zookeeper.connect")) and not settings.text("process.roles")


def unread(facts: RuleFacts, needs: Iterable[str]) -> list[str]:
    """Why parts of what a rule needs could not be read, each reason once. Pure."""
    reasons: dict[str, None] = {}
    for name in needs:
        part = getattr(facts, name)
        if isinstance(part, KctlError):
            reasons[part.message] = None
        elif isinstance(part, Mapping):
            reasons.update((each.message, None) for each in part.values() if isinstance(each, KctlError))
        else:
            own: Collection[str] = getattr(part, "unread", ())
            reasons.update(dict.fromkeys(own))
    return list(reasons)


def absent(facts: RuleFacts, needs: Iterable[str]) -> bool:
    """Whether something that a rule needs was not asked for."""
    return any(getattr(facts, name) is None for name in needs)
