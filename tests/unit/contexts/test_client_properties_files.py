"""Client properties as files: pipes, other programs' formats, PEM text, and how people write JAAS."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kctl.contexts import command_config
from kctl.contexts.command_config import client_config, read_client_config, zookeeper_security
from kctl.errors import InvalidFile
from kctl.protocol.security import Security

CERTIFICATES = Path(__file__).parents[2] / "data" / "tls"
SECRET = "s3cret-7c2e"
JAAS = f'org.apache.kafka.common.security.plain.PlainLoginModule required username="ops" password="{SECRET}";'
PLAIN = Security("SASL_PLAINTEXT", "PLAIN", "ops", SECRET)
KAFKA = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.jaas.config": JAAS}
RDKAFKA = {
    "security.protocol": "sasl_plaintext", "sasl.mechanisms": "PLAIN", "sasl.username": "ops", "sasl.password": SECRET,
}  # fmt: skip
TLS = {"security.protocol": "ssl"}


def security(properties: dict[str, str], *, ignore_unknown: bool = False) -> Security:
    return client_config(properties, source="f", ignore_unknown=ignore_unknown).security


def test_a_dollar_within_a_password_means_nothing() -> None:
    for password in ("pa$$word", "a$b", "1$PATH", "x{y}", "100%", "$", "$1", "a#b", "<x>", "~", "a@b@c"):
        assert security({**RDKAFKA, "sasl.password": password}).sasl_password == password
        jaas = {**KAFKA, "sasl.jaas.config": JAAS.replace(SECRET, password)}
        assert security(jaas).sasl_password == password


@pytest.mark.parametrize(
    "key", ["security_protocol", "ssl.foo", "my.sasl.thing", "sasl.login.class", "ssl.crl.location"]
)
def test_unknown_ones_are_left_out_on_request(key: str) -> None:
    assert security({**KAFKA, key: "x"}, ignore_unknown=True) == PLAIN
    assert key in client_config({**KAFKA, key: "x"}, source="f", ignore_unknown=True).left_out


def test_a_brokers_own_file_serves_for_zookeeper() -> None:
    properties = {
        "zookeeper.connect": "zk:2281", "zookeeper.ssl.client.enable": "true",
        "zookeeper.ssl.truststore.location": "/z.pem",
        "listener.name.internal.scram-sha-512.sasl.jaas.config": JAAS, "security.inter.broker.protocol": "SASL_SSL",
        "ssl.keystore.location": "/k.jks", "ssl.keystore.password": SECRET,
    }  # fmt: skip
    assert security(properties) == Security()
    assert zookeeper_security(properties, source="f") == Security("SSL", ssl_cafile="/z.pem")


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        ({}, ()),
        ({"bootstrap.servers": "a:1, b:2"}, ("a:1", "b:2")),
        ({"metadata.broker.list": "a:1"}, ("a:1",)),
        ({"spring.kafka.bootstrap-servers": "a:1"}, ("a:1",)),
        ({"spring.kafka.bootstrapServers": "a:1"}, ("a:1",)),
        ({"spring.kafka.admin.bootstrap-servers": "b:1", "spring.kafka.bootstrap-servers": "a:1"}, ("b:1",)),
        ({"consumer.bootstrap.servers": "a:1", "bootstrap.servers": "b:1"}, ("b:1",)),
        ({"bootstrap.servers": "a:1", "metadata.broker.list": "a:1"}, ("a:1",)),
    ],
)
def test_bootstrap_servers(properties: dict[str, str], expected: tuple[str, ...]) -> None:
    assert client_config(properties, source="f").bootstrap_servers == expected


def test_pem_text() -> None:
    ca, client = ((CERTIFICATES / name).read_text().strip() for name in ("ca.pem", "client.pem"))
    key, certificate = client.split("-----BEGIN CERTIFICATE-----")
    certificate = f"-----BEGIN CERTIFICATE-----{certificate}"
    for properties in (
        {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": ca, "ssl.keystore.type": "PEM",
         "ssl.keystore.key": key, "ssl.keystore.certificate.chain": certificate},
        {"ssl.ca.pem": ca, "ssl.key.pem": key, "ssl.certificate.pem": certificate},
    ):  # fmt: skip
        found = security({**TLS, **properties})
        assert found.ssl_ca_pem == ca
        assert found.ssl_client_pem == f"{key}\n{certificate}"
        assert found.has_certificate
        assert "BEGIN PRIVATE" not in repr(found)
        assert found.ssl_client_pem in found.secrets


@pytest.mark.parametrize(
    "password", ["$ecret7c2e", "{{s3cret}}", "${s3cret:7c2e}", "a{{s3cret}}b", "%s3cret%", "${s3cret"]
)
def test_a_password_that_looks_like_a_placeholder_is_not_shown(password: str) -> None:
    for properties in (
        {**RDKAFKA, "sasl.password": password},
        {**KAFKA, "sasl.jaas.config": JAAS.replace(SECRET, password)},
    ):
        with pytest.raises(InvalidFile) as caught:
            client_config(properties, source="f")
        assert "7c2e" not in caught.value.message
        assert "s3cret}" not in caught.value.message
        assert "ecret7" not in caught.value.message


def test_a_pipe_is_read_once() -> None:
    """The second reading of a pipe is empty: the command would connect in the clear."""
    reader, writer = os.pipe()
    try:
        os.write(writer, "".join(f"{key}={value}\n" for key, value in RDKAFKA.items()).encode())
        os.close(writer)
        for _ in range(2):
            assert read_client_config(f"/dev/fd/{reader}")[1] == PLAIN
    finally:
        command_config._read_once.clear()
        os.close(reader)


@pytest.mark.parametrize(
    "text",
    [
        "spring:\n  kafka:\n    security:\n      protocol: SASL_SSL\n",
        '{"security.protocol": "SASL_SSL",\n "sasl.mechanism": "PLAIN"}\n',
        '"security.protocol" = "SASL_SSL"\n',
        "tlsEnabled=true\n",
        "useSSL=true\n",
        "sasl.enabled=true\n",
        "KAFKA_SECURITY_PROTOCOL=SASL_SSL\n",
    ],
)
def test_files_of_other_kinds(text: str, tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text(text)
    with pytest.raises(InvalidFile, match="unknown setting"):
        read_client_config(str(file))


def test_files_of_the_field(tmp_path: Path) -> None:
    """librdkafka's files, and JAAS in braces or in quotes as a whole."""
    base = "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
    quoted = JAAS.replace('"', '\\"')
    for text in (
        f"security.protocol=SASL_PLAINTEXT\nsasl.mechanisms=PLAIN\nsasl.username=ops\nsasl.password={SECRET}\n",
        f"{base}sasl.jaas.config=KafkaClient {{ {JAAS} }};\n",
        f'{base}sasl.jaas.config="{quoted}"\n',
        f'{base}sasl.jaas.config="{JAAS}"\r\n',
        f"{base}sasl.jaas.config={JAAS.replace('org.apache', 'kafkashaded.org.apache')}\n",
        f"{base}sasl.jaas.config={JAAS.replace('required', 'REQUIRED /* as before */')}\n",
    ):
        file = tmp_path / "client.properties"
        file.write_text(text)
        assert read_client_config(str(file))[1] == PLAIN
