"""Decoders with schemas from a registry: avro, protobuf, json-schema, or registry for the type of the schema."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kctl.errors import UsageError
from kctl.records.decode.avro_schema import read_value, schema_reader
from kctl.records.decode.decoder_settings import DecoderSettings
from kctl.records.decode.registry_http import RegistryAccess
from kctl.records.decode.schema_ids import Framed, Headers, IdKind, IdSize, SchemaId, find_schema_id
from kctl.records.decode.schema_registry import AVRO, JSON, PROTOBUF, NoSchema, Schema, SchemaRegistry
from kctl.records.json_value import parse_json

Read = Callable[[Framed], Any]

# The names of decoders, and the type of their schemas
DECODERS: dict[str, str | None] = {"avro": AVRO, "protobuf": PROTOBUF, "json-schema": JSON, "registry": None}
_MAX_READERS = 1000


def registry_decoder(name: str, settings: DecoderSettings) -> RegistryDecoder:
    """Return a decoder. Raises UsageError without a registry, NotSupported for protobuf without its library."""
    if not settings.schema_registry:
        raise UsageError(
            f"the decoder {name} requires a schema registry", hint="set --schema-registry URL, or KCTL_SCHEMA_REGISTRY"
        )
    if name == "protobuf":
        from kctl.records.decode.protobuf import check_library

        check_library()
    access = RegistryAccess(
        user_info=settings.registry_user_info,
        token=settings.registry_token,
        ca=settings.registry_ca,
        cert=settings.registry_cert,
        key=settings.registry_key,
        key_password=settings.registry_key_password,
        check_hostname=settings.registry_check_hostname,
    )
    registry = SchemaRegistry(settings.schema_registry, access=access, timeout_s=settings.timeout_s)
    return RegistryDecoder(registry, DECODERS[name], IdSize(settings.schema_id_bytes), IdKind(settings.schema_id_kind))


class RegistryDecoder:
    """A decoder that also reads the record's headers."""

    takes_headers = True

    def __init__(self, registry: SchemaRegistry, kind: str | None, id_size: IdSize, id_kind: IdKind) -> None:
        self._registry, self._kind, self._id_size, self._id_kind = registry, kind, id_size, id_kind
        self._readers: dict[SchemaId, Read | NoSchema] = {}

    def __call__(self, data: bytes, _topic: str, part: str, headers: Headers = ()) -> Any:
        framed = find_schema_id(data, part, headers, self._id_size, self._id_kind)
        reader = self._readers.get(framed.schema_id)
        if reader is None:
            try:
                reader = self._reader(framed.schema_id)
            except NoSchema as exc:
                reader = exc
            if len(self._readers) < _MAX_READERS:
                self._readers[framed.schema_id] = reader
        if isinstance(reader, NoSchema):
            raise reader
        return reader(framed)

    def _reader(self, schema_id: SchemaId) -> Read:
        schema = self._registry.schema(schema_id)
        if self._kind is not None and schema.kind != self._kind:
            raise NoSchema(f"schema {schema_id} is of type {schema.kind}, not {self._kind}")
        if schema.kind == AVRO:
            return _avro(schema, schema_id)
        if schema.kind == JSON:
            return lambda framed: parse_json(framed.data)
        if schema.kind == PROTOBUF:
            from kctl.records.decode.protobuf import message_reader

            return message_reader(schema, f"schema {schema_id}")
        raise NoSchema(f"schema {schema_id} is of type {schema.kind}, which kctl does not support")


def _avro(schema: Schema, schema_id: SchemaId) -> Read:
    try:
        reader = schema_reader(schema.main.text, tuple(each.text for each in schema.references))
    except ValueError as exc:
        raise NoSchema(f"schema {schema_id} is not an Avro schema: {exc}") from None

    def decode(framed: Framed) -> Any:
        if framed.json_encoded:
            return parse_json(framed.data)  # Avro's JSON encoding, which names the types of unions
        value, remaining = read_value(reader, framed.data)
        if remaining:
            raise ValueError(f"{remaining} bytes are left after the value of schema {schema_id}")
        return value

    return decode
