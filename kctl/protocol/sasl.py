"""The login to a broker: SASL PLAIN (RFC 4616) and SCRAM (RFC 5802, RFC 7677), with the standard library.

kafka-python has both, but importing it takes longer than most commands. Kafka does no SASLprep: names and passwords
are plain UTF-8 (org.apache.kafka.common.security.scram.internals.ScramFormatter).
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets
from collections.abc import Generator, Mapping
from typing import TYPE_CHECKING, Protocol

from kctl.errors import AuthenticationFailed, ConnectionReason, NotSupported, Reason
from kctl.protocol import wire
from kctl.protocol.codes import ApiKey, ErrorCode

if TYPE_CHECKING:
    from kctl.base.address import Address
    from kctl.base.deadline import Deadline
    from kctl.protocol.security import Security

# The server chooses the number of iterations. Kafka's default is 4096 and its maximum 16384.
MAX_ITERATIONS = 1_000_000
_HASHES = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}

# Yields messages to send, receives the responses, and ends when the server is authenticated.
Exchange = Generator[bytes, bytes, None]


class ServerNotTrusted(Exception):
    """The response is malformed, or shows that the server does not know the password."""


def exchange(mechanism: str, username: str, password: str) -> Exchange:
    """Yield the messages of one login. Raises ServerNotTrusted, and KeyError for an unknown mechanism."""
    if mechanism == "PLAIN":
        return _plain(username, password)
    return _scram(_HASHES[mechanism], username, password, secrets.token_urlsafe(24))


def _plain(username: str, password: str) -> Exchange:
    yield f"\0{username}\0{password}".encode()


def _scram(hash_name: str, username: str, password: str, nonce: str) -> Exchange:
    name = username.replace("=", "=3D").replace(",", "=2C")
    bare = f"n={name},r={nonce}".encode()
    first = yield b"n,," + bare
    answer = _attributes(first)
    salted = _salted(hash_name, password, answer, nonce)
    final = b"c=biws,r=" + answer["r"]  # biws: the header "n,," in base64
    message = b",".join((bare, first, final))

    client_key = hmac.digest(salted, b"Client Key", hash_name)
    stored_key = hashlib.new(hash_name, client_key).digest()
    signature = hmac.digest(stored_key, message, hash_name)
    proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
    verifier = _attributes((yield final + b",p=" + base64.b64encode(proof)))

    server_key = hmac.digest(salted, b"Server Key", hash_name)
    expected = hmac.digest(server_key, message, hash_name)
    if not hmac.compare_digest(_decoded(verifier, "v"), expected):
        raise ServerNotTrusted("its signature is wrong")


def _salted(hash_name: str, password: str, answer: dict[str, bytes], nonce: str) -> bytes:
    server_nonce = answer.get("r", b"")
    if not server_nonce.startswith(nonce.encode()) or len(server_nonce) == len(nonce):
        raise ServerNotTrusted("its nonce is wrong")
    iterations = answer.get("i", b"")
    if not iterations.isdigit() or len(iterations) > 7 or not 1 <= int(iterations) <= MAX_ITERATIONS:
        raise ServerNotTrusted("its iteration count is wrong")
    return hashlib.pbkdf2_hmac(hash_name, password.encode(), _decoded(answer, "s"), int(iterations))


def _attributes(message: bytes) -> dict[str, bytes]:
    """Parse "r=…,s=…,i=…" into values by letter."""
    parts = [part.partition(b"=") for part in message.split(b",")]
    return {letter.decode("ascii", "replace"): value for letter, equals, value in parts if equals}


def _decoded(answer: dict[str, bytes], letter: str) -> bytes:
    try:
        return base64.b64decode(answer[letter], validate=True)
    except (KeyError, binascii.Error):
        raise ServerNotTrusted("its response is malformed") from None


# --- over a connection (KIP-43, KIP-152) --------------------------------------------------------------------------


class Exchanging(Protocol):
    """The part of a connection that a login uses."""

    @property
    def address(self) -> Address: ...

    @property
    def api_versions(self) -> Mapping[int, tuple[int, int]]: ...

    def exchange(self, api_key: int, version: int, body: bytes, deadline: Deadline) -> wire.Reader:
        """Send one request and return the reader of the response."""


def log_in(connection: Exchanging, security: Security, deadline: Deadline) -> int:
    """Log in, and return the session lifetime in ms; 0 if the session does not expire.

    Raises AuthenticationFailed, NotSupported for a broker before 1.0, subclasses of ConnectionFailed, WireError.
    """
    assert security.sasl_mechanism
    _handshake(connection, security, deadline)
    login = exchange(security.sasl_mechanism, security.sasl_username or "", security.sasl_password or "")
    lifetime_ms = 0
    try:
        token = next(login)
        while True:
            answer = _authenticate(connection, security, token, deadline)
            lifetime_ms = answer.session_lifetime_ms
            token = login.send(answer.auth_bytes)
    except StopIteration:
        return lifetime_ms
    except ServerNotTrusted as exc:
        why = f"the broker did not prove that it knows the password: {exc}"
        raise _login_failed(connection, security, why) from None


def _handshake(connection: Exchanging, security: Security, deadline: Deadline) -> None:
    if ApiKey.SASL_AUTHENTICATE not in connection.api_versions:
        raise NotSupported(
            f"{connection.address} is too old for SASL logins by kctl",
            hint="upgrade the broker to Kafka 1.0 or later",
            reason=Reason.VERSION_UNSUPPORTED,
        )
    mechanism = security.sasl_mechanism or ""
    reader = connection.exchange(ApiKey.SASL_HANDSHAKE, 1, wire.string(mechanism), deadline)
    answer = wire.decode_sasl_handshake(reader)
    if answer.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM:
        raise AuthenticationFailed(
            f"{connection.address}: the SASL mechanism {mechanism} is not enabled",
            hint=f"enabled mechanisms: {', '.join(answer.mechanisms) or 'none'}",
            reason=ConnectionReason.SASL_UNSUPPORTED,
        )
    if answer.error_code:
        raise AuthenticationFailed(
            f"the listener {connection.address} does not support SASL",
            hint=f"set the security protocol to {security.protocol.removeprefix('SASL_')}",
            reason=ConnectionReason.SASL_UNSUPPORTED,
        )


def _authenticate(
    connection: Exchanging, security: Security, token: bytes, deadline: Deadline
) -> wire.SaslAuthentication:
    """Send one SaslAuthenticate and return the broker's response."""
    version = min(1, connection.api_versions[ApiKey.SASL_AUTHENTICATE][1])
    body = wire.encode_sasl_authenticate(token)
    reader = connection.exchange(ApiKey.SASL_AUTHENTICATE, version, body, deadline)
    answer = wire.decode_sasl_authenticate(reader, version)
    if answer.error_code:
        raise _login_failed(connection, security, f"the broker reports: {answer.error_message or 'no reason'}")
    return answer


def _login_failed(connection: Exchanging, security: Security, why: str) -> AuthenticationFailed:
    return AuthenticationFailed(
        f"{connection.address} rejected the login of {security.sasl_username!r} with {security.sasl_mechanism}; {why}",
        hint="check the user name and the password, and that the user exists for this mechanism",
    )
