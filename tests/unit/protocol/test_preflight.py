"""Servers that misbehave in ways that no real broker can be made to: scripted answers on loopback sockets.

Real brokers, certificates and logins are in tests/integration/protocol/test_security.py.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import struct
import time
from collections.abc import Sequence

import pytest

from kctl.base.address import Address, parse_address
from kctl.base.deadline import Deadline
from kctl.errors import (
    AuthenticationFailed,
    ConnectionFailed,
    ConnectionRefused,
    ConnectionTimedOut,
    KctlError,
    NameNotResolved,
    NotKafka,
    NotSupported,
    TlsMismatch,
)
from kctl.protocol import wire
from kctl.protocol.codes import ApiKey
from kctl.protocol.dialer import Dialer
from kctl.protocol.preflight import _verdict, open_all, preflight
from kctl.protocol.security import Security
from scripted_broker import API_VERSIONS, METADATA, Script, frame, healthy, instead, server

PLAIN = Security("SASL_PLAINTEXT", "PLAIN", "u", "p")
SCRAM = Security("SASL_PLAINTEXT", "SCRAM-SHA-512", "u", "p")


def attempt(script: Script, security: Security | None = None, *, timeout_s: float = 1.5) -> KctlError | None:
    """The error of a preflight, None when it went through."""
    with server(script) as address:
        try:
            preflight([parse_address(address)], Dialer(security or Security()), timeout_s=timeout_s).connection.close()
        except KctlError as exc:
            return exc
    return None


def test_a_healthy_server() -> None:
    with server(healthy) as address:
        reached = preflight([parse_address(address)], Dialer(Security()))
    assert reached.state.brokers[1].port == 9092
    assert reached.state.controller_id == 1
    reached.connection.close()


@pytest.mark.parametrize(
    ("script", "error", "says"),
    [
        (instead(ApiKey.API_VERSIONS, lambda cid: frame(cid + 1, API_VERSIONS)), NotKafka, "not a Kafka broker"),
        (instead(ApiKey.API_VERSIONS, lambda cid: frame(cid, b"\0\x23" + bytes(4))), NotKafka, "error 35"),
        (
            instead(ApiKey.API_VERSIONS, lambda cid: frame(cid, b"\0\0\x7f\xff\xff\xff")),
            NotKafka,
            "not a Kafka broker",
        ),
        (instead(ApiKey.API_VERSIONS, lambda cid: frame(cid, b"\0\0\xff\xff\xff\xff")), NotKafka, "KRaft controller"),
        (instead(ApiKey.API_VERSIONS, lambda cid: b"\x7f\xff\xff\xff"), NotKafka, "not a Kafka broker"),
        (instead(ApiKey.API_VERSIONS, lambda cid: b"\xff\xff\xff\xff"), NotKafka, "not a Kafka broker"),
        (instead(ApiKey.API_VERSIONS, lambda cid: b"\0\0\0\0"), NotKafka, "not a Kafka broker"),
        (instead(ApiKey.API_VERSIONS, lambda cid: b"\x15\x03\x03\0\x02\x02\x28"), TlsMismatch, "speaks TLS"),
        (instead(ApiKey.API_VERSIONS, lambda cid: b"HTTP/1.1 400 Bad Request\r\n\r\n"), NotKafka, "web server"),
        (instead(ApiKey.API_VERSIONS, lambda cid: b"\0\0\0\x10\0\0"), ConnectionTimedOut, "did not respond in time"),
        (lambda key, cid, body: None, ConnectionFailed, "closed the connection during the ApiVersions request"),
        (instead(ApiKey.METADATA, lambda cid: frame(cid, METADATA[:9])), NotKafka, "not like a Kafka broker"),
        (instead(ApiKey.METADATA, lambda cid: b""), ConnectionTimedOut, "the Metadata request"),
        (instead(ApiKey.METADATA, lambda cid: None), ConnectionFailed, "closed the connection during the Metadata"),
    ],
)
def test_wrong_answers(script: Script, error: type[KctlError], says: str) -> None:
    found = attempt(script)
    assert isinstance(found, error), found
    assert says in found.message
    assert found.exit_code == 3
    assert found.hint


def test_a_broker_before_api_versions() -> None:
    """Kafka 0.9 closes the connection at an API that it does not know."""

    def old(key: int, correlation_id: int, _body: bytes) -> bytes | None:
        return frame(correlation_id, bytes(8)) if key == ApiKey.METADATA else None

    found = attempt(old)
    assert isinstance(found, NotSupported)
    assert "older than 0.10" in found.message


def test_a_broker_without_sasl_authenticate() -> None:
    api_versions = b"\0\0" + struct.pack(">i", 2) + b"\0\x03\0\0\0\x02\0\x11\0\0\0\0"
    found = attempt(instead(ApiKey.API_VERSIONS, lambda cid: frame(cid, api_versions)), PLAIN)
    assert isinstance(found, NotSupported)
    assert "1.0" in (found.hint or "")


def test_metadata_versions_that_do_not_meet() -> None:
    api_versions = b"\0\0" + struct.pack(">i", 1) + b"\0\x03\0\x63\0\x64"
    assert isinstance(attempt(instead(ApiKey.API_VERSIONS, lambda cid: frame(cid, api_versions))), NotSupported)


# --- SCRAM: a server that does not know the password must not pass (RFC 5802) ---------------------------------------


def _scram(tamper: str) -> Script:
    """A server that knows the password; tamper: which part it gets wrong."""
    seen: dict[str, bytes] = {}

    def handshake(cid: int) -> bytes:
        return frame(cid, b"\0\0\0\0\0\x01" + wire.string("SCRAM-SHA-512"))

    def authenticate(cid: int, body: bytes) -> bytes:
        token = body[4:]
        if token.startswith(b"n,,"):
            seen["bare"] = token[3:]
            nonce = token.rpartition(b"r=")[2]
            nonce = b"other" if tamper == "nonce" else nonce + b"server"
            iterations = b"2000000000" if tamper == "iterations" else b"4096"
            seen["first"] = b"r=" + nonce + b",s=" + base64.b64encode(b"salt") + b",i=" + iterations
            answer = b"garbage" if tamper == "format" else seen["first"]
        else:
            message = b",".join((seen["bare"], seen["first"], token.rpartition(b",p=")[0]))
            salted = hashlib.pbkdf2_hmac("sha512", b"other" if tamper == "password" else b"p", b"salt", 4096)
            key = hmac.digest(salted, b"Server Key", "sha512")
            answer = b"v=" + base64.b64encode(hmac.digest(key, message, "sha512"))
        return frame(cid, b"\0\0\xff\xff" + struct.pack(">i", len(answer)) + answer + bytes(8))

    def script(key: int, cid: int, body: bytes) -> bytes | None:
        if key == ApiKey.SASL_HANDSHAKE:
            return handshake(cid)
        return authenticate(cid, body) if key == ApiKey.SASL_AUTHENTICATE else healthy(key, cid, body)

    return script


def test_scram_with_an_honest_server() -> None:
    assert attempt(_scram(""), SCRAM) is None


@pytest.mark.parametrize("tamper", ["nonce", "iterations", "format", "password"])
def test_scram_with_a_server_that_cheats(tamper: str) -> None:
    started = time.process_time()
    found = attempt(_scram(tamper), SCRAM)
    assert isinstance(found, AuthenticationFailed), found
    assert time.process_time() - started < 2


# --- several servers ----------------------------------------------------------------------------------------------


def test_the_first_healthy_one_wins_and_the_others_are_told() -> None:
    with server(healthy) as good, server(instead(ApiKey.API_VERSIONS, lambda cid: b"")) as silent:
        started = time.monotonic()
        reached = preflight([*map(parse_address, ("127.0.0.1:1", silent, good))], Dialer(Security()))
        assert time.monotonic() - started < 1
    assert str(reached.connection.address) == good
    assert isinstance(reached.failures["127.0.0.1:1"], ConnectionRefused)
    reached.connection.close()


def test_a_refused_login_is_not_tried_on_the_other_servers() -> None:
    logins = []

    def script(key: int, cid: int, body: bytes) -> bytes | None:
        if key == ApiKey.SASL_HANDSHAKE:
            return frame(cid, bytes(6))
        if key == ApiKey.SASL_AUTHENTICATE:
            logins.append(body)
            return frame(cid, b"\0\x3a\0\x02no\0\0\0\0" + bytes(8))
        return healthy(key, cid, body)

    with (
        server(script) as one,
        server(script) as two,
        server(script) as three,
        pytest.raises(AuthenticationFailed, match="reports: no"),
    ):
        preflight([*map(parse_address, (one, two, three))], Dialer(PLAIN))
    assert len(logins) == 1


def test_open_all() -> None:
    with server(healthy) as good, server(instead(ApiKey.API_VERSIONS, lambda cid: b"")) as silent:
        addresses = {n: parse_address(text) for n, text in enumerate([good, silent, "127.0.0.1:1", good])}
        started = time.monotonic()
        found = open_all(addresses, Dialer(Security()), Deadline(1.5))
        assert time.monotonic() - started < 2.5
    kinds = [type(found[n]).__name__ for n in range(4)]
    assert kinds == ["Connection", "NoResponse", "ConnectionRefused", "Connection"]


@pytest.mark.parametrize(
    ("errors", "expected"),
    [
        ([NameNotResolved("a"), ConnectionRefused("b")], ConnectionRefused),
        ([ConnectionRefused("a"), ConnectionTimedOut("b")], ConnectionTimedOut),
        ([ConnectionTimedOut("a"), NotKafka("b")], NotKafka),
        ([NotKafka("a"), TlsMismatch("b"), ConnectionRefused("c")], TlsMismatch),
        ([ConnectionFailed("a"), NameNotResolved("b")], NameNotResolved),
    ],
)
def test_the_most_telling_error(errors: Sequence[KctlError], expected: type[KctlError]) -> None:
    verdict = _verdict({f"s{n}": error for n, error in enumerate(errors)})
    assert type(verdict) is expected
    assert f"{len(errors) - 1} other server" in verdict.message
    assert isinstance(verdict.details["servers"], list)


@pytest.mark.parametrize(
    "address",
    [
        Address("a\0b", 9092),
        Address("\x1b[2J", 9092),
        Address("x" * 300, 1),
        Address("127.0.0.1", 99_999),
        Address("ü..", 1),
    ],
)
def test_addresses_that_a_hostile_broker_may_advertise(address: Address) -> None:
    found = open_all({1: address}, Dialer(Security()), Deadline(2))
    assert isinstance(found[1], ConnectionFailed)
