"""Reports over a store: growth, full disks, what another retention does, who loses, against what was put in."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from kctl.commands.history import retention_store
from kctl.commands.history.retention_view import usage_table, what_if_tables
from kctl.commands.terminal.output import emit, jsonable
from kctl.errors import NotFound, NotHealthy
from kctl.history.lag.window import MINUTE_MS
from kctl.history.retention.deletion import Log
from kctl.history.retention.disk_loss import ConsumingGroup, losses
from kctl.history.retention.explain import explain_log_dir
from kctl.history.retention.growth import HOUR_MS, GrownReplica, GrownVolume, Growth
from kctl.history.retention.outlook import Outlook
from kctl.history.retention.reader_losses import tombstones
from kctl.history.retention.store_reads import StoreReads
from kctl.history.retention.volumes import Disks, same_volumes
from kctl.history.retention.what_if import parse_change
from kctl.history.retention.what_if_report import what_if
from kctl.history.row_tables import schema_of, table_of
from kctl.history.snapshots import schema
from kctl.history.snapshots.collect import Pass
from kctl.history.snapshots.compact import compact
from kctl.history.snapshots.store import Store, create_store
from kctl.lag.log_config import LogConfig
from kctl.lag.retention import LeaderLog, LogDirSize
from kctl.lag.selection import names_of
from snapshot_stores import HOUR, put

MB, GB = 10**6, 10**9
PASSES, EVERY_MS = 19, 10 * MINUTE_MS  # three hours
TOTAL = 1000 * GB
LATE = 0.5 * GB / 12  # written at 0.5 GB/h until segments are next looked for
END_MS = HOUR.start_ms + (PASSES - 1) * EVERY_MS

# One partition each: (topic, leader, cleanup.policy, retention.ms, retention.bytes, segment.bytes)
TOPICS = [
    ("endless", 1, "delete", -1, -1, GB),
    ("keys", 2, "compact", -1, -1, 100 * MB),
    ("limited", 1, "delete", -1, 5 * GB, GB),
    ("moved", 2, "delete", -1, 9 * GB, GB),
]
NUMBERS = {"endless": 0.5, "keys": 0.2, "limited": 0.5, "moved": 0.0}  # GB an hour


def _hours(number: int) -> float:
    return number * EVERY_MS / HOUR_MS


def _size(topic: str, number: int) -> int:
    """endless and keys only grow; limited loses a segment of 1 GB every two hours, and is at its ceiling."""
    if topic == "limited":
        return int((5 + 0.5 * (_hours(number) % 2)) * GB)
    if topic == "moved":
        return GB
    return int((1 + NUMBERS[topic] * _hours(number)) * GB) if topic == "endless" else int(_hours(number) * 0.2 * GB) + 1


def _pass(number: int) -> Pass:
    rows: dict[str, list[tuple[Any, ...]]] = {table: [] for table in schema.TABLES}
    for topic, leader, policy, ms, limit, segment in TOPICS:
        end = 1000 * (number + 1)
        rows[schema.LOGS].append((topic, 0, "id", leader, 3, 0, end, end, HOUR.start_ms - 10 * HOUR_MS))
        if number % 6 == 0:
            rows[schema.CONFIGS].append((topic, policy, ms, limit, segment, 7 * 24 * HOUR_MS, HOUR_MS, 0, -1, 0.5))
        for broker in (1, 2):
            if topic == "moved" and broker == 1 and number > 5:
                continue  # a reassignment took it away
            rows[schema.REPLICAS].append((broker, "/d", topic, 0, _size(topic, number), 0, False))
    for broker in (1, 2):
        taken = sum(row[4] for row in rows[schema.REPLICAS] if row[0] == broker)
        left = (60 if broker == 1 else 120) * GB - taken
        rows[schema.LOG_DIRS].append((broker, "/d", TOTAL, left, None))
    for group, way in (("behind", 0), ("keeps-up", 1000 * (number + 1))):
        rows[schema.COMMITS].append((group, "endless", 0, way, 0, 1000 * (number + 1), 3, "id", False))
        rows[schema.GROUPS].append((group, "Stable", "classic", "consumer", 1, 1))
    return Pass(rows={table: found for table, found in rows.items() if found})


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    found = create_store(tmp_path_factory.mktemp("outlook") / "store", "c")
    for number in range(PASSES):
        put(found, number * EVERY_MS, _pass(number))
    for _ in compact(found, HOUR):
        pass
    return found


@pytest.fixture(scope="module")
def job(store: Store) -> StoreReads:
    return StoreReads(store, HOUR.start_ms, END_MS + 1)


@pytest.fixture(scope="module")
def outlook(job: StoreReads) -> Outlook:
    found, moment = job.outlook()
    assert job.errors == []
    assert moment.at_ms == END_MS
    return found


def test_topics_grow_as_they_were_made_to(outlook: Outlook) -> None:
    rows = {row.topic: row for row in outlook.by_topic()}
    endless, limited, keys, moved = (rows[topic] for topic in ("endless", "limited", "keys", "moved"))
    assert endless.written_bytes_per_hour == pytest.approx(2 * 0.5 * GB, rel=1e-3)  # both replicas
    assert endless.growth_bytes_per_hour == pytest.approx(2 * 0.5 * GB, rel=1e-3)
    assert (endless.unlimited, endless.ceiling_bytes, endless.observed_ms) == (True, None, 3 * HOUR_MS)
    assert limited.written_bytes_per_hour == pytest.approx(2 * 0.5 * GB, rel=1e-2)
    assert not limited.unlimited
    assert limited.ceiling_bytes == pytest.approx(2 * (6 * GB + LATE), abs=5)
    assert limited.retention_bytes_used == pytest.approx(5.5 / 5)
    assert keys.dirty_ratio_at_least == pytest.approx(0.5 / 0.6, rel=1e-3)
    assert (keys.cleaner_stands_still, endless.cleaner_stands_still) == (True, None)
    assert (moved.replica_count, moved.growth_bytes_per_hour) == (1, 0.0)


def test_disks_are_full_by_what_has_no_end(outlook: Outlook) -> None:
    one, two = outlook.by_log_dir()
    left = 60 - (2.5 + 0.6 + 5.5)
    assert one.usable_bytes == pytest.approx(left * GB, rel=1e-6)
    assert one.full_ms == pytest.approx((left - 0.5) / 0.7 * HOUR_MS, rel=1e-2)  # `limited` takes half a GB more
    assert one.full_at is not None
    assert (one.growing_to_bytes, one.same_volume, one.unknown_replicas) == (None, [], 0)
    assert [cause.topic for cause in one.causes][:2] == ["endless", "keys"]
    assert one.causes[0].share == pytest.approx(0.5 / 0.7, rel=2e-2)
    assert two.full_ms is not None
    assert two.full_ms > one.full_ms  # type: ignore[operator]
    broker = outlook.by_broker()[0]
    assert (broker.full_log_dir, broker.full_ms) == ("/d", one.full_ms)


def test_replicas_that_are_gone_are_not_told(outlook: Outlook) -> None:
    found = outlook.by_replica()
    assert [(r.broker, r.is_leader) for r in found if r.topic == "moved"] == [(2, True)]
    assert [(r.topic, r.broker, r.is_leader) for r in found if r.topic == "endless"] == [
        ("endless", 1, True),
        ("endless", 2, False),
    ]
    limited = next(r for r in found if r.topic == "limited")
    assert limited.shrunk_at is not None
    assert limited.freed_bytes_per_hour == pytest.approx(GB / 3, rel=0.05)


def test_skew(outlook: Outlook) -> None:
    rows = outlook.skews()
    assert [(row.over, row.places) for row in rows] == [("brokers", 2)]
    sizes = [row.size_bytes for row in outlook.by_broker()]
    assert rows[0].ratio == pytest.approx(max(sizes) / (sum(sizes) / 2))


def test_who_loses_when_the_disk_is_full(job: StoreReads, outlook: Outlook) -> None:
    readers = job.readers(outlook)
    assert {(r.group, r.lag, r.replicas) for r in readers} == {("behind", 19_000, 2), ("keeps-up", 0, 2)}
    behind = next(r for r in readers if r.group == "behind")
    assert behind.produced_per_s == pytest.approx(1000 / 600)
    full_ms = outlook.by_log_dir()[0].full_ms
    assert full_ms is not None
    (row,) = losses(readers, full_ms)
    assert (row.group, row.deleted, row.sole) == ("behind", 0, 0)  # retention has no limit there
    assert row.unread == pytest.approx(19_000 + 1000 / 600 * full_ms / 1000, rel=1e-3)


def test_unread_messages_older_than_all_that_was_seen(job: StoreReads, outlook: Outlook) -> None:
    """The window of a reading is half an hour; the next unread message is the log's first record, 13 hours old."""
    behind = next(r for r in job.readers(outlook) if r.group == "behind")
    assert behind.time_lag_ms == 13 * HOUR_MS
    limits = {"endless": LogConfig("endless", "delete", retention_ms=14 * HOUR_MS, retention_bytes=-1)}
    disks = replace(outlook.disks, configs={**outlook.disks.configs, **limits})
    again = next(r for r in job.readers(Outlook(disks, [], now_ms=outlook.now_ms)) if r.group == "behind")
    assert again.loss_eta_ms == HOUR_MS


