"""Commit times are found for the offsets that snapshots saw: the plain rule, the same over columns, and in windows."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from commit_time_oracle import CommitTime, commit_time_of
from kctl.errors import UsageError
from kctl.history.commits.commit_log import ARROW, Span, offsets_logs, read_logs
from kctl.history.commits.commit_times import CommitTimes, times_of_logs
from kctl.history.evaluate.group_ranges import GroupRange
from kctl.history.evaluate.reading_batches import ReadingsQuery, read
from kctl.history.evaluate.windows import judge_batches
from kctl.history.lag.status import Status
from kctl.history.lag.window import MINUTE_MS, Reading, WindowRules
from kctl.history.snapshots import schema
from kctl.history.snapshots.collect import Pass
from kctl.history.snapshots.commit import put_pass
from kctl.history.snapshots.store import create_store
from offsets_files import commit
from segment_files import BASE_TIMESTAMP as T
from segment_files import batch, write
from window_oracle import Observation, judge

Key = tuple[str, str, int]
COMMITS = [CommitTime(10, 5, 9), CommitTime(20, 7, 19), CommitTime(30, 7, 29), CommitTime(40, None, None)]


@pytest.mark.parametrize(
    ("at", "offset", "expected", "why"),
    [
        (10, 5, 9, "at its time"),
        (19, 5, 9, "until the next"),
        (25, 7, 19, "the one that held"),
        (39, 7, 29, "the last of those with the same offset"),
        (9, 5, 9, "a pass reads offsets some moments after its time"),
        (15, 7, 19, "the next one, within the slack"),
        (5, 7, None, "too far ahead"),
        (25, 5, None, "another one held"),
        (45, 7, None, "it was removed"),
        (25, None, None, "no commit was seen"),
        (25, -1, None, "no offset"),
    ],
)
def test_the_commit_that_a_snapshot_saw(at: int, offset: int | None, expected: int | None, why: str) -> None:
    assert commit_time_of(COMMITS, at, offset, slack_ms=5) == expected, why


def test_times_that_go_back_count_as_the_latest_before() -> None:
    """A broker whose clock is behind has taken over; its commit came later all the same."""
    commits = [CommitTime(100, 5, 100), CommitTime(60, 7, 60)]
    assert commit_time_of(commits, 99, 7, slack_ms=0) is None
    assert commit_time_of(commits, 100, 7, slack_ms=0) == 60
    assert commit_time_of(commits, 100, 5, slack_ms=0) is None


# --- columns --------------------------------------------------------------------------------------------------------

SCHEMA = pa.schema([
    pa.field("at_ms", pa.int64()),
    pa.field("group", pa.string()),
    pa.field("topic", pa.string()),
    pa.field("partition", pa.int32()),
    pa.field("committed_offset", pa.int64()),
    pa.field("log_start_offset", pa.int64()),
    pa.field("log_end_offset", pa.int64()),
])  # fmt: skip


def _history(rows: Sequence[tuple[Key, CommitTime]], size: int) -> list[pa.RecordBatch]:
    """As kctl.history.commits.commit_log gives them, in batches of a size, an error among them."""
    columns = {name: [None] * len(rows) for name in ARROW.names}
    columns |= {name: [key[i] for key, _ in rows] for i, name in enumerate(("group", "topic", "partition"))}  # type: ignore[misc]
    columns |= {name: [getattr(each, name) for _, each in rows] for name in CommitTime._fields}
    table = pa.table(columns, schema=ARROW)
    bad = pa.table({name: ["broken"] if name == "error" else [None] for name in ARROW.names}, schema=ARROW)
    return [*bad.to_batches(), *pa.concat_tables([table, bad]).combine_chunks().to_batches(max_chunksize=size)]


def _snapshots(rows: Sequence[tuple[int, str, str, int, int | None, int]]) -> pa.Table:
    """(at_ms, group, topic, partition, committed offset, log end offset); logs begin at 0."""
    names = [name for name in SCHEMA.names if name != "log_start_offset"]
    columns = dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
    return pa.table({**columns, "log_start_offset": [0] * len(rows)}, schema=SCHEMA)


def _compare(seed: int) -> None:
    rng = random.Random(seed)
    keys: list[Key] = [(group, topic, n) for group in ("a", "é") for topic in "tu" for n in range(2)]
    rows: list[tuple[Key, CommitTime]] = []
    at = 1000
    for _ in range(rng.randint(0, 40)):
        at += rng.choice([0, 1, 3, 10, -4])
        offset = rng.choice([None, *range(4)])
        made = None if offset is None or rng.random() < 0.1 else at - rng.randrange(3)
        rows.append((rng.choice(keys), CommitTime(at, offset, made)))
    slack, passes = rng.choice([0, 2, 8, 100]), sorted({rng.randint(950, at + 50) for _ in range(6)})
    seen = [(key, moment, rng.choice([None, -1, *range(4)])) for key in [*keys, ("none", "t", 0)] for moment in passes]
    by_key = {key: [each for other, each in rows if other == key] for key, *_ in seen}
    expected = [commit_time_of(by_key[key], moment, offset, slack_ms=slack) for key, moment, offset in seen]
    snapshots = _snapshots([(moment, *key, offset, 9) for key, moment, offset in seen])
    times = CommitTimes.of(_history(rows, rng.randint(1, 9)))
    thinned = times.thinned_to(passes, slack_ms=slack)
    assert len(thinned) <= len(times) == len(rows)
    for each in (times, thinned):
        found = [
            value
            for part in each.beside(snapshots.to_batches(max_chunksize=rng.randint(1, 9)), slack_ms=slack)
            for value in part.column("commit_ms").to_pylist()
        ]
        assert found == expected


HOLD = settings(phases=[Phase.generate], database=None)


@settings(HOLD, max_examples=100)
@given(st.integers(0, 2**32))
def test_columns_say_what_the_plain_rule_says(seed: int) -> None:
    _compare(seed)


@pytest.mark.long
@settings(HOLD, max_examples=1200)
@given(st.integers(0, 2**32))
def test_columns_say_what_the_plain_rule_says_at_length(seed: int) -> None:
    _compare(seed)


def test_thinning_keeps_what_passes_ask_for() -> None:
    rows = [(("g", "t", 0), CommitTime(at, at, at)) for at in range(1000)]
    kept = CommitTimes.of(_history(rows, 300)).thinned_to([100, 500], slack_ms=2)
    assert kept.at_ms.tolist() == [100, 101, 102, 500, 501, 502]


def _log(folder: Path, group: str, commits: Sequence[CommitTime]) -> Path:
    """A partition of __consumer_offsets with a group's commits on t-0."""
    parts = [batch(n, [commit(group, "t", 0, c.committed_offset, c.at_ms)]) for n, c in enumerate(commits)]
    write(folder, 0, parts)
    return folder


