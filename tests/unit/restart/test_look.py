"""What a rolling restart sees of a cluster: who is down, who is silent, and what tells nothing of brokers."""

from __future__ import annotations

from pathlib import Path

import pytest

from fake_cluster import FakeCluster
from kctl.cluster.membership import BrokerView
from kctl.errors import (
    AuthenticationFailed,
    CertificateRejected,
    ConnectionFailed,
    ConnectionRefused,
    ConnectionTimedOut,
    NameNotResolved,
    NotKafka,
    TlsMismatch,
)
from kctl.protocol.target import Target
from kctl.restart import journals
from kctl.restart import live_cluster as look
from kctl.restart.live_cluster import LiveCluster
from kctl.restart.plan import unfinished_run
from rolling_testing import BROKERS

SILENT = [
    ConnectionRefused("h:1 refused the connection"), ConnectionTimedOut("no answer"), ConnectionFailed("no route"),
]  # fmt: skip
ELSE_WRONG = [
    AuthenticationFailed("wrong password"), CertificateRejected("unknown CA"), TlsMismatch("TLS"),
    NotKafka("a web server"), NameNotResolved("h cannot be resolved"),
]  # fmt: skip


@pytest.fixture(autouse=True)
def _own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


@pytest.fixture
def cluster() -> LiveCluster:
    return LiveCluster(Target("prod", ("h:1",)))


def _failing(error: ConnectionFailed) -> object:
    def connect(*_args: object, **_options: object) -> None:
        raise error

    return connect


@pytest.mark.parametrize("error", SILENT)
def test_a_cluster_that_is_silent_may_be_down(
    error: ConnectionFailed, cluster: LiveCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(look, "connect", _failing(error))
    assert cluster.registered() == frozenset()
    with pytest.raises(type(error)):
        unfinished_run(cluster, "prod")
    with journals.begin("prod", "cluster-id", list(BROKERS.values())) as held:
        assert unfinished_run(cluster, "prod") == (None, held.path)


@pytest.mark.parametrize("error", ELSE_WRONG)
def test_what_tells_nothing_of_brokers_is_told(
    error: ConnectionFailed, cluster: LiveCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(look, "connect", _failing(error))
    with pytest.raises(type(error)):
        cluster.registered()
    with journals.begin("prod", "cluster-id", list(BROKERS.values())), pytest.raises(type(error)):
        unfinished_run(cluster, "prod")


def test_brokers_that_a_look_has_seen_are_not_taken_for_down(
    cluster: LiveCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = FakeCluster(brokers=BROKERS)
    monkeypatch.setattr(look, "connect", lambda *_args, **_options: fake)
    monkeypatch.setattr(look, "adding_replicas", lambda *_args: {})
    cluster.snapshot(())
    fake.always("Metadata", ConnectionTimedOut("no answer"))
    with pytest.raises(ConnectionTimedOut):
        cluster.registered()


# --- a look -----------------------------------------------------------------------------------------------------------


def test_a_look_tells_who_is_listed_and_silent(cluster: LiveCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    views = {1: BrokerView((1, 2, 3), 3), 2: ConnectionRefused("h:2 refused the connection"), 3: BrokerView((1, 3), 3)}

    def tells(name: str, value: object) -> None:
        def ask(*_args: object) -> object:
            asked.append(name)
            return value

        monkeypatch.setattr(look, name, ask)

    monkeypatch.setattr(look, "connect", lambda *_args, **_options: FakeCluster(brokers=BROKERS))
    for name, value in (("adding_replicas", {}), ("min_isr_of", {}), ("describe_quorum", None), ("read_views", views)):
        tells(name, value)
    assert cluster.snapshot([1]).silent == {2: "h:2 refused the connection"}
    assert asked[-1] == "read_views"  # after the ISRs: who answers then was there


@pytest.mark.parametrize(("told", "hidden"), [(True, False), (False, True), (None, False)])
def test_topics_that_may_not_be_described(
    told: bool | None, hidden: bool, cluster: LiveCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(look, "connect", lambda *_args, **_options: FakeCluster(brokers=BROKERS))
    monkeypatch.setattr(look, "may_describe_all_topics", lambda _client: told)
    assert cluster.hides_topics() is hidden
