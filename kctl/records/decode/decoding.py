"""Decoders that turn keys and values into JSON values: built-in ones, and those of other packages.

A package adds a decoder in the entry point group `kctl.decoders`: a function that takes DecoderSettings and returns a
ValueDecoder. The ValueDecoder takes the bytes (never null), the topic, and "key" or "value", and returns a JSON value.
If it raises an exception, the record is shown undecoded, with the exception as the reason, and counted. A decoder with
the attribute `takes_headers` also gets the record's headers.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Callable
from struct import Struct
from typing import Any

from kctl.base.binary_layout import FLOAT32, FLOAT64, INT16, INT32, INT64
from kctl.errors import KctlError, NotSupported, UsageError
from kctl.records.decode.decoder_settings import DecoderSettings
from kctl.records.json_value import parse_json
from kctl.records.record import Record
from kctl.segment.dump.row_decoders import INTERNAL_TOPICS
from kctl.segment.dump.rows import DecodedRecord, encoded
from kctl.segment.format.batch import NO_SEQUENCE
from kctl.segment.format.record import StoredRecord

GROUP = "kctl.decoders"  # of entry points
UTF8 = "utf-8"
REGISTRY_DECODERS = ("avro", "protobuf", "json-schema", "registry")
_MAX_REASON = 200

ValueDecoder = Callable[..., Any]  # of data, topic, part; see above
RecordDecoder = Callable[[Record], DecodedRecord]


Factory = Callable[[DecoderSettings], ValueDecoder]


class AsIs(str):
    """Undecoded bytes as text or base64."""

    __slots__ = ()


def as_is(data: bytes | None) -> tuple[AsIs | None, str | None]:
    """Return undecoded bytes as text, and the encoding."""
    text, encoding = encoded(data)
    return None if text is None else AsIs(text), encoding


def _text(data: bytes, _topic: str, _part: str) -> str:
    return data.decode("utf-8")


def _json(data: bytes, _topic: str, _part: str) -> Any:
    return parse_json(data)


def _number(name: str, layout: Struct) -> Factory:

    def decode(data: bytes, _topic: str, _part: str) -> Any:
        if len(data) != layout.size:
            raise ValueError(f"it has {len(data)} bytes; the size of {name} is {layout.size}")
        (value,) = layout.unpack(data)
        # JSON has neither NaN nor infinity.
        return str(value) if isinstance(value, float) and not math.isfinite(value) else value

    return lambda _settings: decode


def _registry(name: str) -> Factory:
    def make(settings: DecoderSettings) -> ValueDecoder:
        from kctl.records.decode.registry_decoder import registry_decoder

        return registry_decoder(name, settings)

    return make


BUILT_IN: dict[str, Factory] = {
    "text": lambda _settings: _text,
    "json": lambda _settings: _json,
    "hex": lambda _settings: lambda data, _topic, _part: data.hex(),
    "base64": lambda _settings: lambda data, _topic, _part: base64.b64encode(data).decode(),
    "short": _number("short", INT16),
    "int": _number("int", INT32),
    "long": _number("long", INT64),
    "float": _number("float", FLOAT32),
    "double": _number("double", FLOAT64),
    **{name: _registry(name) for name in REGISTRY_DECODERS},
}


def may_need_registry(name: str | None) -> bool:
    """Return True if a decoder of this name uses a schema registry, or may use one (a plug-in)."""
    return name is not None and (name in REGISTRY_DECODERS or name not in {*BUILT_IN, *INTERNAL_TOPICS})


def record_decoder(key: str | None, value: str | None, settings: DecoderSettings) -> RecordDecoder | None:
    """Return a record decoder for the named key and value decoders (None: undecoded); None if neither is named.

    A decoder of an internal topic (row_decoders.INTERNAL_TOPICS) decodes both, so it must be named for both. Raises
    UsageError for an unknown name, NotSupported if a library is missing.
    """
    if key is None and value is None:
        return None
    if key in INTERNAL_TOPICS or value in INTERNAL_TOPICS:
        return _internal(key, value)
    return _Parts(
        None if key is None else (_encoding(key), load(key, settings)),
        None if value is None else (_encoding(value), load(value, settings)),
    )


def _encoding(name: str) -> str:
    return UTF8 if name == "text" else name


def _internal(key: str | None, value: str | None) -> RecordDecoder:
    name = key if key in INTERNAL_TOPICS else value
    if key != value:
        raise UsageError(f"{name} decodes keys and values together", hint=f"use --decoder {name}")
    decode = INTERNAL_TOPICS[str(name)]

    def decode_record(record: Record) -> DecodedRecord:
        log_record = StoredRecord(record.offset, record.timestamp_ms or 0, NO_SEQUENCE, record.key, record.value)
        try:
            decoded = decode(log_record)
        except Exception as exc:  # noqa: BLE001 - whatever the reason, the record is shown undecoded
            return DecodedRecord(*as_is(record.key), *as_is(record.value), _reason(exc))
        return (
            decoded if decoded.error is None else DecodedRecord(*as_is(record.key), *as_is(record.value), decoded.error)
        )

    return decode_record


def load(name: str, settings: DecoderSettings) -> ValueDecoder:
    """Return the decoder with this name, built-in or from a plug-in. Raises UsageError, NotSupported."""
    factory = BUILT_IN.get(name)
    if factory is not None:
        return factory(settings)
    from importlib.metadata import entry_points

    plugins = {point.name: point for point in entry_points(group=GROUP)}
    if name not in plugins:
        names = [*BUILT_IN, *sorted(plugins.keys() - BUILT_IN.keys()), *INTERNAL_TOPICS]
        raise UsageError(f"decoder {name!r} is unknown", hint=f"use one of {', '.join(names)}")
    try:
        decoder = plugins[name].load()(settings)
    except KctlError:
        raise
    except Exception as exc:  # a plug-in may raise anything
        raise NotSupported(f"the decoder {name} of {plugins[name].value} cannot be used: {_reason(exc)}") from exc
    if not callable(decoder):
        raise NotSupported(f"the decoder {name} of {plugins[name].value} cannot be used: it is not a function")
    value_decoder: ValueDecoder = decoder
    return value_decoder


class _Parts:
    """A decoder with separate decoders for key and value. Null stays null."""

    def __init__(self, key: tuple[str, ValueDecoder] | None, value: tuple[str, ValueDecoder] | None) -> None:
        self._key, self._value = key, value

    def __call__(self, record: Record) -> DecodedRecord:
        key = _decoded(record, record.key, self._key, "key")
        value = _decoded(record, record.value, self._value, "value")
        return DecodedRecord(key[0], key[1], value[0], value[1], key[2] or value[2])


def _decoded(
    record: Record, data: bytes | None, decoder: tuple[str, ValueDecoder] | None, part: str
) -> tuple[Any, str | None, str | None]:
    """Return the value to show, its encoding, and why it could not be decoded."""
    if data is None or decoder is None:
        return *as_is(data), None
    name, decode = decoder
    more = (record.headers,) if getattr(decode, "takes_headers", False) else ()
    try:
        return decode(data, record.topic, part, *more), name, None
    except KctlError:
        raise  # a failure of the registry, not of the record
    except Exception as exc:  # noqa: BLE001 - a decoder may raise anything for invalid data
        return *as_is(data), f"{part}: {_reason(exc)}"


def _reason(exc: Exception) -> str:
    text = " ".join(str(exc).split())[:_MAX_REASON]
    return text or type(exc).__name__
