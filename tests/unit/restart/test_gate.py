"""When brokers may be taken down, what cannot be protected, and in which order they go: tables of cases."""

from __future__ import annotations

import pytest

from health_testing import partition, state
from kctl.errors import ConnectionTimedOut, KctlError, NotAuthorized, OperationFailed
from kctl.model import TopicPartition
from kctl.protocol.quorum import Quorum, QuorumReplica
from kctl.restart.gate import blockers, can_stop_together, fits_together, gate, out_of_sync, quorum_blocker, unprotected
from kctl.restart.live_cluster import IsrGaps, shrunk_isrs
from kctl.restart.order import next_batch, whole_order
from kctl.restart.snapshot import GateSnapshot, MinIsr


@pytest.mark.parametrize(
    ("replicas", "isr", "min_isr", "down", "blocked"),
    [
        ("123", "123", 2, (1,), None),
        ("123", "12", 2, (3,), None),  # 3 is out already: two are left
        ("123", "12", 2, (1,), "t-0 has 1, 2 in sync: 1 would be left, and min.insync.replicas is 2"),
        ("123", "123", 2, (1, 2), "t-0 has 1, 2, 3 in sync: 1 would be left, and min.insync.replicas is 2"),
        ("123", "123", 1, (1, 2), None),
        ("123", "1", 1, (1,), "t-0 has 1 in sync: 0 would be left, and min.insync.replicas is 1"),
        ("123", "1", 2, (3,), "t-0 has 1 in sync: 1 would be left, and min.insync.replicas is 2"),
        ("123", "12", 2, (4,), None),  # it hosts nothing of it
        ("12", "12", 1, (1,), None),
        ("12", "2", 1, (2,), "t-0 has 2 in sync: 0 would be left, and min.insync.replicas is 1"),
        ("12", "12", 2, (1,), None),  # cannot be protected: told, never waited for
        ("12", "2", 2, (2,), None),
        ("12", "12", 3, (1,), None),
        ("1", "1", 1, (1,), None),
        ("1", "1", 2, (1,), None),
    ],
)
def test_what_blocks(replicas: str, isr: str, min_isr: int, down: tuple[int, ...], blocked: str | None) -> None:
    found = blockers(state([partition(replicas, isr)]), {"t": min_isr}, down)
    assert [str(each) for each in found] == ([] if blocked is None else [blocked])


def test_offline_moving_and_unknown_partitions_block() -> None:
    cluster = state([
        partition("123", "1", leader=-1), partition("123", "123", topic="moving"),
        partition("123", "123", topic="kept"), partition("1", "1", leader=-1, topic="alone"),
    ])  # fmt: skip
    least: MinIsr = {"t": 1, "moving": 1, "kept": NotAuthorized("configs of topic kept: no"), "alone": 1}
    found = blockers(cluster, least, [2], {TopicPartition("moving", 0): ()})
    assert [str(each) for each in found] == [
        "min.insync.replicas of kept is unknown: configs of topic kept: no",
        "moving-0 is being reassigned",
        "t-0 has no leader",
    ]
    assert [str(each) for each in blockers(cluster, {}, [3])] == [
        "min.insync.replicas of kept, moving, t is unknown: not reported"
    ]


def test_what_cannot_be_protected_is_listed_with_its_topic() -> None:
    cluster = state([
        partition("1", "1"), partition("2", "2", number=1), partition("3", "3", number=2),
        partition("12", "12", topic="pair"), partition("123", "123", topic="three"),
    ])  # fmt: skip
    found = unprotected(cluster, {"t": 1, "pair": 2, "three": 2}, [1, 2])
    assert [(row.topic, row.partition_count, row.replication_factor, row.min_insync_replicas) for row in found] == [
        ("pair", 1, 2, 2),
        ("t", 2, 1, 1),
    ]
    assert "acks=all" in found[0].consequence
    assert "unavailable" in found[1].consequence


@pytest.mark.parametrize(
    ("replicas", "isr", "alive", "brokers", "adding", "behind"),
    [
        ("123", "123", "123", (1, 2, 3), (), False),
        ("123", "12", "123", (1, 2, 3), (), True),
        ("123", "12", "123", (1,), (), True),  # broker 3 is up and behind, whoever restarts
        ("123", "12", "12", (1, 2, 3), (), True),  # broker 3 is one of those that restart: it comes back
        ("123", "12", "12", (1, 2), (), False),  # broker 3 is down and nothing here brings it back
        ("123", "12", "123", (1, 2, 3), (3,), False),  # still copied by a reassignment
    ],
)
def test_what_is_waited_for_afterwards(
    replicas: str, isr: str, alive: str, brokers: tuple[int, ...], adding: tuple[int, ...], behind: bool
) -> None:
    tp = TopicPartition("t", 0)
    found = out_of_sync(state([partition(replicas, isr)], alive=alive), {tp: adding} if adding else {}, brokers)
    assert found == ([tp] if behind else [])


