"""Decode Kafka's generated messages by their definitions (messages_RELEASE.json); format them like its converters.

tests/support/message_schemas.py writes the definitions of a release from its jars.

Encoding: KIP-482. In flexible versions, lengths are unsigned varints of length + 1, and every struct ends with tagged
fields. In earlier versions, strings have an i16 length, arrays and bytes an i32 length; -1 is null.
"""

from __future__ import annotations

import base64
import json
import re
from functools import lru_cache
from typing import Any, NamedTuple

from kctl.base.binary_layout import FLOAT64, INT8, INT16, INT32, INT64, UINT16, UINT32, array_of
from kctl.segment.format.java_text import java_double, java_utf8
from kctl.segment.format.release import Release

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
_MAX_STRING = 0x7FFF
_MAX_INT = 0x7FFFFFFF
_MAX_TAGS = 10_000
_MAX_ELEMENTS = 1_000_000


class BadMessage(ValueError):
    """The bytes are not a valid message. java_message: the message of Java's exception; None if it has none."""

    def __init__(self, java_message: str | None) -> None:
        super().__init__(java_message or "the message ends too early")
        self.java_message = java_message


class Field(NamedTuple):
    """A field of a message.

    versions, nullable, tagged: the (first, last) version in which it exists, is nullable, is tagged; None: never.
    """

    name: str
    type: str
    versions: tuple[int, int]
    nullable: tuple[int, int] | None
    tagged: tuple[int, int] | None
    tag: int
    default: Any
    fields: tuple[Field, ...]


class Message(NamedTuple):
    """The definition of a message. flexible: (first, last) flexible version; None: never."""

    release: Release
    name: str
    api_key: int | None
    versions: tuple[int, int]
    flexible: tuple[int, int] | None
    fields: tuple[Field, ...]

    def nearest(self, version: int) -> int:
        """Return the nearest known version. Kafka's generated classes decode unknown versions like that one."""
        return min(max(version, self.versions[0]), self.versions[1])


@lru_cache(maxsize=len(Release))
def _definitions(release: Release) -> dict[str, Message]:
    from importlib.resources import files  # slow to import, and not always needed

    text = files(__package__).joinpath(f"messages_{release.value}.json").read_text(encoding="utf-8")
    return {raw["name"]: _message(release, raw) for raw in json.loads(text)}


def message(name: str, release: Release) -> Message:
    """Return a definition by name."""
    return _definitions(release)[name]


def messages(release: Release) -> list[Message]:
    """Return all definitions."""
    return list(_definitions(release).values())


def _message(release: Release, raw: dict[str, Any]) -> Message:
    versions = _range(raw["validVersions"])
    assert versions is not None
    flexible = _range(raw.get("flexibleVersions", "none"))
    fields = tuple(_field(field) for field in raw["fields"])
    return Message(release, raw["name"], raw.get("apiKey"), versions, flexible, fields)


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


def _default(kind: str, declared: Any, fields: tuple[Field, ...]) -> Any:
    """Return the default like Kafka's generator: only the string "null" is null; a JSON null is no default."""
    if declared is not None:
        text = str(declared)
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


def _includes(version: int, versions: tuple[int, int] | None) -> bool:
    return versions is not None and versions[0] <= version <= versions[1]


# --- reading --------------------------------------------------------------------------------------------------------


class MessageReader:
    """A cursor over the bytes of a message. Raises BadMessage at the end.

    later_version: the message's version if it is higher than any known one; nested structs are then rejected.
    has_limits: apply the limits of Kafka 4 to the numbers of elements and of tagged fields.
    """

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.position = 0
        self.later_version: int | None = None
        self.has_limits = False

    @property
    def left(self) -> int:
        return len(self.data) - self.position

    def take(self, length: int) -> bytes:
        """Return the next `length` bytes."""
        if length > self.left:
            raise BadMessage(f"Error reading byte array of {length} byte(s): only {self.left} byte(s) available")
        self.position += length
        return self.data[self.position - length : self.position]

    def number(self, kind: str) -> Any:
        """Return the next fixed-width number."""
        layout = _NUMBERS[kind]
        if layout.size > self.left:
            raise BadMessage(None)
        (value,) = layout.unpack_from(self.data, self.position)
        self.position += layout.size
        return value

    def numbers(self, kind: str, count: int) -> list[Any]:
        """Return the next `count` fixed-width numbers."""
        layout = array_of(_NUMBERS[kind], count)
        if layout.size > self.left:
            raise BadMessage(None)
        self.position += layout.size
        return list(layout.unpack_from(self.data, self.position - layout.size))

    def unsigned_varint(self) -> int:
        """Return the next unsigned varint, of at most five bytes."""
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


