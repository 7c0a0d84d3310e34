"""Where a schema registry is and how to log in to it: options and environment first, then --command-config.

The keys of a .properties file are those of Confluent's clients: schema.registry.url, schema.registry.ssl.* (PEM),
basic.auth.* and bearer.auth.*, these with and without schema.registry. in front.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from urllib.parse import unquote, urlsplit, urlunsplit

from kctl.errors import InvalidFile, UsageError
from kctl.key_files import Kind, conversion, kind_of_file
from kctl.records.decoding import DecoderSettings
from kctl.records.schema_ids import IdKind, IdSize

_PREFIX = "schema.registry."
_PREFIXES = (_PREFIX, "basic.auth.", "bearer.auth.")
_REFERENCE = re.compile(r"\$\{|\{\{|^\$\w+$")  # of config providers, templates and shells: never sent as it is


@dataclass(frozen=True, slots=True)
class RegistryOptions:
    """As options and the environment have them. Files with secrets hold one line."""

    url: str | None = None
    ca: str | None = None
    cert: str | None = None
    key: str | None = None
    user_info_file: str | None = None
    token_file: str | None = None
    id_bytes: str = "auto"
    id_kind: str = "auto"


def decoder_settings(options: RegistryOptions, *, command_config: str | None, timeout_s: float) -> DecoderSettings:
    """What decoders may need. Raises UsageError, InvalidFile; no message has a secret in it."""
    from kctl.secrets import read_secret

    _check_choice("--schema-id-bytes", options.id_bytes, IdSize)
    _check_choice("--schema-id-kind", options.id_kind, IdKind)
    found = DecoderSettings(timeout_s=timeout_s, schema_id_bytes=options.id_bytes, schema_id_kind=options.id_kind)
    if command_config is not None and Path(command_config).expanduser().is_file():
        # A pipe can be read once, and the connection to the brokers needs it.
        from kctl.command_config import read_properties

        found = _from_properties(found, read_properties(command_config), command_config)
    user_info = _from_environment("KCTL_SCHEMA_REGISTRY_USER_INFO")
    if options.user_info_file is not None:
        user_info = read_secret("--schema-registry-user-info-file", None, options.user_info_file)
    token = _from_environment("KCTL_SCHEMA_REGISTRY_TOKEN")
    if options.token_file is not None:
        token = read_secret("--schema-registry-token-file", None, options.token_file)
    if user_info is not None or token is not None:  # one login takes the place of another
        found = replace(found, registry_user_info=user_info, registry_token=token)
    return replace(
        found,
        schema_registry=options.url or found.schema_registry,
        registry_ca=options.ca or found.registry_ca,
        registry_cert=options.cert or found.registry_cert,
        registry_key=options.key or (None if options.cert else found.registry_key),
        registry_key_password=_from_environment("KCTL_SCHEMA_REGISTRY_KEY_PASSWORD") or found.registry_key_password,
    )


def _check_choice(option: str, value: str, choices: type[Enum]) -> None:
    known = [str(each.value) for each in choices]
    if value not in known:
        raise UsageError(f"{option} {value!r} is none of its values", hint=f"use one of {', '.join(known)}")


def _from_environment(name: str) -> str | None:
    return os.environ.get(name) or None


def _from_properties(found: DecoderSettings, properties: Mapping[str, str], source: str) -> DecoderSettings:
    for key, value in properties.items():
        if key.startswith(_PREFIXES) and _REFERENCE.search(value):
            raise InvalidFile(
                f"{source}: {key} refers to another value, which kctl does not resolve for schema registries",
                hint="give the value itself, or a file: --schema-registry-user-info-file, --schema-registry-token-file",
            )
    urls, in_url = _urls(properties.get(f"{_PREFIX}url", ""))
    algorithm = properties.get(f"{_PREFIX}ssl.endpoint.identification.algorithm", "https").strip()
    user_info = _user_info(properties, in_url, source)
    token = _token(properties, source)
    return replace(
        found,
        schema_registry=urls or None,
        registry_user_info=user_info,
        registry_token=token,
        registry_ca=_store(properties, "truststore", source) or properties.get(f"{_PREFIX}ssl.ca.location"),
        registry_cert=_store(properties, "keystore", source) or properties.get(f"{_PREFIX}ssl.certificate.location"),
        registry_key=properties.get(f"{_PREFIX}ssl.key.location"),
        registry_key_password=properties.get(f"{_PREFIX}ssl.key.password"),
        registry_check_hostname=bool(algorithm),
    )


def _either(properties: Mapping[str, str], key: str) -> str | None:
    """With the prefix, as Kafka Connect and ksqlDB have it, or without, as clients do."""
    return properties.get(_PREFIX + key) or properties.get(key) or None


def _user_info(properties: Mapping[str, str], in_url: str | None, source: str) -> str | None:
    kind = (_either(properties, "basic.auth.credentials.source") or "URL").strip().upper()
    given = _either(properties, "basic.auth.user.info")
    if kind == "SASL_INHERIT":
        from kctl.command_config import security_from_properties

        security = security_from_properties(dict(properties), source=source)
        if security.sasl_username is None:
            raise InvalidFile(f"{source}: basic.auth.credentials.source is SASL_INHERIT, and there is no SASL login")
        return f"{security.sasl_username}:{security.sasl_password}"
    if kind not in {"URL", "USER_INFO"}:
        raise InvalidFile(
            f"{source}: basic.auth.credentials.source {kind[:40]} is unknown", hint="USER_INFO, URL or SASL_INHERIT"
        )
    # Java's clients take basic.auth.user.info only for USER_INFO; a login that is given is meant.
    return given or in_url


def _token(properties: Mapping[str, str], source: str) -> str | None:
    kind = (_either(properties, "bearer.auth.credentials.source") or "STATIC_TOKEN").strip().upper()
    if kind != "STATIC_TOKEN":
        raise InvalidFile(
            f"{source}: bearer.auth.credentials.source {kind[:40]} is not supported", hint="kctl takes STATIC_TOKEN"
        )
    return _either(properties, "bearer.auth.token")


def _urls(text: str) -> tuple[str, str | None]:
    """The URLs without a login in them, and the login of the first that has one."""
    login = None
    urls = []
    for url in filter(None, map(str.strip, text.split(","))):
        try:
            parts = urlsplit(url)
            user, password = parts.username, parts.password
        except ValueError:
            user, parts, password = None, urlsplit(""), None  # reported as no URL
        if user is None:
            urls.append(url)
            continue
        login = login or f"{unquote(user)}:{unquote(password or '')}"
        urls.append(urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2])))
    return ",".join(urls), login


def _store(properties: Mapping[str, str], store: str, source: str) -> str | None:
    name = f"{_PREFIX}ssl.{store}"
    location = properties.get(f"{name}.location")
    for inline in ("certificates", "certificate.chain", "key"):
        if properties.get(f"{name}.{inline}"):
            raise InvalidFile(f"{source}: {name}.{inline} holds PEM text", hint=f"name a file in {name}.location")
    if not location:
        return None
    kind = kind_of_file(location)
    declared = properties.get(f"{name}.type", "").strip().upper()
    if kind is None and declared not in {"", "PEM"}:
        raise InvalidFile(f"{source}: {name}.type is {declared[:20]}", hint=f"name a PEM file in {name}.location")
    if kind is not None and kind is not Kind.PEM:
        raise InvalidFile(f"{source}: {name}.location is {kind.value}", hint=conversion(location, kind, store))
    return location
