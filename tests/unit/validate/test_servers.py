"""How zookeeper-loss reaches the servers of others: by commands, each of them, and by their own answers."""

from __future__ import annotations

import threading
from typing import Any
from unittest import mock

import pytest

from kctl.base.address import Address
from kctl.errors import ConnectionRefused, NotFound, OperationFailed, Refused, TimedOut
from kctl.protocol.security import Security
from kctl.protocol.target import Target
from kctl.restart.hooks import parse_hooks
from kctl.validate import servers as servers_module
from kctl.validate.servers import HookZookeepers, LocalServers, by_hooks
from kctl.zookeeper.ensemble import Ensemble
from kctl.zookeeper.servers import Server
from kctl_testing import within

FILE = "zookeeper: {kill: [ls, '{host}'], start: [ls, '{port}']}\ntimeout: 90s\n"
NAMES = ("zk1:2181", "zk2:2182")
TARGET = Target("prod", ("h:1",), "zk1:2181/kafka")


class Servers:
    """Serve from the start on, unless they are `dead`; what is done to them is in `done`."""

    def __init__(self) -> None:
        self.done: list[tuple[str, ...]] = []
        self.up: set[str] = set()
        self.dead: set[str] = set()

    def run(self, argv: tuple[str, ...], does: str, limit_s: float, **_: Any) -> None:
        self.done.append((*argv, does, f"{limit_s:g}"))
        act, name = does.split(" ZooKeeper ")
        (self.up.add if act == "start" else self.up.discard)(name)

    def ask(self, addresses: list[Address], *_: Any) -> list[Server]:
        return [Server(str(each), healthy=str(each) in self.up - self.dead) for each in addresses]


@pytest.fixture
def servers(monkeypatch: pytest.MonkeyPatch) -> Servers:
    made = Servers()
    monkeypatch.setattr(servers_module, "read_each", made.ask)
    monkeypatch.setattr(servers_module, "_RETRY_S", 0.0)
    return made


def control(servers: Servers, text: str = FILE, names: tuple[str, ...] = NAMES) -> HookZookeepers:
    return HookZookeepers(parse_hooks(text, source="f"), Security(), names, run=servers.run)


def test_each_server_has_its_command(servers: Servers) -> None:
    servers.up = set(NAMES)
    made = control(servers)
    made.kill(NAMES)
    assert made.serving() == []
    made.start(NAMES, timeout_s=60)
    assert made.serving() == [*NAMES]
    assert sorted(servers.done[:2]) + sorted(servers.done[2:]) == [
        ("ls", "zk1", "kill ZooKeeper zk1:2181", "90"), ("ls", "zk2", "kill ZooKeeper zk2:2182", "90"),
        ("ls", "2181", "start ZooKeeper zk1:2181", "60"), ("ls", "2182", "start ZooKeeper zk2:2182", "60"),
    ]  # fmt: skip


def test_a_start_that_waits_for_the_others_gets_them(servers: Servers) -> None:
    """One alone of several has no quorum, and a command may wait for that."""
    both = threading.Barrier(2, timeout=within(10))

    def run(*args: Any, **_: Any) -> None:
        servers.run(*args)
        both.wait()

    made = HookZookeepers(parse_hooks(FILE, source="f"), Security(), NAMES, run=run)
    made.start(NAMES, timeout_s=60)
    assert len(servers.done) == 2


def test_a_start_is_one_when_all_serve(servers: Servers) -> None:
    servers.dead = {"zk2:2182"}
    with pytest.raises(TimedOut, match=r"ZooKeeper zk2:2182 did not serve within 0\.01 s of its start"):
        control(servers).start(NAMES, timeout_s=0.01)


def test_what_a_journal_names_is_started(servers: Servers) -> None:
    """The ensemble is down, and tells nothing."""
    control(servers, names=()).start(["zk2:2182"], timeout_s=60)
    assert [row[2] for row in servers.done] == ["start ZooKeeper zk2:2182"]
    with pytest.raises(Refused, match="f has no ZooKeeper commands"):
        control(servers, "stop: [ls]\n", ()).start(["zk2:2182"], timeout_s=60)


def test_a_run_with_other_means_cannot_start_them(servers: Servers) -> None:
    """Else a node's name of kctl's would go into somebody's ssh."""
    with pytest.raises(Refused, match="zookeeper-1 was killed by a signal; omit --hooks"):
        control(servers, names=()).start(["zookeeper-1"], timeout_s=60)
    own = LocalServers(mock.Mock(), ())
    with pytest.raises(Refused, match="zk1:2181 was killed by hooks; use the same --hooks"):
        own.start(["zk1:2181"], timeout_s=60)
    assert servers.done == []


def test_a_command_that_fails_says_so() -> None:
    made = HookZookeepers(parse_hooks("zookeeper: {kill: ['false']}\n", source="f"), Security(), NAMES)
    with pytest.raises(OperationFailed, match=r"kill ZooKeeper zk1:2181 \(false\) failed with exit code 1"):
        made.kill(NAMES)


@pytest.mark.parametrize(
    ("text", "target", "ensemble", "expected"),
    [
        ("stop: [ls]\n", TARGET, None, "f has no ZooKeeper commands (zookeeper: with kill and start)"),
        (FILE, Target("prod", ("h:1",)), None, "its address is unknown"),  # KRaft, too
        (FILE, TARGET, Ensemble([], [], "the ensemble has 3 servers"), "the ensemble has 3 servers"),
        (FILE, TARGET, Ensemble([], [Address("zk1", 2181), Address("zk2", 2182)], None), NAMES),
        (FILE, TARGET, ConnectionRefused("no"), NAMES[:1]),  # what comes next refuses it
    ],
)
def test_all_servers_of_the_ensemble_or_none(text: str, target: Target, ensemble: Any, expected: Any) -> None:
    with mock.patch.object(servers_module, "read_ensemble", side_effect=[ensemble]):
        found = by_hooks(parse_hooks(text, source="f"), target)
    if isinstance(found, str):
        assert expected in found
    else:
        assert found.names == expected


def test_a_server_that_is_none_of_the_ensemble() -> None:
    hooks = parse_hooks(FILE.replace("start:", "servers: {zk9: {kill: [ls]}}, start:"), source="f")
    with (
        mock.patch.object(servers_module, "read_ensemble", side_effect=[Ensemble([], [Address("zk1", 2181)], None)]),
        pytest.raises(NotFound, match="ZooKeeper zk9:2181, which is not in the ensemble"),
    ):
        by_hooks(hooks, TARGET)
