"""A read-only ZooKeeper client: one blocking connection, with limits on time and size that no server can extend.

kctl reads only a few nodes. A general client (kazoo) waits forever for a server that does not respond, and allocates as
much memory as the length field of a response claims.
"""

from __future__ import annotations

import random
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from kctl.base.address import Address
from kctl.base.binary_layout import INT32
from kctl.base.deadline import Deadline
from kctl.errors import (
    ConnectionFailed,
    ConnectionReason,
    ConnectionTimedOut,
    KctlError,
    NotAuthorized,
    NotFound,
    NotZooKeeper,
    OperationFailed,
)
from kctl.protocol.receive_buffer import ReceiveBuffer
from kctl.protocol.socket_errors import error_class
from kctl.zookeeper import wire

if TYPE_CHECKING:
    import ssl

MAX_RESPONSE_BYTES = 64 * 1024 * 1024  # a million children; ZooKeeper's own limit is 1 MB (jute.maxbuffer)
_MAX_CONNECT_RESPONSE_BYTES = 1024
_MAX_LATE_READS = 16
_CHUNK = 256 * 1024
_CLOSE_S = 0.5
T = TypeVar("T")
_PINGS_PER_SESSION = 3  # pings per session timeout; without pings, the server expires the session


class NoNode(NotFound):
    """The node does not exist."""


class NoAuth(NotAuthorized):
    """The node's ACL does not allow everyone to read the node."""


class Children(NamedTuple):
    """The names of a node's children, and the stat of the node."""

    names: list[str]
    stat: wire.Stat