def read(definition: Message, reader: MessageReader, version: int, *, lenient: bool = False) -> dict[str, Any]:
    """Return the message's values by field; the default for fields that `version` lacks. Raises BadMessage.

    lenient: decode an unknown version like the nearest known one, as Kafka's generated classes do.
    """
    if not lenient and not _includes(version, definition.versions):
        raise BadMessage(f"Can't read version {version} of {definition.name}")
    reader.has_limits = definition.release is not Release.KAFKA_3_9
    if version > definition.versions[1]:
        reader.later_version = version
    version = definition.nearest(version)
    return _struct(definition.fields, reader, version, flexible=_includes(version, definition.flexible))


def _struct(fields: tuple[Field, ...], reader: MessageReader, version: int, *, flexible: bool) -> dict[str, Any]:
    values: dict[str, Any] = {}
    tagged: dict[int, Field] = {}
    for field in fields:
        values[field.name] = field.default
        if _includes(version, field.tagged):
            tagged[field.tag] = field
        elif _includes(version, field.versions):
            values[field.name] = _value(field, reader, version, flexible=flexible)
    if flexible:
        for _ in range(_tag_count(reader)):
            tag, size = reader.unsigned_varint(), reader.unsigned_varint()
            if tag in tagged:  # Kafka ignores the size
                values[tagged[tag].name] = _value(tagged[tag], reader, version, flexible=True, in_tag=True)
            else:
                reader.take(size)
    return values


def _tag_count(reader: MessageReader) -> int:
    count = reader.unsigned_varint()
    if not reader.has_limits:
        return count
    if count > _MAX_INT:
        raise BadMessage(f"Invalid negative number of tagged fields {count - 2**32}")
    if count > reader.left:
        raise BadMessage(f"Tried to read {count} tagged fields, but there are only {reader.left} bytes remaining.")
    if count > _MAX_TAGS:
        raise BadMessage(
            f"Tried to read {count} tagged fields, which exceeds the maximum allowed count of {_MAX_TAGS}."
        )
    return count


def _value(field: Field, reader: MessageReader, version: int, *, flexible: bool, in_tag: bool = False) -> Any:
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
    if _includes(version, field.nullable) and _is_null(reader, in_tag=in_tag):
        return None
    if reader.later_version is not None:
        raise BadMessage(f"Can't read version {reader.later_version} of {kind}")
    return _struct(field.fields, reader, version, flexible=flexible)


def _is_null(reader: MessageReader, *, in_tag: bool) -> bool:
    """Read the marker of a nullable struct: an unsigned varint in a tag (0: null), otherwise a byte (-1: null)."""
    if in_tag:
        return not 0 < reader.unsigned_varint() <= _MAX_INT
    return bool(reader.number("int8") < 0)


def _array(field: Field, reader: MessageReader, version: int, *, flexible: bool) -> list[Any] | None:
    length = _length(reader, "int32", flexible=flexible)
    if length < 0:
        _check_nullable(field, version)
        return None
    if length > reader.left:
        raise BadMessage(
            f"Tried to allocate a collection of size {length}, but there are only {reader.left} bytes remaining."
        )
    if reader.has_limits and length > _MAX_ELEMENTS:
        raise BadMessage(
            f"Tried to read a collection of size {length}, which exceeds the maximum allowed size of {_MAX_ELEMENTS}."
        )
    kind = field.type[2:]
    if kind in _NUMBERS:
        return reader.numbers(kind, length)
    inner = field._replace(type=kind, nullable=None)
    return [_value(inner, reader, version, flexible=flexible) for _ in range(length)]


def _text_or_bytes(field: Field, reader: MessageReader, version: int, *, flexible: bool) -> str | bytes | None:
    text = field.type == "string"
    length = _length(reader, "int16" if text else "int32", flexible=flexible)
    if length < 0:
        _check_nullable(field, version)
        return None
    if text and length > _MAX_STRING:
        raise BadMessage(f"string field {field.name} had invalid length {length}")
    data = reader.take(length)
    return java_utf8(data) if text else data


def _length(reader: MessageReader, kind: str, *, flexible: bool) -> int:
    if flexible:
        return reader.unsigned_varint() - 1
    length: int = reader.number(kind)
    return length


def _check_nullable(field: Field, version: int) -> None:
    if not _includes(version, field.nullable):
        raise BadMessage(f"non-nullable field {field.name} was serialized as null")


# --- as JSON --------------------------------------------------------------------------------------------------------


def to_json(fields: tuple[Field, ...], values: dict[str, Any], version: int) -> dict[str, Any]:
    """Convert like the generated JsonConverter: fields of this version; tagged fields only if not the default."""
    converted: dict[str, Any] = {}
    for field in fields:
        if not _includes(version, field.versions):
            continue
        value = values[field.name]
        if _includes(version, field.tagged) and value == field.default:
            continue
        converted[field.name] = _json_value(field, value, version)
    return converted


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
    """Format like org.apache.kafka.common.Uuid: URL-safe base64 without padding."""
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


_JACKSON_ESCAPE = re.compile(r"\\u([0-9a-f]{4})")


def json_text(value: Any) -> str:
    """Format like Jackson: no spaces, uppercase hex digits in escapes, doubles like Java."""
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
