"""The fast ways say what the plain ways say, or nothing: columns, text and JSON of whole batches."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from kctl.commands.terminal import output
from kctl.segment.dump import decoders, kafka_text_log
from kctl.segment.dump.fast_json import records_json
from kctl.segment.dump.kafka_text import KafkaText
from kctl.segment.dump.kafka_text_options import KafkaTextOptions
from kctl.segment.dump.query import all_records
from kctl.segment.dump.rows import record_row
from kctl.segment.format.batch import V2_HEADER, Batch
from kctl.segment.format.record_columns import record_columns
from kctl.segment.log.source import Source
from kctl.segment.log.walk import batches
from segment_files import Rec, batch, varint, write

DATA = Path(__file__).parents[2] / "data" / "segments"


def _random(seed: int, count: int) -> list[Rec]:
    pick = random.Random(seed)
    texts: list[bytes | None] = [
        None,
        b"",
        b"k",
        b"key%05d",
        b"\xff\xfe",
        "höhe".encode(),
        b'{"a": "b\\n"}',
        b"x" * 300,
    ]
    return [
        Rec(
            pick.choice(texts),
            pick.choice(texts),
            [(b"h", pick.choice(texts))] if seed % 3 == 0 and pick.random() < 0.2 else (),
            timestamp=pick.choice([number, -5, 70, 9000, 2**40]) if seed % 2 else None,
        )
        for number in range(count)
    ]


def _same(count: int, key: bytes | None, value: bytes | None = b"v" * 200, step: int = 1) -> list[Rec]:
    return [Rec(key, value, timestamp=number * step) for number in range(count)]


def _gaps(count: int, gaps: set[int]) -> list[Rec]:
    offsets = [number for number in range(count + len(gaps)) if number not in gaps][:count]
    return [Rec(b"key%04d" % offset, b"value", offset=offset, timestamp=offset) for offset in offsets]


BATCHES = {
    "alike": batch(0, _same(80, b"key")),
    "alike, many": batch(7, _same(9000, b"key", b"v")),
    "alike, without keys": batch(2**40, _same(100, None), producer=(4, 0, 2)),
    "alike, values null": batch(0, _same(100, b"key", None)),
    "alike, both empty": batch(0, _same(100, b"", b"")),
    "two kinds": batch(0, _same(20, b"key") + _same(20, b"longer")[::-1]),
    "keys of 64 bytes and more": batch(0, _same(30, b"k" * 64) + _same(30, b"k" * 9000)),
    "times far apart": batch(0, _same(100, b"key", step=100)),
    "times of years": batch(0, _same(40, b"key", step=10**9)),
    "times before the first": batch(0, _same(40, b"key", step=-1)),
    "times beyond the year 9999": batch(0, _same(10, b"key"), base_timestamp=2**61),
    "without time": batch(0, _same(10, b"key", step=0), base_timestamp=-1),
    "one gap": batch(0, _gaps(100, {17})),
    "a gap at the seam of lengths": batch(0, _gaps(100, {64})),
    "many gaps": batch(0, _gaps(300, set(range(5, 350, 7)))),
    "append time": batch(0, _same(50, b"key"), append_time=True, max_timestamp=1_800_000_000_123),
    "sequences that begin again": batch(0, _same(50, b"key"), producer=(4, 1, 2**31 - 20)),
    "in a transaction": batch(0, _same(50, b"key"), producer=(4, 1, 0), transactional=True),
    "one record": batch(0, _same(1, b"key")),
    "quotes": batch(0, _same(20, b"key", b'{"a": "100%d %%"}')),
    "control characters": batch(0, _same(20, b"key", b"a\nb\x1b[31m")),
    "not UTF-8": batch(0, _same(20, b"\xff", b"\xfe\xed\xa0\x80")),
    "wide": batch(0, _same(20, "schlüssel".encode(), "値".encode())),
    "headers": batch(0, [Rec(b"k", b"v", [(b"a", b"1"), (b"b", None)])] * 20),
    "one with headers": batch(0, [*_same(20, b"key"), Rec(b"k", b"v", [(b"a", b"1")]), *_same(20, b"key")]),
    "zstd": batch(0, _same(80, b"key"), codec="zstd"),
    "a length that is too long": batch(0, 10, payload=(varint(1000) + b"\0" * 12) * 10),
    "a varint without an end": batch(0, 10, payload=b"\xff" * 200),
    "more records than bytes": batch(0, 10, count=2**31 - 1),
    "fewer records than there are": batch(0, _same(20, b"key"), count=19),
} | {f"random {seed}": batch(seed, _random(seed, 60), producer=(1, 0, seed)) for seed in range(60)}


def _batches(path: Path) -> Iterator[tuple[Batch, bytes]]:
    with Source(path) as source:
        for item in batches(source):
            assert isinstance(item, Batch)
            yield item, bytes(source.read(item.position, item.size))


def _text(path: Path, options: KafkaTextOptions) -> tuple[bytes, list[str], list[str]]:
    lines: list[bytes] = []
    text = KafkaText(options, lines.append)
    text.dump(str(path))
    return b"".join(lines), list(text.mismatches()), [finding.message for finding in text.findings]


@pytest.mark.parametrize("name", BATCHES)
def test_text(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path, 0, [BATCHES[name], BATCHES[name]])
    choices = [
        KafkaTextOptions(deep=True, parser=parser, plain=True, skip_record_metadata=skip)
        for parser in (decoders.TEXT, None)
        for skip in (False, True)
    ]
    fast = [_text(path, options) for options in choices]
    monkeypatch.setattr(kafka_text_log, "records_text", lambda *_, **__: None)
    assert [_text(path, options) for options in choices] == fast


@pytest.mark.parametrize("name", BATCHES)
def test_json(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path, 0, BATCHES[name])
    file = f"{path} 100%"
    for found, content in _batches(path):
        if found.codec:
            continue
        for valid in (True, False):
            fast = records_json(found, content[V2_HEADER:], file, valid=valid)
            if fast is None:
                continue
            for record in all_records(found, memoryview(content)):
                output.write_json_line(record_row(file, found, record, valid=valid))
            assert fast.decode() == capsys.readouterr().out


def test_the_usual_takes_the_fast_way(tmp_path: Path) -> None:
    """What the other tests compare is there, and gaps, nulls and lengths do not make it give up."""
    slow = set()
    for name, data in BATCHES.items():
        for found, content in _batches(write(tmp_path, 0, data)):
            if not found.codec and records_json(found, content[V2_HEADER:], "f", valid=True) is None:
                slow.add(name)
    assert slow == {
        "headers", "one with headers", "sequences that begin again", "without time",
        "a length that is too long", "a varint without an end", "more records than bytes",
        "fewer records than there are",
    } | {name for name in slow if name.startswith("random")}  # fmt: skip
    assert len(slow) < len(BATCHES) / 2


def test_columns_of_real_files() -> None:
    compared = 0
    for path in sorted((DATA / "v2").rglob("*.log")):
        for found, content in _batches(path):
            if found.codec or found.control:
                continue
            columns = record_columns(found, content[V2_HEADER:])
            records = list(all_records(found, memoryview(content)))
            if columns is None:
                continue
            compared += 1
            assert list(columns.offsets) == [record.offset for record in records]
            assert list(columns.timestamps) == [record.timestamp for record in records]
            assert columns.keys == [record.key for record in records]
            assert columns.values == [record.value for record in records]
            expected = {number: record.headers for number, record in enumerate(records) if record.headers}
            assert columns.headers == expected
    assert compared > 5


def test_the_checksum_is_the_packages() -> None:
    """Loaded without the package around it, in a process that imports that as well."""
    import crc32c as package

    from kctl.base import checksum

    data = bytes(range(256)) * 40
    assert checksum.crc32c(b"123456789") == 0xE3069283  # RFC 3720
    assert (
        checksum.crc32c(memoryview(data))
        == package.crc32c(data)
        == checksum.crc32c(data[99:], package.crc32c(data[:99]))
    )
    assert checksum._of_the_package()(data) == checksum.crc32c(data)
