"""Snappy for kafka-python, by cramjam: kafka-python itself only knows python-snappy, which needs a C library.

kafka-python does the framing (xerial's, as Java clients write it); what it calls are compress and decompress of
raw blocks, the two functions here.
"""

from __future__ import annotations

# A raw block begins with its decompressed length as a varint. The format's longest copy yields 64 bytes from 3,
# so a length beyond 64 times the block is a lie, told to make the reader allocate it.
_MAX_RATIO = 64
_SLACK = 1024


class RawSnappy:
    """The part of python-snappy's interface that kafka-python calls."""

    @staticmethod
    def compress(data: bytes) -> bytes:
        """One raw block."""
        import cramjam

        return bytes(cramjam.snappy.compress_raw(data))

    @staticmethod
    def decompress(data: bytes) -> bytes:
        """One raw block's content. Raises ValueError for bytes that are none, or claim a length that cannot be."""
        import cramjam

        try:
            if cramjam.snappy.decompress_raw_len(data) > len(data) * _MAX_RATIO + _SLACK:
                raise ValueError("a snappy block claims a length that it cannot have")
            return bytes(cramjam.snappy.decompress_raw(data))
        except cramjam.DecompressionError as exc:
            raise ValueError(f"not a snappy block: {exc}") from None


def prepare_codecs() -> None:
    """Give kafka-python snappy when it has none and cramjam is installed; before a producer or consumer is made."""
    from importlib.util import find_spec

    from kafka import codec

    if codec.snappy is None and find_spec("cramjam") is not None:
        codec.snappy = RawSnappy
