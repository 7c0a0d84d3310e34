"""Start offsets of share groups, planned, set and deleted, with answers that a real coordinator does not give on
demand; and what a reset of a streams group leaves behind."""

from __future__ import annotations

from types import SimpleNamespace as Answer
from typing import Any

import pytest

from fake_cluster import FakeCluster, topic_of
from kctl.base.outcomes import ItemResult
from kctl.cluster.groups.model import Group, Member
from kctl.cluster.groups.streams import InternalTopic, Subtopology, Topology
from kctl.commands.app import main
from kctl.errors import (
    ConnectionFailed,
    KctlError,
    NotAuthorized,
    NotSupported,
    OperationFailed,
    OutcomeUnknown,
    Refused,
)
from kctl.groups import share_offsets
from kctl.groups.basis import of_deleted, of_deleted_offsets, of_reset
from kctl.groups.delete import delete_offsets, plan_delete, plan_delete_offsets
from kctl.groups.reset import apply_reset, plan_reset
from kctl.groups.reset_rules import ResetTarget, To
from kctl.groups.share_offsets import delete_starts, set_starts
from kctl.groups.streams_topics import internal_topics
from kctl.groups.topic_choice import TopicChoice
from kctl.model import TopicPartition

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
OTHER = TopicPartition("u", 9)
COORDINATOR = {"s": 1}


class ShareCluster(FakeCluster):
    """A share group "s" with these start offsets (None: not read yet); topic "t" has two partitions of 0 to 20."""

    def __init__(self, starts: dict[TopicPartition, int | None], *members: Member) -> None:
        super().__init__([topic_of("t", 1, 1)], brokers=[1])
        self.starts, self.members = starts, members
        self.exists, self.lag = True, -1
        self.logs = {T0: (0, 20), T1: (0, 20)}
        self.always("DescribeCluster", Answer(error_code=0, authorized_operations={8}))

    def _DescribeGroups(self, _node: int, request: Any) -> Any:  # noqa: N802
        return Answer(groups=[
            Answer(error_code=69, error_message=None, group_id=g, members=[], protocol_type="", protocol_data="",
                   group_state="Dead")
            for g in request.groups
        ])  # fmt: skip

    def _ListGroups(self, _node: int, _request: Any) -> Any:  # noqa: N802
        state = "Stable" if self.members else "Empty"
        row = Answer(group_id="s", group_state=state, protocol_type="share", group_type="share")
        return Answer(error_code=0, groups=[row] if self.exists else [])

    def _ShareGroupDescribe(self, _node: int, _request: Any) -> Any:  # noqa: N802
        members = [
            Answer(member_id=m.member_id, member_epoch=1, client_id=m.client_id, client_host=m.host, rack_id=None,
                   subscribed_topic_names=["t"], assignment=Answer(topic_partitions=[]))
            for m in self.members
        ]  # fmt: skip
        state = "Stable" if self.members else "Empty"
        return Answer(groups=[
            Answer(error_code=0, error_message=None, group_id="s", group_state=state, group_epoch=3, assignment_epoch=3,
                   assignor_name="simple", members=members)
        ])  # fmt: skip

    def _DescribeShareGroupOffsets(self, _node: int, request: Any) -> Any:  # noqa: N802
        if not self.exists:
            return Answer(groups=[Answer(group_id="s", error_code=69, error_message=None, topics=[])])
        rows = [
            Answer(topic_name=tp.topic, partitions=[start_row(tp.partition, start, lag=self.lag)])
            for tp, start in self.starts.items()
        ]
        return Answer(groups=[Answer(group_id=g.group_id, error_code=0, error_message=None, topics=rows)
                              for g in request.groups])  # fmt: skip

    def _AlterShareGroupOffsets(self, _node: int, request: Any) -> Any:  # noqa: N802
        self.exists = True
        rows = []
        for topic in request.topics:
            for p in topic.partitions:
                self.starts[TopicPartition(topic.topic_name, p.partition_index)] = p.start_offset
            rows.append((topic.topic_name, [(p.partition_index, 0) for p in topic.partitions]))
        return altered(*rows)

    def _DeleteShareGroupOffsets(self, _node: int, request: Any) -> Any:  # noqa: N802
        names = [topic.topic_name for topic in request.topics]
        self.starts = {tp: start for tp, start in self.starts.items() if tp.topic not in names}
        return deleted(*((name, 0) for name in names))


