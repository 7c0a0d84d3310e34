"""The only place where a client of ZooKeeper is made."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from kctl.base.address import parse_zookeeper
from kctl.base.deadline import Deadline
from kctl.errors import ConnectionFailed, ConnectionTimedOut, NotFound, NotZooKeeper
from kctl.protocol import preflight
from kctl.protocol.security import Security
from kctl.protocol.tls import make_context
from kctl.zookeeper.client import ZooKeeper
from kctl.zookeeper.reach import find_chroots, reach

_IN_THE_CLEAR = Security()
_AGAIN_S = 0.25


@contextmanager
def zookeeper(
    connect: str, *, security: Security = _IN_THE_CLEAR, timeout_s: float = 10.0, in_all: bool = False
) -> Iterator[ZooKeeper]:
    """Open a read-only client of "host:port,…/chroot". Its paths are relative to the chroot.

    timeout_s: of each call; with in_all, of everything until the block ends. Raises NotFound for a chroot that does not
    exist, ConnectionFailed's subclasses within 5 s when no server can be reached, ConnectionTimedOut when they can but
    serve nobody (no quorum) within timeout_s.
    """
    path = parse_zookeeper(connect)
    whole = Deadline(timeout_s) if in_all else None
    servers = reach(path.servers, Deadline(min(timeout_s, preflight.LIMIT_S)), security)
    tls = make_context(security) if security.tls else None
    client = ZooKeeper(servers, tls, timeout_s=timeout_s, deadline=whole)
    try:
        _begin(client, connect, timeout_s)
        if path.chroot and client.exists(path.chroot) is None:
            known = find_chroots(client)
            raise NotFound(
                f"ZooKeeper {','.join(map(str, path.servers))} has no chroot {path.chroot}",
                hint=f"Kafka clusters are at: {', '.join(known)}" if known else "no Kafka cluster is in this ZooKeeper",
            )
        client.chroot = path.chroot
        yield client
    finally:
        client.close()


def _begin(client: ZooKeeper, connect: str, timeout_s: float) -> None:
    """Open the session, again and again: a server without a quorum closes the connection at once."""
    deadline = Deadline(timeout_s)
    while True:
        try:
            client.open()
        except ConnectionTimedOut:
            raise ConnectionTimedOut(
                f"ZooKeeper {connect} gave no session within {timeout_s:g} s", hint="does the ensemble have a quorum?"
            ) from None
        except NotZooKeeper:
            raise
        except ConnectionFailed:
            if deadline.left_s <= _AGAIN_S:
                raise ConnectionTimedOut(
                    f"ZooKeeper {connect} gave no session within {timeout_s:g} s",
                    hint="does the ensemble have a quorum?",
                ) from None
            time.sleep(_AGAIN_S)
        else:
            return
