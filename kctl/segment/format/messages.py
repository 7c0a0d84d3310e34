"""Kafka's generated messages, read by their definitions (message_schemas.json) and shown as its JSON converters do.

Encoding: KIP-482. In flexible versions lengths are unsigned varints of length + 1, and every struct ends in tagged
fields; before, strings have an i16 and arrays and bytes an i32 length, −1 for null.
"""

from __future__ import annotations

import base64
import json
import re
from functools import lru_cache
from typing import Any, NamedTuple

from kctl.base.binary_layout import FLOAT64, INT8, INT16, INT32, INT64, UINT16, UINT32, array_of
from kctl.segment.format.java_text import java_double, java_utf8

_NUMBERS = {
    "int8": INT8,
    "int16": INT16,
    "uint16": UINT16,
    "int32": INT32,
    "uint32": UINT32,
    "int64": INT64,
    "float64": FLOAT64,
}
_UUID_BYTES = 16
_LONGEST_STRING = 0x7FFF
_LARGEST_INT = 0x7FFFFFFF


class BadMessage(ValueError):
    """Bytes that are no such message. said: what Java's exception says, None where it says nothing."""

    def __init__(self, said: str | None) -> None:
        super().__init__(said or "it ends too early")
        self.said = said


class Field(NamedTuple):
    """A field of a message. versions: (first, last); tagged, nullable: in which versions, None for never."""

    name: str
    type: str
    versions: tuple[int, int]
    nullable: tuple[int, int] | None
    tagged: tuple[int, int] | None
    tag: int
    default: Any
    fields: tuple[Field, ...]


class Message(NamedTuple):
    """A definition. flexible: in which versions."""

    name: str
    api_key: int | None
    versions: tuple[int, int]
    flexible: tuple[int, int] | None
    fields: tuple[Field, ...]

    def nearest(self, version: int) -> int:
        """The version whose fields an unknown one is read with: generated classes compare, and check no range."""
        return min(max(version, self.versions[0]), self.versions[1])


@lru_cache(maxsize=2)
def _definitions(*, later: bool) -> dict[str, Message]:
    """Those of 3.9; later: those of Kafka 4 too, in their place where they differ."""
    from importlib.resources import files  # only when a message is read

    found: dict[str, Message] = {}
    for name in ("message_schemas.json", "message_schemas_4.json")[: 2 if later else 1]:
        text = files(__package__).joinpath(name).read_text(encoding="utf-8")
        found |= {raw["name"]: _message(raw) for raw in json.loads(text)}
    return found


def message(name: str, *, later: bool = False) -> Message:
    """A definition by name. later: as Kafka 4 has it."""
    return _definitions(later=later)[name]


def messages(*, later: bool = False) -> list[Message]:
    """All definitions."""
    return list(_definitions(later=later).values())


def _message(raw: dict[str, Any]) -> Message:
    versions = _range(raw["validVersions"])
    assert versions is not None
    flexible = _range(raw.get("flexibleVersions", "none"))
    fields = tuple(_field(field) for field in raw["fields"])
    return Message(raw["name"], raw.get("apiKey"), versions, flexible, fields)


def _field(raw: dict[str, Any]) -> Field:
    kind = raw["type"]
    versions = _range(raw.get("versions") or raw.get("taggedVersions", "0+"))
    assert versions is not None
    fields = tuple(_field(field) for field in raw.get("fields", ()))
    return Field(
        name=raw["name"][0].lower() + raw["name"][1:],
        type=kind,
        versions=versions,
        nullable=_range(raw.get("nullableVersions", "none")),
        tagged=_range(raw.get("taggedVersions", "none")),
        tag=int(raw.get("tag", -1)),
        default=_default(kind, raw.get("default"), fields),
        fields=fields,
    )


def _range(text: str) -> tuple[int, int] | None:
    match = re.fullmatch(r"(\d+)(?:(\+)|-(\d+))?", text)
    if match is None:
        return None
    first = int(match[1])
    return first, 2**15 if match[2] else int(match[3] or first)


