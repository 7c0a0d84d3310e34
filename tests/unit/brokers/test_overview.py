"""Brokers as rows: who the controller is when it may not be asked, or when there is none."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from health_testing import partition, state
from kctl.brokers import overview
from kctl.cluster import membership
from kctl.commands.broker.tables import description_tables
from kctl.errors import ConnectionRefused, KctlError, NotAuthorized, NotFound, NotHealthy
from kctl.model import Broker, ClusterState
from kctl.protocol import active_controller
from kctl.protocol.quorum import LAST_KNOWN, Quorum

THREE = state([partition("123", "123")])


def _facts(monkeypatch: pytest.MonkeyPatch, quorum: Quorum | KctlError | None, cluster: ClusterState) -> Any:
    def told() -> Any:
        if isinstance(quorum, KctlError):
            raise quorum
        return quorum

    monkeypatch.setattr(active_controller, "describe_quorum", lambda _client: told())
    monkeypatch.setattr(overview, "fenced_brokers", lambda _client: {})
    monkeypatch.setattr(overview, "fetch_api_versions", lambda _client, _nodes: {})
    monkeypatch.setattr(overview, "fetch_log_dirs", lambda _client, _nodes: {})
    client: Any = SimpleNamespace(metadata=lambda: cluster)
    return overview.read_brokers(client)


@pytest.mark.parametrize(
    ("quorum", "controller", "missing", "failures"),
    [
        (Quorum(2, 1, 1, (), (), ()), [False, True, False], None, ()),
        (None, [True, False, False], None, ()),  # ZooKeeper: metadata tells
        (
            Quorum(None, 1, 1, (), (), ()),
            [None, None, None],
            "no active controller: the metadata quorum has no leader",
            (),
        ),
        (
            Quorum(None, -1, -1, (), (), (), "no controller responds (a:1)"),
            [None, None, None],
            "no active controller: no controller responds (a:1)",
            (),
        ),
        (NotAuthorized("no"), [None, None, None], None, ("the controller is unknown: no",)),
    ],
)
def test_controller(
    monkeypatch: pytest.MonkeyPatch,
    quorum: Quorum | KctlError | None,
    controller: list[bool | None],
    missing: str | None,
    failures: tuple[str, ...],
) -> None:
    facts = _facts(monkeypatch, quorum, THREE)
    assert facts.no_controller == missing
    if missing is None:
        facts.require_controller()
    else:
        with pytest.raises(NotHealthy):
            facts.require_controller()
    assert [row.is_controller for row in overview.summaries(facts)] == controller
    assert [row.is_controller for row in overview.descriptions(facts, [1, 2, 3])] == controller
    assert facts.failures == (*failures, *([LAST_KNOWN] if missing else []))


def test_no_controller_with_zookeeper(monkeypatch: pytest.MonkeyPatch) -> None:
    facts = _facts(monkeypatch, None, ClusterState("id", None, THREE.brokers, THREE.topics))
    assert [row.is_controller for row in overview.summaries(facts)] == [None, None, None]
    assert (facts.no_controller, facts.failures) == ("the cluster has no controller", (LAST_KNOWN,))


@pytest.mark.parametrize(
    ("hidden", "dirs", "may", "failure"),
    [
        ((), [], None, None),
        (("secret",), [], None, "1 topic on the brokers' disks is hidden from this user"),
        (NotAuthorized("no"), [], None, "no"),
        ((), NotAuthorized("no"), True, None),
        ((), NotAuthorized("no"), False, "this user may not describe all topics"),
        ((), NotAuthorized("no"), None, "this user may not describe all topics"),
        ((), ConnectionRefused("silent"), None, None),
    ],
)
def test_what_is_hidden_is_not_counted_as_absent(
    monkeypatch: pytest.MonkeyPatch, hidden: Any, dirs: Any, may: bool | None, failure: str | None
) -> None:
    monkeypatch.setattr(active_controller, "describe_quorum", lambda _client: None)
    monkeypatch.setattr(overview, "fenced_brokers", lambda _client: {})
    monkeypatch.setattr(overview, "fetch_api_versions", lambda _client, nodes: dict.fromkeys(nodes))
    monkeypatch.setattr(overview, "fetch_log_dirs", lambda _client, _nodes: {1: dirs})
    monkeypatch.setattr(overview, "hidden_topics", lambda *_: hidden)
    monkeypatch.setattr(overview, "may_describe_all_topics", lambda _client: may)
    client: Any = SimpleNamespace(metadata=lambda: THREE)
    facts = overview.read_brokers(client)
    row, described = overview.summaries(facts)[0], overview.descriptions(facts, [1])[0]
    seen = failure is None
    assert (row.leaders, row.replica_count, row.not_in_sync) == ((1, 1, 0) if seen else (None, None, None))
    assert (described.leaders, described.preferred, described.replica_count) == (
        (1, 1, 1) if seen else (None, None, None)
    )
    lines = {each["key"]: each["value"] for each in description_tables(described)[0].rows}
    assert lines["replicas"] == ("1; not in sync: none" if seen else "unknown; not in sync: unknown")
    assert facts.failures == ((f"the leaders and replicas of brokers are unknown: {failure}",) if failure else ())


def _answering(error_code: int) -> Callable[[Any], Any]:
    return lambda _request: SimpleNamespace(error_code=error_code, error_message=None, brokers=[])


def test_fenced_brokers_that_are_not_told() -> None:
    client: Any = SimpleNamespace(send=_answering(31))
    assert isinstance(membership.fenced_brokers(client), NotAuthorized)
    silent: Any = SimpleNamespace(send=_answering(0))
    assert membership.fenced_brokers(silent) == {}


def test_a_broker_that_is_down_is_not_told_to_be_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    """The cluster lists brokers 1 and 3; replicas are on 2, and 4 is registered."""
    monkeypatch.setattr(membership, "fenced_brokers", lambda _: {4: Broker(4, "h", 1)})
    client: Any = SimpleNamespace(metadata=lambda: state([partition("12", "1"), partition("23", "3")], alive="13"))
    assert membership.down_brokers(client) == [2, 4]
    absent = NotFound("broker 2 is not in the cluster", hint="the cluster has brokers 1, 3")
    told = membership.explain_failure(client, 2, absent)
    assert (told.message, told.hint, told.exit_code) == ("broker 2 is down", absent.hint, 4)
    refused = NotAuthorized("no")
    assert membership.explain_failure(client, 5, absent) is absent
    assert membership.explain_failure(client, 2, refused) is refused
