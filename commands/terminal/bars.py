"""Bars of plain characters: they work in a pipe, in any encoding and at any width."""

from __future__ import annotations

WIDTH = 28


def bar(amount: float, largest: float, width: int = WIDTH) -> str:
    """As long as the amount's share of the largest one; what is there at all has one character."""
    return "#" * _length(amount, largest, width)


def change_bar(before: float, after: float, largest: float, width: int = WIDTH) -> str:
    """What stays as «#», what comes as «+», what goes as «-»; a change too small for the width shows none."""
    old, new = _length(before, largest, width), _length(after, largest, width)
    return "#" * min(old, new) + "+" * (new - old) + "-" * (old - new)


def _length(amount: float, largest: float, width: int) -> int:
    if amount <= 0 or largest <= 0:
        return 0
    return max(round(width * amount / largest), 1)
