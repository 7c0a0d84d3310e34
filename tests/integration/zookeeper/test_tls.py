"""ZooKeeper that speaks TLS and wants certificates: a real server with a secureClientPort."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from kctl_testing import Kctl, eventually, free_ports, within

CERTIFICATES = Path(__file__).parents[2] / "data" / "tls"


@dataclass(frozen=True)
class SecureZooKeeper:
    """Its ports, in the clear and with TLS."""

    plain: str
    tls: str


@pytest.fixture(scope="module")
def secure_zookeeper(tmp_path_factory: pytest.TempPathFactory, kafka_home: Path) -> Iterator[SecureZooKeeper]:
    folder = tmp_path_factory.mktemp("zk-tls")
    plain, tls = free_ports(2)
    (folder / "zoo.cfg").write_text(
        f"dataDir={folder}/data\nclientPort={plain}\nclientPortAddress=127.0.0.1\n"
        f"secureClientPort={tls}\nsecureClientPortAddress=127.0.0.1\nadmin.enableServer=false\n"
        "serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory\n"
        f"ssl.keyStore.location={CERTIFICATES}/server.pem\nssl.trustStore.location={CERTIFICATES}/ca.pem\n"
    )
    argv = ["java", "-Xmx128M", "-cp", f"{kafka_home}/libs/*", "org.apache.zookeeper.server.quorum.QuorumPeerMain"]
    with (
        (folder / "zookeeper.log").open("w") as log,
        subprocess.Popen([*argv, "zoo.cfg"], cwd=folder, stdout=log, stderr=log) as process,
    ):
        try:
            yield SecureZooKeeper(f"127.0.0.1:{plain}", f"127.0.0.1:{tls}")
        finally:
            process.kill()


def _config(folder: Path, ca: str, client: str | None) -> str:
    """A file for --command-config, with the keys that brokers and zookeeper-shell have."""
    path = folder / f"{ca}-{client}.properties"
    path.write_text(
        f"zookeeper.ssl.client.enable=true\nzookeeper.ssl.truststore.location={CERTIFICATES}/{ca}\n"
        + (f"zookeeper.ssl.keystore.location={CERTIFICATES}/{client}\n" if client else "")
    )
    return str(path)


def test_it_is_read_over_tls(own_kctl: Kctl, secure_zookeeper: SecureZooKeeper, tmp_path: Path) -> None:
    good = ("--zookeeper", secure_zookeeper.tls, "--command-config", _config(tmp_path, "ca.pem", "client.pem"))
    eventually(lambda: own_kctl("zk", "stat", *good).code == 0, seconds=30, what="the server serves with TLS")
    (server,) = own_kctl.json("zk", "stat", *good)
    assert (server["mode"], server["healthy"]) == ("standalone", True)
    own_kctl.ok("context", "add", "prod", "--bootstrap-server", "127.0.0.1:9092", "--zookeeper", secure_zookeeper.tls)
    config = own_kctl.home / ".config" / "kctl" / "config.yaml"
    config.write_text(
        config.read_text()
        + "    zookeeper_security:\n      protocol: SSL\n"
        + f"      ssl_cafile: {CERTIFICATES}/ca.pem\n      ssl_certfile: {CERTIFICATES}/client.pem\n"
    )
    assert [row["name"] for row in own_kctl.json("zk", "ls", "/")] == ["zookeeper"]
    assert own_kctl.json("context", "show")["zookeeper_security"]["protocol"] == "SSL"


@pytest.mark.parametrize(
    ("port", "ca", "client", "message"),
    [
        ("tls", None, None, "speaks TLS"),
        ("plain", "ca.pem", "client.pem", "closed the connection during the TLS handshake"),
        ("tls", "ca.pem", None, "requires a client certificate"),
        ("tls", "ca.pem", "stranger.pem", "rejected the client certificate"),
        ("tls", "unknown-ca.pem", "client.pem", "its certificate's CA is not trusted"),
    ],
)
def test_what_is_wrong_is_told_apart(
    own_kctl: Kctl, secure_zookeeper: SecureZooKeeper, tmp_path: Path,
    port: str, ca: str | None, client: str | None, message: str,
) -> None:  # fmt: skip
    address = getattr(secure_zookeeper, port)
    given = ("--command-config", _config(tmp_path, ca, client)) if ca else ()

    def refused() -> bool:
        """Not before the server has begun."""
        result = own_kctl("zk", "ls", "/", "--zookeeper", address, *given, "-o", "json")
        return "refused the connection" not in result.err and _is(result.code, json.loads(result.err)["message"])

    def _is(code: int, said: str) -> bool:
        assert (code, message in said) == (3, True), said
        return True

    eventually(refused, seconds=within(30), what="the server takes connections")
