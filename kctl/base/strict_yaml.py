"""A strict reader for YAML, also from untrusted sources.

PyYAML parses. The values are built here, from its events, to rule out surprises:

- scalars follow YAML 1.2's core schema (https://yaml.org/spec/1.2.2/#103-core-schema): `no` and `yes` are
  text, `010` is 10, `2024-01-01` and `12:30` are text;
- anchors, aliases, tags, merge keys, several documents, duplicate keys and invisible line breaks are rejected;
- size, depth and number of values are bounded, so that 300 bytes cannot become 3 GB;
- each mapping and list has the line and column of its items, for errors of schemas.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from kctl.base.input_file import read_path
from kctl.errors import InvalidFile

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import yaml

MAX_BYTES = 1 << 20
MAX_DEPTH = 32
MAX_VALUES = 100_000

_NULL = frozenset({"", "~", "null", "Null", "NULL"})
_BOOL = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_INT = re.compile(r"[-+]?[0-9]+")
_OCTAL = re.compile(r"0o[0-7]+")
_HEX = re.compile(r"0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_INT64 = range(-(2**63), 2**63)
# Line breaks to YAML 1.1 parsers, but not to most editors: the text after one looks like part of a comment.
_HIDDEN_BREAK = re.compile("[\x85\u2028\u2029]|\r(?!\n)")
_BREAK_NAMES = {"\x85": "a next line (U+0085)", "\r": "a carriage return without a line feed"}


class Place(NamedTuple):
    """The start of a key or a value. Lines and columns count from 1.

    shape: the layout of a scalar's text. "line": it starts at (text_line, text_column). "block": each of its lines
    starts at this column. "": folding or escapes moved its characters.
    """

    line: int
    column: int
    shape: str = ""
    text_line: int = 0
    text_column: int = 0

    def at(self, text: str, offset: int) -> tuple[int, int]:
        """Return the line and column of a character of the scalar's text, or of the scalar if unknown."""
        if self.shape == "line":
            return self.text_line, self.text_column + offset
        if self.shape == "block":
            line_start = text.rfind("\n", 0, offset) + 1
            return self.text_line + text.count("\n", 0, offset), self.text_column + offset - line_start
        return self.line, self.column


class YamlMap(dict[Any, Any]):
    """A mapping (keys are str or int) with its place in the file."""

    def __init__(self, source: str, place: Place) -> None:
        super().__init__()
        self.source = source
        self.place = place
        self.keys_at: dict[Any, Place] = {}
        self.values_at: dict[Any, Place] = {}

    def where(self, key: object = None) -> str:
        """Return "file:line:column" of a key, or of the mapping itself."""
        place = self.keys_at.get(key, self.place)
        return f"{self.source}:{place.line}:{place.column}"


class YamlList(list[Any]):
    """A list with its place in the file."""

    def __init__(self, source: str, place: Place) -> None:
        super().__init__()
        self.source = source
        self.place = place
        self.values_at: list[Place] = []

    def where(self, index: int | None = None) -> str:
        """Return "file:line:column" of an item, or of the list itself."""
        place = self.place if index is None else self.values_at[index]
        return f"{self.source}:{place.line}:{place.column}"


def load_file(path: Path, *, max_bytes: int = MAX_BYTES) -> Any:
    """Return the single document in a file: YamlMap, YamlList or a scalar; None if it is empty.

    Raises InvalidFile with file, line and column; OSError if the file cannot be read.
    """
    return load(read_path(path, max_bytes=max_bytes + 1), source=str(path), max_bytes=max_bytes)


