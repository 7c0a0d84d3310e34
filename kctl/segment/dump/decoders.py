"""Keys and values as the decoders of Kafka's tools print them (org.apache.kafka.tools.api)."""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct

from kctl.base.binary_layout import FLOAT64, INT32, INT64
from kctl.errors import UsageError
from kctl.segment.dump.kafka_text_options import Parsed, Parser, ToolCrash
from kctl.segment.format.java_text import java_double, java_utf8
from kctl.segment.format.record import StoredRecord

Decoder = Callable[[bytes], str]


_SIZES: dict[Decoder, int] = {}  # bytes of each number type


def _number(layout: Struct) -> Decoder:
    def decode(data: bytes) -> str:
        if len(data) < layout.size:
            raise ToolCrash(f"{len(data)} bytes, but a number has {layout.size}")
        (value,) = layout.unpack_from(data)
        return java_double(value) if isinstance(value, float) else str(value)

    _SIZES[decode] = layout.size
    return decode


def _bytes(data: bytes) -> str:
    """Return text such as "[B@1b2c3d". Kafka's tool prints the array's identity, which differs in each run."""
    return f"[B@{hash(data) & 0xFFFFFFFF:08x}"


DECODERS: dict[str, Decoder] = {
    "string": java_utf8,
    "long": _number(INT64),
    "integer": _number(INT32),
    "double": _number(FLOAT64),
    "bytes": _bytes,
}
_CLASSES = {
    "org.apache.kafka.tools.api.StringDecoder": "string",
    "org.apache.kafka.tools.api.LongDecoder": "long",
    "org.apache.kafka.tools.api.IntegerDecoder": "integer",
    "org.apache.kafka.tools.api.DoubleDecoder": "double",
    "org.apache.kafka.tools.api.DefaultDecoder": "bytes",
    "kafka.serializer.StringDecoder": "string",
    "kafka.serializer.LongDecoder": "long",
    "kafka.serializer.IntegerDecoder": "integer",
    "kafka.serializer.DefaultDecoder": "bytes",
}


def decoder_name(name: str) -> str:
    """Return the short name of a decoder or of its Kafka class. Raises UsageError."""
    short = _CLASSES.get(name, name)
    if short not in DECODERS:
        raise UsageError(f"{name!r} is not a decoder", hint=f"use one of {', '.join(DECODERS)}, or its Kafka class")
    return short


def decoder(name: str) -> Decoder:
    """Return the decoder with this short name or Kafka class. Raises UsageError."""
    return DECODERS[decoder_name(name)]


def _too_long(decode: Decoder, data: bytes | None) -> str | None:
    size = _SIZES.get(decode)
    return f"{len(data)} bytes, but a number has {size}" if data and size and len(data) > size else None


def parser(key: Decoder, value: Decoder) -> Parser:
    """Return a parser of keys and values. Nulls are not printed; a number is read from the first bytes, as in Java."""

    def parse(record: StoredRecord) -> Parsed:
        first, second = (
            None if data is None else decode(data) for decode, data in ((key, record.key), (value, record.value))
        )
        return Parsed(first, second, _too_long(key, record.key) or _too_long(value, record.value))

    return parse


TEXT = parser(java_utf8, java_utf8)  # what --print-data-log shows
