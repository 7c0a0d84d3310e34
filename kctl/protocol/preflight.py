"""Find a broker that can be talked to, and when there is none say why, within five seconds.

All bootstrap servers are tried, each a tenth of a second after the one before (or at once when that one failed):
the first that answers wins, and a dead one of several is no failure. When an answer is ambiguous (the peer closed,
or kept silent) a few small probes on connections of their own tell ZooKeeper, a web server, TLS, a plaintext port
and a listener with a login apart.
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
    ConnectionRefused,
    ConnectionTimedOut,
    KctlError,
    NameNotResolved,
    NotKafka,
    NotSupported,
    TlsMismatch,
)
from kctl.model import ClusterState
from kctl.protocol import wire
from kctl.protocol.codes import ApiKey, ErrorCode
from kctl.protocol.connection import Connection, Dialer, NoAnswer, PeerClosed, not_kafka
from kctl.protocol.metadata_messages import METADATA_MAX, METADATA_MIN, MetadataRequest, metadata_is_flexible

if TYPE_CHECKING:
    import socket

LIMIT_S = 3.6  # with start-up on a busy machine still under 5 s
PROBES_S = 0.8  # of that, what is kept for the probes
_PROBE_S = 1.2  # a JVM's first TLS handshake takes a second on a busy machine
_STAGGER_S = 0.1
_MAX_RUNNING = 32

# The first of these that any server gave is the one to report: it says most about what to change.
_MOST_TELLING: tuple[type[KctlError], ...] = (
    AuthenticationFailed, NotSupported, CertificateRejected, TlsMismatch, NotKafka, PeerClosed, ConnectionTimedOut,
    ConnectionRefused, NameNotResolved, ConnectionFailed,
)  # fmt: skip
# The other servers would say the same, and a wrong password tried on each may lock the account.
_FINAL = (AuthenticationFailed, NotSupported)


@dataclass
class Reached:
    """A usable connection, the cluster as that broker sees it (no topics), and the servers that failed."""

    connection: Connection
    state: ClusterState
    failures: dict[str, KctlError] = field(default_factory=dict)


def preflight(servers: Iterable[Address], dialer: Dialer, *, timeout_s: float = LIMIT_S) -> Reached:
    """Connect to one of `servers`. Raises the most telling error when none can be reached."""
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
    """A connection to each of `addresses` at once; a failure is that key's value. At most LIMIT_S. check: raises what
    speaks against a broker, by the state that it tells; in any thread."""
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
    # Wait for the answer as long as leaves time to find out why there is none.
    first = deadline.at_most(max(deadline.left_s - PROBES_S, 0.6 * deadline.left_s))
    try:
        connection.open(first)
        return read_cluster(connection, first)
    except (PeerClosed, NoAnswer) as exc:
        found = _look_closer(connection, dialer, exc, deadline)
        if found is None:
            raise
        raise found from None
    except TlsMismatch as exc:  # a broker without TLS closes; what answers in plain text is something else
        with suppress(OSError):
            raise _identify(connection.address, deadline) or exc from None
        raise
    except wire.WireError:
        connection.close()
        raise NotKafka(
            f"{connection.address} answers, but not as a Kafka broker does", hint="is this the broker's port?"
        ) from None


def read_cluster(connection: Connection, deadline: Deadline, topics: Collection[str] = ()) -> ClusterState:
    """Return brokers, controller, cluster id, and those of `topics` that exist.

    A listener that wants a login closes the connection here.
    """
    version = metadata_version(connection)
    request = MetadataRequest(topics)
    connection.step = "the answer to Metadata"
    try:
        reader = connection.exchange(
            ApiKey.METADATA, version, request.body(version), deadline, flexible=metadata_is_flexible(version)
        )
        return request.read(reader, version)
    except BaseException:
        connection.close()
        raise


def metadata_version(connection: Connection) -> int:
    """The newest version of Metadata that both know. Raises NotSupported."""
    low, high = connection.api_versions[ApiKey.METADATA]
    version = min(high, METADATA_MAX)
    if version < max(low, METADATA_MIN):
        raise NotSupported(f"{connection.address}: its versions of Metadata are not supported", hint="see docs/")
    return version


# --- the race -----------------------------------------------------------------------------------------------------


class _Race:
    """Attempts in threads; the main thread waits for the first that is through, so Ctrl-C works at any time."""

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

    def run(self, addresses: list[Address]) -> Reached:
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
                return Reached(connection, outcome, failures)
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
    if connection.step == "resolving the name":
        return NameNotResolved(
            f"the host name {connection.address.host!r} was not resolved in time", hint="check the DNS"
        )
    if connection.step == "connecting":
        return ConnectionTimedOut(
            f"{connection.address} did not take the connection in time",
            hint="check the address, the network and firewalls",
        )
    return NoAnswer(
        f"{connection.address} took the connection, but gave no answer in time (waiting for {connection.step})",
        hint="is this a broker's port, and is the broker alive?",
    )


def _verdict(failures: dict[str, KctlError]) -> KctlError:
    """The most telling failure, with the others in the message (their number) and in the details."""

    def rank(error: KctlError) -> int:
        return next((i for i, cls in enumerate(_MOST_TELLING) if isinstance(error, cls)), len(_MOST_TELLING))

    if not failures:
        return ConnectionTimedOut("no bootstrap server was reached in time")
    worst = min(failures.values(), key=rank)
    if len(failures) == 1:
        return worst
    details = [{"server": s, "code": e.code, "message": e.message} for s, e in failures.items()]
    others = len(failures) - 1
    message = f"{worst.message}; {others} other server{'s' if others > 1 else ''} cannot be reached either"
    return type(worst)(message, hint=worst.hint, details={"servers": details})


# --- looking closer -----------------------------------------------------------------------------------------------


def _look_closer(connection: Connection, dialer: Dialer, exc: KctlError, deadline: Deadline) -> KctlError | None:
    """What is behind a peer that closed or kept silent; None when the probes do not tell either."""
    address, step = connection.address, connection.step
    with suppress(OSError, KctlError):
        if step == "the answer to Metadata" and not dialer.security.sasl:
            return _wants_login(address, dialer, deadline)
        if step == "the TLS handshake":
            return _plaintext_kafka(address, deadline) or _identify(address, deadline)
        if step == "the answer to ApiVersions" and dialer.ssl_context is not None:
            return _tls_alert(address, dialer, deadline)
        if step == "the answer to ApiVersions":
            silent = isinstance(exc, NoAnswer)
            return (
                _identify(address, deadline)
                or speaks_tls(address, deadline)
                or (None if silent else _old_kafka(address, deadline))
            )
    return None


def _dial(address: Address, deadline: Deadline) -> socket.socket:
    import socket

    return socket.create_connection(address, timeout=max(0.001, min(_PROBE_S, deadline.left_s)))


def _wants_login(address: Address, dialer: Dialer, deadline: Deadline) -> KctlError | None:
    """A listener with SASL answers ApiVersions and SaslHandshake, and closes at anything else."""
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
    mechanisms = ", ".join(answer.mechanisms) or "unknown to it"
    protocol = "SASL_SSL" if dialer.security.tls else "SASL_PLAINTEXT"
    return AuthenticationFailed(
        f"{address} wants a login, and none was given (SASL mechanisms: {mechanisms})",
        hint=f"set the security protocol to {protocol}, with a mechanism, a user name and where the password is",
    )


def _plaintext_kafka(address: Address, deadline: Deadline) -> KctlError | None:
    from kctl.protocol.security import Security

    probe = Connection(address, Dialer(Security()))
    try:
        probe.open(deadline.at_most(_PROBE_S))
    except (PeerClosed, NoAnswer):
        return None
    except KctlError as exc:
        return exc
    finally:
        probe.close()
    return TlsMismatch(
        f"{address} is a broker's port without TLS",
        hint="set the security protocol to PLAINTEXT or SASL_PLAINTEXT",
    )


def _identify(address: Address, deadline: Deadline) -> KctlError | None:
    """A web server by HEAD, ZooKeeper by `srvr`, others by what they say first. ZooKeeper closes at HEAD at once."""
    for question in (b"HEAD / HTTP/1.0\r\n\r\n", b"srvr"):
        with suppress(OSError), _dial(address, deadline.at_most(deadline.left_s / 2)) as sock:
            sock.sendall(question)
            answer = sock.recv(256)
            if answer:
                return not_kafka(str(address), answer)
    return None


def speaks_tls(address: Address, deadline: Deadline) -> KctlError | None:
    """A port that shakes hands, or refuses to with an alert, speaks TLS. Nothing is verified: nothing is said."""
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
    """In TLS 1.3 the broker's refusal of the client's certificate comes after the handshake; wait for it alone,
    for a request sent meanwhile can turn it into a reset."""
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
    """Brokers before 0.10 close the connection at ApiVersions, but answer Metadata v0."""
    with _dial(address, deadline) as sock:
        correlation_id = 7
        sock.sendall(wire.frame(ApiKey.METADATA, 0, correlation_id, INT32.pack(0)))  # no topics: all of them
        response = sock.recv(wire.RESPONSE_HEADER.size)
        if len(response) < wire.RESPONSE_HEADER.size or wire.RESPONSE_HEADER.unpack(response)[1] != correlation_id:
            return None
    return NotSupported(f"{address} is a Kafka broker older than 0.10", hint="Kafka 0.10 or newer is needed")
