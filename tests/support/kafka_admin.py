"""kafka-python's admin client, for changes that tests make without kctl."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from kctl.protocol.client import ClusterClient


@contextmanager
def kafka_admin(client: ClusterClient) -> Iterator[Any]:
    """Return an admin client for the client's cluster, with its security settings."""
    from kafka import KafkaAdminClient

    admin = KafkaAdminClient(**client._settings())
    try:
        yield admin
    finally:
        admin.close()
