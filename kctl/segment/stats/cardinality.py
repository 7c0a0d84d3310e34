"""Keys of a log in bounded memory: how many there are, which are the hottest, what a later record supersedes.

Exact while all keys fit; beyond that

- distinct keys: those that were there first are counted, the others estimated from the smallest of their hashes
  (bottom-k sketch: Bar-Yossef et al. 2002; relative standard error 1/√k);
- hottest keys: a Misra–Gries summary (the same guarantee as Space-Saving, Agarwal et al. 2012): a count is at most
  `error` too low, and no key with more records than that is missing;
- superseded records: of the keys that were there first, so a lower bound.

Kafka's cleaner keeps an MD5 and an offset of every key, 24 bytes (SkimpyOffsetMap, OffsetMap.bytesPerEntry); here
short keys are kept as they are, and long ones as their beginning and their MD5.
"""

from __future__ import annotations

import hashlib
import heapq
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

ENTRY_BYTES = 240  # that a key takes here, measured with keys of 16 to 48 bytes, while a dict grows
SKETCH_HASHES = 1 << 14
HOT_KEYS = 1 << 16
_HASH_BYTES = 8
_SHOWN_BYTES = 32
IDENTITY_BYTES = _SHOWN_BYTES + 16
_HASH_RANGE = 1 << (8 * _HASH_BYTES)


def identity(key: bytes) -> bytes:
    """What stands for a key: itself below 48 bytes, else its first 32 and its MD5, which are exactly 48."""
    if len(key) < IDENTITY_BYTES:
        return key
    return key[:_SHOWN_BYTES] + hashlib.md5(key, usedforsecurity=False).digest()


def shown_part(known: bytes) -> tuple[bytes, bool]:
    """(the key or its beginning, whether it is cut) of an identity; cut where a UTF-8 character ends."""
    if len(known) < IDENTITY_BYTES:
        return known, False
    begin = known[:_SHOWN_BYTES]
    whole = begin.decode("utf-8", "ignore").encode()
    return (whole if begin.startswith(whole) and len(begin) - len(whole) < 4 else begin), True


class HotKey(NamedTuple):
    """A key's identity; it has at least so many records."""

    identity: bytes
    records: int


class HotKeys:
    """The keys with the most records. error: how many records a count may be too low; 0: exact."""

    def __init__(self, capacity: int = HOT_KEYS) -> None:
        self._capacity = capacity
        self._counts: Counter[bytes] = Counter()
        self.error = 0

    def add(self, keys: Iterable[bytes]) -> None:
        """Count each of them."""
        self._counts.update(keys)
        if len(self._counts) > 2 * self._capacity:
            self._shrink()

    def _shrink(self) -> None:
        """Take from all counts what the first key beyond the capacity has; those with nothing left are gone."""
        cut = _nth_largest(Counter(self._counts.values()), self._capacity + 1)
        self._counts = Counter({key: count - cut for key, count in self._counts.items() if count > cut})
        self.error += cut

    def top(self, number: int) -> list[HotKey]:
        """The hottest, first those with the most records; equal ones by key."""
        found = heapq.nsmallest(number, self._counts.items(), key=lambda item: (-item[1], item[0]))
        return [HotKey(*item) for item in found]


def _nth_largest(frequencies: Mapping[int, int], number: int) -> int:
    """Of values, given how often each one is there."""
    for value in sorted(frequencies, reverse=True):
        number -= frequencies[value]
        if number <= 0:
            return value
    return 0


class DistinctSketch:
    """Estimates how many distinct values there were, by the smallest of their hashes. Exact up to `size` at least."""

    def __init__(self, size: int = SKETCH_HASHES) -> None:
        self._size = size
        self._smallest: set[bytes] = set()
        self._limit: bytes | None = None  # hashes from there on are left out

    def add(self, values: Collection[bytes]) -> None:
        """Values seen before change nothing."""
        hashes = {hashlib.md5(value, usedforsecurity=False).digest()[:_HASH_BYTES] for value in values}
        limit = self._limit
        self._smallest |= hashes if limit is None else {found for found in hashes if found < limit}
        if len(self._smallest) > 2 * self._size:
            self._shrink()

    def _shrink(self) -> None:
        if len(self._smallest) > self._size:
            kept = heapq.nsmallest(self._size + 1, self._smallest)
            self._limit = kept.pop()
            self._smallest = set(kept)

    def estimate(self) -> int:
        """So many distinct values; about ± `relative_error`."""
        if self._limit is None:
            return len(self._smallest)
        self._shrink()
        return round(self._size * _HASH_RANGE / int.from_bytes(self._limit, "big"))

    @property
    def relative_error(self) -> float:
        """One standard deviation, as a share; 0.0: exact."""
        return 0.0 if self._limit is None else self._size**-0.5

    @property
    def empty(self) -> bool:
        """Whether there was no value at all."""
        return not self._smallest


class Superseded(NamedTuple):
    """Records that a later one of the same key makes superfluous, and their bytes."""

    records: int = 0
    size_bytes: int = 0


NOTHING = Superseded()


class KeyTable:
    """The latest record of each key of one log, records being added in the log's order. max_keys: the bound."""

    def __init__(self, max_keys: int) -> None:
        self._max_keys = max_keys
        self._latest: dict[bytes, int] = {}  # identity → bytes of the latest record
        self._tracked = self._tracked_bytes = 0
        self._aborted: set[bytes] = set()
        self._others = DistinctSketch()
        self.full = False

    def add(self, keys: Sequence[bytes], sizes: Sequence[int]) -> None:
        """Identities of keys, and the bytes of their records."""
        if not self.full:
            self._track(keys, sizes)
            self.full = len(self._latest) >= self._max_keys
            return
        latest = self._latest
        known = [(key, size) for key, size in zip(keys, sizes, strict=True) if key in latest]
        if len(known) < len(keys):
            self._others.add({key for key in keys if key not in latest})
        self._track([key for key, _ in known], [size for _, size in known])

    def add_aborted(self, keys: Iterable[bytes]) -> None:
        """Identities of keys that are there, and supersede nothing."""
        self._aborted.update(keys)
        if len(self._aborted) > self._max_keys:
            self._others.add([key for key in self._aborted if key not in self._latest])
            self._aborted.clear()

    def _track(self, keys: Sequence[bytes], sizes: Sequence[int]) -> None:
        self._latest.update(zip(keys, sizes, strict=True))
        self._tracked += len(keys)
        self._tracked_bytes += sum(sizes)

    def superseded(self) -> Superseded:
        """Up to now; a lower bound when not all keys fitted (`overflown`)."""
        return Superseded(self._tracked - len(self._latest), self._tracked_bytes - sum(self._latest.values()))

    @property
    def overflown(self) -> bool:
        """Whether there were keys that did not fit."""
        return not self._others.empty

    def distinct(self) -> tuple[int, float]:
        """(distinct keys, the standard error of that as a share; 0.0: exact)."""
        if self._others.empty:
            return len(self._latest) + sum(key not in self._latest for key in self._aborted), 0.0
        self._others.add([key for key in self._aborted if key not in self._latest])
        others = self._others.estimate()
        total = len(self._latest) + others
        return total, round(self._others.relative_error * others / total, 6) if total else 0.0
