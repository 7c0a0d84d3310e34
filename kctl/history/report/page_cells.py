"""Values of a report as HTML text and table cells. Pure.

Text from the cluster is escaped twice: characters that hide or reorder text (kctl.base.text.printable), and HTML.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, NamedTuple

from kctl.base.text import printable
from kctl.base.units import format_due, format_duration, format_size
from kctl.history.report.texts import growth_text, share_text

UNKNOWN = "–"
_STATUSES = {"OK", "WARN", "ERR", "UNKNOWN"}
_LIKE_ERR = {"STOP", "STALL", "REWIND"}  # of partitions
_MIN_SHARE, _MAX_CAUSES = 0.05, 3


def safe(text: object) -> str:
    """Return text for an element or a quoted attribute."""
    return escape(printable(str(text)))


class Kind(NamedTuple):
    """A kind of column: formatter, and class of its cells."""

    show: Callable[[Any], str]
    css: str = "right"


@dataclass(frozen=True, slots=True)
class PageColumn:
    """A column of the page.

    least: key of a lower bound that is shown if the value is unknown. minor: hidden until "all columns" is pressed.
    """

    key: str
    title: str
    kind: str
    minor: bool = False
    least: str | None = None

    @property
    def css(self) -> str:
        """Return the classes of its cells."""
        return " ".join(part for part in (KINDS[self.kind].css, "minor" if self.minor else "") if part)


def second_of(iso: str) -> str:
    """Return an ISO 8601 time without fractions and zone."""
    return iso[:19].replace("T", " ")


def _rate(per_s: float) -> str:
    return f"{per_s:,.0f}/s" if abs(per_s) >= 100 else f"{per_s:.3g}/s"


def _limit(show: Callable[[int], str]) -> Callable[[int], str]:
    return lambda value: "none" if value < 0 else show(value)


def _status(status: str) -> str:
    css = "ERR" if status in _LIKE_ERR else status if status in _STATUSES else "UNKNOWN"
    return f'<span class="status {css}">{safe(status)}</span>'


# `eta` sorts ascending first. The script draws `spark` (page/tables.js).
KINDS = {
    "text": Kind(safe, "name"),
    "plain": Kind(safe, ""),
    "count": Kind("{:,}".format),
    "size": Kind(format_size),
    "growth": Kind(growth_text),
    "duration": Kind(format_duration),
    "eta": Kind(format_due),
    "rate": Kind(_rate),
    "share": Kind(share_text),
    "ratio": Kind("{:.2f}".format),
    "time": Kind(second_of, ""),
    "limit": Kind(_limit(format_duration)),
    "bytes_limit": Kind(_limit(format_size)),
    "status": Kind(_status, ""),
    "spark": Kind(lambda _: "", "spark"),
}


def cell_html(column: PageColumn, row: Mapping[str, Any]) -> str:
    """Return the contents of a cell."""
    value, kind = row[column.key], KINDS[column.kind]
    if value is not None:
        return kind.show(value)
    if column.least is not None and row[column.least] is not None:
        return f"&gt; {kind.show(row[column.least])}"
    return "never" if row.get("never") == column.key else UNKNOWN


def filled_by(causes: Sequence[Mapping[str, Any]]) -> str | None:
    """Return the topics that fill a log dir."""
    large = [each for each in causes if each["share"] >= _MIN_SHARE][:_MAX_CAUSES]
    named = ", ".join(f"{each['topic'] or 'others'} {share_text(each['share'])}" for each in large)
    return named or ("many topics" if causes else None)


def silence(since: str | None, begin: str) -> str | None:
    """Return why the values of a log dir are stale."""
    return None if since is None else f"no response since {'before ' if since == begin else ''}{second_of(since)[5:]}"
