"""Series as one line of text: higher blocks for larger values, letters for states, a blank for unknown."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from itertools import pairwise

WIDTH = 24
_BLOCKS = "▁▂▃▄▅▆▇█"
_PLAIN = "_.-~=+*#"


def sparkline(series: Sequence[int | None], width: int = WIDTH, *, blocks: str | None = None) -> str:
    """Return `series` in at most `width` characters, each the maximum of its part, scaled to minimum and maximum."""
    levels = _writable() if blocks is None else blocks
    known = [value for value in series if value is not None]
    if not known:
        return ""
    low, high = min(known), max(known)
    return "".join(_level(part, low, high, levels) for part in _parts(series, width))


def state_line(spans: Sequence[tuple[int, str | None]], width: int = WIDTH) -> str:
    """Return states, each with its number of buckets, as letters: "." for OK, "W", "E" for worse, "?" for UNKNOWN.

    A character is the worst state of its part.
    """
    marks = " ?.WE"
    places = {None: 0, "UNKNOWN": 1, "OK": 2, "WARN": 3}
    levels = [places.get(state, 4) for count, state in spans for _ in range(count)]
    return "".join(marks[level or 0] for level in _parts(levels, width))


def _parts(series: Sequence[int | None], width: int) -> list[int | None]:
    count = min(width, len(series))
    if not count:
        return []
    cuts = [len(series) * i // count for i in range(count + 1)]
    parts = [[v for v in series[a:b] if v is not None] for a, b in pairwise(cuts)]
    return [max(part) if part else None for part in parts]


def _level(value: int | None, low: int, high: int, levels: str) -> str:
    if value is None:
        return " "
    return levels[0] if high == low else levels[(value - low) * (len(levels) - 1) // (high - low)]


def _writable() -> str:
    """Return the blocks if stdout can encode them, else ASCII."""
    try:
        _BLOCKS.encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return _PLAIN
    return _BLOCKS
