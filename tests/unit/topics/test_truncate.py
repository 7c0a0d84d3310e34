"""What truncating would delete, whom it takes unread records from, and Kafka's offset file."""

from __future__ import annotations

from types import SimpleNamespace as Answer
from typing import Any

import pytest

from fake_cluster import FakeCluster, topic_of
from kctl.cluster.offsets import OffsetSpec
from kctl.errors import ConnectionFailed, InvalidFile, NotAuthorized, Refused
from kctl.model import TopicPartition
from kctl.topics.offset_file import parse_offset_file
from kctl.topics.readers import ReadingGroup
from kctl.topics.truncate import HIGH_WATERMARK, offsets_at, plan_truncate, planned, truncate, unread

TP = TopicPartition("t", 0)


@pytest.mark.parametrize(
    ("offset", "start", "end", "result", "before", "messages"),
    [
        (5, 0, 10, "would delete", 5, 5),
        (HIGH_WATERMARK, 3, 10, "would delete", 10, 7),
        (HIGH_WATERMARK, 10, 10, "unchanged", 10, 0),
        (3, 3, 10, "unchanged", 3, 0),
        (1, 3, 10, "unchanged", 1, 0),
        (0, 0, 0, "unchanged", 0, 0),
    ],
)
def test_planned(offset: int, start: int, end: int, result: str, before: int, messages: int) -> None:
    row = planned(TP, offset, start, end)
    assert (row.result, row.before_offset, row.messages, row.low_watermark) == (result, before, messages, None)


def _growing_log(allowed: set[int] | None = None) -> FakeCluster:
    """A leader of t-0 whose log gets a record each time that somebody looks at it. Only old records before 10."""
    fake = FakeCluster([topic_of("t", 1, replicas=(1,))], brokers=[1])
    fake.logs[TP] = (0, 10)

    def grow() -> int:
        """Return the end before the new record."""
        start, end = fake.logs[TP]
        fake.logs[TP] = (start, end + 1)
        return end

    def configs(*_: object) -> Any:
        grow()
        config = Answer(name="cleanup.policy", value="delete", config_source=5, is_sensitive=False)
        row = Answer(error_code=0, error_message=None, resource_type=2, resource_name="t", configs=[config])
        return Answer(results=[row])

    def offsets(_node: int, request: Any) -> Any:
        timestamp = request.topics[0].partitions[0].timestamp
        end = fake.logs[TP][1] if timestamp == OffsetSpec.LATEST else grow()
        offset = {OffsetSpec.LATEST: end, OffsetSpec.EARLIEST: 0}.get(timestamp, 10 if end > 10 else -1)
        row = Answer(partition_index=0, error_code=0, offset=offset, timestamp=-1)
        return Answer(topics=[Answer(name="t", partitions=[row])])

    if allowed is not None:
        fake.operations["t"] = frozenset(allowed)
    fake.always("DescribeConfigs", configs)
    fake.always("ListOffsets", offsets)
    return fake


def test_what_arrives_after_the_look_stays() -> None:
    fake = _growing_log()
    expected = offsets_at(fake.client, fake.metadata(), [TP], 1_000)
    assert expected == {TP: 10}
    assert fake.logs[TP] == (0, 11)
    (row,) = plan_truncate(fake.client, fake.metadata(), expected)
    assert (row.before_offset, row.log_end_offset > 10, row.messages) == (10, True, 10)


@pytest.mark.parametrize(("allowed", "denied"), [({3, 8}, True), (set(), True), ({6, 8}, False), (None, False)])
def test_who_may_not_delete_is_told_before(allowed: set[int] | None, denied: bool) -> None:
    fake = _growing_log(allowed)
    if not denied:
        assert plan_truncate(fake.client, fake.metadata(), {TP: 5})
        return
    with pytest.raises(NotAuthorized, match="not authorized to delete records of t") as caught:
        plan_truncate(fake.client, fake.metadata(), {TP: 5})
    assert "Delete on the topic" in (caught.value.hint or "")


def test_an_offset_behind_the_end_is_no_advice_to_delete_all() -> None:
    fake = _growing_log()
    with pytest.raises(Refused, match=r"the log of t-0 ends at 11, before 500$") as caught:
        plan_truncate(fake.client, fake.metadata(), {TP: 500})
    assert caught.value.hint == "nothing was deleted; use a smaller offset, or select partitions with --partition"