def load(data: bytes | str, *, source: str, max_bytes: int = MAX_BYTES) -> Any:
    """Return the single document in a text, as load_file does. source: its name in errors. Raises InvalidFile."""
    raw = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data
    if len(raw) > max_bytes:
        raise InvalidFile(f"{source}: larger than {max_bytes} bytes", hint="split the file")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as exc:
        line, column = _line_and_column(raw[: exc.start].decode("utf-8", "replace"))
        raise InvalidFile(f"{source}:{line}:{column}: not UTF-8 text", hint="save the file as UTF-8") from None
    hidden = _HIDDEN_BREAK.search(text)
    if hidden:
        line, column = _line_and_column(text[: hidden.start()])
        what = _BREAK_NAMES.get(hidden.group(), f"a line separator (U+{ord(hidden.group()):04X})")
        hint = "end lines with \\n; within a text write it as \\r, \\N, \\L or \\P in double quotes"
        raise InvalidFile(f"{source}:{line}:{column}: {what} ends a line that seems to continue", hint=hint)
    return _Builder(source, text).document(_events(text, source))


def _events(text: str, source: str) -> Iterator[yaml.Event]:
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        yield from yaml.parse(text, Loader=loader)
    except yaml.MarkedYAMLError as exc:
        mark = exc.problem_mark or exc.context_mark
        where = f"{source}:{mark.line + 1}:{mark.column + 1}" if mark else source
        raise InvalidFile(f"{where}: not YAML: {exc.problem or exc.context}") from None
    except yaml.YAMLError as exc:  # the reader's: control characters
        position = getattr(exc, "position", 0)
        line, column = _line_and_column(text[:position] if isinstance(position, int) else "")
        reason = getattr(exc, "reason", "unreadable")
        raise InvalidFile(f"{source}:{line}:{column}: not YAML: {reason}") from None
    except RecursionError:
        raise InvalidFile(f"{source}: nested too deeply") from None


