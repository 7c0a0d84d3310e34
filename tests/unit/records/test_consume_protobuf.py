"""Protobuf and JSON Schema with a schema registry: Confluent's and Apicurio's framing."""

from __future__ import annotations

import base64
import json
import struct
from typing import Any

import pytest
from google.protobuf.message_factory import GetMessageClass

from kctl.errors import NotSupported
from kctl.records.decode import protobuf, protoc
from kctl.records.decode.decoder_settings import DecoderSettings
from kctl.records.decode.decoding import load
from kctl.records.decode.protobuf import message_reader
from kctl.records.decode.schema_ids import Framed, SchemaId
from kctl.records.decode.schema_registry import NoSchema, Schema, SchemaText
from registry_server import RegistryServer, registry

__all__ = ["registry"]  # a fixture

MONEY = 'syntax = "proto3"; package shop; message Money { string currency = 1; int64 cents = 2; }'
ORDER = """syntax = "proto3";
package shop;
import "shop/money.proto";
import "google/protobuf/timestamp.proto";
import "google/protobuf/wrappers.proto";
import "google/protobuf/struct.proto";
import "confluent/meta.proto";
import "confluent/type/decimal.proto";
message Order {
  option (confluent.message_meta).doc = "an order";
  map<string, int32> counts = 1;
  message Line { string item_name = 1; optional int32 count = 2; enum Kind { NEW = 0; USED = 1; } Kind kind = 3; }
  repeated Line lines = 2;
  Money total = 3;
  google.protobuf.Timestamp at = 4;
  google.protobuf.StringValue note = 5;
  google.protobuf.Struct extra = 6;
  bytes raw = 7;
  double rate = 8;
  oneof how { string card = 9; bool cash = 10; }
  confluent.type.Decimal tax = 11;
  uint64 big = 12;
}
message Refund { string reason = 1; }
"""
FILES = {"": ORDER, "shop/money.proto": MONEY}
VALUE: dict[str, Any] = {
    "counts": {"a": 1}, "lines": [{"itemName": "pen", "count": 0, "kind": "USED"}],
    "total": {"currency": "EUR", "cents": "1250"}, "at": "2024-05-01T12:00:00Z", "note": "",
    "extra": {"a": [1.0, None, {"b": True}]}, "raw": "/w==", "rate": "NaN", "cash": True,
    "tax": {"value": "BA==", "precision": 3}, "big": "18446744073709551615",
}  # fmt: skip


def _serialized() -> dict[str, str]:
    files = protoc.compile_files({"main.proto": ORDER, "shop/money.proto": MONEY}, "main.proto", "schema 1")
    return {
        name: base64.b64encode(files[file].SerializeToString()).decode()
        for name, file in (("", "main.proto"), ("shop/money.proto", "shop/money.proto"))
    }


def _schema(*, with_descriptors: bool, main: str = ORDER) -> Schema:
    serialized = _serialized() if with_descriptors else {}
    money = SchemaText("shop/money.proto", MONEY, serialized.get("shop/money.proto"))
    return Schema("PROTOBUF", SchemaText("", main, serialized.get("")), (money,))


def _bytes(name: str, value: dict[str, Any]) -> bytes:
    from google.protobuf.descriptor_pool import DescriptorPool
    from google.protobuf.json_format import ParseDict

    files = protoc.compile_files({"main.proto": ORDER, "shop/money.proto": MONEY}, "main.proto", "x")
    pool = DescriptorPool()
    for file in files.values():
        pool.Add(file)
    message = ParseDict(value, GetMessageClass(pool.FindMessageTypeByName(name))())
    return bytes(message.SerializeToString(deterministic=True))


