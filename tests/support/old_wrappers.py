"""Logs of magic 0 and 1 in many forms: wrappers as written by producers, brokers and tools, and damaged ones."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path

import lz4.frame

from java_dumps import Form
from segment_files import CODECS, compress

TIME = 1_460_000_000_000
APPEND_TIME = 8
Inner = tuple[int, bytes]


def message(
    magic: int, key: bytes | None, value: bytes | None, *, attributes: int = 0, timestamp: int = TIME, crc: int = 0
) -> bytes:
    """Return a message without offset and size. crc: added to its CRC."""
    body = struct.pack(">bb", magic, attributes)
    if magic == 1:
        body += struct.pack(">q", timestamp)
    body += _sized(key) + _sized(value)
    return struct.pack(">I", zlib.crc32(body) ^ crc) + body


def _sized(data: bytes | None) -> bytes:
    return struct.pack(">i", -1) if data is None else struct.pack(">i", len(data)) + data


def entry(offset: int, content: bytes, size: int | None = None) -> bytes:
    """Return a message in a log or a wrapper. size: the claimed one."""
    return struct.pack(">qi", offset, len(content) if size is None else size) + content


def wrapper(
    magic: int,
    offset: int,
    payload: bytes,
    *,
    codec: str = "gzip",
    attributes: int | None = None,
    key: bytes | None = None,
    raw: bool = False,
    timestamp: int = TIME + 9,
    crc: int = 0,
) -> bytes:
    """Return a compressed message. raw: the payload is already compressed."""
    value = payload if raw else squeezed(codec, payload, magic)
    bits = CODECS[codec] if attributes is None else attributes
    return entry(offset, message(magic, key, value, attributes=bits, timestamp=timestamp, crc=crc))


def squeezed(codec: str, payload: bytes, magic: int) -> bytes:
    """Compress like old producers: snappy in xerial's framing, lz4 in magic 0 with a wrong checksum (KAFKA-3160)."""
    data = compress(codec, payload)
    if codec == "snappy":
        return b"\x82SNAPPY\x00" + struct.pack(">iii", 1, 1, len(data)) + data
    if codec == "lz4" and magic == 0:
        return lz4_frame(payload, wrong=True)
    return data


def lz4_frame(payload: bytes, *, wrong: bool) -> bytes:
    """Return a frame of one block. wrong: the header checksum includes the magic number."""
    frame = lz4.frame.compress(payload, block_linked=False, store_size=False)
    flags = frame[4:6]
    check = _xxh32(frame[:4] + flags if wrong else flags) >> 8 & 0xFF
    return bytes(frame[:6] + bytes([check]) + frame[7:])


def _xxh32(data: bytes) -> int:
    """Return xxHash32 of fewer than 16 bytes, with seed 0."""
    p1, p2, p3, p4, p5 = 2654435761, 2246822519, 3266489917, 668265263, 374761393
    mask = 0xFFFFFFFF
    value, rest = (p5 + len(data)) & mask, data
    while len(rest) >= 4:
        value = (value + int.from_bytes(rest[:4], "little") * p3) & mask
        value = (value << 17 | value >> 15) & mask
        value, rest = value * p4 & mask, rest[4:]
    for byte in rest:
        value = (value + byte * p5) & mask
        value = (value << 11 | value >> 21) & mask
        value = value * p1 & mask
    value = (value ^ value >> 15) * p2 & mask
    value = (value ^ value >> 13) * p3 & mask
    return value ^ value >> 16


def inner(magics: Sequence[int], offsets: Sequence[int]) -> bytes:
    """Return messages for a wrapper."""
    return b"".join(
        entry(offset, message(magic, b"k%d" % number, b"value %d" % number, timestamp=TIME + number))
        for number, (magic, offset) in enumerate(zip(magics, offsets, strict=True))
    )


AFTER = entry(900, message(0, b"after", b"it"))  # records after damage are printed
MAGICS = {"0": (0, 0, 0), "1": (1, 1, 1), "0 and 1": (0, 1, 0), "1 and 0": (1, 0, 1)}
OFFSETS = {
    "relative": (0, 1, 2), "absolute": (100, 101, 102), "gaps": (0, 3, 7), "zeros": (0, 0, 0), "falling": (2, 1, 0),
    "late": (5, 6, 7), "negative": (-3, -2, -1),
}  # fmt: skip
OUTER = {"0": 0, "102": 102, "1": 1, "-1": -1, "5000000000": 5_000_000_000}


def forms(_kafka_home: Path) -> list[Form]:
    """Return all forms by name."""
    found = [*_table(), *_codecs(), *_times(), *_broken_inner(), *_broken_wrappers(), *_several(), *_alone()]
    assert len({form.name for form in found}) == len(found)
    return found


