"""The history of commits on a real cluster: by Fetch, from the brokers' log dirs, and what the coordinators say."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaAdminClient, KafkaProducer
from kafka.structs import OffsetAndMetadata, TopicPartition

from kctl.cluster.log_dirs import fetch_log_dirs
from kctl.cluster.offsets import fetch_committed
from kctl.errors import KctlError, Refused
from kctl.history.commits.commit_log import Span, offsets_logs
from kctl.history.commits.live_commit_times import with_commit_times
from kctl.history.lag.plan import LagRequest, plan_span
from kctl.history.lag.row_batches import read as read_lag
from kctl.history.snapshots.collect import Collector
from kctl.history.snapshots.commit import put_pass
from kctl.history.snapshots.store import create_store
from kctl.lag.offsets_topic import offsets_logs as live_logs
from kctl.lag.offsets_topic import partition_of
from kctl.lag.selection import EVERY, Names
from kctl.protocol.client import connect
from kctl.protocol.target import Target
from kctl.segment.log.listing import list_segments
from kctl.segment.log.partition import partition_folders
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


@dataclass(frozen=True)
class Looks:
    """A store of snapshots, and two groups that are behind in it."""

    store: Path
    steady: str
    stopped: str
    target: Target


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
    for partition in range(2):
        kctl.ok("produce", found.topic, "--partition", str(partition), stdin="".join(f"{n}\n" for n in range(20)))
    # The first group of a cluster waits until __consumer_offsets has been made; kafka-python's admin client does not.
    kctl.ok("consume", found.topic, "--group", f"first.{tag}", "--from-beginning", "--exit-eof", "--quiet")
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
            producer.send(found.topic, b"in a transaction", partition=0).get(
                timeout=30
            )  # else an abort drops it unsent
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


def test_a_groups_partition_of_the_topic(groups: Groups) -> None:
    with connect(groups.target) as client:
        count = len(client.metadata(["__consumer_offsets"]).topics["__consumer_offsets"].partitions)
    assert {(row["group"], row["log_partition"]) for row in _rows(groups)} == {
        (group, partition_of(group, count)) for group in groups.names
    }


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


@pytest.fixture(scope="module")
def looks(groups: Groups, tmp_path_factory: pytest.TempPathFactory) -> Looks:
    """Ten passes, and before each, one group commits the offset that it has already; the other one has stopped."""
    tag = os.getpid()
    found = Looks(
        tmp_path_factory.mktemp("looks") / "store", f"history-steady.{tag}", f"history-stopped.{tag}", groups.target
    )
    at = {TopicPartition(groups.topic, 0): OffsetAndMetadata(5, "", -1)}
    admin = KafkaAdminClient(bootstrap_servers=list(groups.target.bootstrap_servers))
    try:
        with connect(groups.target) as client:
            cluster_id = client.metadata(()).cluster_id
            store, collector = create_store(found.store, cluster_id), Collector(cluster_id)
            admin.alter_group_offsets(found.stopped, at)
            for _ in range(10):
                admin.alter_group_offsets(found.steady, at)
                time.sleep(0.3)
                at_ms = _now_ms()
                put_pass(store, at_ms, _now_ms(), collector.take_pass(client, at_ms))
    finally:
        admin.close()
    return found


def _verdicts(looks: Looks, *, live: bool = False, **options: Any) -> dict[str, set[Any]]:
    """What `kctl spark lag --window 6` says of the two groups, by the functions that its tasks run."""
    wanted = LagRequest(Names((looks.steady, looks.stopped)), EVERY, observations=6, commit_times=live, **options)
    plan = plan_span(looks.store, 0, _now_ms(), wanted)
    if live:
        with connect(looks.target) as client:
            plan = with_commit_times(client, plan)
    assert plan.failures == ()
    rows = [row for each in plan.ranges for batch in read_lag(plan.query, each) for row in batch.to_pylist()]
    assert [row["error"] for row in rows if row["error"]] == []
    return {name: {row["status"] for row in rows if row["group"] == name} for name in (looks.steady, looks.stopped)}


@pytest.mark.usefixtures("spark_archive")
def test_commit_times_make_stop_exact(groups: Groups, looks: Looks, kctl: Kctl) -> None:
    """A group that commits the offset it has looks stopped to snapshots alone, which see no new one; its commits say
    that it stalls. Asked of the cluster, read from the brokers' log dirs, and by the command line."""
    assert _verdicts(looks) == {looks.steady: {"STOP"}, looks.stopped: {"STOP"}}
    exact = {looks.steady: {"STALL"}, looks.stopped: {"STOP"}}
    assert _verdicts(looks, live=True) == exact
    dirs = [path for path in _log_dirs(groups) if list(path.glob("__consumer_offsets-*"))]
    assert _verdicts(looks, offsets_logs=tuple(map(str, dirs))) == exact
    rows = kctl.json(
        "spark", "lag", "--store", str(looks.store), "--last", "1h", "--window", "6", "--commit-times",
        "--group", looks.steady, "--group", looks.stopped, timeout=120,
    )  # fmt: skip
    assert {row["group"]: {row["status"]} for row in rows} == exact


