"""The values of --compression."""

from __future__ import annotations

from enum import Enum


class Compression(str, Enum):
    """The codec of record batches."""

    NONE = "none"
    GZIP = "gzip"
    SNAPPY = "snappy"
    LZ4 = "lz4"
    ZSTD = "zstd"
