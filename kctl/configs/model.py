"""A config of one resource, with the chain of values behind it."""

from __future__ import annotations

from dataclasses import dataclass

from kctl.cluster.config_resources import Kind
from kctl.cluster.topic_configs import ConfigSource

# The source that a value has which is set on the resource itself.
OWN_SOURCE: dict[Kind, ConfigSource] = {
    "topic": ConfigSource.TOPIC,
    "broker": ConfigSource.DYNAMIC_BROKER,
    "brokers": ConfigSource.DYNAMIC_DEFAULT_BROKER,
    "client-metrics": ConfigSource.CLIENT_METRICS,
    "group": ConfigSource.GROUP,
    "user": ConfigSource.USER,
    "users": ConfigSource.DEFAULT_USER,
    "client-id": ConfigSource.CLIENT_ID,
    "clients": ConfigSource.DEFAULT_CLIENT_ID,
    "ip": ConfigSource.IP,
    "ips": ConfigSource.DEFAULT_IP,
}


@dataclass(frozen=True, slots=True)
class Synonym:
    """A value that is set somewhere, under that place's name of the config. value is None when it is sensitive."""

    name: str
    value: str | None
    source: ConfigSource


@dataclass(frozen=True, slots=True)
class Config:
    """A config of one resource. value is None when it is not set, or sensitive (is_set tells which).

    source: None for one that is not set on `brokers`. read_only: a broker takes it from server.properties alone.
    synonyms: the chain of values, the one that holds first. documentation: only when it was asked for.
    """

    name: str
    value: str | None
    source: ConfigSource | None
    default: str | None
    type: str
    sensitive: bool
    read_only: bool
    synonyms: tuple[Synonym, ...]
    documentation: str | None = None

    @property
    def is_default(self) -> bool:
        return self.source in (None, ConfigSource.DEFAULT)

    def own(self, kind: Kind) -> Synonym | None:
        """What is set on the resource itself."""
        source = OWN_SOURCE[kind]
        for synonym in self.synonyms:
            if synonym.source is source:
                return synonym
        return Synonym(self.name, self.value, source) if self.source is source else None
