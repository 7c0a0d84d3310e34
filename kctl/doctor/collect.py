"""What the rules have to know of a live cluster: the parts that they look at, in as few requests as can be."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from kctl.base.address import parse_address
from kctl.cluster.api_versions import BrokerApis, Feature, fetch_api_versions, release_of
from kctl.cluster.config_resources import Resource
from kctl.cluster.topic_configs import ConfigEntry, ConfigSource, fetch_topic_configs
from kctl.configs.describe import describe_each
from kctl.configs.diff import OF_ONE_BROKER, Difference, differences
from kctl.configs.model import Config
from kctl.doctor.collect_groups import read_groups
from kctl.doctor.collect_zookeeper import read_zookeeper
from kctl.doctor.releases import Releases, parse_releases
from kctl.doctor.rule_facts import RuleFacts, Settings
from kctl.doctor.rules_topics import TOPIC_CONFIGS
from kctl.errors import ConnectionFailed, KctlError, NotAuthorized
from kctl.health.assess import assess
from kctl.health.brokers import missing_brokers
from kctl.health.collect import collect_facts
from kctl.health.hidden import hidden_line
from kctl.health.model import Facts

if TYPE_CHECKING:
    from kctl.cluster.log_dirs import LogDir
    from kctl.protocol.client import ClusterClient
    from kctl.protocol.target import Target

_OF_BROKERS = frozenset({"brokers", "differences"})


def collect(
    client: ClusterClient, target: Target, parts: Collection[str], *, watch_s: float = 0.0
) -> tuple[RuleFacts, list[str]]:
    """Read `parts` (fields of RuleFacts), and say what was not asked for want of an address.

    What could not be read is a KctlError in its place. watch_s: how long to look at groups for rebalances. Raises
    ConnectionFailed's subclasses when there is no broker that gives metadata.
    """
    seen = collect_facts(client)
    wanted = set(parts)
    apis = fetch_api_versions(client, seen.state.brokers)
    releases = {f"broker {node}": _release(found) for node, found in apis.items()}
    facts = RuleFacts(
        health=assess(seen),
        state=seen.state,
        log_dirs=log_dirs_of(seen),
        broker_count=len(seen.state.brokers.keys() | set(missing_brokers(seen))),
        reached=parse_address(client.reached).host,
        releases=releases,
        features={f"broker {node}": _features(found) for node, found in apis.items()},
    )
    if wanted & _OF_BROKERS:
        configs = _broker_configs(client, seen)
        facts = replace(facts, brokers=_brokers(configs, releases), differences=_differences(configs))
    if "topics" in wanted:
        facts = replace(facts, topics=_topics(client, seen))
    if "groups" in wanted:
        facts = replace(facts, groups=read_groups(client, watch_s))
    notes: list[str] = []
    if "zookeeper" in wanted and seen.quorum is None:
        if target.zookeeper:
            security, cluster_id = target.zookeeper_security, seen.state.cluster_id
            found = read_zookeeper(target.zookeeper, security, client.timeout_s, cluster_id)
            facts = replace(facts, zookeeper=found)
        else:
            notes.append(_no_address(facts))
    return facts, notes


def _release(found: BrokerApis | KctlError) -> Releases | None:
    return None if isinstance(found, KctlError) else parse_releases(release_of(found.versions))


def _features(found: BrokerApis | KctlError) -> tuple[Feature, ...] | KctlError:
    return found if isinstance(found, KctlError) else found.features


def log_dirs_of(seen: Facts) -> dict[int, Sequence[LogDir] | KctlError]:
    """Of each broker that there should be; a reason for those that are down or silent. Pure."""
    silent = {node: view for node, view in seen.views.items() if isinstance(view, KctlError)}
    down = {
        node: ConnectionFailed(f"broker {node} is down: its log dirs are not known") for node in missing_brokers(seen)
    }
    return {**silent, **seen.log_dirs, **down}


def _broker_configs(client: ClusterClient, seen: Facts) -> dict[int, list[Config] | KctlError]:
    """Of each broker that is up, by id; a reason for those that are down."""
    alive = {Resource.broker(node): node for node in sorted(seen.state.brokers)}
    found = describe_each(client, list(alive))
    configs = {node: found[resource] for resource, node in alive.items()}
    down = {
        node: ConnectionFailed(f"broker {node} is down: its settings are not known") for node in missing_brokers(seen)
    }
    return {**configs, **down}


def _brokers(
    configs: Mapping[int, list[Config] | KctlError], releases: Mapping[str, Releases | None]
) -> dict[str, Settings | KctlError]:
    found: dict[str, Settings | KctlError] = {}
    for node, each in configs.items():
        where = f"broker {node}"
        found[where] = each if isinstance(each, KctlError) else settings_of(where, each, releases.get(where))
    return found


def settings_of(where: str, configs: Collection[Config], releases: Releases | None) -> Settings:
    """A broker's settings, as it describes them. Pure."""
    given = frozenset(config.name for config in configs if not config.is_default)
    return Settings(where, {config.name: config.value for config in configs}, given, releases)


def _differences(configs: Mapping[int, list[Config] | KctlError]) -> list[Difference]:
    told = {f"broker {node}": each for node, each in configs.items() if not isinstance(each, KctlError)}
    return differences(told, leave_out=OF_ONE_BROKER)


def _topics(client: ClusterClient, seen: Facts) -> dict[str, Settings | KctlError]:
    """Also a reason for those that this user may not describe."""
    able = [node for node, view in seen.views.items() if not isinstance(view, KctlError)]
    found = fetch_topic_configs(client, seen.state.topics, able, names=TOPIC_CONFIGS, defaults=True)
    topics = {
        name: entries if isinstance(entries, KctlError) else topic_settings(name, entries)
        for name, entries in found.items()
    }
    if isinstance(seen.hidden, KctlError):
        topics["(hidden)"] = seen.hidden
    elif seen.hidden:
        topics["(hidden)"] = NotAuthorized(f"{hidden_line(seen.hidden)}: nothing is known of them")
    return topics


def topic_settings(name: str, entries: Collection[ConfigEntry]) -> Settings:
    """A topic's settings with defaults. Pure."""
    given = frozenset(entry.name for entry in entries if entry.source is ConfigSource.TOPIC)
    return Settings(name, {entry.name: entry.value for entry in entries}, given)


def _no_address(facts: RuleFacts) -> str:
    told = {
        each.text("zookeeper.connect") for each in (facts.brokers or {}).values() if not isinstance(each, KctlError)
    } - {None}
    where = f"; brokers have it at {' or '.join(sorted(map(str, told)))}" if told else ""
    return f"ZooKeeper was not looked at: give --zookeeper, or a context that has it{where}"
