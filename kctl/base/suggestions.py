"""What was probably meant by a name that is not known."""

from __future__ import annotations

from collections.abc import Iterable

from kctl.base.text import printable

_LONGEST = 300  # characters: no name of Kafka's is longer, and comparing takes time by the square of that


def closest(name: str, known: Iterable[str], *, limit: int = 3) -> list[str]:
    """The known names that are most like `name`, best first; empty when none is like it."""
    import difflib

    if len(name) > _LONGEST:
        return []
    by_folded = {each.casefold(): each for each in sorted(known, reverse=True) if len(each) <= _LONGEST}
    found = difflib.get_close_matches(name.casefold(), by_folded, n=limit, cutoff=0.6)
    return [by_folded[each] for each in found]


def did_you_mean(name: str, known: Iterable[str]) -> str | None:
    """«did you mean orders or orders-v2?», for a hint, in one line; None when nothing is like it."""
    found = [printable(each) for each in closest(name, known)]
    return f"did you mean {' or '.join(found)}?" if found else None
