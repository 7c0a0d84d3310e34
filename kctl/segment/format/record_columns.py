"""All records of a batch at once, by columns: several times faster than one after the other (record.records_of).

Records that follow each other mostly look alike: lengths of the same size stand at the same places. Such a run is cut
by one struct; what is left is parsed in one tight loop. Whatever is unusual makes both give up, and the caller takes
the plain way: there is one place that says what is right, and this one says the same or nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from struct import Struct
from typing import NamedTuple

from kctl.segment.format.batch import MAX_SEQUENCE, V2_HEADER, Batch
from kctl.segment.format.compression import BadPayload, decompress
from kctl.segment.format.record import BadRecords, Header, parse_headers

MOST_BYTES = 16 << 20
_SMALLEST_RUN = 8  # records; below that, a loop is faster
_MAX_DELTA = 1 << 13  # offset deltas that are varints of two bytes
_LONGEST_RUN = 1 << 12
_MOST_RECORDS = 1 << 17  # all of them are in memory at once
_FARTHEST = 2**62  # of offsets and times in ms: sums of these stay 64 bits wide
# What zigzag varints of one byte mean, for those that are not negative.
_HALVES = bytes(byte >> 1 for byte in range(256))
_EVEN = bytes(range(0, 128, 2))
_NULL = 1  # the varint of −1
# The varints of offset deltas 0, 1, 2, …: of one byte, and both bytes of two.
_ONE = bytes(delta << 1 for delta in range(64))
_LOW = bytes(delta << 1 & 0x7F | 0x80 for delta in range(_MAX_DELTA))
_HIGH = bytes(delta >> 6 for delta in range(_MAX_DELTA))


class Columns(NamedTuple):
    """A batch's records, first to last. offsets: absolute; timestamps: ms; headers: by number, of those that have any.

    consecutive: whether each offset is the one before plus 1. sizes: of key (−1: null) and value, when all records are
    known to have the same.
    """

    offsets: Sequence[int]
    timestamps: Sequence[int]
    keys: list[bytes | None]
    values: list[bytes | None]
    headers: dict[int, tuple[Header, ...]]
    consecutive: bool
    sizes: tuple[int, int] | None


def whole_payload(batch: Batch, content: memoryview, *, limit: int, most_bytes: int = MOST_BYTES) -> bytes | None:
    """What stands behind the header, decompressed; None when it is larger than most_bytes, or broken.

    content: the whole batch; limit: of what cannot be divided, as decompress has it.
    """
    if not batch.codec:
        return bytes(content[V2_HEADER:]) if len(content) <= most_bytes else None
    pieces: list[bytes] = []
    size = 0
    try:
        for piece in decompress(batch.codec, content[V2_HEADER:], magic=batch.magic, limit=limit):
            pieces.append(piece)
            size += len(piece)
            if size > most_bytes:
                return None
    except BadPayload:
        return None
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def record_columns(batch: Batch, payload: bytes) -> Columns | None:
    """The records of a batch of magic 2, or None when the plain way has to be taken.

    payload: what stands behind the header, decompressed.
    """
    count = batch.record_count
    if (
        not 1 <= count <= _MOST_RECORDS
        or count > len(payload)
        or not 0 <= batch.base_offset <= _FARTHEST
        or not 0 <= batch.base_timestamp <= _FARTHEST
    ):
        return None
    parser = _Parser(batch, payload)
    try:
        complete = parser.runs() and parser.rest()
    except (IndexError, BadRecords):
        return None
    return parser.columns() if complete else None


def ordinary_columns(batch: Batch, payload: bytes) -> Columns | None:
    """As record_columns, where every record makes the same line: without headers, and with sequence numbers that do not
    begin at 0 again."""
    if batch.base_sequence >= 0 and batch.base_sequence + batch.last_offset_delta > MAX_SEQUENCE:
        return None
    columns = record_columns(batch, payload)
    return None if columns is None or columns.headers else columns


class _Parser:
    """consecutive: all offset deltas so far are one run; deltas: of its pieces, or of single records."""

    def __init__(self, batch: Batch, payload: bytes) -> None:
        self._batch, self._data = batch, payload
        self._position = 0
        self._start = batch.base_timestamp
        self._consecutive = True
        self._next_delta = -1
        self._deltas: list[Sequence[int]] = []
        self._times: list[int] = []
        self._keys: list[bytes | None] = []
        self._values: list[bytes | None] = []
        self._headers: dict[int, tuple[Header, ...]] = {}
        self._sizes: tuple[int, int] | None = None

    def columns(self) -> Columns:
        batch, count = self._batch, len(self._keys)
        base, first = batch.base_offset, self._deltas[0][0]
        offsets: Sequence[int] = range(base + first, base + first + count)
        if not self._consecutive:
            offsets = [base + delta for piece in self._deltas for delta in piece]
        times = [batch.max_timestamp] * count if batch.log_append_time else self._times
        return Columns(offsets, times, self._keys, self._values, self._headers, self._consecutive, self._sizes)

    def _add_deltas(self, piece: Sequence[int], *, consecutive: bool) -> None:
        """consecutive: within the piece."""
        if not piece:
            return
        if self._deltas and piece[0] != self._next_delta:
            self._consecutive = False
        self._consecutive &= consecutive
        self._next_delta = piece[-1] + 1
        self._deltas.append(piece)

    def runs(self) -> bool:
        """Take runs while they are long enough. False when the records do not fit."""
        left = self._batch.record_count - len(self._keys)
        while left >= _SMALLEST_RUN:
            taken = self._run(left)
            if taken < _SMALLEST_RUN:
                break
            left -= taken
        return True

    def _run(self, left: int) -> int:
        """Take the records that look like the one that follows; how many.

        length | attributes | time | offset | key length, key | value length, value | number of headers
        """
        data, start = self._data, self._position
        # The first one: where is what? Numbers of one or two bytes.
        length = data[start]
        time_at = start + 2
        if length >= 0x80:
            length, time_at = length & 0x7F | data[start + 1] << 7, start + 3
        offset_at = time_at + (1 if data[time_at] < 0x80 else 2)
        key_length_at = offset_at + (1 if data[offset_at] < 0x80 else 2)
        key_byte = data[key_length_at]
        key_length = 0 if key_byte == _NULL else key_byte >> 1
        key_end = key_length_at + 1 + key_length
        value_length, value_at = data[key_end], key_end + 1
        if value_length >= 0x80:
            value_length, value_at = value_length & 0x7F | data[value_at] << 7, value_at + 1
        size = value_at + (value_length >> 1) + 1 - start
        if (
            length != (size - (time_at - 1 - start)) << 1
            or length >= 1 << 14
            or (key_byte & 0x81 and key_byte != _NULL)  # longer than 63 bytes
            or value_length & 1
        ):
            return 0
        value_length >>= 1
        # How far are those bytes the same, record by record, that say where everything is?
        count = min(left, _LONGEST_RUN, (len(data) - start) // size)
        if data[start + size - 1]:
            return 0
        for column in (*range(start, time_at - 1), key_length_at, *range(key_end, value_at), start + size - 1):
            same = data[column : column + size * count : size]
            if same.count(same[0]) != count:
                count -= len(same.lstrip(same[:1]))
        if count < _SMALLEST_RUN:
            return 0
        deltas = self._run_deltas(offset_at, key_length_at - offset_at, size, count)
        times = self._run_times(time_at, offset_at - time_at, size, len(deltas))
        count = len(times)
        self._add_deltas(deltas[:count], consecutive=True)
        self._times += times
        cut = _layout(key_length_at + 1 - start, key_length, value_at - key_end, value_length, count)
        flat = cut.unpack_from(data, start)
        self._keys += [None] * count if key_byte == _NULL else flat[0::2]
        self._values += flat[1::2]
        sizes = -1 if key_byte == _NULL else key_length, value_length
        self._sizes = sizes if not start or self._sizes == sizes else None
        self._position = start + size * count
        return count

    def _run_deltas(self, at: int, width: int, size: int, count: int) -> range:
        data = self._data
        end = at + size * (count - 1) + 1
        if width == 1:
            first, column = data[at] >> 1, data[at:end:size]
            count = _common(column, _ONE[first : first + count])
            if data[at] & 1:
                count = 0
            return range(first, first + count)
        first = (data[at] & 0x7F) >> 1 | data[at + 1] << 6
        if data[at] & 1 or data[at + 1] >= 0x80:
            return range(0)
        count = _common(data[at:end:size], _LOW[first : first + count])
        count = min(count, _common(data[at + 1 : end + 1 : size], _HIGH[first : first + count]))
        return range(first, first + count)

    def _run_times(self, at: int, width: int, size: int, count: int) -> list[int]:
        data, start = self._data, self._start
        end = at + size * (count - 1) + 1
        if count == 0:
            return []
        low = data[at:end:size]
        if width == 1:
            if not low.isascii():
                low = low[: next(i for i, byte in enumerate(low) if byte >= 0x80)]
            if not low.translate(None, _EVEN):
                return [start + byte for byte in low.translate(_HALVES)]
            return [start + (byte >> 1 ^ -(byte & 1)) for byte in low]
        high = data[at + 1 : end + 1 : size]
        if min(low) < 0x80 or not high.isascii():
            return []
        return [start + (((a & 0x7F) >> 1 | b << 6) ^ -(a & 1)) for a, b in zip(low, high, strict=True)]

    def rest(self) -> bool:  # noqa: C901, PLR0912, PLR0915 - calls cost more than all else here
        """Parse what is left, record by record. False when it is not as it should be. Raises IndexError, BadRecords."""
        data, position = self._data, self._position
        deltas: list[int] = []
        add_delta, add_time, start_time = deltas.append, self._times.append, self._start
        add_key, add_value = self._keys.append, self._values.append
        if len(self._keys) < self._batch.record_count:
            self._sizes = None
        for number in range(len(self._keys), self._batch.record_count):
            byte = data[position]  # the record's length
            position += 1
            if byte >= 0x80:
                second = data[position]
                position += 1
                if second >= 0x80:
                    third = data[position]
                    position += 1
                    if third >= 0x80:
                        return False
                    byte = byte & 0x7F | (second & 0x7F) << 7 | third << 14
                else:
                    byte = byte & 0x7F | second << 7
            if byte & 1:
                return False
            end = position + (byte >> 1)
            byte = data[position + 1]  # behind the attributes: the time
            position += 2
            if byte >= 0x80:
                byte &= 0x7F
                shift = 7
                while True:
                    second = data[position]
                    position += 1
                    byte |= (second & 0x7F) << shift
                    if second < 0x80:
                        break
                    shift += 7
                    if shift > 56:
                        return False
            add_time(start_time + (byte >> 1 ^ -(byte & 1)))
            byte = data[position]  # the offset
            position += 1
            if byte >= 0x80:
                second = data[position]
                position += 1
                if second >= 0x80:
                    third = data[position]
                    position += 1
                    if third >= 0x80:
                        return False
                    byte = byte & 0x7F | (second & 0x7F) << 7 | third << 14
                else:
                    byte = byte & 0x7F | second << 7
            if byte & 1:
                return False
            add_delta(byte >> 1)
            byte = data[position]  # the key
            position += 1
            if byte >= 0x80:
                second = data[position]
                position += 1
                if second >= 0x80:
                    return False
                byte = byte & 0x7F | second << 7
            if byte & 1:
                if byte != _NULL:
                    return False
                add_key(None)
            else:
                start = position
                position += byte >> 1
                add_key(data[start:position])
            byte = data[position]  # the value
            position += 1
            if byte >= 0x80:
                second = data[position]
                position += 1
                if second >= 0x80:
                    third = data[position]
                    position += 1
                    if third >= 0x80:
                        return False
                    byte = byte & 0x7F | (second & 0x7F) << 7 | third << 14
                else:
                    byte = byte & 0x7F | second << 7
            if byte & 1:
                if byte != _NULL:
                    return False
                add_value(None)
            else:
                start = position
                position += byte >> 1
                add_value(data[start:position])
            if data[position]:
                self._headers[number], position = parse_headers(memoryview(data)[:end], position)
            else:
                position += 1
            if position != end:
                return False
        if deltas:
            first = deltas[0]
            self._add_deltas(deltas, consecutive=deltas == list(range(first, first + len(deltas))))
        return position == len(data)


def _common(one: bytes, other: bytes) -> int:
    """The length of what both begin with."""
    if one == other:
        return len(one)
    return next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


@lru_cache(maxsize=256)
def _layout(key_at: int, key_size: int, value_length_size: int, value_size: int, count: int) -> Struct:
    return Struct(f"{key_at}x{key_size}s{value_length_size}x{value_size}s1x" * count)
