"""When a partition is healthy, as a table; and what partitions with a problem have in common."""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest

from health_testing import facts, partition, state
from kctl.cluster.eligible import Eligible
from kctl.cluster.log_dirs import LogDir, LogDirReplica
from kctl.commands.cluster.diagnose import fine_leaders
from kctl.errors import NotAuthorized, NotHealthy
from kctl.health import diagnose as diagnosis
from kctl.health import partitions as rules
from kctl.health.causes import find_suspects, missing_replicas, unhealthy
from kctl.health.diagnose import replica_places
from kctl.health.eligible import EligibleReplicas, eligible_rows
from kctl.health.isr_changes import IsrWatch
from kctl.health.model import CheckStatus
from kctl.model import Broker, TopicPartition
from kctl.protocol.quorum import Quorum


@pytest.mark.parametrize(
    ("replicas", "isr", "adding", "min_isr", "under_replicated", "under_min", "at_min"),
    [
        ("123", "123", "", 2, False, False, False),
        ("123", "12", "", 2, True, False, True),
        ("123", "1", "", 2, True, True, False),
        ("123", "", "", 1, True, True, False),
        ("123", "12", "", 1, True, False, False),
        ("123", "1", "", 1, True, False, True),
        ("1", "1", "", 2, False, False, True),  # fewer replicas than the minimum: all of them are enough
        ("12", "12", "", 3, False, False, True),
        ("12", "1", "", 3, True, True, False),
        ("1234", "123", "4", 2, False, False, False),  # broker 4 is still copying
        ("1234", "12", "4", 2, True, False, True),
        ("1234", "124", "4", 2, False, False, False),  # broker 4 came in before broker 3 came back
    ],
)
def test_the_rules(
    replicas: str, isr: str, adding: str, min_isr: int, under_replicated: bool, under_min: bool, at_min: bool
) -> None:
    p = partition(replicas, isr)
    assert rules.under_replicated(p, [int(node) for node in adding]) is under_replicated
    assert (rules.under_min_isr(p, min_isr), rules.at_min_isr(p, min_isr)) == (under_min, at_min)


def test_checks_name_the_partitions() -> None:
    found = facts(
        state([partition("12", "12"), partition("12", "1", number=1), partition("12", "2", leader=-1, number=2)]),
        min_isr={"t": 2},
    )
    offline, under, least = (
        rules.check_offline(found), rules.check_under_replicated(found), rules.check_under_min_isr(found),
    )  # fmt: skip
    assert (offline.status, offline.subjects) == (CheckStatus.PROBLEM, ("t-2",))
    assert (under.status, under.subjects) == (CheckStatus.PROBLEM, ("t-1", "t-2"))
    assert (least.status, least.subjects) == (CheckStatus.PROBLEM, ("t-1", "t-2"))


@pytest.mark.parametrize(
    ("min_isr", "status", "reasons"),
    [
        (1, CheckStatus.WARNING, 0),  # one left of two, and one is enough: the next loss stops writers
        (2, CheckStatus.PROBLEM, 0),
        (NotAuthorized("topic t: no"), CheckStatus.UNKNOWN, 1),
    ],
)
def test_min_isr_that_is_reached_or_not_known(min_isr: int | NotAuthorized, status: CheckStatus, reasons: int) -> None:
    found = rules.check_under_min_isr(facts(state([partition("12", "1")]), min_isr={"t": min_isr}))
    assert (found.status, len(found.reasons)) == (status, reasons)


def test_what_is_next_to_refuse_is_told_beside_what_refuses() -> None:
    both = state([partition("12", "1"), partition("12", "1", topic="next")])
    found = rules.check_under_min_isr(facts(both, min_isr={"t": 2, "next": 1}))
    assert found.subjects == ("t-0",)
    assert found.summary == "1 partition with fewer in-sync replicas than min.insync.replicas; 1 more at the minimum"


def test_a_topic_that_is_made_at_its_minimum_is_no_warning() -> None:
    found = rules.check_under_min_isr(facts(state([partition("12", "12")]), min_isr={"t": 2}))
    assert found.status is CheckStatus.OK


def test_what_is_known_counts_when_another_topic_cannot_be_read() -> None:
    both = state([partition("12", "1"), partition("12", "1", topic="secret")])
    found = rules.check_under_min_isr(facts(both, min_isr={"t": 2, "secret": NotAuthorized("no")}))
    assert (found.status, found.subjects, found.reasons) == (CheckStatus.PROBLEM, ("t-0",), ("no",))


def test_a_reassignment_is_no_problem() -> None:
    moving = state([partition("123", "12")])
    assert rules.check_under_replicated(facts(moving)).status is CheckStatus.PROBLEM
    found = rules.check_under_replicated(facts(moving, adding={TopicPartition("t", 0): (3,)}))
    assert found.status is CheckStatus.OK
    assert "1 reassignment still adds" in found.summary


