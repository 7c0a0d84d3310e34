"""The rules of retention usage, and the reports made of them, as tables of cases."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kctl.history.retention.usage import Usage
from kctl.lag.retention import (
    LeaderLog,
    LogDirSize,
    ReplicaSize,
    TopicRetention,
    age_ms,
    at,
    deletes,
    disk_used,
    used,
)

NOW = 1_700_000_000_000
HOUR = 3_600_000


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ("delete", True),
        ("compact", False),
        ("compact,delete", True),
        ("compact, delete", True),
        ("deleted", False),
        ("", False),
        (None, False),
    ],
)
def test_retention_applies_where_the_policy_has_delete(policy: str | None, expected: bool) -> None:
    assert deletes(policy) is expected


@pytest.mark.parametrize(
    ("amount", "limit", "policy", "expected"),
    [
        (50, 100, "delete", 0.5),
        (0, 100, "delete", 0.0),
        (150, 100, "delete", 1.5),  # whole segments: over 1 is normal
        (50, 100, "compact,delete", 0.5),
        (50, 100, "compact", None),
        (50, -1, "delete", None),  # no limit
        (50, 0, "delete", None),
        (None, 100, "delete", None),
        (50, None, "delete", None),
        (50, 100, None, None),
    ],
)
def test_share_of_a_limit(amount: int | None, limit: int | None, policy: str | None, expected: float | None) -> None:
    assert used(amount, limit, policy) == expected


@pytest.mark.parametrize(
    ("timestamp", "expected"), [(NOW - HOUR, HOUR), (NOW, 0), (NOW + HOUR, 0), (0, NOW), (None, None)]
)
def test_age_of_the_oldest_record(timestamp: int | None, expected: int | None) -> None:
    assert age_ms(NOW, timestamp) == expected


@pytest.mark.parametrize(
    ("total", "usable", "expected"),
    [(100, 25, 0.75), (100, 100, 0.0), (100, 0, 1.0), (None, 25, None), (100, None, None), (0, 0, None)],
)
def test_share_of_a_disk(total: int | None, usable: int | None, expected: float | None) -> None:
    assert disk_used(total, usable) == expected


@pytest.mark.parametrize(
    ("timestamp", "expected"),
    [
        (0, datetime(1970, 1, 1, tzinfo=timezone.utc)),
        (NOW + 7, datetime(2023, 11, 14, 22, 13, 20, 7000, tzinfo=timezone.utc)),
        (2**62, None),  # producers can write any timestamp
        (None, None),
    ],
)
def test_time_of_a_timestamp(timestamp: int | None, expected: datetime | None) -> None:
    assert at(timestamp) == expected


USAGE = Usage(
    replicas=[
        ReplicaSize("a", 0, 1, "/d1", 80),
        ReplicaSize("a", 0, 2, "/d1", 70),
        ReplicaSize("a", 0, 1, "/d2", 30, future=True),
        ReplicaSize("a", 1, 2, "/d1", 10),
        ReplicaSize("b", 0, 1, "/d2", 500),
    ],
    logs=[
        LeaderLog("a", 1, 2, 0, 3, NOW - 2 * HOUR),
        LeaderLog("a", 0, 1, 5, 9, NOW - HOUR),
        LeaderLog("b", 0, 1, 0, 0, None),
        LeaderLog("c", 0, -1),
    ],
    retention=[
        TopicRetention("a", "delete", 100, 4 * HOUR, 10),
        TopicRetention("b", "compact", 100, 4 * HOUR, 10),
    ],
    log_dirs=[
        LogDirSize(1, "/d1", 1000, 100),
        LogDirSize(1, "/d2", 1000, 900),
        LogDirSize(2, "/d1"),
        LogDirSize(3, "/d1", 10, 10),
    ],
    now_ms=NOW,
)


def test_by_partition() -> None:
    rows = [
        (r.topic, r.partition, r.leader, r.replica_count, r.size_bytes, r.replicas_bytes, r.retention_bytes_used,
         r.oldest_age_ms, r.retention_ms_used)
        for r in USAGE.by_partition()
    ]  # fmt: skip
    assert rows == [
        ("a", 0, 1, 2, 80, 180, 0.8, HOUR, 0.25),  # the copy on its way has bytes, and is no replica
        ("a", 1, 2, 1, 10, 10, 0.1, 2 * HOUR, 0.5),
        ("b", 0, 1, 1, 500, 500, None, None, None),
        ("c", 0, -1, 0, None, 0, None, None, None),
    ]


def test_by_topic_adds_sizes_and_takes_the_worst_share() -> None:
    a, b, c = USAGE.by_topic()
    assert (a.topic, a.partition_count, a.replica_count, a.size_bytes, a.replicas_bytes) == ("a", 2, 3, 90, 190)
    assert (a.retention_bytes_used, a.retention_ms_used, a.oldest_age_ms) == (0.8, 0.5, 2 * HOUR)
    assert a.oldest_timestamp == at(NOW - 2 * HOUR)
    assert (b.cleanup_policy, b.size_bytes, b.retention_bytes_used) == ("compact", 500, None)
    assert (c.size_bytes, c.cleanup_policy, c.retention_ms) == (None, None, None)


def test_by_broker_takes_the_fullest_disk() -> None:
    one, two, three = USAGE.by_broker()
    assert (one.broker, one.log_dir_count, one.topic_count, one.replica_count, one.size_bytes) == (1, 2, 2, 2, 610)
    assert (one.disk_used, one.retention_bytes_used, one.oldest_age_ms) == (0.9, 0.8, HOUR)
    assert (two.size_bytes, two.disk_used, two.retention_bytes_used, two.retention_ms_used) == (
        80,
        None,
        0.7,
        0.5,
    )
    assert (three.topic_count, three.replica_count, three.size_bytes, three.oldest_timestamp) == (0, 0, 0, None)


def test_by_log_dir() -> None:
    rows = [(r.broker, r.log_dir, r.replica_count, r.size_bytes, r.disk_used) for r in USAGE.by_log_dir()]
    assert rows == [
        (1, "/d1", 1, 80, 0.9),
        (1, "/d2", 1, 530, 0.1),
        (2, "/d1", 2, 80, None),
        (3, "/d1", 0, 0, 0.0),
    ]


@given(
    st.integers(0, 2**62),
    st.integers(-1, 2**62),
    st.sampled_from(["delete", "compact", "compact,delete"]),
)
def test_a_share_is_never_negative_and_grows_with_the_amount(amount: int, limit: int, policy: str) -> None:
    share = used(amount, limit, policy)
    if share is not None:
        more = used(amount + 1, limit, policy)
        assert 0 <= share <= (more or 0)
