"""Where a schema registry is and how to log in to it: options, environment, and the keys of --command-config."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from kctl.errors import InvalidFile, UsageError
from kctl.records.decode.decoder_settings import DecoderSettings
from kctl.records.decode.registry_settings import RegistryOptions, decoder_settings

TLS = Path(__file__).parents[2] / "data" / "tls"
SASL_INHERIT = """basic.auth.credentials.source=SASL_INHERIT
security.protocol=SASL_SSL
sasl.mechanism=PLAIN
sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required username="me" password="secret";
"""


def _settings(tmp_path: Path, properties: str, **options: Any) -> DecoderSettings:
    file = tmp_path / "client.properties"
    file.write_text(properties)
    return decoder_settings(RegistryOptions(**options), command_config=str(file), timeout_s=1.0)


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        ("schema.registry.url=http://a,http://b", ("http://a,http://b", None, None)),
        ("schema.registry.url=http://me:p%40ss@a:1/x", ("http://a:1/x", "me:p@ss", None)),
        ("basic.auth.user.info=me:secret", (None, "me:secret", None)),
        ("basic.auth.credentials.source=USER_INFO\nschema.registry.basic.auth.user.info=me:secret",
         (None, "me:secret", None)),
        ("bearer.auth.token=t", (None, None, "t")),
        ("schema.registry.bearer.auth.credentials.source=STATIC_TOKEN\nschema.registry.bearer.auth.token=t",
         (None, None, "t")),
        (SASL_INHERIT, (None, "me:secret", None)),
    ],
)  # fmt: skip
def test_keys_of_a_properties_file(tmp_path: Path, properties: str, expected: tuple[str | None, ...]) -> None:
    result = _settings(tmp_path, properties)
    assert (result.schema_registry, result.registry_user_info, result.registry_token) == expected
    assert "secret" not in repr(result)
    assert "p@ss" not in repr(result)


def test_stores_and_what_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("KCTL_SCHEMA_REGISTRY")]:
        monkeypatch.delenv(name)
    text = (
        f"schema.registry.ssl.truststore.location={TLS / 'ca.pem'}\nschema.registry.ssl.truststore.type=PEM\n"
        f"schema.registry.ssl.keystore.location={TLS / 'client.pem'}\nschema.registry.ssl.key.password=k\n"
        "schema.registry.ssl.endpoint.identification.algorithm=\nschema.registry.url=http://a\nbearer.auth.token=t"
    )
    result = _settings(tmp_path, text)
    assert (result.registry_ca, result.registry_cert) == (str(TLS / "ca.pem"), str(TLS / "client.pem"))
    assert (result.registry_key_password, result.registry_check_hostname) == ("k", False)
    login = tmp_path / "login"
    login.write_text("me:secret\n")
    login.chmod(0o600)
    result = _settings(tmp_path, text, url="http://b", ca="x", user_info_file=str(login))
    assert (result.schema_registry, result.registry_ca) == ("http://b", "x")
    assert (result.registry_user_info, result.registry_token) == ("me:secret", None)
    monkeypatch.setenv("KCTL_SCHEMA_REGISTRY_TOKEN", "other")
    assert _settings(tmp_path, text).registry_token == "other"


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        ("basic.auth.user.info=${file:DIR/sr.properties:login}", {"registry_user_info": "me:secret"}),
        ("schema.registry.basic.auth.user.info=${env:SR_USER}:${directory:DIR/mounted:password}",
         {"registry_user_info": "me:secret"}),
        ("schema.registry.url=https://${env:SR_USER}:${directory:DIR/mounted:password}@h:1",
         {"schema_registry": "https://h:1", "registry_user_info": "me:secret"}),
        ("schema.registry.url=${env:SR_URL}", {"schema_registry": "http://a,http://b"}),
        ("bearer.auth.token=${directory:DIR/mounted:password}", {"registry_token": "secret"}),
        ("basic.auth.credentials.source=${env:SR_SOURCE}\nbasic.auth.user.info=a:b", {"registry_user_info": "a:b"}),
        ("schema.registry.ssl.key.password=${directory:DIR/mounted:password}", {"registry_key_password": "secret"}),
        ("schema.registry.ssl.truststore.location=${env:SR_TLS}/ca.pem", {"registry_ca": str(TLS / "ca.pem")}),
        ("schema.registry.ssl.keystore.location=${env:SR_TLS}/client.pem", {"registry_cert": str(TLS / "client.pem")}),
        ("schema.registry.ssl.endpoint.identification.algorithm=${file:DIR/sr.properties:empty}",
         {"registry_check_hostname": False}),
        (("bearer.auth.token=${f:DIR/sr.properties:login}\nconfig.providers=f\n"
         "config.providers.f.class=org.apache.kafka.common.config.provider.FileConfigProvider"),
         {"registry_token": "me:secret"}),
        (("basic.auth.credentials.source=SASL_INHERIT\nsecurity.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
         "sasl.username=${env:SR_USER}\nsasl.password=${directory:DIR/mounted:password}"),
         {"registry_user_info": "me:secret"}),
        # What is not needed is not read.
        ("schema.registry.ssl.truststore.password=${file:/no/file:x}\nbearer.auth.token=t", {"registry_token": "t"}),
    ],
)  # fmt: skip
def test_config_providers_are_resolved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, properties: str, expected: dict[str, Any]
) -> None:
    (tmp_path / "sr.properties").write_text("login=me:secret\nempty=\n")
    (tmp_path / "mounted").mkdir()
    (tmp_path / "mounted" / "password").write_text("secret\n")
    for name, value in (("USER", "me"), ("URL", "http://a,http://b"), ("SOURCE", "USER_INFO"), ("TLS", str(TLS))):
        monkeypatch.setenv(f"SR_{name}", value)
    result = _settings(tmp_path, properties.replace("DIR", str(tmp_path)))
    assert {name: getattr(result, name) for name in expected} == expected
    assert "secret" not in repr(result)


def test_a_login_of_an_option_takes_the_place_of_one_that_cannot_be_read(tmp_path: Path) -> None:
    login = tmp_path / "login"
    login.write_text("me:secret\n")
    login.chmod(0o600)
    result = _settings(tmp_path, "basic.auth.user.info=${vault:x:y}", user_info_file=str(login))
    assert result.registry_user_info == "me:secret"


@pytest.mark.parametrize(
    ("properties", "why"),
    [
        ("basic.auth.credentials.source=OAUTH", "credentials.source OAUTH is unknown"),
        ("bearer.auth.credentials.source=OAUTHBEARER", "OAUTHBEARER is not supported"),
        ("basic.auth.credentials.source=SASL_INHERIT", "there is no SASL login"),
        ("schema.registry.ssl.truststore.location=/x.jks\nschema.registry.ssl.truststore.type=JKS", "type is JKS"),
        ("schema.registry.ssl.truststore.location=/proc/version", "is neither PEM nor a keystore"),
        ("schema.registry.ssl.keystore.key=abc", "holds PEM text"),
        ("basic.auth.user.info=${file:/no/such/secrets:login}", "basic.auth.user.info refers to .*there is no file"),
        ("basic.auth.user.info=${vault:sr:login}", "basic.auth.user.info refers to .*is not a config provider"),
        ("schema.registry.basic.auth.user.info=$SR_LOGIN", "user.info has .*an unresolved placeholder"),
        ("bearer.auth.token={{ token }}", "bearer.auth.token has .*an unresolved placeholder"),
        ("schema.registry.url=http://${SR_HOST}:8081", "schema.registry.url has .*an unresolved placeholder"),
        ("schema.registry.ssl.truststore.location=$HOME/ca.pem", r"location has \$HOME, an unresolved placeholder"),
        ("schema.registry.ssl.key.password=${env:KCTL_NO_SUCH}", "KCTL_NO_SUCH is not set"),
        ("schema.registry.url=http://a\nconfig.providers=v\nconfig.providers.v.class=com.example.Vault",
         "config.providers.v.class is com.example.Vault"),
    ],
)  # fmt: skip
def test_keys_that_cannot_be_honored(tmp_path: Path, properties: str, why: str) -> None:
    with pytest.raises(InvalidFile, match=why):
        _settings(tmp_path, properties)


def test_a_pipe_is_left_to_the_connection(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    result = decoder_settings(RegistryOptions(url="http://h"), command_config=str(tmp_path / "pipe"), timeout_s=1.0)
    assert result.schema_registry == "http://h"


@pytest.mark.parametrize(("option", "value"), [("id_bytes", "6"), ("id_kind", "both"), ("id_bytes", "")])
def test_options_with_other_values(option: str, value: str) -> None:
    with pytest.raises(UsageError, match="is not a valid value"):
        decoder_settings(RegistryOptions(**{option: value}), command_config=None, timeout_s=1.0)
