"""The user name and password of a login by PLAIN or SCRAM: sasl.jaas.config, or librdkafka's sasl.username and
sasl.password."""

from __future__ import annotations

import re

from kctl.client_properties import vocabulary as names
from kctl.client_properties.jaas import JaasError, LoginModule, parse_login_module
from kctl.client_properties.stores import StoreKeys
from kctl.errors import InvalidFile

# By the end of the name: shaded copies of Kafka's clients have packages before it.
_MODULE = re.compile(r"(?:[\w$]+\.)*security\.(?:plain\.(PlainLoginModule)|scram\.(ScramLoginModule))")


def read_login(keys: StoreKeys, mechanism: str) -> tuple[str, str]:
    """Raises InvalidFile; the message never has a part of the values."""
    jaas = keys.value(names.JAAS)
    if jaas and jaas.strip():
        return _from_jaas(keys, jaas, mechanism)
    username, password = keys.value(names.USERNAME), keys.value(names.PASSWORD)
    if not username and password is None:
        raise InvalidFile(
            f"{keys.source}: {names.JAAS} is missing",
            hint=f"or {names.USERNAME} and {names.PASSWORD}; a JAAS file (java.security.auth.login.config) is not read",
        )
    if not username or password is None:
        missing = names.PASSWORD if username else names.USERNAME
        raise InvalidFile(
            f"{keys.source}: {missing} is missing", hint=f"{names.USERNAME} and {missing} belong together"
        )
    return username, password


def raw_options(jaas: str) -> dict[str | None, str]:
    """The options of sasl.jaas.config whose references are not resolved yet; empty where only that makes it readable
    (a reference without quotes)."""
    try:
        return parse_login_module(jaas).options
    except JaasError:
        return {}


def _login_module(keys: StoreKeys, jaas: str) -> LoginModule:
    try:
        return parse_login_module(jaas)
    except JaasError as exc:
        raise InvalidFile(
            f"{keys.source}: {keys.name(names.JAAS)} cannot be understood: {exc}",
            hint='it looks like: MODULE required username="…" password="…";  (with the semicolon)',
        ) from None


def _from_jaas(keys: StoreKeys, jaas: str, mechanism: str) -> tuple[str, str]:
    key = keys.name(names.JAAS)
    module = _login_module(keys, jaas)
    served = _mechanisms_of(module.name)
    if not served or not mechanism.startswith(served):
        shown = module.name if re.fullmatch(r"[\w.$]{1,200}", module.name) else "of this name"
        raise InvalidFile(f"{keys.source}: the login module {shown} does not serve {mechanism}")
    options = module.options
    if options.get("tokenauth", "").lower() == "true":
        raise InvalidFile(f"{keys.source}: {key} logs in with a delegation token", hint="kctl takes no tokens")
    username, password = options.get("username"), options.get("password")
    if not username or password is None:
        raise InvalidFile(f"{keys.source}: {key} has no {'password' if username else 'username'}")
    for name, value in ((names.USERNAME, username), (names.PASSWORD, password)):
        other = keys.value(name)
        if other is not None and other != value:
            raise InvalidFile(
                f"{keys.source}: {key} and {keys.name(name)} have different values", hint="leave one of them out"
            )
    return username, password


def _mechanisms_of(module: str) -> str | None:
    """What the mechanisms that a login module serves begin with."""
    match = _MODULE.fullmatch(module)
    return ("PLAIN" if match[1] else "SCRAM-") if match else None
