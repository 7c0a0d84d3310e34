"""Files of Kafka's tools as these read them: 416 forms were run through Kafka 3.9.2 and 4.4.0, which agree on each."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from kctl.errors import InvalidFile, UsageError
from kctl.leader.election_file import parse_election_file
from kctl.reassign.plan_file.read import parse_plan
from kctl.reassign.planner.live_cluster import read_topics_file
from kctl.topics.offset_file import parse_offset_file

# [file, form, the bytes as Latin-1, "=" and what Kafka read or "!" and why not], by tests/support/KafkaFiles.java
FORMS = json.loads((Path(__file__).parents[2] / "data" / "kafka_files.json").read_text())

KINDS = ["delete", "reassign", "topics", "elect"]

# What Kafka's tools take without a word, and brokers or the next reader do not.
STRICTER = {
    *("key twice", "key twice inner", "other key twice", "twice", "twice otherwise", "trailing data", "two documents"),
    *("latin-1", "empty list", "empty object", "version only"),
    *("name /", "name ..", "name blank", 'topic ""', "partition -1", "partition -2", "offset -2", "replicas [-1]"),
    *('log_dirs ["any","d"]', 'log_dirs ["ANY","any"]'),
}
# A mark that editors leave; a number that nothing reads; a plan with nothing to do; topics called "null" and "1".
LOOSER = {("*", "BOM"), ("*", "big number"), ("reassign", "empty list"), ("topics", "null"), ("topics", "number")}


def _read(kind: str, data: bytes, tmp_path: Path) -> object:
    readers: dict[str, Callable[[bytes, str], object]] = {
        "delete": parse_offset_file,
        "reassign": lambda text, name: replace(parse_plan(text, name), digest=""),
        "elect": parse_election_file,
    }
    if kind == "topics":
        path = tmp_path / "f"
        path.write_bytes(data)
        return read_topics_file(path)
    return readers[kind](data, "f")


@pytest.mark.parametrize("kind", KINDS)
def test_what_kafka_takes_and_what_it_refuses(kind: str, tmp_path: Path) -> None:
    wrong = []
    for _, form, text, kafka in (row for row in FORMS if row[0] == kind):
        try:
            _read(kind, text.encode("latin-1"), tmp_path)
            count = True
        except (InvalidFile, UsageError):
            count = False
        expected = kafka.startswith("=")
        if count != expected and not (form in STRICTER if expected else {(kind, form), ("*", form)} & LOOSER):
            wrong.append((form, kafka))
    assert not wrong


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("form", ["extra top", "extra inner", "extra null", "no version"])
def test_extra_fields_are_passed_over(kind: str, form: str, tmp_path: Path) -> None:
    texts = {row[1]: row[2] for row in FORMS if row[0] == kind}
    assert _read(kind, texts[form].encode(), tmp_path) == _read(kind, texts["plain"].encode(), tmp_path)


def test_what_is_read_is_what_kafka_reads(tmp_path: Path) -> None:
    text = b'{"version":1,"partitions":[{"topic":"orders","partition":0,"offset":3,"note":"x"}]}'
    assert parse_offset_file(text, "f") == {("orders", 0): 3}
    text = (
        b'{"partitions":[{"topic":"u","partition":0},{"topic":"t","partition":10},{"topic":"t","partition":9,"x":1}]}'
    )
    assert parse_election_file(text, "f") == [("t", 9), ("t", 10), ("u", 0)]
    path = tmp_path / "topics.json"
    path.write_text('{"topics":[{"topic":"a","why":1},{"topic":"b"}],"version":1,"owner":"x"}')
    assert read_topics_file(path) == ["a", "b"]
    path.write_bytes(b"\xef\xbb\xbfa\r\n# b\r\n\r\nc\n")
    assert read_topics_file(path) == ["a", "c"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("orders\nbad name\n", r"f:2: \"bad name\" is not a topic name"),
        ('[{"topic":"t"}]', "does not contain a JSON object"),
        ('{"version":2,"topics":[]}', "has version 2; kctl supports version 1"),
        ('{"version":"1","topics":[]}', 'has version "1"; kctl'),
        ('{"topics":[{"topic":"t"},1]}', r"topics\[1\]: it is not an object: 1"),
        ('{"topics":[{"topic":1}]}', r"topics\[0\]: topic 1: not a string"),
        ('{"topics":{}}', 'no list "topics"'),
        ('{"topics":' + "[" * 100_000, "nested too deeply"),
    ],
)
def test_what_is_wrong_in_a_list_of_topics_is_named(text: str, says: str, tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_text(text)
    with pytest.raises(InvalidFile, match=says):
        read_topics_file(path)
