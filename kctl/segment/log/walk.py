"""Iterate over the batches of a log file like a broker, and resume after damage."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from typing import NamedTuple

from kctl.base.binary_layout import INT32
from kctl.segment.format.batch import (
    CRC_COVERS,
    HEADER_UP_TO_MAGIC,
    LEGACY_CRC_COVERS,
    LENGTH_AT,
    LOG_OVERHEAD,
    MAGIC_AT,
    MESSAGE_V0,
    MESSAGE_V1,
    V0_OVERHEAD,
    V2_HEADER,
    Batch,
    crc_is_valid,
    parse_legacy,
    parse_v2,
)
from kctl.segment.format.record import BadRecords
from kctl.segment.log.partition import next_segment
from kctl.segment.log.source import WINDOW_BYTES, Source

# The start of a possible batch: plausible offset, length, magic and attributes. Lookahead: candidates may overlap.
# The magic is byte 16; offsets are below 2⁵⁶, lengths from 14 to 2³¹.
_CANDIDATE = re.compile(
    rb"(?=\x00.{7}[\x00-\x7f](?!\x00\x00[\x00-\x0d]).{7}"
    rb"(?:\x02.{4}\x00[\x00-\x7f][\x00-\x7f]|[\x00\x01][\x00-\x0f]))",
    re.DOTALL,
)
_REACH = 24  # bytes that the pattern examines
# No batch starts within so many zeros: its length would be 0. They are skipped at memory speed.
_ZEROS = re.compile(rb"\x00{64,}")
_OVERLAP = 32
_LARGEST_SEGMENT = 2**31 - 1  # segment.bytes is an int
_FIRST_SEARCH = 1 << 12
_EFFORT = 4


class Effort:
    """The budget for searches in one file: the CRCs of false candidates may cover `left` more bytes."""

    def __init__(self, size: int) -> None:
        self.left = size * _EFFORT + WINDOW_BYTES

    def allows(self, size: int) -> bool:
        """Return True if a candidate of `size` bytes may be tried. A large false one must not use up the budget."""
        return size * _EFFORT <= self.left


class Damage(NamedTuple):
    """Bytes that are not a batch. length: up to the next batch or the end of the file.

    code: small_size or incomplete. Kafka's readers stop here. throws: they stop with an exception.
    """

    position: int
    length: int
    code: str
    message: str
    throws: bool = False


def batch_at(source: Source, position: int, end: int) -> Batch | Damage | None:
    """Return the batch at `position` of a log that ends at `end`, like FileLogInputStream; None at the end.

    An incomplete batch, or too few bytes for one, ends the log for a broker: Damage without `throws`.
    """
    remaining = end - position
    if remaining <= 0:
        return None
    if remaining <= HEADER_UP_TO_MAGIC:
        return Damage(position, remaining, "incomplete", f"only {remaining} bytes are left, too few for a batch")
    head = source.read(position, min(V2_HEADER, remaining))
    if len(head) <= HEADER_UP_TO_MAGIC:
        return Damage(position, remaining, "incomplete", "the file was truncated")
    (size,) = INT32.unpack_from(head, LENGTH_AT)
    if size < V0_OVERHEAD:
        text = f"the batch length {size} is below the minimum of {V0_OVERHEAD}"
        return Damage(position, remaining, "small_size", text, throws=True)
    if size + LOG_OVERHEAD > remaining:
        return Damage(
            position,
            remaining,
            "incomplete",
            f"a batch of {size + LOG_OVERHEAD} bytes, but only {remaining} bytes are left",
        )
    if head[MAGIC_AT] in {0, 1} or head[MAGIC_AT] > 0x7F:
        return parse_legacy(head, 0, position)
    if len(head) < V2_HEADER:
        return Damage(
            position,
            remaining,
            "incomplete",
            f"only {remaining} bytes are left, too few for a batch header",
            throws=True,
        )
    return parse_v2(head, 0, position)


def batches(source: Source, start: int = 0, end: int | None = None) -> Iterator[Batch | Damage]:
    """Yield every batch from `start` on, and damage.

    After damage, resume at the next complete batch with a valid CRC.
    """
    position, last = start, source.size if end is None else min(end, source.size)
    effort = Effort(last - start)
    while True:
        # The usual case: a header of magic 2 within the window, of a batch that ends before `last`.
        offset = position - source.start
        if 0 <= offset <= len(source.window) - V2_HEADER:
            batch = parse_v2(source.window, offset, position)
            if batch.magic > 1 and batch.size >= V2_HEADER and position + batch.size <= last:
                yield batch
                position += batch.size
                continue
        item = batch_at(source, position, last)
        if item is None:
            return
        if isinstance(item, Batch):
            yield item
            position += item.size
            continue
        next_valid = resync(source, position + 1, last, effort)
        yield item._replace(length=(last if next_valid is None else next_valid) - position)
        if next_valid is None:
            return
        position = next_valid


def all_zero(source: Source, position: int, end: int) -> bool:
    """Return True if all bytes are zero. Holes of a sparse file are not read."""
    position = source.next_data(position)
    while position < end:
        if any(bytes(source.read(position, min(WINDOW_BYTES, end - position))).lstrip(b"\0")):
            return False
        position = source.next_data(position + WINDOW_BYTES)
    return True


def is_preallocated(source: Source, damage: Damage) -> bool:
    """Return True for the zeros that log.preallocate leaves after the last batch of the active segment."""
    return (
        source.path.suffix == ".log"
        and source.size <= _LARGEST_SEGMENT
        and damage.position + damage.length >= source.size
        and next_segment(source.path) is None
        and all_zero(source, damage.position, source.size)
    )


def preallocated_text(length: int) -> str:
    """Return the text for preallocated zeros."""
    return f"{length} zero bytes, left by log.preallocate or a power failure"


def is_valid(source: Source, batch: Batch) -> bool:
    """Return True if the CRC matches. Uses little memory, whatever size the batch claims."""
    if batch.size <= WINDOW_BYTES:
        return crc_is_valid(batch, source.read(batch.position, batch.size))
    begin = LEGACY_CRC_COVERS if batch.legacy else CRC_COVERS
    value, position, end = 0, batch.position + begin, batch.next_position
    while position < end:
        piece = source.read(position, min(WINDOW_BYTES, end - position))
        if not len(piece):
            return False
        value = zlib.crc32(piece, value) if batch.legacy else _crc32c(piece, value)
        position += len(piece)
    return value == batch.crc


def batch_damage(source: Source, batch: Batch) -> str | None:
    """Return why a batch is not valid (unknown magic, wrong CRC); None if it is valid."""
    if batch.magic >= 0:
        return None if is_valid(source, batch) else "the CRC does not match"
    text = f"unknown magic {batch.magic}"
    head = source.read(batch.position, min(V2_HEADER, batch.size))
    if len(head) < V2_HEADER:
        return text
    as_v2 = parse_v2(head, 0, batch.position)._replace(magic=2)
    return f"{text}; read as magic 2, the CRC matches" if is_valid(source, as_v2) else text


def _crc32c(piece: memoryview, value: int) -> int:
    from kctl.base.checksum import crc32c

    return crc32c(piece, value)


def content_of(source: Source, batch: Batch, limit: int) -> memoryview:
    """Return the whole batch. limit: maximum bytes of a message.

    Raises BadRecords if the batch is larger than both the limit and a window, or if the file was truncated.
    """
    if batch.size > max(limit, WINDOW_BYTES):
        raise BadRecords(f"a batch of {batch.size} bytes exceeds the message limit of {limit} bytes")
    content = source.read(batch.position, batch.size)
    if len(content) < batch.size:
        raise BadRecords("the file was truncated")
    return content


def resync(source: Source, start: int, end: int, effort: Effort | None = None) -> int | None:
    """Return the first position from `start` on where a complete batch with a valid CRC starts; None if there is none.

    effort: the budget for this file. It bounds the time spent on garbage that is full of false candidates: candidates
    that are too large for the remaining budget are skipped.
    """
    effort = effort or Effort(end - start)
    position, size = start, _FIRST_SEARCH  # the next batch is usually near
    while position + HEADER_UP_TO_MAGIC < end:
        position = max(position, source.next_data(position) - _OVERLAP)
        data = bytes(source.read(position, min(size, end - position)))
        for offset in _candidates(data):
            batch = batch_at(source, position + offset, end)
            if not isinstance(batch, Batch) or not _plausible(source, batch) or not effort.allows(batch.size):
                continue
            if is_valid(source, batch):
                return batch.position
            effort.left -= batch.size
        if position + len(data) >= end or len(data) <= _OVERLAP:
            return None
        position += len(data) - _OVERLAP
        size = min(size * 4, WINDOW_BYTES)
    return None


def _plausible(source: Source, batch: Batch) -> bool:
    """Return True if a header is plausible.

    Its offsets are in order; in magic 0 and 1, key and value exactly fill the message.
    """
    if not batch.legacy:
        return batch.last_offset_delta >= 0
    position = batch.position + LOG_OVERHEAD + (MESSAGE_V0 if batch.magic == 0 else MESSAGE_V1).size
    for _ in ("key", "value"):
        field = source.peek(position, INT32.size)
        if len(field) < INT32.size:
            return False
        position += INT32.size + max(INT32.unpack(field)[0], 0)
        if position > batch.next_position:
            return False
    return position == batch.next_position


def _candidates(data: bytes) -> Iterator[int]:
    """Yield the positions in `data` where a batch may start."""
    begin = 0
    while begin < len(data):
        zeros = _ZEROS.search(data, begin)
        end = len(data) if zeros is None else min(zeros.start() + _REACH, len(data))
        for match in _CANDIDATE.finditer(data, begin, end):
            yield match.start()
        if zeros is None:
            return
        begin = max(end, zeros.end() - _REACH)
