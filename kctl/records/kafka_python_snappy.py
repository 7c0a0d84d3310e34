"""Snappy for kafka-python through cramjam: kafka-python only supports python-snappy, which needs a C library.

kafka-python does the framing (xerial's, as in Java clients). It calls compress and decompress for raw blocks, the two
functions in this module.
"""

from __future__ import annotations

# A raw block begins with its decompressed length as a varint. A copy element yields at most 64 bytes from 3, so a
# length of more than 64 times the block is invalid. Trusting it would allocate that much memory.
_MAX_RATIO = 64
_SLACK = 1024


class RawSnappy:
    """The part of python-snappy's interface that kafka-python calls."""

    @staticmethod
    def compress(data: bytes) -> bytes:
        """Return one raw block."""
        import cramjam

        return bytes(cramjam.snappy.compress_raw(data))

    @staticmethod
    def decompress(data: bytes) -> bytes:
        """Return the content of one raw block. Raises ValueError for invalid blocks and impossible lengths."""
        import cramjam

        try:
            if cramjam.snappy.decompress_raw_len(data) > len(data) * _MAX_RATIO + _SLACK:
                raise ValueError("impossible length of a snappy block")
            return bytes(cramjam.snappy.decompress_raw(data))
        except cramjam.DecompressionError as exc:
            raise ValueError(f"not a snappy block: {exc}") from None


def prepare_codecs() -> None:
    """Add snappy to kafka-python if it has none and cramjam is installed. Call it before creating a client."""
    from importlib.util import find_spec

    from kafka import codec

    if codec.snappy is None and find_spec("cramjam") is not None:
        codec.snappy = RawSnappy
