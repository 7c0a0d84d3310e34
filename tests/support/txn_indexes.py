"""Files with aborted transactions (.txnindex) in many versions and lengths."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from java_dumps import Form
from segment_files import transaction_index

NAME = "00000000000000000011.txnindex"
ENTRY = (1001, 11, 20, 21)
VERSIONS = (-32768, -256, -255, -1, 0, 1, 2, 7, 127, 128, 255, 256, 257, 511, 512, 32767)


def forms(_kafka_home: Path) -> list[Form]:
    """Return all forms by name."""
    return [Form(name, data, NAME, ()) for name, data in _files()]


def _files() -> Iterator[tuple[str, bytes]]:
    good, last = transaction_index([ENTRY]), transaction_index([(1002, 30, 40, 41)])
    for version in VERSIONS:
        other = transaction_index([ENTRY], version=version)
        yield f"version {version}", other
        yield f"version 0, then {version}, then 0", good + other + last
    for size in (0, 1, 2, 33, 35, 67, 69):
        yield f"{size} bytes", (good + last + good)[:size]
    yield "zeros", bytes(34 * 3)
    yield "an entry, then zeros", good + bytes(34 * 2)
    yield "an entry, then some zeros", good + bytes(40)
    yield "negative numbers", transaction_index([(-1, -2, -3, -4)])
    yield "largest numbers", transaction_index([(2**63 - 1,) * 4])
    yield "out of order", last + good
    yield "before its base offset", transaction_index([(1, 2, 3, 4)])
