"""Find a reachable broker within five seconds, or report why there is none.

All bootstrap servers are tried, each 0.1 s after the previous one, or at once if that one failed. The first broker
that responds wins; other dead servers are not an error. If a failure is ambiguous (the peer closed the connection or
did not respond), small probes on separate connections distinguish ZooKeeper, a web server, TLS, plaintext and SASL.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

from kctl.base.address import Address
from kctl.base.binary_layout import INT32
from kctl.base.deadline import Deadline
from kctl.base.parallel import run_all
from kctl.errors import (
    AuthenticationFailed,
    CertificateRejected,
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
from kctl.model import ClusterState
from kctl.protocol import wire
from kctl.protocol.codes import ApiKey, ErrorCode
from kctl.protocol.connection import Connection, NoResponse, PeerClosed, not_kafka
from kctl.protocol.dialer import Dialer
from kctl.protocol.metadata_messages import METADATA_MAX, METADATA_MIN, MetadataRequest, metadata_is_flexible

if TYPE_CHECKING:
    import socket

LIMIT_S = 3.6  # under 5 s together with startup on a busy machine
PROBES_S = 0.8  # of LIMIT_S, reserved for the probes
_PROBE_S = 1.2  # a JVM's first TLS handshake takes a second on a busy machine
_STAGGER_S = 0.1
_MAX_RUNNING = 32
_CONTROLLERS_STEP = "the DescribeCluster request"

# Most specific first: the error reported for several servers is the one that best says what to change.
_BY_SPECIFICITY: tuple[type[KctlError], ...] = (
    AuthenticationFailed, NotSupported, CertificateRejected, TlsMismatch, NotKafka, PeerClosed, ConnectionTimedOut,
    ConnectionRefused, NameNotResolved, ConnectionFailed,
)  # fmt: skip
# The other servers would respond alike, and a wrong password tried on each server may lock the account.
_FINAL = (AuthenticationFailed, NotSupported)


@dataclass
class PreflightResult:
    """A usable connection, the cluster state from that broker (no topics), and the servers that failed."""

    connection: Connection
    state: ClusterState
    failures: dict[str, KctlError] = field(default_factory=dict)


def preflight(servers: Iterable[Address], dialer: Dialer, *, timeout_s: float = LIMIT_S) -> PreflightResult:
    """Connect to one of `servers`. Raises the most specific error if none is reachable."""
    race = _Race(dialer, Deadline(min(timeout_s, LIMIT_S)))
    with race.running():
        return race.run(list(servers))


def open_all(
    addresses: Mapping[int, Address],
    dialer: Dialer,
    deadline: Deadline,
    *,
    check: Callable[[ClusterState, Connection], None] | None = None,
) -> dict[int, Connection | KctlError]:
    """Connect to all `addresses` in parallel, within LIMIT_S, and return a connection or an error for each key.

    check: raises an error if a broker's state is not acceptable; called from any thread.
    """
    limit = deadline.at_most(LIMIT_S)
    connections = {key: Connection(address, dialer) for key, address in addresses.items()}

    def opener(connection: Connection) -> Callable[[], Connection]:
        def run() -> Connection:
            state = _open(connection, dialer, limit)
            if check is not None:
                check(state, connection)
            return connection

        return run

    results = run_all({key: opener(connection) for key, connection in connections.items()}, limit)
    return {key: results.get(key) or _unfinished(connection) for key, connection in connections.items()}


def _open(connection: Connection, dialer: Dialer, deadline: Deadline) -> ClusterState:
    # Leave time to find out why there is no response.
    first = deadline.at_most(max(deadline.left_s - PROBES_S, 0.6 * deadline.left_s))
    try:
        connection.open(first)
        return read_cluster(connection, first)
    except (PeerClosed, NoResponse) as exc:
        specific = _probe(connection, dialer, exc, deadline)
        if specific is None:
            raise
        raise specific from None
    except TlsMismatch as exc:  # a plaintext broker closes the connection; a plaintext response is not from a broker
        with suppress(OSError):
            raise _identify(connection.address, deadline) or exc from None
        raise
    except wire.WireError:
        connection.close()
        raise NotKafka(
            f"{connection.address} responded, but not like a Kafka broker", hint="check that this is a broker's port"
        ) from None


def read_cluster(connection: Connection, deadline: Deadline, topics: Collection[str] = ()) -> ClusterState:
    """Return brokers, controller, cluster id, and existing topics among `topics`.

    A listener that requires a login closes the connection here. A KRaft controller reports controllers as the brokers.
    """
    if ApiKey.METADATA not in connection.api_versions:
        from kctl.protocol.quorum import read_controllers

        connection.step = _CONTROLLERS_STEP
        try:
            return read_controllers(connection, deadline)
        except BaseException:
            connection.close()
            raise
    version = metadata_version(connection)
    request = MetadataRequest(topics)
    connection.step = "the Metadata request"
    try:
        reader = connection.exchange(
            ApiKey.METADATA, version, request.body(version), deadline, flexible=metadata_is_flexible(version)
        )
        return request.read(reader, version)
    except BaseException:
        connection.close()
        raise


def metadata_version(connection: Connection) -> int:
    """Return the newest Metadata version that kctl and the broker support. Raises NotSupported."""
    low, high = connection.api_versions[ApiKey.METADATA]
    version = min(high, METADATA_MAX)
    if version < max(low, METADATA_MIN):
        raise NotSupported(
            f"{connection.address} supports Metadata versions {low} to {high}; "
            f"kctl supports {METADATA_MIN} to {METADATA_MAX}",
            hint="upgrade kctl, or the broker if it is older than 0.10",
            reason=Reason.VERSION_UNSUPPORTED,
        )
    return version


# --- the race -----------------------------------------------------------------------------------------------------


class _Race:
    """Connection attempts in threads. The main thread waits for the first success, so Ctrl-C always works."""

    def __init__(self, dialer: Dialer, deadline: Deadline) -> None:
        self._dialer = dialer
        self._deadline = deadline
        self._done: SimpleQueue[tuple[Connection, ClusterState | KctlError | Exception]] = SimpleQueue()
        self._lock = threading.Lock()
        self._over = False
        self._open: list[Connection] = []

    @contextmanager
    def running(self) -> Iterator[None]:
        try:
            yield
        finally:
            with self._lock:
                self._over = True

    def run(self, addresses: list[Address]) -> PreflightResult:
        waiting = list(reversed(addresses))
        failures: dict[str, KctlError] = {}
        while (waiting or self._open) and not self._deadline.expired:
            if waiting and len(self._open) < _MAX_RUNNING:
                self._start(waiting.pop())
            try:
                limit = self._deadline.left_s
                connection, outcome = self._done.get(timeout=min(_STAGGER_S, limit) if waiting else limit)
            except Empty:
                continue
            self._open.remove(connection)
            if isinstance(outcome, ClusterState):
                return PreflightResult(connection, outcome, failures)
            if not isinstance(outcome, KctlError) or isinstance(outcome, _FINAL):
                raise outcome
            failures[str(connection.address)] = outcome
        for connection in self._open:
            failures[str(connection.address)] = _unfinished(connection)
        raise _verdict(failures)

    def _start(self, address: Address) -> None:
        connection = Connection(address, self._dialer)
        self._open.append(connection)
        threading.Thread(target=self._attempt, args=(connection,), daemon=True, name=f"connect {address}").start()

    def _attempt(self, connection: Connection) -> None:
        outcome: ClusterState | KctlError | Exception
        try:
            outcome = _open(connection, self._dialer, self._deadline)
        except Exception as exc:  # noqa: BLE001 - handed to the main thread, which raises it
            outcome = exc
        with self._lock:
            if self._over:
                connection.close()
            else:
                self._done.put((connection, outcome))


def _unfinished(connection: Connection) -> KctlError:
    if connection.step == "name resolution":
        return NameNotResolved(
            f"timed out while resolving the host name {connection.address.host!r}", hint="check your DNS"
        )
    if connection.step == "connecting":
        return ConnectionTimedOut(
            f"{connection.address}: timed out while connecting",
            hint="check the address, the network and firewalls",
        )
    return NoResponse(
        f"{connection.address} accepted the connection, but did not respond in time (during {connection.step})",
        hint="check that this is a broker's port and that the broker is not hung",
        reason=ConnectionReason.NO_RESPONSE,
    )


def _verdict(failures: dict[str, KctlError]) -> KctlError:
    """Return the most specific failure. The message counts the other servers, and the details list them."""

    def rank(error: KctlError) -> int:
        return next((i for i, cls in enumerate(_BY_SPECIFICITY) if isinstance(error, cls)), len(_BY_SPECIFICITY))

    if not failures:
        return ConnectionTimedOut("no bootstrap server responded in time")
    specific = min(failures.values(), key=rank)
    if len(failures) == 1:
        return specific
    details = [{"server": s, "code": e.code, "reason": e.reason, "message": e.message} for s, e in failures.items()]
    others = len(failures) - 1
    message = f"{specific.message}; {others} other server{'s' if others > 1 else ''} cannot be reached either"
    return specific.reworded(message, details={"servers": details})


# --- probes -----------------------------------------------------------------------------------------------------


def _probe(connection: Connection, dialer: Dialer, exc: KctlError, deadline: Deadline) -> KctlError | None:
    """Return a specific error for a peer that closed the connection or did not respond; None if still ambiguous."""
    address, step = connection.address, connection.step
    with suppress(OSError, KctlError):
        if step in {"the Metadata request", _CONTROLLERS_STEP} and not dialer.security.sasl:
            return _login_required(address, dialer, deadline)
        if step == "the TLS handshake":
            return _plaintext_kafka(address, deadline) or _identify(address, deadline)
        if step == "the ApiVersions request" and dialer.ssl_context is not None:
            return _tls_alert(address, dialer, deadline)
        if step == "the ApiVersions request":
            silent = isinstance(exc, NoResponse)
            return (
                _identify(address, deadline)
                or speaks_tls(address, deadline)
                or (None if silent else _old_kafka(address, deadline))
            )
    return None


def _dial(address: Address, deadline: Deadline) -> socket.socket:
    import socket

    return socket.create_connection(address, timeout=max(0.001, min(_PROBE_S, deadline.left_s)))


def _login_required(address: Address, dialer: Dialer, deadline: Deadline) -> KctlError | None:
    """Check for SASL: such a listener responds to ApiVersions and SaslHandshake, and closes on any other request."""
    probe = Connection(address, dialer)
    try:
        probe.open(deadline.at_most(_PROBE_S))
        reader = probe.exchange(ApiKey.SASL_HANDSHAKE, 1, wire.string("kctl"), deadline.at_most(_PROBE_S))
        answer = wire.decode_sasl_handshake(reader)
    except wire.WireError:
        return None
    finally:
        probe.close()
    if answer.error_code != ErrorCode.UNSUPPORTED_SASL_MECHANISM:
        return None
    mechanisms = ", ".join(answer.mechanisms) or "unknown"
    protocol = "SASL_SSL" if dialer.security.tls else "SASL_PLAINTEXT"
    return AuthenticationFailed(
        f"{address} requires a SASL login, but no credentials are configured (SASL mechanisms: {mechanisms})",
        hint=f"set the security protocol to {protocol}, and a mechanism, a user name and a password",
        reason=ConnectionReason.LOGIN_REQUIRED,
    )


def _plaintext_kafka(address: Address, deadline: Deadline) -> KctlError | None:
    from kctl.protocol.security import Security

    probe = Connection(address, Dialer(Security()))
    try:
        probe.open(deadline.at_most(_PROBE_S))
    except (PeerClosed, NoResponse):
        return None
    except KctlError as exc:
        return exc
    finally:
        probe.close()
    return TlsMismatch(
        f"{address} is a broker's plaintext port, without TLS",
        hint="set the security protocol to PLAINTEXT or SASL_PLAINTEXT",
        reason=ConnectionReason.TLS_UNSUPPORTED,
    )


def _identify(address: Address, deadline: Deadline) -> KctlError | None:
    """Identify a web server by HEAD, ZooKeeper by `srvr`, and others by their first bytes."""
    for request in (b"HEAD / HTTP/1.0\r\n\r\n", b"srvr"):
        with suppress(OSError), _dial(address, deadline.at_most(deadline.left_s / 2)) as sock:
            sock.sendall(request)
            answer = sock.recv(256)
            if answer:
                return not_kafka(str(address), answer)
    return None


def speaks_tls(address: Address, deadline: Deadline) -> KctlError | None:
    """Return a TlsMismatch if the port completes a TLS handshake or sends an alert. Certificates are not verified."""
    import ssl

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    try:
        with _dial(address, deadline) as sock, context.wrap_socket(sock):
            pass
    except ssl.SSLError as exc:
        if "ALERT" not in (exc.reason or ""):
            return None
    except OSError:
        return None
    return not_kafka(str(address), b"\x15\x03")


def _tls_alert(address: Address, dialer: Dialer, deadline: Deadline) -> KctlError | None:
    """Return the broker's alert about the client certificate, which TLS 1.3 sends after the handshake.

    No request is sent, because that could turn the alert into a connection reset.
    """
    import ssl

    from kctl.protocol.tls import handshake_error

    assert dialer.ssl_context
    try:
        with (
            _dial(address, deadline) as sock,
            dialer.ssl_context.wrap_socket(sock, server_hostname=address.host.removesuffix(".")) as tls,
        ):
            tls.recv(1)
    except ssl.SSLError as exc:
        return handshake_error(exc, str(address), certificate_given=dialer.security.has_certificate)
    return None


def _old_kafka(address: Address, deadline: Deadline) -> KctlError | None:
    """Detect brokers before 0.10, which close the connection on ApiVersions but respond to Metadata v0."""
    with _dial(address, deadline) as sock:
        correlation_id = 7
        sock.sendall(wire.frame(ApiKey.METADATA, 0, correlation_id, INT32.pack(0)))  # no topics: all of them
        response = sock.recv(wire.RESPONSE_HEADER.size)
        if len(response) < wire.RESPONSE_HEADER.size or wire.RESPONSE_HEADER.unpack(response)[1] != correlation_id:
            return None
    return NotSupported(
        f"{address} is a Kafka broker older than 0.10",
        hint="upgrade it to Kafka 0.10 or later",
        reason=Reason.VERSION_UNSUPPORTED,
    )
