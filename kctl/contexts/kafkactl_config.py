"""Read contexts from kafkactl's config file.

    contexts:
      prod:
        brokers: [kafka1:9093]
        tls: {enabled: true, ca: ca.pem, cert: client.pem, certKey: client.key, insecure: false}
        sasl: {enabled: true, username: ops, password: …, mechanism: scram-sha512}
    current-context: prod

Source: kafkactl's README, "Create a config file". Its keys are case-insensitive (viper). Connection
settings are used or rejected. Other settings (schemas, producer and consumer defaults) are reported as ignored.
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
class ImportableCluster:
    """A cluster in another tool's file. left_out: settings that do not apply to a context.

    password_from, key_password_from: the config provider reference, if the secret is one.
    """

    name: str
    bootstrap_servers: tuple[str, ...]
    security: Security
    left_out: tuple[str, ...]
    password_from: Reference | None = None
    key_password_from: Reference | None = None


@dataclass(frozen=True, slots=True)
class KafkactlConfig:
    """The importable contexts, the reasons why others are not importable, and the current context."""

    clusters: tuple[ImportableCluster, ...]
    refused: dict[str, str]
    current: str | None


def read_kafkactl_config(file: str) -> KafkactlConfig:
    """Read a config.yml. Raises UsageError, InvalidFile; messages never contain secrets."""
    from kctl.base import strict_yaml

    path = Path(file).expanduser()
    try:
        document = strict_yaml.load_file(path)
    except OSError as exc:
        raise UsageError(f"cannot read {path}: {exc.strerror}") from None
    top = _lower(document, str(path))
    entries = top.get("contexts")
    if not isinstance(entries, dict) or not entries:
        raise InvalidFile(f"{path} has no contexts", hint="check that it is kafkactl's config.yml")
    clusters: list[ImportableCluster] = []
    refused: dict[str, str] = {}
    for name, entry in entries.items():
        try:
            clusters.append(_cluster(str(name), _lower(entry, f"{path}: context {name}"), path.absolute().parent))
        except UsageError as exc:
            refused[str(name)] = exc.message
    current = top.get("current-context")
    return KafkactlConfig(tuple(clusters), refused, current if isinstance(current, str) else None)


def _lower(value: Any, where: str) -> dict[str, Any]:
    """Return a mapping with lower-case keys."""
    if not isinstance(value, dict):
        raise InvalidFile(f"{where}: must be a mapping")
    return {str(key).lower(): each for key, each in value.items()}


def _cluster(name: str, entry: dict[str, Any], folder: Path) -> ImportableCluster:
    from kctl.base.address import parse_servers

    brokers = entry.get("brokers")
    brokers = brokers.split() if isinstance(brokers, str) else brokers
    if not isinstance(brokers, list) or not brokers or not all(isinstance(each, str) for each in brokers):
        raise InvalidFile("brokers must be a list of host:port")
    for broker in brokers:
        without_placeholder("brokers", broker, secret=False)
    if _part(entry, "kubernetes"):
        raise InvalidFile("it runs kafkactl in a Kubernetes pod, which kctl does not support")
    return ImportableCluster(
        name=name,
        bootstrap_servers=parse_servers(",".join(brokers)),
        security=_security(_part(entry, "tls"), _part(entry, "sasl"), folder),
        left_out=tuple(key for key, value in entry.items() if key not in _CONNECTION and value not in (None, {}, "")),
    )


def _part(entry: dict[str, Any], key: str) -> dict[str, Any]:
    """Return the mapping of a key if it has `enabled: true`, else an empty one."""
    if entry.get(key) is None:
        return {}
    part = _lower(entry[key], key)
    enabled = part.get("enabled", False)
    if not isinstance(enabled, bool):
        raise InvalidFile(f"{key}.enabled must be true or false")
    return part if enabled else {}


def _security(tls: dict[str, Any], sasl: dict[str, Any], folder: Path) -> Security:
    if tls.get("insecure"):
        raise InvalidFile("tls.insecure disables certificate verification, which kctl requires: set tls.ca")
    mechanism = username = password = None
    if sasl:
        name = str(sasl.get("mechanism") or "plaintext").lower()
        if name not in _MECHANISMS:
            raise InvalidFile(f"sasl.mechanism {name} is not supported; use one of {', '.join(_MECHANISMS)}")
        mechanism = _MECHANISMS[name]
        username, password = _text(sasl, "username"), _text(sasl, "password")
        if not username or not password:
            raise InvalidFile("sasl.username or sasl.password is missing")
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
    """Return a string. The error for a number does not show it, since it may be a password without leading zeros."""
    value = part.get(key)
    if value is not None and not isinstance(value, str):
        raise InvalidFile(f"{key} must be a string: put it in quotes")
    return None if value is None else without_placeholder(key, value, secret=key in {"username", "password"})


def _file(part: dict[str, Any], key: str, folder: Path) -> str | None:
    """Return a path; relative paths are relative to the config file."""
    value = _text(part, key)
    return str(folder / Path(value).expanduser()) if value else None
