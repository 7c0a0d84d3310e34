"""Why the metadata quorum has no leader: which controllers of the configured ones do not respond."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from kctl.base.address import Address, parse_address, parse_servers
from kctl.base.text import counted
from kctl.deploy.config.quorum_settings import SERVERS_KEY, VOTERS_KEY
from kctl.errors import KctlError, Reason, Refused
from kctl.protocol.quorum import responding_controllers
from kctl.quorum.node_settings import read_settings

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient

_ASK_S = 3.0
_VOTER = re.compile(r"\d+@")


class NoLeader(Refused):
    """The metadata quorum has no leader."""


def no_leader(client: ClusterClient) -> NoLeader:
    """Return the error for a quorum without a leader, with the controllers that do not respond. Never raises."""
    hint = "start controllers until a majority of the voters is up"
    try:
        servers = _servers(client)
    except KctlError:
        servers = []
    silent = _silent(client, servers)
    if not servers:
        return NoLeader("the metadata quorum has no leader", hint=hint, reason=Reason.NOT_READY)
    if not silent:
        return NoLeader(
            f"the metadata quorum has no leader, although {_all(servers)} respond",
            hint="an election may be in progress: try again; otherwise see the logs of the controllers",
            reason=Reason.NOT_READY,
        )
    return NoLeader(
        f"the metadata quorum has no leader: {len(silent)} of {counted(len(servers), 'controller')} not responding"
        f" ({', '.join(map(str, silent))})",
        hint=hint,
        details={"not_responding": [str(server) for server in silent]},
        reason=Reason.NOT_READY,
    )


def _all(servers: list[Address]) -> str:
    return f"all {counted(len(servers), 'controller')}" if len(servers) > 1 else "its controller"


def _silent(client: ClusterClient, servers: list[Address]) -> list[Address]:
    from kctl.protocol.dialer import Dialer

    if not servers:
        return []
    dialer = Dialer(client.target.security, controllers=True)
    live = responding_controllers(dict(enumerate(servers)), dialer, timeout_s=_ASK_S)
    return [server for number, server in enumerate(servers) if number not in live]


def _servers(client: ClusterClient) -> list[Address]:
    """Return the controllers that the first node's own settings name: nodes report these without a leader."""
    for settings in read_settings(client).values():
        if not isinstance(settings, KctlError):
            text = settings.get(VOTERS_KEY) or settings.get(SERVERS_KEY) or ""
            return [parse_address(each) for each in servers_in(text)]
    return []


def servers_in(text: str) -> tuple[str, ...]:
    """Return "host:port" of each entry of controller.quorum.voters or .bootstrap.servers, in order."""
    plain = ",".join(_VOTER.sub("", each.strip(), count=1) for each in text.split(",") if each.strip())
    return parse_servers(plain) if plain else ()
