"""What a store tells of a moment: whole passes by themselves, passes that lack something with those before them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kctl.history.lag.window import MINUTE_MS
from kctl.history.snapshots import schema
from kctl.history.snapshots.collect import Pass
from kctl.history.snapshots.disk_moment import DiskMoment, disk_moment, ends_near, newest_configs
from kctl.history.snapshots.layout import HOUR_MS
from kctl.history.snapshots.store import Damaged, Store, create_store
from kctl.lag.rates import LogEnd
from snapshot_stores import HOUR, no_damage, put

BEGIN = HOUR.start_ms


def a_pass(
    ends: dict[str, int | None],
    *,
    brokers: tuple[int, ...] = (1,),
    configs: tuple[str, ...] = (),
    failures: tuple[str, ...] = (),
) -> Pass:
    rows: dict[str, list[tuple[Any, ...]]] = {
        schema.LOGS: [(topic, 0, "id", 1, 3, 0, end, end, None) for topic, end in ends.items()],
        schema.LOG_DIRS: [(broker, "/d", 100, 50, None) for broker in brokers],
        schema.CONFIGS: [(topic, "delete", 5, -1, 9, 9, 9, 0, -1, 0.5) for topic in configs],
    }
    return Pass(rows={table: found for table, found in rows.items() if found}, failures=list(failures))


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return create_store(tmp_path / "store", "c")


def moment(store: Store, end_ms: int = 10**13) -> DiskMoment:
    found = disk_moment(store, 0, end_ms, damaged=no_damage)
    assert found is not None
    return found


def test_a_whole_pass_tells_what_is_gone(store: Store) -> None:
    put(store, 0, a_pass({"old": 1, "kept": 1}, brokers=(1, 2), configs=("old", "kept")))
    put(store, MINUTE_MS, a_pass({"kept": 2}))
    found = moment(store)
    assert [(log.topic, log.log_end_offset) for log in found.logs] == [("kept", 2)]
    assert [row.broker for row in found.log_dirs] == [1]
    assert (list(found.configs), found.configs["kept"].retention_ms) == (["kept"], 5)
    assert (found.at_ms, found.failures) == (BEGIN + MINUTE_MS, ())
    assert set(newest_configs(store, damaged=no_damage)) == {"old", "kept"}


def test_a_pass_that_lacks_something_has_the_newest_of_those_before(store: Store) -> None:
    put(store, 0, a_pass({"a": 1, "b": 1}, brokers=(1, 2), configs=("a", "b")))
    put(store, MINUTE_MS, a_pass({"a": 2, "b": 2}, brokers=(1, 2)))
    put(store, 2 * MINUTE_MS, a_pass({"a": 3}, failures=("broker 2 is down",)))
    found = moment(store)
    assert [(log.topic, log.log_end_offset) for log in found.logs] == [("a", 3), ("b", 2)]
    assert [row.broker for row in found.log_dirs] == [1, 2]
    assert found.failures == ("broker 2 is down",)
    assert [log.log_end_offset for log in moment(store, BEGIN + 2 * MINUTE_MS).logs] == [2, 2]


def test_rows_from_long_ago_are_not_taken(store: Store) -> None:
    put(store, 0, a_pass({"a": 1, "b": 1}))
    put(store, HOUR_MS, a_pass({"a": 2}, failures=("x",)))
    assert [log.topic for log in moment(store).logs] == ["a"]


def test_no_pass_and_passes_that_cannot_be_read(store: Store) -> None:
    assert disk_moment(store, 0, 10**13, damaged=no_damage) is None
    assert newest_configs(store, damaged=no_damage) == {}
    put(store, 0, a_pass({"a": 1}))
    put(store, MINUTE_MS, a_pass({"a": 2}))
    bad = store.folder(schema.PASSES, HOUR) / f"pass-{BEGIN + MINUTE_MS}.parquet"
    bad.write_bytes(b"none")
    damaged: list[Damaged] = []
    found = disk_moment(store, 0, 10**13, damaged=damaged.append)
    assert found is not None
    assert found.at_ms == BEGIN
    assert {each.path for each in damaged} == {bad}


def test_where_logs_ended_about_a_moment(store: Store) -> None:
    for number, end in enumerate((10, 20, None, 40)):
        put(store, number * 20 * MINUTE_MS, a_pass({"a": end}))

    def near(minutes: int, until: int = 10**6) -> list[tuple[int, int]]:
        found = ends_near(store, BEGIN + minutes * MINUTE_MS, BEGIN + until * MINUTE_MS, damaged=no_damage)
        return [((at - BEGIN) // MINUTE_MS, offset) for at, offset in found.get(("a", 0), [])]

    assert near(10) == [(0, 10), (20, 20)]
    assert near(20) == [(0, 10), (20, 20)]
    assert near(30) == [(20, 20)]  # nobody knows it at 40
    assert near(55) == [(60, 40)]
    assert near(70) == [(60, 40)]
    assert near(10, until=15) == [(0, 10)]
    assert near(300) == near(-300) == []
    assert ends_near(store, BEGIN, 10**13, damaged=no_damage) == {("a", 0): [LogEnd(BEGIN, 10)]}
