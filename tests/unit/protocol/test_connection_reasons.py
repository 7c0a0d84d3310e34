"""The exit code and the reason of each cause of a failed connection, with sockets on loopback.

Scripts branch on these words: docs/exit-codes.md.
"""

from __future__ import annotations

import json
import socket
import struct
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import NamedTuple

import pytest

from in_process import InProcess
from kctl.base.address import parse_address
from kctl.errors import ConnectionReason, ConnectionRefused, ExitCode, KctlError, Refused
from kctl.model import Broker
from kctl.protocol.brokers import advertised_error
from kctl.protocol.codes import ApiKey
from kctl.protocol.dialer import Dialer
from kctl.protocol.preflight import preflight
from kctl.protocol.security import Security
from scripted_broker import METADATA, frame, healthy, instead, server
from tls_files import TlsFiles, tls_server

Servers = Callable[[TlsFiles], AbstractContextManager[str]]
SASL = Security("SASL_PLAINTEXT", "PLAIN", "u", "p")
SAN = "subjectAltName=DNS:localhost,IP:127.0.0.1\n"


# --- servers; each yields its address -----------------------------------------------------------------------------


@contextmanager
def closed_port(_files: TlsFiles) -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    yield f"127.0.0.1:{port}"


@contextmanager
def unknown_host(_files: TlsFiles) -> Iterator[str]:
    yield "nosuchhost.invalid:9092"  # RFC 2606; a resolver that does not respond has the same reason