def test_another_retention(job: StoreReads, outlook: Outlook) -> None:
    change = parse_change(["retention.ms=1h"])
    ends = job.ends_near([END_MS - HOUR_MS], END_MS)
    found = what_if(outlook, change, names_of(["end*"]), job.readers(outlook), ends)
    (topic,) = found.topics
    assert (topic.topic, topic.retention_ms, topic.new_retention_ms) == ("endless", -1, HOUR_MS)
    old = 13_000 / 19_000  # all that was written more than an hour ago
    assert topic.freed_at_most_bytes == pytest.approx(2 * 2.5 * GB * old, rel=0.05)
    assert topic.freed_at_least_bytes == pytest.approx(2 * (2.5 * GB * old - GB), rel=0.05)
    assert (topic.ceiling_bytes, topic.unknown_partitions) == (None, 0)
    assert topic.new_ceiling_bytes == pytest.approx(2 * (0.5 * GB + GB + LATE), rel=0.01)
    assert [(g.group, g.partition_count) for g in found.groups] == [("behind", 1)]
    assert found.groups[0].lost_at_most == pytest.approx(13_000, rel=0.05)
    assert (found.groups[0].loss_ms, found.groups[0].new_loss_ms) == (None, 0)
    one = found.log_dirs[0]
    assert one.freed_at_most_bytes == topic.freed_at_most_bytes // 2
    assert one.full_ms is not None
    assert one.new_full_ms is not None
    assert one.new_full_ms > 2.5 * one.full_ms  # only `keys` grows on


