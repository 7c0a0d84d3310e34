"""Is it ZooKeeper that answers, and where in it are Kafka clusters? kctl.zookeeper.session makes the session."""

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
    ConnectionRefused,
    ConnectionTimedOut,
    KctlError,
    NameNotResolved,
    NotZooKeeper,
    TlsMismatch,
)
from kctl.protocol.connection import Connection, Dialer
from kctl.protocol.preflight import speaks_tls
from kctl.protocol.security import Security
from kctl.protocol.tls import handshake_error, make_context

if TYPE_CHECKING:
    from kctl.zookeeper.client import ZooKeeper

# A server without a quorum says the third.
_SAYS_ZOOKEEPER = (b"Zookeeper version", b"srvr is not executed", b"This ZooKeeper instance")
_SAYS = (*_SAYS_ZOOKEEPER, b"zk_")
_TLS_PORT = "ZooKeeper has a port of its own for TLS (secureClientPort)"
_NEEDS_TLS = (
    "give the context zookeeper_security with protocol SSL, or --command-config a file with "
    "zookeeper.ssl.client.enable=true"
)
_MAX_CHILDREN = 200
_PIECE, _MAX_ANSWER = 4096, 256 * 1024


def reach(servers: Sequence[Address], deadline: Deadline, security: Security) -> list[Address]:
    """The servers that answer as ZooKeeper does. Raises the first one's error when none does."""
    words = Words(security)
    outcomes = run_all({server: partial(_probe, words, server, deadline) for server in servers}, deadline)
    good = [server for server in servers if outcomes.get(server) is server]
    if good:
        return good
    for server in servers:
        outcome = outcomes.get(server)
        if isinstance(outcome, KctlError):
            raise outcome
    raise ConnectionTimedOut(
        f"ZooKeeper {','.join(map(str, servers))} did not answer in time",
        hint="check the address and the network",
    )


def _probe(words: Words, server: Address, deadline: Deadline) -> Address:
    words.say_srvr(server, deadline)
    return server


class Words:
    """Four-letter words, said to servers in the clear or over TLS. Raises UsageError for files that cannot be used."""

    def __init__(self, security: Security) -> None:
        self._security = security
        self._tls = make_context(security) if security.tls else None

    def say_srvr(self, server: Address, deadline: Deadline) -> str:
        """What a server answers to `srvr`: its state, that it has no quorum, or that the word is not on its whitelist.

        Raises ConnectionFailed's subclasses; NotZooKeeper for what is something else.
        """
        try:
            answer = self.say(server, b"srvr", deadline)
        except ConnectionResetError:
            answer = b""
        except OSError as exc:
            raise self._failure(exc, server, deadline) from None
        if answer.startswith(_SAYS_ZOOKEEPER):
            return answer.decode("utf-8", "replace")
        if self._tls is not None and not answer:
            raise TlsMismatch(f"{server} closed the connection as TLS began", hint=_TLS_PORT)
        raise _not_zookeeper(server, deadline)

    def say(self, server: Address, word: bytes, deadline: Deadline) -> bytes:
        """What a server answers to a four-letter word, up to its end. Raises OSError."""
        limit = max(0.001, deadline.left_s * 0.6)  # what is left finds out whether it is a broker
        with self._connected(server, limit) as sock:
            sock.sendall(word)
            answer = sock.recv(_PIECE)
            piece = answer
            # Something else than ZooKeeper may keep its connection open; that is known by how it begins.
            while piece and answer.startswith(_SAYS) and len(answer) < _MAX_ANSWER:
                piece = sock.recv(_PIECE)
                answer += piece
            return answer

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
        """What went wrong, in words."""
        hint = "is ZooKeeper running, and is this its port?"
        if isinstance(exc, ssl.SSLError):
            found = handshake_error(exc, str(server), certificate_given=self._security.has_certificate)
            return found or TlsMismatch(f"{server} closed the connection as TLS began", hint=_TLS_PORT)
        if isinstance(exc, socket.gaierror):
            return NameNotResolved(
                f"the host name {server.host!r} cannot be resolved ({exc.strerror})",
                hint="check the spelling and the DNS",
            )
        if isinstance(exc, ConnectionRefusedError):
            return ConnectionRefused(f"ZooKeeper {server} refused the connection", hint=hint)
        if isinstance(exc, TimeoutError):
            if self._tls is None and speaks_tls(server, deadline):
                return TlsMismatch(f"{server} speaks TLS", hint=_NEEDS_TLS)
            return ConnectionTimedOut(f"ZooKeeper {server} did not answer in time", hint=hint)
        return ConnectionFailed(f"cannot connect to ZooKeeper {server}: {exc.strerror}", hint=hint)


def _not_zookeeper(server: Address, deadline: Deadline) -> NotZooKeeper:
    connection = Connection(server, Dialer(Security()))
    try:
        connection.open(deadline)
    except KctlError:
        return NotZooKeeper(f"{server} answers, but is not ZooKeeper", hint="ZooKeeper mostly listens on 2181")
    finally:
        connection.close()
    return NotZooKeeper(
        f"{server} is a Kafka broker's port, not ZooKeeper's",
        hint="give ZooKeeper's address (often port 2181) as --zookeeper, and the broker's as --bootstrap-server",
    )


def find_chroots(client: ZooKeeper) -> list[str]:
    """The paths, down to the second level, that hold a Kafka cluster (they have brokers/ids)."""
    found = ["/"] if client.exists("/brokers/ids") else []
    for first in client.get_children("/")[:_MAX_CHILDREN]:
        if first == "zookeeper":
            continue
        if client.exists(f"/{first}/brokers/ids"):
            found.append(f"/{first}")
            continue
        found += [
            f"/{first}/{second}"
            for second in client.get_children(f"/{first}")[:_MAX_CHILDREN]
            if client.exists(f"/{first}/{second}/brokers/ids")
        ]
    return sorted(found)
