"""Rows of the lag report out of a store and passes just made: what the plain rules give, however groups are split.

No Spark and no cluster: what a task does, and how it is planned. The real ones are in the integration tests
(tests/integration/spark/test_lag.py).
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pyspark import cloudpickle
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

from kctl.errors import NotFound, Refused
from kctl.history.evaluate.group_ranges import EVERY_GROUP, GroupRange
from kctl.history.lag import plan as lag_planning
from kctl.history.lag.limits import parse_limit
from kctl.history.lag.plan import LagPlan, LagRequest, plan_live, plan_moment, plan_span
from kctl.history.lag.row_batches import ROWS, arrow_schema, kinds, read
from kctl.history.lag.status_rows import (
    Key,
    Offsets,
    Owner,
    PartitionStatus,
    Surroundings,
    partition_status,
)
from kctl.history.lag.totals import by_group, by_topic
from kctl.history.lag.window import MINUTE_MS, WindowRules
from kctl.history.retention.deletion import Limits
from kctl.history.snapshots import schema
from kctl.history.snapshots.collect import Pass
from kctl.history.snapshots.compact import compact
from kctl.history.snapshots.store import Store, open_store
from kctl.lag.control_records import Markers
from kctl.lag.rates import LogEnd
from kctl.lag.retention import at
from kctl.lag.selection import names_of
from kctl.model import TopicPartition
from kctl.spark.task_source import TaskReader
from offsets_files import commit
from segment_files import batch, write
from snapshot_stores import HOUR, put, store_with
from span_oracle import span_of
from window_oracle import Observation, judge

GROUPS = ["a-keeps", "a-slow", "b-stopped", "b-none", "c-empty", "d-vanishes", "é"]
PASSES = 45  # a minute apart
LIMITS = Limits("delete", 7_200_000, 50_000)
BACK_MS = 30 * MINUTE_MS  # as a window reaches
EVERYTHING = LagRequest(groups=names_of(None), topics=names_of(None), lookback_ms=BACK_MS)


def _state(group: str) -> str:
    return "Empty" if group == "c-empty" else "Stable"


def _owned(group: str, topic: str, partition: int) -> bool:
    return _state(group) == "Stable" and topic == "t" and partition == 0


def _offset(group: str, number: int, end: int) -> int | None:
    return {
        "a-keeps": end,
        "a-slow": 100 + 5 * number,
        "b-stopped": 100,
        "b-none": None,
        "c-empty": 20,
        "d-vanishes": end - 3,
        "é": end - number % 7,
    }[group]


def _commits(number: int) -> list[tuple[Any, ...]]:
    rng = random.Random(number)
    rows: list[tuple[Any, ...]] = []
    for group in GROUPS:
        if (group == "d-vanishes" and number >= 25) or (number < PASSES - 1 and rng.random() < 0.1):
            continue
        for topic in ("t", "u"):
            for partition in range(2):
                end = 100 + 10 * number + partition
                rows.append((group, topic, partition, _offset(group, number, end), 50, end, 3, "id", False))
    return rows


def _pass(number: int, *, complete: bool = True) -> Pass:
    """All tables. A group that has vanished is listed no more."""
    groups = [group for group in GROUPS if group != "d-vanishes" or number < 25]
    partitions = [(topic, partition) for topic in ("t", "u") for partition in range(2)]
    return Pass(
        rows={
            schema.COMMITS: _commits(number),
            schema.GROUPS: [(g, _state(g), "classic", "consumer", 1, 1) for g in groups],
            schema.OWNERS: [
                (g, t, p, "m", f"client-{g}", "/h") for g in groups for t, p in partitions if _owned(g, t, p)
            ],
            schema.LOGS: [(t, p, "id", 1, 3, 50, 100 + 10 * number + p, 95 + 10 * number, 1) for t, p in partitions],
            schema.REPLICAS: [(b, "/d", t, p, 1000 * b, 0, False) for t, p in partitions for b in (1, 2)],
            schema.CONFIGS: [] if number % 60 else [(t, *_config()) for t in ("t", "u")],
        },
        failures=[] if complete else ["broker 3 is down"],
    )


def _config() -> tuple[Any, ...]:
    return (LIMITS.cleanup_policy, LIMITS.retention_ms, LIMITS.retention_bytes, 10, 10, 10, 10, 10, 0.5)


def _at(number: int) -> int:
    return HOUR.start_ms + number * MINUTE_MS


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Half an hour that is compacted and a quarter of an hour of passes that are not."""
    found = store_with(tmp_path_factory.mktemp("store") / "s", [])
    for number in range(PASSES):
        if number == 30:
            for _ in compact(found, HOUR):
                pass
        put(found, number * MINUTE_MS, _pass(number))
    return found


