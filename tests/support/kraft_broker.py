"""A broker of Kafka 4.x without ZooKeeper: one JVM as broker and controller, on free loopback ports.

kctl sets up clusters with ZooKeeper, so this one is started here, from jars that kctl installs.
`python tests/support/kraft_broker.py FOLDER PORT` runs one until it is stopped, for development.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from kctl_testing import free_ports
from kraft_process import KraftProcess

VERSION = "4.4.0"


@dataclass(frozen=True)
class KraftBroker:
    """A running broker. bootstrap: its address. version: its Kafka version. pid: the pid of its JVM."""

    bootstrap: str
    pid: int
    version: str = VERSION


def _settings(folder: Path, bootstrap: str, controller: int) -> dict[str, object]:
    return {
        "process.roles": "broker,controller",
        "node.id": 1,
        "controller.quorum.voters": f"1@127.0.0.1:{controller}",
        "controller.listener.names": "CONTROLLER",
        "listeners": f"PLAINTEXT://{bootstrap},CONTROLLER://127.0.0.1:{controller}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "log.dirs": f"{folder / 'data-a'},{folder / 'data-b'}",
        "num.partitions": 1,
        "auto.create.topics.enable": "false",
        "log.cleaner.dedupe.buffer.size": 8 * 2**20,
        # Share groups come with the feature share.version, which a new cluster of this version has.
        "group.coordinator.rebalance.protocols": "classic,consumer,streams",
        "group.initial.rebalance.delay.ms": 0,
        "group.streams.initial.rebalance.delay.ms": 0,
        "offsets.topic.replication.factor": 1,
        "offsets.topic.num.partitions": 4,
        "transaction.state.log.replication.factor": 1,
        "transaction.state.log.min.isr": 1,
        "transaction.state.log.num.partitions": 2,
        "share.coordinator.state.topic.replication.factor": 1,
        "share.coordinator.state.topic.min.isr": 1,
        "share.coordinator.state.topic.num.partitions": 2,
    }


@contextmanager
def kraft_broker(folder: Path, *, port: int | None = None) -> Iterator[KraftBroker]:
    """Yield a broker in `folder`, with the jars of VERSION, which are installed if missing."""
    from kctl.deploy.runtime.java import find_java
    from kctl.deploy.runtime.runtime import ensure_runtime

    chosen, controller = free_ports(2)
    bootstrap = f"127.0.0.1:{port or chosen}"
    libs, settings = ensure_runtime(VERSION).libs, _settings(folder, bootstrap, controller)
    with KraftProcess(folder, find_java().executable, libs, settings, ports=[port or chosen]).running() as process:
        yield KraftBroker(bootstrap, process.pid)


if __name__ == "__main__":
    _home = Path(sys.argv[1])
    _home.mkdir(parents=True, exist_ok=True)
    with kraft_broker(_home, port=int(sys.argv[2])) as _broker:
        (_home / "pid").write_text(f"{_broker.pid}\n")
        while True:
            time.sleep(60)
