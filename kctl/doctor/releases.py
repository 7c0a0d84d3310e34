"""Ranges of Kafka releases, as the doctor's facts and rules use them."""

from __future__ import annotations

import re
from typing import NamedTuple

Release = tuple[int, ...]  # (3, 9), (0, 10, 1)


class Releases(NamedTuple):
    """The releases that a broker or client may have: lowest to highest. highest None: `lowest` or any later release."""

    lowest: Release
    highest: Release | None

    def __str__(self) -> str:
        low = format_release(self.lowest)
        if self.highest is None:
            return f"{low}+"
        return low if is_single_release(self) else f"{low} to {format_release(self.highest)}"


def is_single_release(releases: Releases) -> bool:
    """Return True if the range holds exactly one release."""
    return releases.lowest == releases.highest


def format_release(release: Release) -> str:
    """Return a release as text, e.g. "3.9"."""
    return ".".join(map(str, release))


def parse_releases(text: str | None) -> Releases | None:
    """Parse "3.9", "3.9.2", "3.9-IV0", "2.4 to 2.6" or "4.3+". Return None for anything else. Pure."""
    match = re.fullmatch(r"(\d+(?:\.\d+)+)(?:-IV\d+)?(\+)?(?: to (\d+(?:\.\d+)+))?", (text or "").strip())
    if match is None:
        return None
    low = _parse_release(match[1])
    return Releases(low, None if match[2] else _parse_release(match[3]) if match[3] else low)


def _parse_release(text: str) -> Release:
    return tuple(int(part) for part in text.split("."))
