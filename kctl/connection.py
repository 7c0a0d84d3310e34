"""One connection to one broker: TCP, TLS, ApiVersions, SASL, then requests. Blocking, bounded by deadlines.

The steps are those of KIP-43 and KIP-152; each that fails has its own error. What is ambiguous, a peer that
closes or keeps silent, is raised as PeerClosed or NoAnswer with the step, and kctl.preflight finds out more.
"""

from __future__ import annotations

import socket
import struct
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from kctl import wire
from kctl.deadline import Deadline
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

if TYPE_CHECKING:
    import ssl

    from kctl.address import Address
    from kctl.context import Security

MAX_RESPONSE_BYTES = 256 * 1024 * 1024
_CHUNK = 256 * 1024


class PeerClosed(ConnectionFailed):
    """The other side closed the connection."""


class NoAnswer(ConnectionTimedOut):
    """Connected, and no answer came in time."""


class Pending(NamedTuple):
    """A request on its way. answer: kafka-python's class of the response."""

    name: str
    version: int
    correlation_id: int
    answer: Any


class Dialer:
    """How to connect to the brokers of one cluster: its security settings, with the TLS context made once."""

    def __init__(self, security: Security) -> None:
        self.security = security
        self.ssl_context: ssl.SSLContext | None = None
        if security.tls:
            from kctl.tls import make_context

            self.ssl_context = make_context(security)


