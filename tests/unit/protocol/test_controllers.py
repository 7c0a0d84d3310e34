"""What is known of a KRaft cluster whose brokers do not forward requests: by their settings, and by the controllers."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from fake_cluster import FakeCluster
from kctl.base.address import Address
from kctl.cluster.controller import of_quorum
from kctl.errors import CertificateRejected, ConnectionRefused, ConnectionTimedOut, NotHealthy
from kctl.protocol import controllers
from kctl.protocol.active_controller import describe_quorum
from kctl.protocol.codes import ApiKey
from kctl.protocol.controllers import controller_settings
from kctl.protocol.quorum import Quorum, QuorumNode
from kctl_testing import closed_port

LATE = ConnectionTimedOut("the broker did not respond to DescribeQuorum within 2.5 s")


def _fake(**settings: str) -> FakeCluster:
    fake = FakeCluster()
    fake.versions[ApiKey.DESCRIBE_QUORUM] = 2
    fake.always("DescribeQuorum", LATE)
    rows = [SimpleNamespace(name=name.replace("_", "."), value=value) for name, value in settings.items()]
    fake.always("DescribeConfigs", SimpleNamespace(results=[SimpleNamespace(configs=rows)]))
    return fake


@pytest.fixture
def no_broker_forwards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(controllers, "_ask_other_brokers", lambda _client: None)


def test_settings_with_and_without_ids() -> None:
    fake = _fake(
        controller_quorum_voters="1@a:9093,2@b:9093, x@c:9093,2@no-port:0",
        controller_quorum_bootstrap_servers="d:9093,a:9093",
        controller_listener_names="CONTROLLER,OTHER",
    )
    settings = controller_settings(fake.client)
    assert settings is not None
    assert {str(server): node for server, node in settings.servers.items()} == {
        "a:9093": 1, "b:9093": 2, "c:9093": None, "d:9093": None,
    }  # fmt: skip
    assert settings.nodes == (QuorumNode(1, "CONTROLLER", "a", 9093), QuorumNode(2, "CONTROLLER", "b", 9093))
    assert not settings.migrating


@pytest.mark.usefixtures("no_broker_forwards")
def test_all_controllers_are_down() -> None:
    port = closed_port()
    quorum = describe_quorum(_fake(controller_quorum_voters=f"7@127.0.0.1:{port}").client)
    assert quorum is not None
    assert quorum.no_controller == f"no active controller: no controller responds (127.0.0.1:{port})"
    shown = of_quorum(quorum)
    assert (shown.controller_id, shown.epoch, shown.high_watermark) == (None, None, None)
    assert [(row.node_id, row.role, row.port) for row in shown.voters] == [(7, "controller", port)]
    with pytest.raises(NotHealthy, match="no active controller"):
        shown.require_healthy()


@pytest.mark.usefixtures("no_broker_forwards")
def test_settings_that_this_user_may_not_read() -> None:
    quorum = describe_quorum(_fake().client)
    assert quorum is not None
    assert "this user may not read the settings that list the controllers" in str(quorum.problem)


def test_brokers_that_hang_are_no_missing_controller() -> None:
    fake = _fake()
    fake.always("DescribeConfigs", ConnectionRefused("no"))
    with pytest.raises(ConnectionTimedOut):
        describe_quorum(fake.client)


def test_another_broker_forwards_the_request(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = Quorum(1, 5, 10, (), (), ())
    monkeypatch.setattr(controllers, "_ask_other_brokers", lambda _client: answer)
    assert describe_quorum(_fake(controller_quorum_voters=f"7@127.0.0.1:{closed_port()}").client) is answer


def test_the_leader_is_asked_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """The brokers do not reach it, but this machine does."""
    answer = Quorum(1, 5, 10, (), (), ())

    def ask(server: Any, *_: Any) -> Quorum:
        if server.port == 2:
            return answer
        raise ConnectionRefused("no")

    monkeypatch.setattr(controllers, "_ask", ask)
    assert describe_quorum(_fake(controller_quorum_bootstrap_servers="a:1,a:2").client) is answer


DOWN, VIEW = ConnectionRefused("refused"), controllers._View(None, {})
LED = controllers._View(2, {})
LAST_LEADER = "the last known leader, controller 2, does not respond as the leader"
DENIED = CertificateRejected("c:1 requires a client certificate")


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        ([DOWN, DOWN], "no controller responds (a:1, b:1)"),
        ([VIEW, DOWN], "1 of 2 controllers responds, b:1 does not"),
        ([VIEW, VIEW], "2 of 2 controllers respond, but have no leader"),
        ([DENIED, DENIED], f"a:1 cannot be asked ({DENIED.message}); b:1 cannot be asked ({DENIED.message})"),
        ([DOWN, DENIED], f"a:1 does not respond; b:1 cannot be asked ({DENIED.message})"),
        ([VIEW, DENIED], f"1 of 2 controllers responds; b:1 cannot be asked ({DENIED.message})"),
        ([LED, DOWN], f"1 of 2 controllers responds, b:1 does not; {LAST_LEADER}"),
        ([LED, DENIED], f"1 of 2 controllers responds; {LAST_LEADER}; b:1 cannot be asked ({DENIED.message})"),
    ],
)  # fmt: skip
def test_a_controller_that_rejects_kctl_is_not_said_to_have_no_leader(answers: list[Any], message: str) -> None:
    servers = [Address("a", 1), Address("b", 1)]
    leaders = [2 for each in answers if each is LED]
    assert controllers._problem(servers, dict(zip(servers, answers, strict=True)), leaders) == message