def test_another_retention_that_takes_nothing_now_but_soon(outlook: Outlook) -> None:
    """Of 24 h that unread messages have, 23 are left; of one hour a quarter."""
    limits = {"endless": LogConfig("endless", "delete", retention_ms=24 * HOUR_MS, retention_bytes=-1)}
    day = Outlook(replace(outlook.disks, configs={**outlook.disks.configs, **limits}), [], now_ms=outlook.now_ms)
    log = Log(0, 19_000, GB, 1.0)
    slow = ConsumingGroup("slow", "endless", 0, 500, 0.0, 1.0, None, 2, 18_500, 45 * MINUTE_MS, log=log)
    readers = [
        slow,
        slow._replace(group="half", consumed_per_s=0.5),
        slow._replace(group="as-it-is-written", keeps_up=True),
        slow._replace(group="other", topic="keys"),
    ]
    found = what_if(day, parse_change(["retention.ms=1h"]), names_of(["endless"]), readers, {})
    assert [(row.group, row.lost_at_most, row.loss_ms, row.new_loss_ms) for row in found.groups] == [
        ("slow", 0, 23 * HOUR_MS + 15 * MINUTE_MS, 15 * MINUTE_MS),
        ("half", 0, 2 * (23 * HOUR_MS + 15 * MINUTE_MS), 30 * MINUTE_MS),
    ]
    assert what_if(day, parse_change(["retention.ms=2d"]), names_of(["endless"]), readers, {}).groups == []
    shown = what_if_tables(found)[2]
    assert [column.key for column in shown.columns][-2:] == ["loss_ms", "new_loss_ms"]


