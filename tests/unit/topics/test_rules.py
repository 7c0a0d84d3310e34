"""The pure rules of `kctl topic`: problems of partitions, sizes, rates, places in logs, partition numbers, patterns."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from types import SimpleNamespace as Answer
from typing import Any, cast

import pytest

from fake_cluster import FakeCluster
from kctl.cluster.partition_numbers import no_partition, parse_each, parse_numbers
from kctl.cluster.reassignments import Moving
from kctl.cluster.topic_configs import ConfigEntry, ConfigSource
from kctl.commands.terminal.expect import check_pattern
from kctl.commands.terminal.invocation import Invocation
from kctl.commands.topic.describe import csv_rows, tables
from kctl.errors import (
    KctlError,
    NotAuthorized,
    NotConfirmed,
    OperationFailed,
    OutcomeUnknown,
    Refused,
    UsageError,
)
from kctl.health.collect import adding_replicas
from kctl.model import ClusterState, PartitionState, TopicPartition, TopicState
from kctl.protocol.client import ClusterClient
from kctl.protocol.codes import ApiKey, ErrorCode
from kctl.topics import describe as describing
from kctl.topics.describe import (
    DescribeRequest,
    PartitionProblem,
    describe,
    describe_chosen,
    has_problem,
    with_problems,
)
from kctl.topics.listing import summaries
from kctl.topics.offsets import failure_lines, parse_offset_spec
from kctl.topics.rates import LogEnds, rates
from kctl.topics.sizes import ReplicaSizes, fetch_sizes, size_of


def _partition(number: int, replicas: tuple[int, ...], isr: tuple[int, ...], leader: int = 1) -> PartitionState:
    return PartitionState("t", number, leader, 0, replicas, isr)


_FULL, _AT, _UNDER, _OFFLINE = (
    _partition(0, (1, 2, 3), (1, 2, 3)),
    _partition(1, (1, 2, 3), (1, 2)),
    _partition(2, (1, 2, 3), (1,)),
    _partition(3, (1, 2, 3), (1, 2, 3), leader=-1),
)


@pytest.mark.parametrize(
    ("problem", "partitions"),
    [
        (PartitionProblem.UNDER_REPLICATED, [1, 2]),
        (PartitionProblem.UNAVAILABLE, [3]),
        (PartitionProblem.UNDER_MIN_ISR, [2, 3]),
        (PartitionProblem.AT_MIN_ISR, [1]),
    ],
)
def test_problems(problem: PartitionProblem, partitions: list[int]) -> None:
    """As TopicCommand.PartitionDescription has them."""
    two = ConfigEntry("min.insync.replicas", "2", ConfigSource.TOPIC)
    topic = describe(TopicState("t", False, None, (_FULL, _AT, _UNDER, _OFFLINE)), [two], None)
    assert [p.partition for p in with_problems(topic, [problem]).partitions] == partitions
    assert with_problems(topic, [problem]).partition_count == 4


def test_replicas_that_a_reassignment_adds_do_not_count() -> None:
    """As Partition.isUnderReplicated and TopicCommand.PartitionDescription (KIP-455)."""
    topic = TopicState("t", False, None, (_AT, _partition(1, (1, 2, 3), (1,))))
    adding = {TopicPartition("t", 1): (3,)}
    moving = {tp: Moving(added, ()) for tp, added in adding.items()}
    described = describe(replace(topic, partitions=(_AT,)), [], moving)
    assert not described.partitions[0].under_replicated
    (row,) = summaries([topic], adding)
    assert row.under_replicated_partitions == 1, "one of the two is out of sync beside what is added"
    (row,) = summaries([topic], OperationFailed("no controller"))
    assert row.under_replicated_partitions == 2


def test_without_configs_the_minimum_is_not_known() -> None:
    topic = describe(TopicState("t", False, None, (_FULL, _UNDER)), OperationFailed("not allowed"), None)
    assert [(p.under_min_isr, p.at_min_isr) for p in topic.partitions] == [(None, None), (None, None)]
    assert not any(has_problem(p, PartitionProblem.AT_MIN_ISR) for p in topic.partitions)
    assert topic.configs_error == "not allowed"


def test_a_minimum_above_the_replicas_counts_as_all_of_them() -> None:
    """Partition.effectiveMinIsr (Kafka 3.7): one replica with min.insync.replicas=2 takes acks=all."""
    two = ConfigEntry("min.insync.replicas", "2", ConfigSource.STATIC_BROKER)
    (single,) = describe(TopicState("t", False, None, (_partition(0, (1,), (1,)),)), [two], None).partitions
    assert (single.under_min_isr, single.at_min_isr) == (False, True)


@pytest.mark.parametrize(
    ("told", "leader", "size", "bytes_"),
    [
        ({1: 5, 2: 7}, 1, ReplicaSizes(12, 0, 5), 12),
        ({1: 5}, 1, ReplicaSizes(5, 1, 5), None),
        ({2: 7}, 1, ReplicaSizes(7, 1, None), None),
        ({2: 7, 1: 5, 3: 1}, -1, ReplicaSizes(13, 0, None), 13),  # a copy on its way to broker 3
        ({}, 1, ReplicaSizes(0, 2, None), None),
    ],
)
def test_sizes(told: dict[int, int], leader: int, size: ReplicaSizes, bytes_: int | None) -> None:
    result = size_of(told, (1, 2), leader)
    assert result == size
    assert result.bytes == bytes_


def test_sizes_of_one_topic_are_not_those_of_all() -> None:
    """State of named topics has no others: that all of it is chosen does not mean all of the cluster."""
    replica = Answer(partition_index=0, partition_size=7, offset_lag=0, is_future_key=False)
    log_dir = Answer(
        error_code=0, log_dir="/d", total_bytes=-1, usable_bytes=-1, is_cordoned=False,
        topics=[Answer(name="t", partitions=[replica])],
    )  # fmt: skip
    topic = TopicState("t", False, None, (_partition(0, (1,), (1,)),))
    fake = FakeCluster([topic], brokers=[1])
    fake.always("DescribeLogDirs", Answer(error_code=0, results=[log_dir]))
    sizes = fetch_sizes(fake.client, fake.metadata(), [topic])
    assert sizes.topic(topic).bytes == 7
    requests = [each.request for each in fake.requests if each.api == "DescribeLogDirs"]
    assert [[(t.topic, list(t.partitions)) for t in request.topics] for request in requests] == [[("t", [0])]]


@pytest.mark.parametrize("error", [OperationFailed("no controller"), OutcomeUnknown("no answer"), NotAuthorized("no")])
def test_topics_are_described_without_a_controller(error: KctlError, monkeypatch: pytest.MonkeyPatch) -> None:
    limits: list[float | None] = []

    class Headless:
        timeout_s = 30.0

        def send_to_controller(self, _request: Any, *, timeout_s: float | None = None) -> Any:
            limits.append(timeout_s)
            raise error

    monkeypatch.setattr(describing, "fetch_topic_configs", lambda *_: {"t": []})
    topic = TopicState("t", False, None, (_FULL,))
    state = ClusterState("id", 1, {}, {"t": topic})
    client = cast("ClusterClient", Headless())
    (described,) = describe_chosen(client, state, [topic])
    assert (described.partitions[0].leader, described.partitions[0].adding_replicas) == (1, None)
    assert limits == [10.0]
    assert adding_replicas(client, state) is error


def test_sizes_add_up() -> None:
    assert ReplicaSizes(10, 0, 5) + ReplicaSizes(4, 0, 2) == ReplicaSizes(14, 0, 7)
    assert ReplicaSizes(10, 0, 5) + ReplicaSizes(4, 1, None) == ReplicaSizes(14, 1, None)


A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)


def test_rates() -> None:
    before, now = LogEnds(10.0, {A0: 5, A1: 7, B0: 1}), LogEnds(12.0, {A0: 5, A1: 11, B0: 31})
    by_topic = [(r.topic, r.partition, r.log_end_offset, r.messages, r.messages_per_s) for r in rates(
        before, now, by_partition=False)]  # fmt: skip
    assert by_topic == [("b", None, 31, 30, 15.0), ("a", None, 16, 4, 2.0)]
    by_partition = [(r.topic, r.partition, r.messages) for r in rates(before, now, by_partition=True)]
    assert by_partition == [("b", 0, 30), ("a", 1, 4), ("a", 0, 0)]


@pytest.mark.parametrize("before", [None, LogEnds(10.0, {}), LogEnds(10.0, {B0: 9})])
def test_no_rate_without_an_earlier_look_at_the_same_log(before: LogEnds | None) -> None:
    """New, seen for the first time, or made anew: its end has gone back."""
    (row,) = rates(before, LogEnds(12.0, {B0: 3}), by_partition=False)
    assert (row.messages, row.messages_per_s, row.log_end_offset) == (None, None, 3)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("latest", -1), ("-1", -1), ("EARLIEST", -2), ("-2", -2), ("max-timestamp", -3), ("-3", -3),
        ("earliest-local", -4), ("latest-tiered", -5), ("-5", -5),
        ("earliest-pending-upload", -6), ("-6", -6), ("2024-05-01", 1_714_521_600_000),
        ("1714521600000", 1_714_521_600_000),
    ],
)  # fmt: skip
def test_places(text: str, place: int) -> None:
    assert parse_offset_spec(text) == place


@pytest.mark.parametrize("text", ["", "-7", "newest", "yesterday"])
def test_no_places(text: str) -> None:
    with pytest.raises(UsageError, match="is not a time"):
        parse_offset_spec(text)


@pytest.mark.parametrize(("text", "numbers"), [("0", {0}), ("0,3-5", {0, 3, 4, 5}), (" 7 , 7-7", {7})])
def test_partition_numbers(text: str, numbers: set[int]) -> None:
    assert parse_numbers(text) == numbers


@pytest.mark.parametrize("text", ["", "-1", "5-3", "1,,2", "a", "0-999999", "1-2-3", "٣"])
def test_bad_partition_numbers(text: str) -> None:
    with pytest.raises(UsageError, match="is not a list of partitions"):
        parse_numbers(text)


@pytest.mark.parametrize(
    ("texts", "numbers"), [(None, None), ([], None), (["3", "0-1"], [0, 1, 3]), (["1", "0-1"], [0, 1])]
)
def test_partition_numbers_of_several_options(texts: list[str] | None, numbers: list[int] | None) -> None:
    assert parse_each(texts) == numbers


@pytest.mark.parametrize(
    ("missing", "count", "message", "hint"),
    [
        ({3}, 3, "topic t has no partition 3", "it has partitions 0 to 2"),
        ({2, 1}, 1, "topic t has no partition 1, 2", "it has only partition 0"),
        (range(1, 1001), 1, "topic t has no partition 1, 2, 3, 4, 5 and 995 more", "it has only partition 0"),
    ],
)
def test_partitions_that_are_not_there(missing: Collection[int], count: int, message: str, hint: str) -> None:
    error = no_partition("t", missing, count)
    assert (error.message, error.hint) == (message, hint)


def test_failures_are_a_line_for_each_reason() -> None:
    failed = {TopicPartition("t", n): OperationFailed(f"t-{n} has no leader") for n in range(7)}
    failed[A0] = OperationFailed("not authorized")
    assert failure_lines(failed) == [
        "no offsets for a-0: not authorized",
        "no offsets for t-0, t-1, t-2, t-3, t-4 and 2 more: it has no leader",
    ]


@pytest.mark.parametrize(
    ("inv", "match", "expect", "raises"),
    [
        (Invocation(), None, None, None),
        (Invocation(yes=True), None, None, None),
        (Invocation(), ["x.*"], None, None),
        (Invocation(yes=True), ["x.*"], 2, None),
        (Invocation(yes=True), ["x.*"], None, NotConfirmed),
        (Invocation(confirm_cluster="c"), ["x.*"], None, NotConfirmed),
        (Invocation(yes=True), ["x.*"], 3, Refused),
        (Invocation(), ["x.*"], 3, Refused),
        (Invocation(), None, 2, UsageError),
    ],
)
def test_a_pattern_that_is_confirmed_beforehand_says_how_many(
    inv: Invocation, match: list[str] | None, expect: int | None, raises: type[Exception] | None
) -> None:
    if raises is None:
        check_pattern(inv, match, expect, 2)
        return
    with pytest.raises(raises):
        check_pattern(inv, match, expect, 2)


# --- eligible leader replicas (KIP-966) -------------------------------------------------------------------------------


def _with_eligible(error_code: int = 0) -> FakeCluster:
    fake = FakeCluster([TopicState("t", False, None, (_FULL, _UNDER))], brokers=[1])
    rows = [
        Answer(partition_index=0, eligible_leader_replicas=[], last_known_elr=[]),
        Answer(partition_index=2, eligible_leader_replicas=[2, 3], last_known_elr=[3]),
    ]
    topics = [Answer(error_code=error_code, name="t", partitions=rows)]
    fake.always("DescribeTopicPartitions", Answer(topics=topics, next_cursor=None))
    fake.always("ListPartitionReassignments", OperationFailed("no controller"))
    fake.always("DescribeConfigs", Answer(results=[Answer(resource_name="t", error_code=0, configs=[])]))
    return fake


def test_without_support_of_eligible_replicas_everything_stays_as_it_is() -> None:
    fake = _with_eligible()
    described = describing.describe_topics(fake.client, DescribeRequest())
    assert fake.sent["DescribeTopicPartitions"] == 0
    assert [(p.eligible, p.last_known_eligible) for p in described.topics[0].partitions] == [(None, None)] * 2
    assert "eligible" not in csv_rows(described.topics)[0]
    assert "ELR" not in [column.title for column in tables(described.topics[0])[0].columns]


def test_eligible_replicas_are_described() -> None:
    fake = _with_eligible()
    fake.versions[ApiKey.DESCRIBE_TOPIC_PARTITIONS] = 0
    (topic,) = describing.describe_topics(fake.client, DescribeRequest()).topics
    assert fake.sent["DescribeTopicPartitions"] == 1
    assert [(p.eligible, p.last_known_eligible) for p in topic.partitions] == [((), ()), ((2, 3), (3,))]
    assert [row["eligible"] for row in csv_rows([topic])] == [[], [2, 3]]
    assert [column.title for column in tables(topic)[0].columns][4:6] == ["ELR", "LAST KNOWN ELR"]
    healthy = _with_eligible()
    healthy.versions[ApiKey.DESCRIBE_TOPIC_PARTITIONS] = 0
    healthy.topics["t"] = TopicState("t", False, None, (_FULL,))
    (in_sync,) = describing.describe_topics(healthy.client, DescribeRequest()).topics
    assert in_sync.partitions[0].eligible == ()
    assert healthy.sent["DescribeTopicPartitions"] == 0, "no other replica can be eligible"
    fine = with_problems(topic, [PartitionProblem.UNAVAILABLE])
    assert "ELR" not in [column.title for column in tables(fine)[0].columns], "it is shown only where there is one"


def test_what_is_not_known_about_eligible_replicas_is_said() -> None:
    fake = _with_eligible(ErrorCode.UNKNOWN_SERVER_ERROR)
    fake.versions[ApiKey.DESCRIBE_TOPIC_PARTITIONS] = 0
    described = describing.describe_topics(fake.client, DescribeRequest())
    assert [p.eligible for p in described.topics[0].partitions] == [None, None]
    assert any(line.startswith("eligible leader replicas are unknown: ") for line in described.doubts)