def start_row(partition: int, start: int | None, code: int = 0, *, lag: int = -1) -> Answer:
    return Answer(
        partition_index=partition, start_offset=-1 if start is None else start, leader_epoch=0, lag=lag,
        error_code=code, error_message=None,
    )  # fmt: skip


def altered(*topics: tuple[str, list[tuple[int, int]]], code: int = 0) -> Answer:
    rows = [
        Answer(topic_name=name, partitions=[
            Answer(partition_index=number, error_code=each, error_message=None) for number, each in partitions
        ])
        for name, partitions in topics
    ]  # fmt: skip
    return Answer(error_code=code, error_message=None, responses=rows)


def deleted(*topics: tuple[str, int], code: int = 0) -> Answer:
    rows = [Answer(topic_name=name, error_code=each, error_message=None) for name, each in topics]
    return Answer(error_code=code, error_message=None, responses=rows)


def fake(*answers: Any, api: str = "AlterShareGroupOffsets") -> FakeCluster:
    made = FakeCluster(brokers=[1])
    made.script(api, *answers)
    return made


def set_both(cluster: FakeCluster) -> dict[TopicPartition, KctlError | None]:
    return set_starts(cluster.client, {"s": {T0: 5, T1: 6}}, coordinators=COORDINATOR)["s"]


# --- answers ------------------------------------------------------------------------------------------------------


def test_each_partition_has_its_own_outcome() -> None:
    """A response may lack a partition, and have one that was not requested."""
    outcomes = set_both(fake(altered(("t", [(0, 0), (7, 0)]), ("u", [(9, 29)]))))
    assert outcomes.keys() == {T0, T1}
    assert outcomes[T0] is None
    assert isinstance(outcomes[T1], OperationFailed)
    assert "t-1 is missing from the coordinator's response" in str(outcomes[T1])
    refused = set_both(fake(altered(("t", [(0, 29), (1, 0)]))))
    assert (type(refused[T0]), refused[T1]) == (NotAuthorized, None)


def test_a_coordinator_that_moved_is_asked_again() -> None:
    cluster = fake(altered(code=16), altered(("t", [(0, 0), (1, 15)])), altered(("t", [(0, 0), (1, 0)])))
    assert set_both(cluster) == {T0: None, T1: None}
    assert cluster.sent["AlterShareGroupOffsets"] == 3
    deletion = fake(deleted(code=14), deleted(("t", 0)), api="DeleteShareGroupOffsets")
    assert delete_starts(deletion.client, "s", ["t"]) == {"t": None}


def test_a_group_that_has_members_by_now_is_a_refusal() -> None:
    for outcome in set_both(fake(altered(code=68))).values():
        assert isinstance(outcome, Refused)
        assert "group 's' has members now" in outcome.message
    for error in delete_starts(fake(deleted(code=68), api="DeleteShareGroupOffsets").client, "s", ["t"]).values():
        assert isinstance(error, Refused)


def test_a_change_without_an_answer_is_not_repeated() -> None:
    cluster = fake(OutcomeUnknown("no answer"))
    assert [type(error) for error in set_both(cluster).values()] == [OutcomeUnknown, OutcomeUnknown]
    assert cluster.sent["AlterShareGroupOffsets"] == 1


def test_after_a_failure_the_rest_of_the_group_is_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(share_offsets, "_PER_REQUEST", 1)
    cluster = fake(altered(("t", [(0, 56)])))
    outcomes = set_both(cluster)
    assert cluster.sent["AlterShareGroupOffsets"] == 1
    assert "not sent, because of an earlier failure" in str(outcomes[T1])


def test_a_topic_of_a_deletion_that_is_missing_in_the_answer_failed() -> None:
    cluster = fake(deleted(("other", 0), ("u", 3)), api="DeleteShareGroupOffsets")
    outcomes = delete_starts(cluster.client, "s", ["t", "u"])
    assert outcomes.keys() == {"t", "u"}
    assert "topic t is missing" in str(outcomes["t"])
    assert outcomes["u"] is not None


# --- reset --------------------------------------------------------------------------------------------------------


