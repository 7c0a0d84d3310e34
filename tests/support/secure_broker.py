"""A broker with every kind of listener, for tests of connections: one JVM, KRaft, on free loopback ports.

kctl's own clusters have only plaintext listeners, so this one is started here. Its certificates are in tests/data/tls.
"""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kctl_testing import closed_port, eventually, free_ports
from kraft_process import KraftProcess

USER, PASSWORD = "ops", "correct-horse-7c2e"  # for SCRAM-SHA-512, and for PLAIN on its listener
KEY_PASSWORD = "key-pass-8d1f"  # of client-key-encrypted.pem
SESSION_MS = 3000  # of a login on the listener SCRAM

LISTENERS = {
    "CONTROLLER": "PLAINTEXT",
    "OPEN": "PLAINTEXT",
    "TLS": "SSL",
    "MUTUAL": "SSL",
    "EXPIRED": "SSL",
    "WRONGHOST": "SSL",
    "SCRAM": "SASL_SSL",
    "PLAIN": "SASL_PLAINTEXT",
    "LOST": "PLAINTEXT",  # advertises a port where nothing listens
    "ASTRAY": "PLAINTEXT",  # advertises a host that does not exist
}


class SecureBroker:
    """The broker. ports: by listener. Its certificates: `pem(name)`."""

    def __init__(self, folder: Path, java: Path, libs: Path) -> None:
        self._folder = folder
        self._libs = libs
        self._java = java
        self._tls = Path(__file__).resolve().parent.parent / "data" / "tls"
        self.closed_port = closed_port()
        self.ports = dict(zip(LISTENERS, free_ports(len(LISTENERS)), strict=True))
        self._process: subprocess.Popen[bytes] | None = None

    def pem(self, name: str) -> str:
        """Return the path of a PEM file in tests/data/tls."""
        path = self._tls / f"{name}.pem"
        assert path.is_file()
        return str(path)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Pause the broker for the block: the kernel accepts connections, but nothing responds."""
        assert self._process
        self._process.send_signal(signal.SIGSTOP)
        try:
            eventually(self._is_stopped, what="each of the broker's threads has stopped")
            yield
        finally:
            self._process.send_signal(signal.SIGCONT)

    def _is_stopped(self) -> bool:
        """Return True once all threads are stopped: on a busy machine, one may respond after the signal."""
        assert self._process
        tasks = Path(f"/proc/{self._process.pid}/task").glob("*/stat")
        states = [task.read_text().rpartition(")")[2].split()[0] for task in tasks]
        return set(states) == {"T"}

    def _properties(self) -> dict[str, object]:
        listeners = {name: f"{name}://localhost:{port}" for name, port in self.ports.items()}
        advertised = {name: address for name, address in listeners.items() if name != "CONTROLLER"}
        advertised["LOST"] = f"LOST://localhost:{self.closed_port}"
        advertised["ASTRAY"] = "ASTRAY://nosuchhost.invalid:9092"
        settings: dict[str, object] = {
            "process.roles": "broker,controller",
            "node.id": 1,
            "controller.quorum.voters": f"1@localhost:{self.ports['CONTROLLER']}",
            "controller.listener.names": "CONTROLLER",
            "inter.broker.listener.name": "OPEN",
            "listeners": ",".join(listeners.values()),
            "advertised.listeners": ",".join(advertised.values()),
            "listener.security.protocol.map": ",".join(f"{k}:{v}" for k, v in LISTENERS.items()),
            "log.dirs": self._folder / "data",
            "offsets.topic.replication.factor": 1,
            "offsets.topic.num.partitions": 1,
            "connection.failed.authentication.delay.ms": 50,
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
            "listener.name.scram.sasl.enabled.mechanisms": "SCRAM-SHA-512",
            "listener.name.scram.scram-sha-512.sasl.jaas.config": (
                "org.apache.kafka.common.security.scram.ScramLoginModule required;"
            ),
            "listener.name.plain.sasl.enabled.mechanisms": "PLAIN",
            "listener.name.plain.plain.sasl.jaas.config": (
                "org.apache.kafka.common.security.plain.PlainLoginModule required "
                f'username="{USER}" password="{PASSWORD}" user_{USER}="{PASSWORD}";'
            ),
            "listener.name.mutual.ssl.client.auth": "required",
            # KIP-368: the broker closes a connection whose login is older.
            "listener.name.scram.scram-sha-512.connections.max.reauth.ms": SESSION_MS,
        }
        for listener in ("tls", "mutual", "expired", "wronghost", "scram"):
            name = {"expired": "expired", "wronghost": "wrong-host"}.get(listener, "server")
            prefix = f"listener.name.{listener}.ssl"
            settings[f"{prefix}.keystore.type"] = settings[f"{prefix}.truststore.type"] = "PEM"
            settings[f"{prefix}.keystore.location"] = self.pem(name)
            settings[f"{prefix}.truststore.location"] = self.pem("ca")
        return settings

    @contextmanager
    def running(self) -> Iterator[SecureBroker]:
        """Format, start, and wait until it responds; stop it at the end."""
        scram = f"SCRAM-SHA-512=[name={USER},password={PASSWORD}]"
        kraft = KraftProcess(
            self._folder, self._java, self._libs, self._properties(), scram=[scram], ports=self.ports.values()
        )
        with kraft.running() as self._process:
            yield self
        self._process = None
