"""A broker of Kafka 4.x without ZooKeeper: one JVM that is broker and controller, on free loopback ports.

kctl sets up clusters with ZooKeeper, so this one is started here, from jars that kctl provisions like its own.
`python tests/support/kraft_broker.py FOLDER PORT` runs one until it is told to stop, for development.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kctl_testing import free_ports, within

VERSION = "4.3.1"
CLUSTER_ID = "kL4xQm2ZRb6yT0wVd9uHcA"
START_S = 60.0


class KraftBroker:
    """bootstrap: its address, once it runs. version: Kafka's. pid: of the running JVM."""

    def __init__(self, folder: Path, java: Path, libs: Path, *, port: int | None = None) -> None:
        self._folder = folder
        self._java = [str(java), "-Xmx320m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", f"{libs}/*"]
        chosen, self._controller = free_ports(2)
        self.port = port or chosen
        self.bootstrap = f"127.0.0.1:{self.port}"
        self.version = VERSION
        self.log = folder / "broker.log"
        self.pid = 0

    def _properties(self) -> dict[str, object]:
        return {
            "process.roles": "broker,controller",
            "node.id": 1,
            "controller.quorum.voters": f"1@127.0.0.1:{self._controller}",
            "controller.listener.names": "CONTROLLER",
            "listeners": f"PLAINTEXT://{self.bootstrap},CONTROLLER://127.0.0.1:{self._controller}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "log.dirs": f"{self._folder / 'data-a'},{self._folder / 'data-b'}",
            "num.partitions": 1,
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

    @contextmanager
    def running(self) -> Iterator[KraftBroker]:
        """Format, start, wait until it answers; end it with its process."""
        config = self._folder / "server.properties"
        config.write_text("".join(f"{key}={value}\n" for key, value in self._properties().items()))
        log4j = self._folder / "log4j2.properties"
        log4j.write_text(
            "rootLogger.level=info\nrootLogger.appenderRef.out.ref=out\nappender.out.type=Console\n"
            "appender.out.name=out\nappender.out.layout.type=PatternLayout\n"
            "appender.out.layout.pattern=%d %p %c{1} %m%n\n"
        )
        java = [*self._java[:-2], f"-Dlog4j2.configurationFile={log4j}", *self._java[-2:]]
        done = subprocess.run(
            [*java, "kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", str(config), "--ignore-formatted"],
            capture_output=True, text=True, timeout=within(START_S), check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        with self.log.open("wb") as log:
            process = subprocess.Popen(
                [*java, "kafka.Kafka", str(config)], stdout=log, stderr=log, stdin=subprocess.DEVNULL
            )
        self.pid = process.pid
        try:
            self._wait(process)
            yield self
        finally:
            process.kill()  # its data goes with the folder: no need to stop it gently
            process.wait()

    def _wait(self, process: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + within(START_S)
        while "Kafka Server started" not in self.log.read_text(errors="replace"):
            ended = process.poll() is not None or time.monotonic() > deadline
            assert not ended, f"the broker did not start:\n{self.log.read_text(errors='replace')[-4000:]}"
            time.sleep(0.1)


@contextmanager
def kraft_broker(folder: Path, *, port: int | None = None) -> Iterator[KraftBroker]:
    """One that runs in `folder`, from the jars of VERSION, which are provisioned when they are not there yet."""
    from kctl.deploy.java import find_java
    from kctl.deploy.runtime import ensure_runtime

    libs = ensure_runtime(VERSION).libs
    with KraftBroker(folder, find_java().executable, libs, port=port).running() as broker:
        yield broker


if __name__ == "__main__":
    _home = Path(sys.argv[1])
    _home.mkdir(parents=True, exist_ok=True)
    with kraft_broker(_home, port=int(sys.argv[2])) as _broker:
        (_home / "pid").write_text(f"{_broker.pid}\n")
        while True:
            time.sleep(60)
