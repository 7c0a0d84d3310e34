"""The cluster that a command talks to."""

from __future__ import annotations

from dataclasses import dataclass, field

from kctl.protocol.security import NO_SECURITY, Security


@dataclass(frozen=True, slots=True)
class Target:
    """The cluster that one command talks to. name: the context's, or the servers as given.

    context: the one whose servers these are. remembered_id: the id that this context's cluster had. cluster_id and
    advertised (host:port of the brokers) are known once a client has connected; Kafka 0.10.0 has no id.
    protected: the context is; kctl.deploy.protection says what else protects the cluster.
    """

    name: str
    bootstrap_servers: tuple[str, ...]
    zookeeper: str | None = None
    security: Security = NO_SECURITY
    protected: bool = False
    zookeeper_security: Security = NO_SECURITY
    context: str | None = field(default=None, compare=False)
    remembered_id: str | None = field(default=None, compare=False)
    cluster_id: str | None = field(default=None, compare=False)
    advertised: tuple[str, ...] = field(default=(), compare=False)
