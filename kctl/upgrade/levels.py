"""Feature levels (KRaft, KIP-584) that decide whether a rollback is possible."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from kctl.cluster.api_versions import BrokerApis, fetch_api_versions
from kctl.deploy import store
from kctl.errors import ConnectionFailed, KctlError, Reason, Refused
from kctl.features.facts import read_levels
from kctl.restart.own_members import live_cluster
from kctl.upgrade.record import current_upgrade

if TYPE_CHECKING:
    from kctl.deploy.host import Host
    from kctl.protocol.client import ClusterClient


def highest_levels(client: ClusterClient) -> dict[str, int]:
    """Return the highest level of each feature that all brokers support; {} with ZooKeeper.

    Raises the error of a broker that does not respond: the levels would be wrong.
    """
    levels: dict[str, int] = {}
    for apis in _apis(client):
        for each in apis.features:
            if each.max_version is not None:
                levels[each.feature] = min(each.max_version, levels.get(each.feature, each.max_version))
    return levels


def _apis(client: ClusterClient) -> list[BrokerApis]:
    answers = []
    for answer in fetch_api_versions(client, client.metadata(()).brokers).values():
        if isinstance(answer, KctlError):
            raise answer
        answers.append(answer)
    return answers


def raised_features(finalized: Mapping[str, int], max_levels: Mapping[str, int]) -> list[str]:
    """Return the features, as text, whose level the previous release does not support. Pure."""
    return [
        f"{feature} is {level}, but the previous release supports at most {max_levels.get(feature, 0)}"
        for feature, level in sorted(finalized.items())
        if level > max_levels.get(feature, 0)
    ]


def check_way_back(host: Host, name: str) -> None:
    """Raise Refused if a rollback is no longer possible: the upgrade, or a part of it, was finalized.

    If no broker responds, only the record is checked, which has a finalization by kctl, but not by other tools. One
    broker that responds is enough: a failed upgrade leaves others that are down and still listed.
    """
    spec = store.load(host, name)
    upgrade = current_upgrade(spec)
    problems = [f"{name} may use the inter-broker protocol of {upgrade.to.version}" for name in upgrade.raised]
    if spec.uses_kraft:
        levels: Mapping[str, int] = {}
        with suppress(ConnectionFailed), live_cluster(spec) as cluster:
            levels = read_levels(cluster.client())
        problems += raised_features(levels, upgrade.max_levels)
        if not levels and upgrade.phase == "finalizing":
            problems.append("the finalization has started, and no broker reports the feature levels")
    if problems:
        raise Refused(
            f"cluster {spec.name} cannot return to {spec.kafka_version}: {'; '.join(problems)}",
            hint=f"finish the upgrade with `kctl cluster finalize {spec.name}`",
            details={"problems": problems},
            reason=Reason.IMPOSSIBLE,
        )
