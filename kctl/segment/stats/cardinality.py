"""Keys of a log in bounded memory: distinct keys, the hottest keys, and superseded records.

Exact while all keys fit; beyond that:

- distinct keys: the first keys are counted, the others are estimated from their smallest hashes
  (bottom-k sketch: Bar-Yossef et al. 2002; relative standard error 1/√k);
- hottest keys: a Misra–Gries summary (the same guarantee as Space-Saving, Agarwal et al. 2012): a count is at most
  `error` too low, and no key with more records than that is missing;
- superseded records: of the first keys only, so a lower bound.

Kafka's cleaner keeps an MD5 and an offset of every key, 24 bytes (SkimpyOffsetMap, OffsetMap.bytesPerEntry); here
short keys are stored unchanged, and long keys as their beginning and their MD5.
"""

from __future__ import annotations

import hashlib
import heapq
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

ENTRY_BYTES = 240  # memory per key, measured with keys of 16 to 48 bytes, while a dict grows
SKETCH_HASHES = 1 << 14
HOT_KEYS = 1 << 16
_HASH_BYTES = 8
_PREFIX_BYTES = 32
IDENTITY_BYTES = _PREFIX_BYTES + 16
_HASH_RANGE = 1 << (8 * _HASH_BYTES)


def identity(key: bytes) -> bytes:
    """Return the identity of a key: the key itself below 48 bytes, otherwise its first 32 bytes and its MD5."""
    if len(key) < IDENTITY_BYTES:
        return key
    return key[:_PREFIX_BYTES] + hashlib.md5(key, usedforsecurity=False).digest()


def displayed_part(key_identity: bytes) -> tuple[bytes, bool]:
    """Return the key or its beginning, and True if it is cut; it is cut after a UTF-8 character."""
    if len(key_identity) < IDENTITY_BYTES:
        return key_identity, False
    begin = key_identity[:_PREFIX_BYTES]
    whole = begin.decode("utf-8", "ignore").encode()
    return (whole if begin.startswith(whole) and len(begin) - len(whole) < 4 else begin), True


class HotKey(NamedTuple):
    """The identity of a key, and the minimum number of its records."""

    identity: bytes
    records: int


class HotKeys:
    """The keys with the most records. error: a count is at most this much too low; 0: exact."""

    def __init__(self, capacity: int = HOT_KEYS) -> None:
        self._capacity = capacity
        self._counts: Counter[bytes] = Counter()
        self.error = 0

    def add(self, keys: Iterable[bytes]) -> None:
        """Count each key."""
        self._counts.update(keys)
        if len(self._counts) > 2 * self._capacity:
            self._shrink()

    def _shrink(self) -> None:
        """Subtract the count of the first key beyond the capacity from all counts, and drop keys that reach 0."""
        cut = _nth_largest(Counter(self._counts.values()), self._capacity + 1)
        self._counts = Counter({key: count - cut for key, count in self._counts.items() if count > cut})
        self.error += cut

    def top(self, number: int) -> list[HotKey]:
        """Return the hottest keys, most records first, ties by key."""
        items = heapq.nsmallest(number, self._counts.items(), key=lambda item: (-item[1], item[0]))
        return [HotKey(*item) for item in items]


def _nth_largest(frequencies: Mapping[int, int], number: int) -> int:
    """Return the nth largest value. frequencies: value → number of occurrences."""
    for value in sorted(frequencies, reverse=True):
        number -= frequencies[value]
        if number <= 0:
            return value
    return 0


class DistinctSketch:
    """An estimate of the number of distinct values from their smallest hashes. Exact up to `size` values or more."""

    def __init__(self, size: int = SKETCH_HASHES) -> None:
        self._size = size
        self._smallest: set[bytes] = set()
        self._limit: bytes | None = None  # hashes from here on are omitted

    def add(self, values: Collection[bytes]) -> None:
        """Add values; repeated values change nothing."""
        hashes = {hashlib.md5(value, usedforsecurity=False).digest()[:_HASH_BYTES] for value in values}
        limit = self._limit
        self._smallest |= hashes if limit is None else {each for each in hashes if each < limit}
        if len(self._smallest) > 2 * self._size:
            self._shrink()

    def _shrink(self) -> None:
        if len(self._smallest) > self._size:
            smallest = heapq.nsmallest(self._size + 1, self._smallest)
            self._limit = smallest.pop()
            self._smallest = set(smallest)

    def estimate(self) -> int:
        """Return the number of distinct values, about ± `relative_error`."""
        if self._limit is None:
            return len(self._smallest)
        self._shrink()
        return round(self._size * _HASH_RANGE / int.from_bytes(self._limit, "big"))

    @property
    def relative_error(self) -> float:
        """Return one standard deviation as a share; 0.0: exact."""
        return 0.0 if self._limit is None else self._size**-0.5

    @property
    def empty(self) -> bool:
        """Return True if no value was added."""
        return not self._smallest


class Superseded(NamedTuple):
    """The number of records that a later record with the same key supersedes, and their bytes."""

    records: int = 0
    size_bytes: int = 0


NOTHING = Superseded()


class KeyTable:
    """The latest record of each key of one log; records are added in log order. max_keys: maximum number of keys."""

    def __init__(self, max_keys: int) -> None:
        self._max_keys = max_keys
        self._latest: dict[bytes, int] = {}  # identity → bytes of the latest record
        self._tracked = self._tracked_bytes = 0
        self._aborted: set[bytes] = set()
        self._others = DistinctSketch()
        self.full = False

    def add(self, keys: Sequence[bytes], sizes: Sequence[int]) -> None:
        """Add records: identities of keys, and bytes."""
        if not self.full:
            self._track(keys, sizes)
            self.full = len(self._latest) >= self._max_keys
            return
        latest = self._latest
        tracked = [(key, size) for key, size in zip(keys, sizes, strict=True) if key in latest]
        if len(tracked) < len(keys):
            self._others.add({key for key in keys if key not in latest})
        self._track([key for key, _ in tracked], [size for _, size in tracked])

    def add_aborted(self, keys: Iterable[bytes]) -> None:
        """Add keys of aborted records, which supersede nothing."""
        self._aborted.update(keys)
        if len(self._aborted) > self._max_keys:
            self._others.add([key for key in self._aborted if key not in self._latest])
            self._aborted.clear()

    def _track(self, keys: Sequence[bytes], sizes: Sequence[int]) -> None:
        self._latest.update(zip(keys, sizes, strict=True))
        self._tracked += len(keys)
        self._tracked_bytes += sum(sizes)

    def superseded(self) -> Superseded:
        """Return the superseded records so far; a lower bound if not all keys fit (`overflown`)."""
        return Superseded(self._tracked - len(self._latest), self._tracked_bytes - sum(self._latest.values()))

    @property
    def overflown(self) -> bool:
        """Return True if some keys did not fit."""
        return not self._others.empty

    def distinct(self) -> tuple[int, float]:
        """Return the number of distinct keys, and its standard error as a share; 0.0: exact."""
        if self._others.empty:
            return len(self._latest) + sum(key not in self._latest for key in self._aborted), 0.0
        self._others.add([key for key in self._aborted if key not in self._latest])
        others = self._others.estimate()
        total = len(self._latest) + others
        return total, round(self._others.relative_error * others / total, 6) if total else 0.0