def test_the_last_of_an_isr_is_waited_for_where_it_comes_back() -> None:
    """A partition with one replica has its broker in the ISR for ever; without a leader it is not back."""
    cluster = state([partition("1", "1", leader=-1)], alive="23")
    assert out_of_sync(cluster, {}, [1]) == [TopicPartition("t", 0)]
    assert out_of_sync(cluster, {}, [2]) == []


@pytest.mark.parametrize(
    ("replicas", "min_isr", "brokers", "fit"),
    [
        ("123", 1, (1, 2), True),
        ("123", 2, (1, 2), False),
        ("134", 2, (1, 2), True),
        ("12", 2, (1, 2), False),  # not to be protected, but one of the two can be there
        ("13", 2, (1, 2), True),
        ("1", 1, (1, 2), True),
    ],
)
def test_who_can_go_together(replicas: str, min_isr: int, brokers: tuple[int, ...], fit: bool) -> None:
    cluster = state([partition(replicas, replicas)], alive="1234")
    assert fits_together(cluster, {"t": min_isr}, brokers, brokers) is fit


@pytest.mark.parametrize(
    ("alive", "run", "fit"),
    [
        ("123", (1, 2), False),  # broker 4 is gone for good: one at a time is all that goes
        ("123", (1, 2, 4), True),  # it is brought back first
        ("1234", (1, 2), True),
    ],
)
def test_who_is_down_and_does_not_come_back_stands_in_for_nobody(alive: str, run: tuple[int, ...], fit: bool) -> None:
    assert fits_together(state([partition("124", "12")], alive=alive), {"t": 1}, (1, 2), run) is fit
    assert fits_together(state([partition("124", "12")], alive=alive), {"t": 3}, (1, 2), run) is fit


def _voter(node: int, fetched_ms: int | None) -> QuorumReplica:
    return QuorumReplica(node, None, 10, 0, fetched_ms, fetched_ms)


@pytest.mark.parametrize(
    ("fetched", "down", "blocked"),
    [
        ({1: 100_000, 2: 99_900, 3: 99_900}, (2,), False),
        ({1: 100_000, 2: 99_900, 3: 20_000}, (2,), True),  # broker 3 has not fetched for 80 s
        ({1: 100_000, 2: 99_900, 3: 20_000}, (3,), False),
        ({1: 100_000, 2: 99_900, 3: None}, (1,), True),
        ({1: 100_000, 2: 99_900, 3: 99_900}, (2, 3), True),
        ({1: 100_000, 2: 99_900, 3: 20_000}, (4,), False),  # no voter
        ({1: None, 2: None, 3: None}, (2,), False),  # brokers before 3.3 do not report disk usage
        ({1: 100_000}, (1,), False),
    ],
)
def test_the_metadata_quorum_keeps_a_majority(
    fetched: dict[int, int | None], down: tuple[int, ...], blocked: bool
) -> None:
    quorum = Quorum(1, 5, 10, tuple(_voter(node, ms) for node, ms in fetched.items()), (), ())
    assert (quorum_blocker(quorum, down) is not None) is blocked
    assert (
        can_stop_together(GateSnapshot(state([partition("5678", "5678")]), {"t": 1}, {}, quorum), down, down)
        is not blocked
    )


@pytest.mark.parametrize(
    ("quorum", "zookeeper", "says"),
    [
        (None, None, None),
        (NotAuthorized("the metadata quorum: no"), None, None),  # it may not be described by everybody
        (OperationFailed("no leader"), None, "cannot read the state of the metadata quorum: no leader"),
        (Quorum(None, -1, -1, (), (), (), "none responds"), None, "no active controller: none responds"),
        (None, "z:2181 refused the connection", "a stopped broker could not start without ZooKeeper: z:2181 refused"),
    ],
)
def test_what_keeps_the_metadata_is_part_of_the_gate(
    quorum: Quorum | KctlError | None, zookeeper: str | None, says: str | None
) -> None:
    seen = GateSnapshot(state([partition("123", "123")]), {"t": 2}, {}, quorum, zookeeper)
    found = gate(seen, [1], [1, 2, 3])
    assert not found if says is None else says in str(found[0])


