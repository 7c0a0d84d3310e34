"""The client against a real broker: what is read, what is retried, and what is not known after a failure."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kctl.errors import (
    ConnectionFailed,
    ConnectionRefused,
    ConnectionTimedOut,
    KctlError,
    NotFound,
    NotSupported,
    NotZooKeeper,
    OutcomeUnknown,
    TlsMismatch,
)
from kctl.protocol.client import ClusterClient, connect, consumer_for, producer_for
from kctl.protocol.security import Security
from kctl.protocol.target import Target
from kctl.zookeeper.session import zookeeper
from kctl_testing import TestCluster, eventually, within
from secure_broker import PASSWORD, SESSION_MS, USER, SecureBroker

if TYPE_CHECKING:
    from kafka.protocol.admin import CreateTopicsRequest


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory, kafka_home: Path) -> Iterator[SecureBroker]:
    from kctl.deploy.runtime.java import find_java

    made = SecureBroker(tmp_path_factory.mktemp("client"), find_java().executable, kafka_home / "libs")
    with made.running():
        yield made


@pytest.fixture
def target(broker: SecureBroker) -> Target:
    return Target("own", (f"localhost:{broker.ports['OPEN']}",))


def create_request(name: str, *, replication_factor: int = 1) -> CreateTopicsRequest:
    from kafka.protocol.admin import CreateTopicsRequest

    topic = CreateTopicsRequest.CreatableTopic(
        name=name, num_partitions=3, replication_factor=replication_factor, assignments=[], configs=[]
    )
    return CreateTopicsRequest(topics=[topic], timeout_ms=5000)


def test_metadata(target: Target) -> None:
    with connect(target) as client:
        answer = client.send_to_controller(create_request("metadata"))
        assert answer.topics[0].error_code == 0
        eventually(lambda: "metadata" in client.metadata(["metadata"]).topics, what="the topic is shown")
        state = client.metadata(["metadata", "no-such-topic", "metadata"])
        assert set(state.topics) == {"metadata"}
        topic = state.topics["metadata"]
        assert [(p.partition, p.leader, p.replicas, p.isr) for p in topic.partitions] == [
            (n, 1, (1,), (1,)) for n in range(3)
        ]
        assert topic.topic_id
        assert len(topic.topic_id) == 22
        assert not topic.internal
        assert "metadata" in client.metadata().topics
        nothing = client.metadata(())
        assert (nothing.topics, set(nothing.brokers), nothing.controller_id) == ({}, {1}, 1)
        assert nothing.cluster_id == "3Db5QLSqSZieL3rJBUUegA"
        assert "no-such-topic" not in client.metadata().topics  # asking did not create it


def test_requests(target: Target) -> None:
    from kafka.protocol.admin import DescribeLogDirsRequest, ListGroupsRequest

    with connect(target) as client:
        answers = client.send_each({1: ListGroupsRequest(), 7: ListGroupsRequest()})
        assert answers[1].error_code == 0
        assert isinstance(answers[7], NotFound)
        with pytest.raises(NotFound, match="broker 7"):
            client.send(ListGroupsRequest(), node_id=7)
        with pytest.raises(NotSupported) as caught:
            client.send(DescribeLogDirsRequest(topics=None, min_version=5), node_id=1)
        assert caught.value.hint == "upgrade to Kafka 4.3 or later"


def test_a_broker_that_stops_answering(broker: SecureBroker, target: Target) -> None:
    from kafka.protocol.admin import ListGroupsRequest

    with connect(target) as client:
        client.metadata(())
        with broker.paused():
            for call, expected in (
                (lambda: client.send(ListGroupsRequest(), node_id=1, timeout_s=0.5), ConnectionTimedOut),
                (lambda: client.metadata(timeout_s=0.5), ConnectionTimedOut),
            ):
                started = time.monotonic()
                with pytest.raises(expected):
                    call()
                assert time.monotonic() - started < within(1.5)
        assert client.metadata().brokers  # connects again


def test_a_change_without_an_answer_is_unknown_and_not_repeated(broker: SecureBroker, target: Target) -> None:
    with connect(target) as client:
        client.metadata(())
        with broker.paused(), pytest.raises(OutcomeUnknown) as caught:
            client.send(create_request("maybe"), node_id=1, timeout_s=0.5)
        assert caught.value.exit_code == 5
        # The broker had the request in its socket and carries it out when it goes on.
        eventually(lambda: "maybe" in client.metadata(["maybe"]).topics, what="the topic is there after all")


def test_a_connection_that_the_broker_closed_is_opened_again(broker: SecureBroker) -> None:
    security = Security("SASL_SSL", "SCRAM-SHA-512", USER, PASSWORD, ssl_cafile=broker.pem("ca"))
    with connect(Target("own", (f"localhost:{broker.ports['SCRAM']}",), security=security)) as client:
        for _ in range(2):
            assert client.metadata(()).brokers
            time.sleep(SESSION_MS / 1000 + 0.5)
        assert client.metadata(()).brokers


def test_kafka_pythons_clients(target: Target) -> None:
    with connect(target) as client:
        client.send_to_controller(create_request("round-trip"))
        eventually(lambda: len(client.metadata(["round-trip"]).topics) == 1, what="the topic is shown")
    producer = producer_for(target)
    assert producer.send("round-trip", b"x", partition=0).get(timeout=20).offset == 0
    producer.close()
    from kafka.structs import TopicPartition

    consumer = consumer_for(target)
    tp = TopicPartition("round-trip", 0)
    consumer.assign([tp])
    consumer.seek(tp, 0)
    rows = consumer.poll(timeout_ms=20_000)
    assert [record.value for record in rows[tp]] == [b"x"]
    consumer.close()


def test_a_broker_that_dies(tmp_path: Path, kafka_home: Path) -> None:
    from kafka.protocol.admin import ListGroupsRequest

    from kctl.deploy.runtime.java import find_java

    made = SecureBroker(tmp_path, find_java().executable, kafka_home / "libs")
    with made.running():
        client: ClusterClient = connect(Target("own", (f"localhost:{made.ports['OPEN']}",)))
        client.metadata(())
    with client:
        started = time.monotonic()
        with pytest.raises(ConnectionRefused):
            client.metadata()
        with pytest.raises(ConnectionFailed):
            client.send(ListGroupsRequest(), node_id=1)
        with pytest.raises(KctlError):
            client.send_to_controller(create_request("x"))
        with pytest.raises(ConnectionFailed):
            client.producer()
        assert time.monotonic() - started < within(5)


class _Forwarder:
    """A port in front of another one, which can be cut."""

    def __init__(self, listener: socket.socket, host: str, port: int) -> None:
        self._listener, self._target = listener, (host, port)
        self._sockets = [listener]
        self.address = f"127.0.0.1:{listener.getsockname()[1]}"

    def run(self) -> None:
        with suppress(OSError):
            while True:
                near = self._listener.accept()[0]
                far = socket.create_connection(self._target)
                self._sockets += [near, far]
                for source, sink in ((near, far), (far, near)):
                    threading.Thread(target=self._copy, args=(source, sink), daemon=True).start()

    @staticmethod
    def _copy(source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                sink.sendall(data)
        with suppress(OSError):
            sink.shutdown(socket.SHUT_RDWR)

    def cut(self) -> None:
        for sock in self._sockets:
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
            sock.close()


@contextmanager
def forwarding(host: str, port: int) -> Iterator[_Forwarder]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        forwarder = _Forwarder(listener, host, port)
        threading.Thread(target=forwarder.run, daemon=True).start()
        yield forwarder
        forwarder.cut()


# --- ZooKeeper ----------------------------------------------------------------------------------------------------


def test_zookeeper(cluster: TestCluster) -> None:
    with zookeeper(cluster.zookeeper) as client:
        assert {int(name) for name in client.get_children("/brokers/ids")} == set(cluster.broker_ids)
    servers, _, chroot = cluster.zookeeper.partition("/")
    with zookeeper(f"127.0.0.1:1,{cluster.zookeeper}") as client:
        assert client.exists("/brokers")
    with pytest.raises(NotFound, match="no chroot /nowhere") as missing, zookeeper(f"{servers}/nowhere"):
        pass
    assert f"/{chroot}" in (missing.value.hint or "")


def test_a_zookeeper_that_goes_away(cluster: TestCluster) -> None:
    host, _, port = cluster.zookeeper.partition("/")[0].split(",")[0].partition(":")
    with forwarding(host, int(port)) as forwarder:

        def use_it() -> None:
            with zookeeper(forwarder.address, timeout_s=3) as client:
                assert client.get_children("/")
                forwarder.cut()
                while True:
                    client.get_children("/")

        started = time.monotonic()
        with pytest.raises(ConnectionFailed, match="lost"):
            use_it()
        assert time.monotonic() - started < within(10)


def test_what_is_not_zookeeper(cluster: TestCluster, broker: SecureBroker) -> None:
    started = time.monotonic()
    with pytest.raises(NotZooKeeper, match="Kafka broker"), zookeeper(cluster.bootstrap.split(",")[0]):
        pass
    with pytest.raises(TlsMismatch), zookeeper(f"localhost:{broker.ports['TLS']}"):
        pass
    with pytest.raises(ConnectionRefused), zookeeper(f"127.0.0.1:{broker.closed_port}/x"):
        pass
    with pytest.raises(ConnectionFailed, match=r"nosuchhost\.invalid"), zookeeper("nosuchhost.invalid"):
        pass
    assert time.monotonic() - started < within(10)
