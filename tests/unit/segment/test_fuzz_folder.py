"""Damaged partition folders: what verify, find, stats and diff make of them, compared with what is known of the log.

As in test_segment_fuzz.py, no exception but kctl's own, and no hang.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from crc32c import crc32c
from hypothesis import example, given
from hypothesis import strategies as st

import segment_files as build
from kctl.commands.terminal.output import jsonable
from kctl.errors import UsageError
from kctl.segment.diff.report import DiffVerdict, diff
from kctl.segment.dump.dump import DumpOptions, DumpRun
from kctl.segment.dump.rows import RecordRow
from kctl.segment.find.find import SearchResult, find_offset, find_timestamp
from kctl.segment.find.find_key import find_key
from kctl.segment.log.log_selection import select_logs
from kctl.segment.log.partition_log import partition_log
from kctl.segment.stats.collect_statistics import StatisticsOptions, collect_statistics
from kctl.segment.verify.context import VerifyOptions
from kctl.segment.verify.verify import VerifyResult, verify
from segment_fuzzing import LIMIT, NAME, Scratch, built_log, damaged, in_memory, in_time, inputs, starts
from segment_mutations import Mutation, apply, mutations

LOG = built_log("none")
_AT = starts(LOG)
# What no CRC covers: base offset, leader epoch.
_UNCOVERED = {start + at for start in _AT for at in (*range(8), *range(12, 16))}
COMPANIONS = {
    f"{NAME}.index": build.offset_index([(9, _AT[1]), (12, _AT[3]), (15, _AT[4])]),
    f"{NAME}.timeindex": build.time_index([(build.BASE_TIMESTAMP + 3, 9)]),
    f"{NAME}.txnindex": build.transaction_index([(7, 10, 12, 13)]),
    "00000000000000000016.snapshot": build.producer_snapshot([(7, 0, 1, 11, 1, build.BASE_TIMESTAMP + 1, 0, -1)]),
    "leader-epoch-checkpoint": build.leader_epochs([(0, 0), (3, 13)]),
    "partition.metadata": b"version: 0\ntopic_id: 4xqNeCGTRHqDIUEbnWZeRQ",
}
FILES = {f"{NAME}.log": LOG, **COMPANIONS}
DEEP = VerifyOptions(deep=True, max_message_bytes=LIMIT)


class Partition(Scratch):
    """A partition's folder in which one file at a time is damaged."""

    def __init__(self, path: Path) -> None:
        path.mkdir()
        super().__init__(path)
        self.path = path
        self.heal()

    def heal(self) -> None:
        """Every file as it was."""
        for name, data in FILES.items():
            self(name, data)


@pytest.fixture(scope="module")
def partition(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Partition]:
    made = Partition(tmp_path_factory.mktemp("fuzz") / "orders-0")
    with in_memory():
        yield made
    made.close()


@pytest.fixture
def healthy(partition: Partition) -> Partition:
    partition.heal()
    return partition


def _json(value: object) -> None:
    assert json.loads(json.dumps(jsonable(value))) == jsonable(value)


def _records(path: Path) -> list[RecordRow]:
    rows = DumpRun([path], DumpOptions(records=True, max_message_bytes=LIMIT)).rows()
    return [row for row in rows if isinstance(row, RecordRow)]


def test_nothing_is_wrong_with_what_is_damaged_here(healthy: Partition) -> None:
    found = verify([healthy.path], DEEP)
    assert found.healthy, found.findings
    assert not found.findings


# --- verify ---------------------------------------------------------------------------------------------------------


def _must_be_found(changed: bytes) -> bool:
    """Whether a damaged log cannot be a sound one: something differs that a CRC covers, or that is no whole batch."""
    if len(changed) != len(LOG):
        return changed not in {LOG[:at] for at in _AT}
    return any(one != two and at not in _UNCOVERED for at, (one, two) in enumerate(zip(changed, LOG, strict=True)))


@pytest.mark.parametrize("deep", [False, True])
def test_verify_damaged_logs(healthy: Partition, deep: bool) -> None:
    @inputs(700)
    @given(mutations(), st.booleans())
    def check(changes: list[Mutation], fix: bool) -> None:
        changed = damaged(LOG, changes, fix=fix)
        healthy(f"{NAME}.log", changed)
        with in_time():
            found = verify([healthy.path], VerifyOptions(deep=deep, max_message_bytes=LIMIT))
        _json(found)
        assert not found.healthy or fix or not _must_be_found(changed)

    check()


def _right_crc(name: str, data: bytes) -> bytes:
    if not name.endswith(".snapshot") or len(data) < 6:
        return data
    return data[:2] + struct.pack(">I", crc32c(data[6:])) + data[6:]