def test_another_clusters_commit_times_are_refused(groups: Groups, looks: Looks, tmp_path: Path) -> None:
    about = json.loads((looks.store / "kctl-store.json").read_text())
    shutil.copytree(looks.store, tmp_path / "store")
    (tmp_path / "store/kctl-store.json").write_text(json.dumps({**about, "cluster_id": "other"}))
    plan = plan_span(tmp_path / "store", 0, _now_ms(), LagRequest(EVERY, EVERY, commit_times=True))
    with connect(groups.target) as client, pytest.raises(Refused, match="of cluster other, but this is"):
        with_commit_times(client, plan)


def test_a_listing_is_what_is_on_the_disks(groups: Groups) -> None:
    """Sizes are those of the files, and brokers' own; both depths have the same times."""
    folders = list(chain(*map(partition_folders, _log_dirs(groups))))
    listed = {(r.log_dir, r.folder, r.base_offset): r for r in list_segments(folders) if r.topic == groups.topic}
    read_ = {
        (r.log_dir, r.folder, r.base_offset): r for r in list_segments(folders, headers=True) if r.topic == groups.topic
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


@pytest.mark.long
def test_a_log_that_the_broker_has_compacted(own_kctl: Kctl) -> None:
    """What the cleaner left is true, by Fetch and from the files; behind it every commit is there."""
    kctl, rounds = own_kctl, 300
    settings = (
        "offsets.topic.num.partitions=1", "offsets.topic.segment.bytes=8192", "log.cleaner.backoff.ms=300",
        "log.cleaner.min.cleanable.ratio=0.01",
    )  # fmt: skip
    config = [word for setting in settings for word in ("--config", setting)]
    kctl.ok("cluster", "create", "clean", "--use", "--layout", "single", "--heap", "256m", *config, timeout=180)
    try:
        target = Target("clean", tuple(kctl.json("context", "show", "clean")["bootstrap_servers"]))
        kctl.ok("topic", "create", "t", "--partitions", "2", "--replication-factor", "1")
        kctl.ok("produce", "t", stdin="x\n")
        kctl.ok("consume", "t", "--group", "first", "--from-beginning", "--exit-eof", "--quiet")
        admin = KafkaAdminClient(bootstrap_servers=list(target.bootstrap_servers))
        try:
            admin.alter_group_offsets("gone", {TopicPartition("t", 0): OffsetAndMetadata(3, "", -1)})
            admin.delete_groups(["gone"])
            for offset in range(rounds):
                admin.alter_group_offsets("g", {TopicPartition("t", 0): OffsetAndMetadata(offset, "", -1)})
        finally:
            admin.close()

        def by_fetch() -> list[Row]:
            with connect(target) as client:
                logs, failed = live_logs(client)
            assert failed == []
            shares = live_shares(target, logs, 1)
            return [row for share in shares for batch in read(share) for row in batch.to_pylist()]

        def kept() -> list[int]:
            return [row["committed_offset"] for row in by_fetch() if row["group"] == "g"]

        eventually(lambda: len(kept()) < rounds // 2, seconds=60, what="the cleaner has been at it")
        offsets = kept()
        assert offsets == sorted(set(offsets))
        assert offsets[-1] == rounds - 1
        rows = by_fetch()
        assert [row["committed_offset"] for row in rows if row["group"] == "gone"][-1:] in ([None], [])
        assert [row["error"] for row in rows if row["error"]] == []
        with connect(target) as client:
            (found,) = (each for each in fetch_log_dirs(client, client.metadata(()).brokers).values())
        assert isinstance(found, list)
        logs = offsets_logs([Path(each.path) for each in found])
        active = max(int(path.stem) for path in logs[0].path.glob("*.log"))  # the cleaner leaves it alone
        recent = [row["committed_offset"] for row in rows if row["group"] == "g" and row["log_offset"] >= active]
        assert recent == list(range(rounds - len(recent), rounds))
        from_files = [row for share in file_shares(logs, 1) for batch in read(share) for row in batch.to_pylist()]
        assert {_place(row) for row in from_files} <= {_place(row) for row in rows}  # cleaned once more, perhaps
        last = [[row for row in each if row["group"] == "g"][-1] for each in (from_files, rows)]
        assert last[0] == last[1]
    finally:
        kctl("cluster", "destroy", "clean", "--yes", "--confirm-cluster", "clean", timeout=120)
