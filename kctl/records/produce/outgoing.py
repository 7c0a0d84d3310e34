"""A record to be written, which has no offset yet."""

from __future__ import annotations

from typing import NamedTuple

Headers = tuple[tuple[bytes, bytes | None], ...]


class Outgoing(NamedTuple):
    """A record to be written.

    value: None for a tombstone. timestamp_ms: None for the current time. partition: None to partition by key, or
    without a key to use the sticky partition.
    """

    key: bytes | None
    value: bytes | None
    headers: Headers = ()
    timestamp_ms: int | None = None
    partition: int | None = None


class Unfit(ValueError):
    """A line is not a valid record. reason: continues the text "line 3 …"."""

    def __init__(self, reason: str, *, hint: str | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.hint = hint
