"""Kafka's client .properties, as --command-config of its tools takes them: the security settings of a cluster.

Keys: security.protocol, sasl.mechanism, sasl.jaas.config (PLAIN and SCRAM), ssl.truststore.* and ssl.keystore.* of
type PEM (KIP-651), as files, ssl.key.password, ssl.endpoint.identification.algorithm; for ZooKeeper, as brokers and
zookeeper-shell have them, zookeeper.ssl.client.enable, zookeeper.ssl.truststore.* and zookeeper.ssl.keystore.* (PEM),
zookeeper.ssl.endpoint.identification.algorithm. Keys that have nothing to do with the connection are left alone;
security settings that cannot be honoured are refused.
"""

from __future__ import annotations

import re
from pathlib import Path

from kctl.address import parse_servers
from kctl.context import MECHANISMS, PROTOCOLS, Security, full_path
from kctl.errors import InvalidFile, NotFound, UsageError
from kctl.input_file import read_input
from kctl.properties import load_properties

MAX_BYTES = 1 << 20

_MODULES = {
    "org.apache.kafka.common.security.plain.PlainLoginModule": ("PLAIN",),
    "org.apache.kafka.common.security.scram.ScramLoginModule": ("SCRAM-SHA-256", "SCRAM-SHA-512"),
}
# JAAS: LoginModuleClass flag key="value" …; (javax.security.auth.login.Configuration)
_JAAS = re.compile(
    r"\s*(?P<module>[\w.]+)\s+(?:required|requisite|sufficient|optional)\b(?P<options>.*);\s*", re.DOTALL
)
_OPTION = re.compile(r"""\s*(\w+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|([^\s;"']+))""", re.DOTALL)
# What a connection is made of: kctl honours these, or refuses them.
CONNECTION_KEYS = frozenset(
    {
        "bootstrap.servers", "security.protocol", "sasl.mechanism", "sasl.jaas.config", "ssl.key.password",
        "ssl.endpoint.identification.algorithm", "ssl.truststore.location", "ssl.truststore.type",
        "ssl.keystore.location", "ssl.keystore.type",
    }
)  # fmt: skip
_REFUSED = (
    "sasl.client.callback.handler.class",
    "sasl.login.callback.handler.class",
    "sasl.login.class",
    "ssl.engine.factory.class",
    "ssl.provider",
)


def read_command_config(file: str) -> Security:
    """The security settings of a .properties file. Raises UsageError, InvalidFile; the message never has a value
    of a secret."""
    return read_both(file)[0]


def read_both(file: str) -> tuple[Security, Security]:
    """The same for brokers, and for ZooKeeper."""
    properties = read_properties(file)
    source = str(Path(file).expanduser())
    return security_from_properties(properties, source=source), zookeeper_security(properties, source=source)


def read_client_config(file: str) -> tuple[tuple[str, ...], Security, Security]:
    """bootstrap.servers of the file (empty without), and what `read_both` gives. The file is read once: it may be a
    pipe."""
    properties = read_properties(file)
    source = str(Path(file).expanduser())
    security = security_from_properties(properties, source=source)
    return bootstrap_servers(properties, source=source), security, zookeeper_security(properties, source=source)


def bootstrap_servers(properties: dict[str, str], *, source: str) -> tuple[str, ...]:
    """The normal form of bootstrap.servers; empty without. Raises InvalidFile."""
    text = properties.get("bootstrap.servers", "").strip()
    if not text:
        return ()
    try:
        return parse_servers(text)
    except UsageError as exc:
        raise InvalidFile(f"{source}: bootstrap.servers: {exc.message}", hint=exc.hint) from None


def read_properties(file: str) -> dict[str, str]:
    """The keys and values of a .properties file. Raises UsageError, InvalidFile."""
    path = Path(file).expanduser()
    try:
        data, _ = read_input(path, max_bytes=MAX_BYTES)
    except NotFound:
        raise UsageError(f"cannot read {path}: No such file or directory") from None
    return load_properties(data, source=str(path))


