"""Rows put together by what they have in common."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TypeVar

_Row = TypeVar("_Row")
_Key = TypeVar("_Key", bound=Hashable)


def grouped(rows: Iterable[_Row], key: Callable[[_Row], _Key]) -> dict[_Key, list[_Row]]:
    """Rows by their keys: keys in the order of their first rows, rows in theirs."""
    found: dict[_Key, list[_Row]] = {}
    for row in rows:
        found.setdefault(key(row), []).append(row)
    return found


def chunks(rows: Sequence[_Row], cost: Callable[[_Row], int], *, limit: int, most: int) -> list[Sequence[_Row]]:
    """Rows in their order, as many together as cost no more than `limit` and are no more than `most`; at least one."""
    found: list[Sequence[_Row]] = []
    start = total = 0
    for at, row in enumerate(rows):
        each = cost(row)
        if at > start and (total + each > limit or at - start >= most):
            found.append(rows[start:at])
            start, total = at, 0
        total += each
    return [*found, rows[start:]] if rows else []
