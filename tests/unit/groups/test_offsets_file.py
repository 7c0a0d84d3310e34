"""Files of offsets, from kctl, from Kafka's own tool, and from people."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kctl.errors import InvalidFile, UsageError
from kctl.groups.commit import OffsetToCommit
from kctl.groups.offsets_file import by_group, parse_offsets, read_offsets_file
from kctl.groups.topic_choice import TopicChoice, matching, parse_choices
from kctl.model import TopicPartition

ROW = {"group": "g", "topic": "t", "partition": 1, "committed_offset": 7, "leader_epoch": 3, "metadata": "x"}


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("g,t,1,7\n", "f.csv"),
        ('g,"t",1,7', "f.csv"),
        ("\ufeffg,t,1,7\r\n\r\n", "f.csv"),
        ("group,topic,partition,result,old_offset,new_offset\ng,t,1,would reset,3,7\n", "f.csv"),
        (json.dumps([{**ROW, "metadata": None}]), "f"),
        (json.dumps([{**ROW, "metadata": "", "new_offset": 7, "committed_offset": 3}]), "f.json"),
        ("- group: g\n  topic: t\n  partition: 1\n  offset: 7\n", "f"),
        ("- group: g\n  topic: t\n  partition: 1\n  committed_offset: 7\n", "f.yaml"),
    ],
)
def test_forms(text: str, name: str) -> None:
    assert parse_offsets(text.encode(), name) == [("g", TopicPartition("t", 1), OffsetToCommit(7))]


def test_metadata_is_kept() -> None:
    ((_, _, entry),) = parse_offsets(json.dumps([ROW]).encode(), "f")
    assert entry == OffsetToCommit(7, "x")


def test_a_line_without_a_group_is_the_named_groups() -> None:
    offsets = parse_offsets(b"t,1,7\nu,0,0\n", "f.csv")
    assert by_group(offsets, default_group="g") == {
        "g": {TopicPartition("t", 1): OffsetToCommit(7), TopicPartition("u", 0): OffsetToCommit(0)}
    }
    with pytest.raises(InvalidFile, match="does not name the group"):
        by_group(offsets)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "has no offsets"),
        (b"\n\n", "has no offsets"),
        (b"[]", "has no offsets"),
        (b"\xff\xfe", "f:1: not UTF-8 text"),
        (b"t,1,7\nt,\xff,7", "f:2: not UTF-8 text"),
        (b"g,t,1,7\ng,t,1,8\n", "f:2: duplicate t-1, first in f:1"),
        (b"t,1\n", "f:1: 2 columns instead of 3"),
        (b"t,x,7\n", "f:1: partition 'x' is not a whole number"),
        (b"t,-1,7\n", "f:1: partition '-1' is not a whole number"),
        (b"t,0,-7\n", "f:1: offset '-7' is not a whole number"),
        (b"t,2147483648,7\n", "f:1: partition 2147483648 is not"),
        (b"t,0,9223372036854775808\n", "f:1: offset 9223372036854775808 is not"),
        (b"b@d,0,7\n", "only ASCII letters"),
        (b'"t,0,7\n', "not CSV"),
        (b"{}", "not a list"),
        (b"[1]", "entry 1 is not an object"),
        (b"[", "not JSON"),
        (b"[NaN]", "NaN is not a number"),
        (b"[" * 100_000, "not JSON"),
        (b'[{"topic": "t", "partition": 0}]', "entry 1 lacks a topic, a partition or an offset"),
        (b'[{"topic": 5, "partition": 0, "offset": 1}]', "entry 1 lacks a topic"),
        (b'[{"topic": "t", "partition": true, "offset": 1}]', "partition True is not"),
        (b'[{"topic": "t", "partition": 0, "offset": 1.5}]', "offset 1.5 is not"),
        (b'[{"topic": "t", "partition": 0, "offset": null}]', "offset None is not"),
        (b'[{"topic": "t", "partition": 0, "offset": 1, "metadata": {}}]', "metadata is not text"),
        (b'[{"topic": "t", "partition": 0, "offset": 1, "metadata": "\\ud800"}]', "metadata is not UTF-8"),
        (b'[{"group": "\\ud800", "topic": "t", "partition": 0, "offset": 1}]', "is not a group id"),
        (b"- &a t\n", "anchor"),
    ],
)
def test_damaged(data: bytes, message: str) -> None:
    with pytest.raises(InvalidFile) as caught:
        parse_offsets(data, "f")
    assert message in caught.value.message


@given(st.binary(max_size=100))
def test_any_bytes_are_offsets_or_told(data: bytes) -> None:
    try:
        found = parse_offsets(data, "f")
    except InvalidFile:
        return
    assert found


def test_a_file_on_disk(tmp_path: Path) -> None:
    path = tmp_path / "offsets.csv"
    path.write_text("t,0,1\n")
    assert len(read_offsets_file(path)) == 1
    with pytest.raises(InvalidFile, match="cannot read"):
        read_offsets_file(tmp_path)


def test_topics_and_partitions() -> None:
    choices = parse_choices(["orders:0,2-4", "payments", "orders:1", "payments:7"])
    assert choices == [TopicChoice("orders", (0, 1, 2, 3, 4)), TopicChoice("payments", None)]
    there = [TopicPartition("orders", 9), TopicPartition("payments", 9), TopicPartition("orders", 3)]
    assert matching(there, choices) == [("orders", 3), ("payments", 9)]
    assert matching(there, []) == sorted(there)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("orders:", "is not a partition"), ("orders:a", "is not a partition"), ("orders:-1", "is not a partition"),
        ("orders:3-1", "is not a partition"), ("orders:0,,1", "is not a partition"), (":0", "it is empty"),
        ("orders:0-9999999999", "is not a partition"), ("orders:0-2000000000", "is not a partition"),
        ("a b", "only ASCII"),
    ],
)  # fmt: skip
def test_no_topics_and_partitions(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        parse_choices([text])
