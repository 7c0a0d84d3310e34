"""Schema registries over HTTP: ids, logins, TLS, proxies, and servers that mean no good."""

from __future__ import annotations

import base64
import socket
import ssl
import struct
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from kctl.errors import (
    CertificateRejected,
    ConnectionFailed,
    ConnectionTimedOut,
    KctlError,
    Refused,
    UsageError,
)
from kctl.records.decode.decoder_settings import DecoderSettings
from kctl.records.decode.decoding import load, record_decoder
from kctl.records.decode.registry_http import RegistryAccess, check_urls
from kctl.records.decode.schema_ids import IdKind, IdSize, SchemaId, find_schema_id
from kctl.records.decode.schema_registry import NoSchema, SchemaRegistry
from kctl.records.record import Record
from kctl_testing import closed_port
from registry_server import RegistryServer, registry, serve

__all__ = ["registry"]  # a fixture

TLS = Path(__file__).parents[2] / "data" / "tls"
GUID = UUID("0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f1")
ID_1 = struct.pack(">bI", 0, 1)


def _long(value: int) -> bytes:
    return struct.pack(">q", value)


# --- ids --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "headers", "size", "expected"),
    [
        (ID_1 + b"x", (), "auto", (SchemaId(1), b"x")),
        (ID_1, (), "auto", (SchemaId(1), b"")),
        (b"\x01" + GUID.bytes + b"x", (), "auto", (SchemaId(None, GUID), b"x")),
        (b"\0" + _long(7) + b"x", (), "auto", (SchemaId(7, wide=True), b"x")),
        (b"\0" + _long(7) + b"x", (), "4", (SchemaId(0), b"\0\0\0\x07x")),
        (b"\0" + _long(1 << 33) + b"x", (), "8", (SchemaId(1 << 33, wide=True), b"x")),
        (b"\0" + _long(1 << 33) + b"x", (), "auto", (SchemaId(2), b"\0\0\0\0x")),
        (b"\0\0\0\0\0", (), "auto", (SchemaId(0), b"")),
        (ID_1 + b"x", (("__value_schema_id", b"\x01" + GUID.bytes),), "auto", (SchemaId(None, GUID), ID_1 + b"x")),
        (b"x", (("__value_schema_id", ID_1),), "auto", (SchemaId(1), b"x")),
        (b"x", (("__value_schema_id", b"bad"), ("__value_schema_id", ID_1)), "auto", (SchemaId(1), b"x")),  # the last
        (ID_1 + b"x", (("__value_schema_id", None),), "auto", (SchemaId(1), b"x")),
        (ID_1 + b"x", (("__key_schema_id", b"\x01" + GUID.bytes),), "auto", (SchemaId(1), b"x")),
        (b"x", (("apicurio.value.globalId", _long(5)),), "auto", (SchemaId(5, kind=IdKind.GLOBAL, wide=True), b"x")),
        (b"x", (("apicurio.value.contentId", _long(5)),), "auto", (SchemaId(5, kind=IdKind.CONTENT, wide=True), b"x")),
    ],
)  # fmt: skip
def test_where_the_id_of_a_schema_stands(
    data: bytes, headers: tuple[tuple[str, bytes | None], ...], size: str, expected: tuple[SchemaId, bytes]
) -> None:
    assert find_schema_id(data, "value", headers, IdSize(size))[:2] == expected
    keys = tuple((name.replace("value", "KEY").replace("key", "value").replace("KEY", "key"), v) for name, v in headers)
    assert find_schema_id(data, "key", keys, IdSize(size))[:2] == expected


@pytest.mark.parametrize(
    ("data", "headers"),
    [
        (b"", ()), (b"\0\0\0\0", ()), (b"\x02\0\0\0\1", ()), (b"{}", ()), (b"\x01" + b"\0" * 15, ()),
        (ID_1, (("__value_schema_id", b""),)), (ID_1, (("__value_schema_id", b"\x02" * 17),)),
        (ID_1, (("__value_schema_id", b"\x01\0"),)), (ID_1, (("apicurio.value.globalId", b"\0\0\0\1"),)),
    ],
)  # fmt: skip
def test_data_without_an_id(data: bytes, headers: tuple[tuple[str, bytes | None], ...]) -> None:
    with pytest.raises(ValueError, match=r"does not begin|not 8"):
        find_schema_id(data, "value", headers, IdSize.AUTO)


def test_a_header_decides_through_the_decoder_of_records(registry: RegistryServer) -> None:
    registry.answers |= {f"/schemas/guids/{GUID}": {"schema": '"long"'}, "/schemas/ids/1": {"schema": '"string"'}}
    decode = record_decoder("registry", "avro", DecoderSettings(registry.url))
    assert decode is not None
    headers = (("__value_schema_id", b"\x01" + GUID.bytes),)
    output = decode(Record("t", 0, 0, 0, ID_1 + b"\x02k", b"\x06", headers))
    assert (output.key, output.value, output.error) == ("k", 3, None)


