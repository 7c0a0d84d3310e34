"""Values for programs: conversion to JSON, YAML and CSV."""

from __future__ import annotations

import dataclasses
import json
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timezone
from enum import Enum
from functools import lru_cache
from pathlib import PurePath
from typing import Any, TextIO

from kctl.base.text import ascii_json, printable, printable_json, with_escapes
from kctl.commands.terminal.output_encoding import escaped, is_utf8

# The first characters of a formula in spreadsheets (OWASP, "CSV Injection"), also in their full-width forms.
_FORMULA = frozenset("=+-@\t\r\n\uff1d\uff0b\uff0d\uff20")
_NUMBER = re.compile(r"[-+]?[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
_protected = False  # set by --csv-safe
_QUOTED = re.compile(r'[",\r\n]')
_PLAIN = frozenset({str, int, float, bool, type(None)})


@lru_cache(maxsize=256)
def _field_names(kind: type) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(kind))


@lru_cache(maxsize=1024)
def _iso(time_: datetime) -> str:
    return time_.astimezone(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def jsonable(value: Any) -> Any:
    """Return `value` as JSON types: dataclasses as objects, times as ISO 8601 UTC, enums as values, paths as text."""
    if type(value) in _PLAIN:  # the vast majority of up to a million values
        return value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {}
        for name in _field_names(type(value)):
            each = getattr(value, name)
            fields[name] = each if type(each) in _PLAIN else jsonable(each)
        return fields
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, datetime):
        return _iso(value)
    if isinstance(value, Mapping):
        return {str(k): jsonable(v) for k, v in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        if hasattr(value, "_asdict"):
            return jsonable(value._asdict())
        items = sorted(value) if isinstance(value, (set, frozenset)) else value
        return [jsonable(v) for v in items]
    return str(value) if isinstance(value, PurePath) else value


def json_text(text: str, stream: TextIO) -> str:
    """Return JSON that cannot control a terminal. If the stream is not UTF-8, other characters are JSON escapes."""
    if not is_utf8(stream):
        return ascii_json(printable_json(text) if stream.isatty() else text)
    return printable_json(text) if stream.isatty() else with_escapes(text)


def yaml_text(value: Any) -> str:
    import yaml

    plain = not sys.stdout.isatty() and is_utf8(sys.stdout)  # otherwise non-ASCII characters are escaped
    text: str = yaml.safe_dump(value, sort_keys=False, allow_unicode=plain, default_flow_style=False)
    return text.rstrip("\n")


def protect_csv(*, on: bool) -> None:
    """Turn --csv-safe on or off for the current command.

    A cell that a spreadsheet would run as a formula gets an apostrophe in front, which spreadsheets do not show.
    Numbers stay numbers.
    """
    global _protected  # noqa: PLW0603 - per process, like stdout
    _protected = on


def _without_formula(text: str) -> str:
    return f"'{text}" if _protected and text[:1] in _FORMULA and not _NUMBER.fullmatch(text) else text


def write_csv(rows: Sequence[Any], row_type: type | None = None) -> None:
    """Write rows as CSV. row_type: type of the rows, so that an empty CSV has a header."""
    flat = [_flatten(jsonable(row)) for row in rows]
    header = list(dict.fromkeys(key for row in flat for key in row)) or _header_of(row_type)
    if header:
        sys.stdout.write(csv_line([_csv_cell(name) for name in header]))
    for row in flat:
        sys.stdout.write(csv_line([row.get(key, "") for key in header]))


def csv_line(cells: Sequence[Any]) -> str:
    """Return a line of CSV (RFC 4180).

    The csv module differs between Python versions: 3.10 refuses NUL, and before 3.13 a lone CR is not quoted.
    """
    texts = ["" if cell is None else str(cell) for cell in cells]
    if texts == [""]:
        return '""\n'  # an empty line is not a row
    return ",".join('"' + text.replace('"', '""') + '"' if _QUOTED.search(text) else text for text in texts) + "\n"


def _header_of(row_type: type | None) -> list[str]:
    """Return the keys of a dataclass or NamedTuple."""
    if row_type is None:
        return []
    return list(getattr(row_type, "_fields", None) or _field_names(row_type))


def stream_csv(rows: Iterable[Any | None], row_type: type | None) -> None:
    header = _header_of(row_type) or None
    if header is not None:
        sys.stdout.write(csv_line([_csv_cell(name) for name in header]))
    for row in rows:
        if row is None:
            sys.stdout.flush()
            continue
        fields = jsonable(row)
        if header is None:
            header = list(fields)
            sys.stdout.write(csv_line([_csv_cell(name) for name in header]))
        sys.stdout.write(csv_line([_csv_cell(fields.get(key)) for key in header]))


def _csv_cell(value: Any) -> Any:
    """Return lists of scalars separated by spaces, other lists and objects as JSON; escaped on a terminal."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list) and not any(isinstance(each, (list, dict)) for each in value):
        value = " ".join(map(str, value))
    elif isinstance(value, (list, Mapping)):
        value = json.dumps(value, ensure_ascii=False)
    if isinstance(value, str):
        value = _without_formula(value)
        return escaped(printable(value) if sys.stdout.isatty() else with_escapes(value), sys.stdout)
    return value


def _flatten(row: Any, prefix: str = "") -> dict[str, Any]:
    """Return nested objects as dotted columns, lists of scalars as one space-separated cell, others as JSON."""
    if not isinstance(row, Mapping):
        return {prefix or "value": _csv_cell(row)}
    flat: dict[str, Any] = {}
    for key, value in row.items():
        name = f"{prefix}.{key}" if prefix else str(key)
        if isinstance(value, Mapping):
            flat.update(_flatten(value, name))
        else:
            flat[name] = _csv_cell(value)
    return flat
