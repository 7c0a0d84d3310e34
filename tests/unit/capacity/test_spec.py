"""capacity.yaml and input values: how they are parsed, and which are rejected with their position."""

from __future__ import annotations

from fractions import Fraction

import pytest

from kctl.base.units import parse_percent, parse_throughput
from kctl.capacity.current_load import seen_inputs, volume_bytes
from kctl.capacity.fields import DEFAULT, FIELDS, GIVEN, SEEN, Input, parse_input
from kctl.capacity.spec import parse_spec
from kctl.cluster.log_dirs import LogDir
from kctl.cluster.topic_configs import ConfigEntry, ConfigSource
from kctl.errors import InvalidFile, UsageError

GOOD = """\
disk: 4TB
disks_per_broker: 2
network: 10Gbit/s
headroom: 25%
growth: 0.3
topics:
  - name: orders
    throughput: 50MB/s
    retention: 7d
    replication_factor: 3
    compression_ratio: 2.5
  - {name: payments, messages: 2000/s, message_size: 1kB, retention_bytes: 10GB}
"""


def test_capacity_file() -> None:
    topics, cluster = parse_spec(GOOD.encode(), "c.yaml", {})
    assert [each.topic for each in topics] == ["orders", "payments"]
    assert {name: each.value for name, each in cluster.items()} == {
        "disk": 4 * 10**12, "disks_per_broker": 2, "network": 1_250_000_000, "headroom": Fraction(1, 4),
        "growth": Fraction(3, 10),
    }  # fmt: skip
    orders = topics[0].inputs
    assert orders["throughput"] == Input(50_000_000, GIVEN)
    assert orders["min_insync_replicas"] == Input(2, DEFAULT)
    assert orders["compression_ratio"].value == Fraction(5, 2)
    assert "retention" not in topics[1].inputs, "retention by size only"


def test_command_line_overrides_the_file() -> None:
    overrides = {"disk": parse_input("disk", "8TB"), "replication_factor": parse_input("replication_factor", "2")}
    topics, cluster = parse_spec(GOOD.encode(), "c.yaml", overrides)
    assert cluster["disk"].value == 8 * 10**12
    assert [each.inputs["replication_factor"].value for each in topics] == [2, 2]


REFUSED = [
    ("", "no list `topics`"),
    ("[]", "no list `topics`"),
    ("topics: 5", "no list `topics`"),
    ("topics: []", "c.yaml:1:1: the list of topics is empty"),
    ("topics:\n  - orders", "c.yaml:2:5: a topic must be a mapping"),
    ("topics:\n  - {throughput: 1MB/s}", "None is not a topic name"),
    ("topics:\n  - {name: 5, throughput: 1MB/s}", "5 is not a topic name"),
    ("topics:\n  - {name: a/b, throughput: 1MB/s}", "'a/b' is not a topic name"),
    ("topics:\n  - {name: a, throughput: 1MB/s}\n  - {name: a, data: 1TB}", "c.yaml:3:5: duplicate topic a"),
    ("topics:\n  - {name: a}", "c.yaml:2:5: a: no load is specified"),
    ("topics:\n  - name: a\n    througput: 1MB/s", "c.yaml:3:5: unknown key 'througput'"),
    ("disc: 4TB\ntopics:\n  - {name: a, data: 1TB}", "c.yaml:1:1: unknown key 'disc'"),
    ("topics:\n  - name: a\n    disk: 4TB", "c.yaml:3:5: unknown key 'disk'"),
    ("topics:\n  - name: a\n    throughput: 50", "c.yaml:3:5: throughput: '50' is not a throughput"),
    ("topics:\n  - name: a\n    throughput: -1MB/s", "c.yaml:3:5: throughput: '-1MB/s' is not a throughput"),
    ("topics:\n  - name: a\n    data: true", "c.yaml:3:5: data must be a number or a string"),
    ("topics:\n  - name: a\n    data: [1TB]", "c.yaml:3:5: data must be a number or a string"),
    ("topics:\n  - name: a\n    data:", "c.yaml:3:5: data must be a number or a string"),
    ("topics:\n  - name: a\n    data: 1TB\n    data: 2TB", "'data' is there twice"),
    ("topics: &a\n  - {name: a, data: 1TB}", "anchor"),
    ("disk: !!python/object:os.system 4TB\ntopics: []", "tag"),
    ("disk: .inf\ntopics: []", "not a finite number"),
    ("headroom: 120%\ntopics:\n  - {name: a, data: 1TB}", "c.yaml:1:1: headroom: '120%' is not between 0% and 95%"),
    ("\x00", "not YAML"),
    ("topics:\n" + "  - {name: a, data: 1TB}\n" * 1001, "1,001 topics exceed the limit of 1,000"),
]


