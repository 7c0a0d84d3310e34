"""Groups of a report read in parts: whatever the ranges, and on their way through Spark's rows, they are the same."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from kctl.history.evaluate.group_ranges import EVERY_GROUP, GroupRange
from kctl.history.lag.plan import LagPlan, LagRequest, plan_span
from kctl.history.report.build import read_here, report_of
from kctl.history.report.group_series import (
    GroupsPart,
    ListedGroup,
    RowLimits,
    group_reports,
    merged,
    read_part,
    times_of,
)
from kctl.history.report.model import GroupSeries, Report, State
from kctl.history.snapshots.layout import HOUR_MS
from kctl.lag.selection import EVERY
from kctl.spark.report_source import SCHEMA, packed, read, read_share, unpacked
from kctl.spark.task_source import TaskReader
from report_samples import FROM, group_report
from report_stores import START_MS, at_ms, small_cluster
from snapshot_stores import compact_all

PASSES = [at_ms(minute) for minute in range(60)]
LIMITS = RowLimits()


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> LagPlan:
    store = small_cluster(tmp_path_factory.mktemp("source") / "store")
    compact_all(store)
    return plan_span(store.root, START_MS, START_MS + HOUR_MS, LagRequest(EVERY, EVERY))


@pytest.fixture(scope="module")
def whole(plan: LagPlan) -> GroupsPart:
    return read_part(plan.query, EVERY_GROUP, times_of(PASSES), LIMITS, [])


RANGES = [
    [EVERY_GROUP],
    [GroupRange(None, "ghost"), GroupRange("ghost", "left"), GroupRange("left", None)],
    [GroupRange(None, "a"), GroupRange("a", "keeps-up"), GroupRange("keeps-up", "z"), GroupRange("z", None)],
]


@pytest.mark.parametrize("ranges", RANGES, ids=len)
@pytest.mark.parametrize("limits", [LIMITS, RowLimits(groups=2, partitions=3)])
def test_merged_parts_equal_the_whole(plan: LagPlan, ranges: list[GroupRange], limits: RowLimits) -> None:
    times = times_of(PASSES)
    expected = merged([read_part(plan.query, EVERY_GROUP, times, limits, [])], limits)
    found = merged((read_part(plan.query, each, times, limits, []) for each in ranges), limits)
    assert found.listed == expected.listed
    assert found.worst == expected.worst
    assert found.series == expected.series
    assert len(found.listed) == 5
    assert len(found.series) == min(limits.groups, 5)


def test_deleted_groups_come_last() -> None:
    reports = [group_report("gone", 9, State.ERR, gone=True), group_report("ok", 1), group_report("bad", 5, State.ERR)]
    part = GroupsPart(
        listed=[ListedGroup(each.now, each.gone) for each in reports],
        series={each.now.group: GroupSeries(each.now.group, [1], [2], []) for each in reports},
    )
    assert [each.now.group for each in group_reports(part, LIMITS)] == ["bad", "ok", "gone"]
    few = RowLimits(groups=2)
    assert [each.now.group for each in group_reports(merged([part], few), few)] == ["bad", "ok"]
    assert sorted(merged([part], few).series) == ["bad", "ok"]


def test_a_part_converts_to_rows_and_back(whole: GroupsPart) -> None:
    lacking: list[str] = []
    assert unpacked(packed(whole), lacking) == whole
    assert lacking == []


def test_a_task_returns_arrow_batches_of_the_schema(plan: LagPlan, whole: GroupsPart) -> None:
    reader = TaskReader(partial(read_share, plan.query, PASSES, LIMITS), RANGES[1])
    rows: list[tuple[str, str]] = []
    for partition in reader.partitions():
        for batch in reader.read(partition):
            assert batch.schema.names == SCHEMA.names
            rows += zip(*(array.to_pylist() for array in batch.columns), strict=True)
    found = unpacked(rows, [])
    assert merged([found], LIMITS) == merged([whole], LIMITS)


def test_the_report_is_the_same_by_rows(plan: LagPlan) -> None:
    def by_rows(plan: LagPlan, times: Any, limits: RowLimits, lacking: list[str]) -> Any:
        passes = times.passes.tolist()
        rows = [row for each in RANGES[2] for row in read(plan.query, each, passes, limits)]
        yield unpacked(rows, lacking)

    assert _report(plan, by_rows) == _report(plan, read_here)


def _report(plan: LagPlan, how: Any) -> Report:
    return report_of(plan, made_at=FROM, read_groups=how)


def test_read_failures_are_reported_with_the_rows(tmp_path: Path) -> None:
    store = small_cluster(tmp_path / "store", passes=12)
    broken = next((store.root / "owners").glob(f"date=*/hour=*/pass-{at_ms(5)}.parquet"))
    broken.write_bytes(b"no Parquet")
    plan = plan_span(store.root, START_MS, START_MS + HOUR_MS, LagRequest(EVERY, EVERY))
    lacking: list[str] = []
    part = unpacked(read(plan.query, EVERY_GROUP, PASSES[:12], LIMITS), lacking)
    assert len(part.listed) == 5
    assert len(lacking) == 1
    assert broken.name in lacking[0]


def test_a_deleted_store_is_an_error_row(plan: LagPlan, tmp_path: Path) -> None:
    from dataclasses import replace

    lost = replace(plan.query, store=str(tmp_path / "nowhere"))
    assert [kind for kind, _ in read(lost, EVERY_GROUP, PASSES, LIMITS)] == ["error"]