def _every(minutes: int) -> list[CommitTime]:
    times = [T + n * MINUTE_MS for n in range(0, 20, minutes)]
    return [CommitTime(at, (at - T) // MINUTE_MS, at) for at in times]


def test_readings_of_a_store_go_by_the_logs(tmp_path: Path) -> None:
    """Two groups in two partitions of the topic; one of them is damaged further on."""
    store = create_store(tmp_path / "store", "c")
    observed: dict[str, list[Observation]] = {"often": [], "seldom": []}
    commits = {"often": _every(1), "seldom": _every(4)}
    for number in range(20):
        at = T + number * MINUTE_MS + 3_000
        rows = []
        for group, made_so_far in commits.items():
            offset = max((c.committed_offset or 0 for c in made_so_far if c.at_ms <= at), default=None)
            rows.append((group, "t", 0, offset, 0, 50 + number, 3, "id", False))
            made = commit_time_of(made_so_far, at, offset)
            observed[group].append(Observation(at, offset, 0, 50 + number, "id", made))
        put_pass(store, at, at + 50, Pass(rows={schema.COMMITS: rows}))
    rules = WindowRules(observations=4, history=10)
    expected = {group: judge(rows, rules)[5:] for group, rows in observed.items()}
    _log(tmp_path / "__consumer_offsets-0", "often", commits["often"])
    with (_log(tmp_path / "__consumer_offsets-1", "seldom", commits["seldom"]) / f"{0:020d}.log").open("ab") as log:
        log.write(bytes(80))
    query = ReadingsQuery(
        str(store.root), T + 5 * MINUTE_MS, T + 60 * MINUTE_MS, rules, lookback_ms=60 * MINUTE_MS,
        offsets_logs=(str(tmp_path / "__consumer_offsets-0"), str(tmp_path / "__consumer_offsets-1")),
    )  # fmt: skip
    for ranges in ([GroupRange()], [GroupRange(upper="p"), GroupRange("p")]):
        found: dict[str, list[Reading]] = {}
        errors: list[str] = []
        for row in (row for each in ranges for part in read(query, each) for row in part.to_pylist()):
            if row["error"] is not None:
                errors.append(row["error"])
            else:
                found.setdefault(row["group"], []).append(Reading(**{f.name: row[f.name] for f in fields(Reading)}))
        assert found == expected
        assert len(errors) == len(ranges)
        assert all("__consumer_offsets-1" in each and "below the minimum" in each for each in errors)
    without = replace(query, offsets_logs=())
    assert [row for each in read(without) for row in each.to_pylist() if row["error"]] == []


def test_a_group_in_two_logs_is_refused(tmp_path: Path) -> None:
    logs = offsets_logs([_log(tmp_path / name, "g", _every(1)) for name in ("a copy", "another copy")])
    with pytest.raises(UsageError, match="in two logs"):
        times_of_logs(logs, [T + MINUTE_MS], Span(), report=pytest.fail)


def test_stop_is_exact_with_commit_times(tmp_path: Path) -> None:
    """A group that commits every two minutes looks stopped to a window of five, whose snapshots say when an offset was
    first seen; its log says that it commits."""
    made = [T + n * MINUTE_MS for n in range(0, 8, 2)]
    recs = [batch(n, [commit("g", "t", 0, 10, at)], base_timestamp=at) for n, at in enumerate(made)]
    write(tmp_path / "__consumer_offsets-0", 0, recs)
    at_ms = [T + n * MINUTE_MS for n in range(2, 8)]
    rows = _snapshots([(at, "g", "t", 0, 10, 20 + n) for n, at in enumerate(at_ms)])
    rules = WindowRules(observations=5, history=5)

    def statuses(batches: Sequence[pa.RecordBatch]) -> list[int]:
        return [status for each in judge_batches(batches, rules) for status in each.column("status").to_pylist()]

    times = CommitTimes.of(read_logs(offsets_logs([tmp_path / "__consumer_offsets-0"])))
    assert statuses(rows.to_batches())[-1] == Status.STOP
    assert statuses(list(times.beside(rows.to_batches())))[-1] == Status.STALL