def _rows(plan: LagPlan, ranges: Iterable[GroupRange] | None = None) -> list[Any]:
    """What all tasks give, sorted."""
    found = []
    by = plan.query.by
    for each in plan.ranges if ranges is None else ranges:
        for part in read(plan.query, each):
            part.validate(full=True)
            assert part.schema.equals(arrow_schema(by))
            for row in part.to_pylist():
                assert row.pop("error") is None
                values = (
                    at(row[name]) if kind.__name__ == "datetime" else row[name] for name, kind in kinds(by).items()
                )
                found.append(ROWS[by](*values))
    return sorted(found, key=lambda row: (row.group, getattr(row, "topic", ""), getattr(row, "partition", 0)))


def _expected(numbers: Sequence[int], *, since: int, back_ms: int, rules: WindowRules) -> list[PartitionStatus]:
    """By the plain rules: the readings of the passes `numbers`, with the passes so long before."""
    began = max(_at(numbers[0]) - back_ms, _at(0))
    observed: dict[Key, list[Observation]] = {}
    for number in range(numbers[-1] + 1):
        if _at(number) >= began:
            for group, topic, partition, committed, start, end, _, topic_id, _ in _commits(number):
                observed.setdefault(Key(group, topic, partition), []).append(
                    Observation(_at(number), committed, start, end, topic_id)
                )
    rows = []
    for key, seen in sorted(observed.items()):
        readings = [reading for reading in judge(seen, rules) if reading.at_ms >= _at(numbers[0])]
        if readings:
            rows.append((key, readings, seen[-1]))
    found = []
    for key, readings, last in rows:
        unchanged = [r[-1].unchanged_ms for k, r, _ in rows if k[:2] == key[:2]]
        listed = key.group != "d-vanishes" or since < 25
        owned = listed and _owned(*key)
        around = Surroundings(
            state=_state(key.group) if listed else "Dead",
            commit_deleted=readings[-1].at_ms < _at(since),
            owner=Owner(f"client-{key.group}", "/h") if owned else None,
            topic_owned=_owned(key.group, key.topic, 0) if listed else None,
            topic_unchanged_ms=min((ms for ms in unchanged if ms is not None), default=None),
            last_stable_offset=95 + 10 * since,
            oldest_timestamp_ms=1,
            size_bytes=1000,
            limits=LIMITS,
            began_ms=began,
        )
        offsets = Offsets(last.committed_offset, last.log_start_offset, last.log_end_offset)
        found.append(partition_status(key, offsets, readings[-1], span_of(readings), around))
    return found


RULES = WindowRules()


@pytest.mark.parametrize("tasks", [1, 3, 50])
@pytest.mark.parametrize(("first", "last"), [(35, 44), (20, 28), (0, 44), (44, 44)])
def test_a_span_of_a_store(store: Store, first: int, last: int, tasks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lag_planning, "_ROWS_PER_TASK", 1)
    plan = plan_span(store.root, _at(first), _at(last) + 1, replace(EVERYTHING, tasks=tasks))
    assert len(plan.ranges) == min(tasks, len(plan.ranges))
    assert (len(plan.ranges) > 1) == (tasks > 1)
    assert (plan.failures, plan.notes) == ((), ())
    expected = _expected(range(first, last + 1), since=last, back_ms=BACK_MS, rules=RULES)
    assert _rows(plan) == expected
    assert len(expected) >= 24
    states = {row.group: row.state for row in expected}
    assert states.get("d-vanishes") == ("Dead" if first < 25 else None)
    assert states["c-empty"] == "Empty"