def _table() -> Iterator[Form]:
    """Yield the combinations of the magic of a wrapper, the magic of its messages, and offsets."""
    for magic, (name, magics), (kind, offsets), (outer, offset) in product(
        (0, 1), MAGICS.items(), OFFSETS.items(), OUTER.items()
    ):
        data = wrapper(magic, offset, inner(magics, offsets)) + AFTER
        yield Form(f"magic {name} in {magic}, offsets {kind}, wrapper at {outer}", data)


def _codecs() -> Iterator[Form]:
    for codec, magic, name in product(("snappy", "lz4"), (0, 1), MAGICS):
        data = wrapper(magic, 102, inner(MAGICS[name], (0, 1, 2)), codec=codec) + AFTER
        yield Form(f"{codec}, magic {name} in {magic}", data)
    for magic, wrong in product((0, 1), (False, True)):
        payload = lz4_frame(inner((magic, magic), (0, 1)), wrong=wrong)
        data = wrapper(magic, 1, payload, codec="lz4", raw=True) + AFTER
        yield Form(f"lz4 in magic {magic}, header checksum {'of KAFKA-3160' if wrong else 'right'}", data)
    for magic in (0, 1):
        raw = compress("snappy", inner((magic, magic), (0, 1)))
        yield Form(f"snappy without framing in magic {magic}", wrapper(magic, 1, raw, codec="snappy", raw=True) + AFTER)
        halves = [compress("gzip", inner((magic,), (number,))) for number in (0, 1)]
        data = wrapper(magic, 1, b"".join(halves), raw=True) + AFTER
        yield Form(f"two gzip members in magic {magic}", data)
        data = wrapper(magic, 1, halves[0] + b"garbage", raw=True) + AFTER
        yield Form(f"garbage behind gzip in magic {magic}", data)
        data = wrapper(magic, 1, compress("gzip", inner((magic,) * 9, range(9)))[:-12], raw=True) + AFTER
        yield Form(f"gzip cut off in magic {magic}", data)
        framed = lz4_frame(inner((magic,), (0,)), wrong=magic == 0)
        data = wrapper(magic, 1, framed + framed, codec="lz4", raw=True) + AFTER
        yield Form(f"two lz4 frames in magic {magic}", data)
        data = wrapper(magic, 1, framed[:-4], codec="lz4", raw=True) + AFTER
        yield Form(f"lz4 without its end mark in magic {magic}", data)
        data = wrapper(magic, 1, b"not compressed at all", codec="lz4", raw=True) + AFTER
        yield Form(f"no lz4 in magic {magic}", data)
        data = wrapper(magic, 1, b"not compressed at all", codec="snappy", raw=True) + AFTER
        yield Form(f"no snappy in magic {magic}", data)
        for number in (4, 5, 6, 7):
            data = wrapper(magic, 1, inner((magic,), (0,)), attributes=number) + AFTER
            yield Form(f"compression type {number} in magic {magic}", data)


def _times() -> Iterator[Form]:
    """Yield wrappers whose timestamp and timestamp type apply to the inner messages of magic 1."""
    for magic, name, kind, time in product((0, 1), MAGICS, (0, APPEND_TIME), (TIME + 9, -1, -2)):
        data = wrapper(magic, 102, inner(MAGICS[name], (0, 1, 2)), attributes=1 | kind, timestamp=time) + AFTER
        yield Form(f"magic {name} in {magic}, {'LogAppendTime' if kind else 'CreateTime'} of {time}", data)
    for magic in (0, 1):
        content = entry(0, message(1, b"k", b"v", attributes=APPEND_TIME, timestamp=77))
        yield Form(f"LogAppendTime in magic {magic} of CreateTime", wrapper(magic, 0, content) + AFTER)


