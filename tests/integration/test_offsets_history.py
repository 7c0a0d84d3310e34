"""The history of commits on a real cluster: by Fetch, from the brokers' log dirs, and what the coordinators say."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaAdminClient, KafkaProducer
from kafka.structs import OffsetAndMetadata, TopicPartition

from kctl.client import connect
from kctl.context import Target
from kctl.errors import KctlError
from kctl.lag.offsets import fetch_committed
from kctl.lag.offsets_topic import offsets_logs as live_logs
from kctl.log_dirs import fetch_log_dirs
from kctl.segment.listing import folders_of, list_segments
from kctl.spark.offsets_history import Span, offsets_logs
from kctl.spark.offsets_source import file_shares, live_shares, read
from kctl_testing import Kctl, TestCluster, eventually

Row = dict[str, Any]


@dataclass(frozen=True)
class Groups:
    """Groups that were made for this module. topic: with two partitions; began_ms: before the first commit."""

    plain: str
    transactional: str
    removed: str
    topic: str
    began_ms: int
    target: Target

    @property
    def names(self) -> set[str]:
        return {self.plain, self.transactional, self.removed}


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


@pytest.fixture(scope="module")
def groups(kctl: Kctl, cluster: TestCluster) -> Groups:
    """Plain commits; a transaction that is committed and one that is aborted; a group that is deleted."""
    tag = str(os.getpid())
    servers = cluster.bootstrap.split(",")
    found = Groups(
        f"history-plain.{tag}", f"history-txn.{tag}", f"history-gone.{tag}", f"history.{tag}", _now_ms(),
        Target("tests", tuple(servers)),
    )  # fmt: skip
    kctl.ok("topic", "create", found.topic, "--partitions", "2", "--replication-factor", "1")
    kctl.ok("produce", found.topic, stdin="".join(f"{n}\n" for n in range(40)))
    first, second = TopicPartition(found.topic, 0), TopicPartition(found.topic, 1)
    admin = KafkaAdminClient(bootstrap_servers=servers)
    try:
        for offset in (5, 7):
            both = {first: OffsetAndMetadata(offset, "", -1), second: OffsetAndMetadata(offset - 1, "note", -1)}
            admin.alter_group_offsets(found.plain, both)
        admin.alter_group_offsets(found.removed, {first: OffsetAndMetadata(3, "", -1)})
        admin.delete_groups([found.removed])
    finally:
        admin.close()
    producer = KafkaProducer(bootstrap_servers=servers, transactional_id=f"history.{tag}", enable_idempotence=True)
    try:
        producer.init_transactions()
        for offset, end in ((9, producer.commit_transaction), (11, producer.abort_transaction)):
            producer.begin_transaction()
            producer.send(found.topic, b"in a transaction", partition=0)
            producer.send_offsets_to_transaction({first: OffsetAndMetadata(offset, "", -1)}, found.transactional)
            end()
    finally:
        producer.close()
    eventually(lambda: _seen(found) >= 7, what="the markers are written")
    return found


def _seen(groups: Groups) -> int:
    return len(_rows(groups))


def _rows(groups: Groups) -> list[Row]:
    """By Fetch, of the module's groups."""
    with connect(groups.target) as client:
        logs, failed = live_logs(client)
    assert failed == []
    return _kept(groups, lambda span: (b for share in live_shares(groups.target, logs, 3) for b in read(share, span)))


def _kept(groups: Groups, batches: Callable[[Span], Iterator[Any]]) -> list[Row]:
    rows = [row for batch in batches(Span(lower="history-", upper="history.")) for row in batch.to_pylist()]
    assert [row["error"] for row in rows if row["error"]] == []
    return sorted((row for row in rows if row["group"] in groups.names), key=_place)


def _place(row: Row) -> tuple[int, int]:
    return row["log_partition"], row["log_offset"]


def _of(rows: list[Row], group: str, partition: int = 0) -> list[int | None]:
    return [row["committed_offset"] for row in rows if row["group"] == group and row["partition"] == partition]


