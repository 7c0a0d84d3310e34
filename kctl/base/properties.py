"""A parser and writer for Java's .properties format (java.util.Properties), e.g. Kafka's and ZooKeeper's configs."""

from __future__ import annotations

import codecs
import re

from kctl.errors import InvalidFile

_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_SEPARATOR = re.compile(r"[ \t\f]*[=:][ \t\f]*|[ \t\f]+")


def decode_properties(data: bytes, *, source: str) -> str:
    """Return the text of a file in UTF-8, or else in ISO 8859-1, which java.util.Properties always uses.

    Raises InvalidFile for a byte order mark and for NUL bytes (UTF-16), which Java reads as parts of names.
    """
    if data.startswith(codecs.BOM_UTF8):
        raise InvalidFile(
            f"{source} begins with a byte order mark, which Kafka takes for a part of the first line",
            hint="save it as UTF-8 without one",
        )
    if b"\0" in data:
        raise InvalidFile(f"{source} is not text: it has NUL bytes", hint="if it is UTF-16, save it as UTF-8")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data.decode("iso-8859-1")


def load_properties(data: bytes, *, source: str) -> dict[str, str]:
    """Return the keys and values of a file's bytes. Raises InvalidFile."""
    return parse_properties(decode_properties(data, source=source), source=source)


def parse_properties(text: str, *, source: str) -> dict[str, str]:
    """Return the keys and values of `text`. source: its name in errors.

    Continued lines, comments and escapes are parsed as in Java. Unlike in Java, a duplicate key raises InvalidFile
    with the line, because otherwise the last value would win silently.
    """
    values: dict[str, str] = {}
    for number, line in _logical_lines(text):
        raw_key, raw_value = _split(line)
        key = _unescape(raw_key, source, number)
        if key in values:
            raise InvalidFile(f"{source}, line {number}: {key} is set twice", hint="remove one of them")
        values[key] = _unescape(raw_value, source, number)
    return values


def _logical_lines(text: str) -> list[tuple[int, str]]:
    lines: list[tuple[int, str]] = []
    pending: tuple[int, str] | None = None
    physical_lines = re.split(r"\r\n|\n|\r", text)
    for number, physical in enumerate(physical_lines, start=1):
        stripped = physical.lstrip(" \t\f")
        if pending is None and (not stripped or stripped[0] in "#!"):
            continue
        first, start = pending if pending is not None else (number, "")
        continued = (len(stripped) - len(stripped.rstrip("\\"))) % 2 == 1
        joined = start + (stripped[:-1] if continued else stripped)
        pending = (first, joined) if continued else None
        # Java ignores a line that is continued by an empty one, except at the end of the file.
        if pending is None and (joined or number == len(physical_lines)):
            lines.append((first, joined))
    return [*lines, pending] if pending is not None else lines


def _split(line: str) -> tuple[str, str]:
    position = 0
    while position < len(line) and not _SEPARATOR.match(line, position):
        position += 2 if line[position] == "\\" else 1
    separator = _SEPARATOR.match(line, position)
    return line[:position], line[separator.end() :] if separator else ""


def _unescape(text: str, source: str, number: int) -> str:
    def replace(match: re.Match[str]) -> str:
        escaped = match.group(1)
        if escaped.startswith("u"):
            if len(escaped) != 5:
                raise InvalidFile(f"{source}, line {number}: \\u needs four hexadecimal digits")
            return chr(int(escaped[1:], 16))
        return _ESCAPES.get(escaped, escaped)

    text = re.sub(r"\\(u[0-9A-Fa-f]{4}|.|$)", replace, text)
    # Java's characters are UTF-16 units: two escapes may make one character.
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _escape(text: str, *, key: bool) -> str:
    out = []
    for index, char in enumerate(text):
        if char == "\\" or (char in "#!=: " and (key or (char == " " and index == 0))):
            out.append("\\" + char)
        elif char in "\t\n\r\f":
            out.append({"\t": "\\t", "\n": "\\n", "\r": "\\r", "\f": "\\f"}[char])
        elif " " <= char <= "~":
            out.append(char)
        else:  # Properties.load reads a file as ISO 8859-1
            units = char.encode("utf-16-be", "surrogatepass")
            out.extend(f"\\u{units[i]:02x}{units[i + 1]:02x}" for i in range(0, len(units), 2))
    return "".join(out)


def property_line(key: str, value: str) -> str:
    """Return a line of a .properties file that is parsed as exactly this key and value."""
    return f"{_escape(key, key=True)}={_escape(value, key=False)}"


def property_sections(header: str, sections: list[tuple[str, list[tuple[str, str]]]]) -> str:
    """Return a file with a header, then the comment and lines of each section. Empty sections are omitted."""
    blocks = [_comment(header)]
    blocks += [
        "\n".join([_comment(comment), *(property_line(k, v) for k, v in entries)])
        for comment, entries in sections
        if entries
    ]
    return "\n\n".join(blocks) + "\n"


def _comment(text: str) -> str:
    return "\n".join(f"# {line}".rstrip() for line in text.splitlines())
