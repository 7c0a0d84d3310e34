"""Avro with a schema registry: a stand-in over HTTP, because Kafka contains no registry."""

from __future__ import annotations

import base64
import decimal
import io
import json
import struct
import threading
import uuid
from collections.abc import Iterator
from datetime import date, datetime, timezone
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import fastavro
import pytest

from kctl.errors import AuthenticationFailed, ConnectionFailed, ConnectionTimedOut, KctlError, UsageError
from kctl.model import TopicPartition
from kctl.records.chunk import Chunk
from kctl.records.consume.delivery import Delivery, Stats
from kctl.records.consume.options import ConsumeOptions
from kctl.records.decode import registry_http, schema_registry
from kctl.records.decode.decoder_settings import DecoderSettings
from kctl.records.decode.decoding import load, record_decoder
from kctl.records.decode.schema_ids import SchemaId
from kctl.records.decode.schema_registry import SchemaRegistry
from kctl_testing import closed_port

ADDRESS = {"type": "record", "name": "Address", "namespace": "x", "fields": [{"name": "city", "type": "string"}]}
PERSON = {
    "type": "record", "name": "Person",
    "fields": [
        {"name": "name", "type": "string"},
        {"name": "photo", "type": ["null", "bytes"]},
        {"name": "score", "type": "double"},
        {"name": "born", "type": {"type": "int", "logicalType": "date"}},
        {"name": "seen", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "id", "type": {"type": "string", "logicalType": "uuid"}},
        {"name": "owes", "type": {"type": "bytes", "logicalType": "decimal", "precision": 6, "scale": 2}},
        {"name": "lives", "type": "x.Address"},
    ],
}  # fmt: skip
ANSWERS: dict[str, Any] = {
    "/schemas/ids/1": {"schema": '"string"'},
    "/schemas/ids/2": {
        "schema": json.dumps(PERSON), "references": [{"name": "x.Address", "subject": "a/b c", "version": 3}],
    },
    "/subjects/a%2Fb%20c/versions/3": {"schema": json.dumps(ADDRESS), "id": 9},
    "/schemas/ids/3": {"schema": "{}", "schemaType": "PROTOBUF"},
    "/schemas/ids/4": {"schema": '{"type": "nonsense"}'},
    "/schemas/ids/5": {"schema": '"string"', "references": [{"name": "s", "subject": "self", "version": 1}]},
    "/subjects/self/versions/1": {"schema": '"string"', "references": [{"name": "s", "subject": "self", "version": 1}]},
    "/schemas/ids/6": {"schema": '"string"', "references": [{"nothing": 1}]},
    "/schemas/ids/7": {"schema": 7},
    "/schemas/ids/8": {"schema": '{"type":"array","items":"int"}'},
}  # fmt: skip


class _Registry(BaseHTTPRequestHandler):
    asked: list[tuple[str, str | None]]

    def do_GET(self) -> None:
        type(self).asked.append((self.path, self.headers.get("Authorization")))
        status, body = 200, b""
        if self.path.startswith("/private/") and not self.headers.get("Authorization"):
            status = 401
        elif self.path.startswith("/moved/"):
            status = 302
        elif self.path.startswith("/broken/"):
            status = 500
        elif self.path.startswith("/page/"):
            body = b"<html>"
        elif self.path.startswith("/large/"):
            body = b'{"schema": "' + b"x" * (registry_http.MAX_ANSWER_BYTES + 10) + b'"}'
        elif self.path.startswith("/silent/"):
            threading.Event().wait(2)
        else:
            result = ANSWERS.get(self.path.removeprefix("/private"))
            status, body = (404, b"{}") if result is None else (200, json.dumps(result).encode())
        self.send_response(status)
        if status == 302:
            self.send_header("Location", "/schemas/ids/1")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Return the URL of the stand-in."""
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    _Registry.asked = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Registry)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()
    thread.join()


def _message(schema_id: int, schema: Any, value: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), value)
    return struct.pack(">bI", 0, schema_id) + out.getvalue()


def _full(schema: dict[str, Any]) -> dict[str, Any]:
    """Return PERSON with its references inlined."""
    fields = [{**f, "type": ADDRESS if f["type"] == "x.Address" else f["type"]} for f in schema["fields"]]
    return {**schema, "fields": fields}


def test_values_with_references_and_logical_types(registry: str) -> None:
    decode = load("avro", DecoderSettings(schema_registry=registry + "/"))
    name = uuid.uuid4()
    message = _message(2, _full(PERSON), {
        "name": "Åsa", "photo": b"\xff", "score": float("nan"), "born": date(1990, 5, 1),
        "seen": datetime(2024, 5, 1, 12, tzinfo=timezone.utc), "id": str(name), "owes": decimal.Decimal("12.50"),
        "lives": {"city": "Oslo"},
    })  # fmt: skip
    expected = {
        "name": "Åsa", "photo": "/w==", "score": "nan", "born": "1990-05-01", "seen": "2024-05-01T12:00:00Z",
        "id": str(name), "owes": "12.50", "lives": {"city": "Oslo"},
    }  # fmt: skip
    for _ in range(3):
        assert decode(message, "t", "value") == expected
    assert json.loads(json.dumps(expected)) == expected
    assert [path for path, _ in _Registry.asked] == ["/schemas/ids/2", "/subjects/a%2Fb%20c/versions/3"], "asked once"
    assert decode(_message(1, "string", "plain"), "t", "key") == "plain"


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "does not begin"),
        (b"\x00\x00\x00", "does not begin"),
        (b'{"json": true}', "does not begin"),
        (struct.pack(">bI", 0, 99), "the registry has no schema 99"),
        (struct.pack(">bI", 0, 3), "is of type PROTOBUF, not AVRO"),
        (struct.pack(">bI", 0, 4), "schema 4 is not an Avro schema"),
        (struct.pack(">bI", 0, 5), "refers to itself"),
        (struct.pack(">bI", 0, 6), "references that cannot be read"),
        (struct.pack(">bI", 0, 7), "has no text"),
        (struct.pack(">bI", 0, 1) + b"\x06ab", ""),  # 3 bytes announced, 2 present
        (_message(1, "string", "ab") + b"more", "4 bytes are left"),
        (struct.pack(">bI", 0, 8) + b"\xff" * 10, ""),
    ],
)
def test_invalid_avro_data(registry: str, data: bytes, why: str) -> None:
    """The exception is the record's fault each time: the record is shown undecoded."""
    decode = load("avro", DecoderSettings(schema_registry=registry))
    for _ in range(2):
        with pytest.raises(Exception, match=why) as caught:
            decode(data, "t", "value")
        assert not isinstance(caught.value, KctlError)
    assert len(_Registry.asked) == len(set(_Registry.asked))


