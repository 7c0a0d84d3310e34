"""Warn about what raising eligible.leader.replicas.version does to min.insync.replicas.

The active controller then removes the values of single brokers. If no value is set for all brokers, it sets the value
in its own server.properties, or 1 if there is none (ConfigurationControlManager.maybeGenerateElrSafetyRecords, 4.0).
Dedicated controllers usually have no such setting: 2 in the brokers' server.properties becomes 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kctl.base.text import some_of
from kctl.cluster.config_resources import Resource
from kctl.cluster.topic_configs import ConfigSource
from kctl.configs.describe import by_name, describe_each
from kctl.errors import KctlError

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient

MIN_ISR = "min.insync.replicas"


@dataclass(frozen=True, slots=True)
class BrokerMinIsr:
    """min.insync.replicas of a broker. own: dynamic, for this broker; for_all: dynamic, for all brokers."""

    value: str | None
    own: str | None
    for_all: str | None


def min_isr_warnings(client: ClusterClient) -> tuple[str, ...]:
    """Return warnings about what changes in this cluster when eligible leader replicas are enabled."""
    resources = [Resource.broker(node) for node in client.metadata(()).brokers]
    values: dict[int, BrokerMinIsr] = {}
    unreadable: list[str] = []
    for resource, configs in describe_each(client, resources, names=[MIN_ISR]).items():
        if isinstance(configs, KctlError):
            unreadable.append(f"{resource}: {configs.message}")
            continue
        config = by_name(configs).get(MIN_ISR)
        if config is not None:
            by_source = {synonym.source: synonym.value for synonym in config.synonyms}
            own, for_all = (
                by_source.get(ConfigSource.DYNAMIC_BROKER),
                by_source.get(ConfigSource.DYNAMIC_DEFAULT_BROKER),
            )
            values[int(resource.name)] = BrokerMinIsr(config.value, own, for_all)
    missing = [f"{MIN_ISR} could not be read from {some_of(unreadable)}"] if unreadable else []
    return (*warnings_for(values), *missing)


def warnings_for(values: Mapping[int, BrokerMinIsr]) -> Iterable[str]:
    """Return the warnings for the values of the brokers. Pure."""
    removed = [f"{each.own} on broker {node}" for node, each in sorted(values.items()) if each.own is not None]
    if removed:
        yield f"{MIN_ISR} is removed from single brokers: {some_of(removed)}"
    above_one = sorted({each.value for each in values.values() if each.value and each.value != "1"}, key=_by_number)
    if above_one and not any(each.for_all is not None for each in values.values()):
        yield (
            f"{MIN_ISR} is {' and '.join(above_one)}, but not set for all brokers: the active controller will set "
            "it for all brokers to the value in its own server.properties, or to 1 if there is none; set it first: "
            f"`kctl config set brokers {MIN_ISR}={above_one[-1]}`"
        )


def _by_number(text: str) -> tuple[int, str]:
    return len(text), text