def test_a_moment_of_a_store(store: Store) -> None:
    """Between two passes the one before tells."""
    plan = plan_moment(store.root, _at(33) + 30_000, EVERYTHING)
    assert _rows(plan) == _expected([33], since=33, back_ms=BACK_MS, rules=RULES)
    found = {(row.group, row.topic, row.partition): (row.status, row.standing) for row in _rows(plan)}
    assert found["b-stopped", "t", 0] == ("STALL", "active")  # a member has it
    assert found["b-stopped", "t", 1] == ("STOP", "active")
    assert found["b-stopped", "u", 0] == ("OK", "abandoned")
    assert found["c-empty", "t", 0] == ("STOP", "empty")
    assert found["a-slow", "t", 0] == ("WARN", "active")
    assert found["a-keeps", "t", 0] == ("OK", "active")
    assert found["b-none", "t", 0] == ("UNKNOWN", "active")


@pytest.mark.parametrize(("by", "add_up"), [("topic", by_topic), ("group", by_group)])
def test_groups_are_added_up_in_their_task(store: Store, by: str, add_up: Any) -> None:
    rows = _rows(plan_span(store.root, _at(40), _at(45), EVERYTHING))
    found = _rows(plan_span(store.root, _at(40), _at(45), replace(EVERYTHING, by=by, tasks=4)))
    assert found == add_up(rows)


@pytest.mark.parametrize(
    ("wanted", "groups", "topics"),
    [
        ({"groups": ["a-*"]}, {"a-keeps", "a-slow"}, {"t", "u"}),
        ({"groups": ["a-*", "é", "!a-slow"], "topics": ["u"]}, {"a-keeps", "é"}, {"u"}),
        ({"states": {"empty"}}, {"c-empty"}, {"t", "u"}),
        ({"topics": ["nothing*"]}, set(), set()),
    ],
)
def test_chosen_groups_and_topics(store: Store, wanted: dict[str, Any], groups: set[str], topics: set[str]) -> None:
    asked = replace(
        EVERYTHING,
        groups=names_of(wanted.get("groups")),
        topics=names_of(wanted.get("topics")),
        states=frozenset(wanted["states"]) if "states" in wanted else None,
        tasks=2,
    )
    plan = plan_span(store.root, _at(40), _at(45), asked)
    rows = _rows(plan)
    assert ({row.group for row in rows}, {row.topic for row in rows}) == (groups, topics)
    everything = _rows(plan_span(store.root, _at(40), _at(45), EVERYTHING))
    assert rows == [row for row in everything if row.group in groups and row.topic in topics]


def test_what_has_not_moved_since_long_ago_is_stale(tmp_path: Path) -> None:
    """A group without members, stopped: an alarm as long as nobody can know that it stands still for a day."""
    store = store_with(tmp_path / "s", [])
    day = 24 * 60
    for number in range(30):
        put(store, (day + number) * MINUTE_MS, _pass(number))

    def told() -> PartitionStatus:
        plan = plan_moment(store.root, _at(day + 29), EVERYTHING)
        (row,) = [row for row in _rows(plan) if (row.group, row.topic, row.partition) == ("c-empty", "t", 0)]
        return row  # type: ignore[no-any-return]

    young = told()
    assert (young.status, young.standing, young.last_commit) == ("STOP", "empty", None)
    put(store, 5 * MINUTE_MS, _pass(5))
    old = told()
    assert (old.status, old.burrow_status, old.standing) == ("OK", "STOP", "stale")
    assert (old.unchanged_ms, old.last_commit) == ((day + 24) * MINUTE_MS, None)
    # Of the rest nothing changes: where the log ended then is not asked. What nobody waits for is no loss.
    changed = {"status", "standing", "unchanged_ms", "worst_status", "loss_ms"}
    assert {k: v for k, v in asdict(old).items() if k not in changed} == {
        k: v for k, v in asdict(young).items() if k not in changed
    }
    lacking = _pass(8, complete=False)
    lacking.rows[schema.COMMITS] = []
    put(store, 8 * MINUTE_MS, lacking)  # tells nothing
    assert told() == old


