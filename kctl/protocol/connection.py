"""One connection to one broker: TCP, TLS, ApiVersions, SASL, then requests. Blocking, bounded by deadlines.

The steps are those of KIP-43 and KIP-152; each has its own error. If the peer closes the connection or does not
respond, the cause is ambiguous: PeerClosed and NoResponse name the step, and kctl.protocol.preflight investigates.
"""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from kctl.base.binary_layout import INT32
from kctl.base.deadline import Deadline
from kctl.errors import (
    ConnectionFailed,
    ConnectionReason,
    ConnectionRefused,
    ConnectionTimedOut,
    KctlError,
    NameNotResolved,
    NotKafka,
    NotSupported,
    Reason,
    TlsMismatch,
)
from kctl.protocol import wire
from kctl.protocol.codes import ApiKey, ErrorCode
from kctl.protocol.dialer import Dialer
from kctl.protocol.receive_buffer import ReceiveBuffer

if TYPE_CHECKING:
    import ssl

    from kctl.base.address import Address

MAX_RESPONSE_BYTES = 256 * 1024 * 1024
MAX_FIRST_RESPONSE_BYTES = 1024 * 1024  # before the login; Kafka 4.4 lists its APIs in less than 1 kB
_CHUNK = 256 * 1024
_LATE_READS = 64
# The exceptions that kafka-python raises for malformed bytes.
UNREADABLE = (ValueError, IndexError, KeyError, TypeError, ArithmeticError, struct.error)


class PeerClosed(ConnectionFailed):
    """The peer closed the connection."""


class NoResponse(ConnectionTimedOut):
    """The connection was established, but no response arrived in time."""


class Pending(NamedTuple):
    """A request in flight. answer: kafka-python's response class."""

    name: str
    version: int
    correlation_id: int
    answer: Any


