"""The records of a validation: each says which run it belongs to, its partition and its number in that partition.

key    run (16 hex digits) - partition (6 digits) - sequence (12 digits), so that `segment find --key` finds one
value  send time (16 digits, µs since epoch, by the producer's clock), then dots up to the size that is wanted
"""

from __future__ import annotations

import secrets
from array import array
from collections.abc import Iterable

FOREIGN = -1  # instead of a sequence: not a record of this run, or not of this partition
KEY_BYTES = 36
LEAST_VALUE_BYTES = _TIME_DIGITS = 16
MAX_PARTITION, MAX_SEQUENCE = 10**6 - 1, 10**12 - 1
_RUN_DIGITS = 16


def new_run() -> str:
    """The id of a new run: 16 hex digits, by which its records are told from all others."""
    return secrets.token_hex(_RUN_DIGITS // 2)


def key_of(run: str, partition: int, sequence: int) -> bytes:
    """As `segment find --key` wants it for the record of a finding."""
    assert 0 <= partition <= MAX_PARTITION
    assert 0 <= sequence <= MAX_SEQUENCE
    return b"%s-%06d-%012d" % (run.encode(), partition, sequence)


def value_of(sent_us: int, size: int) -> bytes:
    """size: in bytes; at least LEAST_VALUE_BYTES are made."""
    return b"%0*d" % (_TIME_DIGITS, sent_us) + b"." * (size - _TIME_DIGITS)


def sequences_of(run: str, partition: int, keys: Iterable[bytes | None]) -> array[int]:
    """The sequence of each key, FOREIGN for those of other runs and partitions. Half a µs each."""
    prefix = key_of(run, partition, 0)[:24]
    found = array("q")
    for key in keys:
        if key is not None and len(key) == KEY_BYTES and key.startswith(prefix) and key[24:].isdigit():
            found.append(int(key[24:]))
        else:
            found.append(FOREIGN)
    return found
