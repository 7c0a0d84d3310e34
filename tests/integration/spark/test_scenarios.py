"""Consumer groups of every kind on a real cluster under load, told by `kctl spark lag`: what they do is known here.

For three quarters of a minute writers, readers and committers are at work, and `kctl spark snapshot` looks on each
second. One embedded Spark answers for all of it; the command runs once.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest

from group_admin import join
from kafka_admin import kafka_admin
from kctl.history.lag.plan import LagPlan, LagRequest, plan_live, plan_span
from kctl.history.lag.status import DEFAULT_STANDING_RULES, StandingRules
from kctl.history.lag.status_rows import PartitionStatus
from kctl.lag.selection import names_of
from kctl.protocol.client import ClusterClient, connect
from kctl.protocol.target import Target
from kctl.spark.lag_source import LagReportJob
from kctl.spark.session import SparkDriver
from kctl.spark.settings import SparkSettings
from kctl_testing import Kctl, TestCluster

pytestmark = pytest.mark.long

HEAVY_S = 180.0
LOAD_S = 42.0
STOP_AFTER_S, STEADY_AFTER_S, TURN_AFTER_S = 18.0, 26.0, 36.0  # a window is of ten looks, ten seconds
# Messages a second. What the slow one falls behind in a second is more than it commits at once, also where the machine
# makes it wait for seconds: each look sees it further behind than the look before.
WRITTEN, SLOW, FAST = 200, 40, 300
BEHIND = 20_000  # where the fast one begins
TICK_S = 0.1


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


class Stage:
    """The topics, the groups and those who write and commit. Names of topics and groups begin with `tag`."""

    def __init__(self, cluster: TestCluster, tag: str, stack: ExitStack) -> None:
        self.tag = tag
        self.target = Target(cluster.name, tuple(cluster.bootstrap.split(",")))
        self.client: ClusterClient = stack.enter_context(connect(self.target))
        self.admin = stack.enter_context(kafka_admin(self.client))
        self.producer = self.client.producer(linger_ms=0)
        stack.callback(self.producer.close)
        self._stack = stack
        self._committers: dict[str, Any] = {}

    def topic(self, name: str, **configs: str) -> str:
        """A topic of one partition."""
        full = f"{self.tag}.{name}"
        settings = {key.replace("_", "."): value for key, value in configs.items()}
        self.admin.create_topics({full: {"num_partitions": 1, "replication_factor": 3, "configs": settings}})
        return full

    def write(self, topic: str, count: int) -> None:
        for _ in range(count):
            self.producer.send(topic, b"x" * 20, key=b"k", partition=0)

    def commit(self, group: str, topic: str, offset: int) -> None:
        """As a consumer without members does, that assigns partitions by hand."""
        from kafka.structs import OffsetAndMetadata, TopicPartition

        name = f"{self.tag}.{group}"
        if name not in self._committers:
            consumer = self._committers[name] = self.client.consumer(group_id=name, enable_auto_commit=False)
            self._stack.callback(consumer.close, autocommit=False)
        self._committers[name].commit({TopicPartition(topic, 0): OffsetAndMetadata(offset, "", -1)})

    @contextmanager
    def member(self, group: str, topic: str, *, reads: bool = True) -> Iterator[None]:
        """A member of a group that reads and commits, or only commits where it began, again and again."""
        consumer = self.client.consumer(
            topic, group_id=f"{self.tag}.{group}", client_id=f"client-of-{group}", enable_auto_commit=False,
            auto_offset_reset="latest" if reads else "earliest",
        )  # fmt: skip
        done = threading.Event()
        thread = threading.Thread(target=_take_part, args=(consumer, done, reads), daemon=True)
        join(consumer, what=f"{group} has its partition")
        if not reads:
            consumer.pause(*consumer.assignment())
            for partition in consumer.assignment():
                consumer.seek(partition, 0)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join(20)
            consumer.close(autocommit=False)


def _take_part(consumer: Any, done: threading.Event, reads: bool) -> None:
    while not done.is_set():
        consumer.poll(timeout_ms=100)
        consumer.commit()
        done.wait(0.1 if reads else 0.5)


@dataclass(frozen=True)
class Played:
    """What was on stage. from_ms: when all ways had been steady for a window. observed: two looks in its midst."""

    stage: Stage
    store: Path
    from_ms: int
    spark: SparkDriver
    observed: LagPlan

    def wanted(self, **changes: Any) -> LagRequest:
        standing = StandingRules(stale_after_ms=32_000, abandoned_after_ms=20_000)
        asked = LagRequest(names_of([f"{self.stage.tag}.*"]), names_of(None), standing=standing, tasks=2)
        return replace(asked, **changes)

    def rows(self, plan: LagPlan) -> dict[str, PartitionStatus]:
        """By group and topic, without the tag."""
        assert plan.failures == ()
        found, errors = LagReportJob(self.spark.session(), plan).read()
        assert errors == []
        short = len(self.stage.tag) + 1
        return {f"{row.group[short:]} {row.topic[short:]}": row for row in found if isinstance(row, PartitionStatus)}


@pytest.fixture(scope="module")
def played(kctl: Kctl, cluster: TestCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Played]:
    """The whole play; Spark starts while it goes on, the members stay until the questions are answered."""
    store = tmp_path_factory.mktemp("scenarios") / "store"
    with SparkDriver(SparkSettings()) as spark, ExitStack() as stack:
        stage = Stage(cluster, f"play.{os.getpid()}", stack)
        _set_up(stage)
        for group, topic, reads in (
            ("member", "load", True), ("stalled", "load", False), ("seldom", "seldom", True),
            ("elsewhere", "load", True),
        ):  # fmt: skip
            stack.enter_context(stage.member(group, f"{stage.tag}.{topic}", reads=reads))
        with (
            kctl.running("spark", "snapshot", "--store", str(store), "--every", "1s", "-o", "json"),
            ThreadPoolExecutor(1) as beside,
        ):
            observed = beside.submit(_observe, stage)
            from_ms = _play(stage)
        yield Played(stage, store, from_ms, spark, observed.result())


def _observe(stage: Stage) -> LagPlan:
    time.sleep(LOAD_S / 3)
    wanted = LagRequest(names_of([f"{stage.tag}.*"]), names_of([f"{stage.tag}.load"]))
    with connect(stage.target) as client:
        return plan_live(client, None, wanted, now_ms=_now_ms, observe_s=5)


def _set_up(stage: Stage) -> None:
    load = stage.topic("load", retention_ms="3600000")
    for name in ("cut", "seldom", "idle", "gone", "old"):
        stage.topic(name)
    stage.topic("compacted", cleanup_policy="compact")
    stage.write(load, BEHIND)
    for name, count in (("cut", 1000), ("idle", 100), ("gone", 10), ("old", 10), ("compacted", 50)):
        stage.write(f"{stage.tag}.{name}", count)
    stage.producer.flush()
    for group, name, offset in (
        ("overtaken", "cut", 100), ("quiet", "idle", 100), ("left", "idle", 40), ("ghost", "gone", 5),
        ("removed", "idle", 7), ("elsewhere", "old", 3), ("half-read", "compacted", 20),
    ):  # fmt: skip
        stage.commit(group, f"{stage.tag}.{name}", offset)


def _play(stage: Stage) -> int:
    """Everybody's ways, by the clock; when they had been steady for a while, in ms."""
    load, began, written, seldom, deeds = f"{stage.tag}.load", time.monotonic(), 0, 0, _deeds(stage)
    from_ms = 0
    while (passed := time.monotonic() - began) < LOAD_S:
        due = round(passed * WRITTEN)
        stage.write(load, due - written)
        written, end = due, BEHIND + due
        stage.producer.flush()
        stage.commit("keeps-up", load, end)
        stage.commit("slow", load, 1000 + round(passed * SLOW))
        stage.commit("fast", load, round(passed * FAST))
        if passed < STOP_AFTER_S:
            stage.commit("stopped", load, end)
        turned = passed >= TURN_AFTER_S
        stage.commit("rewound", load, (5000 if turned else 10_000) + round(passed * SLOW))
        if passed > 5 * seldom:
            seldom += 1
            stage.write(f"{stage.tag}.seldom", 1)
        if deeds and passed > deeds[0][0]:
            deeds.pop(0)[1]()
        if passed >= STEADY_AFTER_S and not from_ms:
            from_ms = _now_ms()
        time.sleep(max(TICK_S - (time.monotonic() - began - passed), 0))
    assert not deeds
    return from_ms


