"""Series as one line of text: higher blocks for larger values, letters for states, blanks for unknown values."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from itertools import pairwise

WIDTH = 24
_BLOCKS = "▁▂▃▄▅▆▇█"
_PLAIN = "_.-~=+*#"


def sparkline(series: Sequence[int | None], width: int = WIDTH, *, blocks: str | None = None) -> str:
    """Return `series` in at most `width` characters.

    Each character is the maximum of its part, scaled between minimum and maximum.
    """
    levels = _writable() if blocks is None else blocks
    values = [value for value in series if value is not None]
    if not values:
        return ""
    low, high = min(values), max(values)
    return "".join(_level(part, low, high, levels) for part in _parts(series, width))


def state_line(spans: Sequence[tuple[int, str | None]], width: int = WIDTH) -> str:
    """Return states, each lasting a number of buckets, as letters: "." OK, "W" WARN, "E" worse, "?" UNKNOWN.

    Each character is the worst state of its part.
    """
    marks = " ?.WE"
    ranks = {None: 0, "UNKNOWN": 1, "OK": 2, "WARN": 3}
    levels = [ranks.get(state, 4) for count, state in spans for _ in range(count)]
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
    """Return the block characters, or ASCII if the encoding of stdout lacks them."""
    try:
        _BLOCKS.encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return _PLAIN
    return _BLOCKS