def test_every_commit_that_took_effect(groups: Groups) -> None:
    rows = _rows(groups)
    assert _of(rows, groups.plain) == [5, 7]
    assert _of(rows, groups.plain, 1) == [4, 6]
    assert _of(rows, groups.removed) == [3, None]
    assert _of(rows, groups.transactional) == [9]
    for row in rows:
        assert groups.began_ms - 1000 <= row["at_ms"] <= _now_ms() + 1000
        assert row["transactional"] == (row["group"] == groups.transactional)
        if row["committed_offset"] is not None:
            assert groups.began_ms - 1000 <= row["commit_ms"] <= row["at_ms"]


def test_the_last_ones_are_what_coordinators_say(groups: Groups) -> None:
    last = {(row["group"], row["topic"], row["partition"]): row["committed_offset"] for row in _rows(groups)}
    with connect(groups.target) as client:
        for group in (groups.plain, groups.transactional):
            answers = [fetch_committed(client, broker, [group])[group] for broker in client.metadata(()).brokers]
            (committed,) = [answer for answer in answers if not isinstance(answer, KctlError)]
            assert {(group, *tp): offset for tp, offset in committed.items()} == {
                key: offset for key, offset in last.items() if key[0] == group
            }


def _log_dirs(groups: Groups) -> list[Path]:
    with connect(groups.target) as client:
        answers = fetch_log_dirs(client, client.metadata(()).brokers)
    return [Path(each.path) for found in answers.values() if isinstance(found, list) for each in found]


def test_the_files_of_the_brokers_say_the_same(groups: Groups) -> None:
    """The longest replica of each partition, of all brokers' log dirs."""
    logs = offsets_logs([path for path in _log_dirs(groups) if list(path.glob("__consumer_offsets-*"))])
    found = _kept(groups, lambda span: (b for share in file_shares(logs, 2) for b in read(share, span)))
    assert found == _rows(groups)


def test_a_listing_is_what_is_on_the_disks(groups: Groups) -> None:
    """Sizes are those of the files, and brokers' own; both depths have the same times."""
    dirs = _log_dirs(groups)
    listed = {
        (r.log_dir, r.folder, r.base_offset): r for r in list_segments(folders_of(dirs)) if r.topic == groups.topic
    }
    read_ = {
        (r.log_dir, r.folder, r.base_offset): r
        for r in list_segments(folders_of(dirs), headers=True)
        if r.topic == groups.topic
    }
    assert len(listed) == 2
    assert listed.keys() == read_.keys()
    for key, row in listed.items():
        path = Path(row.log_dir) / row.folder / f"{row.base_offset:020d}.log"
        assert row.size_bytes == path.stat().st_size
        assert row.error is None
        assert (row.first_timestamp_ms, row.largest_timestamp_ms) == (
            read_[key].first_timestamp_ms, read_[key].largest_timestamp_ms,
        )  # fmt: skip
    assert sum(row.records or 0 for row in read_.values()) == 40 + 2 + 2  # with both transactions' and their markers
    with connect(groups.target) as client:
        answers = fetch_log_dirs(client, client.metadata(()).brokers)
    sizes = {
        (each.path, f"{replica.topic}-{replica.partition}"): replica.size_bytes
        for found in answers.values() if isinstance(found, list)
        for each in found for replica in each.replicas
    }  # fmt: skip
    assert all(sizes[row.log_dir, row.folder] == row.size_bytes for row in listed.values())


def test_a_cluster_that_is_gone_is_a_row(groups: Groups) -> None:
    with connect(groups.target) as client:
        logs, _ = live_logs(client, [0])
    (share,) = live_shares(Target("gone", ("127.0.0.1:1",)), logs, 1)
    (row,) = (row for batch in read(share) for row in batch.to_pylist())
    assert "127.0.0.1:1" in row["error"]
    assert row["group"] is None
