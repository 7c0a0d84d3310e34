"""Avro with a schema registry: a zero byte, the schema's id in four bytes, then the value in Avro's binary encoding.

What JSON does not have: bytes and fixed are base64, decimals texts, dates and times ISO 8601, NaN and infinity texts.
"""

from __future__ import annotations

import base64
import io
import json
import math
import struct
from collections.abc import Callable
from datetime import date, datetime, timezone
from datetime import time as clock
from decimal import Decimal
from importlib.util import find_spec
from typing import Any
from uuid import UUID

from kctl.errors import NotSupported, UsageError
from kctl.records.decoding import DecoderSettings, ValueDecoder
from kctl.records.schema_registry import NoSchema, SchemaRegistry

_MAGIC = 0
_HEAD = struct.Struct(">bI")
_DEEPEST = 200  # levels of a value


def avro_decoder(settings: DecoderSettings) -> ValueDecoder:
    """Raises NotSupported without fastavro, UsageError without a registry."""
    if find_spec("fastavro") is None:
        raise NotSupported("the library for Avro is not installed", hint="install kctl with it: kctl[avro]")
    if not settings.schema_registry:
        raise UsageError("avro needs a schema registry", hint="--schema-registry URL, or KCTL_SCHEMA_REGISTRY")
    registry = SchemaRegistry(
        settings.schema_registry, user_info=settings.registry_user_info, timeout_s=settings.timeout_s
    )
    return _Avro(registry)


class _Avro:
    def __init__(self, registry: SchemaRegistry) -> None:
        self._registry = registry
        self._readers: dict[int, Callable[[io.BytesIO], Any]] = {}

    def __call__(self, data: bytes, _topic: str, _part: str) -> Any:
        if len(data) < _HEAD.size or data[0] != _MAGIC:
            raise ValueError("it does not begin with a zero byte and a schema's id")
        (_, schema_id) = _HEAD.unpack_from(data)
        read = self._readers.get(schema_id)
        if read is None:
            read = self._readers[schema_id] = self._reader(schema_id)
        stream = io.BytesIO(data)
        stream.seek(_HEAD.size)
        value = read(stream)
        left = len(data) - stream.tell()
        if left:
            raise ValueError(f"{left} bytes are left behind the value of schema {schema_id}")
        return plain(value)

    def _reader(self, schema_id: int) -> Callable[[io.BytesIO], Any]:
        import fastavro

        found = self._registry.schema(schema_id)
        named: dict[str, Any] = {}
        try:
            for text in found.references:
                fastavro.parse_schema(json.loads(text), named_schemas=named)
            schema = fastavro.parse_schema(json.loads(found.text), named_schemas=named)
        except (fastavro.schema.SchemaParseException, fastavro.schema.UnknownType, ValueError, RecursionError) as exc:
            raise NoSchema(f"schema {schema_id} is no Avro schema: {exc}") from None
        return lambda stream: fastavro.schemaless_reader(stream, schema, None)


def plain(value: Any, depth: int = 0) -> Any:
    """What fastavro made, as JSON can hold it. Raises ValueError for what is nested too deeply."""
    if depth > _DEEPEST:
        raise ValueError(f"it is nested more than {_DEEPEST} deep")
    if isinstance(value, dict):
        return {str(key): plain(each, depth + 1) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(each, depth + 1) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, (bytes, bytearray)):
        return base64.b64encode(value).decode()
    if isinstance(value, datetime):
        return _iso(value)
    if isinstance(value, (date, clock)):
        return value.isoformat()
    if isinstance(value, (Decimal, UUID)):
        return str(value)
    return value


def _iso(moment: datetime) -> str:
    """UTC with a Z; local timestamps (without a zone) have none."""
    if moment.tzinfo is None:
        return moment.isoformat()
    return moment.astimezone(timezone.utc).isoformat().replace("+00:00", "Z")