def test_a_longer_retention_frees_nothing_and_fills_more(job: StoreReads, outlook: Outlook) -> None:
    found = what_if(outlook, parse_change(["retention.bytes=500GB"]), names_of(["limited"]), [], {})
    (topic,) = found.topics
    assert topic.freed_at_most_bytes == 0
    assert topic.new_ceiling_bytes == pytest.approx(2 * (501 * GB + LATE), abs=5)
    one = found.log_dirs[0]
    assert one.full_ms is not None
    assert one.new_full_ms is not None
    assert one.new_full_ms < one.full_ms


def test_a_part_of_the_time(store: Store) -> None:
    job = StoreReads(store, HOUR.start_ms, HOUR.start_ms + HOUR_MS)
    found, moment = job.outlook()
    assert moment.at_ms == HOUR.start_ms + 5 * EVERY_MS
    assert found.by_topic()[0].observed_ms == 5 * EVERY_MS
    with pytest.raises(NotFound, match="no snapshot of that time"):
        StoreReads(store, 0, 5).outlook()


def test_a_broker_that_was_down_is_told(tmp_path: Path) -> None:
    """The last pass has nothing of broker 2: what is known of it is what the passes before say, and that is told."""
    store = create_store(tmp_path / "s", "c")
    for number in range(3):
        put(store, number * EVERY_MS, _pass(number))
    last = _pass(3)
    for table, place in ((schema.LOG_DIRS, 0), (schema.REPLICAS, 0), (schema.LOGS, 3)):
        last.rows[table] = [row for row in last.rows[table] if row[place] != 2]
    last.failures.append("broker 2 is down: 4 replicas of it were not read")
    put(store, 3 * EVERY_MS, last)
    job = StoreReads(store, HOUR.start_ms, END_MS)
    outlook, _ = job.outlook()
    assert job.errors == ["broker 2 is down: 4 replicas of it were not read"]
    assert [row.broker for row in outlook.by_log_dir()] == [1, 2]
    assert [row.topic for row in outlook.by_partition()] == ["endless", "keys", "limited", "moved"]
    assert sum(row.broker == 2 for row in outlook.by_replica()) == 4


# --- volumes --------------------------------------------------------------------------------------------------------


def volume(broker: int, path: str, first: int, last: int, total: int | None = TOTAL) -> GrownVolume:
    return GrownVolume(broker, path, total, Growth(2, 0, HOUR_MS, first, last, 0, 0, None, last - first))


def replica(size: int, written: int, path: str = "/a", **known: Any) -> GrownReplica:
    growth = Growth(2, 0, HOUR_MS, size - written, size, written, HOUR_MS, None, written)
    values: dict[str, Any] = {"topic": "t", "partition": 0, "broker": 1, "future": False, "offset_lag": 0, **known}
    return GrownReplica(**values, log_dir=path, growth=growth)


