"""Work dealt to tasks, so that each has about as much to do."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable
from typing import TypeVar

T = TypeVar("T")


def split_by_weight(items: Iterable[T], weight: Callable[[T], int], tasks: int) -> list[list[T]]:
    """Items dealt to at most `tasks` tasks: the heaviest first, each to the task with the least so far.

    No task is empty, and none has more than 4/3 of the best (Graham's rule)."""
    weighed = sorted(((weight(item), item) for item in items), key=lambda each: each[0], reverse=True)
    hands: list[tuple[int, int, list[T]]] = [(0, number, []) for number in range(min(max(tasks, 1), len(weighed)))]
    for size, item in weighed:
        so_far, number, held = heapq.heappop(hands)
        held.append(item)
        heapq.heappush(hands, (so_far + max(size, 1), number, held))
    return [held for _, _, held in sorted(hands, key=lambda hand: hand[1])]
