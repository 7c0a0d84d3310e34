"""Texts that the page and the terminal tables of a report share. Pure."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from kctl.base.text import counted
from kctl.base.units import format_duration, format_size

if TYPE_CHECKING:
    from kctl.history.report.model import Gap


def passes_text(count: int) -> str:
    """Return "1 pass" or "1,200 passes"."""
    return counted(count, "pass", "passes")


def gap_text(gap: Gap) -> str:
    """Return when passes are missing, and how many."""
    duration = format_duration((gap.to_at - gap.from_at) // timedelta(milliseconds=1))
    missing = f"{passes_text(gap.passes)} missing"
    return f"no snapshots from {gap.from_at:%m-%d %H:%M:%S} to {gap.to_at:%H:%M:%S} ({duration}): {missing}"


def growth_text(per_hour: float) -> str:
    """Return bytes per hour with a sign, e.g. "+1.5 MB/h"."""
    return f"{'+' if per_hour > 0 else ''}{format_size(round(per_hour))}/h"


def share_text(share: float) -> str:
    """Return a share as a percentage, with a decimal if it is small."""
    return f"{share:.0%}" if share >= 0.1 or share == 0 else f"{share:.1%}"