def test_apicurios_own_api(registry: RegistryServer) -> None:
    reference = {"groupId": None, "artifactId": "b c", "version": "2", "name": "x.B"}
    base = "/apis/registry/v2"
    registry.answers |= {
        f"{base}/ids/globalIds/5?returnArtifactType=true": b'["null","x.B"]',
        f"{base}/ids/globalIds/5/references": [reference],
        f"{base}/groups/default/artifacts/b%20c/versions/2": b'{"type":"fixed","name":"x.B","size":1}',
        f"{base}/ids/contentIds/6?returnArtifactType=true": b'"string"',
        "/apis/ccompat/v7/schemas/ids/7": {"schema": '"int"'},
        f"{base}/ids/contentIds/8?returnArtifactType=true": b'{"$schema":"x"}',
    }
    decode = load("avro", DecoderSettings(registry.url + base))
    assert decode(b"\0" + _long(5) + b"\x02\xff", "t", "value") == "/w=="
    assert decode(b"\x02\xff", "t", "value", (("apicurio.value.globalId", _long(5)),)) == "/w=="
    assert decode(struct.pack(">bI", 0, 6) + b"\x02a", "t", "value") == "a"
    settings = DecoderSettings(registry.url + base, schema_id_kind="global")
    assert load("avro", settings)(struct.pack(">bI", 0, 5) + b"\x02\xff", "t", "value") == "/w=="
    as_json = (("apicurio.value.encoding", b"JSON"),)
    assert decode(struct.pack(">bI", 0, 6) + b'{"a":1}', "t", "value", as_json) == {"a": 1}
    with pytest.raises(NoSchema, match="is of type JSON"):
        decode(struct.pack(">bI", 0, 8), "t", "value")
    beside = load("avro", DecoderSettings(registry.url + "/apis/ccompat/v7"))
    assert beside(b"\x02\xff", "t", "value", (("apicurio.value.globalId", _long(5)),)) == "/w=="
    assert beside(struct.pack(">bI", 0, 7) + b"\x06", "t", "value") == 3
    assert beside(b"\0" + _long(7) + b"\x06", "t", "value") == 3


# --- requests ---------------------------------------------------------------------------------------------------------


def _schema(url: str, timeout_s: float = 5.0, **access: Any) -> str:
    return SchemaRegistry(url, access=RegistryAccess(**access), timeout_s=timeout_s).schema(SchemaId(1)).main.text


def test_a_server_that_sends_a_byte_now_and_then(registry: RegistryServer) -> None:
    registry.answers["/schemas/ids/1"] = {"schema": '"string"' + " " * 1000}
    registry.drip_s = 0.1
    started = time.monotonic()
    with pytest.raises(ConnectionTimedOut, match=r"did not respond within 0\.5 s"):
        _schema(registry.url, 0.5)
    assert time.monotonic() - started < 5


def test_one_deadline_for_a_schema_and_all_that_it_refers_to(registry: RegistryServer) -> None:
    registry.answers["/schemas/ids/1"] = {"schema": '"x"', "references": [{"subject": "s0", "version": 1}]}
    for number in range(40):
        inner = [{"subject": f"s{number + 1}", "version": 1}]
        registry.answers[f"/subjects/s{number}/versions/1"] = {"schema": "{}", "references": inner}
    registry.drip_s = 0.01
    started = time.monotonic()
    with pytest.raises(ConnectionTimedOut):
        _schema(registry.url, 1.0)
    assert time.monotonic() - started < 8
    assert len(registry.requests) < 10


