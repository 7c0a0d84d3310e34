"""Security and connection problems, each told apart: a broker with every kind of listener, one row each.

The clusters that kctl makes have plain listeners; commands/test_bad_input.py has the rows for those.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from kctl.protocol.client import connect
from kctl.protocol.security import Security
from kctl.protocol.target import Target
from kctl_testing import Kctl, within
from secure_broker import KEY_PASSWORD, PASSWORD, SESSION_MS, USER, SecureBroker

ANSWER_S = 5.0
WRONG_PASSWORD = "wrong-staple-91d0"
SECRETS = (PASSWORD, WRONG_PASSWORD, KEY_PASSWORD)


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory, kafka_home: Path) -> Iterator[SecureBroker]:
    from kctl.deploy.runtime.java import find_java

    made = SecureBroker(tmp_path_factory.mktemp("secure"), find_java().executable, kafka_home / "libs")
    with made.running():
        yield made


@dataclass(frozen=True)
class Row:
    """A listener, the settings of a context, and what `topic list` then says. code 3 unless it works."""

    name: str
    listener: str
    says: str
    error: str = ""  # the stable code of -o json; empty: it works
    security: dict[str, str | bool] = field(default_factory=dict)
    host: str = "localhost"
    exit_code: int = 3


TLS: dict[str, str | bool] = {"protocol": "SSL", "ssl_cafile": "{ca}"}
SCRAM: dict[str, str | bool] = {
    "protocol": "SASL_SSL", "sasl_mechanism": "SCRAM-SHA-512", "sasl_username": USER, "sasl_password_env": "GOOD",
    "ssl_cafile": "{ca}",
}  # fmt: skip
PLAIN: dict[str, str | bool] = {
    "protocol": "SASL_PLAINTEXT", "sasl_mechanism": "PLAIN", "sasl_username": USER, "sasl_password_env": "GOOD",
}  # fmt: skip
CLIENT: dict[str, str | bool] = {**TLS, "ssl_certfile": "{client}"}
ENCRYPTED: dict[str, str | bool] = {
    **TLS, "ssl_certfile": "{client-certificate}", "ssl_keyfile": "{client-key-encrypted}",
    "ssl_key_password_env": "KEY",
}  # fmt: skip

ROWS = [
    # --- what works
    Row("plaintext", "OPEN", "no topics"),
    Row("TLS", "TLS", "no topics", security=TLS),
    Row("TLS by address", "TLS", "no topics", security=TLS, host="127.0.0.1"),
    Row("TLS, host name not checked", "WRONGHOST", "no topics", security={**TLS, "ssl_check_hostname": False}),
    Row("TLS with a client certificate", "MUTUAL", "no topics", security=CLIENT),
    Row("TLS with an encrypted key", "MUTUAL", "no topics", security=ENCRYPTED),
    Row("SASL_SSL", "SCRAM", "no topics", security=SCRAM),
    Row("SASL_PLAINTEXT", "PLAIN", "no topics", security=PLAIN),
    # --- TLS where there is none, and the reverse
    Row("TLS to a plaintext port", "OPEN", "without TLS", "tls_mismatch", TLS),
    Row("SASL_SSL to a plaintext port", "OPEN", "without TLS", "tls_mismatch", SCRAM),
    Row("SASL_SSL to a SASL_PLAINTEXT port", "PLAIN", "without TLS", "tls_mismatch", SCRAM),
    Row("plaintext to a TLS port", "TLS", "speaks TLS", "tls_mismatch"),
    Row("plaintext to a SASL_SSL port", "SCRAM", "speaks TLS", "tls_mismatch"),
    Row("SASL_PLAINTEXT to a SASL_SSL port", "SCRAM", "speaks TLS", "tls_mismatch", PLAIN),
    # --- certificates
    Row("unknown CA", "TLS", "CA is not trusted", "certificate_rejected", {**TLS, "ssl_cafile": "{unknown-ca}"}),
    Row("the system's CAs", "TLS", "CA is not trusted", "certificate_rejected", {"protocol": "SSL"}),
    Row("wrong host name", "WRONGHOST", "another host name", "certificate_rejected", TLS),
    Row("wrong address", "WRONGHOST", "does not name this IP", "certificate_rejected", TLS, host="127.0.0.1"),
    Row("expired", "EXPIRED", "expired", "certificate_rejected", TLS),
    Row("client certificate required", "MUTUAL", "requires a client certificate", "certificate_rejected", TLS),
    Row("client certificate of an unknown CA", "MUTUAL", "rejected the client certificate",
        "certificate_rejected", {**TLS, "ssl_certfile": "{stranger}"}),
    # --- logins
    Row("wrong password", "SCRAM", "rejected the login of 'ops'", "authentication_failed",
        {**SCRAM, "sasl_password_env": "BAD"}),
    Row("wrong password, PLAIN", "PLAIN", "rejected the login of 'ops'", "authentication_failed",
        {**PLAIN, "sasl_password_env": "BAD"}),
    Row("unknown user", "SCRAM", "rejected the login of 'nobody'", "authentication_failed",
        {**SCRAM, "sasl_username": "nobody"}),
    Row("mechanism not enabled", "SCRAM", "enabled mechanisms: SCRAM-SHA-512", "authentication_failed",
        {**SCRAM, "sasl_mechanism": "PLAIN"}),
    Row("login where none is taken", "OPEN", "does not support SASL", "authentication_failed", PLAIN),
    Row("login where none is taken, TLS", "TLS", "does not support SASL", "authentication_failed", SCRAM),
    Row("no login where one is wanted", "PLAIN", "SASL mechanisms: PLAIN", "authentication_failed"),
    Row("no login where one is wanted, TLS", "SCRAM", "SASL mechanisms: SCRAM-SHA-512", "authentication_failed", TLS),
    # --- other ports
    Row("a KRaft controller's port", "CONTROLLER", "KRaft controller", "not_kafka"),
    # --- settings that cannot work
    Row("password not set", "SCRAM", "ABSENT", "usage", {**SCRAM, "sasl_password_env": "ABSENT"}, exit_code=2),
    Row("CA file absent", "TLS", "/absent.pem", "usage", {**TLS, "ssl_cafile": "/absent.pem"}, exit_code=2),
    Row("CA file is not PEM", "TLS", "make.sh", "usage", {**TLS, "ssl_cafile": "{folder}/make.sh"}, exit_code=2),
    Row("wrong key password", "MUTUAL", "the password of the key in", "usage",
        {**ENCRYPTED, "ssl_key_password_env": "BAD"}, exit_code=2),
    Row("key password missing", "MUTUAL", "encrypted", "usage",
        {k: v for k, v in ENCRYPTED.items() if k != "ssl_key_password_env"}, exit_code=2),
    Row("key of another certificate", "MUTUAL", "does not belong", "usage",
        {**TLS, "ssl_certfile": "{client-certificate}", "ssl_keyfile": "{stranger}"}, exit_code=2),
]  # fmt: skip


def _filled(value: str | bool, broker: SecureBroker) -> str | bool:
    """Return the value; {ca} is the path of ca.pem."""
    if not isinstance(value, str) or not value.startswith("{"):
        return value
    name, _, rest = value[1:].partition("}")
    return (str(Path(broker.pem("ca")).parent) if name == "folder" else broker.pem(name)) + rest


@pytest.fixture
def secure_kctl(own_kctl: Kctl) -> Kctl:
    return own_kctl.with_environment(GOOD=PASSWORD, BAD=WRONG_PASSWORD, KEY=KEY_PASSWORD)


def _use(kctl: Kctl, row: Row, broker: SecureBroker) -> None:
    security = {key: _filled(value, broker) for key, value in row.security.items()}
    server = f"{row.host}:{broker.ports[row.listener]}"
    context = {"bootstrap_servers": [server], "security": security or None}
    folder = kctl.home / ".config" / "kctl"
    folder.mkdir(parents=True)
    (folder / "config.yaml").write_text(json.dumps({"current_context": "it", "contexts": {"it": context}}))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name.replace(" ", "-"))
def test_row(secure_kctl: Kctl, broker: SecureBroker, row: Row) -> None:
    _use(secure_kctl, row, broker)
    result = secure_kctl("topic", "list", "-v", "--debug")
    expected = row.exit_code if row.error else 0
    assert result.code == expected, str(result)
    assert row.says in result.err, str(result)
    assert result.seconds < within(ANSWER_S), str(result)
    for secret in SECRETS:
        assert secret not in result.out + result.err
    if not row.error:
        return
    quiet = secure_kctl("topic", "list", "-o", "json")
    assert quiet.code == expected
    assert quiet.out == ""
    assert "Traceback" not in quiet.err
    error = json.loads(quiet.err)
    assert (error["code"], error["exit_code"]) == (row.error, expected)
    assert error["hint"]
    assert quiet.seconds < within(ANSWER_S)


@pytest.mark.parametrize(("listener", "security"), [("SCRAM", SCRAM), ("PLAIN", PLAIN), ("MUTUAL", CLIENT)])
def test_every_command_works_over_it(
    secure_kctl: Kctl, broker: SecureBroker, listener: str, security: dict[str, str | bool]
) -> None:
    _use(secure_kctl, Row("", listener, "", security=security), broker)
    topic = f"over-{listener.lower()}"
    secure_kctl.ok("topic", "create", topic, "--partitions", "1", "--replication-factor", "1")
    produced = secure_kctl.ok("produce", topic, "-v", stdin="one\ntwo\n")
    assert "connected to" in produced.err
    assert not [secret for secret in SECRETS if secret in produced.err]
    assert secure_kctl.ok("consume", topic, "--from-beginning", "--exit-eof").out.split() == ["one", "two"]
    assert secure_kctl.json("topic", "describe", topic)[0]["partition_count"] == 1
    secure_kctl.ok("topic", "delete", topic, "--yes")


def test_writing_outlives_logins_over_tls(secure_kctl: Kctl, broker: SecureBroker) -> None:
    """A login of the listener lasts 3 s; megabytes go through TLS, and records after two of its ends."""
    _use(secure_kctl, Row("", "SCRAM", "", security=SCRAM), broker)
    secure_kctl.ok("topic", "create", "outlives", "--partitions", "3")
    assert secure_kctl.json("produce", "outlives", "--size", "100kB", "--count", "300")["acknowledged"] == 300
    slow = secure_kctl.json("produce", "outlives", "--template", "{n}", "--rate", "4/s", "--count", "36")
    assert (slow["acknowledged"], slow["duration_ms"] > 2 * SESSION_MS) == (36, True)
    secure_kctl.ok("topic", "delete", "outlives", "--yes")


def test_context_add_and_kafkas_own_properties(secure_kctl: Kctl, broker: SecureBroker, tmp_path: Path) -> None:
    password = tmp_path / "password"
    password.write_text(PASSWORD + "\n")
    password.chmod(0o600)
    server = f"localhost:{broker.ports['SCRAM']}"
    added = secure_kctl.ok(
        "context", "add", "prod", "--bootstrap-server", server, "--security-protocol", "SASL_SSL",
        "--sasl-mechanism", "SCRAM-SHA-512", "--sasl-username", USER, "--sasl-password-file", str(password),
        "--ssl-cafile", broker.pem("ca"),
    )  # fmt: skip
    assert PASSWORD not in added.out + added.err
    secure_kctl.ok("topic", "list")
    password.chmod(0o444)  # as Kubernetes and Docker mount it
    assert "mode 0444" in secure_kctl.ok("topic", "list").err
    password.chmod(0o646)
    refused = secure_kctl("topic", "list")
    assert (refused.code, "chmod 600" in refused.err) == (2, True)

    properties = tmp_path / "client.properties"
    properties.write_text(
        "security.protocol=SASL_SSL\nsasl.mechanism=SCRAM-SHA-512\n"
        "sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required "
        f'username="{USER}" password="{PASSWORD}";\n'
        f"ssl.truststore.type=PEM\nssl.truststore.location={broker.pem('ca')}\n"
    )
    secure_kctl.ok("topic", "list", "--bootstrap-server", server, "--command-config", str(properties))

    (tmp_path / "ops.properties").write_text(f"password={PASSWORD}\n")
    ca = Path(broker.pem("ca")).read_text().strip().replace("\n", "\\n")
    reference = f"${{file:{tmp_path}/ops.properties:password}}"
    for text in (
        (
            f"sasl.mechanisms=SCRAM-SHA-512\nsasl.username={USER}\nsasl.password={reference}\n"
            f"ssl.ca.location={broker.pem('ca')}\nsecurity.protocol=sasl_ssl\nmetadata.broker.list={server}\n"
        ),
        (
            f"spring.kafka.security.protocol=SASL_SSL\nspring.kafka.properties.sasl.mechanism=SCRAM-SHA-512\n"
            f"spring.kafka.ssl.trust-store-certificates={ca}\nspring.kafka.bootstrap-servers={server}\n"
            "spring.kafka.properties.sasl.jaas.config=KafkaClient { shaded.org.apache.kafka.common.security.scram."
            f"ScramLoginModule REQUIRED /* */ username='{USER}' password='{PASSWORD}'; }};\n"
        ),
    ):
        properties.write_text(text)
        secure_kctl.ok("topic", "list", "--bootstrap-server", server, "--command-config", str(properties))


# --- several servers, and what brokers advertise ----------------------------------------------------------------------


@pytest.fixture
def silent() -> Iterator[int]:
    """The port of a socket that listens and never answers."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        sock.listen(64)
        yield sock.getsockname()[1]


