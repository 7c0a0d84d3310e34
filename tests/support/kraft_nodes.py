"""Brokers of Kafka 4.x without ZooKeeper, for tests of replicas. The first one is also the controller."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kctl_testing import free_ports
from kraft_process import KraftProcess


class KraftNodes:
    """Brokers 1 to `count` with two log dirs each. bootstrap: of broker 1, the only controller, which must stay up."""

    def __init__(self, folder: Path, count: int) -> None:
        from kctl.deploy.runtime.java import find_java
        from kctl.deploy.runtime.runtime import KRAFT_VERSION, ensure_runtime

        *ports, self._controller = free_ports(count + 1)
        self._ports = dict(enumerate(ports, start=1))
        self.bootstrap = f"127.0.0.1:{self._ports[1]}"
        libs, java = ensure_runtime(KRAFT_VERSION).libs, find_java().executable
        self._nodes = {
            node: KraftProcess(folder / str(node), java, libs, self._settings(folder / str(node), node), [port])
            for node, port in self._ports.items()
        }
        self._running: dict[int, subprocess.Popen[bytes]] = {}

    def start(self, node: int) -> None:
        self._nodes[node].folder.mkdir(parents=True, exist_ok=True)
        self._running[node] = self._nodes[node].start()

    def launch(self, node: int) -> None:
        """Start a broker without waiting for it."""
        self._running[node] = self._nodes[node].launch()

    def log_dirs(self, node: int) -> list[str]:
        return [str(self._nodes[node].folder / name) for name in ("data-1", "data-2")]

    def kill(self, node: int) -> None:
        process = self._running.pop(node)
        process.kill()
        process.wait()

    def stop(self, node: int) -> None:
        """Stop a broker cleanly: its replicas stay eligible only after a clean shutdown."""
        process = self._running.pop(node)
        process.terminate()
        process.wait(timeout=120)

    def kill_all(self) -> None:
        for node in list(self._running):
            self.kill(node)

    def _settings(self, folder: Path, node: int) -> dict[str, object]:
        address = f"PLAINTEXT://127.0.0.1:{self._ports[node]}"
        roles: dict[str, object] = {"process.roles": "broker", "listeners": address}
        if node == 1:
            listeners = f"{address},CONTROLLER://127.0.0.1:{self._controller}"
            roles = {"process.roles": "broker,controller", "listeners": listeners}
        return roles | {
            "node.id": node,
            "controller.quorum.voters": f"1@127.0.0.1:{self._controller}",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "log.dirs": f"{folder}/data-1,{folder}/data-2",
            "auto.create.topics.enable": "false",
            "log.cleaner.dedupe.buffer.size": 8 * 2**20,
            "broker.session.timeout.ms": 3000,
            "broker.heartbeat.interval.ms": 500,
            "replica.lag.time.max.ms": 3000,
            "offsets.topic.replication.factor": 1,
            "offsets.topic.num.partitions": 2,
        }


@contextmanager
def kraft_nodes(folder: Path, count: int) -> Iterator[KraftNodes]:
    """Yield running brokers; those that still run at the end are killed."""
    nodes = KraftNodes(folder, count)
    try:
        for node in range(1, count + 1):
            nodes.start(node)
        yield nodes
    finally:
        nodes.kill_all()