def _deeds(stage: Stage) -> list[tuple[float, Callable[[], object]]]:
    """What is done once, and when."""
    from kafka.structs import TopicPartition

    admin = stage.admin
    return [
        (8, lambda: admin.delete_records({TopicPartition(f"{stage.tag}.cut", 0): 500})),
        (30, lambda: admin.delete_groups([f"{stage.tag}.removed"])),
        (32, lambda: admin.delete_topics([f"{stage.tag}.gone"])),
    ]


VERDICTS = {
    # group and topic: status, what Burrow would say where that is something else, standing
    "keeps-up load": ("OK", None, "empty"),
    "member load": ("OK", None, "active"),
    "slow load": ("WARN", None, "empty"),
    "fast load": ("OK", None, "empty"),
    "stopped load": ("STOP", None, "empty"),
    "stalled load": ("STALL", None, "active"),
    "rewound load": ("REWIND", None, "empty"),
    "elsewhere load": ("OK", None, "active"),
    "elsewhere old": ("OK", "STOP", "abandoned"),
    "overtaken cut": ("OK", "STOP", "stale"),
    "left idle": ("OK", "STOP", "stale"),
    "quiet idle": ("OK", None, "stale"),
    "removed idle": ("OK", "STOP", "dead"),
    "seldom seldom": ("OK", None, "active"),
    "half-read compacted": ("OK", "STOP", "stale"),
}


