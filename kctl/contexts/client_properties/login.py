"""The user name and password for PLAIN or SCRAM: sasl.jaas.config, or librdkafka's sasl.username, sasl.password."""

from __future__ import annotations

import re

from kctl.contexts.client_properties import names
from kctl.contexts.client_properties.jaas import JaasError, LoginModule, parse_login_module
from kctl.contexts.client_properties.stores import StoreKeys
from kctl.errors import InvalidFile

# Match the end of the name, because shaded copies of Kafka's clients add a package prefix.
_MODULE = re.compile(r"(?:[\w$]+\.)*security\.(?:plain\.(PlainLoginModule)|scram\.(ScramLoginModule))")


def read_login(keys: StoreKeys, mechanism: str) -> tuple[str, str]:
    """Return user name and password. Raises InvalidFile; the message never contains part of the values."""
    jaas = keys.value(names.JAAS)
    if jaas and jaas.strip():
        return _from_jaas(keys, jaas, mechanism)
    username, password = keys.value(names.USERNAME), keys.value(names.PASSWORD)
    if not username and password is None:
        raise InvalidFile(
            f"{keys.source}: {names.JAAS} is missing",
            hint=f"set it, or {names.USERNAME} and {names.PASSWORD}; kctl does not read a separate JAAS file",
        )
    if not username or password is None:
        missing = names.PASSWORD if username else names.USERNAME
        raise InvalidFile(
            f"{keys.source}: {missing} is missing", hint=f"set both {names.USERNAME} and {names.PASSWORD}"
        )
    return username, password


def raw_options(jaas: str) -> dict[str | None, str]:
    """Return the options of sasl.jaas.config with references unresolved.

    The result is empty if the text cannot be parsed without resolving them, for example because a reference has no
    quotes.
    """
    try:
        return parse_login_module(jaas).options
    except JaasError:
        return {}


def _login_module(keys: StoreKeys, jaas: str) -> LoginModule:
    try:
        return parse_login_module(jaas)
    except JaasError as exc:
        raise InvalidFile(
            f"{keys.source}: cannot parse {keys.name(names.JAAS)}: {exc}",
            hint='write MODULE required username="…" password="…";  (with the semicolon)',
        ) from None


def _from_jaas(keys: StoreKeys, jaas: str, mechanism: str) -> tuple[str, str]:
    key = keys.name(names.JAAS)
    module = _login_module(keys, jaas)
    served = _mechanisms_of(module.name)
    if not served or not mechanism.startswith(served):
        module_name = module.name if re.fullmatch(r"[\w.$]{1,200}", module.name) else "of this name"
        raise InvalidFile(f"{keys.source}: the login module {module_name} does not support {mechanism}")
    options = module.options
    if options.get("tokenauth", "").lower() == "true":
        raise InvalidFile(
            f"{keys.source}: {key} uses a delegation token", hint="use a password: kctl does not support tokens"
        )
    username, password = options.get("username"), options.get("password")
    if not username or password is None:
        raise InvalidFile(f"{keys.source}: {key} has no {'password' if username else 'username'}")
    for name, value in ((names.USERNAME, username), (names.PASSWORD, password)):
        other = keys.value(name)
        if other is not None and other != value:
            raise InvalidFile(
                f"{keys.source}: {key} and {keys.name(name)} have different values", hint="remove one of them"
            )
    return username, password


def _mechanisms_of(module: str) -> str | None:
    """Return the prefix of the mechanisms that a login module supports; None for an unknown module."""
    match = _MODULE.fullmatch(module)
    return ("PLAIN" if match[1] else "SCRAM-") if match else None
