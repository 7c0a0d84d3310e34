"""docs/spark-speed.svg, made from the newest results of `spark-rows` and `spark-day`: `python tests/bench/plot.py`.

Wall time of `kctl spark lag` against the rows that it goes through, on logarithmic axes, a line for each number of
tasks at once.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from page import by_rows, newest

TARGET = Path(__file__).resolve().parents[2] / "docs" / "spark-speed.svg"
WIDTH, HEIGHT = 720, 420
LEFT, RIGHT, TOP, BOTTOM = 70, 150, 40, 50
Points = dict[int, list[tuple[int, float]]]  # tasks → (rows, seconds)

STYLE = """
    text { font: 13px system-ui, sans-serif; fill: #1f2328 }
    .small { font-size: 11px; fill: #59636e }
    .mid { text-anchor: middle } .end { text-anchor: end }
    .card { fill: #ffffff }
    .grid { stroke: #d1d9e0 }
    .line { fill: none; stroke-width: 2 }
    .l0 { stroke: #0969da } .l1 { stroke: #bc4c00 } .l2 { stroke: #1a7f37 }
    .d0 { fill: #0969da } .d1 { fill: #bc4c00 } .d2 { fill: #1a7f37 }
    @media (prefers-color-scheme: dark) {
      text { fill: #f0f6fc } .small { fill: #9198a1 } .card { fill: #0d1117 } .grid { stroke: #3d444d }
      .l0 { stroke: #4493f8 } .l1 { stroke: #f0883e } .l2 { stroke: #3fb950 }
      .d0 { fill: #4493f8 } .d1 { fill: #f0883e } .d2 { fill: #3fb950 }
    }
"""


def points(figures: Iterable[tuple[int, Mapping[str, Any]]]) -> Points:
    """The figures by tasks at once, sorted by rows."""
    found: Points = {}
    for tasks, figure in figures:
        found.setdefault(tasks, []).append((figure["rows"], figure["wall_ms"] / 1000))
    return {tasks: sorted(found[tasks]) for tasks in sorted(found)}


def draw(found: Points) -> str:
    """The SVG. Raises ValueError without points."""
    rows = _decades([x for line in found.values() for x, _ in line])
    seconds = _decades([y for line in found.values() for _, y in line])
    parts = [*_grid(rows, seconds), *_lines(found, rows, seconds)]
    told = "; ".join(
        f"{tasks} at once: " + ", ".join(f"{x:,} rows in {y:.1f} s" for x, y in line) for tasks, line in found.items()
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img"'
        ' aria-labelledby="title summary">\n'
        '  <title id="title">Wall time of kctl spark lag against the rows of a store</title>\n'
        f'  <desc id="summary">{told}.</desc>\n  <style>{STYLE}  </style>\n'
        f'  <rect class="card" width="{WIDTH}" height="{HEIGHT}"/>\n'
        + "".join(f"  {part}\n" for part in parts)
        + "</svg>\n"
    )


def _decades(values: Sequence[float]) -> range:
    """The powers of ten that hold the values."""
    return range(math.floor(math.log10(min(values))), math.ceil(math.log10(max(values))) + 1)


def _place(value: float, decades: range, start: float, end: float) -> float:
    share = (math.log10(value) - decades[0]) / max(len(decades) - 1, 1)
    return round(start + (end - start) * share, 1)


def _x(rows: float, decades: range) -> float:
    return _place(rows, decades, LEFT, WIDTH - RIGHT)


def _y(seconds: float, decades: range) -> float:
    return _place(seconds, decades, HEIGHT - BOTTOM, TOP)


def _grid(rows: range, seconds: range) -> Iterator[str]:
    for power in rows:
        x = _x(10**power, rows)
        yield f'<line class="grid" x1="{x}" y1="{TOP}" x2="{x}" y2="{HEIGHT - BOTTOM}"/>'
        yield f'<text class="small mid" x="{x}" y="{HEIGHT - BOTTOM + 18}">{10**power:,}</text>'
    for power in seconds:
        y = _y(10**power, seconds)
        yield f'<line class="grid" x1="{LEFT}" y1="{y}" x2="{WIDTH - RIGHT}" y2="{y}"/>'
        yield f'<text class="small end" x="{LEFT - 8}" y="{y + 4}">{10**power:,} s</text>'
    yield f'<text class="mid" x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 10}">rows of snapshots</text>'
    yield f'<text x="{LEFT}" y="{TOP - 16}">kctl spark lag, from its start to its answer</text>'


def _lines(found: Points, rows: range, seconds: range) -> Iterator[str]:
    for number, (tasks, line) in enumerate(found.items()):
        places = [(_x(x, rows), _y(y, seconds)) for x, y in line]
        yield f'<polyline class="line l{number}" points="{" ".join(f"{x},{y}" for x, y in places)}"/>'
        for (x, y), (_, took) in zip(places, line, strict=True):
            yield f'<circle class="d{number}" cx="{x}" cy="{y}" r="4"><title>{took:.1f} s</title></circle>'
        x, y = places[-1]
        yield f'<text x="{x + 10}" y="{y + 4}">{tasks} at once: {line[-1][1]:.0f} s</text>'


if __name__ == "__main__":
    TARGET.write_text(draw(points(by_rows(newest()))))
