"""What truncating would delete, whom it takes unread records from, and Kafka's offset file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import SimpleNamespace as Answer
from typing import Any, cast

import pytest

from kctl.cluster.offsets import OffsetSpec
from kctl.errors import ConnectionFailed, InvalidFile, NotAuthorized, Refused
from kctl.model import Broker, ClusterState, PartitionState, TopicPartition, TopicState
from kctl.protocol.client import ClusterClient
from kctl.topics.offset_file import parse_offset_file
from kctl.topics.readers import Reader
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


class _GrowingLog:
    """A leader of t-0 whose log gets a record each time that somebody looks at it. Only old records before 10."""

    def __init__(self, allowed: set[int] | None = None) -> None:
        self.end, self.allowed = 10, allowed
        partition = PartitionState("t", 0, 1, 0, (1,), (1,))
        self.state = ClusterState("id", 1, {1: Broker(1, "h", 1)}, {"t": TopicState("t", False, None, (partition,))})

    def metadata(self, topics: object = None, **_: object) -> ClusterState:
        return self.state if self.allowed is None else replace(self.state, operations={"t": frozenset(self.allowed)})

    def send(self, request: Any) -> Any:
        return self._answer(request)

    def send_each(self, requests: Mapping[int, Any]) -> dict[int, Any]:
        return {node: self._answer(request) for node, request in requests.items()}

    def _answer(self, request: Any) -> Any:
        if type(request).__name__ == "DescribeConfigsRequest":
            self.end += 1
            config = Answer(name="cleanup.policy", value="delete", config_source=5, is_sensitive=False)
            row = Answer(error_code=0, error_message=None, resource_type=2, resource_name="t", configs=[config])
            return Answer(results=[row])
        timestamp = request.topics[0].partitions[0].timestamp
        offset = {OffsetSpec.LATEST: self.end, OffsetSpec.EARLIEST: 0}.get(timestamp, 10 if self.end > 10 else -1)
        self.end += timestamp != OffsetSpec.LATEST
        row = Answer(partition_index=0, error_code=0, offset=offset, timestamp=-1)
        return Answer(topics=[Answer(name="t", partitions=[row])])


def test_what_arrives_after_the_look_stays() -> None:
    log = _GrowingLog()
    client = cast("ClusterClient", log)
    wanted = offsets_at(client, log.state, [TP], 1_000)
    assert wanted == {TP: 10}
    assert log.end == 11
    (row,) = plan_truncate(client, log.state, wanted)
    assert (row.before_offset, row.log_end_offset > 10, row.messages) == (10, True, 10)


@pytest.mark.parametrize(("allowed", "denied"), [({3, 8}, True), (set(), True), ({6, 8}, False), (None, False)])
def test_who_may_not_delete_is_told_before(allowed: set[int] | None, denied: bool) -> None:
    log = _GrowingLog(allowed)
    if not denied:
        assert plan_truncate(cast("ClusterClient", log), log.state, {TP: 5})
        return
    with pytest.raises(NotAuthorized, match="not authorized to delete records of t") as caught:
        plan_truncate(cast("ClusterClient", log), log.state, {TP: 5})
    assert "Delete on the topic" in (caught.value.hint or "")


def test_an_offset_behind_the_end_is_no_advice_to_delete_all() -> None:
    log = _GrowingLog()
    with pytest.raises(Refused, match=r"the log of t-0 ends at 11, before 500$") as caught:
        plan_truncate(cast("ClusterClient", log), log.state, {TP: 500})
    assert (
        caught.value.hint == "nothing was deleted; give a smaller offset, or with --partitions only those that have it"
    )


class _Vanishing(_GrowingLog):
    """A leader that answers DeleteRecords with `code`, and is gone then."""

    def __init__(self, code: int) -> None:
        super().__init__()
        self.code, self.deleted = code, False

    def metadata(self, topics: object = None, **_: object) -> ClusterState:
        if self.deleted:
            raise ConnectionFailed("nobody is there")
        return self.state

    def send_each(self, requests: Mapping[int, Any], **_: object) -> dict[int, Any]:
        self.deleted = True
        row = Answer(partition_index=0, error_code=self.code, low_watermark=5)
        return dict.fromkeys(requests, Answer(topics=[Answer(name="t", partitions=[row])]))


@pytest.mark.parametrize(("code", "said"), [(0, "the leader took it, but"), (6, "partition t-0")])
def test_a_leader_that_is_gone_behind_it(code: int, said: str) -> None:
    (row,) = truncate(cast("ClusterClient", _Vanishing(code)), [planned(TP, 5, 0, 10)])
    assert (row.result, row.low_watermark) == ("failed", None)
    assert said in (row.error or "")


def test_nothing_was_begun_when_leaders_refuse_all() -> None:
    with pytest.raises(NotAuthorized, match=r"^partition t-0: ") as caught:
        truncate(cast("ClusterClient", _Vanishing(29)), [planned(TP, 5, 0, 10)])
    assert "nothing was deleted" in (caught.value.hint or "")


def test_what_groups_have_not_read() -> None:
    rows = [planned(TP, 8, 2, 10), planned(TopicPartition("t", 1), 4, 0, 10)]
    readers = [
        Reader("behind", "Empty", 0, {0: 5, 1: 0}),
        Reader("deleted-before-it-read", "Empty", 0, {0: 0}),
        Reader("at-the-end", "Stable", 2, {0: 10, 1: 10}),
        Reader("just-there", "Stable", 2, {0: 8, 1: 4}),
        Reader("never-committed", "Stable", 2, {}),
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
        ('{"partitions": []}', "names no partitions"),
        ('{"partitions": [], "version": 2}', "version 2"),
        ('{"partitions": [{"topic": "t", "partition": 0}]}', "partitions[0]: it has no offset"),
        ('{"partitions": [{"topic": "a b", "partition": 0, "offset": 0}]}', "only ASCII"),
        ('{"partitions": [{"topic": 1, "partition": 0, "offset": 0}]}', "it is no text"),
        ('{"partitions": [{"topic": "t", "partition": -1, "offset": 0}]}', "-1 is no partition"),
        ('{"partitions": [{"topic": "t", "partition": 0, "offset": -2}]}', "-2 is no offset"),
        ('{"partitions": [{"topic": "t", "partition": 0, "offset": 1.5}]}', "1.5 is no offset"),
        ('{"partitions": [{"topic": "t", "partition": 0, "offset": true}]}', "true is no offset"),
        ('{"partitions": [{"topic": "t", "partition": 0, "offset": 9223372036854775808}]}', "is no offset"),
        (
            '{"partitions": [{"topic": "t", "topic": "u", "partition": 0, "offset": 1}]}',
            "the key 'topic' is there twice",
        ),
        ("[" * 100_000, "nested too deeply"),
        (
            '{"partitions": [' + ", ".join(['{"topic": "t", "partition": 0, "offset": 1}'] * 2) + "]}",
            "partitions[1]: t-0 is there twice",
        ),
    ],
)
def test_bad_offset_files(text: str, said: str) -> None:
    with pytest.raises(InvalidFile) as caught:
        parse_offset_file(text.encode(), "f")
    assert said in caught.value.message
