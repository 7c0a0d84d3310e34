"""What kctl spark retention foretells, and what a real broker then does: growth, full disks, changed limits, expired
segments, and a log cleaner that stands still. On a small disk that nothing else writes on."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaAdminClient, KafkaProducer
from kafka.admin import ConfigResource, ConfigResourceType

from kctl.history.retention.outlook import Outlook
from kctl.history.retention.reader_losses import disk_losses
from kctl.history.retention.store_reads import StoreReads, reads_of
from kctl.history.retention.what_if import parse_change
from kctl.history.retention.what_if_report import WhatIf, what_if
from kctl.lag.selection import names_of
from kctl_testing import Kctl, eventually
from small_disk import SmallDisk, small_disk
from steady_producer import RECORD_BYTES, written

pytestmark = [pytest.mark.long, pytest.mark.usefixtures("spark_archive")]  # a disk is filled

HOUR_S = 3600
SEGMENT = 200_000
BEHIND_S = 5  # how much later than its timestamp a record is written, on a busy machine
WITHIN = 0.25  # of a rate: the producer and the disk share the machine with other tests
RATES = {"endless": 1_000_000, "timed": 200_000, "sized": 200_000}
FILLING = 2_000_000
SETTINGS = (
    "log.retention.check.interval.ms=300", "log.initial.task.delay.ms=100", "log.cleaner.backoff.ms=3600000",
    "offsets.topic.num.partitions=1", "log.index.size.max.bytes=65536",
)  # fmt: skip


@pytest.fixture(scope="module")
def disk(tmp_path_factory: pytest.TempPathFactory, shared: dict[str, str]) -> Iterator[SmallDisk]:
    home = tmp_path_factory.mktemp("home")
    with small_disk(Kctl(home, shared), home / "disk", "100m", *SETTINGS) as found:
        plain = {"file.delete.delay.ms": "500", "retention.ms": "-1", "segment.bytes": str(SEGMENT)}
        for name in (*RATES, "pinned"):
            make(found, name, plain)
        make(found, "keys", plain | {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.3"})
        yield found


def make(disk: SmallDisk, name: str, configs: dict[str, str]) -> None:
    words = [word for key, value in configs.items() for word in ("--config", f"{key}={value}")]
    disk.kctl.ok("topic", "create", name, "--partitions", "1", *words)


def alter(disk: SmallDisk, kind: ConfigResourceType, name: str, configs: dict[str, str]) -> None:
    admin = KafkaAdminClient(bootstrap_servers=[disk.bootstrap])
    try:
        admin.alter_configs([ConfigResource(kind, name, configs)], incremental=True)
    finally:
        admin.close()


def log_bytes(disk: SmallDisk, name: str) -> int:
    return sum(path.stat().st_size for path in (disk.log_dir / f"{name}-0").glob("*.log"))


def segments(disk: SmallDisk, name: str) -> set[int]:
    return {int(path.stem) for path in (disk.log_dir / f"{name}-0").glob("*.log")}


def copied(disk: SmallDisk, name: str, end: int, to: Path) -> None:
    """A log dir with this log, once the broker has noted its high watermark (replica.high.watermark.checkpoint…)."""
    noted = disk.log_dir / "replication-offset-checkpoint"
    eventually(lambda: f"{name} 0 {end}" in noted.read_text().splitlines(), what="the high watermark is noted")
    shutil.copytree(disk.log_dir / f"{name}-0", to / f"{name}-0")
    for path in disk.log_dir.glob("*-checkpoint"):
        shutil.copy2(path, to)


def collect(disk: SmallDisk, store: Path, seconds: int) -> None:
    disk.kctl.ok("spark", "snapshot", "--store", str(store), "--every", "1s", "--for", f"{seconds}s", timeout=90)


def tried(job: StoreReads, outlook: Outlook, topic: str, change: str) -> WhatIf:
    parsed = parse_change([change])
    moments = [] if parsed.retention_ms is None else [outlook.now_ms - parsed.retention_ms]
    return what_if(outlook, parsed, names_of([topic]), job.readers(outlook), job.ends_near(moments, outlook.now_ms))


def test_growth_and_changed_limits(disk: SmallDisk, tmp_path: Path) -> None:
    """Rates are those of the producer; what a change would free is what the broker then frees, within its range."""
    with written(disk.bootstrap, RATES):
        collect(disk, tmp_path / "s", 12)
        written_until_ms = int(time.time() * 1000)
    growing, _ = reads_of(str(tmp_path / "s"), 0, written_until_ms).outlook()
    rates = {row.topic: row.written_bytes_per_hour for row in growing.by_topic()}
    assert {name: rates[name] for name in RATES} == pytest.approx({n: r * HOUR_S for n, r in RATES.items()}, rel=WITHIN)

    disk.kctl.ok("spark", "snapshot", "--store", str(tmp_path / "s"), "--once")
    job = reads_of(str(tmp_path / "s"), 0, 10**14)
    outlook, _ = job.outlook()
    sizes = {row.topic: row.replicas_bytes for row in outlook.by_topic()}
    assert {name: sizes[name] for name in RATES} == {name: log_bytes(disk, name) for name in RATES}

    bytes_free = tried(job, outlook, "sized", "retention.bytes=700000").topics[0]
    before = log_bytes(disk, "sized")
    alter(disk, ConfigResourceType.TOPIC, "sized", {"retention.bytes": "700000"})
    eventually(lambda: log_bytes(disk, "sized") < before, what="retention.bytes is applied")
    freed = before - log_bytes(disk, "sized")
    assert bytes_free.freed_at_least_bytes <= freed <= bytes_free.freed_at_most_bytes
    assert bytes_free.freed_at_most_bytes - bytes_free.freed_at_least_bytes <= SEGMENT

    kept_ms = int(time.time() * 1000) - outlook.now_ms + 6000  # what is older than 6 s before the last snapshot
    time_free = tried(job, outlook, "timed", "retention.ms=6000").topics[0]
    before = log_bytes(disk, "timed")
    alter(disk, ConfigResourceType.TOPIC, "timed", {"retention.ms": str(kept_ms)})
    eventually(lambda: log_bytes(disk, "timed") < before, what="retention.ms is applied")
    freed, late_s = before - log_bytes(disk, "timed"), time.time() - outlook.now_ms / 1000 - (kept_ms - 6000) / 1000
    assert time_free.freed_at_least_bytes <= freed
    assert freed <= time_free.freed_at_most_bytes + RATES["timed"] * (late_s + BEHIND_S)
    assert time_free.freed_at_most_bytes - time_free.freed_at_least_bytes <= SEGMENT
    alter(disk, ConfigResourceType.TOPIC, "timed", {"retention.ms": "-1"})


def test_segments_that_should_be_gone(disk: SmallDisk, tmp_path: Path) -> None:
    """A copy of the log tells which segments go when a limit is set, and which one keeps others; so it comes."""
    now_ms = int(time.time() * 1000)
    producer = KafkaProducer(bootstrap_servers=[disk.bootstrap], acks="all")
    day_ms = 24 * 3_600_000
    for number in range(100):
        at_ms = now_ms + day_ms if number == 60 else now_ms - day_ms
        producer.send("pinned", os.urandom(RECORD_BYTES), partition=0, timestamp_ms=at_ms)
        producer.flush()
    producer.close()
    there = segments(disk, "pinned")
    copied(disk, "pinned", 100, copy := tmp_path / "copy")
    disk.kctl.ok("spark", "snapshot", "--store", str(tmp_path / "s"), "--once")
    alter(disk, ConfigResourceType.TOPIC, "pinned", {"retention.ms": "3600000"})
    eventually(lambda: segments(disk, "pinned") < there, what="retention.ms is applied")
    options = ("--show", "segments", "--log-dir", str(copy), "--topic", "pinned")
    rows = disk.kctl.json("spark", "retention", *options)
    gone = {row["base_offset"] for row in rows if row["reason"] == "retention_ms"}
    assert gone
    assert gone == there - segments(disk, "pinned")
    (future,) = [row["base_offset"] for row in rows if row["pinned_by"] == "future_timestamp"]
    kept = {row["base_offset"]: row for row in rows if row["pinned_by"] == "earlier_segment"}
    assert {*kept, future} == segments(disk, "pinned")
    assert {row["pinned_by_segment"] for row in kept.values()} == {future}
    assert all(row["expired"] for row in kept.values())
    before = disk.kctl.json("spark", "retention", *options, "--store", str(tmp_path / "s"))
    assert [row["reason"] for row in before if row["reason"]] == [], "the store has the limits of then"


def test_a_cleaner_that_stands_still(disk: SmallDisk, tmp_path: Path) -> None:
    """The broker's cleaner sleeps for an hour. Woken, it does what was said to be before it."""
    producer = KafkaProducer(bootstrap_servers=[disk.bootstrap], acks="all", linger_ms=5)
    for number in range(400):
        producer.send("keys", os.urandom(RECORD_BYTES), key=b"%d" % (number % 50), partition=0)
    producer.close()
    copied(disk, "keys", 400, copy := tmp_path / "copy")
    options = ("--show", "cleaner", "--topic", "keys", "--count-keys", "--log-dir")
    (row,) = disk.kctl.json("spark", "retention", *options, str(copy))
    assert row["wants_cleaning"]
    assert not row["stands_still"], "it may be about to begin"
    assert row["dirty_ratio"] == 1.0
    assert row["keys"] == 50
    long_ago = time.time() - 20 * 60
    for path in copy.rglob("*"):
        os.utime(path, (long_ago, long_ago))
    (row,) = disk.kctl.json("spark", "retention", *options, str(copy))
    assert row["stands_still"]
    assert row["rounds"] == 1

    alter(disk, ConfigResourceType.BROKER, "1", {"log.cleaner.backoff.ms": "100"})
    cleaned, end = disk.log_dir / "cleaner-offset-checkpoint", f"keys 0 {row['uncleanable_from_offset']}"
    eventually(lambda: cleaned.exists() and end in cleaned.read_text().splitlines(), what="the log is clean to there")
    assert log_bytes(disk, "keys") < row["size_bytes"] / 2
    (after,) = disk.kctl.json("spark", "retention", *options, str(disk.log_dir))
    assert not after["wants_cleaning"]
    assert not after["stands_still"]
    assert after["cleaned_to_offset"] == row["uncleanable_from_offset"]
    assert after["keys"] == 50