def test_basic_authentication(registry: str) -> None:
    message = _message(1, "string", "x")
    with pytest.raises(AuthenticationFailed, match="rejected the login"):
        load("avro", DecoderSettings(f"{registry}/private"))(message, "t", "value")
    settings = DecoderSettings(f"{registry}/private", "me:se:cret")
    assert load("avro", settings)(message, "t", "value") == "x"
    assert "cret" not in repr(settings)
    assert _Registry.asked[-1][1] == "Basic " + base64.b64encode(b"me:se:cret").decode()


@pytest.mark.parametrize(
    ("path", "kind", "why"),
    [
        ("/moved", ConnectionFailed, "HTTP 302 for schema 1; redirects are not followed"),
        ("/broken", ConnectionFailed, "HTTP 500"),
        ("/page", ConnectionFailed, "does not respond like a schema registry"),
        ("/silent", ConnectionTimedOut, "did not respond within 0.3 s"),
        ("/large", schema_registry.NoSchema, "larger than 4 MiB"),
    ],
)
def test_a_server_that_is_not_a_registry(registry: str, path: str, kind: type[Exception], why: str) -> None:
    with pytest.raises(kind, match=why):
        SchemaRegistry(registry + path, timeout_s=0.3).schema(SchemaId(1))


def test_nothing_listens() -> None:
    with pytest.raises(ConnectionFailed, match="cannot be reached"):
        SchemaRegistry(f"http://127.0.0.1:{closed_port()}").schema(SchemaId(1))


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("localhost:8081", "not an http"),
        ("file:///etc/passwd", "not an http"),
        ("http://", "not an http"),
        ("http://h:port", "not an http"),
        ("http://h?x=1", "not an http"),
        ("http://me:secret@h", "contains a user or password"),
        ("http://h/a b", "space"),
    ],
)
def test_invalid_urls(url: str, why: str) -> None:
    with pytest.raises(UsageError, match=why) as caught:
        SchemaRegistry(url)
    assert "secret" not in str(caught.value)


def test_without_a_registry() -> None:
    with pytest.raises(UsageError, match="requires a schema registry"):
        load("avro", DecoderSettings())


class _Sink:
    def __init__(self) -> None:
        self.sizes: list[int] = []
        self.offsets: list[int] = []

    def write(self, chunk: Chunk) -> None:
        self.sizes.append(chunk.size)
        self.offsets += chunk.offsets

    def flush(self) -> None: ...

    def warn(self, text: str) -> None: ...

    def stats(self, stats: Stats) -> None: ...


@pytest.mark.parametrize(
    ("size", "most", "end", "shown"),
    [
        (2500, None, None, 2500), (1000, None, None, 1000), (0, None, None, 0), (2500, 1000, None, 1000),
        (2500, 1700, None, 1700), (2500, 5000, None, 2500), (2500, None, 2000, 2000), (2500, None, 1500, 1500),
    ],
)  # fmt: skip
def test_many_records_are_decoded_in_chunks(size: int, most: int | None, end: int | None, shown: int) -> None:
    """A value may be thousands of times larger than its bytes, so only a limited number is in memory."""
    tp, sink = TopicPartition("t", 0), _Sink()
    decoder = record_decoder(None, "text", DecoderSettings())
    delivery = Delivery(ConsumeOptions(("t",), max_messages=most), sink, {} if end is None else {tp: end}, decoder)
    assert delivery.take(Chunk(tp, range(size), [0] * size, [None] * size, [b"v"] * size, {})) == shown
    assert (sink.offsets, delivery.records) == (list(range(shown)), shown)
    assert max(sink.sizes, default=0) <= 1000