def test_names_that_are_nowhere_are_refused(store: Store) -> None:
    for wanted in (
        replace(EVERYTHING, groups=names_of(["a-keeps", "typo"])),
        replace(EVERYTHING, topics=names_of(["typo", "t"])),
    ):
        with pytest.raises(NotFound, match="'typo' does not exist"):
            plan_span(store.root, _at(40), _at(45), wanted)
    # It was there in that time, and is gone since.
    gone = replace(EVERYTHING, groups=names_of(["d-vanishes"]))
    (row, *_) = _rows(plan_span(store.root, _at(20), _at(45), gone))
    assert (row.state, row.standing, row.status) == ("Dead", "dead", "OK")


def test_a_topic_that_is_gone_can_be_asked_for(tmp_path: Path) -> None:
    store = store_with(tmp_path / "s", [])
    found = _pass(0)
    found.rows[schema.COMMITS].append(("a-slow", "gone", 0, 5, None, None, None, None, True))
    put(store, 0, found)
    (row,) = _rows(plan_moment(store.root, _at(0), replace(EVERYTHING, topics=names_of(["gone"]))))
    assert (row.topic, row.lag, row.standing, row.status) == ("gone", None, "deleted", None)
    with pytest.raises(NotFound, match="'went' does not exist"):
        plan_moment(store.root, _at(0), replace(EVERYTHING, topics=names_of(["gone", "went"])))


def test_a_time_without_snapshots(store: Store, tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="has no snapshots from") as caught:
        plan_span(store.root, _at(45), _at(100), EVERYTHING)
    assert caught.value.hint is not None
    assert caught.value.hint.startswith("the store has snapshots from 20")
    with pytest.raises(NotFound, match="has no snapshots from"):
        plan_moment(store.root, _at(-1), EVERYTHING)
    with pytest.raises(NotFound, match="is not a snapshot store"):
        plan_span(tmp_path, 0, 1, EVERYTHING)
    with pytest.raises(NotFound, match=r"has no snapshots$"):
        plan_moment(store_with(tmp_path / "empty", []).root, 1, EVERYTHING)


def test_an_incomplete_pass_hides_nothing(tmp_path: Path) -> None:
    """What the last pass could not read is as the one before told; and the report says that it lacks something."""
    store = store_with(tmp_path / "s", [])
    for number in range(12):
        put(store, number * MINUTE_MS, _pass(number))
    lacking = _pass(12, complete=False)
    lacking.rows[schema.COMMITS] = [row for row in lacking.rows[schema.COMMITS] if row[0] != "a-slow"]
    lacking.rows[schema.GROUPS] = [row for row in lacking.rows[schema.GROUPS] if row[0] != "a-slow"]
    put(store, 12 * MINUTE_MS, lacking)
    for plan in (plan_moment(store.root, _at(12), EVERYTHING), plan_span(store.root, _at(5), _at(13), EVERYTHING)):
        assert [text.partition("incomplete")[2] for text in plan.failures] == [": broker 3 is down"]
        found = {(row.group, row.topic, row.partition): row for row in _rows(plan)}
        slow = found["a-slow", "t", 0]
        assert (slow.at, slow.state, slow.standing) == (at(_at(11)), "Stable", "active")
        assert found["b-stopped", "t", 0].at == at(_at(12))


def test_damaged_files_are_told(tmp_path: Path) -> None:
    store = store_with(tmp_path / "s", [])
    for number in range(3):
        put(store, number * MINUTE_MS, _pass(number))
    (damaged,) = (store.root / schema.OWNERS).rglob(f"pass-{_at(2):013d}.parquet")
    damaged.write_bytes(b"PAR1" + bytes(100))
    plan = plan_span(store.root, _at(0), _at(3), EVERYTHING)
    rows = [row for part in read(plan.query) for row in part.to_pylist()]
    errors = [row["error"] for row in rows if row["error"] is not None]
    assert len(errors) == 1
    assert str(damaged) in errors[0]
    assert len(rows) > 20
    assert rows[-1]["group"] is None


