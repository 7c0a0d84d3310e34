"""The numbers of docs/segments.md and its picture are those of the files that brokers write."""

from __future__ import annotations

import re
import struct
import xml.etree.ElementTree as ET
from itertools import pairwise
from pathlib import Path

from incident_files import FIRST, SOURCE
from kctl_testing import Kctl

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = (DOCS / "segments.md").read_text()
PICTURE = ET.parse(DOCS / "segment.svg").getroot()
SVG = "{http://www.w3.org/2000/svg}"
LOG = SOURCE / "orders-0" / f"{FIRST}.log"
# The picture's grid: a byte is 50 wide, a row of 16 begins at 72 and is 48 high.
LEFT, TOP, BYTE, ROW = 72, 66, 50, 48


def header() -> list[tuple[int, int, str]]:
    """The rows of the table: at, bytes, field."""
    rows = re.findall(r"^\| (\d+) \| (\d+) \| (\w+) \|", PAGE, re.MULTILINE)
    return [(int(at), int(size), field) for at, size, field in rows]


def bits(text: str) -> int:
    """Of all numbers in a text like "i16 version, i64 offset"."""
    return sum(int(number) for number in re.findall(r"\b[iu](\d+)\b", text))


def test_fields_follow_each_other() -> None:
    rows = header()
    assert len(rows) == 13
    assert all(at + size == following for (at, size, _), (following, _, _) in pairwise(rows))
    assert sum(size for _, size, _ in rows) == 61


def test_fields_are_what_a_broker_wrote(tmp_path: Path) -> None:
    data = LOG.read_bytes()
    of = {field: int.from_bytes(data[at : at + size], "big", signed=True) for at, size, field in header()}
    batch = Kctl(tmp_path).json("segment", "dump", "--limit", "1", str(LOG))
    assert of["baseOffset"] == batch["base_offset"]
    assert of["batchLength"] + 12 == batch["size_bytes"]
    assert of["baseOffset"] + of["lastOffsetDelta"] == batch["last_offset"]
    assert of["producerId"] == batch["producer_id"]
    assert (of["magic"], of["attributes"], of["producerEpoch"], of["baseSequence"]) == (2, 0, 0, 0)
    assert of["recordsCount"] == batch["count"]
    assert of["maxTimestamp"] - of["baseTimestamp"] == 19 * 60_000


def test_entries_are_as_long_as_their_fields() -> None:
    rows = re.findall(r"^\| `\.(?:\w+)` \| (\d+) \| ([^|]+) \|", PAGE, re.MULTILINE)
    assert [int(size) for size, _ in rows] == [8, 12, 34]
    assert all(bits(entry.split("(")[0]) == 8 * int(size) for size, entry in rows)
    snapshot = re.search(r"^\| `\.snapshot` \| ([^:]+)(\d\d) bytes per producer: (.*?)\.", PAGE, re.MULTILINE)
    assert snapshot is not None
    head, size, producer = snapshot.groups()
    assert bits(producer) == 8 * int(size)
    assert bits(head) // 8 + int(size) == (SOURCE / "orders-0" / "00000000000000000340.snapshot").stat().st_size


def test_the_picture_has_each_field_in_its_place() -> None:
    boxes = {
        (int(box.attrib["x"]), int(box.attrib["y"])): int(box.attrib["width"])
        for box in PICTURE.iter(f"{SVG}rect")
        if "." not in box.attrib["x"]
    }
    labels = [text.text or "" for text in PICTURE.iter(f"{SVG}text")]
    for at, size, field in header():
        row, column = divmod(at, 16)
        assert boxes[LEFT + BYTE * column, TOP + ROW * row] == BYTE * min(size, 16 - column), field
        assert field in "".join(labels), field


def test_the_picture_has_the_entries_of_the_index() -> None:
    index = [
        (offset, position) for offset, position in struct.iter_unpack(">ii", LOG.with_suffix(".index").read_bytes())
    ]
    labels = [text.text or "" for text in PICTURE.iter(f"{SVG}text")]
    shown = [tuple(map(int, found)) for label in labels for found in re.findall(r"^offset (\d+) at (\d+)$", label)]
    assert shown == [entry for entry in index if entry in shown]
    assert len(shown) == 3


def test_the_picture_fetches_nothing() -> None:
    text = (DOCS / "segment.svg").read_text()
    assert "href" not in text
    assert "url(http" not in text
    assert "@import" not in text
