"""Lines, JSON and templates as records to be written."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from console_lines import DATA
from kctl.errors import AlreadyExists, InvalidFile, NotFound, UsageError
from kctl.records.produce import input as produce_input
from kctl.records.produce import partitioner
from kctl.records.produce.input import InputLines, check_files
from kctl.records.produce.json import json_line, json_parser
from kctl.records.produce.options import UnacknowledgedRecord
from kctl.records.produce.outgoing import Outgoing, Unfit
from kctl.records.produce.pace import Pace, parse_record_rate
from kctl.records.produce.partitioner import murmur2, partition_of
from kctl.records.produce.template import MAX_RANDOM, random_text, template
from kctl.records.produce.text import TextFormat, check_separators, parse_header, text_parser
from kctl.records.produce.undelivered_file import UndeliveredFile


def _all(lines: InputLines) -> list[tuple[int, bytes]]:
    result = []
    while not lines.ended:
        if lines.at == len(lines.lines):
            lines.fill()
            continue
        result.append((lines.number, lines.lines[lines.at]))
        lines.at, lines.number = lines.at + 1, lines.number + 1
    return result


@pytest.mark.parametrize(
    ("contents", "expected"),
    [
        ([b""], []),
        ([b"a\nb\n"], [b"a", b"b"]),
        ([b"a\nb"], [b"a", b"b"]),
        ([b"\n\n"], [b"", b""]),
        ([b"a\r\nb\rc\n\rd"], [b"a", b"b", b"c", b"", b"d"]),
        ([b"a\x0b\x0c\x1c\x85\xe2\x80\xa8\n"], [b"a\x0b\x0c\x1c\x85\xe2\x80\xa8"]),  # str.splitlines would split here
        ([b"a\r", b"\nb"], [b"a", b"", b"b"]),  # two files
        ([b"x" * 262_143 + b"\r\ny\r\n"], [b"x" * 262_143, b"y"]),  # CR and LF in two reads
        ([b"x" * 262_143 + b"\ry"], [b"x" * 262_143, b"y"]),
        ([b"x" * 262_143 + b"\r"], [b"x" * 262_143]),
        ([b"\xef\xbb\xbfa\n\xef\xbb\xbfb", b"\xef\xbb\xbfc"], [b"a", b"\xef\xbb\xbfb", b"c"]),
        ([b"\xef\xbb\xbf"], []),
        ([b"\xef\xbb"], [b"\xef\xbb"]),
        ([b"\xff\xfe"], [b"\xff\xfe"]),
        ([b"\xff\xfea\n"], [b"\xff\xfea"]),
        ([b"\xff\x00\n"], [b"\xff\x00"]),
        ([b"a\nb", b"", b"c\n"], [b"a", b"b", b"c"]),
        (
            [b"x" * 300_000 + b"\n" + b"y" * 300_000],
            [b"x" * 300_000, b"y" * 300_000],
        ),  # longer than one read
        ([b"x" * 600_001 + b"\nz\n"], [b"x" * 600_001, b"z"]),  # cut off after the first excess byte
        ([b"x" * 900_000 + b"\nz\n"], [b"x" * 600_001, b"z"]),
    ],
)
def test_lines_of_files(tmp_path: Path, contents: list[bytes], expected: list[bytes]) -> None:
    files = [tmp_path / f"{number}" for number in range(len(contents))]
    for path, data in zip(files, contents, strict=True):
        path.write_bytes(data)
    assert _all(InputLines(files, 600_000)) == list(enumerate(expected, 1))


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_lines_that_span_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(produce_input, "_CHUNK", size)
    marked: list[str] = []
    (tmp_path / "a").write_bytes(b"\xef\xbb\xbfone\r\n\r\ntwo\rthree\n\rfour\r\n")
    lines = InputLines([tmp_path / "a"], 100, on_mark=marked.append)
    assert [line for _, line in _all(lines)] == [b"one", b"", b"two", b"three", b"", b"four"]
    assert marked == [str(tmp_path / "a")]


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf_16_is_rejected(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "a").write_bytes("\ufeffk:v\n".encode(encoding))
    with pytest.raises(InvalidFile, match="is UTF-16"):
        _all(InputLines([tmp_path / "a"], 100))


_NAMES = {"key.separator": "key_separator", "null.marker": "null_marker", "headers.delimiter": "headers_delimiter",
          "headers.separator": "headers_separator", "headers.key.separator": "headers_key_separator"}  # fmt: skip


@pytest.mark.parametrize(("options", "rows"), json.loads(DATA.read_bytes()), ids=lambda each: "")
def test_lines_as_javas_console_producer_reads_them(tmp_path: Path, options: dict[str, str], rows: list[Any]) -> None:
    """Deliberate differences: a byte order mark is skipped, headers may be empty, and the separator of headers is not
    a regular expression."""
    values: dict[str, Any] = {_NAMES[name]: text.encode() for name, text in options.items() if name in _NAMES}
    if "headers_separator" in values:
        values["headers_separator"] = values["headers_separator"].removeprefix(b"\\")
    if "parse.key" in options:
        values.setdefault("key_separator", b"\t")
    how = TextFormat(
        **values, parse_headers="parse.headers" in options, accept_missing=options.get("ignore.error") == "true"
    )
    for text, records, error in rows:
        if error is not None and error.endswith("may not be equal"):
            # Java's key separator is a tab even where lines have no keys.
            if "\t" not in options.get("null.marker", ""):
                with pytest.raises(UsageError, match="are both"):
                    check_separators(how)
            continue
        check_separators(how)
        if "parse.headers" in options and text.startswith("\t"):
            continue  # an empty text before the delimiter: no header; Java rejects it
        (tmp_path / "a").write_text(text, newline="")
        parse, created, why = text_parser(how), [], None
        for _, line in _all(InputLines([tmp_path / "a"], 100)):
            try:
                created.append(parse(line))
            except Unfit as exc:
                why = exc
                break
        output = [[_text(r.key), _text(r.value), [[_text(n), _text(v)] for n, v in r.headers]] for r in created]
        without_mark = json.loads(json.dumps(records).replace("\\ufeff", ""))
        assert (output, why is None) == (without_mark, error is None), (options, text, str(why))


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode()


def test_with_several_files_a_line_is_reported_with_its_file(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / name).write_text("1\n2\n")
    lines = InputLines([tmp_path / "a", tmp_path / "b"], 100)
    _all(lines)
    assert [lines.where(n) for n in (2, 3)] == [f"{tmp_path / 'a'} line 2", f"{tmp_path / 'b'} line 1"]
    assert InputLines([tmp_path / "a"], 100).where(7) == "line 7"


def test_unreadable_files(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="does not exist"):
        check_files([tmp_path / "none"])
    with pytest.raises(InvalidFile, match="is a directory"):
        check_files([tmp_path])
    with pytest.raises(UsageError, match="only once"):
        check_files([Path("-"), Path("-")])


@pytest.mark.parametrize(
    ("how", "line", "expected"),
    [
        (TextFormat(), b"v", Outgoing(None, b"v")),
        (TextFormat(key_separator=b":"), b"k:v:w", Outgoing(b"k", b"v:w")),
        (TextFormat(key_separator=b":"), b":v", Outgoing(b"", b"v")),
        (TextFormat(key_separator=b"=>"), b"k=>", Outgoing(b"k", b"")),
        (TextFormat(key=b"k"), b"v", Outgoing(b"k", b"v")),
        (TextFormat(null_marker=b"N"), b"N", Outgoing(None, None)),
        (TextFormat(null_marker=b"N", key_separator=b":"), b"N:v", Outgoing(None, b"v")),
        (TextFormat(null_marker=b"N", key_separator=b":"), b"k:N", Outgoing(b"k", None)),
        (TextFormat(parse_headers=True), b"a:1,b:\tv", Outgoing(None, b"v", ((b"a", b"1"), (b"b", b"")))),
        (TextFormat(parse_headers=True), b"\tv", Outgoing(None, b"v")),
        (TextFormat(parse_headers=True, null_marker=b"N"), b"a:N\tv", Outgoing(None, b"v", ((b"a", None),))),
        (TextFormat(parse_headers=True, null_marker=b"N"), b"N\tv", Outgoing(None, b"v")),
        (TextFormat(parse_headers=True, key_separator=b"\t"), b"a:1\tk\tv", Outgoing(b"k", b"v", ((b"a", b"1"),))),
        (TextFormat(headers=((b"h", b"1"),), timestamp_ms=7, partition=2), b"v",
         Outgoing(None, b"v", ((b"h", b"1"),), 7, 2)),
        (TextFormat(encoding="hex", key_separator=b" "), b"00ff 0A0b", Outgoing(b"\x00\xff", b"\n\x0b")),
        (TextFormat(encoding="base64"), b"AP8=", Outgoing(None, b"\x00\xff")),
    ],
)  # fmt: skip
def test_text(how: TextFormat, line: bytes, expected: Outgoing) -> None:
    assert text_parser(how)(line) == expected


@pytest.mark.parametrize(
    ("how", "line", "why"),
    [
        (TextFormat(key_separator=b":"), b"broken", "no key separator ':'"),
        (TextFormat(parse_headers=True), b"broken", "no headers delimiter"),
        (TextFormat(parse_headers=True), b"a\tv", "a header without ':'"),
        (TextFormat(parse_headers=True), b"\xff:1\tv", "not UTF-8"),
        (TextFormat(encoding="hex"), b"0g", "not hexadecimal"),
        (TextFormat(encoding="hex"), "é".encode(), "not hexadecimal"),
        (TextFormat(encoding="base64"), b"AP8", "not base64"),
    ],
)
def test_invalid_text_lines(how: TextFormat, line: bytes, why: str) -> None:
    with pytest.raises(Unfit, match=why):
        text_parser(how)(line)


@pytest.mark.parametrize("text", ["novalue", "=v", ""])
def test_bad_header_option(text: str) -> None:
    with pytest.raises(UsageError, match="is not a header"):
        parse_header(text)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('{"value":"v"}', Outgoing(None, b"v")),
        ('{"value":null,"key":"k"}', Outgoing(b"k", None)),
        ('{"value":"AP8=","value_encoding":"base64","key":"/w==","key_encoding":"base64"}',
         Outgoing(b"\xff", b"\x00\xff")),
        ('{"value":"\\u0000é\\ud83d\\ude00"}', Outgoing(None, "\0é😀".encode())),
        ('{"value":"v","timestamp_ms":12,"partition":3,"topic":"x","offset":9,"timestamp":null}',
         Outgoing(None, b"v", (), 12, 3)),
        ('{"value":"v","headers":[{"key":"a","value":"1"},{"key":"b","value":null,"encoding":null}]}',
         Outgoing(None, b"v", ((b"a", b"1"), (b"b", None)))),
    ],
)  # fmt: skip
def test_json(line: str, expected: Outgoing) -> None:
    assert json_parser()(line.encode()) == expected


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON: .* at column 2"),
        (b"\xff", "not UTF-8"),
        (b"[]", "not an object"),
        (b"{}", "has no value"),
        (b'{"valu":"x"}', "an unknown field: 'valu'"),
        (b'{"value":1}', "neither a string nor null"),
        (b'{"value":{"a":1}}', "neither a string nor null"),
        (b'{"value":"x","value_encoding":"hex"}', "neither utf-8 nor base64"),
        (b'{"value":"x","value_encoding":"base64"}', "a value that is not base64"),
        (b'{"value":"\\ud800"}', "half of a surrogate pair"),
        (b'{"value":"x","partition":-1}', "a partition that is not a number"),
        (b'{"value":"x","partition":true}', "a partition that is not a number"),
        (b'{"value":"x","timestamp_ms":1.5}', "a timestamp_ms that is not a number"),
        (b'{"value":"x","timestamp_ms":9223372036854775808}', "a timestamp_ms that is not a number"),
        (b'{"value":"x","headers":{"a":"b"}}', "headers that are not a list"),
        (b'{"value":"x","headers":[{"value":"b"}]}', "a header that is not an object of"),
        (b"[" * 100_000, "nested too deep"),
        (b'{"value":"x","offset":' + b"9" * 5000 + b"}", "nested too deep"),
    ],
)
def test_invalid_json_lines(line: bytes, why: str) -> None:
    with pytest.raises(Unfit, match=why):
        json_parser()(line)


def test_options_and_json() -> None:
    line = b'{"value":"v","timestamp_ms":12,"partition":3,"headers":[{"key":"a","value":"1"}]}'
    assert json_parser(repartition=True)(line).partition is None
    changed = json_parser(headers=((b"b", b"2"),), key=b"k", timestamp_ms=5, partition=1)(line)
    assert changed == Outgoing(b"k", b"v", ((b"a", b"1"), (b"b", b"2")), 5, 1)
    assert json_parser(key=b"k")(b'{"value":"v","key":"own"}').key == b"own"


@pytest.mark.parametrize(
    "record",
    [
        Outgoing(None, None, (), 0, 0),
        Outgoing(b"", b"", ((b"", b""), (b"h", None)), 1, 2),
        Outgoing(b"\xff", b"\x00\xfe", (("ü".encode(), b"\xff"),), 2**62, 2**31 - 1),
        Outgoing(b"k\n\x1b", "😀\u2028".encode(), (), 3, 1),
    ],
)
def test_unacknowledged_records_can_be_sent_again(record: Outgoing) -> None:
    text = json_line(record, topic="t", line=7, outcome="failed")
    assert "\n" not in text
    assert json_parser()(text.encode()) == record
    assert {"line": 7, "outcome": "failed", "topic": "t"}.items() <= json.loads(text).items()


def test_the_hint_shows_json_as_a_valid_template() -> None:
    """A first template rarely has doubled braces."""
    values = '{"id":{n},"in":{"ref":"{uuid}"}}'
    with pytest.raises(UsageError) as caught:
        template(values)
    output = '{{"id":{n},"in":{{"ref":"{uuid}"}}}}'
    assert (caught.value.hint or "").startswith(f"double the braces of JSON: {output}; placeholders are")
    assert b'{"id":7,"in":{"ref":"' in template(output)(7)
    with pytest.raises(UsageError) as again:
        template("{{ {x}")
    assert (again.value.hint or "").startswith("placeholders are")


def test_template() -> None:
    created = template("order {n} {{x}} {uuid} {now} {random:12} {int:-2:3}")(7).decode()
    assert re.fullmatch(
        r"order 7 \{x\} [0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12} \d{13} "
        r"[A-Za-z0-9+/]{12} (-[12]|[0-3])",
        created,
    )
    assert template("plain")(1) == b"plain"
    assert template("")(1) == b""
    assert [len(random_text(size)(1)) for size in (0, 1, 2, 3, 4, 1000)] == [0, 1, 2, 3, 4, 1000]


@pytest.mark.parametrize(
    "text",
    ["{", "}", "{}", "{x}", "{n", "{n.real}", "{n!r}", "{random}", "{random:-1}", "{random:x}", "{int:2:1}", "{int:1}",
     "{__import__('os')}", "{n:}", "{random:" + "9" * 30 + "}", "{random:999999999999}", "{random:1:2}"],
)  # fmt: skip
def test_invalid_templates(text: str) -> None:
    with pytest.raises(UsageError):
        template(text)


def test_random_values_have_a_limit() -> None:
    with pytest.raises(UsageError, match="exceed the maximum"):
        random_text(MAX_RANDOM + 1)


@pytest.mark.parametrize(("text", "per_s"), [("100", 100), ("100/s", 100), ("60/m", 1), ("3600/h", 1), ("0.5/s", 0.5)])
def test_rate(text: str, per_s: float) -> None:
    assert parse_record_rate(text) == pytest.approx(per_s)


@pytest.mark.parametrize("text", ["", "0", "-1", "1/d", "1MB/s", "s", "1e3"])
def test_invalid_rates(text: str) -> None:
    with pytest.raises(UsageError, match="is not a rate"):
        parse_record_rate(text)


def test_pace(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    pace = Pace(10.0)
    assert pace.due() == 1
    pace.took(1)
    assert pace.due() == 0
    assert pace.wait_s() == pytest.approx(0.1)
    now[0] += 0.1001
    assert pace.due() == 1
    now[0] += 60
    assert pace.due() == 1, "a pause is not caught up"
    assert Pace(None).due() > 1_000_000


@pytest.mark.parametrize(
    ("key", "expected"),  # org.apache.kafka.common.utils.UtilsTest.testMurmur2
    [("21", -973932308), ("foobar", -790332482), ("a-little-bit-long-string", -985981536),
     ("a-little-bit-longer-string", -1486304829),
     ("lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971), ("abc", 479470107)],
)  # fmt: skip
def test_murmur2(key: str, expected: int) -> None:
    assert murmur2(key.encode()) == expected & 0xFFFFFFFF
    assert partition_of(key.encode(), 7) == (expected & 0x7FFFFFFF) % 7


def test_large_keys_are_not_cached() -> None:
    before = partitioner._cached_hash.cache_info().currsize
    assert [partition_of(b"k" * size, 3) for size in (65, 20_000)] == [
        (murmur2(b"k" * size) & 0x7FFFFFFF) % 3 for size in (65, 20_000)
    ]
    assert partitioner._cached_hash.cache_info().currsize == before


def test_the_file_of_unacknowledged_records(tmp_path: Path) -> None:
    path = tmp_path / "lost.jsonl"
    unused = UndeliveredFile(path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert unused.write("t", []) == 0
    unused.close()
    assert not path.exists(), "an empty one goes"
    used = UndeliveredFile(path)
    assert used.write("t", [UnacknowledgedRecord(3, Outgoing(b"k", b"v", (), 1, 0), "unknown")]) == 1
    used.close()
    assert json.loads(path.read_text())["outcome"] == "unknown"
    with pytest.raises(AlreadyExists, match="has content"):
        UndeliveredFile(path)
    with pytest.raises(InvalidFile, match="cannot write"):
        UndeliveredFile(tmp_path / "no" / "folder")
    assert list(tmp_path.iterdir()) == [path]