def _vanishing(code: int) -> FakeCluster:
    """A leader that answers DeleteRecords with `code`, and is gone then."""
    fake = _growing_log()

    def deleted(*_: object) -> Any:
        fake.always("Metadata", ConnectionFailed("nobody is there"))
        row = Answer(partition_index=0, error_code=code, low_watermark=5)
        return Answer(topics=[Answer(name="t", partitions=[row])])

    fake.always("DeleteRecords", deleted)
    return fake


@pytest.mark.parametrize(("code", "said"), [(0, "the deletion was accepted, but"), (6, "partition t-0")])
def test_a_leader_that_is_gone_behind_it(code: int, said: str) -> None:
    (row,) = truncate(_vanishing(code).client, [planned(TP, 5, 0, 10)])
    assert (row.result, row.low_watermark) == ("failed", None)
    assert said in (row.error or "")


def test_nothing_was_begun_when_leaders_refuse_all() -> None:
    with pytest.raises(NotAuthorized, match=r"^partition t-0: ") as caught:
        truncate(_vanishing(29).client, [planned(TP, 5, 0, 10)])
    assert "nothing was deleted" in (caught.value.hint or "")


def test_what_groups_have_not_read() -> None:
    rows = [planned(TP, 8, 2, 10), planned(TopicPartition("t", 1), 4, 0, 10)]
    readers = [
        ReadingGroup("behind", "Empty", 0, {0: 5, 1: 0}),
        ReadingGroup("deleted-before-it-read", "Empty", 0, {0: 0}),
        ReadingGroup("at-the-end", "Stable", 2, {0: 10, 1: 10}),
        ReadingGroup("just-there", "Stable", 2, {0: 8, 1: 4}),
        ReadingGroup("never-committed", "Stable", 2, {}),
    ]
    assert unread(rows, {"t": readers}) == {"behind": 3 + 4, "deleted-before-it-read": 6}


def test_offset_file() -> None:
    text = '{"partitions": [{"topic": "t", "partition": 0, "offset": -1}, {"offset": 7, "topic": "u", "partition": 2}]}'
    assert parse_offset_file(text.encode(), "f") == {TP: -1, TopicPartition("u", 2): 7}
    assert parse_offset_file(text.replace("]}", '], "version": 1}').encode(), "f")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "cannot be read as JSON"),
        ("[]", "does not contain a JSON object"),
        ('{"partitions": {}}', 'no list "partitions"'),
        ('{"partitions": []}', "lists no partitions"),
        ('{"partitions": [], "version": 2}', "version 2"),
        ('{"partitions": [{"topic": "t", "partition": 0}]}', "partitions[0]: it has no offset"),
        ('{"partitions": [{"topic": "a b", "partition": 0, "offset": 0}]}', "only ASCII"),
        ('{"partitions": [{"topic": 1, "partition": 0, "offset": 0}]}', "it is not a string"),
        ('{"partitions": [{"topic": "t", "partition": -1, "offset": 0}]}', "-1 is not a partition number"),
        ('{"partitions": [{"topic": "t", "partition": 0, "offset": -2}]}', "-2 is not an offset"),
        ('{"partitions": [{"topic": "t", "partition": 0, "offset": 1.5}]}', "1.5 is not an offset"),
        ('{"partitions": [{"topic": "t", "partition": 0, "offset": true}]}', "true is not an offset"),
        ('{"partitions": [{"topic": "t", "partition": 0, "offset": 9223372036854775808}]}', "is not an offset"),
        (
            '{"partitions": [{"topic": "t", "topic": "u", "partition": 0, "offset": 1}]}',
            "duplicate key 'topic'",
        ),
        ("[" * 100_000, "nested too deeply"),
        (
            '{"partitions": [' + ", ".join(['{"topic": "t", "partition": 0, "offset": 1}'] * 2) + "]}",
            "partitions[1]: t-0 is listed twice",
        ),
    ],
)
def test_bad_offset_files(text: str, said: str) -> None:
    with pytest.raises(InvalidFile) as caught:
        parse_offset_file(text.encode(), "f")
    assert said in caught.value.message
