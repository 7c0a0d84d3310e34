"""The protocol, login and TLS settings of connections: as in the config file, and with secrets resolved."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")


@dataclass(frozen=True, slots=True)
class Security:
    """The security settings for a cluster, secrets resolved. Never written, never logged."""

    protocol: str = "PLAINTEXT"
    sasl_mechanism: str | None = None
    sasl_username: str | None = None
    sasl_password: str | None = field(default=None, repr=False)
    ssl_cafile: str | None = None
    ssl_certfile: str | None = None
    ssl_keyfile: str | None = None
    ssl_key_password: str | None = field(default=None, repr=False)
    ssl_check_hostname: bool = True
    ssl_protocols: str | None = None  # TLSv1.2,TLSv1.3
    ssl_ciphers: str | None = None  # names of Java or OpenSSL
    ssl_ca_pem: str | None = None  # in place of ssl_cafile
    ssl_client_pem: str | None = field(default=None, repr=False)  # key and certificates, in place of ssl_certfile

    @property
    def secrets(self) -> frozenset[str]:
        """Return the values that must never be printed."""
        return frozenset(each for each in (self.sasl_password, self.ssl_key_password, self.ssl_client_pem) if each)

    @property
    def has_certificate(self) -> bool:
        """Return True if the client has its own certificate."""
        return self.ssl_certfile is not None or self.ssl_client_pem is not None

    @property
    def tls(self) -> bool:
        return self.protocol in {"SSL", "SASL_SSL"}

    @property
    def sasl(self) -> bool:
        return self.protocol in {"SASL_PLAINTEXT", "SASL_SSL"}


class StoredSecurity(Security):
    """The settings of a context. A secret is read from its variable or file on first use, and only once.

    So a command that does not log in (`kctl zk ls`) works without the password.
    """

    __slots__ = ("_secret_locations", "_warn")

    def __init__(
        self,
        secret_locations: dict[str, tuple[str | None, str | None]],
        warn: Callable[[str], None] | None,
        **settings: Any,
    ) -> None:
        super().__init__(**settings)
        for name in secret_locations:
            object.__delattr__(self, name)  # so that __getattr__ is called
        object.__setattr__(self, "_secret_locations", secret_locations)
        object.__setattr__(self, "_warn", warn)

    def __getattr__(self, name: str) -> Any:
        if name not in {"sasl_password", "ssl_key_password"}:
            raise AttributeError(name)
        from kctl.base.secrets import ignore, read_secret

        value = read_secret(name, *self._secret_locations[name], warn=self._warn or ignore)
        object.__setattr__(self, name, value)
        return value

    def __reduce__(self) -> tuple[Any, ...]:
        return Security, tuple(getattr(self, each.name) for each in fields(Security))


@dataclass(frozen=True, slots=True)
class SecuritySettings:
    """Security settings as in the config file: with the locations of secrets, never the secrets."""

    protocol: str = "PLAINTEXT"
    sasl_mechanism: str | None = None
    sasl_username: str | None = None
    sasl_password_env: str | None = None
    sasl_password_file: str | None = None
    ssl_cafile: str | None = None
    ssl_certfile: str | None = None
    ssl_keyfile: str | None = None
    ssl_key_password_env: str | None = None
    ssl_key_password_file: str | None = None
    ssl_check_hostname: bool = True
    ssl_protocols: str | None = None
    ssl_ciphers: str | None = None

    def resolve(self, warn: Callable[[str], None] | None = None) -> Security:
        """Return the settings for connections. A secret is read on first use; raises UsageError then if it is missing.

        warn: called with a line if other users can read a secret's file.
        """
        settings = {
            "protocol": self.protocol,
            "sasl_mechanism": self.sasl_mechanism,
            "sasl_username": self.sasl_username,
            "ssl_cafile": full_path(self.ssl_cafile),
            "ssl_certfile": full_path(self.ssl_certfile),
            "ssl_keyfile": full_path(self.ssl_keyfile),
            "ssl_check_hostname": self.ssl_check_hostname,
            "ssl_protocols": self.ssl_protocols,
            "ssl_ciphers": self.ssl_ciphers,
        }
        secret_locations = {
            "sasl_password": (self.sasl_password_env, self.sasl_password_file),
            "ssl_key_password": (self.ssl_key_password_env, self.ssl_key_password_file),
        }
        if not any(any(location) for location in secret_locations.values()):
            return Security(**settings)  # type: ignore[arg-type]
        return StoredSecurity(secret_locations, warn, **settings)


NO_SECURITY = Security()
NO_SETTINGS = SecuritySettings()


def full_path(path: str | None) -> str | None:
    """Return an absolute path for the config file, since commands run in other folders."""
    return None if path is None else str(Path(path).expanduser().absolute())
