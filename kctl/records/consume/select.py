"""Filter records by conditions on key, value, headers and JSON, all of which must match.

Keys and values are matched in the form in which they are shown: decoded, or their bytes. Null matches nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kctl.base.cpu_limit import cpu_limit
from kctl.errors import OperationFailed, UsageError
from kctl.records.chunk import Chunk
from kctl.records.consume.json_path import Condition
from kctl.records.decode.decoding import UTF8, AsIs
from kctl.segment.format.record import Header

_SEARCH_S = 10  # of CPU time for one chunk of records, a few MB


@dataclass(frozen=True, slots=True)
class HeaderMatch:
    """A condition on a header: it exists, and its value matches the pattern (None: any value)."""

    name: bytes
    pattern: re.Pattern[bytes] | None

    def __call__(self, headers: Sequence[Header]) -> bool:
        return any(
            name == self.name and (self.pattern is None or (data is not None and self.pattern.search(data) is not None))
            for name, data in headers
        )


def parse_header(text: str) -> HeaderMatch:
    """Parse "NAME=REGEX" or "NAME". Raises UsageError."""
    from kctl.segment.log.ranges import parse_pattern

    name, separator, pattern = text.partition("=")
    if not name:
        raise UsageError(f"--header {text!r} has no name", hint="use NAME=REGEX, or NAME alone")
    return HeaderMatch(
        name.encode("utf-8", "surrogateescape"), parse_pattern("--header", pattern) if separator else None
    )


@dataclass(frozen=True, slots=True)
class RecordFilter:
    """All conditions. Regular expressions match anywhere in the text."""

    key: re.Pattern[bytes] | None = None
    value: re.Pattern[bytes] | None = None
    headers: tuple[HeaderMatch, ...] = ()
    json: tuple[Condition, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Return True if there are no conditions."""
        return not (self.key or self.value or self.headers or self.json)

    def matching(self, chunk: Chunk) -> Chunk:
        """Return the records that match all conditions. Raises OperationFailed if a pattern takes too long."""

        def too_slow() -> OperationFailed:
            return OperationFailed(
                f"a regular expression took more than {_SEARCH_S} s for offsets {chunk.offsets[0]} to"
                f" {chunk.offsets[-1]} of {chunk.tp}",
                hint="avoid nested repeats such as (a+)+b, and a leading .*, which are slow for long texts",
            )

        with cpu_limit(_SEARCH_S, too_slow):
            return chunk.select(self._matches(chunk))

    def _matches(self, chunk: Chunk) -> list[bool]:
        keep = [True] * chunk.size
        for pattern, column in ((self.key, chunk.keys), (self.value, chunk.values)):
            if pattern is not None:
                texts = column if chunk.decoded is None else _decoded_bytes(chunk, column is chunk.keys)
                search = pattern.search
                keep = [k and t is not None and search(t) is not None for k, t in zip(keep, texts, strict=True)]
        for match in self.headers:
            keep = [k and match(chunk.headers_of(index)) for index, k in enumerate(keep)]
        if self.json:
            keep = [k and self._json_matches(chunk, index) for index, k in enumerate(keep)]
        return keep

    def _json_matches(self, chunk: Chunk, index: int) -> bool:
        decoded = None if chunk.decoded is None else chunk.decoded[index]
        value: Any
        if decoded is not None and decoded.value_encoding != UTF8 and not isinstance(decoded.value, AsIs):
            value = decoded.value
        else:
            try:
                value = json.loads(chunk.values[index] or b"")
            except (ValueError, RecursionError):
                return False
        return all(condition(value) for condition in self.json)


def _decoded_bytes(chunk: Chunk, keys: bool) -> list[bytes | None]:
    """Return decoded keys or values as bytes; undecoded ones unchanged."""
    assert chunk.decoded is not None
    texts: list[bytes | None] = []
    for index, decoded in enumerate(chunk.decoded):
        value = decoded.key if keys else decoded.value
        if value is None or isinstance(value, AsIs):
            texts.append(chunk.keys[index] if keys else chunk.values[index])
        else:
            texts.append(text_bytes(value))
    return texts


def text_bytes(value: Any) -> bytes:
    """Return a decoded value as bytes for a line: a string unchanged, anything else as compact JSON."""
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass")
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
