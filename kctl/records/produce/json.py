"""Records as JSON Lines, the format of `kctl consume -o json`: parsed as input, written for unacknowledged records.

    {"value": text or null (a tombstone), "value_encoding": "utf-8" or "base64", "key": …, "key_encoding": …,
     "headers": [{"key": text, "value": text or null, "encoding": …}], "timestamp_ms": ms, "partition": number}

Only value is required. Fields that a record gets from its new log (topic, offset) are ignored, as are those of a file
of unacknowledged records (line, outcome). Other fields are rejected as misspelled.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable
from typing import Any

from kctl.records.produce.outgoing import Headers, Outgoing, Unfit
from kctl.records.record import BASE64, UTF8, text_of

_INPUT_FIELDS = frozenset({"value", "value_encoding", "key", "key_encoding", "headers", "timestamp_ms", "partition"})
_IGNORED = frozenset({"topic", "offset", "timestamp", "line", "outcome"})
_ALL_FIELDS = _INPUT_FIELDS | _IGNORED
_HEADER_FIELDS = frozenset({"key", "value", "encoding"})


def json_parser(
    *,
    headers: Headers = (),
    key: bytes | None = None,
    timestamp_ms: int | None = None,
    partition: int | None = None,
    repartition: bool = False,
) -> Callable[[bytes], Outgoing]:
    """Return a function that parses a line into a record, or raises Unfit.

    headers: added to those of each record. key: for records without one. timestamp_ms, partition: override the line's.
    repartition: ignore the line's partition.
    """

    def parse(line: bytes) -> Outgoing:
        fields = _object(line)
        line_key = _bytes(fields.get("key"), fields.get("key_encoding"), "key")
        timestamp = _number(fields, "timestamp_ms", 2**63 - 1) if timestamp_ms is None else timestamp_ms
        line_partition = partition
        if line_partition is None and not repartition:
            line_partition = _number(fields, "partition", 2**31 - 1)
        value = _bytes(fields["value"], fields.get("value_encoding"), "value")
        line_headers = _headers(fields.get("headers"))
        return Outgoing(key if line_key is None else line_key, value, line_headers + headers, timestamp, line_partition)

    return parse


def _object(line: bytes) -> dict[str, Any]:
    try:
        fields = json.loads(line.decode("utf-8"))
    except UnicodeDecodeError:
        raise Unfit("is not UTF-8, so not JSON", hint="use --format text for arbitrary bytes") from None
    except json.JSONDecodeError as exc:
        raise Unfit(f"is not JSON: {exc.msg} at column {exc.colno}") from None
    except (RecursionError, ValueError):
        raise Unfit("is JSON that is nested too deeply, or has a number that is too long") from None
    if not isinstance(fields, dict):
        raise Unfit("is JSON, but not an object")
    if not fields.keys() <= _ALL_FIELDS:
        raise Unfit(
            f"has an unknown field: {min(fields.keys() - _ALL_FIELDS)[:40]!r}",
            hint=f"fields are {', '.join(sorted(_INPUT_FIELDS))}",
        )
    if "value" not in fields:
        raise Unfit("has no value", hint='a tombstone is {"key": …, "value": null}')
    return fields


def _bytes(text: Any, encoding: Any, what: str) -> bytes | None:
    if text is None:
        return None
    if not isinstance(text, str):
        raise Unfit(
            f"has a {what} that is neither a string nor null",
            hint="write JSON in a value as a string, as `kctl consume -o json` without a decoder does",
        )
    if encoding in (None, UTF8):
        try:
            return text.encode("utf-8")
        except UnicodeEncodeError:
            raise Unfit(f"has a {what} with half of a surrogate pair, which is not valid UTF-8") from None
    if encoding != BASE64:
        raise Unfit(f"has a {what}_encoding that is neither {UTF8} nor {BASE64}")
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise Unfit(f"has a {what} that is not base64") from None


def _number(fields: dict[str, Any], name: str, largest: int) -> int | None:
    value = fields.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= largest:
        raise Unfit(f"has a {name} that is not a number from 0 to {largest}")
    return value


def _headers(value: Any) -> Headers:
    if not value and isinstance(value, (list, type(None))):
        return ()
    if not isinstance(value, list):
        raise Unfit("has headers that are not a list")
    headers: list[tuple[bytes, bytes | None]] = []
    for header in value:
        if (
            not isinstance(header, dict)
            or not header.keys() <= _HEADER_FIELDS
            or not isinstance(header.get("key"), str)
        ):
            raise Unfit("has a header that is not an object of key, value and encoding")
        name = _bytes(header["key"], None, "header's key")
        assert name is not None
        headers.append((name, _bytes(header.get("value"), header.get("encoding"), "header")))
    return tuple(headers)


def json_line(record: Outgoing, *, topic: str, line: int, outcome: str) -> str:
    """Return `record` as a line for json_parser. line: its number in the input; outcome: "failed" or "unknown"."""
    key, key_encoding = text_of(record.key)
    value, value_encoding = text_of(record.value)
    headers = []
    for name, data in record.headers:
        text, encoding = text_of(data)
        headers.append({"key": name.decode("utf-8", "replace"), "value": text, "encoding": encoding})
    return json.dumps(
        {
            "topic": topic, "partition": record.partition, "timestamp_ms": record.timestamp_ms,
            "key": key, "key_encoding": key_encoding, "value": value, "value_encoding": value_encoding,
            "headers": headers, "line": line, "outcome": outcome,
        },
        ensure_ascii=False,
    )  # fmt: skip
