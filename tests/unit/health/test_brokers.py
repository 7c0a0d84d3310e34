"""Brokers, controllers, disks and what is uneven: one table each; and what all of it adds up to."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import pytest

from health_testing import facts, partition, state
from kctl.cluster.log_dirs import LogDir
from kctl.cluster.membership import BrokerView
from kctl.commands.terminal.views import brokers_up
from kctl.errors import ConnectionRefused, KctlError, NotAuthorized
from kctl.health import wait
from kctl.health.assess import assess
from kctl.health.brokers import check_brokers, check_controller, check_leaders, check_replicas
from kctl.health.disks import check_disks, check_log_dirs, used_percent
from kctl.health.model import CheckStatus, Facts, HealthLimits
from kctl.model import Broker, ClusterState
from kctl.protocol.quorum import Quorum, QuorumReplica
from kctl.protocol.target import Target

THREE = state(
    [
        partition("123", "123"),
        partition("231", "231", leader=2, number=1),
        partition("312", "312", leader=3, number=2),
    ]
)
REFUSED = ConnectionRefused("broker 2 refused")


@pytest.mark.parametrize(
    ("alive", "views", "fenced", "wanted", "subjects"),
    [
        ("123", {}, {}, None, ()),
        ("123", {}, {}, 3, ()),
        ("13", {}, {}, None, ("broker 2",)),  # partitions name it
        ("123", {2: REFUSED}, {}, None, ("broker 2",)),  # the others name it
        ("123", {}, {4: Broker(4, "h", 1)}, None, ("broker 4",)),  # the controller names it
        ("123", {3: BrokerView((3,), 1)}, {}, None, ("broker 3",)),  # it sees nobody else
    ],
)
def test_brokers(
    alive: str, views: dict[int, BrokerView | KctlError], fenced: dict[int, Broker], wanted: int | None,
    subjects: tuple[str, ...],
) -> None:  # fmt: skip
    cluster = state(THREE.topics["t"].partitions, alive=alive)
    found = check_brokers(facts(cluster, views=views, fenced=fenced), HealthLimits(brokers=wanted))
    assert (found.status, found.subjects) == (CheckStatus.PROBLEM if subjects else CheckStatus.OK, subjects)


def test_registered_brokers_that_are_not_told() -> None:
    found = check_brokers(facts(THREE, fenced=NotAuthorized("no")), HealthLimits())
    assert (found.status, found.reasons) == (CheckStatus.UNKNOWN, ("no",))


def test_fewer_brokers_than_there_have_to_be() -> None:
    found = check_brokers(facts(THREE), HealthLimits(brokers=4))
    assert (found.status, found.summary) == (CheckStatus.PROBLEM, "3 brokers of 4")


@pytest.mark.parametrize(
    ("controllers", "status", "summary"),
    [
        ((1, 1, 1), CheckStatus.OK, "broker 1"),
        ((None, None, None), CheckStatus.PROBLEM, "there is no controller"),
        ((1, 1, 2), CheckStatus.PROBLEM, "brokers name different controllers (brokers 1, 2: 1; broker 3: 2)"),
        ((1, None, 1), CheckStatus.PROBLEM, "brokers name different controllers (brokers 1, 3: 1; broker 2: none)"),
    ],
)
def test_controller_with_zookeeper(controllers: tuple[int | None, ...], status: CheckStatus, summary: str) -> None:
    views: dict[int, BrokerView | KctlError] = {
        node: BrokerView((1, 2, 3), controller) for node, controller in enumerate(controllers, 1)
    }
    found = check_controller(facts(THREE, views=views))
    assert (found.status, found.summary) == (status, summary)


def test_a_controller_that_does_not_answer() -> None:
    found = check_controller(facts(THREE, views={1: REFUSED}))
    assert (found.status, found.subjects) == (CheckStatus.PROBLEM, ("broker 1",))


def _voter(node: int, fetched: int | None, caught_up: int | None = None) -> QuorumReplica:
    return QuorumReplica(node, None, 100, 0, fetched, caught_up)


NOW = 1_000_000


@pytest.mark.parametrize(
    ("leader", "voters", "status", "subjects"),
    [
        (1, [_voter(1, None, NOW), _voter(2, NOW - 400), _voter(3, NOW - 9_000)], CheckStatus.OK, ()),
        (
            1,
            [_voter(1, NOW, NOW), _voter(2, NOW - 400), _voter(3, NOW - 11_000)],
            CheckStatus.PROBLEM,
            ("controller 3",),
        ),
        (1, [_voter(1, None, NOW), _voter(2, NOW), _voter(3, None)], CheckStatus.PROBLEM, ("controller 3",)),
        (None, [_voter(1, None), _voter(2, None)], CheckStatus.PROBLEM, ()),
        (1, [_voter(1, None), _voter(2, None)], CheckStatus.OK, ()),  # before 3.3 times are not told
    ],
)
def test_quorum(
    leader: int | None, voters: list[QuorumReplica], status: CheckStatus, subjects: tuple[str, ...]
) -> None:
    quorum = Quorum(leader, 7, 100, tuple(voters), (), ())
    found = check_controller(facts(THREE, quorum=quorum))
    assert (found.status, found.subjects) == (status, subjects)


def test_a_quorum_that_may_not_be_described_is_unknown() -> None:
    found = check_controller(facts(THREE, quorum=NotAuthorized("no")))
    assert (found.status, found.reasons) == (CheckStatus.UNKNOWN, ("no",))


@pytest.mark.parametrize(
    ("total", "usable", "percent"),
    [(100, 25, 75.0), (100, 100, 0.0), (None, None, None), (100, None, None), (0, 0, None)],
)
def test_used_percent(total: int | None, usable: int | None, percent: float | None) -> None:
    assert used_percent(LogDir("/d", total, usable, [])) == percent


GOOD = LogDir("/good", 100, 50, [])
FULL = LogDir("/full", 100, 5, [])
OFFLINE = LogDir("/bad", None, None, [], "a disk of the broker failed")
OLD = LogDir("/old", None, None, [])


@pytest.mark.parametrize(
    ("dirs", "online", "disks"),
    [
        ([GOOD], CheckStatus.OK, CheckStatus.OK),
        ([GOOD, FULL], CheckStatus.OK, CheckStatus.PROBLEM),
        ([GOOD, OFFLINE], CheckStatus.PROBLEM, CheckStatus.OK),
        (NotAuthorized("no"), CheckStatus.UNKNOWN, CheckStatus.UNKNOWN),
        ([OLD], CheckStatus.OK, CheckStatus.OK),
    ],
)
def test_log_dirs(dirs: Any, online: CheckStatus, disks: CheckStatus) -> None:
    found = facts(state([], alive="1"), log_dirs={1: dirs})
    assert check_log_dirs(found).status is online
    assert check_disks(found, HealthLimits()).status is disks


def test_a_broker_that_does_not_answer_is_told_once() -> None:
    """As a broker; not as disks that could not be read too."""
    found = assess(facts(THREE, views={2: REFUSED}, log_dirs={2: REFUSED}))
    assert [check.check for check in found.problems] == ["brokers"]
    assert [check.check for check in found.checks if check.status is CheckStatus.UNKNOWN] == []


def test_brokers_that_do_not_tell_how_full_their_disks_are() -> None:
    """As while a cluster is upgraded from a release before 3.3."""
    old = [LogDir("/data", None, None, [])]
    offline = [LogDir("/data", 100, 50, []), LogDir("/bad", None, None, [], "gone")]
    assert "not told" not in check_disks(facts(THREE, log_dirs={2: offline}), HealthLimits()).summary
    found = check_disks(facts(THREE, log_dirs={2: old}), HealthLimits())
    assert found.summary == "at most 50 % used; broker 2 before 3.3: not reported"
    found = check_disks(facts(THREE, log_dirs={2: old, 3: old}), HealthLimits())
    assert found.summary == "at most 50 % used; brokers 2, 3 before 3.3: not reported"


@pytest.mark.parametrize(
    ("cluster", "log_dirs", "hidden", "looks"),
    [
        (THREE, NotAuthorized("no"), (), 1),  # it will not be told later either
        (THREE, REFUSED, (), 3),
        (THREE, REFUSED, ("secret",), 1),
        (state([partition("12", "1")]), NotAuthorized("no"), (), 3),  # this problem may end
    ],
)
def test_waiting_ends_when_all_is_seen_that_may_be_seen(
    monkeypatch: pytest.MonkeyPatch, cluster: ClusterState, log_dirs: KctlError, hidden: tuple[str, ...], looks: int
) -> None:
    """It is well at the third look."""
    troubled = facts(cluster, log_dirs={2: log_dirs}, min_isr={"t": 1}, adding={}, hidden=hidden)
    pending = [facts(THREE), troubled, troubled]

    def look(_client: object) -> Facts:
        return pending.pop()

    monkeypatch.setattr(wait, "collect_facts", look)
    monkeypatch.setattr("kctl.protocol.client.connect", lambda *_, **__: nullcontext())
    monkeypatch.setattr(wait, "_POLL_S", 0.0)
    assert wait.wait_until_healthy(Target("c", ()), HealthLimits(), timeout_s=300.0).healthy is (looks == 3)
    assert 3 - len(pending) == looks


def test_a_broker_that_is_down_cannot_lead() -> None:
    down = state([partition("123", "12", leader=2, number=n) for n in range(10)], alive="12")
    assert "3" not in "".join(check_leaders(facts(down), HealthLimits()).subjects)
    gone = state([partition("312", "12", leader=1, number=n) for n in range(10)], alive="12")
    assert check_leaders(facts(gone), HealthLimits()).status is CheckStatus.OK


def test_preferred_leaders_are_counted_as_the_controller_does() -> None:
    assert check_leaders(facts(THREE), HealthLimits()).status is CheckStatus.OK
    off = state([partition("12", "12", leader=2, number=n) for n in range(3)])
    found = check_leaders(facts(off), HealthLimits())
    assert (found.status, found.subjects) == (CheckStatus.WARNING, ("broker 1",))


@pytest.mark.parametrize(
    ("counts", "status"),
    [
        ((10, 10, 10), CheckStatus.OK),
        ((10, 0, 0), CheckStatus.OK),  # few: nothing says that they can be even
        ((100, 100, 100), CheckStatus.OK),
        ((120, 100, 80), CheckStatus.OK),
        ((130, 100, 70), CheckStatus.WARNING),
    ],
)
def test_replicas(counts: tuple[int, ...], status: CheckStatus) -> None:
    rows = [partition(str(node), str(node), number=n) for node, count in enumerate(counts, 1) for n in range(count)]
    assert check_replicas(facts(state(rows)), HealthLimits()).status is status


@pytest.mark.parametrize(("isr", "said"), [("12", "2 on each broker"), ("1", "1 to 3 per broker, 2 on average")])
def test_how_many_replicas_brokers_have(isr: str, said: str) -> None:
    rows = [partition("12", "12"), partition(isr, isr, number=1), partition("1", "1", number=2)]
    rows = rows[:2] if isr == "12" else rows
    assert check_replicas(facts(state(rows, alive="12")), HealthLimits()).summary == said


def test_warnings_are_healthy_and_unknown_is_not() -> None:
    off: ClusterState = state([partition("12", "12", leader=2, number=n) for n in range(3)])
    found = assess(facts(off))
    assert [check.check for check in found.checks if check.status is CheckStatus.WARNING] == ["preferred_leaders"]
    assert (found.healthy, found.unknown) == (True, [])
    blind = assess(facts(off, log_dirs={1: NotAuthorized("no")}))
    assert (blind.healthy, blind.problems, blind.unknown) == (False, [], ["no"])


def test_an_empty_cluster_is_healthy() -> None:
    assert assess(facts(state([]))).healthy


def test_brokers_that_are_down_are_counted() -> None:
    cluster = state([partition("123", "13"), partition("231", "31", leader=3, number=1)], alive="13")
    health = assess(facts(cluster))
    assert (health.broker_count, health.brokers_down) == (2, 1)
    assert brokers_up(health.broker_count, health.brokers_down) == "2 of 3 brokers up"
    assert brokers_up(3, 0) == "3 brokers"
