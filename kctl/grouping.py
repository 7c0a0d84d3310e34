"""Rows put together by what they have in common."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

_Row = TypeVar("_Row")
_Key = TypeVar("_Key", bound=Hashable)


def grouped(rows: Iterable[_Row], key: Callable[[_Row], _Key]) -> dict[_Key, list[_Row]]:
    """Rows by their keys: keys in the order of their first rows, rows in theirs."""
    found: dict[_Key, list[_Row]] = {}
    for row in rows:
        found.setdefault(key(row), []).append(row)
    return found