def test_a_disk_is_full_when_it_was_said_to_be(disk: SmallDisk, tmp_path: Path) -> None:
    """One reading of ten seconds, then nine tenths of what was free are filled."""
    disk.kctl.ok("produce", "endless", "--partition", "0", stdin="unread\n")
    _group_at_the_start(disk)
    store = tmp_path / "s"
    with written(disk.bootstrap, {"endless": FILLING}):
        collect(disk, store, 10)
        job = reads_of(str(store), 0, 10**14)
        outlook, _ = job.outlook()
        (row,) = outlook.by_log_dir()
        assert row.full_ms is not None
        assert row.usable_bytes is not None
        assert row.full_ms == pytest.approx(row.usable_bytes / FILLING * 1000, rel=WITHIN)
        assert row.causes[0].topic == "endless"
        assert row.causes[0].share > 0.9
        losses = disk_losses(outlook, job.readers(outlook))
        assert [(each.group, each.unread, each.sole) for each in losses] == [_left(outlook, row.full_ms)]
        deadline = outlook.now_ms / 1000 + row.full_ms / 1000 * 1.5
        while free(disk) > row.usable_bytes / 10:
            assert time.time() < deadline, "the disk is not filled"
            time.sleep(0.1)
        took_ms = time.time() * 1000 - outlook.now_ms
    assert took_ms == pytest.approx(0.9 * row.full_ms, rel=WITHIN)


def free(disk: SmallDisk) -> int:
    found = os.statvfs(disk.log_dir)
    return found.f_bavail * found.f_frsize


def _group_at_the_start(disk: SmallDisk) -> None:
    from kafka import KafkaConsumer
    from kafka.structs import OffsetAndMetadata, TopicPartition

    consumer = KafkaConsumer(bootstrap_servers=[disk.bootstrap], group_id="stopped", enable_auto_commit=False)
    partition = TopicPartition("endless", 0)
    consumer.assign([partition])
    consumer.commit({partition: OffsetAndMetadata(0, "", -1)})
    consumer.close()


def _left(outlook: Outlook, full_ms: int) -> tuple[str, Any, Any]:
    """What a group that reads nothing has not read when the disk is full: all of the log, by its records' size."""
    (log,) = [each for each in outlook.disks.logs if each.topic == "endless"]
    assert log.log_end_offset is not None
    records = log.log_end_offset + full_ms / 1000 * FILLING / RECORD_BYTES
    near = pytest.approx(records, rel=WITHIN)
    return ("stopped", near, near)