def test_dead_servers_beside_a_live_one(own_kctl: Kctl, broker: SecureBroker, silent: int) -> None:
    good = f"localhost:{broker.ports['OPEN']}"
    dead = f"127.0.0.1:{broker.closed_port}"
    for servers in (f"{dead},{good}", f"127.0.0.1:{silent},{good}", f"nosuchhost.invalid,{dead},{good}"):
        result = own_kctl("topic", "list", "--bootstrap-server", servers)
        assert result.code == 0, str(result)
        assert result.seconds < within(ANSWER_S)
    assert f"warning: {dead} refused the connection" in result.err


def test_when_all_fail_the_most_telling_error_is_given(own_kctl: Kctl, broker: SecureBroker, silent: int) -> None:
    servers = f"127.0.0.1:{broker.closed_port},nosuchhost.invalid:1,127.0.0.1:{silent},localhost:{broker.ports['TLS']}"
    result = own_kctl("topic", "list", "--bootstrap-server", servers, "-o", "json")
    error = json.loads(result.err)
    assert (result.code, error["code"]) == (3, "tls_mismatch")
    assert result.seconds < within(ANSWER_S)
    assert [row["code"] for row in error["servers"]].count("connection_refused") == 1
    assert len(error["servers"]) == 4


@pytest.mark.parametrize("command", [["group", "list"], ["consume", "t", "--exit-eof"], ["topic", "create", "lost"]])
@pytest.mark.parametrize(("listener", "says"), [("LOST", "refused"), ("ASTRAY", "nosuchhost.invalid")])
def test_an_advertised_address_that_cannot_be_reached(
    own_kctl: Kctl, broker: SecureBroker, listener: str, says: str, command: list[str]
) -> None:
    server = f"localhost:{broker.ports[listener]}"
    with connect(Target("x", (f"localhost:{broker.ports['OPEN']}",))) as client:
        from kafka.protocol.admin import CreateTopicsRequest

        topic = CreateTopicsRequest.CreatableTopic(
            name="t", num_partitions=1, replication_factor=1, assignments=[], configs=[]
        )
        client.send_to_controller(CreateTopicsRequest(topics=[topic], timeout_ms=5000))
    result = own_kctl(*command, "--bootstrap-server", server)
    assert result.code == 3, str(result)
    assert result.seconds < within(ANSWER_S), str(result)
    assert "broker 1 is unreachable at its advertised address" in result.err
    assert says in result.err


def test_other_servers_on_the_port(own_kctl: Kctl) -> None:
    import threading

    def greet(listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                peer, _ = listener.accept()
                peer.sendall(b"SSH-2.0-OpenSSH_9.6\r\n")
                peer.close()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=greet, args=(listener,), daemon=True).start()
        port = listener.getsockname()[1]
        result = own_kctl("topic", "list", "--bootstrap-server", f"127.0.0.1:{port}")
        assert result.code == 3
        assert "SSH-2.0-OpenSSH_9.6" in result.err
        assert result.seconds < within(ANSWER_S)


def test_secrets_are_not_in_reprs(broker: SecureBroker) -> None:
    security = Security("SASL_PLAINTEXT", "PLAIN", USER, PASSWORD)
    with connect(Target("x", (f"localhost:{broker.ports['PLAIN']}",), security=security)) as client:
        assert PASSWORD not in repr(client.target)
        assert PASSWORD not in repr(vars(client))