def test_a_reassignment_that_nobody_tells_is_said() -> None:
    """All replicas count then, which may be wrong."""
    unknown = NotAuthorized("reassignments: no")
    found = rules.check_under_replicated(facts(state([partition("123", "12")]), adding=unknown))
    assert (found.status, found.subjects) == (CheckStatus.PROBLEM, ("t-0",))
    assert found.reasons == (rules.adding_unknown(unknown),)
    assert "reassignments: no" in found.reasons[0]
    assert rules.check_under_replicated(facts(state([partition("123", "123")]), adding=unknown)).reasons == ()
    assert [p.partition for p in unhealthy(state([partition("123", "12")]), unknown)] == [0]


# --- causes -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("replicas", "isr", "leader", "offline", "missing"),
    [
        ("123", "123", 1, "", []),
        ("123", "13", 1, "2", [2]),
        ("12", "2", -1, "2", [1, 2]),  # the last of an ISR stays in it, though it is down
        ("2", "2", -1, "2", [2]),
        ("12", "12", -1, "", [1, 2]),  # nobody leads, and nothing tells why
    ],
)
def test_missing_replicas(replicas: str, isr: str, leader: int, offline: str, missing: list[int]) -> None:
    assert missing_replicas(partition(replicas, isr, leader=leader, offline=offline)) == missing


def test_a_broker_that_is_down_comes_first() -> None:
    cluster = state(
        [partition("123", "13"), partition("231", "31", leader=3, number=1), partition("31", "31", leader=3, number=2)],
        alive="13",
    )
    first, *others = find_suspects(cluster, {}, {})
    assert (first.kind, first.broker, first.state) == ("broker", 2, "down")
    assert (first.partition_count, first.share_percent, first.missing_percent) == (2, 100.0, 100.0)
    assert [(row.kind, row.broker) for row in others] == [("leader", 1), ("leader", 3)]
    assert [row.share_percent for row in others] == [50.0, 50.0]


def _dirs(*contents: tuple[str, str | None, list[int]]) -> list[LogDir]:
    return [
        LogDir(path, None, None, [LogDirReplica("t", number, 0, 0, False) for number in numbers], error)
        for path, error, numbers in contents
    ]


def test_a_bad_disk_comes_before_its_broker() -> None:
    cluster = state([partition("12", "1" if n < 2 else "12", number=n) for n in range(4)])
    places = replica_places(
        cluster, {1: _dirs(("/a", None, [0, 1, 2, 3])), 2: _dirs(("/a", None, [2, 3]), ("/b", None, [0, 1]))}
    )
    first, second, *_ = find_suspects(cluster, places, {})
    assert (first.kind, first.broker, first.log_dir, first.missing_percent) == ("log dir", 2, "/b", 100.0)
    assert (second.kind, second.broker, second.missing_percent) == ("broker", 2, 50.0)


def test_what_an_offline_log_dir_held_is_what_no_other_has() -> None:
    cluster = state([partition("1", "1", number=n) for n in range(3)])
    places = replica_places(cluster, {1: _dirs(("/a", None, [0]), ("/b", "failed", []))})
    assert {tp.partition: path for (tp, _), path in places.items()} == {0: "/a", 1: "/b", 2: "/b"}
    two = replica_places(cluster, {1: _dirs(("/a", None, [0]), ("/b", "failed", []), ("/c", "failed", []))})
    assert {tp.partition: path for (tp, _), path in two.items()} == {0: "/a"}, "it may have been either"


def test_a_rack_comes_before_its_brokers() -> None:
    cluster = state(
        [
            partition("13", "3", leader=3),
            partition("23", "3", leader=3, number=1),
            partition("34", "34", leader=3, number=2),
        ],
        alive="34",
        racks={3: "b", 4: "b"},
    )
    fenced = {1: Broker(1, "h", 1, "a"), 2: Broker(2, "h", 2, "a")}
    first, *others = find_suspects(cluster, {}, {}, fenced)
    assert (first.kind, first.rack, first.share_percent, first.missing_percent) == ("rack", "a", 100.0, 100.0)
    assert {(row.kind, row.broker, row.share_percent) for row in others if row.kind == "broker"} == {
        ("broker", 1, 50.0), ("broker", 2, 50.0),
    }  # fmt: skip


def test_a_leader_whose_followers_fall_behind() -> None:
    cluster = state(
        [partition("12", "1"), partition("13", "1", number=1), partition("23", "23", leader=2, number=2),
         partition("32", "32", leader=3, number=3)]
    )  # fmt: skip
    first = find_suspects(cluster, {}, {})[0]
    assert (first.kind, first.broker, first.share_percent, first.missing_percent) == ("leader", 1, 100.0, 100.0)


