"""Read the CAs and the client certificate that client properties name.

The properties are Kafka's (ssl.truststore.*, ssl.keystore.*: KIP-651) or librdkafka's (ssl.ca.*, ssl.certificate.*,
ssl.key.*). The content of a file counts, not only its `type`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from kctl.base.key_files import KeyFormat, conversion, kind_of_file
from kctl.errors import InvalidFile
from kctl.protocol.security import full_path

# Usual names of Java keystores, to recognize files that do not exist yet.
_KEYSTORE_SUFFIXES = (".jks", ".p12", ".pfx", ".pkcs12", ".keystore", ".truststore", ".jceks", ".bcfks", ".ks", ".ts")
_FROM_SYSTEM = "probe"  # librdkafka: search for the CAs of this machine


@dataclass(frozen=True, slots=True)
class Stores:
    """Files, or PEM text, of the CAs and of the client's certificate with its key."""

    ca_file: str | None = None
    ca_pem: str | None = None
    certificate_file: str | None = None
    key_file: str | None = None
    client_pem: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class StoreKeys:
    """The values of settings, and their keys as written. value: None for a missing or empty setting."""

    source: str
    value: Callable[[str], str | None]
    name: Callable[[str], str]
    prefix: str = ""

    def exclusive(self, *keys: str) -> str | None:
        """Return the key that is set, or None. Raises InvalidFile if several are set."""
        set_keys = [key for key in keys if self.value(key)]
        if len(set_keys) > 1:
            raise InvalidFile(
                f"{self.source}: {self.name(set_keys[0])} and {self.name(set_keys[1])} cannot be combined",
                hint="remove one of them",
            )
        return set_keys[0] if set_keys else None


def read_stores(keys: StoreKeys) -> Stores:
    """Return the stores. Raises InvalidFile with the key of an unusable setting. A missing file fails on connect."""
    ca_file, ca_pem = _authorities(keys)
    certificate = keys.exclusive(
        "ssl.keystore.location", "ssl.keystore.certificate.chain", "ssl.certificate.location", "ssl.certificate.pem"
    )
    if certificate is None:
        key_setting = keys.exclusive("ssl.keystore.key", "ssl.key.location", "ssl.key.pem")
        if key_setting:
            raise InvalidFile(
                f"{keys.source}: {keys.name(key_setting)} is a key without its certificate",
                hint=f"add {_CERTIFICATE_OF[key_setting]}",
            )
        return Stores(ca_file, ca_pem)
    if certificate == "ssl.keystore.location":
        return Stores(ca_file, ca_pem, certificate_file=_file(keys, certificate, "ssl.keystore.type"))
    if certificate == "ssl.certificate.location":
        if keys.value("ssl.key.pem"):
            raise InvalidFile(
                f"{keys.source}: {keys.name(certificate)} is a file, and {keys.name('ssl.key.pem')} is text",
                hint="use files for both, or text for both",
            )
        key_file = _file(keys, "ssl.key.location") if keys.value("ssl.key.location") else None
        return Stores(ca_file, ca_pem, _file(keys, certificate), key_file)
    key = "ssl.keystore.key" if certificate == "ssl.keystore.certificate.chain" else "ssl.key.pem"
    text = keys.value(key)
    if not text:
        raise InvalidFile(
            f"{keys.source}: {keys.name(certificate)} is a certificate without its key", hint=f"add {key}"
        )
    return Stores(
        ca_file, ca_pem, client_pem=f"{_pem(keys, key, text)}\n{_pem(keys, certificate, keys.value(certificate) or '')}"
    )


_CERTIFICATE_OF = {
    "ssl.keystore.key": "ssl.keystore.certificate.chain",
    "ssl.key.location": "ssl.certificate.location",
    "ssl.key.pem": "ssl.certificate.pem",
}


def _authorities(keys: StoreKeys) -> tuple[str | None, str | None]:
    ca = keys.exclusive("ssl.truststore.location", "ssl.truststore.certificates", "ssl.ca.location", "ssl.ca.pem")
    if ca is None or (ca == "ssl.ca.location" and keys.value(ca) == _FROM_SYSTEM):
        return None, None
    if ca.endswith(".location"):
        return _file(keys, ca, "ssl.truststore.type" if ca == "ssl.truststore.location" else None), None
    return None, _pem(keys, ca, keys.value(ca) or "")


def _pem(keys: StoreKeys, key: str, text: str) -> str:
    if "-----BEGIN " not in text or "-----END " not in text:
        raise InvalidFile(f"{keys.source}: {keys.name(key)} is not PEM text", hint="PEM text begins with -----BEGIN")
    return text


def _file(keys: StoreKeys, key: str, type_key: str | None = None) -> str:
    """Return the path of a PEM file. type_key: Kafka's key for the type of the store."""
    written = keys.value(key) or ""
    if written.startswith(("classpath:", "http:", "https:")):
        raise InvalidFile(f"{keys.source}: {keys.name(key)} is not a file", hint="use the path of a file")
    # In Spring, locations may be URLs.
    location = written[len("file://") :] if written.startswith("file:///") else written.removeprefix("file:")
    path = full_path(location) or ""
    store_type = (keys.value(type_key) or "").upper() if type_key else "PEM"
    type_name = f"{keys.name(type_key)}" if type_key else ""
    kind = kind_of_file(path)
    if kind is KeyFormat.PEM:
        if store_type not in {"", "PEM"}:
            raise InvalidFile(
                f"{keys.source}: {keys.name(key)} is a PEM file, but {type_name} is {store_type}",
                hint=f"set {type_name}=PEM",
            )
        return path
    if kind is None:  # missing or unreadable: the connection reports it
        keystore = store_type != "PEM" if store_type else Path(path).suffix.lower() in _KEYSTORE_SUFFIXES
        if not keystore:
            return path
        what = f"a Java keystore ({type_name}={store_type or 'JKS'})"
    elif kind.is_keystore:
        what = f"a Java keystore ({kind.value})"
    else:
        what = kind.value
    store = "truststore" if "truststore" in key or ".ca." in key else "keystore"
    pem = "ca.pem" if store == "truststore" else "client.pem"
    then = f"\nthen set {keys.name(key)}={pem} and {type_name}=PEM" if type_key else ""
    raise InvalidFile(
        f"{keys.source}: {keys.name(key)} is {what}", hint=f"{conversion(path, kind or KeyFormat.JKS, store)}{then}"
    )