def test_slow_collectors_have_longer_windows(tmp_path: Path) -> None:
    store = store_with(tmp_path / "s", [])
    for number in range(20):
        put(store, number * 5 * MINUTE_MS, _pass(number))
    plan = plan_moment(store.root, _at(95), EVERYTHING)
    assert plan.query.began_ms == _at(0)
    assert plan.query.rules.span_ms == 100 * MINUTE_MS
    (row,) = (row for row in _rows(plan) if (row.group, row.topic, row.partition) == ("c-empty", "u", 0))
    assert (row.observations, row.status) == (10, "STOP")


def test_commit_times_of_the_offsets_topic(store: Store, tmp_path: Path) -> None:
    """A group without members looks stopped to snapshots; its log says that it commits, and when it did last."""
    made = [_at(number) - 500 for number in range(0, 45, 9)]
    parts = [batch(n, [commit("c-empty", "t", 0, 20, ms)], base_timestamp=ms) for n, ms in enumerate(made)]
    write(tmp_path / "__consumer_offsets-7", 0, parts)
    found = {}
    for logs in ((), (str(tmp_path / "__consumer_offsets-7"),)):
        rows = _rows(plan_moment(store.root, _at(37), replace(EVERYTHING, offsets_logs=logs, tasks=2)))
        found[logs] = {(row.group, row.topic, row.partition): row for row in rows}
    before, after = found.values()
    key = ("c-empty", "t", 0)
    assert (before[key].status, before[key].last_commit) == ("STOP", None)
    assert (after[key].status, after[key].last_commit) == ("STALL", at(made[4]))
    assert {k: row for k, row in before.items() if k[0] != "c-empty"} == {
        k: row for k, row in after.items() if k[0] != "c-empty"
    }
    with (tmp_path / "__consumer_offsets-7" / f"{0:020d}.log").open("ab") as file:
        file.write(bytes(80))
    plan = plan_moment(store.root, _at(37), replace(EVERYTHING, offsets_logs=(str(tmp_path / "__consumer_offsets-7"),)))
    errors = [row["error"] for part in read(plan.query) for row in part.to_pylist() if row["error"]]
    assert len(errors) == 1
    assert "__consumer_offsets-7" in errors[0]


# --- live -------------------------------------------------------------------------------------------------------------


class _Cluster:
    """Stands for a client: a real one is in the integration tests, and cannot be made to show these groups."""

    cluster_id = "c"

    def metadata(self, _topics: object = None) -> _Cluster:
        return self


class _Asked:
    """What the logs were asked for, and what they answer (tests/unit/lag/test_log_times.py has the asking itself)."""

    wanted: Any = None

    def __init__(self, wanted: Any, answer: Any) -> None:
        type(self).wanted, self.answer = wanted, answer


class _Collector:
    """Stands for kctl.history.snapshots.collect.Collector."""

    found: Pass

    def __init__(self, _cluster_id: str | None) -> None:
        pass

    def take_pass(self, _client: object, _at_ms: int) -> Pass:
        return self.found


def _live(
    monkeypatch: pytest.MonkeyPatch,
    found: Pass,
    store: Path | None,
    wanted: LagRequest = EVERYTHING,
    *,
    number: int = PASSES,
    points: Any = ({}, {}),
    markers: Any = ({}, {}),
) -> LagPlan:
    monkeypatch.setattr(lag_planning, "fetch_points", lambda _client, logs, _at_ms: _Asked(logs, points).answer)
    monkeypatch.setattr(lag_planning, "fetch_markers", lambda _client, _logs: markers)
    monkeypatch.setattr(lag_planning, "Collector", _Collector)
    monkeypatch.setattr(lag_planning, "_ROWS_PER_TASK", 1)
    monkeypatch.setattr(_Collector, "found", found, raising=False)
    client: Any = _Cluster()
    return plan_live(client, store, wanted, now_ms=lambda: _at(number))


