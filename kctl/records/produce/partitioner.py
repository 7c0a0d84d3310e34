"""The partition of a key, as in Java's producer (org.apache.kafka.common.utils.Utils.murmur2)."""

from __future__ import annotations

from functools import lru_cache

from kctl.base.binary_layout import UINT32_LE

_M = 0x5BD1E995
_MASK = 0xFFFFFFFF
_MAX_CACHED = 64  # bytes; longer keys are not cached, to limit memory


def murmur2(data: bytes) -> int:
    """Return the unsigned 32-bit hash."""
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
    """Return the partition of `key` in a topic with this many partitions."""
    return (_cached_hash(key) if len(key) <= _MAX_CACHED else murmur2(key) & 0x7FFFFFFF) % partitions


@lru_cache(maxsize=1 << 15)
def _cached_hash(key: bytes) -> int:
    return murmur2(key) & 0x7FFFFFFF
