"""Configs of topics that brokers have in another unit, too: retention.ms comes of log.retention.hours.

Brokers leave those out of a topic's chain of values while it has one of its own (ConfigHelper.configSynonyms): what
holds without it, a broker has to be asked for.
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
# The first that is set holds (KafkaConfig.getLogRetentionTimeMillis, logRollTimeMillis, logRollTimeJitterMillis).
_ON_BROKERS: Mapping[str, Mapping[str, int]] = {
    "retention.ms": {"log.retention.ms": 1, "log.retention.minutes": _MINUTE, "log.retention.hours": _HOUR},
    "segment.ms": {"log.roll.ms": 1, "log.roll.hours": _HOUR},
    "segment.jitter.ms": {"log.roll.jitter.ms": 1, "log.roll.jitter.hours": _HOUR},
}
HAS_OTHER_UNIT = frozenset(_ON_BROKERS)


def hides_what_is_behind(config: Config) -> bool:
    """Whether a topic's config has a value of its own, and brokers leave out what would hold without it. Pure."""
    return config.name in HAS_OTHER_UNIT and len(config.synonyms) == 1 and config.own("topic") is not None


def values_behind(client: ClusterClient, configs: Collection[Config]) -> dict[str, Synonym]:
    """By name, what holds without the topics' own values, for those of `configs` whose chain does not say so.

    One request to one broker, and none where all is told. Empty when no broker tells.
    """
    names = {config.name for config in configs if hides_what_is_behind(config)}
    return values_of_brokers(client, names) if names else {}


def values_of_brokers(client: ClusterClient, names: Collection[str]) -> dict[str, Synonym]:
    """What holds for topics that have no value of their own, by the topic's name of the config, as one broker has it.

    names: of HAS_OTHER_UNIT. Empty when no broker tells, or the user may not ask.
    """
    wanted = [key for name in names for key in _ON_BROKERS[name]]
    for node in sorted(client.metadata(()).brokers):
        broker = Resource.broker(node)
        answer = describe_each(client, [broker], names=wanted)[broker]
        if isinstance(answer, ConnectionFailed):
            continue  # another one has the same
        return {} if isinstance(answer, KctlError) else in_ms(by_name(answer), names)
    return {}


def in_ms(on_broker: Mapping[str, Config], names: Collection[str]) -> dict[str, Synonym]:
    """A broker's configs as those of topics. Pure."""
    found = {}
    for name in names:
        for key, factor in _ON_BROKERS[name].items():
            config = on_broker.get(key)
            if config is not None and config.value is not None and config.source is not None:
                number = int(config.value)
                found[name] = Synonym(key, str(number * factor if number >= 0 else number), config.source)
                break
    return found
