"""Check that a server is ZooKeeper, and find Kafka clusters in it. kctl.zookeeper.session opens the session."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from kctl.base.address import Address
from kctl.base.deadline import Deadline
from kctl.base.parallel import run_all
from kctl.errors import (
    ConnectionFailed,
    ConnectionReason,
    ConnectionRefused,
    ConnectionTimedOut,
    KctlError,
    NameNotResolved,
    NotZooKeeper,
    TlsMismatch,
)
from kctl.protocol.connection import Connection
from kctl.protocol.dialer import Dialer
from kctl.protocol.preflight import speaks_tls
from kctl.protocol.security import Security
from kctl.protocol.tls import handshake_error, make_context

if TYPE_CHECKING:
    from kctl.zookeeper.client import ZooKeeper

# Responses to srvr: the server's state, srvr is not on the whitelist, no quorum.
_SRVR_PREFIXES = (b"Zookeeper version", b"srvr is not executed", b"This ZooKeeper instance")
_RESPONSE_PREFIXES = (*_SRVR_PREFIXES, b"zk_")
_TLS_PORT = "ZooKeeper uses a separate port for TLS (secureClientPort)"
_NEEDS_TLS = (
    "set zookeeper_security with protocol SSL in the context, or zookeeper.ssl.client.enable=true in the file of "
    "--command-config"
)
_MAX_CHILDREN = 200
_CHUNK, _MAX_RESPONSE_BYTES = 4096, 256 * 1024


def find_reachable(servers: Sequence[Address], deadline: Deadline, security: Security) -> list[Address]:
    """Return the servers that respond like ZooKeeper. Raises the error of the first server if none does."""
    words = FourLetterWords(security)
    outcomes = run_all({server: partial(_probe, words, server, deadline) for server in servers}, deadline)
    reachable = [server for server in servers if outcomes.get(server) is server]
    if reachable:
        return reachable
    for server in servers:
        outcome = outcomes.get(server)
        if isinstance(outcome, KctlError):
            raise outcome
    raise ConnectionTimedOut(
        f"ZooKeeper {','.join(map(str, servers))} did not respond in time",
        hint="check the address and the network",
    )


def _probe(words: FourLetterWords, server: Address, deadline: Deadline) -> Address:
    words.query_srvr(server, deadline)
    return server


class FourLetterWords:
    """A sender of four-letter words, in plain text or over TLS. Raises UsageError for unusable TLS files."""

    def __init__(self, security: Security) -> None:
        self._security = security
        self._tls = make_context(security) if security.tls else None

    def query_srvr(self, server: Address, deadline: Deadline) -> str:
        """Send srvr. Return the state of the server, or its message that it has no quorum or does not allow srvr.

        Raises subclasses of ConnectionFailed; NotZooKeeper if the server is something else.
        """
        try:
            response = self.send(server, b"srvr", deadline)
        except ConnectionResetError:
            response = b""
        except OSError as exc:
            raise self._failure(exc, server, deadline) from None
        if response.startswith(_SRVR_PREFIXES):
            return response.decode("utf-8", "replace")
        if self._tls is not None and not response:
            raise _closed_during_handshake(server)
        raise _not_zookeeper(server, deadline)

    def send(self, server: Address, word: bytes, deadline: Deadline) -> bytes:
        """Send a four-letter word and return the complete response. Raises OSError."""
        limit = max(0.001, deadline.left_s * 0.6)  # the rest of the time is for detecting a Kafka broker
        with self._connected(server, limit) as sock:
            sock.sendall(word)
            response = sock.recv(_CHUNK)
            chunk = response
            # A server that is not ZooKeeper may keep the connection open; the prefix shows that.
            while chunk and response.startswith(_RESPONSE_PREFIXES) and len(response) < _MAX_RESPONSE_BYTES:
                chunk = sock.recv(_CHUNK)
                response += chunk
            return response

    def _connected(self, server: Address, limit_s: float) -> socket.socket:
        sock = socket.create_connection(server, timeout=limit_s)
        if self._tls is None:
            return sock
        try:
            return self._tls.wrap_socket(sock, server_hostname=server.host)
        except BaseException:
            sock.close()
            raise

    def _failure(self, exc: OSError, server: Address, deadline: Deadline) -> KctlError:
        """Return the KctlError for a connection error."""
        hint = "check that ZooKeeper is running and that this is its client port"
        if isinstance(exc, ssl.SSLError):
            error = handshake_error(exc, str(server), certificate_given=self._security.has_certificate)
            return error or _closed_during_handshake(server)
        if isinstance(exc, socket.gaierror):
            return NameNotResolved(
                f"the host name {server.host!r} cannot be resolved ({exc.strerror})",
                hint="check the spelling and the DNS",
            )
        if isinstance(exc, ConnectionRefusedError):
            return ConnectionRefused(f"ZooKeeper {server} refused the connection", hint=hint)
        if isinstance(exc, TimeoutError):
            if self._tls is None and speaks_tls(server, deadline):
                return TlsMismatch(f"{server} speaks TLS", hint=_NEEDS_TLS, reason=ConnectionReason.TLS_REQUIRED)
            return ConnectionTimedOut(f"ZooKeeper {server} did not respond in time", hint=hint)
        return ConnectionFailed(f"cannot connect to ZooKeeper {server}: {exc.strerror}", hint=hint)


def _closed_during_handshake(server: Address) -> TlsMismatch:
    return TlsMismatch(
        f"{server} closed the connection during the TLS handshake",
        hint=_TLS_PORT,
        reason=ConnectionReason.TLS_UNSUPPORTED,
    )


def _not_zookeeper(server: Address, deadline: Deadline) -> NotZooKeeper:
    connection = Connection(server, Dialer(Security()))
    try:
        connection.open(deadline)
    except KctlError:
        return NotZooKeeper(f"{server} responds, but is not ZooKeeper", hint="ZooKeeper usually listens on port 2181")
    finally:
        connection.close()
    return NotZooKeeper(
        f"{server} is a Kafka broker's port, not ZooKeeper's",
        hint="set ZooKeeper's address (often port 2181) with --zookeeper, and the broker's with --bootstrap-server",
    )


def find_chroots(client: ZooKeeper) -> list[str]:
    """Return the paths down to the second level that hold a Kafka cluster (a node brokers/ids)."""
    chroots = ["/"] if client.exists("/brokers/ids") else []
    for first in client.get_children("/")[:_MAX_CHILDREN]:
        if first == "zookeeper":
            continue
        if client.exists(f"/{first}/brokers/ids"):
            chroots.append(f"/{first}")
            continue
        chroots += [
            f"/{first}/{second}"
            for second in client.get_children(f"/{first}")[:_MAX_CHILDREN]
            if client.exists(f"/{first}/{second}/brokers/ids")
        ]
    return sorted(chroots)
