"""Control records of KRaft, in order and damaged, and records without keys or values, with all options of the tool."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

from java_dumps import Form
from segment_files import Rec, batch, marker

DECODED = ("--cluster-metadata-decoder",)
OPTIONS = (
    ("--deep-iteration",),
    ("--print-data-log",),
    DECODED,
    ("--deep-iteration", "--skip-record-metadata"),
    ("--print-data-log", "--skip-record-metadata"),
    (*DECODED, "--skip-record-metadata"),
)
FILES = (
    "00000000000000000000.log",
    "00000000000000000340.log",
    "00000000000000000007-0000000003.checkpoint",
    "bootstrap.checkpoint",
)
_FEATURE_LEVEL = b"\1\x0c\0\x11metadata.version\0\x15\0"  # type 12, level 21
_VOTER = struct.pack(">i", 1)
_DIRECTORY = bytes(range(16))
_ENDPOINT = b"\x0bCONTROLLER\x0bhost-1.lan" + struct.pack(">H", 9093) + b"\0"


def header(version: int = 0) -> bytes:
    """Return a SnapshotHeader."""
    return struct.pack(">hq", version, 1_700_000_000_000) + b"\0"


def footer(version: int = 0) -> bytes:
    """Return a SnapshotFooter."""
    return struct.pack(">h", version) + b"\0"


def leader_change(version: int = 0, *, directories: bool = False) -> bytes:
    """Return a LeaderChange. directories: with the ids of the voters' directories, as in version 1."""
    voter = _VOTER + (_DIRECTORY if directories else b"") + b"\0"
    return struct.pack(">hi", version, 1) + b"\3" + voter * 2 + b"\2" + voter + b"\0"


def kraft_version(version: int = 0, level: int = 1) -> bytes:
    """Return a KRaftVersion."""
    return struct.pack(">hh", version, level) + b"\0"


def voters(version: int = 0) -> bytes:
    """Return KRaftVoters: one with an endpoint."""
    voter = _VOTER + _DIRECTORY + b"\2" + _ENDPOINT + struct.pack(">hh", 0, 1) + b"\0\0"
    return struct.pack(">h", version) + b"\2" + voter + b"\0"


def control(kind: int, value: bytes | None, *, version: int = 0) -> Rec:
    """Return a control record."""
    return Rec(struct.pack(">hh", version, kind), value)


def snapshot() -> bytes:
    """Return a whole KRaft snapshot."""
    return b"".join(
        [
            batch(0, [control(3, header()), control(5, kraft_version()), control(6, voters())], control=True),
            batch(3, [Rec(None, _FEATURE_LEVEL)]),
            batch(4, [control(4, footer())], control=True),
        ]
    )


def forms(_kafka_home: Path) -> list[Form]:
    """Return all forms by name."""
    found = [*_whole(), *_versions(), *_broken(), *_nulls()]
    return [Form(f"{number}: {form.name}", form.data, form.file, form.arguments) for number, form in enumerate(found)]


def _whole() -> Iterator[Form]:
    log = batch(0, [control(2, leader_change())], control=True) + batch(1, [Rec(None, _FEATURE_LEVEL)])
    for file in FILES:
        for options in OPTIONS:
            data = snapshot() if file.endswith(".checkpoint") else log + marker(2, (7, 0))
            yield Form(f"{file} {' '.join(options)}", data, file, options)


def _versions() -> Iterator[Form]:
    for version in (0, 1, 2, 99, -1):
        for kind, value in enumerate((leader_change, header, footer, kraft_version, voters), start=2):
            yield _one(f"type {kind}, version {version}", control(kind, value(version)))
    yield _one("a leader change of version 1", control(2, leader_change(1, directories=True)))
    for kind in (-1, 7, 8, 99):
        yield _one(f"type {kind}", control(kind, b"\0\0\0\0"))


def _broken() -> Iterator[Form]:
    for kind, value in enumerate((leader_change(), header(), footer(), kraft_version(), voters()), start=2):
        yield _one(f"type {kind} without a value", control(kind, None))
        yield _one(f"type {kind}, then garbage", control(kind, value + b"\1\2"))
        for size in {0, 1, len(value) // 2, len(value) - 1}:
            yield _one(f"type {kind}, cut after {size} bytes", control(kind, value[:size]))
    yield _one("a key of version -1", control(3, header(), version=-1))
    yield _one("a key of version 1", control(3, header(), version=1))
    yield _one("a key of three bytes", Rec(b"\0\0\0", header()))
    yield _one("no key", Rec(None, header()))


def _one(name: str, rec: Rec) -> Form:
    data = batch(0, [rec], control=True) + batch(1, [Rec(None, _FEATURE_LEVEL)])
    return Form(name, data, arguments=DECODED)


def _nulls() -> Iterator[Form]:
    recs = [Rec(b"k", b"v"), Rec(None, b"v"), Rec(b"k", None), Rec(None, None), Rec(b"", b"")]
    for options in OPTIONS[:2] + OPTIONS[3:5]:
        for codec in ("none", "gzip"):
            yield Form(f"nulls, {codec} {' '.join(options)}", batch(5, recs, codec=codec), arguments=options)
        yield Form(f"no keys {' '.join(options)}", batch(0, [Rec(None, b"v")] * 3), arguments=options)
        gaps = batch(0, [Rec(), Rec(offset=4)]) + batch(9, 2) + batch(3, 2) + batch(9, 1)
        yield Form(f"gaps {' '.join(options)}", gaps, arguments=options)
