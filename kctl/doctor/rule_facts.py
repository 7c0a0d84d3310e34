"""The facts that rules examine.

Each field is None if it was not requested, and a KctlError if it could not be read. Clusters, broker files and client
files use the same value with different fields set.
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
class EffectiveSettings:
    """The settings of one broker, one topic, or one file, defaults included.

    owner: "broker 1", a topic or a file. values: the effective value of each setting; None: no value, or a value that
    is not disclosed (a secret, a config provider's variable; see `is_hidden`). explicit: names of settings that are set
    and not defaulted. releases: the Kafka releases that the owner may run; None: unknown.
    """

    owner: str
    values: Mapping[str, str | None]
    explicit: frozenset[str] = frozenset()
    releases: Releases | None = None

    def text(self, name: str) -> str | None:
        """Return the value; None if the setting does not exist or is empty."""
        return self.values.get(name) or None

    def is_hidden(self, name: str) -> bool:
        """Return True if the setting is set to a value that is not disclosed."""
        return name in self.explicit and self.values.get(name) is None

    def number(self, name: str) -> int | None:
        """Return the value as an integer; None if it is not one."""
        try:
            return int(self.values.get(name) or "")
        except ValueError:
            return None

    def boolean(self, name: str) -> bool | None:
        """Return the value as a boolean; None if it is not one."""
        return {"true": True, "false": False}.get((self.values.get(name) or "").strip().lower())

    def items(self, name: str) -> list[str]:
        """Return the non-empty items of a comma-separated list."""
        return [item for item in (part.strip() for part in (self.values.get(name) or "").split(",")) if item]


@dataclass(frozen=True, slots=True)
class GroupState:
    """A consumer group.

    members: member id → number of assigned partitions (None: unknown); None: the members are unknown. subscribed:
    topics that the members subscribe to, as far as they report them. epoch: set for groups of the new protocol
    (KIP-848). rebalances: number of rebalances observed; None: the group was not watched.
    """

    group: str
    state: str
    members: Mapping[str, int | None] | None
    subscribed: frozenset[str] = frozenset()
    epoch: int | None = None
    rebalances: int | None = None


@dataclass(frozen=True, slots=True)
class GroupFacts:
    """All consumer groups and the lag of each of their partitions.

    unread_reasons: why some groups or partitions are missing. watched_ms: how long the groups were watched; None: not
    watched.
    """

    groups: Mapping[str, GroupState]
    rows: Sequence[LagRow] = ()
    unread_reasons: tuple[str, ...] = ()
    watched_ms: int | None = None


@dataclass(frozen=True, slots=True)
class ZooKeeperFacts:
    """The servers of the ensemble and the ACLs of important nodes.

    grants: path → ACL; None: even the ACL is not readable. scram_users: number of users with SCRAM credentials in
    ZooKeeper; None: not readable.
    """

    servers: Sequence[Server]
    grants: Mapping[str, Sequence[Grant] | None]
    scram_users: int | None
    unread_reasons: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FileFacts:
    """Facts from the text of a .properties file.

    unknown_keys: key → names that were probably meant. stray_lines: number of keys that do not look like a name and may
    be part of a secret. invalid_values: key → message. outdated: messages about names and values that Kafka has
    removed. mode: permission bits. secret_keys: keys that hold a password. variable_keys: keys whose value comes from a
    config provider.
    """

    path: str
    unknown_keys: Mapping[str, Sequence[str]] = field(default_factory=dict)
    stray_lines: int = 0
    invalid_values: Mapping[str, str] = field(default_factory=dict)
    outdated: tuple[str, ...] = ()
    mode: int = 0o600
    secret_keys: tuple[str, ...] = ()
    variable_keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RuleFacts:
    """All facts about a cluster or a set of files.

    brokers: settings by broker or file name. broker_count: brokers of the cluster, down ones included; None for a
    single file. features: feature levels by broker. differences: settings that differ between brokers. topics: settings
    by topic. bootstrap_host: the host through which the cluster was reached. files: every file, as text. broker_files,
    clients: settings of all broker files and of all client files. producers, consumers: the client files by role.
    releases: the releases of each broker or file; None: unknown. assumed_releases: used in place of unknown releases.
    """

    health: Health | KctlError | None = None
    state: ClusterState | KctlError | None = None
    brokers: Mapping[str, EffectiveSettings | KctlError] | None = None
    broker_count: int | None = None
    features: Mapping[str, Sequence[Feature] | KctlError] | None = None
    differences: Sequence[Difference] | KctlError | None = None
    topics: Mapping[str, EffectiveSettings | KctlError] | None = None
    log_dirs: Mapping[int, Sequence[LogDir] | KctlError] | None = None
    groups: GroupFacts | KctlError | None = None
    zookeeper: ZooKeeperFacts | KctlError | None = None
    bootstrap_host: str | None = None
    files: Sequence[FileFacts] | None = None
    broker_files: Sequence[EffectiveSettings] | None = None
    clients: Sequence[EffectiveSettings] | None = None
    producers: Sequence[EffectiveSettings] | None = None
    consumers: Sequence[EffectiveSettings] | None = None
    releases: Mapping[str, Releases | None] = field(default_factory=dict)
    assumed_releases: Releases | None = None


def readable_brokers(facts: RuleFacts) -> list[EffectiveSettings]:
    """Return the settings of each broker whose settings are readable."""
    return [each for each in (facts.brokers or {}).values() if not isinstance(each, KctlError)]


def readable_topics(facts: RuleFacts) -> list[tuple[str, EffectiveSettings]]:
    """Return (name, settings) of each topic whose settings are readable, sorted by name."""
    return [(name, each) for name, each in sorted((facts.topics or {}).items()) if not isinstance(each, KctlError)]


def uses_zookeeper(settings: EffectiveSettings) -> bool:
    """Return True if the broker keeps its metadata in ZooKeeper."""
    return bool(settings.text("zookeeper.connect")) and not settings.text("process.roles")


def unread_reasons(facts: RuleFacts, needs: Iterable[str]) -> list[str]:
    """Return why parts of the needed fields could not be read; each reason once. Pure."""
    reasons: dict[str, None] = {}
    for name in needs:
        part = getattr(facts, name)
        if isinstance(part, KctlError):
            reasons[part.message] = None
        elif isinstance(part, Mapping):
            reasons.update((each.message, None) for each in part.values() if isinstance(each, KctlError))
        else:
            part_reasons: Collection[str] = getattr(part, "unread_reasons", ())
            reasons.update(dict.fromkeys(part_reasons))
    return list(reasons)


def lacks_facts(facts: RuleFacts, needs: Iterable[str]) -> bool:
    """Return True if any needed field was not requested."""
    return any(getattr(facts, name) is None for name in needs)
