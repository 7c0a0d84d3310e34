"""A context: a named cluster in the config file."""

from __future__ import annotations

from dataclasses import dataclass, replace

from kctl.protocol.security import NO_SETTINGS, SecuritySettings


@dataclass(frozen=True, slots=True)
class Context:
    """An entry of the config file.

    cluster_dir: set for a cluster that kctl created on this machine. cluster_id: id of the cluster at the last
    connection; not a setting.
    """

    bootstrap_servers: tuple[str, ...]
    zookeeper: str | None = None
    security: SecuritySettings = NO_SETTINGS
    protected: bool = False
    cluster_dir: str | None = None
    zookeeper_security: SecuritySettings = NO_SETTINGS
    cluster_id: str | None = None

    def same_settings(self, other: Context) -> bool:
        """Return True if both have the same settings, ignoring the cluster id."""
        return replace(self, cluster_id=None) == replace(other, cluster_id=None)

    def in_place_of(self, before: Context | None) -> Context:
        """Return this entry, with the cluster id of `before` if both have the same servers."""
        if before is None or set(self.bootstrap_servers) != set(before.bootstrap_servers):
            return self
        return replace(self, cluster_id=self.cluster_id or before.cluster_id)
