"""A cluster with an authorizer: one KRaft broker with SASL_PLAINTEXT and SCRAM-SHA-512, a super user, and a user
without permissions.

    kctl("topic", "list", "--bootstrap-server", secure.bootstrap, "--command-config", secure.nobody)

`python tests/support/secure_cluster.py FOLDER PORT` starts one for development, prints its pid and leaves it running.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from kctl_testing import Kctl, free_ports
from kraft_process import KraftProcess

PASSWORDS: Mapping[str, str] = {"admin": "admin-staple-61b0", "nobody": "nobody-battery-0f3e"}


@dataclass(frozen=True)
class SecureCluster:
    """A running cluster. bootstrap: the value of --bootstrap-server. folder: the folder in which `user` writes files.

    admin, nobody: files for --command-config, of the super user and of a user without ACLs.
    """

    bootstrap: str
    folder: Path

    @property
    def admin(self) -> str:
        return str(self.folder / "admin.properties")

    @property
    def nobody(self) -> str:
        return str(self.folder / "nobody.properties")

    def options(self, properties: str) -> tuple[str, ...]:
        """Return the options for this cluster with the login in a properties file."""
        return "--bootstrap-server", self.bootstrap, "--command-config", properties

    def user(self, name: str, password: str) -> str:
        """Write a file for --command-config with another login. The user is created by `kctl user add`."""
        path = self.folder / f"{name}.properties"
        path.touch(mode=0o600)
        path.write_text(
            "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=SCRAM-SHA-512\n"
            "sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required "
            f'username="{name}" password="{password}";\n'
        )
        return str(path)


def remove_acls(kctl: Kctl, principal: str, *options: str) -> None:
    """Remove all ACLs of a principal, at the end of a test."""
    words = [row["acl"] for row in kctl.json("acl", "list", "--principal", principal, *options)]
    if words:
        kctl.ok("acl", "remove", *words, "--yes", *options)


def _process(folder: Path, java: Path, libs: Path, ports: tuple[int, int, int]) -> KraftProcess:
    clients, brokers, controller = ports
    login = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
    settings: dict[str, object] = {
        "process.roles": "broker,controller",
        "node.id": 1,
        "controller.quorum.voters": f"1@127.0.0.1:{controller}",
        "controller.listener.names": "CONTROLLER",
        "inter.broker.listener.name": "BROKERS",
        "listeners": f"CLIENTS://127.0.0.1:{clients},BROKERS://127.0.0.1:{brokers},CONTROLLER://127.0.0.1:{controller}",
        "advertised.listeners": f"CLIENTS://127.0.0.1:{clients},BROKERS://127.0.0.1:{brokers}",
        "listener.security.protocol.map": "CLIENTS:SASL_PLAINTEXT,BROKERS:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "sasl.enabled.mechanisms": "SCRAM-SHA-256,SCRAM-SHA-512",
        "listener.name.clients.scram-sha-256.sasl.jaas.config": login,
        "listener.name.clients.scram-sha-512.sasl.jaas.config": login,
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        # The broker itself connects without a login, on listeners that no test uses.
        "super.users": "User:admin;User:ANONYMOUS",
        "log.dirs": folder / "data",
        "offsets.topic.replication.factor": 1,
        "offsets.topic.num.partitions": 1,
        "transaction.state.log.replication.factor": 1,
        "transaction.state.log.min.isr": 1,
        "transaction.state.log.num.partitions": 1,
        "group.initial.rebalance.delay.ms": 0,
        "connection.failed.authentication.delay.ms": 50,
        # Allows transactions that no coordinator knows, which KIP-890 prevents.
        "transaction.partition.verification.enable": "false",
    }
    scram = [f"SCRAM-SHA-512=[name={name},password={password}]" for name, password in PASSWORDS.items()]
    return KraftProcess(folder, java, libs, settings, scram=scram, ports=ports)


def _described(folder: Path, port: int) -> SecureCluster:
    cluster = SecureCluster(f"127.0.0.1:{port}", folder)
    for name, password in PASSWORDS.items():
        cluster.user(name, password)
    return cluster


@contextmanager
def secure_cluster(folder: Path, java: Path, libs: Path) -> Iterator[SecureCluster]:
    """Yield a cluster that runs for the block."""
    clients, brokers, controller = free_ports(3)
    with _process(folder, java, libs, (clients, brokers, controller)).running():
        yield _described(folder, clients)


def main(folder: Path, port: int) -> int:
    """Start a cluster and leave it running."""
    from kctl.deploy.runtime.java import find_java
    from kctl.deploy.runtime.runtime import ensure_runtime

    folder.mkdir(parents=True, exist_ok=True)
    process = _process(folder, find_java().executable, ensure_runtime().libs, (port, port + 1, port + 2)).start()
    _described(folder, port)
    (folder / "pid").write_text(f"{process.pid}\n")
    sys.stdout.write(f"pid {process.pid}, 127.0.0.1:{port}, {folder}/admin.properties, {folder}/nobody.properties\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve(), int(sys.argv[2])))
