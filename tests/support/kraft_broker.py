"""A broker of Kafka 4.x without ZooKeeper: one JVM that is broker and controller, on free loopback ports.

kctl sets up clusters with ZooKeeper, so this one is started here, from jars that kctl provisions like its own.
`python tests/support/kraft_broker.py FOLDER PORT` starts one for development and leaves it running.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kctl_testing import free_ports
from kraft_process import KraftProcess

VERSION = "4.3.1"


def _process(folder: Path, port: int, controller: int) -> KraftProcess:
    """From the jars of VERSION, which are provisioned when they are not there yet."""
    from kctl.deploy.java import find_java
    from kctl.deploy.runtime import ensure_runtime

    settings: dict[str, object] = {
        "process.roles": "broker,controller",
        "node.id": 1,
        "controller.quorum.voters": f"1@127.0.0.1:{controller}",
        "controller.listener.names": "CONTROLLER",
        "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "log.dirs": f"{folder / 'data-a'},{folder / 'data-b'}",
        "auto.create.topics.enable": "false",
        "log.cleaner.dedupe.buffer.size": 8 * 2**20,
        # Share groups come with the feature share.version, which a new cluster of this version has.
        "group.coordinator.rebalance.protocols": "classic,consumer,streams",
        "group.initial.rebalance.delay.ms": 0,
        "offsets.topic.replication.factor": 1,
        "offsets.topic.num.partitions": 4,
        "transaction.state.log.replication.factor": 1,
        "transaction.state.log.min.isr": 1,
        "transaction.state.log.num.partitions": 2,
        "share.coordinator.state.topic.replication.factor": 1,
        "share.coordinator.state.topic.min.isr": 1,
        "share.coordinator.state.topic.num.partitions": 2,
    }
    libs = ensure_runtime(VERSION).libs
    return KraftProcess(folder, find_java().executable, libs, settings, scram=(), ports=(port, controller))


@contextmanager
def kraft_broker(folder: Path) -> Iterator[str]:
    """One that runs as long as the block: its bootstrap server."""
    port, controller = free_ports(2)
    with _process(folder, port, controller).running():
        yield f"127.0.0.1:{port}"


def main(folder: Path, port: int) -> int:
    """Start one and leave it running."""
    folder.mkdir(parents=True, exist_ok=True)
    process = _process(folder, port, free_ports(1)[0]).start()
    (folder / "pid").write_text(f"{process.pid}\n")
    sys.stdout.write(f"pid {process.pid}, 127.0.0.1:{port}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve(), int(sys.argv[2])))
