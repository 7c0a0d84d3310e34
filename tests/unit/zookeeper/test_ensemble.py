"""The servers of an ensemble by its configuration: which there are, and which of them were not asked yet."""

from __future__ import annotations

import pytest

from kctl.base.address import Address
from kctl.base.deadline import Deadline
from kctl.protocol.security import Security
from kctl.zookeeper import ensemble
from kctl.zookeeper.ensemble import Member, members_of, read_ensemble, unasked
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
    """As QuorumPeer.QuorumServer writes them; the address for clients may be any of its own, or left out."""
    assert members_of(CONFIG) == [
        Member(1, "zk1", Address("zk1", 2181)),
        Member(2, "zk2.example.com", Address("zk2.example.com", 2182)),
        Member(3, "127.0.0.1", Address("10.0.0.3", 2183)),
        Member(4, "fd00::4", Address("fd00::4", 2184)),
        Member(5, "zk5", None),
        Member(6, "zk6", None),
    ]
    assert members_of("") == members_of("version=0\n\x00server.x=\n") == []


def test_a_server_is_not_asked_under_two_names() -> None:
    members = [Member(1, "127.0.0.1", Address("127.0.0.1", 2181)), Member(2, "127.0.0.1", Address("127.0.0.1", 2182))]
    assert unasked(members, [Address("localhost", 2181)], Deadline(5)) == [Address("127.0.0.1", 2182)]
    assert unasked(members, [Address("no-such-host.invalid", 2181), *(m.client for m in members if m.client)],
                   Deadline(5)) == []  # fmt: skip


@pytest.mark.parametrize(
    ("client", "shown", "said"), [(Address("b", 2181), ["a:2181", "b:2181"], False), (None, ["a:2181"], True)]
)
def test_the_others_are_asked_as_well_or_told(
    client: Address | None, shown: list[str], said: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    members = [Member(1, "a", Address("a", 2181)), Member(2, "b", client)]
    monkeypatch.setattr(ensemble, "find_members", lambda *_: members)
    for name in ("read_servers", "ask_each"):
        monkeypatch.setattr(ensemble, name, lambda asked, *_: [Server(str(each), healthy=True) for each in asked])
    found = read_ensemble([Address("a", 2181)], 5, Security())
    assert [server.server for server in found.servers] == [str(each) for each in found.addresses] == shown
    assert (found.doubt is not None) is said
    assert not said or "the ensemble has 2 servers (1 on a, 2 on b), and only 1 shown here" in str(found.doubt)
