"""The schema id of a key or value: an id or GUID before the data, or in a header of the record.

    data        0, id (4 bytes)         Confluent's serializers, Apicurio's since 3
                0, id (8 bytes)         Apicurio's before 3, and its Legacy8ByteIdHandler
                1, GUID (16 bytes)      Confluent's, if configured
    headers     __key_schema_id, __value_schema_id        in the first or the last form above (Confluent 8)
                apicurio.value.globalId, .contentId (8 bytes), .encoding, apicurio.key. …

With Protobuf, Confluent's id is followed by the indexes of the message, in data and headers.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple
from uuid import UUID

from kctl.base.binary_layout import INT64, UINT32

_MAGIC_ID, _MAGIC_GUID = 0, 1
_GUID_BYTES = 16
_CONFLUENT_HEADER = "__{part}_schema_id"

Headers = Sequence[tuple[str, bytes | None]]


class IdSize(str, Enum):
    """The size of an id before the data. auto: 8 bytes if the first 4 are zero, because no id is 0."""

    AUTO = "auto"
    FOUR = "4"
    EIGHT = "8"


class IdKind(str, Enum):
    """The kind of an id: Apicurio numbers artifacts (global) and contents separately.

    auto: the kind of the header; otherwise global for 8 bytes (the default before 3), content for 4 bytes.
    """

    AUTO = "auto"
    CONTENT = "content"
    GLOBAL = "global"


class SchemaId(NamedTuple):
    """The id of a schema. number: None if there is a guid instead. kind: as declared. wide: the id had 8 bytes."""

    number: int | None
    guid: UUID | None = None
    kind: IdKind = IdKind.AUTO
    wide: bool = False

    def __str__(self) -> str:
        if self.guid is not None:
            return str(self.guid)
        kind = "" if self.kind is IdKind.AUTO else f"of {self.kind.value} id "
        return f"{kind}{self.number}"

    @property
    def is_global(self) -> bool:
        """Return True for a global id, for APIs that distinguish kinds."""
        return self.wide if self.kind is IdKind.AUTO else self.kind is IdKind.GLOBAL


class Framed(NamedTuple):
    """Data without its schema id.

    header_rest: the bytes after an id in Confluent's header (the indexes of a Protobuf message). apicurio: the id was
    in one of Apicurio's headers. json_encoded: Avro data is JSON text.
    """

    schema_id: SchemaId
    data: bytes
    header_rest: bytes | None = None
    apicurio: bool = False
    json_encoded: bool = False


def find_schema_id(data: bytes, part: str, headers: Headers, size: IdSize, kind: IdKind = IdKind.AUTO) -> Framed:
    """Return the data and its schema id. part: "key" or "value". kind: of ids before the data.

    Raises ValueError for data without an id.
    """
    confluent = _last(headers, _CONFLUENT_HEADER.format(part=part))
    if confluent is not None:
        schema_id, rest = _leading_id(confluent, IdSize.FOUR, f"the header {_CONFLUENT_HEADER.format(part=part)}")
        return Framed(schema_id, data, header_rest=rest)
    for name, header_kind in _APICURIO_HEADERS.items():
        value = _last(headers, name.format(part=part))
        if value is not None:
            if len(value) != INT64.size:
                raise ValueError(f"the header {name.format(part=part)} has {len(value)} bytes, not 8")
            (number,) = INT64.unpack(value)
            schema_id, as_json = SchemaId(number, kind=header_kind, wide=True), _is_json(headers, part)
            return Framed(schema_id, data, apicurio=True, json_encoded=as_json)
    schema_id, rest = _leading_id(data, size, "it")
    schema_id = schema_id._replace(kind=kind) if schema_id.guid is None else schema_id
    return Framed(schema_id, rest, json_encoded=_is_json(headers, part))


def _is_json(headers: Headers, part: str) -> bool:
    """Return True for JSON, False for BINARY (Apicurio's AvroSerdeHeaders)."""
    return (_last(headers, f"apicurio.{part}.encoding") or b"").upper() == b"JSON"


def _last(headers: Headers, name: str) -> bytes | None:
    """Return the value of the last header with a name, as Java's lastHeader does."""
    return next((value for key, value in reversed(headers) if key == name), None)


def _leading_id(data: bytes, size: IdSize, what: str) -> tuple[SchemaId, bytes]:
    magic = data[0] if data else None
    if magic == _MAGIC_GUID and len(data) > _GUID_BYTES:
        return SchemaId(None, UUID(bytes=data[1 : 1 + _GUID_BYTES])), data[1 + _GUID_BYTES :]
    if magic == _MAGIC_ID:
        eight = size is IdSize.EIGHT or (size is IdSize.AUTO and len(data) >= 9 and data[1:5] == bytes(4))
        layout = INT64 if eight else UINT32
        if len(data) > layout.size:  # the value itself may be empty
            (number,) = layout.unpack_from(data, 1)
            return SchemaId(number, wide=eight), data[1 + layout.size :]
    raise ValueError(f"{what} does not begin with a zero byte and a schema id")


_APICURIO_HEADERS = {"apicurio.{part}.globalId": IdKind.GLOBAL, "apicurio.{part}.contentId": IdKind.CONTENT}
