"""TLS to ZooKeeper: how a context and a properties file say it."""

from __future__ import annotations

from pathlib import Path

import pytest

from kctl.contexts import choose as context
from kctl.contexts.change import put_context
from kctl.contexts.choose import resolve_target
from kctl.contexts.command_config import zookeeper_security
from kctl.contexts.context import Context
from kctl.errors import InvalidFile, UsageError
from kctl.protocol.security import Security, SecuritySettings

TLS = SecuritySettings(protocol="SSL", ssl_cafile="/etc/zk-ca.pem")


@pytest.fixture(autouse=True)
def config_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "home" / "config.yaml"
    monkeypatch.setenv("KCTL_CONFIG", str(path))
    monkeypatch.delenv("KCTL_CONTEXT", raising=False)
    return path


def test_a_context_says_it_and_keeps_it(config_file: Path) -> None:
    put_context("prod", Context(("k:9092",), "zk:2281/prod", zookeeper_security=TLS), make_current=True)
    assert "zookeeper_security:\n      protocol: SSL" in config_file.read_text()
    target = resolve_target()
    assert target.zookeeper_security == Security("SSL", ssl_cafile="/etc/zk-ca.pem")
    assert target.security == Security()
    put_context("dev", Context(("k:9092",), "zk:2181"), make_current=True)
    assert resolve_target().zookeeper_security == Security()
    assert context.get_context("prod").zookeeper_security == TLS


def test_a_login_is_refused() -> None:
    sasl = SecuritySettings("SASL_SSL", "PLAIN", "ops", sasl_password_env="PW")
    with pytest.raises(UsageError, match="does not support ZooKeeper logins"):
        put_context("x", Context(("k:9092",), "zk:2181", zookeeper_security=sasl), make_current=True)


def test_a_properties_file_says_it_as_brokers_have_it(tmp_path: Path) -> None:
    file = tmp_path / "zk.properties"
    file.write_text(
        "zookeeper.ssl.client.enable=true\nzookeeper.ssl.truststore.location=/etc/ca.pem\n"
        "zookeeper.ssl.keystore.location=/etc/client.key\nzookeeper.ssl.keystore.type=PEM\n"
        "zookeeper.ssl.keystore.password=geheim\nzookeeper.ssl.endpoint.identification.algorithm=\n"
    )
    target = resolve_target(zookeeper="zk:2281", command_config=str(file))
    assert target.zookeeper_security == Security(
        "SSL", ssl_cafile="/etc/ca.pem", ssl_certfile="/etc/client.key", ssl_key_password="geheim",
        ssl_check_hostname=False,
    )  # fmt: skip
    assert target.security == Security(), "brokers are spoken to as before"
    assert "geheim" not in repr(target)


def test_java_keystores_are_refused_by_the_name_of_their_key() -> None:
    properties = {"zookeeper.ssl.client.enable": "true", "zookeeper.ssl.truststore.location": "/etc/ca.jks"}
    with pytest.raises(InvalidFile, match=r"zookeeper\.ssl\.truststore\.location is a Java keystore"):
        zookeeper_security(properties, source="f")
    assert zookeeper_security({**properties, "zookeeper.ssl.client.enable": "false"}, source="f") == Security()
