"""Rollups: hours against a naive count over the same rows, days as folded hours, crashes and damaged files."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Iterable
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kctl.__main__ import main
from kctl.errors import Busy
from kctl.history.lag.window import MINUTE_MS
from kctl.history.rollups import catch_up as catch_up_module
from kctl.history.rollups import hour as rollup_hours
from kctl.history.rollups.catch_up import catch_up, make_day, make_hour, missing_hours
from kctl.history.rollups.hour import roll_up
from kctl.history.rollups.rollup import COLUMNS, GROUPS, LOG_DIRS, TABLES, TOPICS, fold
from kctl.history.rollups.trends import courses
from kctl.history.snapshots import lock, rollup_files, schema
from kctl.history.snapshots.collect import Pass
from kctl.history.snapshots.compact import compact
from kctl.history.snapshots.layout import HOUR_MS, Hour
from kctl.history.snapshots.passes import latest_ms, newest_ms
from kctl.history.snapshots.read import read_sorted
from kctl.history.snapshots.rows import BATCH_ROWS
from kctl.history.snapshots.store import Damaged, Store, create_store, open_store
from kctl.lag.rates import consumed
from kctl.lag.rules import lag_of, lost_of
from kctl.spark.rollup_job import make_share
from kctl.spark.task_source import TaskReader
from snapshot_stores import HOUR, put

EVERY_MS = 10 * MINUTE_MS
DAY_MS = 24 * HOUR_MS

Row = dict[str, Any]


def a_pass(number: int) -> Pass:
    """Return rows with gaps: missing partitions, unknown commits and offsets, rewinds."""
    rng = random.Random(number)
    rows: dict[str, list[tuple[Any, ...]]] = {name: [] for name in schema.TABLES}
    for topic in ("a", "b", "é"):
        for partition in range(2):
            end = 100 * number + partition + rng.randrange(50)
            start = rng.choice([0, 50 * number])
            known = rng.random() > 0.1
            ends = (start if known else None, end if known else None)
            if rng.random() > 0.1:
                rows[schema.LOGS].append((topic, partition, "id", 1, 3, *ends, None, None))
            for broker in (1, 2):
                rows[schema.REPLICAS].append(
                    (broker, "/d", topic, partition, 1000 * number + rng.randrange(99), 0, False)
                )
            for group in ("g", "h"):
                if rng.random() > 0.15:
                    committed = rng.choice([None, end, max(end - 40, 0), 80 * number])
                    rows[schema.COMMITS].append((group, topic, partition, committed, *ends, 3, "id", False))
    rows[schema.LOG_DIRS] = [(b, "/d", 10**6, rng.choice([None, 10**5 - number]), None) for b in (1, 2)]
    return Pass(rows={name: found for name, found in rows.items() if found})


def a_store(root: Path, count: int) -> Store:
    store = create_store(root, "c")
    for number in range(count):
        put(store, number * EVERY_MS, a_pass(number))
    return store


@pytest.fixture(scope="module")
def loose(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Passes over a little more than three hours, not compacted."""
    return a_store(tmp_path_factory.mktemp("rollups") / "store", 20)


@pytest.fixture(scope="module")
def store(loose: Store, tmp_path_factory: pytest.TempPathFactory) -> Store:
    """The same passes, with the first hour compacted."""
    found = copied(loose, tmp_path_factory.mktemp("compacted"))
    for _ in compact(found, HOUR):
        pass
    return found


@pytest.fixture
def fresh(loose: Store, tmp_path: Path) -> Store:
    """Return a copy of the store that a test may change."""
    return copied(loose, tmp_path)


def copied(store: Store, folder: Path) -> Store:
    shutil.copytree(store.root, folder / "s")
    return open_store(folder / "s")


def hours(count: int) -> list[Hour]:
    return [Hour(HOUR.start_ms + number * HOUR_MS) for number in range(count)]


# --- a naive count --------------------------------------------------------------------------------------------------


def seen(table: str, numbers: Iterable[int]) -> dict[int, list[Row]]:
    names = [name for name, _, _ in schema.COLUMNS[table][1:]]
    return {n: [dict(zip(names, row, strict=True)) for row in a_pass(n).rows.get(table, [])] for n in numbers}