def test_a_healthy_cluster_has_no_suspects() -> None:
    assert find_suspects(state([partition("12", "12")]), {}, {}) == []


def test_isr_changes_add_up() -> None:
    watch = IsrWatch(state([partition("123", "123"), partition("12", "12", number=1)]))
    looks = [("12", 1), ("21", 1), ("123", 2), ("13", 1)]  # an ISR in another order is the same
    changed = [
        watch.add_poll(state([partition("123", isr, leader=leader), partition("12", "12", number=1)]))
        for isr, leader in looks
    ]
    assert changed == [1, 0, 1, 1]
    (row,) = watch.rows
    assert (row.topic, row.partition, row.changes, row.left, row.joined, row.leader_changes) == (
        "t", 0, 3, (2, 3), (3,), 2,
    )  # fmt: skip


def test_a_partition_that_comes_or_goes_is_no_change() -> None:
    watch = IsrWatch(state([partition("12", "12")]))
    assert watch.add_poll(state([])) == 0
    assert watch.add_poll(state([partition("12", "1")])) == 0
    assert watch.rows == []


def test_a_diagnosis_says_what_it_was_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reassignment may be why replicas are not in sync; a broker that is down may be registered."""
    monkeypatch.setattr(diagnosis, "read_quorum", lambda *_: None)
    monkeypatch.setattr(diagnosis, "adding_replicas", lambda *_: NotAuthorized("reassignments: no"))
    monkeypatch.setattr(diagnosis, "fenced_brokers", lambda *_: NotAuthorized("fenced brokers: no"))
    monkeypatch.setattr(diagnosis, "fetch_log_dirs", lambda *_: {})
    monkeypatch.setattr(diagnosis, "find_held_back", lambda *_: ([], []))
    monkeypatch.setattr(diagnosis, "min_isr_of", lambda *_: {"t": 3})
    client: Any = SimpleNamespace(asking_silent_brokers_once=nullcontext, api_version=lambda _: None)
    found = diagnosis.diagnose(client, state([partition("123", "12")]))
    assert found.under_replicated == ("t-0",)
    first, second = found.failures
    assert first == "fenced brokers: no"
    assert "reassignments: no" in second
    assert found.under_min_isr == ("t-0",)
    assert diagnosis.diagnose(client, state([partition("123", "123")])).failures == ()


@pytest.mark.parametrize(
    ("least", "refusing", "failures"), [(2, ("t-1",), ()), (1, (), ()), (NotAuthorized("t: no"), (), ("t: no",))]
)
def test_a_diagnosis_says_where_writers_are_refused(
    least: int | NotAuthorized, refusing: tuple[str, ...], failures: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, answer in (
        ("read_quorum", None),
        ("adding_replicas", {}),
        ("fenced_brokers", {}),
        ("fetch_log_dirs", {}),
        ("hidden_topics", ()),
    ):
        monkeypatch.setattr(diagnosis, name, lambda *_, answer=answer: answer)
    monkeypatch.setattr(diagnosis, "find_held_back", lambda *_: ([], []))
    monkeypatch.setattr(diagnosis, "min_isr_of", lambda *_: {"t": least})
    client: Any = SimpleNamespace(asking_silent_brokers_once=nullcontext, api_version=lambda _: None)
    rows = [partition("123", "12"), partition("123", "1", number=1), partition("12", "2", leader=-1, number=2)]
    found = diagnosis.diagnose(client, state(rows))
    assert (found.under_replicated, found.under_min_isr, found.failures) == (("t-0", "t-1"), refusing, failures)


def test_leaders_without_missing_replicas_are_omitted_if_a_broker_is_down(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, answer in (
        ("read_quorum", None),
        ("adding_replicas", {}),
        ("fenced_brokers", {}),
        ("fetch_log_dirs", {}),
        ("hidden_topics", ()),
    ):
        monkeypatch.setattr(diagnosis, name, lambda *_, answer=answer: answer)
    monkeypatch.setattr(diagnosis, "find_held_back", lambda *_: ([], []))
    monkeypatch.setattr(diagnosis, "min_isr_of", lambda *_: {"t": 1})
    client: Any = SimpleNamespace(asking_silent_brokers_once=nullcontext, api_version=lambda _: None)
    rows = [partition("123", "13"), partition("231", "31", leader=3, number=1)]
    assert [row.broker for row in fine_leaders(diagnosis.diagnose(client, state(rows, alive="13")))] == [1, 3]
    assert fine_leaders(diagnosis.diagnose(client, state(rows))) == [], "broker 2 is up: its leaders may be the cause"


# --- eligible leader replicas -----------------------------------------------------------------------------------------

_NONE = partition("234", "", leader=-1)
_SECOND = partition("234", "", leader=-1, number=1)
_TOO_FEW = partition("234", "2", leader=2, number=2)
_AT_MINIMUM = partition("234", "23", leader=2, number=3)


@pytest.mark.parametrize(
    ("min_isr", "at_risk"), [({"t": 2}, [0, 1, 2]), ({"t": NotAuthorized("no")}, [0, 1, 2, 3]), ({"t": 1}, [0, 1])]
)
def test_partitions_at_risk(min_isr: dict[str, Any], at_risk: list[int]) -> None:
    found = rules.at_risk([_NONE, _SECOND, _TOO_FEW, _AT_MINIMUM, partition("1", "1", number=4)], min_isr)
    assert [p.partition for p in found] == at_risk


@pytest.mark.parametrize(
    ("eligible", "summary"),
    [
        (None, "2 partitions without a leader"),
        ({}, "2 partitions without a leader"),
        ({0: Eligible((2, 3)), 1: Eligible((3,))}, ("2 partitions without a leader; start broker 3, "
         "an eligible leader replica of all")),
        ({0: Eligible((2,)), 1: Eligible((4,))}, ("2 partitions without a leader; start brokers 2, 4, "
         "eligible leader replicas of all")),
        ({0: Eligible((2,), (4,))}, ("2 partitions without a leader; start broker 2, "
         "an eligible leader replica of 1 partition")),
        ({0: Eligible((2,)), 1: Eligible((), (4,))}, ("2 partitions without a leader; start broker 2, an eligible "
         "leader replica of 1 partition; start broker 4, the last known leader of 1 partition")),
        ({0: Eligible((1,))}, "2 partitions without a leader"),  # it is up: the controller is about to elect it
        (NotAuthorized("no"), "2 partitions without a leader"),
    ],
)  # fmt: skip
def test_which_brokers_to_start(eligible: Any, summary: str) -> None:
    known = eligible
    if isinstance(eligible, dict):
        known = {TopicPartition("t", number): each for number, each in eligible.items()}
    found = facts(state([_NONE, _SECOND, _TOO_FEW], alive="1"), eligible=known)
    check = rules.check_offline(found)
    assert (check.status, check.summary) == (CheckStatus.PROBLEM, summary)
    assert check.reasons == (("no",) if isinstance(eligible, NotAuthorized) else ())


def test_rows_of_eligible_replicas() -> None:
    cluster = state([_NONE, _SECOND, _TOO_FEW])
    eligible = {_NONE.tp: Eligible(), _SECOND.tp: Eligible((3,), (2,)), _TOO_FEW.tp: Eligible((3, 4))}
    assert eligible_rows(cluster, eligible) == (
        EligibleReplicas("t", 1, None, (3,), (2,)), EligibleReplicas("t", 2, 2, (3, 4), ()),
    )  # fmt: skip
    assert eligible_rows(cluster, {}) == ()
    assert eligible_rows(cluster, {TopicPartition("gone", 0): Eligible((3,))}) == ()
    assert eligible_rows(cluster, None) is None
    assert eligible_rows(cluster, NotAuthorized("no")) is None


def test_a_diagnosis_names_a_missing_controller(monkeypatch: pytest.MonkeyPatch) -> None:
    """It explains the rest: without a controller, no ISR and no leader changes. Reassignments are not asked for."""
    quorum = Quorum(None, -1, -1, (), (), (), "no controller responds (a:1)")
    for name, answer in (
        ("read_quorum", quorum),
        ("fenced_brokers", {}),
        ("fetch_log_dirs", {}),
        ("hidden_topics", ()),
    ):
        monkeypatch.setattr(diagnosis, name, lambda *_, answer=answer: answer)
    monkeypatch.setattr(diagnosis, "find_held_back", lambda *_: ([], []))
    monkeypatch.setattr(diagnosis, "min_isr_of", lambda *_: {"t": 1})
    client: Any = SimpleNamespace(asking_silent_brokers_once=nullcontext, api_version=lambda _: None)
    healthy = diagnosis.diagnose(client, state([partition("123", "123")]))
    with pytest.raises(NotHealthy, match=r"^no active controller: no controller responds \(a:1\)$"):
        healthy.require_healthy()
    worse = diagnosis.diagnose(client, state([partition("123", "12")]))
    with pytest.raises(NotHealthy, match=r"no active controller: .*; of 1 partition: 1 under-replicated"):
        worse.require_healthy()
    assert any("reassignments are unknown: no active controller" in line for line in worse.failures)
