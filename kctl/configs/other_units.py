"""Topic configs that brokers also have in other units: retention.ms defaults to log.retention.hours.

Brokers omit these from the synonyms of a topic config that is set on the topic (ConfigHelper.configSynonyms), so the
inherited value is read from a broker.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from kctl.cluster.config_resources import Resource
from kctl.configs.describe import by_name, describe_each
from kctl.configs.model import Config, Synonym
from kctl.errors import ConnectionFailed, KctlError

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient

_MINUTE, _HOUR = 60_000, 3_600_000
# The first that is set applies (KafkaConfig.getLogRetentionTimeMillis, logRollTimeMillis, logRollTimeJitterMillis).
_ON_BROKERS: Mapping[str, Mapping[str, int]] = {
    "retention.ms": {"log.retention.ms": 1, "log.retention.minutes": _MINUTE, "log.retention.hours": _HOUR},
    "segment.ms": {"log.roll.ms": 1, "log.roll.hours": _HOUR},
    "segment.jitter.ms": {"log.roll.jitter.ms": 1, "log.roll.jitter.hours": _HOUR},
}
HAS_OTHER_UNIT = frozenset(_ON_BROKERS)


def lacks_inherited_value(config: Config) -> bool:
    """Return True if a topic config is set on the topic, and brokers omit the value that it overrides. Pure."""
    return config.name in HAS_OTHER_UNIT and len(config.synonyms) == 1 and config.own("topic") is not None


def inherited_values(client: ClusterClient, configs: Collection[Config]) -> dict[str, Synonym]:
    """Return the inherited values of the `configs` whose synonyms lack them, by name.

    One request to one broker, none if no value is missing. Empty if no broker responds.
    """
    names = {config.name for config in configs if lacks_inherited_value(config)}
    return values_of_brokers(client, names) if names else {}


def values_of_brokers(client: ClusterClient, names: Collection[str]) -> dict[str, Synonym]:
    """Return the values that topics inherit from one broker, by the name of the topic config.

    names: of HAS_OTHER_UNIT. Empty if no broker responds, or the user may not describe brokers.
    """
    keys = [key for name in names for key in _ON_BROKERS[name]]
    for node in sorted(client.metadata(()).brokers):
        broker = Resource.broker(node)
        answer = describe_each(client, [broker], names=keys)[broker]
        if isinstance(answer, ConnectionFailed):
            continue  # any broker will do
        return {} if isinstance(answer, KctlError) else in_ms(by_name(answer), names)
    return {}


def in_ms(on_broker: Mapping[str, Config], names: Collection[str]) -> dict[str, Synonym]:
    """Return broker configs as topic configs. Pure."""
    values = {}
    for name in names:
        for key, factor in _ON_BROKERS[name].items():
            config = on_broker.get(key)
            if config is not None and config.value is not None and config.source is not None:
                number = int(config.value)
                values[name] = Synonym(key, str(number * factor if number >= 0 else number), config.source)
                break
    return values
