"""From batch to batch through a log file, as a broker goes; and on behind damage."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from typing import NamedTuple

from kctl.segment.batch import (
    HEADER_UP_TO_MAGIC,
    LOG_OVERHEAD,
    V0_OVERHEAD,
    V2_HEADER,
    Batch,
    crc_is_valid,
    parse_legacy,
    parse_v2,
)
from kctl.segment.source import WINDOW_BYTES, Source

_LENGTH = struct.Struct(">i")
# Where a batch may begin: a plausible offset, length, magic and attributes (lookahead: candidates may overlap).
# The magic byte is 16 bytes in; offsets are below 2⁵⁶, lengths below 2³¹.
_CANDIDATE = re.compile(
    rb"(?=\x00.{7}[\x00-\x7f].{7}(?:\x02.{4}\x00[\x00-\x7f][\x00-\x7f]|[\x00\x01][\x00-\x0f]))", re.DOTALL
)
_OVERLAP = 32
# CRCs of false candidates: at most this many times the bytes that are searched, and one window beyond.
_EFFORT = 4


class Damage(NamedTuple):
    """Bytes that are no batch. position: where; length: up to the next batch or the end of the file.

    code: small_size, incomplete. JVM readers stop here: dies, when they do so with an exception.
    """

    position: int
    length: int
    code: str
    message: str
    dies: bool = False


def batch_at(source: Source, position: int, end: int) -> Batch | Damage | None:
    """The batch at `position` of a log that ends at `end`, None at its end; what FileLogInputStream would give.

    A batch that is not whole, and a rest too short for one, is the end for a broker: Damage that does not die.
    """
    left = end - position
    if left <= 0:
        return None
    if left <= HEADER_UP_TO_MAGIC:
        return Damage(position, left, "incomplete", f"{left} bytes are too few for a batch")
    head = source.read(position, min(V2_HEADER, left))
    if len(head) <= HEADER_UP_TO_MAGIC:
        return Damage(position, left, "incomplete", "the file became shorter")
    (size,) = _LENGTH.unpack_from(head, 8)
    if size < V0_OVERHEAD:
        text = f"a batch of {size} bytes is smaller than the least of {V0_OVERHEAD}"
        return Damage(position, left, "small_size", text, dies=True)
    if size + LOG_OVERHEAD > left:
        return Damage(position, left, "incomplete", f"a batch of {size + LOG_OVERHEAD} bytes, and {left} are left")
    if head[16] in {0, 1} or head[16] > 0x7F:
        return parse_legacy(head, 0, position)
    if len(head) < V2_HEADER:
        return Damage(position, left, "incomplete", f"{left} bytes are too few for a batch header", dies=True)
    return parse_v2(head, 0, position)


def batches(source: Source, start: int = 0, end: int | None = None) -> Iterator[Batch | Damage]:
    """Every batch from `start` on, and what lies between them; after damage it goes on at the next batch that is
    whole and has a valid CRC."""
    position, last = start, source.size if end is None else min(end, source.size)
    while True:
        found = batch_at(source, position, last)
        if found is None:
            return
        if isinstance(found, Batch):
            yield found
            position += found.size
            continue
        following = resync(source, position + 1, last)
        yield found._replace(length=(last if following is None else following) - position)
        if following is None:
            return
        position = following


def resync(source: Source, start: int, end: int) -> int | None:
    """The first position from `start` on where a whole batch with a valid CRC begins; None when there is none.

    Bounded: garbage that is full of false beginnings is searched with a limited effort.
    """
    effort = (end - start) * _EFFORT + WINDOW_BYTES
    position = start
    while position + HEADER_UP_TO_MAGIC < end:
        data = bytes(source.read(position, min(WINDOW_BYTES, end - position)))
        for match in _CANDIDATE.finditer(data):
            candidate = position + match.start()
            batch = batch_at(source, candidate, end)
            if not isinstance(batch, Batch) or batch.last_offset < batch.base_offset:
                continue
            effort -= batch.size
            if effort < 0:
                return None
            if crc_is_valid(batch, source.read(candidate, batch.size)):
                return candidate
        if position + len(data) >= end or len(data) <= _OVERLAP:
            return None
        position += len(data) - _OVERLAP
    return None