@pytest.mark.parametrize("with_descriptors", [True, False])
def test_messages_as_proto_json(with_descriptors: bool) -> None:
    reader = message_reader(_schema(with_descriptors=with_descriptors), "schema 1")
    order, line, refund = _bytes("shop.Order", VALUE), _bytes("shop.Order.Line", VALUE["lines"][0]), b"\x0a\x01x"
    schema_id = SchemaId(1)
    for data, expected in (
        (b"\0" + order, VALUE),
        (b"\x02\0" + order, VALUE),  # [0], written out
        (b"\x04\0\0" + line, VALUE["lines"][0]),  # [0, 0]: entries of maps are not counted
        (b"\x02\x02" + refund, {"reason": "x"}),
        (b"\0", {}),
    ):
        assert reader(Framed(schema_id, data)) == expected
        assert json.loads(json.dumps(expected, allow_nan=False)) == expected
    assert reader(Framed(schema_id, refund, header_rest=b"\x02\x02")) == {"reason": "x"}, "indexes in the header"
    assert reader(Framed(schema_id, order, header_rest=b"\0")) == VALUE
    assert reader(Framed(schema_id, order, apicurio=True)) == VALUE, "the first message"
    for name in (b"Refund", b"shop.Refund"):
        ref = bytes([len(name) + 2, 0x0A, len(name)]) + name
        assert reader(Framed(schema_id, ref + refund)) == {"reason": "x"}, "Apicurio's Ref"
        assert reader(Framed(schema_id, ref + refund, apicurio=True)) == {"reason": "x"}


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "indexes of a message"),
        (b"\xff\xff\xff\xff\xff\xff", "indexes of a message"),
        (b"\x01", "indexes of a message"),  # -1
        (b"\xd0\x0f", "indexes of a message"),  # 1000 of them
        (b"\x02\x06", "no message 3"),
        (b"\x02\x01", "no message -1"),
        (b"\x04\0\x02", "no message 0.1"),
        (b"\0\x0a\xff", "is not a message shop.Order"),
        (b"\0\x1a\x02\x08", "is not a message shop.Order"),
        (b"\0" + b"\x22\x0a\x08" + b"\xff" * 8 + b"\x7f", ""),  # a timestamp out of range
    ],
)
def test_invalid_messages(data: bytes, why: str) -> None:
    reader = message_reader(_schema(with_descriptors=False), "schema 1")
    with pytest.raises(Exception, match=why):
        reader(Framed(SchemaId(1), data))


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        (_schema(with_descriptors=False, main="nonsense"), "is not a Protobuf schema"),
        (_schema(with_descriptors=False, main='syntax = "proto3"; import "no/such.proto";'), "no/such.proto"),
        (Schema("PROTOBUF", SchemaText("", ORDER), (SchemaText("../../x.proto", MONEY),)), "unsafe name"),
        (Schema("PROTOBUF", SchemaText("", ORDER), (SchemaText("/tmp/x.proto", MONEY),)), "unsafe name"),
        (Schema("PROTOBUF", SchemaText("", 'syntax = "proto3"; message A { B b = 1; }', "Zm9v"), ()),
         "not a Protobuf schema"),
    ],
)  # fmt: skip
def test_invalid_schemas(schema: Schema, why: str) -> None:
    with pytest.raises(NoSchema, match=why):
        message_reader(schema, "schema 1")


def test_a_descriptor_whose_import_is_missing() -> None:
    serialized = _serialized()
    with pytest.raises(NoSchema, match=r"imports shop/money\.proto"):
        message_reader(Schema("PROTOBUF", SchemaText("", ORDER, serialized[""]), ()), "schema 1")


def test_without_the_libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protoc, "find_spec", lambda _: None)
    with pytest.raises(NotSupported, match="protoc is not installed"):
        message_reader(_schema(with_descriptors=False), "schema 1")
    monkeypatch.setattr(protobuf, "find_spec", lambda _: None)
    with pytest.raises(NotSupported, match="not installed") as caught:
        load("protobuf", DecoderSettings("http://h"))
    assert "kctl[protobuf]" in str(caught.value.hint)


@pytest.mark.parametrize("offers_descriptors", [True, False])
def test_a_registry_with_schemas_of_all_kinds(registry: RegistryServer, offers_descriptors: bool) -> None:
    reference = {"name": "shop/money.proto", "subject": "money", "version": 1}
    registry.answers |= {
        "/schemas/ids/1": {"schema": ORDER, "schemaType": "PROTOBUF", "references": [reference]},
        "/subjects/money/versions/1": {"schema": MONEY, "schemaType": "PROTOBUF"},
        "/schemas/ids/2": {"schema": "{}", "schemaType": "JSON"},
        "/schemas/ids/3": {"schema": '"string"'},
        "/schemas/ids/4": {"schema": "", "schemaType": "THRIFT"},
    }
    if offers_descriptors:
        serialized = _serialized()
        registry.answers |= {
            "/schemas/ids/1?format=serialized": {"schema": serialized[""], "schemaType": "PROTOBUF"},
            "/subjects/money/versions/1?format=serialized": {"schema": serialized["shop/money.proto"]},
        }
    values = {1: b"\0" + _bytes("shop.Order", VALUE), 2: b'{"a": [1]}', 3: b"\x04hi"}
    expected = {1: VALUE, 2: {"a": [1]}, 3: "hi"}
    settings = DecoderSettings(registry.url)
    for name, own in (("registry", {1, 2, 3}), ("protobuf", {1}), ("json-schema", {2}), ("avro", {3})):
        decode = load(name, settings)
        for schema_id, data in values.items():
            message = struct.pack(">bI", 0, schema_id) + data
            if schema_id in own:
                assert decode(message, "t", "value") == expected[schema_id]
            else:
                with pytest.raises(NoSchema, match="is of type"):
                    decode(message, "t", "value")
    with pytest.raises(NoSchema, match="THRIFT, which kctl does not support"):
        load("registry", settings)(struct.pack(">bI", 0, 4), "t", "value")


@pytest.mark.parametrize("data", [b"", b"{", b"[NaN]", b"1e999", b"[" * 300 + b"]" * 300, b"[" * 100_000])
def test_invalid_json(registry: RegistryServer, data: bytes) -> None:
    registry.answers["/schemas/ids/2"] = {"schema": "{}", "schemaType": "JSON"}
    with pytest.raises(ValueError, match=r".+"):
        load("json-schema", DecoderSettings(registry.url))(struct.pack(">bI", 0, 2) + data, "t", "value")
