"""A client of ZooKeeper that can write, which kctl's own cannot."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from kazoo.client import KazooClient


@contextmanager
def zookeeper_writer(connect: str) -> Iterator[KazooClient]:
    """Of «host:port,.../chroot»."""
    client = KazooClient(hosts=connect)
    client.start()
    try:
        yield client
    finally:
        client.stop()
        client.close()
