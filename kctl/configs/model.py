"""A config of one resource, with the chain of values behind it."""

from __future__ import annotations

from dataclasses import dataclass

from kctl.cluster.config_resources import Kind
from kctl.cluster.topic_configs import ConfigSource

# The source of a value that is set on the resource itself.
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
    """A value, its source, and the config's name there. value: None if sensitive."""

    name: str
    value: str | None
    source: ConfigSource


@dataclass(frozen=True, slots=True)
class Config:
    """A config of one resource.

    value: None if not set or sensitive. source: None if not set on `brokers`. read_only: only set in server.properties.
    synonyms: the chain of values, the effective one first. documentation: only if requested.
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
        """Return the value that is set on the resource itself."""
        source = OWN_SOURCE[kind]
        for synonym in self.synonyms:
            if synonym.source is source:
                return synonym
        return Synonym(self.name, self.value, source) if self.source is source else None