@pytest.mark.parametrize("greeting", [b"", b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 100 Continue\r\n\r\n", b"garbage\n\n"])
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_servers_that_say_nothing_or_nonsense(scheme: str, greeting: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        ended = threading.Event()

        def answer() -> None:
            peer, _ = server.accept()
            with peer:
                peer.sendall(greeting)
                ended.wait(10)

        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(ConnectionFailed):
            _schema(f"{scheme}://127.0.0.1:{server.getsockname()[1]}", 0.5)
        ended.set()
        thread.join()


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (b"[" * 100_000, ConnectionFailed), (b"[]", ConnectionFailed), (b"", ConnectionFailed),
        (b"\xff", ConnectionFailed),
        ({"schema": None}, NoSchema), ({}, NoSchema), ({"schema": ["x"]}, NoSchema), (404, NoSchema),
        (500, ConnectionFailed), (429, ConnectionFailed), (301, ConnectionFailed), (403, KctlError),
        ({"schema": "x", "references": {}}, NoSchema), ({"schema": "x", "references": [7]}, NoSchema),
        ({"schema": "x", "references": [{"subject": "s", "version": "latest"}]}, NoSchema),
    ],
)  # fmt: skip
def test_answers_that_are_none(registry: RegistryServer, answer: Any, kind: type[Exception]) -> None:
    registry.answers["/schemas/ids/1"] = answer
    with pytest.raises(kind):
        _schema(registry.url)


def test_a_resolver_that_takes_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A resolver cannot be made slow on demand."""
    ended = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: [ended.wait(10)][:0])
    with pytest.raises(ConnectionTimedOut):
        _schema("http://registry.test", 0.2)
    ended.set()


@pytest.mark.parametrize("url", ["http://registry.invalid", "http://a..b", "http://" + "x" * 300])
def test_hosts_that_are_not_there(url: str) -> None:
    with pytest.raises(ConnectionFailed, match="cannot be reached"):
        _schema(url)


def test_redirects_carry_nothing_elsewhere(registry: RegistryServer) -> None:
    with serve() as other:
        registry.answers["/schemas/ids/1"] = 302
        registry.headers = {"Location": f"{other.url}/schemas/ids/1"}
        with pytest.raises(ConnectionFailed, match="redirects are not followed"):
            _schema(registry.url, user_info="me:secret")
        assert other.requests == []


def test_several_urls(registry: RegistryServer) -> None:
    registry.answers["/schemas/ids/1"] = {"schema": "here"}
    dead = f"http://127.0.0.1:{closed_port()}"
    assert _schema(f"{dead}, {registry.url}") == "here"
    with serve() as broken:
        broken.answers["/schemas/ids/1"] = 503
        assert _schema(f"{broken.url},{registry.url}") == "here"
        with pytest.raises(ConnectionFailed, match="HTTP 503"):
            _schema(f"{dead},{broken.url}")
    with pytest.raises(ConnectionFailed, match="cannot be reached"):
        _schema(f"{dead},{dead}/second")


def test_a_subpath_and_ipv6_are_urls() -> None:
    assert check_urls("http://h/a/b/") == ("http://h/a/b",)
    assert check_urls("http://[::1]:8081,https://b") == ("http://[::1]:8081", "https://b")
    assert check_urls("http://a,") == ("http://a",)
    for url in ("", ",", "http://a,ftp://b"):
        with pytest.raises(UsageError):
            check_urls(url)


# --- logins, proxies, TLS ---------------------------------------------------------------------------------------------


def test_a_token(registry: RegistryServer) -> None:
    registry.answers["/schemas/ids/1"] = {"schema": "x"}
    _schema(registry.url, token="abc.def")
    assert registry.requests[0][1]["Authorization"] == "Bearer abc.def"
    for token in ("a b", "a\r\nX: y", "ä"):
        with pytest.raises(UsageError, match="token has characters"):
            _schema(registry.url, token=token)
    with pytest.raises(UsageError, match="two logins"):
        _schema(registry.url, token="a", user_info="u:p")


def test_a_login_never_goes_to_a_proxy_in_clear_text(registry: RegistryServer, monkeypatch: pytest.MonkeyPatch) -> None:
    registry.answers["http://registry.test:8081/schemas/ids/1"] = {"schema": "through the proxy"}
    monkeypatch.setenv("http_proxy", registry.url.replace("http://", "http://proxy-user:p%40ss@"))
    monkeypatch.setenv("https_proxy", registry.url)
    assert _schema("http://registry.test:8081") == "through the proxy"
    expected = "Basic " + base64.b64encode(b"proxy-user:p@ss").decode()
    assert registry.requests[0][1]["Proxy-Authorization"] == expected
    with pytest.raises(Refused, match="plaintext"):
        _schema("http://registry.test:8081", user_info="me:secret")
    with pytest.raises(Refused, match="plaintext"):
        _schema("http://registry.test:8081", token="secret")
    with pytest.raises(ConnectionFailed, match=r"the proxy 127\.0\.0\.1 returned HTTP 502"):
        _schema("https://registry.test", user_info="me:secret")
    assert "secret" not in str(registry.requests)
    assert not any("Authorization" in headers for _, headers in registry.requests)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    registry.answers["/schemas/ids/1"] = {"schema": "directly"}
    assert _schema(registry.url, user_info="me:secret") == "directly"


@pytest.fixture
def secure(registry: RegistryServer) -> Iterator[RegistryServer]:
    """A registry that wants client certificates."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(TLS / "server.pem")
    context.load_verify_locations(TLS / "ca.pem")
    context.verify_mode = ssl.CERT_REQUIRED
    with serve(context) as server:
        server.answers["/schemas/ids/1"] = {"schema": "secret"}
        yield server


def test_a_private_ca_and_client_certificates(secure: RegistryServer, monkeypatch: pytest.MonkeyPatch) -> None:
    ca, client = str(TLS / "ca.pem"), str(TLS / "client.pem")
    assert _schema(secure.url, ca=ca, cert=client) == "secret"
    with pytest.raises(CertificateRejected, match="is not trusted") as caught:
        _schema(secure.url, cert=client)
    assert "--schema-registry-ca" in str(caught.value.hint)
    monkeypatch.setenv("SSL_CERT_FILE", ca)
    assert _schema(secure.url, cert=client) == "secret"
    with pytest.raises(ConnectionFailed) as refused:  # by an alert or a closed connection, whichever comes first
        _schema(secure.url, ca=ca)
    assert "--schema-registry-cert" in str(refused.value.hint)
    with pytest.raises(ConnectionFailed, match=r"TLS handshake|closed the connection"), serve() as plain:
        _schema(plain.url.replace("http:", "https:"), ca=ca)


def test_files_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="schema registry: "):
        _schema("https://h", ca=str(tmp_path / "none.pem"))
    with pytest.raises(UsageError, match="schema registry: "):
        _schema("https://h", cert=str(tmp_path))