def security_from_properties(properties: dict[str, str], *, source: str) -> Security:
    """The same, for properties at hand. PEM files are read when a connection is made."""
    for key in _REFUSED:
        if properties.get(key):
            raise InvalidFile(f"{source}: {key} names a Java class, which kctl cannot load")
    protocol = properties.get("security.protocol", "PLAINTEXT").strip().upper()
    if protocol not in PROTOCOLS:
        raise InvalidFile(
            f"{source}: security.protocol {protocol!r} is unknown", hint=f"use one of {', '.join(PROTOCOLS)}"
        )
    mechanism = username = password = None
    if protocol.startswith("SASL_"):
        mechanism = properties.get("sasl.mechanism", "GSSAPI").strip().upper()  # Kafka's default
        if mechanism not in MECHANISMS:
            raise InvalidFile(
                f"{source}: sasl.mechanism {mechanism} is not supported", hint=f"use one of {', '.join(MECHANISMS)}"
            )
        username, password = _credentials(properties, mechanism, source)
    if not protocol.endswith("SSL"):
        return Security(protocol, mechanism, username, password)
    algorithm = properties.get("ssl.endpoint.identification.algorithm", "https").strip()
    return Security(
        protocol=protocol,
        sasl_mechanism=mechanism,
        sasl_username=username,
        sasl_password=password,
        ssl_cafile=_store(properties, "truststore", source),
        ssl_certfile=_store(properties, "keystore", source),
        ssl_key_password=properties.get("ssl.key.password"),
        ssl_check_hostname=bool(algorithm),
    )


def zookeeper_security(properties: dict[str, str], *, source: str) -> Security:
    """How to talk to ZooKeeper (org.apache.kafka.server.config.ZkConfigs): TLS, or in the clear."""
    prefix = "zookeeper."
    if properties.get(f"{prefix}ssl.client.enable", "false").strip().lower() != "true":
        return Security()
    algorithm = properties.get(f"{prefix}ssl.endpoint.identification.algorithm", "https").strip()
    return Security(
        protocol="SSL",
        ssl_cafile=_store(properties, "truststore", source, prefix),
        ssl_certfile=_store(properties, "keystore", source, prefix),
        ssl_key_password=properties.get(f"{prefix}ssl.keystore.password"),
        ssl_check_hostname=bool(algorithm),
    )


def _credentials(properties: dict[str, str], mechanism: str, source: str) -> tuple[str, str]:
    jaas = properties.get("sasl.jaas.config")
    if not jaas:
        raise InvalidFile(
            f"{source}: sasl.jaas.config is missing", hint="a JAAS file (java.security.auth.login.config) is not read"
        )
    match = _JAAS.fullmatch(jaas)
    if match is None:
        raise InvalidFile(f"{source}: sasl.jaas.config cannot be understood", hint="it ends in a semicolon")
    known = _MODULES.get(match["module"], ())
    if mechanism not in known:
        raise InvalidFile(f"{source}: the login module {match['module']} does not serve {mechanism}")
    options = _jaas_options(match["options"], source)
    if options.get("tokenauth", "false").lower() != "false":
        raise InvalidFile(f"{source}: sasl.jaas.config logs in with a delegation token", hint="kctl takes no tokens")
    if not options.get("username") or not options.get("password"):
        raise InvalidFile(f"{source}: sasl.jaas.config has no username or no password")
    return options["username"], options["password"]


def _jaas_options(text: str, source: str) -> dict[str, str]:
    options: dict[str, str] = {}
    position = 0
    while text[position:].strip():
        match = _OPTION.match(text, position)
        if match is None:
            raise InvalidFile(f"{source}: an option of sasl.jaas.config cannot be understood")
        quoted = match[2] if match[2] is not None else match[3]
        options[match[1]] = match[4] if quoted is None else re.sub(r"\\(.)", r"\1", quoted, flags=re.DOTALL)
        position = match.end()
    return options


def _store(properties: dict[str, str], store: str, source: str, prefix: str = "") -> str | None:
    """The PEM file of a store, None without one. prefix: of the keys."""
    from kctl.tls import convert_hint

    name = f"{prefix}ssl.{store}"
    location = properties.get(f"{name}.location")
    inline = (
        ("ssl.truststore.certificates",)
        if store == "truststore"
        else ("ssl.keystore.certificate.chain", "ssl.keystore.key")
    )
    for key in inline:
        if properties.get(key):
            raise InvalidFile(
                f"{source}: {key} holds PEM text", hint=f"put it into a file and name it in {name}.location"
            )
    if not location:
        return None
    kind = properties.get(f"{name}.type", "PEM" if prefix and location.endswith(".pem") else "JKS").strip().upper()
    if kind != "PEM":
        raise InvalidFile(
            f"{source}: {name}.location is a Java keystore ({name}.type={kind})",
            hint=f"{convert_hint(location)}\nthen {name}.type=PEM",
        )
    return full_path(location)
