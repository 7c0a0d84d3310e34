"""Stopping combined KRaft nodes: the last one cannot end without the others."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from kctl.deploy import stop as stop_module
from kctl.deploy.layout_request import LayoutRequest, build_spec
from kctl.deploy.nodes import NodeProcess
from kctl.deploy.process import ProcessIdentity
from kctl.deploy.stop import stop
from kctl.errors import TimedOut


class Machine:
    """Three processes, of which some ignore SIGTERM."""

    def __init__(self, *hanging: int) -> None:
        self.hanging, self.live, self.signals = hanging, {1, 2, 3}, []  # type: ignore[var-annotated]

    def is_running(self, identity: ProcessIdentity) -> bool:
        return identity.pid in self.live

    def signal(self, identity: ProcessIdentity, number: signal.Signals) -> None:
        self.signals.append((identity.pid, number))
        if number is signal.SIGKILL or (number is signal.SIGTERM and identity.pid not in self.hanging):
            self.live.discard(identity.pid)


@pytest.fixture
def spec(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    made = build_spec(
        LayoutRequest(name="c", layout="kraft-combined"), directory=tmp_path, base_port=9000, kafka_version="4.4.0",
        kafka_libs=tmp_path, created_at="",
    )  # fmt: skip
    running = [NodeProcess(node, mock.Mock(spec=ProcessIdentity, pid=node.id), None) for node in made.nodes]
    monkeypatch.setattr(stop_module, "observe", lambda _host, _spec: running)
    monkeypatch.setattr(stop_module, "note_stopped", lambda *_: None)
    monkeypatch.setattr(stop_module, "read_quorum", lambda *_: mock.Mock(leader_id=1))
    monkeypatch.setattr(stop_module, "_LAST_NODES_S", 0.0)
    return made


def test_the_last_node_is_killed(spec: Any) -> None:
    machine: Any = Machine(2)
    result = stop(machine, spec)
    assert (result.stopped, result.killed) == (("broker-1", "broker-3"), ("broker-2",))


def test_a_majority_is_not_killed(spec: Any) -> None:
    machine: Any = Machine(2, 3)
    with pytest.raises(TimedOut, match="broker-2, broker-3 of cluster c did not stop within"):
        stop(machine, spec, timeout_s=0.2)
    assert signal.SIGKILL not in {number for _, number in machine.signals}


def test_a_single_node_of_several_is_not_killed(spec: Any) -> None:
    """The others are up, and their controllers release it."""
    machine: Any = Machine(2)
    with pytest.raises(TimedOut):
        stop(machine, spec, only=["broker-2"], timeout_s=0.2)
    assert machine.live == {1, 2, 3}


def test_without_an_active_controller_nothing_is_killed(spec: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stop_module, "read_quorum", lambda *_: None)
    machine: Any = Machine(2)
    with pytest.raises(TimedOut, match="the metadata quorum has no active controller"):
        stop(machine, spec, timeout_s=0.2)