@contextmanager
def black_hole(_files: TlsFiles) -> Iterator[str]:
    """A listener that nothing accepts: the kernel completes the handshake, and no response comes."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"127.0.0.1:{listener.getsockname()[1]}"


@contextmanager
def full_backlog(_files: TlsFiles) -> Iterator[str]:
    """A listener whose queue is full: the kernel drops further connections, like a firewall."""
    with ExitStack() as stack:
        listener = stack.enter_context(socket.socket())
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        for _ in range(4):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(listener.getsockname())
        yield f"127.0.0.1:{listener.getsockname()[1]}"


class _Page(BaseHTTPRequestHandler):
    def log_message(self, *_: object) -> None: ...


@contextmanager
def web_server(_files: TlsFiles) -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), _Page) as http:
        Thread(target=http.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        yield f"127.0.0.1:{http.server_port}"
        http.shutdown()


@contextmanager
def tls(files: TlsFiles, *, client_ca: str | None = None, version: str | None = None) -> Iterator[str]:
    certificate = files.certificate("server", "root", extensions=SAN)
    ca = files.path(f"{client_ca}.pem") if client_ca else None
    with tls_server(certificate, files.key("server"), ca=ca, version=version) as port:
        yield f"127.0.0.1:{port}"


def _scripted(key: int, answer: Callable[[int], bytes | None]) -> Servers:
    return lambda _files: server(instead(key, answer))


def _needs_login(key: int, correlation_id: int, body: bytes) -> bytes | None:
    """Answer like a SASL listener: it closes the connection on a request before the login."""
    if key == ApiKey.SASL_HANDSHAKE:
        return frame(correlation_id, b"\0\x21" + b"\0\0\0\x01\0\x05PLAIN")  # UNSUPPORTED_SASL_MECHANISM
    return None if key == ApiKey.METADATA else healthy(key, correlation_id, body)


def _rejects_login(key: int, correlation_id: int, body: bytes) -> bytes | None:
    if key == ApiKey.SASL_HANDSHAKE:
        return frame(correlation_id, bytes(6))
    if key == ApiKey.SASL_AUTHENTICATE:
        return frame(correlation_id, b"\0\x3a\0\x02no\0\0\0\0" + bytes(8))  # SASL_AUTHENTICATION_FAILED
    return healthy(key, correlation_id, body)


def _without_metadata(correlation_id: int) -> bytes:
    return frame(correlation_id, b"\0\0" + struct.pack(">i", 1) + b"\0\x03\0\x63\0\x64")  # Metadata 99 to 100


# --- the table ----------------------------------------------------------------------------------------------------


class Cause(NamedTuple):
    reason: str
    server: Servers
    security: Security = Security()
    exit_code: ExitCode = ExitCode.UNREACHABLE
    ca: str = ""  # trusted by kctl, of the files
    client: str = ""  # kctl's certificate


TLS = Security("SSL")
CAUSES = {
    "closed port": Cause("connection_refused", closed_port),
    "unknown host": Cause("name_not_resolved", unknown_host),
    "full backlog": Cause("connection_timed_out", full_backlog),
    "black hole": Cause("no_response", black_hole),
    "black hole, TLS": Cause("no_response", black_hole, TLS),
    "no response to Metadata": Cause("no_response", _scripted(ApiKey.METADATA, lambda _: b"")),
    "closes at once": Cause("connection_closed", lambda _files: server(lambda *_: None)),
    "closes later": Cause("connection_closed", _scripted(ApiKey.METADATA, lambda _: None)),
    "web server": Cause("not_kafka", web_server),
    "web server, TLS": Cause("not_kafka", web_server, TLS),
    "malformed response": Cause("not_kafka", _scripted(ApiKey.METADATA, lambda cid: frame(cid, METADATA[:9]))),
    "plaintext to TLS": Cause("tls_required", tls),
    "TLS to plaintext": Cause("tls_unsupported", lambda _files: server(healthy), TLS),
    "old TLS version": Cause("tls_handshake", partial(tls, version="TLSv1_1"), TLS, ca="root"),
    "unknown CA": Cause("certificate_untrusted", tls, TLS, ca="other"),
    "client certificate missing": Cause("client_certificate_required", partial(tls, client_ca="root"), TLS, ca="root"),
    "client certificate of an unknown CA": Cause(
        "client_certificate_rejected", partial(tls, client_ca="root", version="TLSv1_2"), TLS, ca="root", client="other"
    ),
    "login required": Cause("login_required", lambda _files: server(_needs_login)),
    "mechanism not enabled": Cause("sasl_unsupported", lambda _files: server(_needs_login), SASL),
    "no login there": Cause(
        "sasl_unsupported", _scripted(ApiKey.SASL_HANDSHAKE, lambda cid: frame(cid, b"\0\x22" + bytes(4))), SASL
    ),
    "wrong password": Cause("authentication_failed", lambda _files: server(_rejects_login), SASL),
    "no common version": Cause(
        "version_unsupported", _scripted(ApiKey.API_VERSIONS, _without_metadata), exit_code=ExitCode.REFUSED
    ),
}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> TlsFiles:
    made = TlsFiles(tmp_path_factory.mktemp("tls"))
    made.certificate("root")
    made.certificate("other")
    return made


def _security(cause: Cause, files: TlsFiles) -> Security:
    if not cause.ca:
        return cause.security
    client = cause.client and str(
        files.joined("client.pem", files.key(cause.client), files.path(f"{cause.client}.pem"))
    )
    return Security("SSL", ssl_cafile=str(files.path(f"{cause.ca}.pem")), ssl_certfile=client or None)


@pytest.mark.parametrize("cause", CAUSES.values(), ids=CAUSES.keys())
def test_each_cause_has_its_reason(cause: Cause, files: TlsFiles) -> None:
    with cause.server(files) as address, pytest.raises(KctlError) as caught:
        preflight([parse_address(address)], Dialer(_security(cause, files)), timeout_s=2)
    assert (caught.value.exit_code, caught.value.reason) == (cause.exit_code, cause.reason), caught.value.message
    assert caught.value.hint


def test_each_reason_has_a_cause() -> None:
    assert {cause.reason for cause in CAUSES.values()} >= {reason.value for reason in ConnectionReason}


# --- longer messages keep the reason ------------------------------------------------------------------------------


def test_several_servers_keep_the_reason_of_the_most_specific_error(files: TlsFiles) -> None:
    with closed_port(files) as closed, tls(files) as encrypted, pytest.raises(KctlError) as caught:
        preflight([parse_address(closed), parse_address(encrypted)], Dialer(Security()), timeout_s=2)
    assert caught.value.reason == "tls_required"
    rows = caught.value.details["servers"]
    assert isinstance(rows, list)
    assert {row["server"]: row["reason"] for row in rows} == {closed: "connection_refused", encrypted: "tls_required"}


def test_an_advertised_address_keeps_the_reason() -> None:
    cause = ConnectionRefused("refused", reason=ConnectionReason.CONNECTION_CLOSED)
    error = advertised_error(Broker(1, "h", 9092), cause)
    assert (type(error), error.reason) == (ConnectionRefused, "connection_closed")
    assert error.details["broker_id"] == 1


def test_a_reworded_error_keeps_everything_else() -> None:
    error = Refused("a", hint="b", details={"c": 1})
    error.reason = "d"
    longer = error.reworded("a, and more")
    assert (longer.message, longer.hint, longer.details, longer.reason) == ("a, and more", "b", {"c": 1}, "d")
    assert longer.reworded("x", hint="y", details={}).hint == "y"


def test_json_has_the_reason(files: TlsFiles, tmp_path: Path) -> None:
    kctl = InProcess(tmp_path)
    with closed_port(files) as address:
        result = kctl("topic", "list", "--bootstrap-server", address, "-o", "json")
    error = json.loads(result.err)
    assert (result.code, error["exit_code"], error["reason"]) == (3, 3, "connection_refused")
