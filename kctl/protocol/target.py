"""The cluster that a command talks to."""

from __future__ import annotations

from dataclasses import dataclass, field

from kctl.protocol.security import NO_SECURITY, Security


@dataclass(frozen=True, slots=True)
class Target:
    """The cluster that one command talks to. name: of the context, or the servers as entered.

    context: the context of these servers. remembered_id: the context's cluster id at its last connection.
    cluster_id, advertised (host:port of the brokers): known after a connection; Kafka 0.10.0 has no id.
    protected: of the context; for other protection of the cluster, see kctl.deploy.protection. controllers: the servers
    are KRaft controllers (--bootstrap-controller, KIP-919).
    """

    name: str
    bootstrap_servers: tuple[str, ...]
    zookeeper: str | None = None
    security: Security = NO_SECURITY
    protected: bool = False
    zookeeper_security: Security = NO_SECURITY
    controllers: bool = False
    context: str | None = field(default=None, compare=False)
    remembered_id: str | None = field(default=None, compare=False)
    cluster_id: str | None = field(default=None, compare=False)
    advertised: tuple[str, ...] = field(default=(), compare=False)
