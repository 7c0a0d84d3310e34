"""Ranges of Kafka's releases, as rules and facts have them."""

from __future__ import annotations

import re
from typing import NamedTuple

Release = tuple[int, ...]  # (3, 9), (0, 10, 1)


class Releases(NamedTuple):
    """The release that something seems to be, lowest and highest that it can be; highest None: or a later one."""

    lowest: Release
    highest: Release | None

    def __str__(self) -> str:
        low = dotted(self.lowest)
        return f"{low}+" if self.highest is None else low if same(self) else f"{low} to {dotted(self.highest)}"


def same(found: Releases) -> bool:
    """Whether it is one release."""
    return found.lowest == found.highest


def dotted(release: Release) -> str:
    """«3.9»"""
    return ".".join(map(str, release))


def parse_releases(text: str | None) -> Releases | None:
    """«3.9», «2.4 to 2.6», «4.3+», «3.9.2», «3.9-IV0»; None for what is none of these. Pure."""
    match = re.fullmatch(r"(\d+(?:\.\d+)+)(?:-IV\d+)?(\+)?(?: to (\d+(?:\.\d+)+))?", (text or "").strip())
    if match is None:
        return None
    low = _release(match[1])
    return Releases(low, None if match[2] else _release(match[3]) if match[3] else low)


def _release(text: str) -> Release:
    return tuple(int(part) for part in text.split("."))
