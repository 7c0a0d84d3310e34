"""The metadata quorum of a cluster that kctl set up, read from its controller listeners."""

from __future__ import annotations

from collections.abc import Collection

from kctl.deploy.layout import LOOPBACK, ClusterSpec
from kctl.protocol.quorum import Quorum, ask_controllers

_TIMEOUT_S = 2.0


def read_quorum(spec: ClusterSpec, node_ids: Collection[int], *, timeout_s: float = _TIMEOUT_S) -> Quorum | None:
    """Return the quorum as reported by its leader; None if the leader is not one of these nodes."""
    from kctl.base.address import Address
    from kctl.protocol.dialer import Dialer
    from kctl.protocol.security import Security

    servers = [Address(LOOPBACK, voter.port) for voter in spec.voters if voter.id in node_ids]
    return ask_controllers(servers, Dialer(Security(), controllers=True), timeout_s=timeout_s)
