"""The plot as a self-contained SVG, without scripts or external fonts. Pure."""

from __future__ import annotations

from kctl.base.text import printable
from kctl.validate.report.plot import Plot, ceiling, letters

_WIDTH, _HEIGHT = 860, 260
_LEFT, _RIGHT, _TOP, _BOTTOM = 60, 20, 40, 40
_LINE = 18  # of the legend
_STYLE = (
    "text{font:12px sans-serif;fill:#222}.title{font-weight:bold;font-size:14px}.axis{stroke:#888}"
    ".area{fill:#4878a8}.fault{stroke:#b02020;stroke-dasharray:4 3}.letter{fill:#b02020}"
)


def plot_svg(plot: Plot, title: str) -> str:
    """Return acknowledged writes per second as bars, faults as lines with letters, and a legend."""
    height = _HEIGHT + _LINE * len(plot.marks)
    seconds = max(1, len(plot.per_s))
    top = ceiling(plot.per_s)
    plot_width, plot_height = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM
    base = _HEIGHT - _BOTTOM
    bar_width = plot_width / seconds
    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" '
            f'height="{height}" role="img">'
        ),
        f"<title>{_escape(title)}</title>",
        f"<style>{_STYLE}</style>",
        '<rect width="100%" height="100%" fill="#fff"/>',
        f'<text class="title" x="{_LEFT}" y="20">{_escape(title)}</text>',
    ]
    for second, count in enumerate(plot.per_s):
        if count:
            bar_height = plot_height * count / top
            parts.append(
                f'<rect class="area" x="{_number(_LEFT + second * bar_width)}" y="{_number(base - bar_height)}" '
                f'width="{_number(bar_width)}" height="{_number(bar_height)}"/>'
            )
    parts += [
        f'<line class="axis" x1="{_LEFT}" y1="{base}" x2="{_WIDTH - _RIGHT}" y2="{base}"/>',
        f'<line class="axis" x1="{_LEFT}" y1="{_TOP}" x2="{_LEFT}" y2="{base}"/>',
        f'<text x="{_LEFT - 6}" y="{_TOP + 4}" text-anchor="end">{top:,}</text>',
        f'<text x="{_LEFT - 6}" y="{base}" text-anchor="end">0</text>',
        f'<text x="{_LEFT - 6}" y="{_TOP + 20}" text-anchor="end">writes/s</text>',
        f'<text x="{_WIDTH - _RIGHT}" y="{base + 16}" text-anchor="end">{len(plot.per_s)} s</text>',
    ]
    for row, (letter, mark) in enumerate(zip(letters(len(plot.marks)), plot.marks, strict=True)):
        x = _number(_LEFT + min(max(mark.at_s, 0.0), seconds) * bar_width)
        parts += [
            f'<line class="fault" x1="{x}" y1="{_TOP}" x2="{x}" y2="{base}"/>',
            f'<text class="letter" x="{x}" y="{_TOP - 4}" text-anchor="middle">{letter}</text>',
            f'<text x="{_LEFT}" y="{_HEIGHT + _LINE * row}">{letter}: {mark.at_s:.1f} s, {_escape(mark.name)}</text>',
        ]
    return "\n".join([*parts, "</svg>"]) + "\n"


def _number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")


def _escape(text: str) -> str:
    from html import escape

    return escape(printable(text))
