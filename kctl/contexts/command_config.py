"""Client properties, as in --command-config of Kafka's tools: the servers and security settings of a cluster.

Names: Kafka's, librdkafka's and Spring's (`kctl.contexts.client_properties.name_lookup`). References to config
providers are resolved, placeholders rejected. For Java keystores, the error has the commands that convert them to PEM.
The settings for ZooKeeper are those of brokers and zookeeper-shell: zookeeper.ssl.client.enable,
zookeeper.ssl.truststore.* and zookeeper.ssl.keystore.* (PEM), zookeeper.ssl.endpoint.identification.algorithm. Keys
that do not concern the connection are ignored; security settings that kctl cannot apply are rejected.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from kctl.base.address import parse_servers
from kctl.base.input_file import read_input
from kctl.base.properties import load_properties
from kctl.contexts.client_properties import names
from kctl.contexts.client_properties.login import raw_options, read_login
from kctl.contexts.client_properties.name_lookup import ClientSettings, client_settings
from kctl.contexts.client_properties.providers import Providers, Reference
from kctl.contexts.client_properties.stores import StoreKeys, read_stores
from kctl.errors import InvalidFile, NotFound, UsageError
from kctl.protocol.security import MECHANISMS, PROTOCOLS, Security
from kctl.protocol.tls_settings import cipher_list, tls_versions

MAX_BYTES = 1 << 20
_ZOOKEEPER = "zookeeper."
# Properties read from a pipe. A second read would find the pipe empty, and the client would connect in plaintext.
_read_once: dict[str, dict[str, str]] = {}


@dataclass(frozen=True, slots=True)
class ClientConfig:
    """The properties for a cluster. bootstrap_servers: empty if not set.

    password_from, key_password_from: the config provider reference, if the whole secret is such a reference. left_out:
    keys that do not concern the connection.
    """

    bootstrap_servers: tuple[str, ...]
    security: Security
    password_from: Reference | None
    key_password_from: Reference | None
    left_out: tuple[str, ...]


def read_client_config(file: str, *, ignore_unknown: bool = False) -> tuple[tuple[str, ...], Security, Security]:
    """Return the servers in a .properties file (empty if not set) and its security settings for brokers and ZooKeeper.

    The file is read only once, since it may be a pipe. Raises UsageError, InvalidFile.
    """
    properties = read_properties(file)
    source = str(Path(file).expanduser())
    config = client_config(properties, source=source, ignore_unknown=ignore_unknown)
    return config.bootstrap_servers, config.security, zookeeper_security(properties, source=source)


def read_properties(file: str, *, await_writer: bool = True) -> dict[str, str]:
    """Return the properties of a file. await_writer: see read_input. Raises UsageError, InvalidFile."""
    path = Path(file).expanduser()
    if str(path) in _read_once:
        return dict(_read_once[str(path)])
    try:
        data, _ = read_input(path, max_bytes=MAX_BYTES, await_writer=await_writer)
    except NotFound:
        raise UsageError(f"cannot read {path}: No such file or directory") from None
    properties = load_properties(data, source=str(path))
    if not path.is_file():
        _read_once[str(path)] = properties
    return dict(properties)


def security_from_properties(properties: Mapping[str, str], *, source: str) -> Security:
    """Return the security settings for brokers. Files are read when a connection is opened. Raises InvalidFile."""
    return client_config(properties, source=source).security


def client_config(properties: Mapping[str, str], *, source: str, ignore_unknown: bool = False) -> ClientConfig:
    """Return the settings for brokers. source: the file's name, for errors.

    ignore_unknown: ignore unknown security settings instead of rejecting them. Raises InvalidFile.
    """
    settings = client_settings(properties, source=source, ignore_unknown=ignore_unknown)
    providers = Providers(properties, source)
    keys = StoreKeys(source, lambda key: _resolved(settings, providers, key), settings.name)
    security = _security(keys)
    password, key_password = settings.get(names.PASSWORD), settings.get(names.KEY_PASSWORD)
    if jaas := settings.get(names.JAAS):
        password = raw_options(jaas).get("password")
    return ClientConfig(
        bootstrap_servers=_servers(keys),
        security=security,
        password_from=providers.reference(password or "") if security.sasl else None,
        key_password_from=providers.reference(key_password or "") if security.tls else None,
        left_out=settings.left_out,
    )


def _servers(keys: StoreKeys) -> tuple[str, ...]:
    text = keys.value(names.BOOTSTRAP)
    if not text:
        return ()
    try:
        return parse_servers(text)
    except UsageError as exc:
        raise InvalidFile(f"{keys.source}: {keys.name(names.BOOTSTRAP)}: {exc.message}", hint=exc.hint) from None


def _security(keys: StoreKeys) -> Security:
    protocol = (keys.value(names.PROTOCOL) or "PLAINTEXT").upper()
    if protocol not in PROTOCOLS:
        raise InvalidFile(
            f"{keys.source}: {keys.name(names.PROTOCOL)} {protocol!r} is unknown",
            hint=f"use one of {', '.join(PROTOCOLS)}",
        )
    mechanism = username = password = None
    if protocol.startswith("SASL_"):
        mechanism = _mechanism(keys)
        username, password = read_login(keys, mechanism)
    if not protocol.endswith("SSL"):
        return Security(protocol, mechanism, username, password)
    _check_verification(keys)
    stores = read_stores(keys)
    security = Security(
        protocol=protocol,
        sasl_mechanism=mechanism,
        sasl_username=username,
        sasl_password=password,
        ssl_cafile=stores.ca_file,
        ssl_certfile=stores.certificate_file,
        ssl_keyfile=stores.key_file,
        ssl_key_password=keys.value(names.KEY_PASSWORD),
        ssl_check_hostname=_checks_hostname(keys, keys.value(names.CHECK_HOSTNAME)),
        ssl_ca_pem=stores.ca_pem,
        ssl_client_pem=stores.client_pem,
        ssl_protocols=keys.value(names.PROTOCOLS) or None,
        ssl_ciphers=keys.value(names.CIPHERS) or None,
    )
    for key, check, value in (
        (names.PROTOCOLS, tls_versions, security.ssl_protocols), (names.CIPHERS, cipher_list, security.ssl_ciphers),
    ):  # fmt: skip
        try:
            check(value)
        except ValueError as exc:
            raise InvalidFile(
                f"{keys.source}: {keys.name(key)}: {exc}", hint="leave it out to use the defaults"
            ) from None
    return security


def zookeeper_security(properties: Mapping[str, str], *, source: str) -> Security:
    """Return the security settings for ZooKeeper (org.apache.kafka.server.config.ZkConfigs): TLS or plaintext."""
    if properties.get(f"{_ZOOKEEPER}ssl.client.enable", "false").strip().lower() != "true":
        return Security()
    providers = Providers(properties, source)

    def value(key: str) -> str | None:
        name = _ZOOKEEPER + key
        if name not in properties:
            return None
        return providers.resolve(name, properties[name], secret=key.endswith("password")).strip() or None

    keys = StoreKeys(source, value, lambda key: _ZOOKEEPER + key)
    stores = read_stores(keys)
    return Security(
        protocol="SSL",
        ssl_cafile=stores.ca_file,
        ssl_certfile=stores.certificate_file,
        ssl_key_password=value("ssl.keystore.password"),
        ssl_check_hostname=_checks_hostname(keys, properties.get(_ZOOKEEPER + names.CHECK_HOSTNAME)),
    )


def _resolved(settings: ClientSettings, providers: Providers, key: str) -> str | None:
    value = settings.get(key)
    if value is None:
        return None
    if key == names.JAAS:
        for option in raw_options(value).values():
            providers.check_replaced(settings.name(key), option)
    return providers.resolve(settings.name(key), value, secret=key in names.SECRETS or key == names.USERNAME)


def _mechanism(keys: StoreKeys) -> str:
    written = keys.value(names.MECHANISM)
    use = f"use one of {', '.join(MECHANISMS)}"
    if written is None:
        raise InvalidFile(f"{keys.source}: {names.MECHANISM} is missing, and GSSAPI is not supported", hint=use)
    mechanism = written.upper()
    if mechanism not in MECHANISMS:
        raise InvalidFile(f"{keys.source}: {keys.name(names.MECHANISM)} {mechanism} is not supported", hint=use)
    return mechanism


def _check_verification(keys: StoreKeys) -> None:
    """Refuse to turn verification off, which librdkafka allows."""
    written = keys.value(names.VERIFICATION)
    if written and written.lower() not in {"true", "t", "1"}:
        raise InvalidFile(
            f"{keys.source}: {keys.name(names.VERIFICATION)}={written} is not supported: kctl verifies certificates",
            hint="set the CA: ssl.ca.location, or ssl.truststore.location with ssl.truststore.type=PEM",
        )


def _checks_hostname(keys: StoreKeys, written: str | None) -> bool:
    algorithm = "https" if written is None else written.strip().lower()
    if algorithm not in {"https", "none", ""}:
        raise InvalidFile(
            f"{keys.source}: {keys.name(names.CHECK_HOSTNAME)} {algorithm!r} is unknown",
            hint="use https to check the host name, or an empty value (librdkafka: none) to skip the check",
        )
    return algorithm == "https"
