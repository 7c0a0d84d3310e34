"""The text of a batch's records in one tight loop: what record_text and the string decoder make, several times faster.

For batches of magic 2 that are no control batches, with UTF-8 in keys and values. Whatever is unusual (headers that
must be shown, malformed UTF-8, a record that does not fit) makes it give up, and the plain way is taken for the batch:
there is one place that says what is right, and this one says the same or nothing.

The payload is looked at as Latin-1 text: every byte is a character, slices are cheap, and a slice knows whether it is
ASCII. Encoding the result as Latin-1 gives the bytes back as they were.
"""

from __future__ import annotations

from typing import NamedTuple

from kctl.segment.batch import Batch


class FastText(NamedTuple):
    """lines: with their newlines. gaps: (offset, the one that follows) where it is not the next one."""

    lines: bytes
    first_offset: int
    last_offset: int
    gaps: list[tuple[int, int]]


def records_text(  # noqa: C901, PLR0912, PLR0915 - calls cost more than all else here
    batch: Batch, payload: bytes, *, contents: bool, metadata: bool
) -> FastText | None:
    """The lines of all records, or None when the plain way has to be taken.

    payload: what stands behind the header, decompressed. contents: with key and value (string decoder).
    metadata: with offset, time and sizes.
    """
    text = payload.decode("latin-1")
    append_time = batch.log_append_time
    kind = " LogAppendTime: " if append_time else " CreateTime: "
    base_offset, base_timestamp = batch.base_offset, batch.base_timestamp
    base_sequence, fixed_time = batch.base_sequence, str(batch.max_timestamp)
    sequenced = base_sequence >= 0
    if sequenced and base_sequence + batch.last_offset_delta > 2**31 - 1:
        return None
    position, end, count = 0, len(payload), batch.record_count
    if count < 1 or base_offset < 0 or base_timestamp < 0 or base_timestamp > 2**62 or base_offset > 2**62:
        return None
    lines: list[str] = []
    append = lines.append
    last_key, last_value, sizes = -2, -2, ""
    data = payload
    first = expected = -1
    gaps: list[tuple[int, int]] = []
    try:
        for _ in range(count):
            # length
            byte = data[position]
            position += 1
            if byte >= 0x80:
                second = data[position]
                position += 1
                if second >= 0x80:
                    third = data[position]
                    position += 1
                    if third >= 0x80:
                        return None
                    byte = byte & 0x7F | (second & 0x7F) << 7 | third << 14
                else:
                    byte = byte & 0x7F | second << 7
            if byte & 1:
                return None
            record_end = position + (byte >> 1)
            position += 1  # attributes
            # timestamp delta
            byte = data[position]
            position += 1
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
                        return None
            timestamp = base_timestamp + ((byte >> 1) ^ -(byte & 1))
            # offset delta
            byte = data[position]
            position += 1
            if byte >= 0x80:
                second = data[position]
                position += 1
                if second >= 0x80:
                    third = data[position]
                    position += 1
                    if third >= 0x80:
                        return None
                    byte = byte & 0x7F | (second & 0x7F) << 7 | third << 14
                else:
                    byte = byte & 0x7F | second << 7
            if byte & 1:
                return None
            delta = byte >> 1
            if delta != expected:
                if expected < 0:
                    first = delta
                else:
                    gaps.append((base_offset + expected - 1, base_offset + delta))
            expected = delta + 1
            # key
            byte = data[position]
            position += 1
            if byte >= 0x80:
                second = data[position]
                position += 1
                if second >= 0x80:
                    return None
                byte = byte & 0x7F | second << 7
            if byte == 1:
                key_size, key = -1, None
            elif byte & 1:
                return None
            else:
                key_size = byte >> 1
                key = text[position : position + key_size]
                position += key_size
            # value
            byte = data[position]
            position += 1
            if byte >= 0x80:
                second = data[position]
                position += 1
                if second >= 0x80:
                    third = data[position]
                    position += 1
                    if third >= 0x80:
                        return None
                    byte = byte & 0x7F | (second & 0x7F) << 7 | third << 14
                else:
                    byte = byte & 0x7F | second << 7
            if byte == 1:
                value_size, value = -1, None
            elif byte & 1:
                return None
            else:
                value_size = byte >> 1
                value = text[position : position + value_size]
                position += value_size
            # headers
            if data[position] or position + 1 != record_end:
                return None
            position = record_end
            if metadata:
                if value_size != last_value or key_size != last_key:
                    last_key, last_value = key_size, value_size
                    sizes = f" keySize: {key_size} valueSize: {value_size} sequence: "
                sequence = base_sequence + delta if sequenced else -1
                shown = fixed_time if append_time else timestamp
                line = f"| offset: {base_offset + delta}{kind}{shown}{sizes}{sequence} headerKeys: []"
            else:
                line = ""
            if contents:
                if key is not None:
                    if not (key.isascii() or _is_utf8(key)):
                        return None
                    line += f" key: {key}" if metadata else f"| key: {key}"
                if value is not None:
                    if not (value.isascii() or _is_utf8(value)):
                        return None
                    line += f" payload: {value}"
            append(line)
    except IndexError:
        return None
    if position != end:
        return None
    append("")
    return FastText("\n".join(lines).encode("latin-1"), base_offset + first, base_offset + expected - 1, gaps)


def _is_utf8(text: str) -> bool:
    try:
        text.encode("latin-1").decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True
