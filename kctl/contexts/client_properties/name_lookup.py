"""Find client properties by any of their names.

The names are Kafka's and librdkafka's, with Spring's prefixes or the prefixes `admin.`, `producer.` and `consumer.` of
Connect and MirrorMaker. Settings for admin clients or for every client take precedence. Settings of producers and
consumers are used only if they agree. No key that may affect security is ignored: an unknown name is rejected, and so
are two names of one setting with different values.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from kctl.contexts.client_properties.names import (
    BOOTSTRAP,
    HARMLESS,
    HARMLESS_PREFIXES,
    MECHANISM,
    PROTOCOL,
    READ,
    REFUSED,
    SASL_KEYS,
    SECRETS,
    STORE_KEYS,
    SYNONYMS,
    concerns_security,
    is_known,
    right_name,
)
from kctl.errors import InvalidFile

_ADMIN, _EVERY, _OTHERS = 0, 1, 2  # lower ranks take precedence
_ROLES = {"admin": _ADMIN, "producer": _OTHERS, "consumer": _OTHERS, "streams": _OTHERS}
_SPRING = "spring.kafka."
_BINDER = "spring.cloud.stream.kafka.binder.configuration."
_MAP_KEY = re.compile(r"properties\[(.+)\]|properties\.(.+)")
# Spring's own names without dashes: Spring reads trust-store-location and trustStoreLocation
_SPRING_NAMES = {
    "bootstrapservers": BOOTSTRAP,
    "security.protocol": PROTOCOL,
    "ssl.protocol": "ssl.protocol",
    "ssl.keypassword": "ssl.key.password",
    "ssl.keystorelocation": "ssl.keystore.location",
    "ssl.keystorepassword": "ssl.keystore.password",
    "ssl.keystoretype": "ssl.keystore.type",
    "ssl.keystorekey": "ssl.keystore.key",
    "ssl.keystorecertificatechain": "ssl.keystore.certificate.chain",
    "ssl.truststorelocation": "ssl.truststore.location",
    "ssl.truststorepassword": "ssl.truststore.password",
    "ssl.truststoretype": "ssl.truststore.type",
    "ssl.truststorecertificates": "ssl.truststore.certificates",
}
_IGNORE = "--ignore-unknown ignores it"


@dataclass(frozen=True, slots=True)
class ClientSettings:
    """Values by Kafka's or librdkafka's name, as written in the file, with references unresolved.

    written_as: these names as written in the file. left_out: keys that kctl does not use.
    """

    source: str
    values: dict[str, str]
    written_as: dict[str, str]
    left_out: tuple[str, ...]

    def name(self, key: str) -> str:
        """Return the key as written in the file."""
        return self.written_as.get(key, key)

    def get(self, key: str) -> str | None:
        """Return the value without surrounding spaces, or None if it is missing. Secrets keep their spaces."""
        value = self.values.get(key)
        return value if value is None or key in SECRETS else value.strip()


@dataclass(frozen=True, slots=True)
class _WrittenValue:
    written_as: str
    value: str


def client_settings(properties: Mapping[str, str], *, source: str, ignore_unknown: bool = False) -> ClientSettings:
    """Return the settings of a file for one admin client. Raises InvalidFile with the key, never with a value."""
    lenient = ignore_unknown or any(key.startswith("zookeeper.") for key in properties)  # a broker's own file
    by_key: dict[str, dict[int, list[_WrittenValue]]] = {}
    left_out = []
    for written, value in properties.items():
        rank, key = _rank_and_name(written)
        if key in READ:
            by_key.setdefault(key, {}).setdefault(rank, []).append(_WrittenValue(written, value))
            continue
        if key in REFUSED and value.strip() and not ignore_unknown:
            login = "kctl logs in only with PLAIN or SCRAM; with these, " if key.startswith("sasl.") else ""
            raise InvalidFile(
                f"{source}: {written} is not supported: {REFUSED[key]}", hint=f"{login}remove it; {_IGNORE}"
            )
        if not is_known(key) and concerns_security(written) and not lenient:
            raise _unknown(source, written)
        if not written.startswith("config.providers"):
            left_out.append(written)
    entries = {key: _common_entry(source, key, ranks[min(ranks)]) for key, ranks in by_key.items()}
    values = {key: entry.value for key, entry in entries.items()}
    if not lenient:
        _check_protocol(source, values, entries)
    return ClientSettings(source, values, {key: each.written_as for key, each in entries.items()}, tuple(left_out))


def _rank_and_name(written: str) -> tuple[int, str]:
    """Return the rank of a key and its name in Kafka or librdkafka; an unknown key is returned as is."""
    key, rank = written.strip(), _EVERY
    if key.startswith(_BINDER):
        key = key[len(_BINDER) :]
    elif key.lower().startswith(_SPRING):
        return _spring(key)
    else:
        role, _, rest = key.partition(".")
        name = SYNONYMS.get(rest, rest)
        is_setting = name in READ or name in REFUSED or name in HARMLESS or rest.startswith(HARMLESS_PREFIXES)
        if role in _ROLES and is_setting:
            key, rank = rest, _ROLES[role]
    return rank, SYNONYMS.get(key, key)


def _spring(written: str) -> tuple[int, str]:
    rest, rank = written[len(_SPRING) :], _EVERY
    role, _, setting = rest.partition(".")
    if role.lower() in _ROLES:
        rest, rank = setting, _ROLES[role.lower()]
    if match := _MAP_KEY.fullmatch(rest):
        key = (match[1] or match[2]).strip("\"'")
        return rank, SYNONYMS.get(key, key)
    return rank, _SPRING_NAMES.get(re.sub("[-_]", "", rest).lower(), written)


def _unknown(source: str, written: str) -> InvalidFile:
    from kctl.base.text import printable

    printed_key = printable(written) if len(written) <= 100 else "a key that is very long"
    suggestion = right_name(written)
    if written.lower().startswith(_SPRING):
        right = f"write it as {_SPRING}properties.{suggestion or 'NAME'};"
    else:
        right = f"did you mean {suggestion}?" if suggestion else "remove it;"
    return InvalidFile(f"{source}: unknown setting {printed_key}", hint=f"{right} {_IGNORE}")


def _common_entry(source: str, key: str, entries: list[_WrittenValue]) -> _WrittenValue:
    """Return the entry of one setting. Raises InvalidFile if two entries differ."""

    def meaning(entry: _WrittenValue) -> str:
        return entry.value.strip().upper() if key in {PROTOCOL, MECHANISM} else entry.value.strip()

    for other in entries[1:]:
        if meaning(other) != meaning(entries[0]):
            raise InvalidFile(
                f"{source}: {entries[0].written_as} and {other.written_as} are the same setting with different values",
                hint="remove one of them",
            )
    return entries[0]


def _check_protocol(source: str, values: Mapping[str, str], entries: Mapping[str, _WrittenValue]) -> None:
    """Require security.protocol: without it, Kafka's clients connect in plaintext and without a login."""
    if PROTOCOL in values:
        return
    login = [key for key in entries if key in SASL_KEYS]
    tls = [key for key in entries if key in STORE_KEYS]
    if login or tls:
        written = entries[(login or tls)[0]].written_as
        right = "SASL_SSL (or SASL_PLAINTEXT)" if login else "SSL"
        raise InvalidFile(f"{source}: {written} has no effect without {PROTOCOL}", hint=f"add {PROTOCOL}={right}")
