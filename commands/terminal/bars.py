"""Bars of ASCII characters, for pipes and any encoding."""

from __future__ import annotations

WIDTH = 28


def bar(amount: float, largest: float, width: int = WIDTH) -> str:
    """Return a bar for the amount as a share of the largest; at least one character if it is positive."""
    return "#" * _length(amount, largest, width)


def change_bar(before: float, after: float, largest: float, width: int = WIDTH) -> str:
    """Return a bar with "#" for the unchanged part, "+" for an increase and "-" for a decrease.

    A change that is too small for the width is not shown.
    """
    old, new = _length(before, largest, width), _length(after, largest, width)
    return "#" * min(old, new) + "+" * (new - old) + "-" * (old - new)


def _length(amount: float, largest: float, width: int) -> int:
    if amount <= 0 or largest <= 0:
        return 0
    return max(round(width * amount / largest), 1)
