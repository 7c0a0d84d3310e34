"""Which partition a key belongs to: as Java's producer decides it (org.apache.kafka.common.utils.Utils.murmur2)."""

from __future__ import annotations

from functools import lru_cache

from kctl.base.binary_layout import UINT32_LE

_M = 0x5BD1E995
_MASK = 0xFFFFFFFF
_SHORT = 64  # longer keys are not remembered: they may be of any size


def murmur2(data: bytes) -> int:
    """The 32-bit hash, unsigned."""
    length = len(data)
    whole = length & ~3
    h = 0x9747B28C ^ length
    for (k,) in UINT32_LE.iter_unpack(data[:whole]):
        mixed = k * _M & _MASK
        mixed ^= mixed >> 24
        h = (h * _M & _MASK) ^ (mixed * _M & _MASK)
    if whole < length:
        h ^= int.from_bytes(data[whole:], "little")
        h = h * _M & _MASK
    h ^= h >> 13
    h = h * _M & _MASK
    return h ^ h >> 15


def partition_of(key: bytes, partitions: int) -> int:
    """The partition of `key` in a topic with so many."""
    return (_remembered(key) if len(key) <= _SHORT else murmur2(key) & 0x7FFFFFFF) % partitions


@lru_cache(maxsize=1 << 15)
def _remembered(key: bytes) -> int:
    return murmur2(key) & 0x7FFFFFFF
