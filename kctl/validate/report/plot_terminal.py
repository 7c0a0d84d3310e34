"""The plot as text. Pure."""

from __future__ import annotations

from bisect import bisect_right
from itertools import pairwise

from kctl.base.text import printable
from kctl.validate.report.plot import Plot, ceiling, letters

_EIGHTHS = " ▁▂▃▄▅▆▇█"
_PLAIN = " .:-=+*##"
_HEIGHT = 6


def plot_lines(plot: Plot, *, width: int = 80, height: int = _HEIGHT, plain: bool = False) -> list[str]:
    """Return bars of writes per second, letters of the faults below them, and a legend.

    A column shows the minimum of its seconds, so a second without writes is always visible. plain: ASCII only.
    """
    if not plot.per_s:
        return ["no write was acknowledged"]
    top = ceiling(plot.per_s)
    label = f"{top:,}"
    margin = max(len(label), len("writes/s"))
    columns = max(1, min(width - margin - 2, len(plot.per_s)))
    lows = _columns(plot.per_s, columns)
    blocks = _PLAIN if plain else _EIGHTHS
    edge = "|" if plain else "│"
    lines = []
    for row in range(height, 0, -1):
        name = label if row == height else "writes/s" if row == height - 1 else "0" if row == 1 else ""
        bars = "".join(_cell(value, top, row, height, blocks) for value in lows)
        lines.append(f"{name:>{margin}} {edge}{bars}".rstrip())
    marks, legend = _marks(plot, columns)
    lines.append(f"{'':>{margin}}  {marks}".rstrip())
    end = f"{len(plot.per_s)} s"
    lines.append(f"{'':>{margin}}  0{end:>{max(columns - 1, len(end) + 1)}}")
    return [*lines, *(_cut(line, width) for line in legend)]


def _columns(values: tuple[int, ...], count: int) -> list[int]:
    return [min(values[a:b]) for a, b in pairwise(_cuts(len(values), count))]


def _cuts(seconds: int, columns: int) -> list[int]:
    """Return the start of each column, and the end."""
    return [seconds * n // columns for n in range(columns + 1)]


def _cell(value: int, top: int, row: int, height: int, blocks: str) -> str:
    """Return the block of a cell. row: 1 is the lowest. A value above 0 has at least the smallest block."""
    eighths = -(-value * height * 8 // top)
    return blocks[min(8, max(0, eighths - (row - 1) * 8))]


def _marks(plot: Plot, columns: int) -> tuple[str, list[str]]:
    """Return the line under the bars, and the legend. Overlapping letters become "*"."""
    line = [" "] * columns
    legend = []
    cuts = _cuts(len(plot.per_s), columns)
    for letter, mark in zip(letters(len(plot.marks)), plot.marks, strict=True):
        at = min(columns - 1, max(0, bisect_right(cuts, mark.at_s) - 1))  # under the bar of its second
        line[at] = letter[0] if line[at] == " " else "*"
        legend.append(f"{letter} {mark.at_s:.1f} s: {printable(mark.name)}")
    return "".join(line), legend


def _cut(line: str, width: int) -> str:
    return line if len(line) <= width else line[: width - 1] + "…"
