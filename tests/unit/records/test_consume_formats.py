"""Output formats of records, and decoders."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from importlib.metadata import EntryPoint
from typing import Any

import pytest

from kctl.commands.consume import formats
from kctl.commands.consume.commands import tail_text
from kctl.commands.terminal.output import jsonable
from kctl.errors import NotSupported, UsageError
from kctl.model import TopicPartition
from kctl.records.chunk import Chunk
from kctl.records.consume.delivery import ConsumeResult
from kctl.records.consume.options import ConsumeOptions
from kctl.records.decode import decoding
from kctl.records.decode.decoder_settings import DecoderSettings
from kctl.records.decode.decoding import record_decoder
from kctl.records.record import Record, view

TP = TopicPartition("orders", 2)
CHUNK = Chunk(
    TP,
    [5, 6, 9],
    [1_700_000_000_123, -1, 10**17],
    [b"k", None, b"\xff"],
    ['é"\n'.encode(), None, b"\x1b[31m"],
    {0: ((b"h", b"x"), (b"n", None)), 2: ((b"h", b"\xfe"), (b"h", b"last"))},
)


class _Stdout(io.TextIOWrapper):
    """A stdout that is a terminal or not."""

    def __init__(self, terminal: bool) -> None:
        super().__init__(io.BytesIO(), encoding="utf-8", newline="\n", write_through=True)
        self._terminal = terminal

    def isatty(self) -> bool:
        return self._terminal


Written = Callable[..., bytes]


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> Written:
    """Return the output for a chunk of the writer that `make` returns."""

    def run(make: Callable[[], formats.Writer], chunk: Chunk = CHUNK, *, terminal: bool = False) -> bytes:
        out = _Stdout(terminal)
        monkeypatch.setattr(sys, "stdout", out)
        make()(chunk)
        out.flush()
        data: bytes = out.buffer.getvalue()  # type: ignore[attr-defined]  # it is a BytesIO
        return data

    return run


@pytest.mark.parametrize(
    ("tail", "partitions", "text"),
    [
        (2, 3, ", starting at the last 2 records of each of 3 partitions"),
        (1, 12, ", starting at the last record of each of 12 partitions"),
        (2, 1, ""),
        (None, 3, ""),
    ],
)
def test_the_summary_says_that_tail_counts_per_partition(tail: int | None, partitions: int, text: str) -> None:
    result = ConsumeResult(["orders"], None, partition_count=partitions)
    assert tail_text(ConsumeOptions(("orders",), tail=tail), result) == text


def test_text(written: Written) -> None:
    assert written(lambda: formats.text_writer(None)) == 'é"\n\nnull\n\x1b[31m\n'.encode()
    assert written(lambda: formats.text_writer(b"\t")) == b'k\t\xc3\xa9"\n\nnull\tnull\n\xff\t\x1b[31m\n'
    assert written(lambda: formats.text_writer(b"="), terminal=True).decode() == (
        'k=é"\\n\nnull=null\n\\xff=\\x1b[31m\n'
    )


def test_json_lines_are_the_record_view(written: Written) -> None:
    rows = [json.loads(line) for line in written(lambda: formats.write_json).splitlines()]
    assert rows == [json.loads(json.dumps(jsonable(view(record)))) for record in CHUNK.records()]
    assert [list(row) for row in rows] == [list(jsonable(view(record))) for record in CHUNK.records()]
    assert (rows[0]["timestamp"], rows[2]["timestamp"]) == ("2023-11-14T22:13:20.123Z", None)
    on_a_terminal = written(lambda: formats.write_json, terminal=True)
    assert b"\x1b" not in on_a_terminal
    assert [json.loads(line) for line in on_a_terminal.splitlines()] == rows


def test_hex(written: Written) -> None:
    chunk = Chunk(TP, [5], [0], [None], [bytes(range(60, 80))], {0: ((b"h", b"\x00"),)})
    assert written(lambda: formats.write_hex, chunk).decode().splitlines() == [
        "orders-2 offset 5 1970-01-01T00:00:00.000Z",
        "  key: null",
        "  header h: 1 B",
        "    00000000  00                                                |.|",
        "  value: 20 B",
        "    00000000  3c 3d 3e 3f 40 41 42 43  44 45 46 47 48 49 4a 4b  |<=>?@ABCDEFGHIJK|",
        "    00000010  4c 4d 4e 4f                                       |LMNO|",
    ]


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("{offset} {partition} {topic}\\n", b"5 2 orders\n6 2 orders\n9 2 orders\n"),
        ("{key}\\t{value}\\0", b'k\t\xc3\xa9"\n\0null\tnull\0\xff\t\x1b[31m\0'),
        ("{{{offset}}}", b"{5}{6}{9}"),
        ("{timestamp_ms},", b"1700000000123,-1,100000000000000000,"),
        ("{timestamp};", b"2023-11-14T22:13:20.123Z;null;+3170843-11-07T09:46:40.000Z;"),
        ("{key_bytes}/{value_bytes} ", b"1/4 -1/-1 1/5 "),
        ("{headers}|", b"h:x,n:null||h:\xfe,h:last|"),
        ("{header:h}{header:n}|", b"xnull||last|"),
        ("→{offset}", "→5→6→9".encode()),
    ],
)
def test_templates(written: Written, template: str, expected: bytes) -> None:
    assert written(lambda: formats.template_writer(template)) == expected


def test_a_template_on_a_terminal_escapes_line_breaks_of_values(written: Written) -> None:
    out = written(lambda: formats.template_writer("{key} {value}\\n"), terminal=True)
    assert out.decode() == 'k é"\\n\nnull null\n\\xff \\x1b[31m\n'


@pytest.mark.parametrize(
    ("template", "why"),
    [
        ("{valu}", "is not a field"),
        ("{value", "unbalanced brace"),
        ("value}{offset}", "unbalanced brace"),
        ("{value:x}", "is not a field"),
        ("{header}", "is not a field"),
        ("{{value}}", "contains no field"),
        ("{value}\\q", "is not an escape"),
        ("{Value}", "unbalanced brace"),
    ],
)
def test_invalid_templates(template: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        formats.template_writer(template)


def _shown(key: str | None, value: str | None, data: bytes | None) -> tuple[Any, str | None, str | None]:
    decode = record_decoder(key, value, DecoderSettings())
    assert decode
    output = decode(Record("t", 0, 1, None, b"k", data, ()))
    return output.value, output.value_encoding, output.error


@pytest.mark.parametrize(
    ("name", "data", "expected"),
    [
        ("text", "é".encode(), ("é", "utf-8", None)),
        ("text", b"\xff", ("/w==", "base64", "value: 'utf-8' codec can't decode byte 0xff in position 0")),
        ("json", b'{"a":[1,null]}', ({"a": [1, None]}, "json", None)),
        ("json", b"{", ("{", "utf-8", "value: Expecting property name")),
        ("json", b"NaN", ("NaN", "utf-8", "value: NaN is not JSON")),
        ("json", b"[" * 100_000, ("[" * 100_000, "utf-8", "value: it is nested more than 200 levels deep")),
        ("hex", b"\x00\xff", ("00ff", "hex", None)),
        ("base64", b"\x00\xff", ("AP8=", "base64", None)),
        ("short", b"\xff\xfe", (-2, "short", None)),
        ("int", b"\x00\x00\x01\x00", (256, "int", None)),
        ("long", b"\x7f" + b"\xff" * 7, (2**63 - 1, "long", None)),
        ("long", b"1", ("1", "utf-8", "value: it has 1 bytes; the size of long is 8")),
        ("float", b"\x3f\xc0\x00\x00", (1.5, "float", None)),
        ("double", b"\x7f\xf0" + b"\x00" * 6, ("inf", "double", None)),
        ("int", None, (None, None, None)),
    ],
)
def test_decoders(name: str, data: bytes | None, expected: tuple[Any, str | None, str | None]) -> None:
    value, encoding, error = _shown(None, name, data)
    assert (value, encoding) == expected[:2]
    assert error == expected[2] or (error and expected[2] and error.startswith(expected[2]))


def test_a_decoded_record_in_every_format(written: Written) -> None:
    decode = record_decoder("text", "json", DecoderSettings())
    assert decode
    chunk = Chunk(TP, [1, 2], [0, 0], [b"k", b"\xff"], [b'{ "a": 1 }', b"\xfe"], {})
    chunk = chunk._replace(decoded=[decode(record) for record in chunk.records()])
    assert written(lambda: formats.text_writer(b":"), chunk) == b'k:{"a":1}\n\xff:\xfe\n'
    first, second = (json.loads(line) for line in written(lambda: formats.write_json, chunk).splitlines())
    assert (first["value"], first["value_encoding"], "error" in first) == ({"a": 1}, "json", False)
    assert (second["key"], second["value"], second["value_encoding"]) == ("/w==", "/g==", "base64")
    assert second["error"].startswith("key: 'utf-8' codec")


def test_internal_topics_decode_key_and_value() -> None:
    decode = record_decoder("offsets", "offsets", DecoderSettings())
    assert decode
    key = b"\x00\x01\x00\x01g\x00\x01t\x00\x00\x00\x03"  # version 1: group, topic, partition
    output = decode(Record("__consumer_offsets", 0, 1, None, key, None, ()))
    assert output.key["data"] == {"group": "g", "topic": "t", "partition": 3}
    assert decode(Record("x", 0, 1, None, b"\x00", b"v", ())).error
    with pytest.raises(UsageError, match="together"):
        record_decoder("offsets", None, DecoderSettings())


def _reversing(_settings: DecoderSettings) -> decoding.ValueDecoder:
    return lambda data, topic, part: {"of": f"{topic} {part}", "reversed": data[::-1].decode()}


def _broken(_settings: DecoderSettings) -> decoding.ValueDecoder:
    raise RuntimeError("no licence")


def _no_function(_settings: DecoderSettings) -> Any:
    return 3


def test_plug_ins(monkeypatch: pytest.MonkeyPatch) -> None:
    """The entry points of a package, which cannot replace a built-in decoder."""
    points = [
        EntryPoint(name, f"a_package:{function.__name__}", decoding.GROUP)
        for name, function in (("reversing", _reversing), ("broken", _broken), ("odd", _no_function), ("json", _broken))
    ]
    package = type(sys)("a_package")
    package.__dict__.update({f.__name__: f for f in (_reversing, _broken, _no_function)})
    monkeypatch.setitem(sys.modules, "a_package", package)
    monkeypatch.setattr("importlib.metadata.entry_points", lambda *, group: points)
    assert _shown(None, "reversing", b"abc") == ({"of": "t value", "reversed": "cba"}, "reversing", None)
    assert _shown(None, "reversing", b"\xff")[1] == "base64", "it failed, whatever it raised"
    assert _shown(None, "json", b"1") == (1, "json", None)
    for name, why in (("broken", "no licence"), ("odd", "not a function")):
        with pytest.raises(NotSupported, match=why):
            record_decoder(None, name, DecoderSettings())
    with pytest.raises(UsageError, match="decoder 'thrift' is unknown") as caught:
        record_decoder("thrift", None, DecoderSettings())
    assert "reversing" in str(caught.value.hint)