class Connection:
    """A connection to one broker. Not thread-safe.

    step: the current step, for error messages. ready: opening has finished, login included.
    """

    def __init__(self, address: Address, dialer: Dialer) -> None:
        self.address = address
        self.step = "name resolution"
        self.api_versions: dict[int, tuple[int, int]] = {}
        self._dialer = dialer
        self._socket: socket.socket | None = None
        self._received = ReceiveBuffer(late_reads=_LATE_READS)
        self._correlation_id = 0
        self._login_ends = float("inf")
        self.ready = False

    # --- opening --------------------------------------------------------------------------------------------------

    def open(self, deadline: Deadline) -> None:
        """Connect, negotiate and log in. Raises subclasses of ConnectionFailed, and NotSupported."""
        try:
            self._socket = self._tcp(deadline)
            if self._dialer.ssl_context is not None:
                self._tls(self._dialer.ssl_context, deadline)
            self._negotiate(deadline)
            if self._dialer.security.sasl:
                self._login(deadline)
            self.ready = True
        except BaseException:
            self.close()
            raise

    def _tcp(self, deadline: Deadline) -> socket.socket:
        host, port = self.address
        try:
            addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (socket.gaierror, ValueError, OverflowError) as exc:  # a broker may advertise an invalid name
            reason = getattr(exc, "strerror", None) or "not a host name"
            raise NameNotResolved(
                f"cannot resolve the host name {host!r}: {reason}", hint="check the spelling and your DNS"
            ) from None
        self.step = "connecting"
        failure: KctlError | None = None
        for index, (family, kind, protocol, _, address) in enumerate(addresses):
            sock = socket.socket(family, kind, protocol)
            try:
                # If one of several addresses is dead, leave time for the others.
                sock.settimeout(max(0.001, deadline.left_s / (len(addresses) - index)))
                sock.connect(address)
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
                f"{self.address} refused the connection",
                hint="check that the broker is running and listens on this port",
            )
        if isinstance(exc, TimeoutError):
            return ConnectionTimedOut(
                f"{self.address}: timed out while connecting",
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
            raise self._no_response() from None
        except OSError:
            raise self._closed() from None

    def _tls_error(self, exc: ssl.SSLError) -> ConnectionFailed:
        from kctl.protocol.tls import handshake_error

        has_certificate = self._dialer.security.has_certificate
        return handshake_error(exc, str(self.address), certificate_given=has_certificate) or self._closed()

    def _negotiate(self, deadline: Deadline) -> None:
        self.step = "the ApiVersions request"
        error, ranges = self._ask_api_versions(0, deadline)
        if error == ErrorCode.UNSUPPORTED_VERSION:  # KIP-511: the response has the range
            low, high = ranges.get(ApiKey.API_VERSIONS, (wire.API_VERSIONS_FLEXIBLE, wire.API_VERSIONS_FLEXIBLE))
            version = min(high, wire.API_VERSIONS_MAX)
            if version < max(low, 0):
                raise NotSupported(
                    f"{self.address} supports ApiVersions versions {low} to {high}; kctl supports up to version "
                    f"{wire.API_VERSIONS_MAX}",
                    hint="upgrade kctl",
                    reason=Reason.VERSION_UNSUPPORTED,
                )
            error, ranges = self._ask_api_versions(version, deadline)
        if error:
            raise NotKafka(
                f"{self.address} responded, but did not list its API versions (error {error})",
                hint="check that this is a broker's port",
            )
        self.api_versions = ranges
        if ApiKey.METADATA not in ranges and not self._dialer.controllers:
            raise NotKafka(
                f"{self.address} is a KRaft controller, not a broker",
                hint="use the address of a broker's listener; commands about controllers accept --bootstrap-controller",
            )
        if ApiKey.METADATA in ranges and self._dialer.controllers:
            raise NotKafka(
                f"{self.address} is a broker's listener, not a KRaft controller's", hint="use --bootstrap-server for it"
            )

    def _ask_api_versions(self, version: int, deadline: Deadline) -> tuple[int, dict[int, tuple[int, int]]]:
        """Return the error code and the version ranges."""
        flexible = version >= wire.API_VERSIONS_FLEXIBLE
        body = wire.encode_api_versions(version)
        reader = self.exchange(ApiKey.API_VERSIONS, version, body, deadline, flexible=flexible, flexible_answer=False)
        try:
            return wire.decode_api_versions(reader, version)
        except wire.WireError:
            raise self._not_kafka(reader.data) from None

    def _login(self, deadline: Deadline) -> None:
        from kctl.protocol.sasl import log_in

        self.step = "the SASL login"
        lifetime_ms = log_in(self, self._dialer.security, deadline)
        if lifetime_ms:  # KIP-368: the broker closes the connection after this time
            self._login_ends = time.monotonic() + 0.85 * lifetime_ms / 1000

    # --- requests -------------------------------------------------------------------------------------------------

    def exchange(
        self,
        api_key: int,
        version: int,
        body: bytes,
        deadline: Deadline,
        *,
        flexible: bool = False,
        flexible_answer: bool | None = None,
    ) -> wire.Reader:
        """Send a request encoded by kctl.protocol.wire, and return a reader of the response.

        flexible_answer: whether the response is flexible (default: like the request).
        """
        self._correlation_id += 1
        self.write(wire.frame(api_key, version, self._correlation_id, body, flexible=flexible), deadline)
        answer_is_flexible = flexible if flexible_answer is None else flexible_answer
        return self._body(self.read(deadline), self._correlation_id, flexible=answer_is_flexible)

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
        """Send a kafka-python request. `message` may be reused before the response arrives."""
        self._correlation_id += 1
        message.API_VERSION = version
        message.with_header(correlation_id=self._correlation_id, client_id=wire.CLIENT_ID)
        pending = Pending(message.name, version, self._correlation_id, message.header.get_response_class())
        self.write(message.encode(header=True, framed=True), deadline)
        return pending

    def receive_message(self, pending: Pending, deadline: Deadline) -> Any:
        """Receive the response, decoded by kafka-python. Raises ConnectionFailed for malformed bytes."""
        payload = self.read(deadline)
        # ApiVersions is the only response whose header has no tagged fields in flexible versions (KIP-511).
        flexible = pending.answer.flexible_version_q(pending.version) and pending.answer.API_KEY != ApiKey.API_VERSIONS
        start = self._body(payload, pending.correlation_id, flexible=flexible).position
        try:
            return pending.answer.decode(memoryview(payload)[start:], version=pending.version)
        except (*UNREADABLE, wire.WireError) as exc:
            self.close()
            raise ConnectionFailed(
                f"{self.address} sent a malformed response to {pending.name} ({type(exc).__name__})"
            ) from None

    def write(self, data: bytes, deadline: Deadline) -> None:
        """Send all bytes."""
        for piece in _pieces(data):
            if self._socket is None:
                raise self._closed()
            self._socket.settimeout(max(0.001, deadline.left_s))
            try:
                self._socket.sendall(piece)
            except OSError as exc:
                raise self._io_error(exc) from None

    def read(self, deadline: Deadline) -> bytes:
        """Receive one frame, without its size field.

        An error closes the connection, so that a late response is not mistaken for the response to a later request.
        """
        head = self._take(INT32.size, deadline)
        (size,) = INT32.unpack(head)
        if not INT32.size <= size <= (MAX_RESPONSE_BYTES if self.ready else MAX_FIRST_RESPONSE_BYTES):
            raise self._not_kafka(head + bytes(self._received))
        return self._take(size, deadline)

    def _take(self, size: int, deadline: Deadline) -> bytes:
        if self._socket is None:
            raise self._closed()
        try:
            return self._received.take(self._socket, size, deadline)
        except EOFError:
            if self._received and not self.api_versions:
                raise self._not_kafka(bytes(self._received)) from None
            raise self._closed() from None
        except OSError as exc:
            raise self._io_error(exc) from None

    def _io_error(self, exc: OSError) -> ConnectionFailed:
        import ssl

        if isinstance(exc, TimeoutError):
            return self._no_response()
        return self._tls_error(exc) if isinstance(exc, ssl.SSLError) else self._closed()

    def _closed(self) -> PeerClosed:
        self.close()
        return PeerClosed(
            f"{self.address} closed the connection during {self.step}",
            hint="see the broker's log for the reason",
            reason=ConnectionReason.CONNECTION_CLOSED,
        )

    def _no_response(self) -> NoResponse:
        self.close()
        return NoResponse(
            f"{self.address} accepted the connection, but did not respond in time (during {self.step})",
            hint="check that this is a broker's port and that the broker is not hung",
            reason=ConnectionReason.NO_RESPONSE,
        )

    def _not_kafka(self, data: bytes) -> ConnectionFailed:
        self.close()
        return not_kafka(str(self.address), data)

    # --- state ----------------------------------------------------------------------------------------------------

    @property
    def usable(self) -> bool:
        """Return True if the connection seems open, checked without a request. Brokers close idle connections."""
        if self._socket is None or self._received or time.monotonic() > self._login_ends:
            return False
        import select

        poll = select.poll()  # select() fails for descriptors above 1023
        poll.register(self._socket, select.POLLIN | select.POLLHUP)
        return not poll.poll(0)  # no request is in flight: readable means closed or garbage

    def fileno(self) -> int:
        """Return the descriptor for poll(); -1 if closed."""
        return -1 if self._socket is None else self._socket.fileno()

    def hand_over(self) -> tuple[socket.socket, float]:
        """Transfer the socket to the caller, and return it with the time (monotonic clock) when the login expires.

        This connection counts as closed afterwards. Raises PeerClosed if it already was.
        """
        if self._socket is None:
            raise self._closed()
        sock, self._socket = self._socket, None
        return sock, self._login_ends

    def close(self) -> None:
        """Close the connection. Does nothing if it is already closed."""
        sock, self._socket = self._socket, None
        if sock is not None:
            with suppress(OSError):
                sock.close()


def _pieces(data: bytes) -> Iterator[memoryview]:
    """Yield data in small pieces, because the timeout of a TLS socket applies to each record, not to the whole."""
    view = memoryview(data)
    for start in range(0, len(view), _CHUNK):
        yield view[start : start + _CHUNK]


def not_kafka(server: str, data: bytes) -> ConnectionFailed:
    """Return the error for bytes that no broker sends, with the protocol that they resemble."""
    if data.startswith((b"\x15\x03", b"\x16\x03")):  # a TLS alert or handshake record
        return TlsMismatch(
            f"{server} speaks TLS",
            hint="set the security protocol to SSL or SASL_SSL",
            reason=ConnectionReason.TLS_REQUIRED,
        )
    if data.startswith(b"HTTP/"):
        return NotKafka(
            f"{server} is a web server's port, not a Kafka broker's", hint="use a broker's address, often port 9092"
        )
    if data.startswith((b"Zookeeper version", b"srvr is not executed", b"This ZooKeeper instance")):
        return NotKafka(
            f"{server} is ZooKeeper's port, not a Kafka broker's",
            hint="set --bootstrap-server to a broker's address (often port 9092), and --zookeeper to ZooKeeper's",
        )
    preview = data[:24].decode("ascii", "replace").strip() if data[:1].isalnum() else ""
    detail = f"; it sent {preview!r}" if preview.isprintable() and preview else ""
    return NotKafka(f"{server} responded, but is not a Kafka broker{detail}", hint="check that this is a broker's port")