@pytest.mark.parametrize("name", COMPANIONS)
def test_verify_damaged_companions(healthy: Partition, name: str) -> None:
    original = COMPANIONS[name]

    @inputs(300)
    @given(mutations(), st.booleans())
    def check(changes: list[Mutation], fix: bool) -> None:
        changed = apply(original, changes, ())
        healthy(name, _right_crc(name, changed) if fix else changed)
        with in_time():
            found = verify([healthy.path], DEEP)
        _json(found)
        assert _findings_outside(found, name) == []

    check()
    healthy.heal()


def _findings_outside(found: VerifyResult, name: str) -> list[str]:
    """Errors that are told of the log, which has none."""
    return [
        f"{each.file} {each.message}"
        for each in found.findings
        if each.file.endswith(".log") and name not in each.message
    ]


# --- find, stats, diff ----------------------------------------------------------------------------------------------


def _offset(found: SearchResult) -> int | None:
    return None if found.place is None else found.place.record.offset


def test_find_through_damaged_indexes(healthy: Partition) -> None:
    """Whatever an index says, a search for an offset ends at the same record."""

    @inputs(500)
    @given(mutations(), st.sampled_from([".index", ".timeindex"]), st.integers(0, 17))
    def check(changes: list[Mutation], suffix: str, wanted: int) -> None:
        healthy(NAME + suffix, apply(COMPANIONS[NAME + suffix], changes, ()))
        with in_time():
            log = partition_log(healthy.path)
            found = find_offset(log, wanted, limit=LIMIT)
            younger = find_timestamp(log, build.BASE_TIMESTAMP + wanted % 4, limit=LIMIT)
        _json([found, younger])
        assert _offset(found) == min((row.offset for row in records if row.offset >= wanted), default=None)
        if suffix == ".index":
            assert _offset(younger) == {0: 0, 1: 1, 2: 3, 3: 3}[wanted % 4]

    records = _records(healthy.path / f"{NAME}.log")
    check()
    healthy.heal()


def test_find_in_damaged_logs(healthy: Partition) -> None:
    @inputs(500)
    @given(mutations(), st.booleans(), st.integers(0, 17))
    def check(changes: list[Mutation], fix: bool, wanted: int) -> None:
        healthy(f"{NAME}.log", damaged(LOG, changes, fix=fix))
        with in_time():
            log = partition_log(healthy.path)
            found = find_offset(log, wanted, indexes=False, limit=LIMIT)
            by_key = find_key(log, b"k", limit=LIMIT)
            by_time = find_timestamp(log, build.BASE_TIMESTAMP + wanted, limit=LIMIT)
        _json([found, by_key, by_time])
        assert found.place is None or found.place.record.offset >= wanted
        assert by_key.place is None or by_key.place.record.key == "k"

    check()


def test_stats_of_damaged_logs(healthy: Partition) -> None:
    options = StatisticsOptions(now=build.BASE_TIMESTAMP, max_message_bytes=LIMIT, retention_ms=1, retention_bytes=1)

    @inputs(700)
    @given(mutations(), st.booleans())
    def check(changes: list[Mutation], fix: bool) -> None:
        changed = damaged(LOG, changes, fix=fix)
        log = healthy(f"{NAME}.log", changed)
        with in_time():
            found = collect_statistics(select_logs([healthy.path]), options)
            sound = [row for row in _records(log) if row.valid and row.control is None]
        _json(found)
        assert found.statistics.totals.size_bytes == len(changed)
        if not fix:
            assert found.statistics.totals.records <= len(sound) + 1

    check()


def _content(row: RecordRow) -> tuple[object, ...]:
    return row.offset, row.key, row.value, row.timestamp, row.headers


def test_diff_with_damaged_logs(healthy: Partition, tmp_path: Path) -> None:
    other = Partition(tmp_path / "orders-0")
    mine = [_content(row) for row in _records(healthy.path / f"{NAME}.log")]

    @inputs(700)
    @example([Mutation("number", 20635, 1, 4)], True)  # a record with an offset below its batch
    @given(mutations(), st.booleans())
    def check(changes: list[Mutation], fix: bool) -> None:
        log = other(f"{NAME}.log", damaged(LOG, changes, fix=fix))
        with in_time():
            found = diff(partition_log(healthy.path), partition_log(other.path), limit=LIMIT)
            theirs = [
                (row.offset, row.key, row.value, row.timestamp, row.headers) for row in _records(log) if row.valid
            ]
        _json(found)
        if theirs != mine[: len(theirs)]:
            assert not found.verdict.healthy
        elif theirs != mine:
            assert found.verdict is not DiffVerdict.SAME

    check()
    other.close()


@pytest.mark.parametrize("name", ["a.log", "1.log", f"{NAME}.txt", NAME, "9" * 20 + ".log"])
@pytest.mark.parametrize("command", [lambda path: verify([path]), partition_log], ids=["verify", "find"])
def test_names_that_are_none(tmp_path: Path, name: str, command: Callable[[Path], object]) -> None:
    """What is not named as a segment is refused, not guessed at."""
    path = tmp_path / name
    path.write_bytes(LOG)
    with pytest.raises(UsageError, match=name):
        command(path)
