"""Bars of plain characters: they work in a pipe, in any encoding and at any width."""

from __future__ import annotations

WIDTH = 28


def bar(amount: float, largest: float, width: int = WIDTH) -> str:
    """As long as the amount's share of the largest one; what is there at all has one character."""
    if amount <= 0 or largest <= 0:
        return ""
    return "#" * max(round(width * amount / largest), 1)
