"""Log segments: kctl beside DumpLogSegments, on one file of 1.5 million records of 200 B for each codec."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from crc32c import crc32c

from cases import Setting
from kctl_testing import SCRIPT
from measure import Figures, one_core
from segment_files import BASE_TIMESTAMP, CODECS, Rec, batch, offset_index, time_index

RECORDS, RECORD_BYTES, IN_A_BATCH = 1_500_000, 200, 80
_SHAPES = 200  # batches that differ; then their contents come again under other offsets
_INDEX_INTERVAL = 4096
_TOOL = "kafka.tools.DumpLogSegments"
_TEXT = ("dump", "-o", "kafka", "--print-data-log")


def segment_batches(setting: Setting) -> dict[str, Figures]:
    """Headers only: as text, and verified with the CRC of every batch; on one core."""
    with _segment("none", RECORDS) as log, one_core():
        return setting.measure(
            {
                "DumpLogSegments": _java(setting, log),
                "kctl segment dump -o kafka": _kctl("dump", "-o", "kafka", log),
                "kctl segment verify": _kctl("verify", log),
            }
        )


def segment_records(setting: Setting) -> dict[str, Figures]:
    """Every record as text, for each codec, on one core."""
    figures = {}
    for codec in CODECS:
        with _segment(codec, RECORDS) as log, one_core():
            found = setting.measure(
                {
                    f"DumpLogSegments --print-data-log, {codec}": _java(setting, log, "--print-data-log"),
                    f"kctl segment dump -o kafka, {codec}": _kctl(*_TEXT, log),
                }
            )
            figures.update(found)
    return figures


def segment_jobs(setting: Setting) -> dict[str, Figures]:
    """Every record as text on all cores, by one process and by two."""
    figures = {}
    for codec in ("none", "gzip"):
        with _segment(codec, RECORDS) as log:
            found = setting.measure(
                {
                    f"DumpLogSegments --print-data-log, {codec}": _java(setting, log, "--print-data-log"),
                    f"kctl segment dump -o kafka, {codec}": _kctl(*_TEXT, log),
                    f"kctl segment dump -o kafka --jobs 2, {codec}": _kctl(*_TEXT, "--jobs", "2", log),
                }
            )
            figures.update(found)
    return figures


def segment_json(setting: Setting) -> dict[str, Figures]:
    """Every record as JSON Lines, which the JVM's tool does not have: beside its text; on one core."""
    with _segment("none", RECORDS) as log, one_core():
        return setting.measure(
            {
                "DumpLogSegments --print-data-log": _java(setting, log, "--print-data-log"),
                "kctl segment dump --records -o json": _kctl("dump", "--records", "-o", "json", log),
            }
        )


def segment_find(setting: Setting) -> dict[str, Figures]:
    """A record of a segment of 1 GB, by its offset and by its time, beside one of a small segment."""
    count = 5_000_000
    with _segment("none", 800) as small, _segment("none", count) as large:
        moment = str(BASE_TIMESTAMP + count * 2 // 3)
        return setting.measure(
            {
                "kctl segment find --offset, 160 kB": _kctl("find", "--offset", "500", small),
                "kctl segment find --offset, 1 GB": _kctl("find", "--offset", str(count * 2 // 3), large),
                "kctl segment find --timestamp, 1 GB": _kctl("find", "--timestamp", moment, large),
            }
        )


def segment_stats(setting: Setting) -> dict[str, Figures]:
    """Statistics of all records, and each one checked, beside the JVM tool's text of them; on one core."""
    with _segment("none", RECORDS) as log, one_core():
        return setting.measure(
            {
                "DumpLogSegments --print-data-log": _java(setting, log, "--print-data-log"),
                "kctl segment stats": _kctl("stats", log),
                "kctl segment verify --deep": _kctl("verify", "--deep", log),
            }
        )


def _java(setting: Setting, log: Path, *options: str) -> list[str]:
    return ["java", "-Xmx256M", "-cp", f"{setting.libs}/*", _TOOL, *options, "--files", str(log)]


def _kctl(command: str, *words: object) -> list[str]:
    return [str(SCRIPT), "segment", command, *map(str, words)]


@contextmanager
def _segment(codec: str, records: int) -> Iterator[Path]:
    """A segment with its indexes, as a broker would write it."""
    with TemporaryDirectory(prefix="kctl-bench-segment-") as folder:
        log = Path(folder) / f"{0:020}.log"
        offsets, times = [], []
        position = indexed = 0
        shapes = _shapes(codec)
        with log.open("wb") as out:
            for number, first in enumerate(range(0, records, IN_A_BATCH)):
                data = _moved(shapes[number % _SHAPES], first)
                if position - indexed > _INDEX_INTERVAL:
                    offsets.append((first + IN_A_BATCH - 1, position))
                    times.append((BASE_TIMESTAMP + first - 1, first - 1))
                    indexed = position
                out.write(data)
                position += len(data)
        log.with_suffix(".index").write_bytes(offset_index(offsets))
        log.with_suffix(".timeindex").write_bytes(time_index(times))
        yield log


def _shapes(codec: str) -> list[bytes]:
    pick = random.Random(1)
    words = [b"%06x" % pick.randrange(1 << 24) for _ in range(500)]

    def record() -> Rec:
        key = b"key%05d" % pick.randrange(100_000)
        text = b" ".join(pick.choices(words, k=RECORD_BYTES // 7 + 1))
        return Rec(key, text[: RECORD_BYTES - len(key)])

    return [batch(0, [record() for _ in range(IN_A_BATCH)], codec=codec) for _ in range(_SHAPES)]


def _moved(data: bytes, first: int) -> bytes:
    """The batch under another offset, and as much later."""
    moved = bytearray(data)
    struct.pack_into(">q", moved, 0, first)
    struct.pack_into(">qq", moved, 27, BASE_TIMESTAMP + first, BASE_TIMESTAMP + first + IN_A_BATCH - 1)
    struct.pack_into(">I", moved, 17, crc32c(memoryview(moved)[21:]))
    return bytes(moved)
