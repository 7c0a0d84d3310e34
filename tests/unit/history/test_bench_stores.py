"""What the benchmarks of Spark run on: a store that kctl reads, with groups of every kind, always the same."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

import plot
from kctl.history.lag.status import Status
from kctl.history.snapshots import schema
from kctl.history.snapshots.read import read_table
from snapshot_inputs import Shape, make_store
from snapshot_stores import no_damage
from window_engines import kctl_python

SHAPE = Shape(groups=20, partitions=14, hours=2, loose_minutes=2)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_store(tmp_path_factory.mktemp("bench") / "store", SHAPE).root


def test_every_pass_has_each_partition_of_each_group(store: Path) -> None:
    from kctl.history.snapshots.store import open_store

    seen: dict[int, int] = {}
    for batch in read_table(open_store(store), schema.COMMITS, 0, 10**13, damaged=no_damage, columns=["at_ms"]):
        for at in batch.column("at_ms").to_pylist():
            seen[at] = seen.get(at, 0) + 1
    assert len(seen) == 122
    assert set(seen.values()) == {20 * 14}
    assert sum(seen.values()) == SHAPE.rows


def test_groups_of_every_kind_occur_and_figures_are_the_same_each_time(store: Path, tmp_path: Path) -> None:
    found = kctl_python(store)
    assert found.keys() == {Status.OK, Status.WARN, Status.STOP, Status.REWIND}
    assert sum(rows for rows, _ in found.values()) == SHAPE.rows
    assert found == kctl_python(make_store(tmp_path / "again", SHAPE).root)


def test_the_plot_has_a_line_for_each_number_of_tasks() -> None:
    figures = [
        (tasks, {"rows": rows, "wall_ms": 4_000 + rows / tasks / 100})
        for rows in (10_000_000, 100_000)
        for tasks in (2, 1)
    ]
    found = plot.points(figures)
    assert found == {1: [(100_000, 5.0), (10_000_000, 104.0)], 2: [(100_000, 4.5), (10_000_000, 54.0)]}
    picture = ET.fromstring(plot.draw(found))
    lines = [each.get("points", "").split() for each in picture.iter("{http://www.w3.org/2000/svg}polyline")]
    assert [len(points) for points in lines] == [2, 2]
    heights = [float(points[-1].split(",")[1]) for points in lines]
    assert heights[0] < heights[1]  # longer is higher up