@pytest.mark.parametrize(("text", "why"), REFUSED, ids=[why[:30] for _, why in REFUSED])
def test_rejected_files(text: str, why: str) -> None:
    with pytest.raises(InvalidFile) as caught:
        parse_spec(text.encode(), "c.yaml", {})
    assert why in caught.value.message


def test_misspelled_key_has_a_suggestion() -> None:
    with pytest.raises(InvalidFile) as caught:
        parse_spec(b"topics:\n  - {name: a, througput: 1MB/s}", "c.yaml", {})
    assert caught.value.hint == "did you mean throughput?"


INVALID_VALUES = ("", " ", "x", "-1", "1e9", "nan", "inf", "9" * 400, "0x10", "\x1b[2J", "١", "1/0", "--", "1 y", "%")


@pytest.mark.parametrize("name", FIELDS)
def test_invalid_values_are_usage_errors(name: str) -> None:
    for text in INVALID_VALUES:
        with pytest.raises(UsageError) as caught:
            parse_input(name, text)
        assert len(caught.value.message) < 500


THROUGHPUTS = [
    ("100MB/s", 10**8), ("10Gbit/s", 1_250_000_000), ("10Gbps", 1_250_000_000), ("1.25 GB/s", 1_250_000_000),
    ("8 bit/s", 1), ("5MiB/s", 5 * 2**20), ("1B/s", 1), ("64kB", 64_000),
]  # fmt: skip


@pytest.mark.parametrize(("text", "rate"), THROUGHPUTS)
def test_throughputs(text: str, rate: int) -> None:
    assert parse_throughput(text) == rate


@pytest.mark.parametrize("text", ["10Gb/s", "10gb", "50", "50/s", "0MB/s", "1bit/s", "1Gibit/s", "1MB/m"])
def test_invalid_throughputs(text: str) -> None:
    with pytest.raises(UsageError):
        parse_throughput(text)


@pytest.mark.parametrize(
    ("text", "share"), [("20%", "1/5"), ("0.2", "1/5"), ("12.5 %", "1/8"), ("300%", "3"), ("0", "0")]
)
def test_shares(text: str, share: str) -> None:
    assert parse_percent(text) == Fraction(share)


@pytest.mark.parametrize(("name", "text"), [("growth", "30"), ("growth", "1.5"), ("headroom", "20")])
def test_share_without_a_unit(name: str, text: str) -> None:
    with pytest.raises(UsageError, match="has no unit"):
        parse_input(name, text)


# --- inputs from a cluster ---------------------------------------------------------------------------------------


def _config(name: str, value: str | None) -> ConfigEntry:
    return ConfigEntry(name, value, ConfigSource.TOPIC)


def test_inputs_of_a_topic() -> None:
    entries = [_config("min.insync.replicas", "2"), _config("segment.bytes", "1000000")]
    found = seen_inputs(5_000_000, 10_000, Fraction(200), 3, entries)
    assert {name: each.value for name, each in found.items()} == {
        "data": 5_000_000, "throughput": 100_000, "replication_factor": 3, "min_insync_replicas": 2,
        "segment_size": 1_000_000,
    }  # fmt: skip
    assert {each.source for each in found.values()} == {SEEN}


def test_inputs_of_an_empty_topic() -> None:
    found = seen_inputs(0, 0, Fraction(0), 1, [_config("segment.bytes", None)])
    assert {name: each.value for name, each in found.items()} == {"data": 1, "replication_factor": 1}


def test_log_dirs_on_one_disk_count_once() -> None:
    def log_dir(path: str, total: int | None, usable: int | None, error: str | None = None) -> LogDir:
        return LogDir(path, total, usable, [], error)

    assert volume_bytes([log_dir("/a", 100, 50), log_dir("/b", 100, 50), log_dir("/c", 100, 60)]) == 200
    assert volume_bytes([log_dir("/a", 100, 50), log_dir("/b", None, None)]) is None, "brokers before 3.3"
    assert volume_bytes([log_dir("/a", 100, 50), log_dir("/b", None, None, "offline")]) == 100