def _broken_inner() -> Iterator[Form]:
    good = {magic: entry(0, message(magic, b"k", b"v")) for magic in (0, 1)}
    for outer, magic in product((0, 1), (0, 1)):
        plain, head = message(magic, b"key", b"value"), 14 if magic else 6
        broken = {
            "wrong CRC": entry(1, message(magic, b"k", b"v", crc=1)),
            "null key": entry(1, message(magic, None, b"v")),
            "null value": entry(1, message(magic, b"k", None)),
            "both null": entry(1, message(magic, None, None)),
            "empty": entry(1, message(magic, b"", b"")),
            "not UTF-8": entry(1, message(magic, b"\xff\xc0k", b"\xed\xa0\x80v")),
            "compressed": entry(1, message(magic, None, compress("gzip", good[magic]), attributes=1)),
            "codec 5": entry(1, message(magic, b"k", b"v", attributes=5)),
            "size 13": entry(1, plain, 13),
            "size 14": entry(1, plain, 14),
            "size 0": entry(1, plain, 0),
            "size negative": entry(1, plain, -5),
            "size too large": entry(1, plain, 4000),
            "size 2 GB": entry(1, plain, 2**31 - 1),
            "size too small": entry(1, plain, len(plain) - 1),
            "bytes behind the value": entry(1, plain + b"xx"),
            "14 bytes": entry(1, plain[:14]),
            "20 bytes": entry(1, (plain + bytes(20))[:20]),
            "key length too large": entry(1, plain[:head] + struct.pack(">i", 99) + plain[head + 4 :]),
            "key length -2": entry(1, plain[:head] + struct.pack(">i", -2) + plain[head + 4 :]),
            "value length too large": entry(1, plain[: head + 7] + struct.pack(">i", 99) + plain[head + 11 :]),
            "value length -2": entry(1, plain[: head + 7] + struct.pack(">i", -2) + plain[head + 11 :]),
            "magic 2": entry(1, plain[:4] + b"\2" + plain[5:]),
            "magic 3": entry(1, plain[:4] + b"\3" + plain[5:]),
            "magic -1": entry(1, plain[:4] + b"\xff" + plain[5:]),
            "unused attributes": entry(1, message(magic, b"k", b"v", attributes=0x70)),
            "a header that ends early": entry(1, plain)[:9],
            "nothing but a header": entry(1, plain)[:12],
            "cut off": entry(1, plain)[:-2],
        }
        for name, content in broken.items():
            for where in ("first", "last"):
                parts = [good[magic], content] if where == "last" else [content, entry(2, message(magic, b"k", b"w"))]
                data = wrapper(outer, 10, b"".join(parts)) + AFTER
                yield Form(f"magic {magic} in {outer}, {where}: {name}", data)


def _broken_wrappers() -> Iterator[Form]:
    for magic in (0, 1):
        payload = inner((magic, magic), (0, 1))
        yield Form(f"an empty wrapper of magic {magic}", wrapper(magic, 5, b"") + AFTER)
        yield Form(f"an empty value in magic {magic}", wrapper(magic, 5, b"", raw=True) + AFTER)
        null = entry(5, message(magic, None, None, attributes=1))
        yield Form(f"a wrapper of magic {magic} without a value", null + AFTER)
        yield Form(f"a wrapper of magic {magic} with a key", wrapper(magic, 5, payload, key=b"outer") + AFTER)
        yield Form(f"a wrapper of magic {magic} with a wrong CRC", wrapper(magic, 5, payload, crc=1) + AFTER)
        nested = wrapper(magic, 5, wrapper(magic, 1, payload)) + AFTER
        yield Form(f"a wrapper in a wrapper of magic {magic}", nested)
        deep = wrapper(magic, 5, wrapper(magic, 1, wrapper(magic, 1, payload))) + AFTER
        yield Form(f"three wrappers of magic {magic} in each other", deep)
        largest = wrapper(magic, 2**63 - 1, inner((magic, magic), (0, 2**63 - 1))) + AFTER
        yield Form(f"the largest offsets in magic {magic}", largest)
        smallest = wrapper(magic, -(2**63), inner((magic, magic), (-(2**63), -(2**63)))) + AFTER
        yield Form(f"the smallest offsets in magic {magic}", smallest)
        yield Form(f"offsets that overflow in magic {magic}", wrapper(magic, 2**63 - 1, inner((magic,), (-9,))) + AFTER)


def _several() -> Iterator[Form]:
    first, second = wrapper(0, 2, inner((0,) * 3, range(3))), wrapper(1, 5, inner((1,) * 3, range(3)))
    yield Form("a wrapper of magic 0, then of 1", first + second)
    yield Form("a wrapper, cut off", first + second[:-3])
    yield Form("a wrapper, zeros", first + bytes(100))
    yield Form("a wrapper, then garbage", first + b"\xaa" * 50)
    gap = wrapper(1, 50, inner((1, 1), (0, 1)))
    yield Form("wrappers with a gap between them", second + gap)
    yield Form("wrappers out of order", gap + second)
    yield Form("a wrapper twice", second + second)


def _alone() -> Iterator[Form]:
    """Yield messages that are not compressed."""
    for magic, attributes in product((0, 1), (0, APPEND_TIME, 0x70)):
        data = entry(7, message(magic, b"k", b"v", attributes=attributes)) + AFTER
        yield Form(f"magic {magic}, attributes {attributes}", data)
    for magic in (0, 1):
        plain, head = message(magic, b"key", b"value"), 14 if magic else 6
        yield Form(f"magic {magic}, both null", entry(7, message(magic, None, None)) + AFTER)
        yield Form(f"magic {magic}, wrong CRC", entry(7, message(magic, b"k", b"v", crc=1)) + AFTER)
        yield Form(f"magic {magic}, bytes behind the value", entry(7, plain + b"xx") + AFTER)
        for name, at in (("key", head), ("value", head + 7)):
            for length in (99, -2, 2**31 - 1):
                body = plain[4:at] + struct.pack(">i", length) + plain[at + 4 :]
                data = entry(7, struct.pack(">I", zlib.crc32(body)) + body) + AFTER
                yield Form(f"magic {magic}, {name} length {length}", data)
