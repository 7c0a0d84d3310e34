"""Decode commits in __consumer_offsets as columns: many batches at once, with numpy.

This module decodes ordinary batches: magic 2 with a valid CRC, records without headers, commits of the versions that
brokers write. It stops at any other batch, which kctl.segment.format.offset_commits decodes. That module is the
reference: this one returns the same result or none.

Layout of a record: kctl.segment.format.record. Key: version i16 (0, 1), group, topic, partition i32. Value: version i16
(0 to 3), offset i64, leaderEpoch i32 (since version 3), metadata, commitTimestamp i64, expireTimestamp i64 (version 1
only). Strings have an i16 length prefix.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kctl.base.checksum import crc32c
from kctl.history.commits.effects import Commits, Marker
from kctl.history.evaluate.column_arrays import numbers
from kctl.history.evaluate.window_rules import Flags, Ints
from kctl.segment.format.batch import (
    CODEC_MASK,
    CODECS,
    CONTROL_MASK,
    LOG_OVERHEAD,
    TIMESTAMP_TYPE_MASK,
    TRANSACTIONAL_MASK,
    V2_HEADER,
    parse_v2,
)
from kctl.segment.format.control import ABORT, COMMIT
from kctl.segment.format.messages import BadMessage
from kctl.segment.format.offset_commits import GroupPartition, commit_key
from kctl.segment.format.record_columns import whole_payload

if TYPE_CHECKING:
    from kctl.segment.log.source import Source

_MAX_BATCH = 4 << 20  # larger batches are not decoded here
_MAX_DECOMPRESSED = 16 << 20  # total for the compressed batches of a piece
_MAX_BASE = 2**62  # a delta added to a larger base could overflow
_HEADER = Struct(">8xi4xbIh")  # length, magic, CRC, attributes
_WIDTHS = {2: ">i2", 4: ">i4", 8: ">i8"}
_Bytes = npt.NDArray[np.uint8]


class _Batches(NamedTuple):
    """The batches of a piece.

    at: position of each batch in the window; begin, finish: bounds of its records in the window with the decompressed
    payloads; records: record count from the header.
    """

    at: Ints
    base_offset: Ints
    attributes: Ints
    base_timestamp: Ints
    max_timestamp: Ints
    producer_id: Ints
    records: Ints
    begin: Ints
    finish: Ints

    def first(self, size: int) -> _Batches:
        """Return the first `size` batches."""
        return _Batches(*(column[:size] for column in self))


def read_piece(source: Source, position: int, size: int) -> tuple[Commits, int]:
    """Return the commits of the ordinary batches in `size` bytes from `position` on, and the next position.

    The next position is `position` if the batch there is not ordinary.
    """
    selected = min(size, max(source.size - position, 0))
    commits, used = commits_of(source.read(position, selected))
    return commits, position + used


def commits_of(window: memoryview) -> tuple[Commits, int]:
    """Return the commits of the ordinary batches at the start of `window`, and the size of these batches in bytes."""
    positions, stop = _walk(window)
    result, data = _batches(window, positions)
    while len(result.at):
        records, good = _records(data, result)
        if good == len(result.at):
            commits, good = _commits(data, result, records)
        if good == len(result.at):
            return commits, stop if good == len(positions) else positions[good]
        result = result.first(good)  # up to the batch with a record that is not ordinary
    return _none(), 0


def _none() -> Commits:
    empty, flags = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=bool)
    return Commits([], empty, empty, empty, flags, flags, empty, empty, empty, empty)


# --- batches ------------------------------------------------------------------------------------------------------


def _walk(window: memoryview) -> tuple[list[int], int]:
    """Return the positions of the batches with magic 2, a supported codec and a valid CRC, and the end of the last."""
    unpack, at, size = _HEADER.unpack_from, 0, len(window)
    result: list[int] = []
    add = result.append
    while at + V2_HEADER <= size:
        length, magic, crc, attributes = unpack(window, at)
        stop = at + length + LOG_OVERHEAD
        if (
            magic != 2
            or stop > size
            or not V2_HEADER <= stop - at <= _MAX_BATCH
            or attributes & CODEC_MASK >= len(CODECS)
            or crc32c(window[at + 21 : stop]) != crc
        ):
            break
        add(at)
        at = stop
    return result, at


def _batches(window: memoryview, positions: list[int]) -> tuple[_Batches, memoryview]:
    """Return the headers of the ordinary batches, and the window with decompressed payloads appended."""
    raw = np.frombuffer(window, dtype=np.uint8)
    at = np.array(positions, dtype=np.int64)
    attributes = _number(raw, at + 21, 2)
    finish = at + LOG_OVERHEAD + _number(raw, at + 8, 4)
    result = _Batches(
        at=at,
        base_offset=_number(raw, at, 8),
        attributes=attributes,
        base_timestamp=_number(raw, at + 27, 8),
        max_timestamp=_number(raw, at + 35, 8),
        producer_id=_number(raw, at + 43, 8),
        records=_number(raw, at + 57, 4),
        begin=at + V2_HEADER,
        finish=finish,
    )
    good = (result.base_offset >= 0) & (result.base_offset <= _MAX_BASE) & (result.records >= 0)
    good &= (result.base_timestamp >= 0) & (result.base_timestamp <= _MAX_BASE)
    good &= _number(raw, at + 23, 4) >= 0  # lastOffsetDelta
    size, payloads, end = _prefix(good), list[bytes](), len(window)
    for place in np.flatnonzero(attributes & CODEC_MASK).tolist():
        if place >= size:
            break
        first, last = positions[place], int(finish[place])
        payload = whole_payload(parse_v2(window, first, 0), window[first:last], limit=_MAX_BATCH)
        if payload is None or end - len(window) + len(payload) > _MAX_DECOMPRESSED:
            size = place
            break
        result.begin[place], result.finish[place] = end, end + len(payload)
        payloads.append(payload)
        end += len(payload)
    return result.first(size), memoryview(b"".join([window, *payloads])) if payloads else window


def _prefix(good: Flags) -> int:
    """Return the number of leading True values."""
    return len(good) if good.all() else int(np.argmin(good))


# --- records ------------------------------------------------------------------------------------------------------


class _Records(NamedTuple):
    """The bounds of records, without their length prefixes, and their batches."""

    start: Ints
    end: Ints
    batch: Ints


def _records(data: memoryview, result: _Batches) -> tuple[_Records, int]:
    """Return the records, and the number of leading batches that they fill exactly; no records if that is not all."""
    counts, raw = result.records, np.frombuffer(data, dtype=np.uint8)
    single = counts == 1
    size, start, _ = _varint(raw, result.begin[single], np.ones(int(single.sum()), dtype=bool), 3)
    fits = np.ones(len(counts), dtype=bool)
    fits[single] = start + size == result.finish[single]
    starts: list[int] = []
    ends: list[int] = []
    for place in np.flatnonzero(~single).tolist():
        if not _chain(data, int(result.begin[place]), int(result.finish[place]), int(counts[place]), starts, ends):
            fits[place] = False
            break
    if not fits.all():
        none = np.zeros(0, dtype=np.int64)
        return _Records(none, none, none), _prefix(fits)
    batch = np.repeat(np.arange(len(counts)), counts)
    records = _Records(np.empty_like(batch), np.empty_like(batch), batch)
    alone = single[batch]
    records.start[alone], records.end[alone] = start, result.finish[single]
    records.start[~alone], records.end[~alone] = starts, ends
    return records, len(counts)


def _chain(data: memoryview, position: int, end: int, count: int, starts: list[int], ends: list[int]) -> bool:
    """Add the bounds of each record. Return False if the records do not fill the batch exactly."""
    for _ in range(count):
        if position + 2 > end:
            return False
        byte = data[position]
        position += 1
        if byte >= 0x80:
            second = data[position]
            position += 1
            if second >= 0x80:
                if position >= end or data[position] >= 0x80:
                    return False
                byte = byte & 0x7F | (second & 0x7F) << 7 | data[position] << 14
                position += 1
            else:
                byte = byte & 0x7F | second << 7
        if byte & 1:
            return False
        starts.append(position)
        position += byte >> 1
        if position > end:
            return False
        ends.append(position)
    return position == end


def _commits(data: memoryview, result: _Batches, records: _Records) -> tuple[Commits, int]:
    """Return the commits, and the number of leading ordinary batches; no commits if that is not all."""
    raw = np.frombuffer(data, dtype=np.uint8)
    start, end = records.start, records.end
    # The fields of a record: attributes, time, offset, key, value, headers.
    good = end - start >= 6
    time, at, good = _varint(raw, start + 1, good, 9)
    offset, at, good = _varint(raw, at, good, 3)
    key_size, key_at, good = _varint(raw, at, good, 3)
    key_end = key_at + key_size
    good &= (key_size >= 2) & (key_end < end)
    value_size, value_at, good = _varint(raw, key_end, good, 5)
    removed = value_size < 0
    value_end = value_at + np.maximum(value_size, 0)
    good &= (value_end == end - 1) & (value_size >= -1) & (offset >= 0)
    good &= raw.take(value_end, mode="clip") == 0  # no headers
    kind = _number(raw, key_at, 2)
    control = (result.attributes[records.batch] & CONTROL_MASK) != 0
    # A marker is the only record of its batch; its key is a version and a type.
    good &= ~control | ((result.records[records.batch] == 1) & (key_size >= 4) & (kind >= 0))
    selected = good & (kind >= 0) & (kind <= 1) & ~control
    value = _values(raw, value_at, value_end, selected & ~removed)
    good &= value.good
    keys, key, readable = _keys(data, key_at, key_end, selected)
    good &= readable
    if not good.all():
        return _none(), int(records.batch[int(np.argmin(good))])
    places = np.flatnonzero(selected)
    batch = records.batch[places]
    attributes, last = result.attributes[batch], result.max_timestamp[batch]
    written = np.where((attributes & TIMESTAMP_TYPE_MASK) != 0, last, result.base_timestamp[batch] + time[places])
    has_time = (value.commit_ms[places] >= 0) & ~removed[places]
    commits = Commits(
        keys=keys,
        key=key,
        at_ms=np.where(has_time, value.commit_ms[places], written),
        committed_offset=value.offset[places],
        removed=removed[places],
        has_time=has_time,
        commit_ms=np.where(has_time, value.commit_ms[places], 0),
        leader_epoch=value.leader_epoch[places],
        log_offset=result.base_offset[batch] + offset[places],
        producer_id=np.where((attributes & TRANSACTIONAL_MASK) != 0, result.producer_id[batch], -1),
        markers=_markers(result, records.batch, np.flatnonzero(control), places, _number(raw, key_at + 2, 2)),
    )
    return commits, len(result.at)


def _markers(result: _Batches, batch: Ints, rows: Ints, commits: Ints, kind: Ints) -> tuple[Marker, ...]:
    """Return the markers that end transactions, from the control records in `rows`. commits: rows of the commits."""
    rows = rows[(kind[rows] == ABORT) | (kind[rows] == COMMIT)]
    columns = (
        np.searchsorted(commits, rows).tolist(),
        result.producer_id[batch[rows]].tolist(),
        (kind[rows] == COMMIT).tolist(),
        result.max_timestamp[batch[rows]].tolist(),
    )
    return tuple(Marker(*each) for each in zip(*columns, strict=True))


def _varint(data: _Bytes, at: Ints, good: Flags, max_bytes: int) -> tuple[Ints, Ints, Flags]:
    """Return zigzag varints of at most `max_bytes` bytes, the positions after them, and an updated `good`."""
    byte = data.take(at, mode="clip").astype(np.int64)
    at = at + 1
    value = byte & 0x7F
    more = np.flatnonzero(byte >= 0x80)
    shift = 7
    while len(more) and shift < max_bytes * 7:
        byte = data.take(at[more], mode="clip").astype(np.int64)
        at[more] += 1
        value[more] |= (byte & 0x7F) << shift
        more = more[byte >= 0x80]
        shift += 7
    if len(more):
        good = good.copy()
        good[more] = False
    return (value >> 1) ^ -(value & 1), at, good


def _number(data: _Bytes, at: Ints, width: int) -> Ints:
    """Return big-endian numbers of `width` bytes."""
    result = data.take(at[:, None] + np.arange(width), mode="clip")
    return np.ascontiguousarray(result).view(_WIDTHS[width])[:, 0].astype(np.int64)


class _ValueColumns(NamedTuple):
    """The value fields of each record; 0 without a value. good: False for an unknown version or a truncated value."""

    offset: Ints
    leader_epoch: Ints
    commit_ms: Ints
    good: Flags


def _values(data: _Bytes, at: Ints, end: Ints, selected: Flags) -> _ValueColumns:
    """Return the values of the selected records."""
    places = np.flatnonzero(selected)
    at, end = at[places], end[places]
    version = _number(data, at, 2)
    with_epoch = version >= 3
    metadata_at = at + np.where(with_epoch, 14, 10)
    length = _number(data, metadata_at, 2)
    time_at = metadata_at + 2 + np.maximum(length, 0)
    min_end = time_at + np.where(version == 1, 16, 8)
    fine = (version >= 0) & (version <= 3) & (length >= 0) & (min_end <= end)
    size = len(selected)
    good = np.ones(size, dtype=bool)
    good[places] = fine
    offset, epoch, commit_ms = (np.zeros(size, dtype=np.int64) for _ in range(3))
    offset[places] = _number(data, at + 2, 8)
    epoch[places] = np.where(with_epoch, _number(data, at + 10, 4), -1)
    commit_ms[places] = _number(data, time_at, 8)
    return _ValueColumns(offset, epoch, commit_ms, good)


def _keys(data: memoryview, at: Ints, end: Ints, selected: Flags) -> tuple[list[GroupPartition], Ints, Flags]:
    """Return the selected records' distinct keys, each record's index into them, and whether its key is readable."""
    readable = np.ones(len(selected), dtype=bool)
    places = np.flatnonzero(selected)
    # Treat the piece as adjacent binary values, every second one a key: Arrow extracts them without a loop.
    # Decompressed payloads follow the window, so records are not always in this order.
    order = np.argsort(at[places], kind="stable") if len(places) else places
    borders = np.zeros(2 * len(places) + 1, dtype=np.int32)
    borders[1::2], borders[2::2] = at[places][order], end[places][order]
    if len(places) and not (np.diff(borders) >= 0).all():
        return [], np.zeros(0, dtype=np.int64), ~selected
    gaps = pa.Array.from_buffers(pa.binary(), 2 * len(places), [None, pa.py_buffer(borders), pa.py_buffer(data)])
    odd = pa.Array.from_buffers(
        pa.int64(), len(places), [None, pa.py_buffer(np.arange(1, 2 * len(places), 2, dtype=np.int64))]
    )
    distinct = gaps.take(odd).dictionary_encode()
    keys: list[GroupPartition] = []
    bad: list[int] = []
    for number, raw in enumerate(distinct.dictionary.to_pylist()):
        parsed = _parse_key(raw)
        if parsed is None:
            bad.append(number)
        keys.append(parsed or GroupPartition("", "", -1))
    sorted_codes = numbers(distinct.indices)
    codes = np.empty_like(sorted_codes)
    codes[order] = sorted_codes
    if bad:
        readable[places] = ~np.isin(codes, np.array(bad, dtype=np.int64))
    return keys, codes, readable


def _parse_key(raw: bytes) -> GroupPartition | None:
    """Parse a key like commit_key, with a fast path for ASCII names. Return None for an invalid key."""
    size = len(raw)
    topic_at = 6 + (raw[2] << 8 | raw[3]) if size >= 4 else size
    if topic_at <= size:
        end = topic_at + (raw[topic_at - 2] << 8 | raw[topic_at - 1])
        group, topic = raw[4 : topic_at - 2], raw[topic_at:end]
        if end + 4 <= size and group.isascii() and topic.isascii():
            partition = int.from_bytes(raw[end : end + 4], "big", signed=True)
            return GroupPartition(group.decode(), topic.decode(), partition)
    try:
        return commit_key(raw)
    except BadMessage:
        return None