class ZooKeeper:
    """A ZooKeeper session. Not thread-safe. Paths are relative to `chroot`.

    deadline: for all calls together; None: timeout_s applies to each call. After a lost connection, the next call opens
    a new session. Calls raise ConnectionTimedOut, ConnectionFailed, NoNode, NoAuth, or OperationFailed with the
    server's error.
    """

    def __init__(
        self,
        servers: Sequence[Address],
        tls: ssl.SSLContext | None,
        *,
        timeout_s: float,
        deadline: Deadline | None = None,
    ) -> None:
        self.chroot = ""
        self._servers = list(servers)
        self._tls = tls
        self._timeout_s = timeout_s
        self._deadline = deadline
        self._socket: socket.socket | None = None
        self._server = self._servers[0]
        self._received = ReceiveBuffer(late_reads=_MAX_LATE_READS)
        self._xid = 0
        self._event_count = 0
        self._session_s = timeout_s
        self._sent_at = 0.0

    # --- nodes ----------------------------------------------------------------------------------------------------

    def get(self, path: str) -> tuple[bytes, wire.Stat]:
        """Return a node's data and stat."""
        reader = self._call(wire.GET_DATA, path, watch=False)
        return self._decoded(lambda: (reader.buffer() or b"", reader.stat()))

    def exists(self, path: str, *, watch: bool = False) -> wire.Stat | None:
        """Return the stat; None if the node does not exist. watch: the next change or creation triggers an event."""
        try:
            reader = self._call(wire.EXISTS, path, watch=watch)
        except NoNode:
            return None
        return self._decoded(reader.stat)

    def get_children(self, path: str, *, watch: bool = False) -> list[str]:
        """Return the names of a node's children. watch: the next added or removed child triggers an event."""
        return self._decoded(self._call(wire.GET_CHILDREN, path, watch=watch).names)

    def get_acl(self, path: str) -> list[wire.AclEntry]:
        """Return the ACL of a node."""
        return self._decoded(self._call(wire.GET_ACL, path, watch=None).acl)

    def children_of_each(self, paths: Sequence[str]) -> list[Children | KctlError]:
        """Return the children of each node, or its NoNode or NoAuth error.

        All requests are sent before the first response is read.
        """
        deadline = self._limit()
        results: list[Children | KctlError] = []
        with self._dropping_on_interrupt():
            self._connect(deadline)
            requests = [self._request(wire.GET_CHILDREN, path, watch=False) for path in paths]
            self._send(b"".join(frame for _, frame in requests), deadline)
            for (xid, _), path in zip(requests, paths, strict=True):
                try:
                    reader = self._response_to(xid, path, deadline)
                except (NoNode, NoAuth) as exc:
                    results.append(exc)
                else:
                    results.append(self._decoded(partial(_children, reader)))
        return results

    def wait_for_event(self, limit_s: float) -> bool:
        """Wait up to limit_s for a watch event. Return True if there was one since the last call.

        A lost connection counts as an event.
        """
        until = time.monotonic() + limit_s
        while not self._event_count:
            if self._socket is None:
                return True
            wait_s = min(until, self._sent_at + self._session_s / _PINGS_PER_SESSION) - time.monotonic()
            try:
                if wait_s <= 0 and time.monotonic() < until:
                    self._send(wire.request(wire.PING_XID, wire.PING), Deadline(self._timeout_s))
                    continue
                if not self._received and not self._readable(max(0.0, wait_s)):
                    if time.monotonic() >= until:
                        return False
                    continue
                self._take_unsolicited(Deadline(self._timeout_s))
            except ConnectionFailed:
                return True
        self._event_count = 0
        return True

    def close(self) -> None:
        """End the session. Does nothing if it has already ended."""
        if self._socket is not None:
            with suppress(KctlError):
                self._send(wire.request(0, wire.CLOSE), Deadline(_CLOSE_S))
        self._drop()

    # --- the connection -------------------------------------------------------------------------------------------

    def open(self) -> None:
        """Open a session with one of the servers. Raises the error of the last server that was tried."""
        self._connect(self._limit())

    @contextmanager
    def _dropping_on_interrupt(self) -> Iterator[None]:
        """Drop the connection if the block is interrupted: a response may still be in flight."""
        try:
            yield
        except KctlError:
            raise
        except BaseException:
            self._drop()
            raise

    def _limit(self) -> Deadline:
        return Deadline(self._timeout_s) if self._deadline is None else self._deadline.at_most(self._timeout_s)

    def _connect(self, deadline: Deadline) -> None:
        if self._socket is not None:
            return
        servers = random.sample(self._servers, len(self._servers))
        for number, server in enumerate(servers):
            try:
                self._open_session(server, deadline.at_most(deadline.left_s / (len(servers) - number)))
                return
            except KctlError:
                self._drop()
                if number == len(servers) - 1:
                    raise

    def _open_session(self, server: Address, deadline: Deadline) -> None:
        self._server = server
        try:
            sock = socket.create_connection(server, timeout=max(0.001, deadline.left_s))
            self._socket = sock
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self._tls is not None:
                sock.settimeout(max(0.001, deadline.left_s))
                self._socket = self._tls.wrap_socket(sock, server_hostname=server.host)
        except TimeoutError:
            raise self._timed_out() from None
        except OSError as exc:
            raise error_class(exc)(f"cannot connect to ZooKeeper {server}: {exc.strerror or exc}") from None
        self._send(wire.connect_request(round(self._timeout_s * 1000)), deadline)
        frame = self._frame(deadline, _MAX_CONNECT_RESPONSE_BYTES)
        granted_ms = self._decoded(partial(wire.session_timeout_ms, frame))
        if granted_ms <= 0:
            raise self._lost()
        self._session_s = granted_ms / 1000

    def _call(self, kind: int, path: str, *, watch: bool | None) -> wire.RecordReader:
        deadline = self._limit()
        with self._dropping_on_interrupt():
            self._connect(deadline)
            xid, frame = self._request(kind, path, watch=watch)
            self._send(frame, deadline)
            return self._response_to(xid, path, deadline)

    def _request(self, kind: int, path: str, *, watch: bool | None) -> tuple[int, bytes]:
        self._xid += 1
        full_path = path if not self.chroot else self.chroot + ("" if path == "/" else path)
        return self._xid, wire.request(self._xid, kind, full_path, watch=watch)

    def _response_to(self, xid: int, path: str, deadline: Deadline) -> wire.RecordReader:
        while True:
            response = self._decoded(lambda: wire.response(self._frame(deadline, MAX_RESPONSE_BYTES)))
            if response.xid == xid:
                break
            if not self._is_unsolicited(response):
                raise self._invalid_response()
            if deadline.expired:  # an endless stream of events is not a response
                raise self._timed_out()
        if response.error == wire.NO_NODE:
            raise NoNode(f"ZooKeeper has no node {path}")
        if response.error == wire.NO_AUTH:
            raise NoAuth(f"not authorized to read the node {path}")
        if response.error:
            raise OperationFailed(f"ZooKeeper {self._server}: {path}: {wire.error_name(response.error)}")
        return response.reader

    def _take_unsolicited(self, deadline: Deadline) -> None:
        if not self._is_unsolicited(self._decoded(lambda: wire.response(self._frame(deadline, MAX_RESPONSE_BYTES)))):
            raise self._invalid_response()

    def _is_unsolicited(self, response: wire.Response) -> bool:
        self._event_count += response.xid == wire.EVENT_XID
        return response.xid in {wire.EVENT_XID, wire.PING_XID}

    def _readable(self, limit_s: float) -> bool:
        import select

        assert self._socket
        if getattr(self._socket, "pending", int)():  # TLS may have buffered data
            return True
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        return bool(poll.poll(limit_s * 1000))

    # --- bytes ----------------------------------------------------------------------------------------------------

    def _send(self, data: bytes, deadline: Deadline) -> None:
        for start in range(0, len(data), _CHUNK):
            if self._socket is None:
                raise self._lost()
            self._socket.settimeout(max(0.001, deadline.left_s))
            try:
                self._socket.sendall(data[start : start + _CHUNK])
            except TimeoutError:
                raise self._timed_out() from None
            except OSError:
                raise self._lost() from None
        self._sent_at = time.monotonic()

    def _frame(self, deadline: Deadline, limit: int) -> bytes:
        (size,) = INT32.unpack(self._take(INT32.size, deadline))
        if not 0 <= size <= limit:
            self._drop()
            raise NotZooKeeper(
                f"ZooKeeper {self._server} announced a response of {size:,} bytes; kctl reads at most {limit:,}",
                hint="check that this is ZooKeeper's client port",
            )
        return self._take(size, deadline)

    def _take(self, size: int, deadline: Deadline) -> bytes:
        if self._socket is None:
            raise self._lost()
        try:
            return self._received.take(self._socket, size, deadline)
        except TimeoutError:
            raise self._timed_out() from None
        except (EOFError, OSError):
            raise self._lost() from None

    def _decoded(self, decode: Callable[[], T]) -> T:
        try:
            return decode()
        except wire.MalformedResponse:
            raise self._invalid_response() from None

    def _drop(self) -> None:
        """Close the connection, so that a late response is not mistaken for the response to another request."""
        sock, self._socket = self._socket, None
        self._received.clear()
        if sock is not None:
            with suppress(OSError):
                sock.close()

    def _timed_out(self) -> ConnectionTimedOut:
        self._drop()
        return ConnectionTimedOut(
            f"ZooKeeper {self._server} did not respond in time",
            hint="the server may be overloaded; raise --timeout to wait longer",
            reason=ConnectionReason.NO_RESPONSE,
        )

    def _lost(self) -> ConnectionFailed:
        self._drop()
        return ConnectionFailed(
            f"the connection to ZooKeeper {self._server} was lost",
            hint="check that the ensemble has a quorum: kctl zk stat",
            reason=ConnectionReason.CONNECTION_CLOSED,
        )

    def _invalid_response(self) -> NotZooKeeper:
        self._drop()
        return NotZooKeeper(
            f"ZooKeeper {self._server} sent an invalid response", hint="check that this is ZooKeeper's client port"
        )


def _children(reader: wire.RecordReader) -> Children:
    return Children(reader.names(), reader.stat())
