"""The address and login of a schema registry: options and environment first, then --command-config.

The keys of a .properties file are those of Confluent's clients: schema.registry.url, schema.registry.ssl.* (PEM),
basic.auth.* and bearer.auth.*, the last two with or without the prefix schema.registry. Config providers in their
values are resolved as in all client properties; a key that is not needed is not resolved.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from urllib.parse import unquote, urlsplit, urlunsplit

from kctl.base.key_files import KeyFormat, conversion, kind_of_file
from kctl.contexts.client_properties.providers import Providers
from kctl.errors import InvalidFile, UsageError
from kctl.records.decode.decoder_settings import DecoderSettings
from kctl.records.decode.schema_ids import IdKind, IdSize

_PREFIX = "schema.registry."
# A URL may have a login in it.
_SECRETS = ("password", "user.info", "token", f"{_PREFIX}url")


class _FileKeys:
    """The keys of one file. Values are resolved on access, which raises InvalidFile."""

    def __init__(self, properties: Mapping[str, str], source: str) -> None:
        self.properties, self.source = properties, source
        self._providers = Providers(properties, source)

    def get(self, key: str) -> str | None:
        """Return the value; None if the key is missing or empty."""
        value = self.properties.get(key)
        return self._providers.resolve(key, value, secret=key.endswith(_SECRETS)) or None if value else None

    def either(self, key: str) -> str | None:
        """Return the value of a key with the prefix (Kafka Connect, ksqlDB), or without (clients)."""
        return self.get(_PREFIX + key) or self.get(key)


@dataclass(frozen=True, slots=True)
class RegistryOptions:
    """Settings from options and the environment. Files with secrets have one line."""

    url: str | None = None
    ca: str | None = None
    cert: str | None = None
    key: str | None = None
    user_info_file: str | None = None
    token_file: str | None = None
    id_bytes: str = "auto"
    id_kind: str = "auto"


def decoder_settings(options: RegistryOptions, *, command_config: str | None, timeout_s: float) -> DecoderSettings:
    """Return the settings for decoders. Raises UsageError, InvalidFile; messages never contain a secret."""
    from kctl.base.secrets import read_secret

    _check_choice("--schema-id-bytes", options.id_bytes, IdSize)
    _check_choice("--schema-id-kind", options.id_kind, IdKind)
    settings = DecoderSettings(timeout_s=timeout_s, schema_id_bytes=options.id_bytes, schema_id_kind=options.id_kind)
    user_info = _from_environment("KCTL_SCHEMA_REGISTRY_USER_INFO")
    if options.user_info_file is not None:
        user_info = read_secret("--schema-registry-user-info-file", None, options.user_info_file)
    token = _from_environment("KCTL_SCHEMA_REGISTRY_TOKEN")
    if options.token_file is not None:
        token = read_secret("--schema-registry-token-file", None, options.token_file)
    has_login = user_info is not None or token is not None  # replaces the login of the file
    if command_config is not None and Path(command_config).expanduser().is_file():
        # A pipe can be read only once, and the connection to the brokers needs it.
        from kctl.contexts.command_config import read_properties

        keys = _FileKeys(read_properties(command_config), command_config)
        settings = _from_properties(settings, keys, login=not has_login)
    if has_login:
        settings = replace(settings, registry_user_info=user_info, registry_token=token)
    key_password = _from_environment("KCTL_SCHEMA_REGISTRY_KEY_PASSWORD") or settings.registry_key_password
    return replace(
        settings,
        schema_registry=options.url or settings.schema_registry,
        registry_ca=options.ca or settings.registry_ca,
        registry_cert=options.cert or settings.registry_cert,
        registry_key=options.key or (None if options.cert else settings.registry_key),
        registry_key_password=key_password,
    )


def _check_choice(option: str, value: str, choices: type[Enum]) -> None:
    values = [str(each.value) for each in choices]
    if value not in values:
        raise UsageError(f"{option} {value!r} is not a valid value", hint=f"use one of {', '.join(values)}")


def _from_environment(name: str) -> str | None:
    return os.environ.get(name) or None


def _from_properties(settings: DecoderSettings, keys: _FileKeys, *, login: bool) -> DecoderSettings:
    """Return the settings with the values of the keys. login: whether to include the login."""
    urls, url_login = _urls(keys.get(f"{_PREFIX}url") or "")
    algorithm = f"{_PREFIX}ssl.endpoint.identification.algorithm"
    return replace(
        settings,
        schema_registry=urls or None,
        registry_user_info=_user_info(keys, url_login) if login else None,
        registry_token=_token(keys) if login else None,
        registry_ca=_store(keys, "truststore") or keys.get(f"{_PREFIX}ssl.ca.location"),
        registry_cert=_store(keys, "keystore") or keys.get(f"{_PREFIX}ssl.certificate.location"),
        registry_key=keys.get(f"{_PREFIX}ssl.key.location"),
        registry_key_password=keys.get(f"{_PREFIX}ssl.key.password"),
        registry_check_hostname=algorithm not in keys.properties or bool((keys.get(algorithm) or "").strip()),
    )


def _user_info(keys: _FileKeys, url_login: str | None) -> str | None:
    kind = (keys.either("basic.auth.credentials.source") or "URL").strip().upper()
    if kind == "SASL_INHERIT":
        from kctl.contexts.command_config import security_from_properties

        security = security_from_properties(keys.properties, source=keys.source)
        if security.sasl_username is None:
            raise InvalidFile(
                f"{keys.source}: basic.auth.credentials.source is SASL_INHERIT, but there is no SASL login"
            )
        return f"{security.sasl_username}:{security.sasl_password}"
    if kind not in {"URL", "USER_INFO"}:
        raise InvalidFile(
            f"{keys.source}: basic.auth.credentials.source {kind[:40]} is unknown",
            hint="use USER_INFO, URL or SASL_INHERIT",
        )
    # Java's clients use basic.auth.user.info only with USER_INFO; kctl always does: an explicit login is intended.
    return keys.either("basic.auth.user.info") or url_login


def _token(keys: _FileKeys) -> str | None:
    kind = (keys.either("bearer.auth.credentials.source") or "STATIC_TOKEN").strip().upper()
    if kind != "STATIC_TOKEN":
        raise InvalidFile(
            f"{keys.source}: bearer.auth.credentials.source {kind[:40]} is not supported",
            hint="use STATIC_TOKEN",
        )
    return keys.either("bearer.auth.token")


def _urls(text: str) -> tuple[str, str | None]:
    """Return the URLs without logins, and the login of the first URL that has one."""
    login = None
    urls = []
    for url in filter(None, map(str.strip, text.split(","))):
        try:
            parts = urlsplit(url)
            user, password = parts.username, parts.password
        except ValueError:
            user, parts, password = None, urlsplit(""), None  # reported as an invalid URL
        if user is None:
            urls.append(url)
            continue
        login = login or f"{unquote(user)}:{unquote(password or '')}"
        urls.append(urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2])))
    return ",".join(urls), login


def _store(keys: _FileKeys, store: str) -> str | None:
    name = f"{_PREFIX}ssl.{store}"
    location = keys.get(f"{name}.location")
    for inline in ("certificates", "certificate.chain", "key"):
        if keys.properties.get(f"{name}.{inline}"):
            raise InvalidFile(f"{keys.source}: {name}.{inline} holds PEM text", hint=f"name a file in {name}.location")
    if not location:
        return None
    kind = kind_of_file(location)
    declared = (keys.get(f"{name}.type") or "").strip().upper()
    if kind is None and declared not in {"", "PEM"}:
        raise InvalidFile(f"{keys.source}: {name}.type is {declared[:20]}", hint=f"name a PEM file in {name}.location")
    if kind is not None and kind is not KeyFormat.PEM:
        raise InvalidFile(f"{keys.source}: {name}.location is {kind.value}", hint=conversion(location, kind, store))
    return location
