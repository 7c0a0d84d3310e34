"""Broker ids in options: "3" or "3,4", repeatable."""

from __future__ import annotations

from collections.abc import Sequence

from kctl.errors import UsageError

_MAX_ID = 2**31 - 1


def broker_ids(option: str, values: Sequence[str] | None) -> frozenset[int]:
    """Return the ids in all values. Raises UsageError, which names the option."""
    ids = set()
    for part in (part.strip() for value in values or () for part in value.split(",")):
        if not (part.isascii() and part.isdigit() and len(part) <= 10 and int(part) <= _MAX_ID):
            raise UsageError(f"{option}: {part!r} is not a broker id", hint=f"use e.g. {option} 3 or {option} 3,4")
        ids.add(int(part))
    return frozenset(ids)
