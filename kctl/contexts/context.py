"""A named cluster, as the config file has it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from kctl.protocol.security import NO_SETTINGS, SecuritySettings


@dataclass(frozen=True, slots=True)
class Context:
    """One entry of the config file. cluster_dir: set for a cluster that kctl set up on this machine. cluster_id: of
    the cluster that answered last; not a setting."""

    bootstrap_servers: tuple[str, ...]
    zookeeper: str | None = None
    security: SecuritySettings = NO_SETTINGS
    protected: bool = False
    cluster_dir: str | None = None
    zookeeper_security: SecuritySettings = NO_SETTINGS
    cluster_id: str | None = None

    def same_settings(self, other: Context) -> bool:
        """Whether both have the same settings, apart from the cluster id."""
        return replace(self, cluster_id=None) == replace(other, cluster_id=None)

    def in_place_of(self, before: Context | None) -> Context:
        """This entry, with what is known of the cluster if `before` has the same servers."""
        if before is None or set(self.bootstrap_servers) != set(before.bootstrap_servers):
            return self
        return replace(self, cluster_id=self.cluster_id or before.cluster_id)
