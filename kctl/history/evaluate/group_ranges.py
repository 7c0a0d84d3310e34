"""Distribute the groups of a snapshot store over tasks: planned from one file, before Spark has started.

Files of the store are sorted by group first, and record which groups each row group covers. So a task with a range of
groups reads little else, and all rows of a partition are in one task without a shuffle. The newest valid file shows the
distribution of the rows: by its row groups if it has many, else by the names of its groups.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple

from kctl.history.snapshots import files, schema
from kctl.history.snapshots.layout import DataFile, Hour
from kctl.history.snapshots.read import chosen_files, read_file
from kctl.history.snapshots.rows import BadRows, Part, row_groups
from kctl.history.snapshots.store import Damaged, Store

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa

_ROW_GROUPS_PER_TASK = 4  # with fewer, their borders are too coarse
_MAX_FILES = 5  # damaged or empty files to skip when looking for the newest usable one


class GroupRange(NamedTuple):
    """Groups g with lower ≤ g < upper; None: no bound."""

    lower: str | None = None
    upper: str | None = None


EVERY_GROUP = GroupRange()


def group_ranges(
    store: Store, from_ms: int, to_ms: int, tasks: int, *, damaged: Callable[[Damaged], None]
) -> list[GroupRange]:
    """Return at most `tasks` ranges with about the same number of rows in `commits`, which together contain all groups.

    A group is never split. damaged: see kctl.history.snapshots.read.read_table.
    """
    if tasks <= 1:
        return [EVERY_GROUP]
    for hour, file in reversed(list(chosen_files(store, from_ms, to_ms))[-_MAX_FILES:]):
        weights = _weights(store, hour, file, tasks, damaged)
        if weights:
            return split(weights, tasks)
    return [EVERY_GROUP]


def split(weights: Iterable[tuple[str, int]], parts: int) -> list[GroupRange]:
    """Return ranges of about the same weight, split between groups.

    weights: pairs of group and weight, in any order.
    """
    by_name: dict[str, int] = {}
    for name, weight in weights:
        by_name[name] = by_name.get(name, 0) + weight
    total, so_far = sum(by_name.values()), 0
    borders: list[str] = []
    for name in sorted(by_name):
        # Whole numbers: so_far / total ≥ (borders + 1) / parts
        if len(borders) < parts - 1 and so_far > 0 and so_far * parts >= total * (len(borders) + 1):
            borders.append(name)
        so_far += by_name[name]
    return [GroupRange(*each) for each in zip([None, *borders], [*borders, None], strict=True)]


def _weights(
    store: Store, hour: Hour, file: DataFile, tasks: int, damaged: Callable[[Damaged], None]
) -> list[tuple[str, int]]:
    """Return groups, each with the number of rows from there to the next group in the list."""
    result = _row_groups(store.folder(schema.COMMITS, hour) / file.name)
    if len(result) >= _ROW_GROUPS_PER_TASK * tasks:
        return result
    counts: dict[str, int] = {}
    for batch in read_file(store, schema.COMMITS, hour, file, Part(), damaged=damaged, columns=["group"]):
        _count(batch.column("group"), counts)
    return list(counts.items())


def _row_groups(path: Path) -> list[tuple[str, int]]:
    """Return the first group and the rows of each row group; empty if unreadable, which a later read reports."""
    try:
        with files.opened(path) as stream:
            result = row_groups(stream, schema.COMMITS)
    except (BadRows, OSError):
        return []
    return [(each.lowest, each.rows) for each in result if isinstance(each.lowest, str)]


def _count(groups: pa.Array, counts: dict[str, int]) -> None:
    import numpy as np
    import pyarrow as pa

    from kctl.history.evaluate.column_arrays import differs, numeric

    begins = np.flatnonzero(differs(groups))
    sizes = np.diff(np.append(begins, len(groups)))
    for name, size in zip(groups.take(numeric(begins, pa.int64())).to_pylist(), sizes.tolist(), strict=True):
        counts[name] = counts.get(name, 0) + size
