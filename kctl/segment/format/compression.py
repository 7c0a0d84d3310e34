"""Decompress batches piece by piece, so that a small file cannot exhaust memory.

Codecs: gzip (RFC 1952); snappy, raw (librdkafka) or with xerial's framing (Java); lz4 frames, in magic 0 with the
header checksum of KAFKA-3160; zstd (RFC 8878).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from kctl.base.binary_layout import INT32, LITTLE_ENDIAN, UINT8, UINT32, UINT32_LE, Layout
from kctl.errors import NotSupported
from kctl.segment.format.batch import CODECS

PIECE_BYTES = 1 << 20
_PART_BYTES = 16 << 10
GZIP, SNAPPY, LZ4, ZSTD = 1, 2, 3, 4
_GZIP_MAGIC = b"\x1f\x8b\x08"
_MIN_GZIP = 18  # java.util.zip.GZIPInputStream ignores fewer bytes
_XERIAL = b"\x82SNAPPY\x00"
_XERIAL_HEADER = 16  # magic, version, compatible version
_SNAPPY_RATIO = 64  # the longest copy yields 64 bytes from 3
_SNAPPY_SLACK = 1024
_LZ4_MAGIC = 0x184D2204
# The start of an LZ4 frame. A flag adds a content size (8 bytes) before the checksum.
_LZ4_FRAME = Layout(
    LITTLE_ENDIAN,
    magic=UINT32,
    flags=UINT8,
    block_descriptor=UINT8,  # bits 4-6: maximum block size
    header_checksum=UINT8,
)
_LZ4_VERSION, _LZ4_VERSION_1 = 0xC0, 0x40
_LZ4_INDEPENDENT, _LZ4_RESERVED, _LZ4_RESERVED_BLOCK = 0x20, 0x03, 0x8F
_LZ4_BLOCK_SIZES = {4: 64 << 10, 5: 256 << 10, 6: 1 << 20, 7: 4 << 20}


class BadPayload(ValueError):
    """The payload cannot be decompressed. The message is the reason."""


def decompress(codec: int, data: memoryview, *, magic: int, limit: int) -> Iterator[bytes]:
    """Yield the decompressed content in pieces of about PIECE_BYTES, up to any damage.

    limit: maximum bytes of an indivisible piece (a snappy or lz4 block). Raises BadPayload, and NotSupported if the
    library of the codec is not installed.
    """
    reader = _CODECS.get(codec)
    if reader is None:
        raise BadPayload(f"unknown compression type {codec}")
    yield from reader(data, magic, limit)


def _library(name: str, codec: int) -> None:
    if find_spec(name) is None:
        raise NotSupported(
            f"the {CODECS[codec]} library is not installed",
            hint="install kctl with its codecs: `pip install 'kctl[codecs]'`",
        )


def _zlib() -> Any:
    """Return isal's zlib, or Python's zlib: the same interface at half the speed."""
    return import_module("isal.isal_zlib" if find_spec("isal") else "zlib")


def _gzip(data: memoryview, _magic: int, _limit: int) -> Iterator[bytes]:
    zlib = _zlib()
    member, started, end = zlib.decompressobj(31), False, 0
    for part in _parts(data):
        pending: bytes | memoryview = part
        end += len(part)
        while len(pending) or started:
            started = True
            try:
                piece = member.decompress(pending, PIECE_BYTES)
            except zlib.error as exc:
                raise BadPayload(f"not gzip: {exc}") from None
            if piece:
                yield piece
            pending = member.unconsumed_tail
            if member.eof:  # another member may follow
                pending = member.unused_data
                if not _gzip_follows(data[end - len(pending) :]):
                    return
                member, started = zlib.decompressobj(31), False
            elif not pending and len(piece) < PIECE_BYTES:
                break  # needs more input
    if started:
        raise BadPayload("gzip ends too early")


def _gzip_follows(rest: memoryview) -> bool:
    """Return True if another member starts here. Like Java, ignore anything else after a member."""
    return len(rest) > _MIN_GZIP and bytes(rest[:3]) == _GZIP_MAGIC


def _parts(data: memoryview) -> Iterator[memoryview]:
    """Split compressed data. The bytes after each frame are copied, so large parts with many frames would be slow."""
    return (data[at : at + _PART_BYTES] for at in range(0, len(data), _PART_BYTES))


def _zstd(data: memoryview, _magic: int, _limit: int) -> Iterator[bytes]:
    _library("zstandard", ZSTD)
    import zstandard

    # Decompression needs the window in memory: at most 128 MB, as in Java's library (ZSTD_WINDOWLOG_LIMIT_DEFAULT).
    reader = zstandard.ZstdDecompressor(max_window_size=1 << 27).stream_reader(data, read_across_frames=True)
    try:
        while piece := reader.read(PIECE_BYTES):
            yield piece
    except zstandard.ZstdError as exc:
        raise BadPayload(f"not zstd: {exc}") from None


def _snappy(data: memoryview, _magic: int, limit: int) -> Iterator[bytes]:
    _library("cramjam", SNAPPY)
    if bytes(data[:8]) != _XERIAL:
        yield _snappy_block(data, limit)
        return
    position = _XERIAL_HEADER
    while position < len(data):
        if position + 4 > len(data):
            raise BadPayload("xerial snappy ends within a length")
        (length,) = INT32.unpack_from(data, position)
        position += 4
        if length < 0 or position + length > len(data):
            raise BadPayload(f"xerial snappy has a block of {length} bytes, but only {len(data) - position} are left")
        yield _snappy_block(data[position : position + length], limit)
        position += length


def _snappy_block(block: memoryview, limit: int) -> bytes:
    import cramjam

    try:
        claimed = cramjam.snappy.decompress_raw_len(block)
        if claimed > len(block) * _SNAPPY_RATIO + _SNAPPY_SLACK or claimed > limit:
            raise BadPayload(f"a snappy block of {len(block)} bytes claims to contain {claimed} bytes")
        return bytes(cramjam.snappy.decompress_raw(block))
    except cramjam.DecompressionError as exc:
        raise BadPayload(f"not snappy: {exc}") from None


def _lz4(data: memoryview, magic: int, _limit: int) -> Iterator[bytes]:
    _library("lz4", LZ4)
    _check_lz4(data)
    if magic == 0:
        yield from _lz4_blocks(data)
        return
    import lz4.frame

    frame = lz4.frame.LZ4FrameDecompressor()
    for part in _parts(data):
        pending: bytes | memoryview = part
        while len(pending) or not frame.needs_input:
            try:
                piece = frame.decompress(pending, PIECE_BYTES)
            except (RuntimeError, EOFError) as exc:
                raise BadPayload(f"not lz4: {exc}") from None
            pending = b""
            if piece:
                yield piece
            if frame.eof:  # Java reads one frame
                return
    raise BadPayload("lz4 ends too early")


def _check_lz4(data: memoryview) -> None:
    """Raise BadPayload for a frame that Kafka's clients and brokers reject (Lz4BlockInputStream)."""
    if len(data) < _LZ4_FRAME.size:
        raise BadPayload("not an lz4 frame")
    magic, flags, block, _ = _LZ4_FRAME.unpack_from(data)
    if magic != _LZ4_MAGIC:
        raise BadPayload("not an lz4 frame")
    if flags & _LZ4_VERSION != _LZ4_VERSION_1 or flags & _LZ4_RESERVED or block & _LZ4_RESERVED_BLOCK:
        raise BadPayload("the lz4 frame has an unknown descriptor")
    if not flags & _LZ4_INDEPENDENT:
        raise BadPayload("the lz4 frame has dependent blocks, which Kafka does not support")
    if (block >> 4) & 7 not in _LZ4_BLOCK_SIZES:
        raise BadPayload(f"unknown lz4 block size {(block >> 4) & 7}")