def test_log_dirs_on_one_volume_fill_it_together() -> None:
    found = same_volumes(
        [
            volume(1, "/a", 100 * GB, 90 * GB),
            volume(1, "/b", 100 * GB, 90 * GB - 5),
            volume(1, "/c", 100 * GB, 50 * GB),
            volume(2, "/a", 100 * GB, 90 * GB),
            volume(1, "/e", 100 * GB, 90 * GB, total=None),
        ]
    )
    assert [[(row.broker, row.log_dir) for row in group] for group in found] == [
        [(1, "/a"), (1, "/b")], [(1, "/c")], [(1, "/e")], [(2, "/a")],
    ]  # fmt: skip
    disks = Disks(
        [replica(GB, GB), replica(GB, GB, "/b", partition=1)],
        [volume(1, "/a", 102 * GB, 100 * GB), volume(1, "/b", 102 * GB, 100 * GB)],
        [],
        {},
    )
    full = disks.full()
    assert full[1, "/a"] == full[1, "/b"]
    assert full[1, "/a"].eta_ms == 50 * HOUR_MS


def test_what_others_write_is_seen_in_the_free_space() -> None:
    disks = Disks([replica(GB, GB)], [volume(1, "/a", 104 * GB, 100 * GB)], [], {})
    found = disks.full()[1, "/a"]
    assert found.eta_ms == 25 * HOUR_MS
    assert {cause.topic: cause.share for cause in found.causes} == {"t": 0.25, None: 0.75}


def test_a_copy_that_is_behind_will_be_as_large_as_its_leader() -> None:
    logs = [LeaderLog("t", 0, 1)]
    leader = replica(10 * GB, 0)
    copy = replica(GB, 0, broker=2, offset_lag=5)
    disks = Disks([leader, copy], [volume(1, "/a", 50 * GB, 50 * GB), volume(2, "/a", 5 * GB, 5 * GB)], logs, {})
    assert disks.full()[2, "/a"].eta_ms == 0  # 9 GB are on their way to 5 that are free
    settled = Disks([leader, copy._replace(offset_lag=0)], disks.volumes, logs, {})
    assert settled.full()[2, "/a"].eta_ms is None


def test_a_follower_is_written_as_fast_as_its_leader() -> None:
    logs = [LeaderLog("t", 0, 1)]
    disks = Disks([replica(10 * GB, 2 * GB), replica(10 * GB, 0, broker=2)], [], logs, {})
    assert disks.rates()["t", 0].written_per_hour == 2 * GB


