"""A ZooKeeper client that can write, unlike kctl's own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from kazoo.client import KazooClient


@contextmanager
def zookeeper_writer(connect: str) -> Iterator[KazooClient]:
    """Yield a client of `host:port,.../chroot`."""
    client = KazooClient(hosts=connect)
    client.start()
    try:
        yield client
    finally:
        client.stop()
        client.close()