def summed(values: Iterable[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def last(values: list[Any]) -> Any:
    return next((value for value in reversed(values) if value is not None), None)


def steps(rows: dict[int, list[Row]], first: int, names: tuple[str, ...], step: Any) -> int | None:
    """Return the sum of the increases of each partition from row to row that end in the hour."""
    by_partition: dict[tuple[Any, ...], list[tuple[int, Row]]] = {}
    for number, each in sorted(rows.items()):
        for row in each:
            by_partition.setdefault(tuple(row[name] for name in names), []).append((number, row))
    return summed(
        step(before, after)
        for each in by_partition.values()
        for (_, before), (number, after) in pairwise(each)
        if number >= first
    )


def produced(before: Row, after: Row) -> int | None:
    if before["log_end_offset"] is None or after["log_end_offset"] is None:
        return None
    found: int = max(after["log_end_offset"] - before["log_end_offset"], 0)
    return found


def read(before: Row, after: Row) -> int | None:
    if before["committed_offset"] is None or after["committed_offset"] is None:
        return None
    found: int = consumed(before["committed_offset"], before["log_start_offset"], after["committed_offset"])
    return found


def naive_groups(hour: int) -> list[Row]:
    first = hour * 6
    own, with_base = range(first, first + 6), range(max(first - 1, 0), first + 6)
    rows = seen(schema.COMMITS, with_base)
    found = []
    for key in sorted({(r["group"], r["topic"]) for n in own for r in rows[n]}):
        mine = {n: [r for r in each if (r["group"], r["topic"]) == key] for n, each in rows.items()}
        offsets = ("committed_offset", "log_start_offset", "log_end_offset")
        lags = [summed(lag_of(*(r[name] for name in offsets)) for r in mine[n]) for n in own]
        known = [lag for lag in lags if lag is not None]
        found.append(
            {
                "group": key[0], "topic": key[1], "start_ms": HOUR.start_ms + hour * HOUR_MS,
                "passes": sum(bool(mine[n]) for n in own), "complete": True,
                "partitions": last([len(mine[n]) or None for n in own]),
                "lag": last(lags), "peak_lag": max(known, default=None),
                "mean_lag": sum(known) / len(known) if known else None,
                "lost": last([summed(lost_of(r[offsets[0]], r[offsets[1]]) for r in mine[n]) for n in own]),
                "consumed": steps(mine, first, ("partition",), read),
                "produced": steps(mine, first, ("partition",), produced),
            }
        )  # fmt: skip
    return found


def naive_topics(hour: int) -> list[Row]:
    first = hour * 6
    own = range(first, first + 6)
    rows, replicas = seen(schema.LOGS, range(max(first - 1, 0), first + 6)), seen(schema.REPLICAS, own)
    found = []
    for topic in sorted({r["topic"] for n in own for r in rows[n]}):
        mine = {n: [r for r in each if r["topic"] == topic] for n, each in rows.items()}
        sizes = [summed(r["size_bytes"] for r in replicas[n] if r["topic"] == topic) for n in own]
        messages = [
            summed(
                None if r["log_end_offset"] is None else max(r["log_end_offset"] - r["log_start_offset"], 0)
                for r in mine[n]
            )
            for n in own
        ]
        found.append(
            {
                "topic": topic, "start_ms": HOUR.start_ms + hour * HOUR_MS, "passes": sum(bool(mine[n]) for n in own),
                "complete": True, "partitions": last([len(mine[n]) or None for n in own]), "messages": last(messages),
                "produced": steps(mine, first, ("partition",), produced), "replicas_bytes": last(sizes),
                "peak_replicas_bytes": max(size for size in sizes if size is not None),
            }
        )  # fmt: skip
    return found


def naive_log_dirs(hour: int) -> list[Row]:
    own = range(hour * 6, hour * 6 + 6)
    rows, replicas = seen(schema.LOG_DIRS, own), seen(schema.REPLICAS, own)
    found = []
    for broker in (1, 2):
        usable = [r["usable_bytes"] for n in own for r in rows[n] if r["broker"] == broker]
        sizes = [sum(r["size_bytes"] for r in replicas[n] if r["broker"] == broker) for n in own]
        found.append(
            {
                "broker": broker, "log_dir": "/d", "start_ms": HOUR.start_ms + hour * HOUR_MS, "passes": 6,
                "complete": True, "replicas_bytes": sizes[-1], "peak_replicas_bytes": max(sizes),
                "total_bytes": 10**6, "usable_bytes": last(usable),
                "least_usable_bytes": min((each for each in usable if each is not None), default=None),
            }
        )  # fmt: skip
    return found


@pytest.mark.parametrize("hour", [0, 1, 2])
@pytest.mark.parametrize("batch_rows", [BATCH_ROWS, 7])
def test_an_hour_equals_a_naive_count(
    store: Store, hour: int, batch_rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = read_sorted

    def small(*args: Any, **settings: Any) -> Any:
        for batch in whole(*args, **settings):
            for start in range(0, batch.num_rows, batch_rows):
                yield batch.slice(start, batch_rows)

    monkeypatch.setattr(rollup_hours, "read_sorted", small)
    found = roll_up(store, hours(3)[hour])
    assert found.damaged == []
    for table, expected in (
        (GROUPS, naive_groups(hour)),
        (TOPICS, naive_topics(hour)),
        (LOG_DIRS, naive_log_dirs(hour)),
    ):
        rows = found.rows[table]
        assert [set(row) for row in rows] == [set(COLUMNS[table])] * len(expected)
        for row, wanted in zip(rows, expected, strict=True):
            assert {name: row[name] for name in wanted if name != "mean_lag"} == {
                name: value for name, value in wanted.items() if name != "mean_lag"
            }
            assert row.get("mean_lag") == (
                pytest.approx(wanted["mean_lag"]) if wanted.get("mean_lag") else wanted.get("mean_lag")
            )


# --- folding --------------------------------------------------------------------------------------------------------

group_rows = st.lists(
    st.fixed_dictionaries(
        {
            "group": st.sampled_from(["g", "h"]), "topic": st.just("t"), "start_ms": st.integers(0, 23),
            "passes": st.integers(1, 60), "complete": st.booleans(), "partitions": st.integers(1, 9),
            "lag": st.none() | st.integers(0, 99), "peak_lag": st.none() | st.integers(0, 99),
            "mean_lag": st.none() | st.floats(0, 99), "lost": st.none() | st.integers(0, 9),
            "consumed": st.none() | st.integers(0, 99), "produced": st.none() | st.integers(0, 99),
        }
    ),
    max_size=12,
    unique_by=lambda row: (row["group"], row["start_ms"]),
)  # fmt: skip


@given(group_rows, st.integers(0, 24))
def test_folding_in_two_steps_equals_folding_at_once(rows: list[Row], border: int) -> None:
    """Applies to every column except means of parts without values."""
    early, late = ([r for r in rows if (r["start_ms"] < border) is side] for side in (True, False))
    at_once = fold(GROUPS, rows, 0)
    twice = fold(GROUPS, [*fold(GROUPS, early, 0), *fold(GROUPS, late, border)], 0)
    assert [{k: v for k, v in row.items() if k != "mean_lag"} for row in twice] == [
        {k: v for k, v in row.items() if k != "mean_lag"} for row in at_once
    ]
    for row in at_once:
        assert row["passes"] == sum(each["passes"] for each in rows if each["group"] == row["group"])
        if row["mean_lag"] is not None:
            own = [r["mean_lag"] for r in rows if r["group"] == row["group"] and r["mean_lag"] is not None]
            assert min(own) - 1e-9 <= row["mean_lag"] <= max(own) + 1e-9


# --- files ----------------------------------------------------------------------------------------------------------


def test_missing_rollups_are_created_once(fresh: Store) -> None:
    store = fresh
    assert missing_hours(store) == hours(3)  # the fourth has not ended
    made = catch_up(store)
    assert (made.hours, made.days, made.errors) == (3, 0, [])
    assert missing_hours(store) == []
    before = {path: path.stat().st_mtime_ns for path in (store.root / "rollups").rglob("*.parquet")}
    assert len(before) == 9
    assert catch_up(store).hours == 0
    assert before == {path: path.stat().st_mtime_ns for path in before}
    for table in TABLES:
        rows, damaged = rollup_files.rows_of(store, table, 0, 10**13, days=False)
        assert damaged == []
        assert rows == [
            {name: row[name] for name in COLUMNS[table]}
            for hour in hours(3)
            for row in roll_up(store, hour).rows[table]
        ]
    assert create_store(store.root, "c").hours() == store.hours()  # it is a store still


def test_a_pass_in_the_future_ends_no_hour(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The pass is of a collector whose clock was ahead. The current hour continues and must not be rolled up yet."""
    store = a_store(tmp_path / "s", 3)
    put(store, 5 * HOUR_MS, a_pass(9))
    monkeypatch.setattr(catch_up_module, "_now_ms", lambda: HOUR.start_ms + 3 * EVERY_MS)
    assert missing_hours(store) == []
    assert newest_ms(store) == HOUR.start_ms + 5 * HOUR_MS
    assert latest_ms(store, HOUR.start_ms + 3 * EVERY_MS) == HOUR.start_ms + 2 * EVERY_MS
    assert latest_ms(store, HOUR.start_ms - 1) == newest_ms(store)
    monkeypatch.setattr(catch_up_module, "_now_ms", lambda: HOUR.start_ms + 6 * HOUR_MS)
    assert missing_hours(store) == [HOUR]


def test_tasks_write_the_same_files(store: Store) -> None:
    reader = TaskReader(partial(make_share, str(store.root)), [(hours(3)[0], hours(3)[2]), (hours(3)[1],)])
    rows = [row for part in reader.partitions() for batch in reader.read(part) for row in batch.to_pylist()]
    assert sorted(row["start_ms"] for row in rows) == [hour.start_ms for hour in hours(3)]
    assert all(row["error"] is None for row in rows)
    assert missing_hours(store) == []


def test_days_are_their_hours_folded(tmp_path: Path) -> None:
    store = create_store(tmp_path / "s", "c")
    day = rollup_files.day_of(HOUR.start_ms) + DAY_MS
    for number in range(10):  # hours without passes are just not there
        put(store, day - HOUR.start_ms + number * 3 * HOUR_MS, a_pass(number))
    made = catch_up(store)
    assert (made.hours, made.days) == (9, 1)
    for table in TABLES:
        by_hour, _ = rollup_files.rows_of(store, table, day, day + DAY_MS, days=False)
        by_day, damaged = rollup_files.rows_of(store, table, 0, 10**13, days=True)
        assert damaged == []
        assert by_day == fold(table, by_hour, day)
        assert by_day


def test_crashes_leave_no_partial_hours(fresh: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    store = fresh
    whole, calls = rollup_files.write, 0

    def dies(*args: Any) -> None:
        nonlocal calls
        calls += 1
        if calls == 3:
            raise KeyboardInterrupt
        whole(*args)

    monkeypatch.setattr(rollup_files, "write", dies)
    with pytest.raises(KeyboardInterrupt):
        catch_up(store)
    assert missing_hours(store) == hours(3)  # two of three tables of an hour are none
    monkeypatch.setattr(rollup_files, "write", whole)
    assert catch_up(store).hours == 3


def test_one_at_a_time(fresh: Store) -> None:
    store = fresh
    with lock.hold(rollup_files.make_folder(store)), pytest.raises(Busy):
        catch_up(store)


def test_damaged_rollups_and_snapshots_are_reported(fresh: Store) -> None:
    store = fresh
    bad = store.folder(schema.LOGS, HOUR) / f"pass-{HOUR.start_ms + EVERY_MS}.parquet"
    bad.write_bytes(b"PAR1 nothing PAR1")
    made = catch_up(store)
    assert len(made.errors) == 1
    assert str(bad) in made.errors[0]
    rows, _ = rollup_files.rows_of(store, TOPICS, 0, 10**13, days=False)
    assert {row["complete"] for row in rows if row["start_ms"] == HOUR.start_ms} == {False}
    assert {row["complete"] for row in rows if row["start_ms"] > HOUR.end_ms} == {True}
    path = rollup_files.hour_path(store, GROUPS, HOUR)
    data = path.read_bytes()
    for broken in (b"", data[:-9], data[:20] + b"\xff" + data[21:], data.replace(b"peak", b"peek")):
        path.write_bytes(broken)
        assert isinstance(rollup_files.read(path, GROUPS), Damaged)
    assert isinstance(rollup_files.read(rollup_files.hour_path(store, TOPICS, HOUR), GROUPS), Damaged)
    path.unlink()
    path.symlink_to(rollup_files.hour_path(store, GROUPS, hours(2)[1]))
    assert isinstance(rollup_files.read(path, GROUPS), Damaged)
    assert [str(each.path) for each in make_day(store, rollup_files.day_of(HOUR.start_ms))] == [str(path)]


def test_hours_with_unreadable_passes(fresh: Store) -> None:
    store = fresh
    for path in store.folder(schema.PASSES, HOUR).iterdir():
        path.write_bytes(b"x")
    assert make_hour(store, HOUR)
    assert rollup_files.rows_of(store, GROUPS, 0, 10**13, days=False)[0] == []


# --- courses, and the command ---------------------------------------------------------------------------------------


def test_courses_have_a_value_for_each_period() -> None:
    base = dict.fromkeys(COLUMNS[GROUPS])
    rows = [
        {
            **base,
            "group": "g",
            "topic": "t",
            "start_ms": start,
            "passes": 1,
            "consumed": 5,
            "peak_lag": peak,
            "lag": lag,
        }
        for start, peak, lag in ((0, 3, 2), (20, 9, 4), (30, None, None), (40, 800, 550))
    ]
    rows.append({**base, "group": "h", "topic": "t", "start_ms": 10, "passes": 1, "peak_lag": 4})
    first, second = courses(GROUPS, rows, 10)
    assert (first.key, first.values, first.periods) == (("g", "t"), (3, None, 9, None, 800), 4)
    # The first and the last are as it was when the periods ended.
    assert (first.first, first.last, first.peak, first.change, first.consumed) == (2, 550, 800, 548, 20)
    assert (second.key, second.values, second.produced) == (("h", "t"), (None, 4, None, None, None), None)
    assert courses(GROUPS, [], 10) == []


def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *argv: str) -> tuple[int, str, str]:
    monkeypatch.setattr("sys.argv", ["kctl", "spark", "trends", *argv])
    code = main()
    told = capsys.readouterr()
    return int(code or 0), told.out, told.err


def test_the_command(fresh: Store, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    store = fresh
    code, out, err = run(capsys, monkeypatch, "--store", str(store.root), "--group", "g*", "-o", "json")
    assert code == 0, err
    rows = json.loads(out)
    assert {row["group"] for row in rows} == {"g"}
    assert len({row["start"] for row in rows}) == 3
    assert list(rows[0]) == [
        "start", "group", "topic", "passes", "complete", "partitions", "lag", "peak_lag", "mean_lag", "lost",
        "consumed", "produced",
    ]  # fmt: skip
    assert "3 hours were rolled up" in err
    for of in ("groups", "topics", "log-dirs"):
        code, out, err = run(capsys, monkeypatch, "--store", str(store.root), "--of", of, "--top", "2")
        assert (code, out.count("\n")) == (0, 3), err
    folder = store.root.parent / "parquet"
    code, _, err = run(capsys, monkeypatch, "--store", str(store.root), "--group", "g*", "--parquet", str(folder))
    assert code == 0, err
    written = pq.read_table(folder).to_pylist()
    assert [(row["group"], row["peak_lag"]) for row in written] == [(row["group"], row["peak_lag"]) for row in rows]
    assert run(capsys, monkeypatch, "--store", str(store.root), "--parquet", str(folder))[0] == 4
    code, out, err = run(capsys, monkeypatch, "--store", str(store.root), "--every", "day")
    assert (code, out) == (0, "")
    assert "no full hour of snapshots yet" in err


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (("--of", "topics", "--group", "g"), "--group does not apply"),
        (("--of", "log-dirs", "--topic", "g"), "--topic does not apply"),
        (("--last", "0s"), "--last must be greater than 0"),
        (("--conf", "a=b"), "needs --master"),
        (("--overwrite",), "--overwrite needs --parquet DIR"),
    ],
)
def test_invalid_options(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    argv: tuple[str, ...],
    message: str,
) -> None:
    store = create_store(tmp_path / "s", "c")
    code, _, err = run(capsys, monkeypatch, "--store", str(store.root), *argv)
    assert code == 2
    assert message in err