def test_a_compacted_topic_that_swings_fills_no_disk() -> None:
    """50 keys: the log is cleaned from 376 to 65 kB again and again, and was at 376 when it was last looked at."""
    swing = Growth(9, 0, HOUR_MS, 65_000, 376_000, 2_000_000, HOUR_MS // 2, HOUR_MS // 2, 311_000)
    logs = [replica(376_000, 0)._replace(growth=swing)]
    configs = {"t": LogConfig("t", "compact")}
    disks = Disks(logs, [volume(1, "/a", 100_311_000, 100_000_000)], [LeaderLog("t", 0, 1)], configs)
    assert disks.full()[1, "/a"].eta_ms is None
    assert disks.rates()["t", 0].written_per_hour == 4_000_000
    assert replace(disks, configs={}).full()[1, "/a"].eta_ms == 25 * HOUR_MS


def test_a_disk_that_is_full_later_than_can_be_foretold(
    store: Store, outlook: Outlook, capsys: pytest.CaptureFixture[str]
) -> None:
    brief = [volume(1, "/a", 1001 * GB, 1000 * GB)]
    rows = Outlook(Disks([replica(GB, GB)], brief, [], {}), [LogDirSize(1, "/a", 2000 * GB, 1000 * GB)], now_ms=0)
    (row,) = rows.by_log_dir()
    assert (row.full_ms, row.full_at, row.full_after_ms) == (None, None, 100 * HOUR_MS)
    (broker,) = rows.by_broker()
    assert (broker.full_ms, broker.full_after_ms) == (None, 100 * HOUR_MS)
    assert "predictions reach 100 times as far" in next(
        line.text for line in explain_log_dir(row) if line.name == "full_after_ms"
    )
    assert [
        usage_table([each], by, outlook=True).rows[0]["full"] for by, each in (("log-dir", row), ("broker", broker))
    ] == ["> 4d 4h"] * 2
    retention_store.judge(asked(store, full_within="4d"), retention_store.StoreResult(log_dirs=[row]))
    assert capsys.readouterr().err == ""
    retention_store.judge(asked(store, full_within="5d"), retention_store.StoreResult(log_dirs=[row]))
    err = capsys.readouterr().err
    assert "/a on broker 1 will not be full within 4d 4h: 1h of snapshots are too few to predict 5d" in err


# --- what the command makes of it, but for Spark --------------------------------------------------------------------

KEYS = {
    ("topic", "usage"): "topic partition_count replica_count size_bytes replicas_bytes cleanup_policy segment_bytes "
    "retention_bytes retention_bytes_used oldest_timestamp oldest_age_ms retention_ms retention_ms_used observed_ms "
    "written_bytes_per_hour growth_bytes_per_hour ceiling_bytes unlimited skew dirty_ratio_at_least "
    "cleaner_stands_still",
    ("partition", "usage"): "topic partition leader replica_count size_bytes replicas_bytes log_start_offset "
    "log_end_offset cleanup_policy segment_bytes retention_bytes retention_bytes_used oldest_timestamp oldest_age_ms "
    "retention_ms retention_ms_used observed_ms written_bytes_per_hour growth_bytes_per_hour ceiling_bytes unlimited "
    "dirty_ratio_at_least cleaner_stands_still",
    ("replica", "usage"): "topic partition broker log_dir is_leader future offset_lag size_bytes retention_bytes_used "
    "observed_ms written_bytes_per_hour growth_bytes_per_hour freed_bytes_per_hour shrunk_at",
    ("broker", "usage"): "broker log_dir_count topic_count replica_count size_bytes disk_used retention_bytes_used "
    "oldest_timestamp oldest_age_ms retention_ms_used observed_ms written_bytes_per_hour growth_bytes_per_hour "
    "full_log_dir full_ms full_at full_after_ms",
    ("log-dir", "usage"): "broker log_dir topic_count replica_count size_bytes total_bytes usable_bytes disk_used "
    "retention_bytes_used oldest_timestamp oldest_age_ms retention_ms_used observed_ms written_bytes_per_hour "
    "growth_bytes_per_hour same_volume full_ms full_at growing_to_bytes unknown_replicas causes full_after_ms",
    ("topic", "losses"): "broker log_dir full_ms full_at group partition_count unread sole deleted loss_ms",
    ("topic", "skew"): "places least mean most ratio spread over broker topic",
    ("topic", "tombstones"): "group topic partition lag time_lag_ms delete_retention_ms min_compaction_lag_ms sure_ms",
}


def asked(store: Store, by: str = "topic", show: str = "usage", **more: Any) -> retention_store.StoreRequest:
    settings: dict[str, Any] = {
        "topic": None, "what_if": None, "last": "3h", "from_": None, "to": None, "full_within": None, "explain": False,
        **more,
    }  # fmt: skip
    topics = names_of(settings.pop("topic"))
    return retention_store.store_request(store.root, topics, by=by, show=show, **settings)


@pytest.mark.parametrize(("by", "show"), KEYS)
def test_reports_and_their_keys(
    store: Store, job: StoreReads, outlook: Outlook, capsys: pytest.CaptureFixture[str], by: str, show: str
) -> None:
    shown = retention_store.report_of(asked(store, by, show), job, outlook)
    rows = jsonable(shown.result)
    if show != "tombstones":
        assert list(rows[0]) == KEYS[by, show].split()
    assert [field.name for field in fields(shown.row)] == KEYS[by, show].split()
    emit(shown.result, lambda: shown.tables, None)
    assert capsys.readouterr().out.count("\n") >= len(rows)
    table = table_of(shown.rows, shown.row)
    assert (table.num_rows, table.schema) == (len(shown.rows), schema_of(shown.row))


def test_losses_fit_into_80_columns(
    store: Store, job: StoreReads, outlook: Outlook, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = retention_store.report_of(asked(store, show="losses"), job, outlook)
    assert shown.rows
    emit(shown.result, lambda: shown.tables, None)
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 80


@pytest.mark.parametrize("by", ["topic", "partition", "replica", "broker", "log-dir"])
def test_tables_fit_into_80_columns_and_wide_ones_have_everything(
    store: Store, job: StoreReads, outlook: Outlook, capsys: pytest.CaptureFixture[str], by: str
) -> None:
    shown = retention_store.report_of(asked(store, by), job, outlook)
    emit(shown.result, lambda: shown.tables, None)
    narrow = capsys.readouterr().out.splitlines()
    assert max(map(len, narrow)) <= 80
    wide = retention_store.report_of(asked(store, by, wide=True), job, outlook)
    keys = [{column.key for column in each.tables[0].columns} for each in (shown, wide)]
    assert keys[0] < keys[1]
    if by == "log-dir":
        assert narrow[0].split("  ")[-2:] == ["FULL IN", "BY"]


def test_a_disk_that_is_never_full_says_so(store: Store, outlook: Outlook) -> None:
    row = replace(outlook.by_log_dir()[0], full_ms=None)
    told = [
        usage_table([each], "log-dir", outlook=True).rows[0]["full"] for each in (row, replace(row, disk_used=None))
    ]
    assert told == ["never", None]


def test_explanations_name_the_causes(store: Store, job: StoreReads, outlook: Outlook) -> None:
    shown = retention_store.report_of(asked(store, "log-dir", explain=True), job, outlook)
    lines = {(line["name"], line["text"].split(":")[0]) for line in shown.result[0]["explain"]}
    assert ("causes", "topic endless") in lines
    assert len(shown.tables) == 3
    shown = retention_store.report_of(asked(store, "topic", topic=["k*"], explain=True), job, outlook)
    (row,) = shown.result
    assert {line["name"] for line in row["explain"]} >= {"dirty_ratio_at_least", "cleaner_stands_still"}
    assert any("when it last shrank" in line["text"] for line in row["explain"])


def test_a_what_if_as_the_command_shows_it(store: Store, job: StoreReads, outlook: Outlook) -> None:
    shown = retention_store.report_of(asked(store, what_if=["retention.ms=1h"], topic=["endless"]), job, outlook)
    assert list(jsonable(shown.result)) == ["topics", "log_dirs", "groups"]
    assert [len(table.rows) for table in shown.tables] == [1, 2, 1]
    with pytest.raises(NotFound, match="'nope' is not in the snapshots"):
        retention_store.report_of(asked(store, what_if=["retention.ms=1h"], topic=["nope"]), job, outlook)


def test_a_disk_that_is_full_too_soon_is_not_healthy(store: Store, outlook: Outlook) -> None:
    result = retention_store.StoreResult(log_dirs=outlook.by_log_dir())
    retention_store.judge(asked(store, full_within="2d"), result)
    with pytest.raises(NotHealthy, match="1 log dir is full within 5d: /d on broker 1 in 3d"):
        retention_store.judge(asked(store, full_within="5d"), result)


def test_compacted_topics_and_groups_that_are_behind() -> None:
    compact = LogConfig("k", "compact", delete_retention_ms=5 * HOUR_MS, min_compaction_lag_ms=0)
    late = ConsumingGroup("late", "k", 0, 5, None, None, None, 1, 0, 4 * HOUR_MS)
    readers = [late, late._replace(group="too-late", time_lag_ms=9 * HOUR_MS), late._replace(topic="other")]
    rows = tombstones(readers, {"k": compact, "other": LogConfig("other", "delete", delete_retention_ms=1)})
    assert [(row.group, row.sure_ms) for row in rows] == [("too-late", 0), ("late", HOUR_MS)]
