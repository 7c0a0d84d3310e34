"""Read the facts that the selected rules need from a live cluster, in as few requests as possible."""

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
from kctl.doctor.rule_facts import EffectiveSettings, RuleFacts
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

_BROKER_CONFIG_PARTS = frozenset({"brokers", "differences"})


def collect(
    client: ClusterClient, target: Target, parts: Collection[str], *, watch_s: float = 0.0
) -> tuple[RuleFacts, list[str]]:
    """Read the requested fields of RuleFacts. Return them with notes about what was not checked.

    An unreadable field holds its KctlError. watch_s: how long to watch the groups for rebalances. Raises subclasses of
    ConnectionFailed if no broker answers the metadata request.
    """
    health_facts = collect_facts(client)
    parts = set(parts)
    apis = fetch_api_versions(client, health_facts.state.brokers)
    releases = {f"broker {node}": _releases(answer) for node, answer in apis.items()}
    facts = RuleFacts(
        health=assess(health_facts),
        state=health_facts.state,
        log_dirs=log_dirs_of(health_facts),
        broker_count=len(health_facts.state.brokers.keys() | set(missing_brokers(health_facts))),
        bootstrap_host=parse_address(client.reached).host,
        releases=releases,
        features={f"broker {node}": _features(answer) for node, answer in apis.items()},
    )
    if parts & _BROKER_CONFIG_PARTS:
        configs = _broker_configs(client, health_facts)
        facts = replace(facts, brokers=_broker_settings(configs, releases), differences=_differences(configs))
    if "topics" in parts:
        facts = replace(facts, topics=_topics(client, health_facts))
    if "groups" in parts:
        facts = replace(facts, groups=read_groups(client, watch_s))
    notes: list[str] = []
    if "zookeeper" in parts and health_facts.quorum is None:
        if target.zookeeper:
            security, cluster_id = target.zookeeper_security, health_facts.state.cluster_id
            zookeeper = read_zookeeper(target.zookeeper, security, client.timeout_s, cluster_id)
            facts = replace(facts, zookeeper=zookeeper)
        else:
            notes.append(_no_zookeeper_note(facts))
    return facts, notes


def _releases(answer: BrokerApis | KctlError) -> Releases | None:
    return None if isinstance(answer, KctlError) else parse_releases(release_of(answer.versions))


def _features(answer: BrokerApis | KctlError) -> tuple[Feature, ...] | KctlError:
    return answer if isinstance(answer, KctlError) else answer.features


def log_dirs_of(health_facts: Facts) -> dict[int, Sequence[LogDir] | KctlError]:
    """Return the log dirs of each broker; an error for brokers that are down or do not answer. Pure."""
    silent = {node: view for node, view in health_facts.views.items() if isinstance(view, KctlError)}
    down = {
        node: ConnectionFailed(f"broker {node} is down: its log dirs are unknown")
        for node in missing_brokers(health_facts)
    }
    return {**silent, **health_facts.log_dirs, **down}


def _broker_configs(client: ClusterClient, health_facts: Facts) -> dict[int, list[Config] | KctlError]:
    """Return the configs of each broker by id; an error for brokers that are down."""
    resources = {Resource.broker(node): node for node in sorted(health_facts.state.brokers)}
    answers = describe_each(client, list(resources))
    configs = {node: answers[resource] for resource, node in resources.items()}
    down = {
        node: ConnectionFailed(f"broker {node} is down: its settings are unknown")
        for node in missing_brokers(health_facts)
    }
    return {**configs, **down}


def _broker_settings(
    configs: Mapping[int, list[Config] | KctlError], releases: Mapping[str, Releases | None]
) -> dict[str, EffectiveSettings | KctlError]:
    settings: dict[str, EffectiveSettings | KctlError] = {}
    for node, answer in configs.items():
        owner = f"broker {node}"
        settings[owner] = answer if isinstance(answer, KctlError) else settings_of(owner, answer, releases.get(owner))
    return settings


def settings_of(owner: str, configs: Collection[Config], releases: Releases | None) -> EffectiveSettings:
    """Return the settings that a broker describes. Pure."""
    explicit = frozenset(config.name for config in configs if not config.is_default)
    return EffectiveSettings(owner, {config.name: config.value for config in configs}, explicit, releases)


def _differences(configs: Mapping[int, list[Config] | KctlError]) -> list[Difference]:
    readable = {f"broker {node}": answer for node, answer in configs.items() if not isinstance(answer, KctlError)}
    return differences(readable, leave_out=OF_ONE_BROKER)


def _topics(client: ClusterClient, health_facts: Facts) -> dict[str, EffectiveSettings | KctlError]:
    """Return the settings of each topic; an error for topics that the user may not describe."""
    live_brokers = [node for node, view in health_facts.views.items() if not isinstance(view, KctlError)]
    answers = fetch_topic_configs(client, health_facts.state.topics, live_brokers, names=TOPIC_CONFIGS, defaults=True)
    topics = {
        name: entries if isinstance(entries, KctlError) else topic_settings(name, entries)
        for name, entries in answers.items()
    }
    if isinstance(health_facts.hidden, KctlError):
        topics["(hidden)"] = health_facts.hidden
    elif health_facts.hidden:
        topics["(hidden)"] = NotAuthorized(f"{hidden_line(health_facts.hidden)}: not checked")
    return topics


def topic_settings(name: str, entries: Collection[ConfigEntry]) -> EffectiveSettings:
    """Return the settings of a topic, defaults included. Pure."""
    explicit = frozenset(entry.name for entry in entries if entry.source is ConfigSource.TOPIC)
    return EffectiveSettings(name, {entry.name: entry.value for entry in entries}, explicit)


def _no_zookeeper_note(facts: RuleFacts) -> str:
    addresses = {
        each.text("zookeeper.connect") for each in (facts.brokers or {}).values() if not isinstance(each, KctlError)
    } - {None}
    brokers_use = f"; the brokers use {' or '.join(sorted(map(str, addresses)))}" if addresses else ""
    return f"ZooKeeper was not checked: set its address with --zookeeper or in the context{brokers_use}"
