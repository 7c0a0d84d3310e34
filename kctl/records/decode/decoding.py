"""Decoders of keys and values: bytes into what JSON can hold. Built-in ones by name, others by entry point.

A package adds one under the entry point group `kctl.decoders`: a function that takes DecoderSettings and gives a
ValueDecoder. That gets the bytes (never null), the topic and "key" or "value", and gives what JSON can hold; any
exception of it says why the bytes are none of its kind: the record is then shown as it is, and counted. A decoder with
the attribute `takes_headers` gets the record's headers as well.
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
from kctl.segment.dump.rows import Shown, encoded
from kctl.segment.format.batch import NO_SEQUENCE
from kctl.segment.format.record import Record as LogRecord

GROUP = "kctl.decoders"  # of entry points
UTF8 = "utf-8"
REGISTRY_DECODERS = ("avro", "protobuf", "json-schema", "registry")
_LONGEST_REASON = 200

ValueDecoder = Callable[..., Any]  # data, topic, part; see above
RecordDecoder = Callable[[Record], Shown]


Factory = Callable[[DecoderSettings], ValueDecoder]


class AsIs(str):
    """Bytes that no decoder touched, as text or base64."""

    __slots__ = ()


def as_is(data: bytes | None) -> tuple[AsIs | None, str | None]:
    """(text, encoding)."""
    text, encoding = encoded(data)
    return None if text is None else AsIs(text), encoding


def _text(data: bytes, _topic: str, _part: str) -> str:
    return data.decode("utf-8")


def _json(data: bytes, _topic: str, _part: str) -> Any:
    return parse_json(data)


def _number(name: str, layout: Struct) -> Factory:

    def decode(data: bytes, _topic: str, _part: str) -> Any:
        if len(data) != layout.size:
            raise ValueError(f"{len(data)} bytes are no {name}, which has {layout.size}")
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
    """Whether a decoder of this name asks a schema registry, or may (a plug-in's)."""
    return name is not None and (name in REGISTRY_DECODERS or name not in {*BUILT_IN, *INTERNAL_TOPICS})


def record_decoder(key: str | None, value: str | None, settings: DecoderSettings) -> RecordDecoder | None:
    """A decoder of whole records by the names for keys and for values (None: as they are); None for neither.

    One of Kafka's own topics' (row_decoders.INTERNAL_TOPICS) decodes both, and is given for both. Raises UsageError
    for a name that is none, NotSupported for one whose library is missing.
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
        raise UsageError(f"{name} decodes keys and values together", hint=f"write --decoder {name}")
    decode = INTERNAL_TOPICS[str(name)]

    def both(record: Record) -> Shown:
        log_record = LogRecord(record.offset, record.timestamp_ms or 0, NO_SEQUENCE, record.key, record.value)
        try:
            shown = decode(log_record)
        except Exception as exc:  # noqa: BLE001 - whatever it stumbles over: the record is shown as it is
            return Shown(*as_is(record.key), *as_is(record.value), _reason(exc))
        return shown if shown.error is None else Shown(*as_is(record.key), *as_is(record.value), shown.error)

    return both


def load(name: str, settings: DecoderSettings) -> ValueDecoder:
    """The decoder of a name, built in or a plug-in's. Raises UsageError, NotSupported."""
    factory = BUILT_IN.get(name)
    if factory is not None:
        return factory(settings)
    from importlib.metadata import entry_points

    found = {point.name: point for point in entry_points(group=GROUP)}
    if name not in found:
        known = [*BUILT_IN, *sorted(found.keys() - BUILT_IN.keys()), *INTERNAL_TOPICS]
        raise UsageError(f"{name!r} is no decoder", hint=f"use one of {', '.join(known)}")
    try:
        made = found[name].load()(settings)
    except KctlError:
        raise
    except Exception as exc:  # a plug-in can raise anything
        raise NotSupported(f"the decoder {name} of {found[name].value} cannot be used: {_reason(exc)}") from exc
    if not callable(made):
        raise NotSupported(f"the decoder {name} of {found[name].value} cannot be used: it is no function")
    decoder: ValueDecoder = made
    return decoder


class _Parts:
    """Key and value apart; what is null stays so."""

    def __init__(self, key: tuple[str, ValueDecoder] | None, value: tuple[str, ValueDecoder] | None) -> None:
        self._key, self._value = key, value

    def __call__(self, record: Record) -> Shown:
        key = _decoded(record, record.key, self._key, "key")
        value = _decoded(record, record.value, self._value, "value")
        return Shown(key[0], key[1], value[0], value[1], key[2] or value[2])


def _decoded(
    record: Record, data: bytes | None, decoder: tuple[str, ValueDecoder] | None, part: str
) -> tuple[Any, str | None, str | None]:
    """(what to show, its encoding, why it could not be decoded)."""
    if data is None or decoder is None:
        return *as_is(data), None
    name, decode = decoder
    more = (record.headers,) if getattr(decode, "takes_headers", False) else ()
    try:
        return decode(data, record.topic, part, *more), name, None
    except KctlError:
        raise  # not the record's fault: the registry cannot be asked
    except Exception as exc:  # noqa: BLE001 - a decoder may raise anything; that is how it says no
        return *as_is(data), f"{part}: {_reason(exc)}"


def _reason(exc: Exception) -> str:
    text = " ".join(str(exc).split())[:_LONGEST_REASON]
    return text or type(exc).__name__
