"""kafkactl's config file: its contexts, as kctl's own understand them.

    contexts:
      prod:
        brokers: [kafka1:9093]
        tls: {enabled: true, ca: ca.pem, cert: client.pem, certKey: client.key, insecure: false}
        sasl: {enabled: true, username: ops, password: …, mechanism: scram-sha512}
    current-context: prod

Source: kafkactl's README, "Create a config file". Its keys are case-insensitive (viper). What has to do with the
connection is honoured or refused; the rest (schemas, producer and consumer defaults) is named as left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kctl.contexts.client_properties.providers import Reference, without_placeholder
from kctl.errors import InvalidFile, UsageError
from kctl.protocol.security import Security

_MECHANISMS = {"plaintext": "PLAIN", "scram-sha256": "SCRAM-SHA-256", "scram-sha512": "SCRAM-SHA-512"}
_CONNECTION = {"brokers", "tls", "sasl", "kubernetes"}


@dataclass(frozen=True, slots=True)
class FoundCluster:
    """A cluster as another tool's file has it. left_out: its settings that have no place in a context.

    password_from, key_password_from: the config provider's reference in the file, where a secret is one.
    """

    name: str
    bootstrap_servers: tuple[str, ...]
    security: Security
    left_out: tuple[str, ...]
    password_from: Reference | None = None
    key_password_from: Reference | None = None


@dataclass(frozen=True, slots=True)
class KafkactlConfig:
    """The contexts that can be taken over, why the others cannot, and which one is current."""

    found: tuple[FoundCluster, ...]
    refused: dict[str, str]
    current: str | None


def read_kafkactl_config(file: str) -> KafkactlConfig:
    """Read a config.yml. Raises UsageError, InvalidFile; never with a secret in the message."""
    from kctl.base import strict_yaml

    path = Path(file).expanduser()
    try:
        document = strict_yaml.load_file(path)
    except OSError as exc:
        raise UsageError(f"cannot read {path}: {exc.strerror}") from None
    top = _lower(document, str(path))
    entries = top.get("contexts")
    if not isinstance(entries, dict) or not entries:
        raise InvalidFile(f"{path}: has no contexts", hint="is it kafkactl's config.yml?")
    found: list[FoundCluster] = []
    refused: dict[str, str] = {}
    for name, entry in entries.items():
        try:
            found.append(_cluster(str(name), _lower(entry, f"{path}: context {name}"), path.absolute().parent))
        except UsageError as exc:
            refused[str(name)] = exc.message
    current = top.get("current-context")
    return KafkactlConfig(tuple(found), refused, current if isinstance(current, str) else None)


def _lower(value: Any, where: str) -> dict[str, Any]:
    """A mapping with its keys in lower case."""
    if not isinstance(value, dict):
        raise InvalidFile(f"{where}: expected names with values")
    return {str(key).lower(): each for key, each in value.items()}


def _cluster(name: str, entry: dict[str, Any], folder: Path) -> FoundCluster:
    from kctl.base.address import parse_servers

    brokers = entry.get("brokers")
    brokers = brokers.split() if isinstance(brokers, str) else brokers
    if not isinstance(brokers, list) or not brokers or not all(isinstance(each, str) for each in brokers):
        raise InvalidFile("brokers must be a list of host:port")
    for broker in brokers:
        without_placeholder("brokers", broker, secret=False)
    if _part(entry, "kubernetes"):
        raise InvalidFile("it runs kafkactl in a Kubernetes pod, which kctl does not do")
    return FoundCluster(
        name=name,
        bootstrap_servers=parse_servers(",".join(brokers)),
        security=_security(_part(entry, "tls"), _part(entry, "sasl"), folder),
        left_out=tuple(key for key, value in entry.items() if key not in _CONNECTION and value not in (None, {}, "")),
    )


def _part(entry: dict[str, Any], key: str) -> dict[str, Any]:
    """A part that has `enabled: true`; empty otherwise."""
    if entry.get(key) is None:
        return {}
    part = _lower(entry[key], key)
    enabled = part.get("enabled", False)
    if not isinstance(enabled, bool):
        raise InvalidFile(f"{key}.enabled must be true or false")
    return part if enabled else {}


def _security(tls: dict[str, Any], sasl: dict[str, Any], folder: Path) -> Security:
    if tls.get("insecure"):
        raise InvalidFile("tls.insecure turns all checks off; kctl verifies: give the CA in tls.ca")
    mechanism = username = password = None
    if sasl:
        wanted = str(sasl.get("mechanism") or "plaintext").lower()
        if wanted not in _MECHANISMS:
            raise InvalidFile(f"sasl.mechanism {wanted} is not supported; {', '.join(_MECHANISMS)} are")
        mechanism = _MECHANISMS[wanted]
        username, password = _text(sasl, "username"), _text(sasl, "password")
        if not username or not password:
            raise InvalidFile("sasl has no username or no password")
    return Security(
        protocol=("SASL_" if sasl else "") + ("SSL" if tls else "PLAINTEXT"),
        sasl_mechanism=mechanism,
        sasl_username=username,
        sasl_password=password,
        ssl_cafile=_file(tls, "ca", folder),
        ssl_certfile=_file(tls, "cert", folder),
        ssl_keyfile=_file(tls, "certkey", folder),
    )


def _text(part: dict[str, Any], key: str) -> str | None:
    """Text; a number is refused without being shown, as it may be a password that lost its leading zeros."""
    value = part.get(key)
    if value is not None and not isinstance(value, str):
        raise InvalidFile(f"{key} is a number or a flag: put it in quotes")
    return None if value is None else without_placeholder(key, value, secret=key in {"username", "password"})


def _file(part: dict[str, Any], key: str, folder: Path) -> str | None:
    """A path, relative ones to the config file's folder."""
    value = _text(part, key)
    return str(folder / Path(value).expanduser()) if value else None
