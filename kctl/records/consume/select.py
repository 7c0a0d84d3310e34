"""Which records are shown: conditions on key, value, headers and JSON, all of which have to hold.

Keys and values are matched as they are shown: as decoders have them, else their bytes. What is null matches nothing.
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

_SEARCH_S = 10  # of CPU time, for the records that are decoded at once: some MB


@dataclass(frozen=True, slots=True)
class HeaderMatch:
    """A header of this name is there, and its value matches (None: whatever it is)."""

    name: bytes
    pattern: re.Pattern[bytes] | None

    def __call__(self, headers: Sequence[Header]) -> bool:
        return any(
            name == self.name and (self.pattern is None or (data is not None and self.pattern.search(data) is not None))
            for name, data in headers
        )


def parse_header(text: str) -> HeaderMatch:
    """«NAME=REGEX», or «NAME». Raises UsageError."""
    from kctl.segment.log.ranges import parse_pattern

    name, found, pattern = text.partition("=")
    if not name:
        raise UsageError(f"--header {text!r} has no name", hint="write NAME=REGEX, or NAME alone")
    return HeaderMatch(name.encode("utf-8", "surrogateescape"), parse_pattern("--header", pattern) if found else None)


@dataclass(frozen=True, slots=True)
class Selection:
    """All conditions. Regular expressions are found anywhere in what they are for."""

    key: re.Pattern[bytes] | None = None
    value: re.Pattern[bytes] | None = None
    headers: tuple[HeaderMatch, ...] = ()
    json: tuple[Condition, ...] = ()

    @property
    def everything(self) -> bool:
        """Nothing is left out."""
        return not (self.key or self.value or self.headers or self.json)

    def of(self, chunk: Chunk) -> Chunk:
        """The records for which all conditions hold. Raises OperationFailed when a pattern takes for ever."""

        def too_slow() -> OperationFailed:
            return OperationFailed(
                f"a regular expression took more than {_SEARCH_S} s for offsets {chunk.offsets[0]} to"
                f" {chunk.offsets[-1]} of {chunk.tp}",
                hint="repeats within repeats, as (a+)+b, and .* in front need that for long texts: write it without",
            )

        with cpu_limit(_SEARCH_S, too_slow):
            return chunk.chosen(self._kept(chunk))

    def _kept(self, chunk: Chunk) -> list[bool]:
        keep = [True] * chunk.size
        for pattern, column in ((self.key, chunk.keys), (self.value, chunk.values)):
            if pattern is not None:
                texts = column if chunk.shown is None else _shown(chunk, column is chunk.keys)
                found = pattern.search
                keep = [k and t is not None and found(t) is not None for k, t in zip(keep, texts, strict=True)]
        for match in self.headers:
            keep = [k and match(chunk.headers_of(index)) for index, k in enumerate(keep)]
        if self.json:
            keep = [k and self._json_holds(chunk, index) for index, k in enumerate(keep)]
        return keep

    def _json_holds(self, chunk: Chunk, index: int) -> bool:
        shown = None if chunk.shown is None else chunk.shown[index]
        value: Any
        if shown is not None and shown.value_encoding != UTF8 and not isinstance(shown.value, AsIs):
            value = shown.value
        else:
            try:
                value = json.loads(chunk.values[index] or b"")
            except (ValueError, RecursionError):
                return False
        return all(condition(value) for condition in self.json)


def _shown(chunk: Chunk, keys: bool) -> list[bytes | None]:
    """As decoders have them, as bytes; where one gave up, the record's own."""
    assert chunk.shown is not None
    texts: list[bytes | None] = []
    for index, shown in enumerate(chunk.shown):
        value = shown.key if keys else shown.value
        if value is None or isinstance(value, AsIs):
            texts.append(chunk.keys[index] if keys else chunk.values[index])
        else:
            texts.append(text_bytes(value))
    return texts


def text_bytes(value: Any) -> bytes:
    """What a decoder made, as a line has it: a text as it is, all else as compact JSON."""
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass")
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
