"""Ensemble configuration: its members, and the members that are not listed by the user."""

from __future__ import annotations

import pytest

from kctl.base.address import Address
from kctl.base.deadline import Deadline
from kctl.protocol.security import Security
from kctl.zookeeper import ensemble
from kctl.zookeeper.ensemble import EnsembleMember, members_of, read_ensemble, unlisted_addresses
from kctl.zookeeper.servers import Server

CONFIG = """server.1=zk1:2888:3888:participant;0.0.0.0:2181
server.2=zk2.example.com:2888:3888;2182
server.3=127.0.0.1:2888:3888:observer;10.0.0.3:2183
server.4=[fd00::4]:2888:3888:participant;[::]:2184
server.5=zk5:2888:3888|zk5b:2888:3888:participant
server.6=zk6:2888:3888:participant;0.0.0.0:no
version=100000000
"""


def test_members() -> None:
    """The format of QuorumPeer.QuorumServer; the client address can be a wildcard or missing."""
    assert members_of(CONFIG) == [
        EnsembleMember(1, "zk1", Address("zk1", 2181)),
        EnsembleMember(2, "zk2.example.com", Address("zk2.example.com", 2182)),
        EnsembleMember(3, "127.0.0.1", Address("10.0.0.3", 2183)),
        EnsembleMember(4, "fd00::4", Address("fd00::4", 2184)),
        EnsembleMember(5, "zk5", None),
        EnsembleMember(6, "zk6", None),
    ]
    assert members_of("") == members_of("version=0\n\x00server.x=\n") == []


def test_server_is_not_read_under_two_names() -> None:
    members = [
        EnsembleMember(1, "127.0.0.1", Address("127.0.0.1", 2181)),
        EnsembleMember(2, "127.0.0.1", Address("127.0.0.1", 2182)),
    ]
    assert unlisted_addresses(members, [Address("localhost", 2181)], Deadline(5)) == [Address("127.0.0.1", 2182)]
    others = [m.client for m in members if m.client]
    assert unlisted_addresses(members, [Address("no-such-host.invalid", 2181), *others], Deadline(5)) == []


@pytest.mark.parametrize(
    ("client", "servers", "has_warning"), [(Address("b", 2181), ["a:2181", "b:2181"], False), (None, ["a:2181"], True)]
)
def test_unlisted_members_are_read_or_reported(
    client: Address | None, servers: list[str], has_warning: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    members = [EnsembleMember(1, "a", Address("a", 2181)), EnsembleMember(2, "b", client)]
    monkeypatch.setattr(ensemble, "find_members", lambda *_: members)
    for name in ("read_servers", "read_each"):
        monkeypatch.setattr(
            ensemble, name, lambda addresses, *_: [Server(str(each), healthy=True) for each in addresses]
        )
    found = read_ensemble([Address("a", 2181)], 5, Security())
    assert [server.server for server in found.servers] == [str(each) for each in found.addresses] == servers
    assert (found.warning is not None) is has_warning
    assert not has_warning or "the ensemble has 2 servers (1 on a, 2 on b), but kctl found only 1" in str(found.warning)
