"""Group and chunk rows."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TypeVar

_Row = TypeVar("_Row")
_Key = TypeVar("_Key", bound=Hashable)


def grouped(rows: Iterable[_Row], key: Callable[[_Row], _Key]) -> dict[_Key, list[_Row]]:
    """Return rows by key. Keys are in order of their first row; rows keep their order."""
    groups: dict[_Key, list[_Row]] = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return groups


def chunks(rows: Sequence[_Row], cost: Callable[[_Row], int], *, limit: int, max_rows: int) -> list[Sequence[_Row]]:
    """Split rows, in order, into chunks of at most `limit` total cost and `max_rows` rows, but at least one row."""
    result: list[Sequence[_Row]] = []
    start = total = 0
    for at, row in enumerate(rows):
        each = cost(row)
        if at > start and (total + each > limit or at - start >= max_rows):
            result.append(rows[start:at])
            start, total = at, 0
        total += each
    return [*result, rows[start:]] if rows else []
