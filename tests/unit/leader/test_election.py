"""Leaders: what a controller would count, which elections are possible, and what brokers' answers become.

A fake client, because a real controller cannot be made to refuse, to be of another version or not to answer on demand;
elections on real brokers are in tests/integration/leader/test_leader.py and tests/integration/leader/test_unclean.py.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from types import SimpleNamespace as Answer
from typing import Any, cast

import pytest

from kctl.base.outcomes import ItemResult
from kctl.commands.leader.tables import idle_lines
from kctl.errors import KctlError, NotAuthorized, NotFound, NotSupported, OperationFailed, OutcomeUnknown, Refused
from kctl.health.leaders import leader_status
from kctl.leader.election import Election, carry_out, choose, plan_preferred, plan_unclean
from kctl.leader.losses import UncleanLoss
from kctl.model import Broker, ClusterState, PartitionState, TopicPartition, TopicState
from kctl.protocol.client import ClusterClient
from kctl.protocol.request_version import negotiate
from kctl.reassign.run.alter import alter_reassignments
from kctl.topics.elect import elect_leaders

NOT_NEEDED, NOT_AUTHORIZED, NOT_AVAILABLE, NO_REASSIGNMENT = 84, 31, 80, 85

_PLAN = "kctl topic reassign plan"


def partition(number: int, leader: int, replicas: tuple[int, ...], isr: tuple[int, ...] | None = None) -> Any:
    return PartitionState("t", number, leader, 0, replicas, replicas if isr is None else isr)


def cluster(*partitions: PartitionState, up: Collection[int] = (1, 2, 3)) -> ClusterState:
    brokers = {node: Broker(node, "h", 9092, f"r{node}") for node in up}
    return ClusterState("c", 1, brokers, {"t": TopicState("t", False, None, partitions)})


SKEWED = cluster(
    partition(0, 1, (1, 2)),
    partition(1, 1, (2, 1)),
    partition(2, 2, (2, 1)),
    partition(3, 1, (3, 1), (1,)),
    partition(4, -1, (4,), ()),
    partition(5, -1, (4, 3), (4,)),
)


def test_status_counts_as_a_controller_does() -> None:
    found = leader_status(SKEWED)
    assert (found.partition_count, found.preferred, found.preferred_percent, found.leaderless) == (6, 2, 33.333, 2)
    rows = {row.broker: (row.alive, row.leaders, row.preferred, row.missing) for row in found.brokers}
    assert rows == {1: (True, 3, 1, 0), 2: (True, 1, 2, 1), 3: (True, 0, 1, 1), 4: (False, 0, 2, 2)}
    assert [row.imbalance_percent for row in found.brokers] == [0, 50, 100, 100]
    assert [row.broker for row in found.over(50)] == [3, 4], "above, and not at"
    assert [(row.partition, row.leader, row.electable, row.reason) for row in found.not_preferred] == [
        (1, 1, True, None),
        (3, 1, False, "the replica on broker 3 is not in sync"),
        (4, None, False, "broker 4 is down"),
        (5, None, False, "broker 4 is down"),
    ]


def test_brokers_that_no_election_makes_lead_are_told() -> None:
    """Broker 3 holds a replica and is preferred by none, broker 4 holds none."""
    state = cluster(*(partition(n, 1, (1 + n % 2, 3)) for n in range(4)), up=(1, 2, 3, 4))
    found = leader_status(state)
    assert (found.idle_brokers, found.empty_brokers) == ((3,), (4,))
    assert idle_lines(found) == [
        "broker 3 is no partition's preferred leader: balance with `kctl leader balance`",
        f"broker 4 is without any replica: plan a share with `{_PLAN} --add-broker 4 --balance leaders`",
    ]
    assert leader_status(state, whole=False).empty_brokers == ()
    few = cluster(partition(0, 1, (1, 3)), up=(1, 2, 3, 4))
    assert leader_status(few).idle_brokers == (), "fewer partitions than brokers"


def test_a_cluster_without_partitions_is_in_balance() -> None:
    found = leader_status(ClusterState("c", 1, {}, {}))
    assert (found.preferred_percent, found.brokers, found.over(0)) == (100.0, (), [])


def test_preferred_elections() -> None:
    plan = plan_preferred(SKEWED, SKEWED.topics["t"].partitions)
    assert [(row.partition, row.elected, row.result) for row in plan] == [
        (1, 2, "would elect"), (3, 3, "skipped"), (4, 4, "skipped"), (5, 4, "skipped"),
    ]  # fmt: skip


def test_unclean_elections_take_the_first_replica_that_is_up() -> None:
    plan = plan_unclean(SKEWED, SKEWED.topics["t"].partitions)
    assert [(row.partition, row.elected, row.result, row.reason) for row in plan] == [
        (4, None, "skipped", "all its replicas are on brokers that are down: 4"), (5, 3, "would elect", None),
    ]  # fmt: skip
    in_sync = cluster(partition(0, -1, (4, 3, 2), (2,)))
    assert plan_unclean(in_sync, in_sync.topics["t"].partitions)[0].elected == 2, "one in sync comes first"
    with pytest.raises(Refused, match=r"t-0 has a leader \(broker 1\)"):
        plan_unclean(SKEWED, SKEWED.topics["t"].partitions[:1], named=True)


GROUP = "a group has committed them"
LEADS, BEYOND = "t-0: broker 3 would lead from offset 50", "are lost too, and cannot be counted"


@pytest.mark.parametrize(
    ("loss", "text"),
    [
        (
            UncleanLoss("t", 0, 3, 50, 70, {3: 50}, (2,), 70),
            f"{LEADS}; 50 to 69 existed ({GROUP}) and are lost; further records of broker 2 {BEYOND}",
        ),
        (
            UncleanLoss("t", 0, 3, 50, 60, {3: 50, 4: 60}, (), None),
            f"{LEADS}; 50 to 59 existed (broker 4 has them) and are lost",
        ),
        (
            UncleanLoss("t", 0, 3, 50, 50, {3: 50}, (1, 2), None),
            f"{LEADS}; further records of brokers 1, 2 {BEYOND}",
        ),
        (UncleanLoss("t", 0, 3, None, 9, {3: None}, (), 9), "t-0: broker 3 would lead; its log end offset is unknown"),
    ],
)
def test_losses_as_text(loss: UncleanLoss, text: str) -> None:
    assert str(loss) == text


class FakeCluster:
    """Topic t with 120 partitions, each led by 2 and preferred by 1. answer: what the controller says to a request."""

    def __init__(self, answer: Callable[[Any], Any]) -> None:
        self.answer = answer
        self.requests: list[Any] = []
        self.leaders = dict.fromkeys(range(120), 2)

    def send_to_controller(self, request: Any, **_: object) -> Any:
        self.requests.append(request)
        answer = self.answer(request)
        if isinstance(answer, KctlError):
            raise answer
        return answer

    def metadata(self, _topics: Collection[str] | None = None) -> ClusterState:
        return cluster(*(partition(number, leader, (1, 2)) for number, leader in self.leaders.items()))

    def elect(self, request: Any, code: int = 0) -> Any:
        """Do it, and say `code` of each partition."""
        (topic,) = request.topic_partitions
        for number in topic.partitions:
            self.leaders[number] = 1
        return elected(topic.topic, topic.partitions, code)


def elected(topic: str, numbers: Collection[int], code: int = 0) -> Any:
    rows = [Answer(partition_id=number, error_code=code, error_message=None) for number in numbers]
    return Answer(error_code=0, replica_election_results=[Answer(topic=topic, partition_result=rows)])


def client_of(fake: FakeCluster) -> ClusterClient:
    return cast("ClusterClient", fake)


def partitions(count: int) -> list[TopicPartition]:
    return [TopicPartition("t", number) for number in range(count)]


def test_elections_in_batches_each_partition_with_its_answer() -> None:
    fake = FakeCluster(lambda request: fake.elect(request, NOT_NEEDED))
    assert set(elect_leaders(client_of(fake), partitions(120)).values()) == {None}
    assert [len(request.topic_partitions[0].partitions) for request in fake.requests] == [50, 50, 20]
    refusing = FakeCluster(lambda request: elected("t", request.topic_partitions[0].partitions[1:], NOT_AVAILABLE))
    outcome = elect_leaders(client_of(refusing), partitions(2))
    assert isinstance(outcome[TopicPartition("t", 1)], Refused)
    assert "does not name t-0" in str(outcome[TopicPartition("t", 0)])


def test_who_may_not_elect_is_told_what_it_takes() -> None:
    fake = FakeCluster(lambda _request: Answer(error_code=NOT_AUTHORIZED, replica_election_results=[]))
    with pytest.raises(NotAuthorized) as refused:
        elect_leaders(client_of(fake), partitions(120))
    assert refused.value.hint == "it needs an ACL for Alter on the cluster"
    assert len(fake.requests) == 1


def test_after_a_request_without_answer_nothing_more_is_sent() -> None:
    def second_is_lost(request: Any) -> Any:
        return fake.elect(request) if len(fake.requests) == 1 else OutcomeUnknown("broker 1 did not answer")

    fake = FakeCluster(second_is_lost)
    outcome = elect_leaders(client_of(fake), partitions(120))
    kinds = [type(outcome[tp]).__name__ for tp in partitions(120)]
    assert kinds == ["NoneType"] * 50 + ["OutcomeUnknown"] * 50 + ["OperationFailed"] * 20
    assert len(fake.requests) == 2


def test_without_a_controller_that_is_said_once() -> None:
    fake = FakeCluster(lambda _request: OperationFailed("the cluster has no controller"))
    with pytest.raises(OperationFailed, match="no controller"):
        elect_leaders(client_of(fake), partitions(120))


def plan_of(count: int) -> list[Election]:
    return [Election("t", number, 2, 1, ItemResult.WOULD_ELECT) for number in range(count)]


def test_what_counts_is_the_leader_that_is_seen() -> None:
    def done_but_not_answered(request: Any) -> Any:
        fake.elect(request)
        return OutcomeUnknown("broker 1 did not answer")

    fake = FakeCluster(done_but_not_answered)
    done = carry_out(client_of(fake), plan_of(3), timeout_s=0.5)
    assert [(row.result, row.elected) for row in done] == [("elected", 1)] * 3

    claims = FakeCluster(lambda request: elected("t", request.topic_partitions[0].partitions))
    (row,) = carry_out(client_of(claims), plan_of(1), timeout_s=0.3)
    assert (row.result, row.reason) == ("failed", "broker 2 leads")


def test_some_fail_and_the_others_are_elected() -> None:
    def all_but_one(request: Any) -> Any:
        answer = fake.elect(request)
        fake.leaders[1] = 2
        answer.replica_election_results[0].partition_result[1].error_code = NOT_AVAILABLE
        return answer

    fake = FakeCluster(all_but_one)
    rows = [*plan_of(3), Election("t", 9, 2, 1, ItemResult.SKIPPED, "broker 1 is down")]
    done = carry_out(client_of(fake), rows, timeout_s=5)
    assert [row.result for row in done] == ["elected", "failed", "elected", "skipped"]
    assert "PREFERRED_LEADER_NOT_AVAILABLE" in (done[1].reason or "")


def test_partitions_that_there_are_not() -> None:
    fake = client_of(FakeCluster(lambda _request: None))
    with pytest.raises(NotFound, match="topic u does not exist"):
        choose(fake, ["u"])
    with pytest.raises(NotFound, match="topic t has no partition 120, 121"):
        choose(fake, ["t"], partitions=[5, 121, 120])
    assert [p.partition for p in choose(fake, ["t"], partitions=[5])[1]] == [5]


def test_brokers_that_are_too_old() -> None:
    from kafka.protocol.admin import AlterPartitionReassignmentsRequest, ElectLeadersRequest

    old: Any = Answer(address="old:9092", api_versions={43: (0, 0)})  # as Kafka 2.3 is; a real one is not at hand
    for request in (
        ElectLeadersRequest(topic_partitions=[], min_version=1),
        AlterPartitionReassignmentsRequest(topics=[]),
    ):
        with pytest.raises(NotSupported) as refused:
            negotiate(request, None, old)
        assert refused.value.hint == "upgrade to Kafka 2.4 or later"


def test_reassignments_that_are_refused_one_by_one() -> None:
    def answer(request: Any) -> Any:
        rows = [
            Answer(partition_index=row.partition_index, error_code=NO_REASSIGNMENT, error_message=None)
            for row in request.topics[0].partitions
        ]
        return Answer(error_code=0, error_message=None, responses=[Answer(name="t", partitions=rows)])

    first, second = partitions(2)
    failed = alter_reassignments(client_of(FakeCluster(answer)), {first: None, second: (1, 2)})
    assert list(failed) == [second], "to cancel what does not move is no failure"