def _default(kind: str, given: Any, fields: tuple[Field, ...]) -> Any:
    """As the generator has it: only a "null" in quotes is null; what JSON calls null is no default at all."""
    if given is not None:
        text = str(given)
        if text == "null":
            return None
        if kind == "bool":
            return text == "true"
        return float(text) if kind == "float64" else int(text) if kind in _NUMBERS else text
    if kind.startswith("[]"):
        return []
    if kind in _NUMBERS:
        return 0
    if fields:
        return {field.name: field.default for field in fields}
    return {"bool": False, "string": "", "bytes": b"", "uuid": bytes(_UUID_BYTES)}.get(kind)


def _in(version: int, versions: tuple[int, int] | None) -> bool:
    return versions is not None and versions[0] <= version <= versions[1]


# --- reading --------------------------------------------------------------------------------------------------------


class Reader:
    """Bytes from front to back. Raises BadMessage at their end.

    later_version: of the message, when it is behind those that are known: structs in it are refused then.
    """

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.position = 0
        self.later_version: int | None = None

    @property
    def left(self) -> int:
        return len(self.data) - self.position

    def take(self, length: int) -> bytes:
        """The next `length` bytes."""
        if length > self.left:
            raise BadMessage(f"Error reading byte array of {length} byte(s): only {self.left} byte(s) available")
        self.position += length
        return self.data[self.position - length : self.position]

    def number(self, kind: str) -> Any:
        """A number of a fixed width."""
        layout = _NUMBERS[kind]
        if layout.size > self.left:
            raise BadMessage(None)
        (value,) = layout.unpack_from(self.data, self.position)
        self.position += layout.size
        return value

    def numbers(self, kind: str, count: int) -> list[Any]:
        """Many of them."""
        layout = array_of(_NUMBERS[kind], count)
        if layout.size > self.left:
            raise BadMessage(None)
        self.position += layout.size
        return list(layout.unpack_from(self.data, self.position - layout.size))

    def unsigned_varint(self) -> int:
        """At most five bytes."""
        value = shift = 0
        while True:
            if not self.left:
                raise BadMessage(None)
            byte = self.data[self.position]
            self.position += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value & 0xFFFFFFFF
            shift += 7
            if shift > 28:
                raise BadMessage("Varint is too long, the most significant bit in the 5th byte is set")


def read(definition: Message, reader: Reader, version: int, *, lenient: bool = False) -> dict[str, Any]:
    """The message's values by field, defaults for what `version` lacks. Raises BadMessage.

    lenient: an unknown version is read like the nearest one that is known, as Kafka's generated classes do.
    """
    if not lenient and not _in(version, definition.versions):
        raise BadMessage(f"Can't read version {version} of {definition.name}")
    if version > definition.versions[1]:
        reader.later_version = version
    version = definition.nearest(version)
    return _struct(definition.fields, reader, version, flexible=_in(version, definition.flexible))


def _struct(fields: tuple[Field, ...], reader: Reader, version: int, *, flexible: bool) -> dict[str, Any]:
    values: dict[str, Any] = {}
    tagged: dict[int, Field] = {}
    for field in fields:
        values[field.name] = field.default
        if _in(version, field.tagged):
            tagged[field.tag] = field
        elif _in(version, field.versions):
            values[field.name] = _value(field, reader, version, flexible=flexible)
    if flexible:
        for _ in range(reader.unsigned_varint()):
            tag, size = reader.unsigned_varint(), reader.unsigned_varint()
            if tag in tagged:  # its size is not looked at
                values[tagged[tag].name] = _value(tagged[tag], reader, version, flexible=True, in_tag=True)
            else:
                reader.take(size)
    return values


def _value(field: Field, reader: Reader, version: int, *, flexible: bool, in_tag: bool = False) -> Any:
    kind = field.type
    if kind.startswith("[]"):
        return _array(field, reader, version, flexible=flexible)
    if kind in _NUMBERS:
        return reader.number(kind)
    if kind == "bool":
        return bool(reader.number("int8"))
    if kind == "uuid":
        if reader.left < _UUID_BYTES:
            raise BadMessage(None)
        return reader.take(_UUID_BYTES)
    if kind in {"string", "bytes"}:
        return _text_or_bytes(field, reader, version, flexible=flexible)
    if _in(version, field.nullable) and _is_null(reader, in_tag=in_tag):
        return None
    if reader.later_version is not None:
        raise BadMessage(f"Can't read version {reader.later_version} of {kind}")
    return _struct(field.fields, reader, version, flexible=flexible)


