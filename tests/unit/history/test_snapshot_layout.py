"""What names in a store say, and which of its files count."""

from __future__ import annotations

import pytest

from kctl.history.snapshots import schema
from kctl.history.snapshots.layout import (
    HOUR_MS,
    DataFile,
    Hour,
    hour_of,
    hours,
    parse_hour,
    parse_name,
    valid_files,
)

START = 1_790_000_000_000 // HOUR_MS * HOUR_MS
H = Hour(START)


def name(kind: str, offset: int) -> str:
    return f"{kind}-{START + offset}.parquet"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("pass-1790000000000.parquet", DataFile(1_790_000_000_000, compacted=False)),
        ("hour-1790000000000.parquet", DataFile(1_790_000_000_000, compacted=True)),
        (".pass-1790000000000.parquet.tmp", None),
        ("pass-179000000000.parquet", None),
        ("pass-17900000000000.parquet", None),
        ("pass-1790000000000.parquet.gz", None),
        ("pass-1790000000000.parquet\n", None),
        ("pass-١٧٩٠٠٠٠٠٠٠٠٠٠.parquet", None),
        ("../pass-1790000000000.parquet", None),
        ("", None),
    ],
)
def test_names(text: str, expected: DataFile | None) -> None:
    assert parse_name(text) == expected
    assert expected is None or expected.name == text


@pytest.mark.parametrize(
    ("date", "hour", "expected"),
    [
        ("date=1970-01-02", "hour=03", Hour(27 * HOUR_MS)),
        ("date=2026-02-29", "hour=03", None),
        ("date=2026-02-28", "hour=24", None),
        ("date=2026-2-28", "hour=3", None),
        (".expired-date=2026-02-28", "hour=03", None),
        ("date=2026-02-28", ".expired-hour=03", None),
    ],
)
def test_hours_of_folders(date: str, hour: str, expected: Hour | None) -> None:
    assert parse_hour(date, hour) == expected


def test_an_hours_path_says_the_hour() -> None:
    assert Hour(27 * HOUR_MS).path == "date=1970-01-02/hour=03"
    assert parse_hour(*H.path.split("/")) == H
    assert hour_of(START) == hour_of(START + HOUR_MS - 1) == H != hour_of(START + HOUR_MS)


@pytest.mark.parametrize(
    ("there", "count"),
    [
        ([], []),
        ([("pass", 2), ("pass", 1)], [("pass", 1), ("pass", 2)]),
        ([("pass", 1), ("hour", 1)], [("hour", 1)]),
        ([("pass", 1), ("pass", 2), ("pass", 3), ("hour", 2)], [("hour", 2), ("pass", 3)]),
        ([("hour", 2), ("hour", 3), ("pass", 3), ("pass", 4)], [("hour", 3), ("pass", 4)]),
        ([("hour", 2), ("pass", HOUR_MS)], [("hour", 2)]),  # of the next hour: it does not belong there
        ([("hour", -1), ("pass", 1)], [("pass", 1)]),
    ],
)
def test_what_counts(there: list[tuple[str, int]], count: list[tuple[str, int]]) -> None:
    found = valid_files(H, ["x", ".y.tmp", *(name(*each) for each in there)])
    assert [file.name for file in found.files] == [name(*each) for each in count]
    assert found.through_ms == next((START + at for kind, at in count if kind == "hour"), None)


def test_hours_of_a_span() -> None:
    assert list(hours(START, START)) == []
    assert list(hours(START + 5, START + 6)) == [H]
    assert list(hours(START, START + HOUR_MS)) == [H]
    assert list(hours(START - 1, START + 1)) == [Hour(START - HOUR_MS), H]


def test_each_table_has_its_time_and_its_sort_key() -> None:
    for table in schema.TABLES:
        columns = {column: null for column, _, null in schema.COLUMNS[table]}
        assert columns["at_ms"] is False
        assert not any(columns[key] for key in schema.SORT_KEYS[table])
        assert schema.SORT_KEYS[table][-1] == "at_ms"
        assert set(schema.arrow_schema(table).names) == set(columns)
        assert not set(schema.delta_columns(table)) & set(schema.dictionary_columns(table))
