"""Work split into tasks of about equal weight."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable
from typing import TypeVar

T = TypeVar("T")


def split_by_weight(items: Iterable[T], weight: Callable[[T], int], tasks: int) -> list[list[T]]:
    """Split items into at most `tasks` shares: the heaviest first, each to the lightest share so far.

    No share is empty. The heaviest share weighs at most 4/3 of the optimum (Graham's LPT bound)."""
    weighted = sorted(((weight(item), item) for item in items), key=lambda each: each[0], reverse=True)
    heap: list[tuple[int, int, list[T]]] = [(0, number, []) for number in range(min(max(tasks, 1), len(weighted)))]
    for size, item in weighted:
        total, number, share = heapq.heappop(heap)
        share.append(item)
        heapq.heappush(heap, (total + max(size, 1), number, share))
    return [share for _, _, share in sorted(heap, key=lambda entry: entry[1])]