def _is_null(reader: Reader, *, in_tag: bool) -> bool:
    """A struct's marker: the generator writes an unsigned varint in a tag, 0 for null, else a byte, −1 for null."""
    if in_tag:
        return not 0 < reader.unsigned_varint() <= _LARGEST_INT
    return bool(reader.number("int8") < 0)


def _array(field: Field, reader: Reader, version: int, *, flexible: bool) -> list[Any] | None:
    length = _length(reader, "int32", flexible=flexible)
    if length < 0:
        _check_nullable(field, version)
        return None
    if length > reader.left:
        raise BadMessage(
            f"Tried to allocate a collection of size {length}, but there are only {reader.left} bytes remaining."
        )
    kind = field.type[2:]
    if kind in _NUMBERS:
        return reader.numbers(kind, length)
    inner = field._replace(type=kind, nullable=None)
    return [_value(inner, reader, version, flexible=flexible) for _ in range(length)]


def _text_or_bytes(field: Field, reader: Reader, version: int, *, flexible: bool) -> str | bytes | None:
    text = field.type == "string"
    length = _length(reader, "int16" if text else "int32", flexible=flexible)
    if length < 0:
        _check_nullable(field, version)
        return None
    if text and length > _LONGEST_STRING:
        raise BadMessage(f"string field {field.name} had invalid length {length}")
    data = reader.take(length)
    return java_utf8(data) if text else data


def _length(reader: Reader, kind: str, *, flexible: bool) -> int:
    if flexible:
        return reader.unsigned_varint() - 1
    length: int = reader.number(kind)
    return length


def _check_nullable(field: Field, version: int) -> None:
    if not _in(version, field.nullable):
        raise BadMessage(f"non-nullable field {field.name} was serialized as null")


# --- as JSON --------------------------------------------------------------------------------------------------------


def to_json(fields: tuple[Field, ...], values: dict[str, Any], version: int) -> dict[str, Any]:
    """What the generated JsonConverter makes: fields of this version, tagged ones only where they say something."""
    found: dict[str, Any] = {}
    for field in fields:
        if not _in(version, field.versions):
            continue
        value = values[field.name]
        if _in(version, field.tagged) and value == field.default:
            continue
        found[field.name] = _json_value(field, value, version)
    return found


def _json_value(field: Field, value: Any, version: int) -> Any:
    if isinstance(value, list):
        inner = field._replace(type=field.type[2:])
        return [_json_value(inner, each, version) for each in value]
    if isinstance(value, dict):
        return to_json(field.fields, value, version)
    if field.type == "uuid":
        return uuid_text(value)
    return base64.b64encode(value).decode() if isinstance(value, bytes) else value


def uuid_text(data: bytes) -> str:
    """org.apache.kafka.common.Uuid's text: base64 for URLs, without padding."""
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


_JACKSON_ESCAPE = re.compile(r"\\u([0-9a-f]{4})")


def json_text(value: Any) -> str:
    """JSON as Jackson writes it: no spaces, hexadecimal digits of escapes in capitals, Java's way with doubles."""
    return "".join(_json_parts(value))


def _json_parts(value: Any) -> list[str]:
    if isinstance(value, dict):
        inner = ",".join(f"{_json_string(key)}:{json_text(each)}" for key, each in value.items())
        return ["{", inner, "}"]
    if isinstance(value, list):
        return ["[", ",".join(map(json_text, value)), "]"]
    if isinstance(value, str):
        return [_json_string(value)]
    if isinstance(value, float):
        return [java_double(value)]
    return [json.dumps(value)]


def _json_string(text: str) -> str:
    written = json.dumps(text, ensure_ascii=False)
    return _JACKSON_ESCAPE.sub(lambda match: f"\\u{match[1].upper()}", written) if "\\u" in written else written
