"""Suggestions for misspelled names."""

from __future__ import annotations

from collections.abc import Iterable

from kctl.base.text import printable

_LONGEST = 300  # characters: Kafka's names are shorter, and comparison time is quadratic


def closest(name: str, existing: Iterable[str], *, limit: int = 3) -> list[str]:
    """Return the known names most similar to `name`, best first; empty if none is similar."""
    import difflib

    if len(name) > _LONGEST:
        return []
    by_folded = {each.casefold(): each for each in sorted(existing, reverse=True) if len(each) <= _LONGEST}
    matches = difflib.get_close_matches(name.casefold(), by_folded, n=limit, cutoff=0.6)
    return [by_folded[each] for each in matches]


def did_you_mean(name: str, existing: Iterable[str]) -> str | None:
    """Return a one-line hint, e.g. "did you mean orders or orders-v2?"; None if no name is similar."""
    matches = [printable(each) for each in closest(name, existing)]
    return f"did you mean {' or '.join(matches)}?" if matches else None
