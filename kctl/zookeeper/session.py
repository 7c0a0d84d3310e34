"""Open ZooKeeper sessions. No other module creates a ZooKeeper client."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from kctl.base.address import parse_zookeeper
from kctl.base.deadline import Deadline
from kctl.errors import ConnectionFailed, ConnectionReason, ConnectionTimedOut, NotFound, NotZooKeeper
from kctl.protocol import preflight
from kctl.protocol.security import Security
from kctl.protocol.tls import make_context
from kctl.zookeeper.client import ZooKeeper
from kctl.zookeeper.reach import find_chroots, find_reachable

_PLAINTEXT = Security()
_RETRY_S = 0.25


@contextmanager
def zookeeper(
    connect: str, *, security: Security = _PLAINTEXT, timeout_s: float = 10.0, timeout_is_total: bool = False
) -> Iterator[ZooKeeper]:
    """Open a read-only client for "host:port,…/chroot". Its paths are relative to the chroot.

    timeout_s: for each call; with timeout_is_total, for the whole block. Raises NotFound if the chroot does not exist,
    subclasses of ConnectionFailed within 5 s if no server is reachable, and ConnectionTimedOut if the servers are
    reachable but serve no clients (no quorum) within timeout_s.
    """
    path = parse_zookeeper(connect)
    deadline = Deadline(timeout_s) if timeout_is_total else None
    servers = find_reachable(path.servers, Deadline(min(timeout_s, preflight.LIMIT_S)), security)
    tls = make_context(security) if security.tls else None
    client = ZooKeeper(servers, tls, timeout_s=timeout_s, deadline=deadline)
    try:
        _open_session(client, connect, timeout_s)
        if path.chroot and client.exists(path.chroot) is None:
            chroots = find_chroots(client)
            raise NotFound(
                f"ZooKeeper {','.join(map(str, path.servers))} has no chroot {path.chroot}",
                hint=f"chroots with a Kafka cluster: {', '.join(chroots)}"
                if chroots
                else "this ZooKeeper has no Kafka cluster",
            )
        client.chroot = path.chroot
        yield client
    finally:
        client.close()


def _open_session(client: ZooKeeper, connect: str, timeout_s: float) -> None:
    """Open the session, with retries: a server without a quorum closes the connection immediately."""
    deadline = Deadline(timeout_s)
    while True:
        try:
            client.open()
        except ConnectionTimedOut:
            raise ConnectionTimedOut(
                f"ZooKeeper {connect} did not open a session within {timeout_s:g} s",
                hint="check that the ensemble has a quorum: kctl zk stat",
                reason=ConnectionReason.NO_RESPONSE,
            ) from None
        except NotZooKeeper:
            raise
        except ConnectionFailed:
            if deadline.left_s <= _RETRY_S:
                raise ConnectionTimedOut(
                    f"ZooKeeper {connect} did not open a session within {timeout_s:g} s",
                    hint="check that the ensemble has a quorum: kctl zk stat",
                    reason=ConnectionReason.NO_RESPONSE,
                ) from None
            time.sleep(_RETRY_S)
        else:
            return
