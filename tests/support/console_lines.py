"""Lines as kafka-console-producer reads them: options, inputs, and the records that Java reads.

python tests/support/console_lines.py KAFKA_HOME        regenerates tests/data/console_lines.json
"""

from __future__ import annotations

import base64
import itertools
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

DATA = Path(__file__).parents[1] / "data" / "console_lines.json"
_RUNNER = Path(__file__).with_name("ConsoleLines.java")
_READER = "kafka.tools.ConsoleProducer$LineMessageReader"  # of Kafka 3.x

_ENDS = ("", "\n", "\r\n", "\r", "\n\r", "\r\r\n", "\n\n", "\r\n\r\n", "\r\r")
_LINES = (
    "", "v", ":", "k:", ":v", "k:v", "k:v:w", "NULL", "NULL:v", "k:NULL", "NULL:NULL", ":NULL", " k : v ", "k\tv",
    "é:ü", "\ufeffk:v",
)  # fmt: skip
_HEADED = (
    "", "v", "\tv", "a:1\tv", "a:1,b:2\tv", "a:1,a:2\tv", "a:\tv", ":1\tv", "a\tv", "a,b:2\tv", "a:1,\tv", ",a:1\tv",
    "a:1,,b:2\tv", ",\tv", "a:1:2\tv", "NULL\tv", "a:NULL\tv", "NULL:1\tv", "a:1\tNULL", "a:1\tk\tv", "a:1\tNULL\tv",
    "a:1\tk\tNULL", "NULL\tNULL\tNULL", "a:1", "a:1\t", "a:1\tk", "é:ü\tk\tv", "a:1;b:2\tv", "a=1|b=2#k:v",
)  # fmt: skip
_TEXT_OPTIONS: tuple[dict[str, str], ...] = (
    {},
    {"null.marker": "NULL"},
    {"parse.key": "true", "key.separator": ":"},
    {"parse.key": "true", "key.separator": ":", "null.marker": "NULL"},
    {"parse.key": "true"},
    {"parse.key": "true", "key.separator": "=>"},
    {"parse.key": "true", "key.separator": ":", "null.marker": ""},
)
_HEADER_OPTIONS: tuple[dict[str, str], ...] = (
    {"parse.headers": "true"},
    {"parse.headers": "true", "null.marker": "NULL"},
    {"parse.headers": "true", "parse.key": "true"},
    {"parse.headers": "true", "parse.key": "true", "null.marker": "NULL"},
    {"parse.headers": "true", "headers.separator": ";"},
    {"parse.headers": "true", "parse.key": "true", "key.separator": ":", "headers.delimiter": "#",
     "headers.separator": "\\|", "headers.key.separator": "="},
)  # fmt: skip
_EQUAL_OPTIONS: tuple[dict[str, str], ...] = (
    {"parse.headers": "true", "headers.delimiter": ","},
    {"parse.headers": "true", "headers.delimiter": ":"},
    {"parse.headers": "true", "headers.key.separator": ","},
    {"parse.headers": "true", "null.marker": ","},
    {"parse.headers": "true", "null.marker": ":"},
    {"parse.headers": "true", "null.marker": "\t"},
    {"parse.key": "true", "key.separator": ":", "null.marker": ":"},
    {"parse.headers": "true", "parse.key": "true", "key.separator": ",", "headers.delimiter": ","},
)


def cases() -> list[tuple[dict[str, str], str]]:
    """Return pairs of reader options and an input."""
    inputs = [f"k1:v1{end}k2:NULL{end}v3{tail}" for end in _ENDS[1:] for tail in _ENDS]
    plain = ["".join(pair) for pair in itertools.product(_LINES, ("", "\n", "\r\n", "\r"))]
    headed = [f"{line}{end}" for line in _HEADED for end in ("\n", "\r\n")]
    ignoring: tuple[dict[str, str], ...] = ({}, {"ignore.error": "true"})
    tables = ((_TEXT_OPTIONS, [*inputs, *plain]), (_HEADER_OPTIONS, headed), (_EQUAL_OPTIONS, ["a:1\tk:v"]))
    return [
        ({**options, **more}, text)
        for given, texts in tables
        for options in given
        for more in ignoring
        for text in texts
    ]


def answers(kafka_home: Path) -> list[tuple[dict[str, str], list[list[Any]]]]:
    """Return for each set of options the inputs, with the records that Java reads and the error that ends them."""
    table = cases()
    lines = "".join(
        "\x1f".join(f"{name}={_encoded(value)}" for name, value in options.items()) + f"\t{_encoded(text)}\n"
        for options, text in table
    )
    argv = ["java", "-Xmx256M", "-cp", f"{kafka_home}/libs/*", str(_RUNNER), _READER]
    done = subprocess.run(argv, input=lines, capture_output=True, text=True, check=True, timeout=120)
    rows = zip(table, done.stdout.splitlines(), strict=True)
    return [
        (options, [[text, *_answer(line)] for (_, text), line in same])
        for options, same in itertools.groupby(rows, key=lambda row: row[0][0])
    ]


def _answer(line: str) -> tuple[list[Any], str | None]:
    parts = line.split()
    error = _decoded(parts.pop()[1:]) if parts and parts[-1].startswith("!") else None
    return [_record(part) for part in parts], error


def _record(text: str) -> list[Any]:
    key, value, headers = text.split("|")
    pairs = [header.split(":") for header in headers.split(",") if header]
    return [_decoded(key), _decoded(value), [[_decoded(each) for each in pair] for pair in pairs]]


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _decoded(text: str) -> str | None:
    return None if text == "~" else base64.b64decode(text).decode()


if __name__ == "__main__":
    found = answers(Path(sys.argv[1]))
    DATA.write_text("[\n" + ",\n".join(json.dumps(row, separators=(",", ":")) for row in found) + "\n]\n")
    sys.stdout.write(f"{sum(len(rows) for _, rows in found)} cases\n")