def test_a_reset_is_planned_from_the_start_offsets_and_read_back() -> None:
    cluster = ShareCluster({T0: 8, T1: None})
    plan = plan_reset(cluster.client, ["s"], ResetTarget(To.OFFSET, 5))
    rows = [(row.partition, row.old_offset, row.new_offset, row.read_again, row.result.value) for row in plan.rows]
    assert rows == [(0, 8, 5, 3, "would reset"), (1, None, 5, None, "would reset")]
    of_reset(cluster.client, plan.todo).check()
    done, errors = apply_reset(cluster.client, plan)
    assert ([row.result for row in done], errors) == ([ItemResult.RESET, ItemResult.RESET], [])
    assert cluster.starts == {T0: 5, T1: 5}
    assert not cluster.sent.keys() & {"OffsetFetch", "OffsetCommit"}, "which would fail for a share group"


@pytest.mark.parametrize(
    ("target", "lag", "result"),
    [
        (ResetTarget(To.OFFSET, 8), 12, "unchanged"),  # nothing after the start offset is done
        (ResetTarget(To.OFFSET, 8), 5, "would reset"),
        (ResetTarget(To.OFFSET, 8), -1, "would reset"),  # brokers before 4.2 do not report it
        (ResetTarget(To.CURRENT), 5, "unchanged"),
    ],
)
def test_a_reset_to_the_same_offset_makes_later_records_available_again(
    target: ResetTarget, lag: int, result: str
) -> None:
    cluster = ShareCluster({T0: 8})
    cluster.lag = lag
    (row,) = plan_reset(cluster.client, ["s"], target).rows
    note = "records after it become available again" if result == "would reset" else None
    assert (row.result.value, row.note) == (result, note)


def test_a_shift_needs_a_start_offset() -> None:
    plan = plan_reset(ShareCluster({T0: 8, T1: None}).client, ["s"], ResetTarget(To.SHIFT, 2))
    assert [(row.new_offset, row.error) for row in plan.rows] == [(10, None), (None, "no start offset to shift")]
    with pytest.raises(Refused, match="no start offset to shift"):
        plan.check()


def test_a_group_with_members_is_refused() -> None:
    cluster = ShareCluster({T0: 8}, Member("m", None, "worker", "/10.0.0.1", None))
    plan = plan_reset(cluster.client, ["s"], ResetTarget(To.EARLIEST))
    with pytest.raises(Refused, match=r"group 's' is Stable, with members: worker at 10.0.0.1"):
        apply_reset(cluster.client, plan)
    with pytest.raises(Refused, match="with members"):
        plan_delete_offsets(cluster.client, "s", [TopicChoice("t", None)])
    assert cluster.sent["AlterShareGroupOffsets"] == 0


def test_a_start_offset_that_moved_while_the_question_waited_is_refused() -> None:
    cluster = ShareCluster({T0: 8, T1: 3})
    plan = plan_reset(cluster.client, ["s"], ResetTarget(To.EARLIEST))
    basis = of_reset(cluster.client, plan.todo)
    cluster.starts[T0] = 9
    with pytest.raises(Refused, match="group 's' has moved since the plan was made: t-0 had 8, now 9"):
        apply_reset(cluster.client, plan)
    with pytest.raises(Refused, match="the offset of group s for t-0: committed was 8 and is now 9"):
        basis.check()
    assert cluster.sent["AlterShareGroupOffsets"] == 0


def test_another_start_offset_than_the_planned_one_failed() -> None:
    cluster = ShareCluster({T0: 8})
    plan = plan_reset(cluster.client, ["s"], ResetTarget(To.EARLIEST))
    cluster.always("AlterShareGroupOffsets", altered(("t", [(0, 0)])))
    (row,), errors = apply_reset(cluster.client, plan)
    assert (row.result, row.error) == (ItemResult.FAILED, "the start offset is 8 instead")
    assert len(errors) == 1


def test_a_start_offset_that_cannot_be_read_ends_the_plan() -> None:
    cluster = ShareCluster({})
    topics = [Answer(topic_name="t", partitions=[start_row(0, None, 29)])]
    cluster.always(
        "DescribeShareGroupOffsets",
        Answer(groups=[Answer(group_id="s", error_code=0, error_message=None, topics=topics)]),
    )
    with pytest.raises(NotAuthorized, match="start offset of t-0"):
        plan_reset(cluster.client, ["s"], ResetTarget(To.EARLIEST))


