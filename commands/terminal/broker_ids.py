"""Broker ids as options take them: «3», «3,4», and the option more than once."""

from __future__ import annotations

from collections.abc import Sequence

from kctl.errors import UsageError

_MAX_ID = 2**31 - 1


def broker_ids(option: str, values: Sequence[str] | None) -> frozenset[int]:
    """The ids of all values. Raises UsageError, which names the option."""
    found = set()
    for part in (part.strip() for value in values or () for part in value.split(",")):
        if not (part.isascii() and part.isdigit() and len(part) <= 10 and int(part) <= _MAX_ID):
            raise UsageError(f"{option}: {part!r} is not a broker id", hint=f"for example {option} 3 or {option} 3,4")
        found.add(int(part))
    return frozenset(found)