def test_what_only_the_restarted_broker_lacks_does_not_block_its_restart() -> None:
    seen = GateSnapshot(state([partition("123", "12")]), {"t": 2}, {})
    assert gate(seen, [3], [1, 2, 3]) == []
    assert [str(each) for each in gate(seen, [2], [1, 2, 3])] == [
        "t-0 has 1, 2 in sync: 1 would be left, and min.insync.replicas is 2"
    ]
    assert [str(each) for each in gate(GateSnapshot(seen.state, {"t": 1}, {}), [2], [1, 2, 3])] == [
        "t-0 has a replica that is not in sync"
    ]


def test_a_broker_that_is_listed_and_silent_keeps_the_others_up() -> None:
    """It crashed a moment ago, or hangs: in the ISRs until its session ends. Its own restart may be the cure."""
    seen = GateSnapshot(
        state([partition("123", "123")]), {"t": 2}, {}, silent={2: "127.0.0.1:9092 refused the connection"}
    )
    assert [str(each) for each in gate(seen, [3], [1, 2, 3])] == [
        "broker 2 does not respond: 127.0.0.1:9092 refused the connection"
    ]
    assert gate(seen, [2], [1, 2, 3]) == []


def test_one_reason_for_many_topics_is_told_once() -> None:
    silent = ConnectionTimedOut("broker 1 did not answer DescribeConfigs within 10 s")
    cluster = state([partition("123", "123", topic=f"t{number}") for number in range(9)])
    found = blockers(cluster, dict.fromkeys(cluster.topics, silent), [2])
    assert [str(each) for each in found] == [
        f"min.insync.replicas of t0, t1, t2 and 6 more topics is unknown: {silent.message}"
    ]


# --- order --------------------------------------------------------------------------------------------------------

RACKS = {1: "a", 2: "b", 3: "c", 4: "a", 5: "b", 6: "c"}


@pytest.mark.parametrize(
    ("racks", "controller", "most", "order"),
    [
        (RACKS, 2, 1, [(1,), (3,), (4,), (5,), (6,), (2,)]),
        (RACKS, 2, 2, [(1, 4), (5,), (3, 6), (2,)]),
        (RACKS, None, 2, [(1, 4), (2, 5), (3, 6)]),
        (RACKS, 99, 3, [(1, 4), (2, 5), (3, 6)]),  # a controller that is no broker
        (dict.fromkeys(RACKS), 6, 3, [(1,), (2,), (3,), (4,), (5,), (6,)]),  # no racks: one by one
        (dict.fromkeys(RACKS, "a"), 1, 2, [(2, 3), (4, 5), (6,), (1,)]),
        ({7: None}, 7, 1, [(7,)]),
        ({}, 1, 1, []),
    ],
)
def test_the_order(
    racks: dict[int, str | None], controller: int | None, most: int, order: list[tuple[int, ...]]
) -> None:
    assert whole_order(racks, racks, controller, max_unavailable=most) == order


def test_brokers_of_a_rack_go_apart_where_they_share_partitions() -> None:
    def fits(some: object) -> bool:
        assert isinstance(some, tuple)
        return not {1, 4} <= set(some)

    assert next_batch([1, 4, 7], {1: "a", 4: "a", 7: "a"}, None, max_unavailable=3, fits=fits) == (1, 7)


def test_the_controller_is_asked_anew() -> None:
    """It moved to broker 1 meanwhile: 1 goes after 2 and 3."""
    assert next_batch([1, 2, 3], {}, 1) == (2,)
    assert next_batch([1], {}, 1) == (1,)


# --- how long -----------------------------------------------------------------------------------------------------


def test_the_longest_time_of_one_partition_counts() -> None:
    found = IsrGaps()
    one, two = TopicPartition("t", 1), TopicPartition("t", 2)
    for at, rows in ((0, [one]), (2, [one, two]), (3, [two]), (7, [two]), (8, []), (20, [one]), (21, [one])):
        found.sample(rows, float(at))
    assert found.longest_s == 6.0  # two: from 2 to 8


def test_what_lacked_a_replica_before_is_not_counted() -> None:
    cluster = state([partition("123", "12"), partition("123", "23", number=1), partition("23", "2", number=2)])
    before = {TopicPartition("t", 0): 2, TopicPartition("t", 1): 3}
    assert shrunk_isrs(cluster, [1], before) == {TopicPartition("t", 1)}
    assert shrunk_isrs(cluster, [2], before) == {TopicPartition("t", 1), TopicPartition("t", 2)}