def test_a_share_group_is_created_with_its_start_offset() -> None:
    cluster = ShareCluster({})
    cluster.exists = False
    choice = [TopicChoice("t", (0,))]
    plan = plan_reset(cluster.client, ["s"], ResetTarget(To.OFFSET, 5), choice, create=True, create_share=True)
    done, errors = apply_reset(cluster.client, plan)
    assert ([row.result for row in done], errors, cluster.starts) == ([ItemResult.RESET], [], {T0: 5})


def test_only_classic_and_share_groups_are_created(capsys: pytest.CaptureFixture[str]) -> None:
    for args, said in (
        (("--create", "--type", "streams"), "--create cannot create streams groups"),
        (("--create", "--type", "what"), "'what' is not a group type"),
    ):
        code = main(["group", "reset-offsets", "s", "--topic", "t", "--to-latest", *args])
        assert (code, said in capsys.readouterr().err) == (2, True)


# --- delete -------------------------------------------------------------------------------------------------------


def test_offsets_are_deleted_by_topic() -> None:
    cluster = ShareCluster({T0: 8, T1: None, OTHER: 1})
    with pytest.raises(Refused, match="for a whole topic, not for partitions") as refused:
        plan_delete_offsets(cluster.client, "s", [TopicChoice("t", (0,))])
    assert refused.value.hint == "nothing was changed; use --topic t"
    plan = plan_delete_offsets(cluster.client, "s", [TopicChoice("t", None)])
    assert [(row.partition, row.committed_offset) for row in plan.todo] == [(0, 8), (1, None)]
    of_deleted_offsets(cluster.client, plan.todo).check()
    done, errors = delete_offsets(cluster.client, plan)
    assert ([row.result for row in done], errors) == ([ItemResult.DELETED, ItemResult.DELETED], [])
    assert cluster.starts == {OTHER: 1}


def test_an_offset_that_is_still_there_was_not_deleted() -> None:
    cluster = ShareCluster({T0: 8})
    cluster.always("DeleteShareGroupOffsets", deleted(("t", 0)))
    (row,), errors = delete_offsets(cluster.client, plan_delete_offsets(cluster.client, "s", [TopicChoice("t", None)]))
    assert (row.result, row.error, len(errors)) == (ItemResult.FAILED, "the start offset is still 8", 1)
    cluster = ShareCluster({T0: 8})
    plan = plan_delete_offsets(cluster.client, "s", [TopicChoice("t", None)])
    cluster.always("DescribeShareGroupOffsets", ConnectionFailed("nobody is there"))
    cluster.timeout_s = 0.1
    (row,), _ = delete_offsets(cluster.client, plan)
    assert row.error == "deleted, but not verified: nobody is there"


def test_the_deletion_of_a_group_shows_its_start_offsets() -> None:
    cluster = ShareCluster({T0: 8, T1: None})
    (row,) = plan = plan_delete(cluster.client, ["s"])
    assert [(offset.partition, offset.committed_offset) for offset in row.offsets] == [(0, 8), (1, None)]
    of_deleted(cluster.client, plan).check()
    cluster.always("DescribeShareGroupOffsets", NotSupported("Kafka 4.0"))
    assert plan_delete(cluster.client, ["s"])[0].offsets == ()


# --- streams groups -----------------------------------------------------------------------------------------------


def part(**topics: Any) -> Subtopology:
    empty = dict.fromkeys(
        ("source_topics", "repartition_source_topics", "repartition_sink_topics", "state_changelog_topics"), ()
    )
    return Subtopology("0", **{**empty, **topics})


def named(*names: str) -> tuple[InternalTopic, ...]:
    return tuple(InternalTopic(name, None, None, {}) for name in names)


def test_internal_topics_are_those_that_the_group_created() -> None:
    """A client can claim that any topic is one of its internal topics."""
    topology = Topology(1, (
        part(source_topics=("app-orders", "in"), state_changelog_topics=named("app-count-changelog", "payments")),
        part(repartition_source_topics=named("app-key-repartition", "app-orders", "app")),
    ))  # fmt: skip
    group = Group("app", "Empty", "streams", "streams", 1, topology=topology)
    assert internal_topics(group) == ("app-count-changelog", "app-key-repartition")
    assert internal_topics(Group("app", "Empty", "streams", "streams", 1, topology=Topology(1, None))) == ()
    assert internal_topics(Group("app", "Empty", "consumer", "classic", 1)) == ()
