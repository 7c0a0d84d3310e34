"""The only place where a kafka-python or kazoo client is made."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from typing import Any

from kctl.context import Target
from kctl.errors import (
    ConnectionFailed, ConnectionTimedOut, KctlError, NotAuthorized, NotFound, OperationFailed, UsageError,
)
from kctl.model import Broker, ClusterState, PartitionState, TopicState


def connect(target: Target, *, timeout_s: float = 30.0) -> ClusterClient:
    return ClusterClient(target, timeout_s=timeout_s)


def _config(target: Target, timeout_s: float) -> dict[str, Any]:
    return {"bootstrap_servers": list(target.bootstrap_servers), "client_id": "kctl",
            "request_timeout_ms": int(timeout_s * 1000)}


class ClusterClient:
    def __init__(self, target: Target, *, timeout_s: float = 30.0) -> None:
        if not target.bootstrap_servers:
            raise UsageError("no cluster was chosen", hint="give --bootstrap-server HOST:PORT or --context NAME")
        logging.getLogger("kafka").setLevel(logging.CRITICAL + 1)
        from kafka import KafkaAdminClient
        from kafka.errors import KafkaError

        self.target, self.timeout_s = target, timeout_s
        try:
            self._admin = KafkaAdminClient(**_config(target, timeout_s), bootstrap_timeout_ms=5000)
        except KafkaError as exc:
            raise ConnectionFailed(f"cannot reach {target.name}: {exc}") from None

    def __enter__(self) -> ClusterClient:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    def close(self) -> None:
        self._admin.close()

    def admin(self) -> Any:
        return self._admin

    def producer(self, **cfg: Any) -> Any:
        from kafka import KafkaProducer

        return KafkaProducer(**{**_config(self.target, self.timeout_s), **cfg})

    def consumer(self, *topics: str, **cfg: Any) -> Any:
        from kafka import KafkaConsumer

        return KafkaConsumer(*topics, **{**_config(self.target, self.timeout_s), **cfg})

    def send(self, request: Any, *, node_id: int | None = None, timeout_s: float | None = None) -> Any:
        answer = self.send_each({-1 if node_id is None else node_id: request}, timeout_s=timeout_s)
        value = next(iter(answer.values()))
        if isinstance(value, KctlError):
            raise value
        return value

    def send_each(self, requests: Mapping[int, Any], *, timeout_s: float | None = None) -> dict[int, Any]:
        manager = self._admin._manager
        limit = int((timeout_s or self.timeout_s) * 1000)
        futures = {n: manager.call_soon(manager.send, r, None if n < 0 else n, limit) for n, r in requests.items()}
        import time

        deadline = time.monotonic() + limit / 1000 + 1
        while not all(f.is_done for f in futures.values()) and time.monotonic() < deadline:
            time.sleep(0.001)
        out: dict[int, Any] = {}
        for n, f in futures.items():
            if not f.is_done:
                out[n] = ConnectionTimedOut(f"broker {n} did not answer within {limit / 1000:g} s")
            elif f.failed():
                out[n] = ConnectionFailed(f"broker {n}: {f.exception}")
            else:
                out[n] = f.value
        return out

    def send_to_controller(self, request: Any, *, timeout_s: float | None = None) -> Any:
        state = self.metadata(())
        if state.controller_id is None:
            raise OperationFailed("the cluster has no controller")
        return self.send(request, node_id=state.controller_id, timeout_s=timeout_s)

    def metadata(self, topics: Collection[str] | None = None) -> ClusterState:
        from kafka.protocol.metadata import MetadataRequest

        Topic = MetadataRequest.MetadataRequestTopic  # noqa: N806
        wanted = None if topics is None else [Topic(name=t) for t in topics]
        answer = self.send(MetadataRequest(topics=wanted, allow_auto_topic_creation=False))
        brokers = {b.node_id: Broker(b.node_id, b.host, b.port, b.rack) for b in answer.brokers}
        found = {
            t.name: TopicState(
                t.name, t.is_internal, str(t.topic_id) if t.topic_id else None,
                tuple(
                    PartitionState(
                        t.name, p.partition_index, p.leader_id, p.leader_epoch, tuple(p.replica_nodes),
                        tuple(p.isr_nodes), tuple(p.offline_replicas or ()),
                    )
                    for p in sorted(t.partitions, key=lambda p: p.partition_index)
                ),
            )
            for t in answer.topics
            if t.error_code == 0
        }
        controller = answer.controller_id if answer.controller_id >= 0 else None
        return ClusterState(answer.cluster_id, controller, brokers, found)


def error_for(error_code: int, message: str | None, *, subject: str) -> KctlError:
    from kafka.errors import for_code

    name = for_code(error_code).__name__
    classes = {3: NotFound, 69: NotFound, 29: NotAuthorized, 30: NotAuthorized, 31: NotAuthorized}
    return classes.get(error_code, OperationFailed)(f"{subject}: {message or name}")


def zookeeper(connect: str, *, timeout_s: float = 10.0) -> Any:
    from kazoo.client import KazooClient

    client = KazooClient(hosts=connect, timeout=timeout_s, read_only=True)
    client.start(timeout=timeout_s)
    return client