def _lz4_blocks(data: memoryview) -> Iterator[bytes]:
    """Decompress a frame with a wrong header checksum (KAFKA-3160) block by block; blocks are independent."""
    import lz4.block

    _, flags, descriptor, _ = _LZ4_FRAME.unpack_from(data)
    max_block = _LZ4_BLOCK_SIZES[(descriptor >> 4) & 7]
    position = _LZ4_FRAME.size + (8 if flags & 0x08 else 0)  # a content size may follow
    while True:
        if position + 4 > len(data):
            raise BadPayload("lz4 ends too early")
        (length,) = UINT32_LE.unpack_from(data, position)
        position += 4
        if length == 0:
            return
        stored, length = bool(length & 0x80000000), length & 0x7FFFFFFF
        if length > max_block + 16 or position + length > len(data):
            raise BadPayload(f"an lz4 block of {length} bytes does not fit")
        block = data[position : position + length]
        try:
            yield bytes(block) if stored else lz4.block.decompress(block, uncompressed_size=max_block)
        except lz4.block.LZ4BlockError as exc:
            raise BadPayload(f"not lz4: {exc}") from None
        position += length + (4 if flags & 0x10 else 0)  # a block checksum may follow


_CODECS: dict[int, Callable[[memoryview, int, int], Iterator[bytes]]] = {
    GZIP: _gzip,
    SNAPPY: _snappy,
    LZ4: _lz4,
    ZSTD: _zstd,
}
