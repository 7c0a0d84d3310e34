"""A record on its way into a topic, before it has an offset."""

from __future__ import annotations

from typing import NamedTuple

Headers = tuple[tuple[bytes, bytes | None], ...]


class Outgoing(NamedTuple):
    """What to write. value None is a tombstone; timestamp_ms None: the time when it is taken; partition None: the key
    decides, or without a key the batch that is being filled."""

    key: bytes | None
    value: bytes | None
    headers: Headers = ()
    timestamp_ms: int | None = None
    partition: int | None = None


class Unfit(ValueError):
    """Why a line cannot be a record, in words that follow «line 3 …»."""

    def __init__(self, reason: str, *, hint: str | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.hint = hint