class _Builder:
    """A builder of values from events. It recurses once for each level of the document."""

    def __init__(self, source: str, text: str) -> None:
        self._source = source
        self._text = text
        self._lines: list[str] | None = None
        self._values = 0
        self._events: Iterator[yaml.Event] = iter(())

    def document(self, events: Iterable[yaml.Event]) -> Any:
        import yaml

        self._events = iter(events)
        value: Any = None
        documents = 0
        for event in self._events:
            if isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    raise self._error(event, "a second document begins here; give one per file")
                value = self._value(next(self._events), depth=1)
        return value

    def _value(self, event: yaml.Event, depth: int) -> Any:
        import yaml

        self._values += 1
        if self._values > MAX_VALUES:
            raise self._error(event, f"more than {MAX_VALUES} values")
        if depth > MAX_DEPTH:
            raise self._error(event, f"nested more than {MAX_DEPTH} levels deep")
        self._refuse_node_properties(event)
        if isinstance(event, yaml.ScalarEvent):
            return self._scalar(event)
        if isinstance(event, yaml.SequenceStartEvent):
            return self._list(event, depth)
        if isinstance(event, yaml.MappingStartEvent):
            return self._map(event, depth)
        raise self._error(event, "not understood")

    def _refuse_node_properties(self, event: yaml.Event) -> None:
        import yaml

        if isinstance(event, yaml.AliasEvent):
            raise self._error(event, f"the alias *{event.anchor} is not supported; write the value out")
        if getattr(event, "anchor", None):
            raise self._error(event, f"the anchor &{event.anchor} is not supported; write the value out")  # type: ignore[attr-defined]
        if getattr(event, "tag", None):
            raise self._error(event, f"the tag {event.tag} is not supported")  # type: ignore[attr-defined]

    def _list(self, start: yaml.Event, depth: int) -> YamlList:
        import yaml

        result = YamlList(self._source, _place(start))
        for event in self._events:
            if isinstance(event, yaml.SequenceEndEvent):
                break
            result.values_at.append(self._place_of_value(event))
            result.append(self._value(event, depth + 1))
        return result

    def _map(self, start: yaml.Event, depth: int) -> YamlMap:
        import yaml

        result = YamlMap(self._source, _place(start))
        for event in self._events:
            if isinstance(event, yaml.MappingEndEvent):
                break
            key = self._key(event, depth)
            if key in result:
                raise self._error(event, f"{key!r} is there twice; first in line {result.keys_at[key].line}")
            result.keys_at[key] = _place(event)
            value = next(self._events)
            result.values_at[key] = self._place_of_value(value)
            result[key] = self._value(value, depth + 1)
        return result

    def _key(self, event: yaml.Event, depth: int) -> str | int:
        import yaml

        key = self._value(event, depth + 1) if isinstance(event, yaml.ScalarEvent) else None
        if isinstance(event, yaml.ScalarEvent) and event.value == "<<" and event.implicit[0]:
            raise self._error(event, "merge keys (<<) are not supported; write the values out")
        if isinstance(event, yaml.AliasEvent):
            self._refuse_node_properties(event)
        if isinstance(key, bool) or not isinstance(key, (str, int)):
            raise self._error(event, "a key must be text or a whole number; put it in quotes")
        return key

    def _scalar(self, event: yaml.ScalarEvent) -> Any:
        text = event.value
        if not event.implicit[0]:  # quoted, or a block: always text
            return text
        if text in _NULL:
            return None
        if text in _BOOL:
            return _BOOL[text]
        if _NOT_FINITE.fullmatch(text):
            raise self._error(event, f"{text} is not a finite number")
        try:
            return _number(text)
        except ValueError as exc:
            raise self._error(event, str(exc)) from None

    def _place_of_value(self, event: yaml.Event) -> Place:
        """Return the place, including the place of a scalar's text."""
        import yaml

        place = _place(event)
        if not isinstance(event, yaml.ScalarEvent) or not event.start_mark or not event.end_mark:
            return place
        if event.style == "|":
            return self._block(event, place)
        start, end, quotes = event.start_mark, event.end_mark, len(event.style or "")
        if start.line == end.line and end.column - start.column == len(event.value) + 2 * quotes:
            return place._replace(shape="line", text_line=place.line, text_column=place.column + quotes)
        return place

    def _block(self, event: yaml.ScalarEvent, place: Place) -> Place:
        """Return the place of a literal block. It begins on the next line, indented like its first nonempty line."""
        lead = len(event.value) - len(event.value.lstrip("\n"))
        lines = self._source_lines()
        number = place.line + lead  # 0-based: the line below, and `lead` empty ones
        if number >= len(lines):
            return place
        first = event.value[lead:].partition("\n")[0]
        indent = len(lines[number].rstrip("\r")) - len(first)
        return place._replace(shape="block", text_line=place.line + 1, text_column=indent + 1)

    def _source_lines(self) -> list[str]:
        if self._lines is None:
            self._lines = self._text.split("\n")
        return self._lines

    def _error(self, event: yaml.Event, problem: str) -> InvalidFile:
        place = _place(event)
        return InvalidFile(f"{self._source}:{place.line}:{place.column}: {problem}")


def _number(text: str) -> int | float | str:
    """Return the number in a plain scalar, or the text itself. Raises ValueError beyond 64 bits."""
    if len(text) > 64:  # no number is that long; keeps int() and the patterns cheap
        return text
    number: int | float
    if _INT.fullmatch(text):
        number = int(text)
    elif _OCTAL.fullmatch(text) or _HEX.fullmatch(text):
        number = int(text, 0)
    elif _FLOAT.fullmatch(text):
        number = float(text)
        if number in {float("inf"), float("-inf")}:
            raise ValueError(f"{text} is too large for a number; put it in quotes if it is text")
        return number
    else:
        return text
    if number not in _INT64:
        raise ValueError(f"{text} does not fit into 64 bits; put it in quotes if it is text")
    return number


def _place(event: yaml.Event) -> Place:
    mark = event.start_mark
    return Place(int(mark.line) + 1, int(mark.column) + 1) if mark else Place(1, 1)


def _line_and_column(before: str) -> tuple[int, int]:
    """Return the line and column of the text that follows `before`."""
    return before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1