@pytest.mark.parametrize("tasks", [1, 3])
def test_a_live_pass_is_judged_with_the_stores_history(
    store: Store, monkeypatch: pytest.MonkeyPatch, tasks: int
) -> None:
    """As if it had been stored."""
    found = _pass(60)  # with configs
    found.rows |= {name: rows for name, rows in _pass(PASSES).rows.items() if name != schema.CONFIGS}
    plan = _live(monkeypatch, found, store.root, replace(EVERYTHING, tasks=tasks))
    assert len(plan.ranges) == tasks
    expected = _expected([PASSES], since=PASSES, back_ms=BACK_MS, rules=RULES)
    assert _rows(plan) == expected
    assert {row.status for row in expected} >= {"OK", "WARN", "STOP", "STALL", "UNKNOWN"}


def test_without_history_there_is_no_status(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = _live(monkeypatch, _pass(0), None)
    rows = _rows(plan)
    assert rows
    assert {row.status for row in rows} == {None}
    assert {row.consumed_per_s for row in rows} == {None}
    assert {row.last_commit for row in rows} == {None}
    slow = next(row for row in rows if row.group == "b-stopped")
    assert (slow.lag, slow.at) == (0, at(_at(PASSES)))


def test_two_looks_have_rates_and_no_status(monkeypatch: pytest.MonkeyPatch) -> None:
    looks, clock = [_pass(0), _pass(40)], [_at(0), _at(40)]
    slept: list[float] = []
    _live(monkeypatch, looks[0], None)  # which puts the stand-ins in place
    monkeypatch.setattr(_Collector, "take_pass", lambda _self, _client, _at_ms: looks.pop(0))
    monkeypatch.setattr(time, "sleep", slept.append)
    client: Any = _Cluster()
    plan = plan_live(client, None, EVERYTHING, now_ms=lambda: clock.pop(0), observe_s=5)
    assert slept == [5]
    found = {(row.group, row.topic, row.partition): row for row in _rows(plan)}
    slow = found["a-slow", "t", 0]
    assert (slow.status, slow.observations, slow.readings) == (None, 1, 1)  # the first look is out of the window
    clock, looks = [_at(0), _at(2)], [_pass(0), _pass(2)]
    found = {}
    for row in _rows(plan_live(client, None, EVERYTHING, now_ms=lambda: clock.pop(0), observe_s=5)):
        found[row.group, row.topic, row.partition] = row
    slow = found["a-slow", "t", 0]
    assert (slow.status, slow.at, slow.lag, slow.deletion_by_bytes_ms is not None) == (None, at(_at(2)), 10, True)
    assert slow.consumed_per_s == pytest.approx(5 / 60)
    assert slow.produced_per_s == pytest.approx(10 / 60)
    assert slow.client_id == "client-a-slow"


def test_logs_tell_the_time_lag_where_history_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """Asked are the logs that somebody is behind on, for the oldest offset of the groups that are asked for."""
    log = TopicPartition("t", 1)
    end = 101 + 10 * 20
    points = {log: (LogEnd(_at(PASSES) - 90_000, 40), LogEnd(_at(PASSES) - 30_000, 120), LogEnd(_at(PASSES), end))}
    wanted = replace(EVERYTHING, groups=names_of(["b-*", "a-keeps"]), topics=names_of(["t"]))
    looked = _pass(20)
    looked.rows[schema.CONFIGS] = _pass(0).rows[schema.CONFIGS]
    plan = _live(monkeypatch, looked, None, wanted, points=(points, {TopicPartition("u", 0): NotFound("gone")}))
    assert {log: (1, 100, end), TopicPartition("t", 0): (1, 100, end - 1)} == _Asked.wanted
    assert plan.failures == ("timestamps of u-0: gone",)
    found = {(row.group, row.partition): row for row in _rows(plan)}
    assert found["b-stopped", 1].time_lag_ms == 45_000
    assert found["b-stopped", 1].deletion_by_time_ms == 7_200_000 - 45_000
    assert found["a-keeps", 1].time_lag_ms == 0
    assert found["b-stopped", 0].time_lag_ms is None


def test_markers_alone_are_no_alarm(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """a-slow is behind by what turns out to be control records, on one partition wholly."""
    end = 100 + 10 * PASSES
    first = 100 + 5 * PASSES
    markers = {
        TopicPartition("t", 0): Markers(first, end, tuple(range(first, end))),
        TopicPartition("t", 1): Markers(first, end + 1, (end,)),
    }
    unread = {TopicPartition("u", 0): NotFound("gone")}
    plan = _live(monkeypatch, _pass(PASSES), store.root, markers=(markers, unread))
    assert plan.failures == ()
    assert plan.notes == ("control records cannot be excluded from the lag in 1 partition: gone",)
    found = {(row.topic, row.partition): row for row in _rows(plan) if row.group == "a-slow"}
    clear, behind, other = found["t", 0], found["t", 1], found["u", 0]
    assert (clear.lag, clear.control_records, clear.status) == (end - first, end - first, "OK")
    assert (clear.burrow_status, clear.time_lag_ms, clear.catch_up_ms, clear.deletion_ms) == ("WARN", 0, 0, None)
    assert (behind.control_records, behind.status) == (1, behind.burrow_status)
    assert (other.control_records, other.status) == (None, "WARN")
    assert parse_limit("lag>0").breaks(behind)
    assert not parse_limit("lag>0").breaks(clear)


def test_history_that_is_too_old_is_told(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = _live(monkeypatch, _pass(0), store.root, number=200)
    assert "the last snapshot" in plan.notes[0]
    assert {row.status for row in _rows(plan)} == {None}
    plan = _live(monkeypatch, _pass(0), store.root, number=-5)
    assert "in the future" in plan.notes[0]


def test_another_clusters_store_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Refused, match="has snapshots of cluster other, but this is cluster c"):
        _live(monkeypatch, _pass(0), store_with(tmp_path / "s", [], "other").root)


def test_a_live_pass_that_lacks_something(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = _live(monkeypatch, _pass(0, complete=False), None, replace(EVERYTHING, groups=names_of(["who"])))
    assert plan.failures == ("broker 3 is down",)  # so nobody knows whether there is such a group
    with pytest.raises(NotFound, match="group 'who' does not exist"):
        _live(monkeypatch, _pass(0), None, replace(EVERYTHING, groups=names_of(["who"])))


def test_groups_without_rows_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    found = _pass(0)
    found.rows[schema.GROUPS] += [
        ("quiet", "Empty", "classic", "consumer", 0, 1), ("z-share", "Stable", "share", "share", 1, 1),
    ]  # fmt: skip
    assert _live(monkeypatch, found, None).silent == ("quiet",)
    assert _live(monkeypatch, found, None, replace(EVERYTHING, groups=names_of(["a*"]))).silent == ()


def test_nothing_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = _live(monkeypatch, Pass(rows={schema.COMMITS: []}), None)
    assert plan.ranges == (EVERY_GROUP,)
    assert _rows(plan) == []


@pytest.mark.parametrize("by", list(ROWS))
def test_sparks_schema_is_that_of_the_batches(by: str) -> None:
    assert to_arrow_schema(from_arrow_schema(arrow_schema(by))).equals(arrow_schema(by))


def test_what_travels_to_executors(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark pickles the source by value; a copy reads the same."""
    names = names_of(["a-*", "!x"])
    assert "a-slow" in names  # which keeps compiled patterns
    found = _pass(60)
    found.rows |= {name: rows for name, rows in _pass(PASSES).rows.items() if name != schema.CONFIGS}
    plan = _live(monkeypatch, found, store.root, replace(EVERYTHING, groups=names, tasks=2))
    untyped: Any = cloudpickle

    def copied(value: Any) -> Any:
        return untyped.loads(untyped.dumps(value))

    copy = copied(TaskReader(partial(read, plan.query), plan.ranges))
    partitions = [copied(each) for each in copy.partitions()]
    assert len(partitions) == 2
    rows = [row for each in partitions for part in copy.read(each) for row in part.to_pylist()]
    assert rows == [row for each in plan.ranges for part in read(plan.query, each) for row in part.to_pylist()]
    assert {row["group"] for row in rows} == {"a-keeps", "a-slow"}


def test_the_store_is_left_as_it_was(store: Store) -> None:
    before = sorted(store.root.rglob("*"))
    _rows(plan_moment(store.root, _at(33), EVERYTHING))
    assert sorted(store.root.rglob("*")) == before
    assert open_store(store.root).cluster_id == "c"