def test_each_group_is_what_it_does(played: Played) -> None:
    rows = played.rows(plan_span(played.store, played.from_ms, _now_ms(), played.wanted()))
    ghost = rows.pop("ghost gone")
    assert ghost.standing in {"deleted", "dead"}  # brokers drop the commits of a deleted topic soon
    assert ghost.status == "OK"
    found = {
        name: (row.status, None if row.burrow_status == row.status else row.burrow_status, row.standing)
        for name, row in rows.items()
    }
    assert found == VERDICTS
    assert rows["seldom seldom"].worst_status == "OK"
    assert rows["member load"].worst_status in {"OK", "WARN"}  # on a busy machine, it may lag for a whole window
    assert rows["member load"].client_id == "client-of-member"
    assert (rows["overtaken cut"].lost, rows["overtaken cut"].lag) == (400, 500)
    assert rows["half-read compacted"].lag == 30
    assert rows["half-read compacted"].deletion_ms is None  # compaction deletes no message for its age


def test_rates_and_etas_are_those_that_were_made(played: Played) -> None:
    rows = played.rows(plan_span(played.store, played.from_ms, _now_ms(), played.wanted()))
    slow, fast, stopped = rows["slow load"], rows["fast load"], rows["stopped load"]
    for row, rate in ((slow, SLOW), (fast, FAST), (stopped, 0)):
        assert row.produced_per_s == pytest.approx(WRITTEN, rel=0.1)
        assert row.consumed_per_s == pytest.approx(rate, rel=0.1)
    assert fast.lag
    assert fast.catch_up_ms == pytest.approx(fast.lag / (FAST - WRITTEN) * 1000, rel=0.1)
    assert slow.catch_up_ms is None
    assert stopped.catch_up_ms is None
    # What `stopped` has not read began to be written when it stopped, which was within what is looked back at.
    assert stopped.lag
    assert stopped.time_lag_ms == pytest.approx(stopped.lag / WRITTEN * 1000, rel=0.1)
    assert stopped.time_lag_ms
    assert stopped.deletion_by_time_ms == 3_600_000 - stopped.time_lag_ms
    assert stopped.loss_ms == stopped.deletion_ms
    assert slow.deletion_ms
    assert slow.loss_ms == pytest.approx(slow.deletion_ms / (1 - SLOW / WRITTEN), rel=0.15)
    assert fast.loss_ms is None


def test_two_looks_tell_rates_without_a_store(played: Played) -> None:
    rows = played.rows(played.observed)
    for name, rate in (("slow", SLOW), ("fast", FAST), ("keeps-up", WRITTEN)):
        row = rows[f"{name} load"]
        assert row.status is None
        assert row.produced_per_s == pytest.approx(WRITTEN, rel=0.1)
        assert row.consumed_per_s == pytest.approx(rate, rel=0.1)
    fast = rows["fast load"]
    assert fast.lag
    assert fast.catch_up_ms == pytest.approx(fast.lag / (FAST - WRITTEN) * 1000, rel=0.25)  # of two rates' difference


def test_now_is_told_with_what_was(played: Played) -> None:
    """A look at the cluster that is made now; and by Kafka's own times, in which nobody here is forgotten yet."""
    with connect(played.stage.target) as client:
        wanted = played.wanted(standing=DEFAULT_STANDING_RULES)
        plan = plan_live(client, played.store, wanted, now_ms=_now_ms)
    rows = played.rows(plan)
    assert rows["stalled load"].status == "STALL"
    assert rows["stopped load"].status == "STOP"
    assert (rows["member load"].status, rows["member load"].lag) == ("OK", 0)
    assert "removed idle" not in rows
    for name in ("overtaken cut", "left idle", "elsewhere old"):
        assert rows[name].status == "STOP"
    assert (rows["overtaken cut"].lost, rows["quiet idle"].status) == (400, "OK")


@pytest.mark.usefixtures("spark_archive")
def test_the_command(kctl: Kctl, played: Played, tmp_path: Path) -> None:
    where = tmp_path / "rows"
    result = kctl(
        "spark", "lag", "--store", str(played.store), "--from", str(played.from_ms), "--group", f"{played.stage.tag}.*",
        "--topic", "*.load", "--explain", "--parquet", str(where), "--fail-on", "ERR", "--fail-on", "time-lag>5m",
        "--worst", "3", "-o", "json", timeout=HEAVY_S,
    )  # fmt: skip
    assert result.code == 1, str(result)
    rows = json.loads(result.out)
    assert {row["status"] for row in rows} == {"STOP", "STALL", "REWIND"}
    assert rows[0]["status"] == "REWIND"  # the largest of Burrow's numbers
    assert all(row["explain"] for row in rows)
    assert json.loads(result.err.splitlines()[-1])["limits"] == {"ERR": 3}
    table = pyarrow.parquet.read_table(where)
    assert table.num_rows == len([name for name in VERDICTS if name.endswith(" load")])
    assert str(table.schema.field("at").type).startswith("timestamp")