class Connection:
    """Not for several threads at once. `step` says what it does, for the message when time is up."""

    def __init__(self, address: Address, dialer: Dialer) -> None:
        self.address = address
        self.step = "resolving the name"
        self.api_versions: dict[int, tuple[int, int]] = {}
        self._dialer = dialer
        self._socket: socket.socket | None = None
        self._received = bytearray()
        self._correlation_id = 0
        self._login_ends = float("inf")

    # --- opening --------------------------------------------------------------------------------------------------

    def open(self, deadline: Deadline) -> None:
        """All steps up to a usable connection. Raises ConnectionFailed's subclasses, NotSupported."""
        try:
            self._socket = self._tcp(deadline)
            if self._dialer.ssl_context is not None:
                self._tls(self._dialer.ssl_context, deadline)
            self._negotiate(deadline)
            if self._dialer.security.sasl:
                self._login(deadline)
        except BaseException:
            self.close()
            raise

    def _tcp(self, deadline: Deadline) -> socket.socket:
        host, port = self.address
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (socket.gaierror, ValueError, OverflowError) as exc:  # a broker may advertise anything
            reason = getattr(exc, "strerror", None) or "not a host name"
            raise NameNotResolved(
                f"the host name {host!r} cannot be resolved ({reason})", hint="check the spelling and the DNS"
            ) from None
        self.step = "connecting"
        failure: KctlError | None = None
        for index, (family, kind, protocol, _, where) in enumerate(found):
            sock = socket.socket(family, kind, protocol)
            try:
                # A host with several addresses, of which one is dead, leaves time for the others.
                sock.settimeout(max(0.001, deadline.left_s / (len(found) - index)))
                sock.connect(where)
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            except (OSError, OverflowError) as exc:
                sock.close()
                failure = self._tcp_error(exc)
            else:
                return sock
        raise failure or NameNotResolved(f"the host name {host!r} has no address")

    def _tcp_error(self, exc: OSError | OverflowError) -> ConnectionFailed:
        if isinstance(exc, ConnectionRefusedError):
            return ConnectionRefused(
                f"{self.address} refused the connection", hint="is the broker running, and is this its port?"
            )
        if isinstance(exc, TimeoutError):
            return ConnectionTimedOut(
                f"{self.address} did not take the connection in time",
                hint="check the address, the network and firewalls",
            )
        return ConnectionFailed(
            f"cannot connect to {self.address}: {getattr(exc, 'strerror', None) or exc}",
            hint="check the address and the network",
        )

    def _tls(self, context: ssl.SSLContext, deadline: Deadline) -> None:
        import ssl

        assert self._socket
        self.step = "the TLS handshake"
        self._socket.settimeout(max(0.001, deadline.left_s))
        try:
            host = self.address.host.removesuffix(".")
            self._socket = context.wrap_socket(self._socket, server_hostname=host)
        except ssl.SSLError as exc:
            raise self._tls_error(exc) from None
        except TimeoutError:
            raise self._no_answer() from None
        except OSError:
            raise self._closed() from None

    def _tls_error(self, exc: ssl.SSLError) -> ConnectionFailed:
        from kctl.tls import handshake_error

        given = self._dialer.security.ssl_certfile is not None
        return handshake_error(exc, str(self.address), certificate_given=given) or self._closed()

    def _negotiate(self, deadline: Deadline) -> None:
        self.step = "the answer to ApiVersions"
        reader = self.exchange(wire.API_VERSIONS, 0, b"", deadline)
        try:
            error, self.api_versions = wire.decode_api_versions(reader)
        except wire.WireError:
            raise self._not_kafka(reader.data) from None
        if error:
            raise NotKafka(
                f"{self.address} answers, but refuses to tell its API versions (error {error})",
                hint="is this the broker's port?",
            )
        if wire.METADATA not in self.api_versions:
            raise NotKafka(
                f"{self.address} is a KRaft controller, not a broker",
                hint="give the address of a broker's listener",
            )

    def _login(self, deadline: Deadline) -> None:
        from kctl.sasl import ServerNotTrusted, exchange

        security = self._dialer.security
        assert security.sasl_mechanism
        self.step = "the SASL login"
        self._handshake(security.sasl_mechanism, deadline)
        login = exchange(security.sasl_mechanism, security.sasl_username or "", security.sasl_password or "")
        try:
            token = next(login)
            while True:
                token = login.send(self._authenticate(token, deadline))
        except StopIteration:
            pass
        except ServerNotTrusted as exc:
            raise self._login_failed(f"the broker does not prove that it knows the password: {exc}") from None

    def _authenticate(self, token: bytes, deadline: Deadline) -> bytes:
        """One SaslAuthenticate; what the broker answered."""
        version = min(1, self.api_versions[wire.SASL_AUTHENTICATE][1])
        reader = self.exchange(wire.SASL_AUTHENTICATE, version, wire.encode_sasl_authenticate(token), deadline)
        answer = wire.decode_sasl_authenticate(reader, version)
        if answer.error_code:
            raise self._login_failed(f"the broker says: {answer.error_message or 'no reason'}")
        if answer.session_lifetime_ms:  # KIP-368: then the broker closes the connection
            self._login_ends = time.monotonic() + 0.85 * answer.session_lifetime_ms / 1000
        return answer.auth_bytes

    def _handshake(self, mechanism: str, deadline: Deadline) -> None:
        if wire.SASL_AUTHENTICATE not in self.api_versions:
            raise NotSupported(f"{self.address} is too old for a SASL login", hint="Kafka 1.0 or newer is needed")
        answer = wire.decode_sasl_handshake(self.exchange(wire.SASL_HANDSHAKE, 1, wire.string(mechanism), deadline))
        if answer.error_code == 33:
            raise AuthenticationFailed(
                f"{self.address} does not have the SASL mechanism {mechanism} enabled",
                hint=f"it has {', '.join(answer.mechanisms) or 'none'}",
            )
        if answer.error_code:
            raise AuthenticationFailed(
                f"the listener {self.address} takes no SASL login",
                hint=f"set the security protocol to {self._dialer.security.protocol.removeprefix('SASL_')}",
            )

    def _login_failed(self, why: str) -> AuthenticationFailed:
        security = self._dialer.security
        return AuthenticationFailed(
            f"{self.address} refused the login of {security.sasl_username!r} with {security.sasl_mechanism}; {why}",
            hint="check the user name, the password and that the user exists for this mechanism",
        )

    # --- requests -------------------------------------------------------------------------------------------------

    def exchange(
        self, api_key: int, version: int, body: bytes, deadline: Deadline, *, flexible: bool = False
    ) -> wire.Reader:
        """One request of kctl.wire and the reader of its answer."""
        self._correlation_id += 1
        self.write(wire.frame(api_key, version, self._correlation_id, body, flexible=flexible), deadline)
        return self._body(self.read(deadline), self._correlation_id, flexible=flexible)

    def _body(self, payload: bytes, expected: int, *, flexible: bool) -> wire.Reader:
        reader = wire.Reader(payload, flexible)
        try:
            correlation_id = reader.int32()
            reader.tags()
        except wire.WireError:
            raise self._not_kafka(payload) from None
        if correlation_id != expected:
            raise self._not_kafka(payload)
        return reader

    def send_message(self, message: Any, version: int, deadline: Deadline) -> Pending:
        """Write a request of kafka-python's. `message` may be sent elsewhere before the answer is received."""
        self._correlation_id += 1
        message.API_VERSION = version
        message.with_header(correlation_id=self._correlation_id, client_id=wire.CLIENT_ID)
        pending = Pending(message.name, version, self._correlation_id, message.header.get_response_class())
        self.write(message.encode(header=True, framed=True), deadline)
        return pending

    def receive_message(self, pending: Pending, deadline: Deadline) -> Any:
        """The answer, decoded by kafka-python. Raises ConnectionFailed for bytes that make no sense."""
        payload = self.read(deadline)
        # The one answer whose header has no tagged fields in flexible versions (KIP-511).
        flexible = pending.answer.flexible_version_q(pending.version) and pending.answer.API_KEY != wire.API_VERSIONS
        start = self._body(payload, pending.correlation_id, flexible=flexible).position
        try:
            return pending.answer.decode(memoryview(payload)[start:], version=pending.version)
        except (ValueError, IndexError, KeyError, TypeError, ArithmeticError, struct.error) as exc:
            self.close()
            raise ConnectionFailed(
                f"{self.address} gave an answer to {pending.name} that cannot be read ({type(exc).__name__})"
            ) from None

    def write(self, data: bytes, deadline: Deadline) -> None:
        """Send all bytes."""
        if self._socket is None:
            raise self._closed()
        self._socket.settimeout(max(0.001, deadline.left_s))
        try:
            self._socket.sendall(data)
        except OSError as exc:
            raise self._io_error(exc) from None

    def read(self, deadline: Deadline) -> bytes:
        """One frame without its size. After an error the connection is closed: a late answer would be mistaken."""
        head = self._take(4, deadline)
        size = int.from_bytes(head, "big", signed=True)
        if not 4 <= size <= MAX_RESPONSE_BYTES:
            raise self._not_kafka(head + bytes(self._received))
        return self._take(size, deadline)

    def _take(self, size: int, deadline: Deadline) -> bytes:
        buffer = self._received
        while len(buffer) < size:
            if self._socket is None:
                raise self._closed()
            self._socket.settimeout(max(0.001, deadline.left_s))
            try:
                data = self._socket.recv(_CHUNK)
            except OSError as exc:
                raise self._io_error(exc) from None
            if not data:
                if buffer and not self.api_versions:
                    raise self._not_kafka(bytes(buffer))
                raise self._closed()
            buffer += data
        piece = bytes(buffer[:size])
        del buffer[:size]
        return piece

    def _io_error(self, exc: OSError) -> ConnectionFailed:
        import ssl

        if isinstance(exc, TimeoutError):
            return self._no_answer()
        return self._tls_error(exc) if isinstance(exc, ssl.SSLError) else self._closed()

    def _closed(self) -> PeerClosed:
        self.close()
        return PeerClosed(f"{self.address} closed the connection during {self.step}", hint="the broker's log says why")

    def _no_answer(self) -> NoAnswer:
        self.close()
        return NoAnswer(
            f"{self.address} took the connection, but gave no answer in time (waiting for {self.step})",
            hint="is this a broker's port, and is the broker alive?",
        )

    def _not_kafka(self, data: bytes) -> ConnectionFailed:
        self.close()
        return not_kafka(str(self.address), data)

    # --- state ----------------------------------------------------------------------------------------------------

    @property
    def usable(self) -> bool:
        """Open, as far as one can tell without a request; a broker closes idle connections."""
        if self._socket is None or self._received or time.monotonic() > self._login_ends:
            return False
        import select

        poll = select.poll()  # select() fails for descriptors above 1023
        poll.register(self._socket, select.POLLIN | select.POLLHUP)
        return not poll.poll(0)  # nothing was asked: anything to read is an end or nonsense

    def fileno(self) -> int:
        """For poll(); -1 when it is closed."""
        return -1 if self._socket is None else self._socket.fileno()

    def hand_over(self) -> tuple[socket.socket, float]:
        """The socket, for somebody who reads and writes by himself from now on, and when (on the monotonic clock) the
        login ends. This connection is closed then. Raises PeerClosed when it was already."""
        if self._socket is None:
            raise self._closed()
        sock, self._socket = self._socket, None
        return sock, self._login_ends

    def close(self) -> None:
        """Close it; harmless when it is closed."""
        sock, self._socket = self._socket, None
        if sock is not None:
            with suppress(OSError):
                sock.close()


def not_kafka(server: str, data: bytes) -> ConnectionFailed:
    """The error for bytes that no broker sends: what they look like."""
    if data.startswith((b"\x15\x03", b"\x16\x03")):  # a TLS alert or handshake record
        return TlsMismatch(f"{server} speaks TLS", hint="set the security protocol to SSL or SASL_SSL")
    if data.startswith(b"HTTP/"):
        return NotKafka(f"{server} is a web server's port, not a Kafka broker's", hint="brokers mostly listen on 9092")
    if data.startswith((b"Zookeeper version", b"srvr is not executed", b"This ZooKeeper instance")):
        return NotKafka(
            f"{server} is ZooKeeper's port, not a Kafka broker's",
            hint="give a broker's address as --bootstrap-server (often port 9092), and ZooKeeper's as --zookeeper",
        )
    shown = data[:24].decode("ascii", "replace").strip() if data[:1].isalnum() else ""
    says = f"; it says {shown!r}" if shown.isprintable() and shown else ""
    return NotKafka(f"{server} answers, but is not a Kafka broker{says}", hint="is this the broker's port?")
