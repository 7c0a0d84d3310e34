"""The only place where a client of ZooKeeper is made."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from kctl import preflight
from kctl.address import parse_zookeeper
from kctl.context import Security
from kctl.deadline import Deadline
from kctl.errors import ConnectionFailed, ConnectionTimedOut, NotFound, OperationFailed
from kctl.zk.reach import find_chroots, reach

if TYPE_CHECKING:
    from kazoo.client import KazooClient


_IN_THE_CLEAR = Security()


@contextmanager
def zookeeper(connect: str, *, security: Security = _IN_THE_CLEAR, timeout_s: float = 10.0) -> Iterator[KazooClient]:
    """A kazoo client of «host:port,…/chroot», for reading; its paths are relative to the chroot.

    Raises NotFound for a chroot that does not exist, ConnectionFailed's subclasses within 5 s when no server can be
    reached, ConnectionTimedOut when they can but serve nobody (no quorum) within timeout_s.
    """
    from kctl.logs import quiet_kazoo

    path = parse_zookeeper(connect)
    servers = reach(path.servers, Deadline(min(timeout_s, preflight.LIMIT_S)), security)
    quiet_kazoo()
    from kazoo.client import KazooClient
    from kazoo.exceptions import ConnectionClosedError, ConnectionLoss, KazooException, SessionExpiredError

    # Without a limit to its retries, a call waits for ever when ZooKeeper goes away.
    retry = {"max_tries": -1, "deadline": timeout_s}
    hosts = ",".join(map(str, servers))
    client = KazooClient(hosts=hosts, timeout=timeout_s, read_only=True, connection_retry=retry, **_tls(security))
    try:
        client.start(timeout=timeout_s)
    except client.handler.timeout_exception:
        raise ConnectionTimedOut(
            f"ZooKeeper {connect} gave no session within {timeout_s:g} s", hint="has the ensemble a quorum?"
        ) from None
    try:
        if path.chroot and not client.exists(path.chroot):
            known = find_chroots(client)
            raise NotFound(
                f"ZooKeeper {','.join(map(str, path.servers))} has no chroot {path.chroot}",
                hint=f"Kafka clusters are at: {', '.join(known)}" if known else "no Kafka cluster is in this ZooKeeper",
            )
        client.chroot = path.chroot
        yield client
    except (ConnectionClosedError, ConnectionLoss, SessionExpiredError):
        raise ConnectionFailed(
            f"the connection to ZooKeeper {connect} was lost", hint="is a quorum of its servers up?"
        ) from None
    except KazooException as exc:
        raise OperationFailed(f"ZooKeeper {connect}: {type(exc).__name__}") from None
    finally:
        client.stop()
        client.close()


def _tls(security: Security) -> dict[str, Any]:
    """TLS as kazoo takes it; `reach` has verified the files and the servers."""
    if not security.tls:
        return {}
    return {
        "use_ssl": True,
        "ca": security.ssl_cafile,
        "certfile": security.ssl_certfile,
        "keyfile": security.ssl_keyfile or security.ssl_certfile,
        "keyfile_password": security.ssl_key_password,
        "verify_certs": True,
        "check_hostname": security.ssl_check_hostname,
    }
