"""The allowed TLS versions and cipher suites of a connection: ssl.enabled.protocols and ssl.cipher.suites.

Cipher suites are named as Java does (TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384, with commas) or as OpenSSL does, which is
what librdkafka takes (ECDHE-RSA-AES256-GCM-SHA384, with colons).
"""

from __future__ import annotations

import re
from typing import NamedTuple

USABLE = ("TLSv1.2", "TLSv1.3")
_OLDER = ("SSLv2Hello", "SSLv3", "TLSv1", "TLSv1.1")
_TLS_1_3 = frozenset({"TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256", "TLS_AES_128_GCM_SHA256"})
_JAVA_NAME = re.compile(r"(?:TLS|SSL)_(?:(?P<exchange>[A-Z0-9_]+?)_)WITH_(?P<cipher>[A-Z0-9_]+)")
_OPENSSL_LIST = re.compile(r"[A-Za-z0-9+!@=._:, -]+")


class Ciphers(NamedTuple):
    """Cipher suites for OpenSSL.

    openssl: the argument of SSLContext.set_ciphers, "" for TLS 1.3 only. versions: TLS versions of the suites.
    """

    openssl: str
    versions: tuple[str, ...]


def tls_versions(text: str | None) -> tuple[str, ...]:
    """Return the usable versions in the list. Older versions in it are ignored, as in Java. Raises ValueError."""
    if not text:
        return USABLE
    versions = [each.strip() for each in text.split(",") if each.strip()]
    unknown = [each for each in versions if each not in (*USABLE, *_OLDER)]
    if unknown:
        raise ValueError(f"{unknown[0]!r} is not a TLS version; use {', '.join(USABLE)}")
    usable = tuple(each for each in USABLE if each in versions)
    if not usable:
        raise ValueError(f"{text!r} has none of {', '.join(USABLE)}")
    return usable


def cipher_list(text: str | None) -> Ciphers:
    """Return the suites. Raises ValueError for unknown names, and for only some TLS 1.3 suites (all or none)."""
    if not text:
        return Ciphers("", USABLE)
    if not _OPENSSL_LIST.fullmatch(text):
        raise ValueError("it is not a list of cipher suites")
    names = [each for each in re.split(r"[:, ]+", text) if each]
    if not any(each.startswith(("TLS_", "SSL_")) for each in names):
        return Ciphers(_known_to_openssl(names), USABLE)  # OpenSSL's lists say nothing about TLS 1.3
    newer = {each for each in names if each in _TLS_1_3}
    older = [_openssl_name(each) for each in names if each not in newer]
    if not older and newer != _TLS_1_3:
        raise ValueError(f"TLS 1.3 suites cannot be chosen one by one: name all of {', '.join(sorted(_TLS_1_3))}")
    if not older:
        return Ciphers("", ("TLSv1.3",))
    return Ciphers(_known_to_openssl(older), USABLE if newer == _TLS_1_3 else ("TLSv1.2",))


def _openssl_name(name: str) -> str:
    """Convert TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384 to ECDHE-RSA-AES256-GCM-SHA384, and so on (openssl-ciphers(1))."""
    match = _JAVA_NAME.fullmatch(name)
    if match is None:
        return name
    exchange = "" if match["exchange"] == "RSA" else match["exchange"].replace("_", "-") + "-"
    cipher = re.sub(r"^(AES|CAMELLIA|ARIA)_(\d+)", r"\1\2", match["cipher"]).replace("_CBC", "").replace("_", "-")
    return exchange + re.sub(r"^(CHACHA20-POLY1305)-SHA256$", r"\1", cipher)


def _known_to_openssl(suites: list[str]) -> str:
    """Return the list for OpenSSL, without unknown suites, which OpenSSL would ignore."""
    import ssl

    def usable(text: str) -> bool:
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).set_ciphers(text)
        except ssl.SSLError:
            return False
        return True

    usable_suites = [each for each in suites if each.startswith(("!", "-", "+", "@")) or usable(each)]
    if not usable_suites or not usable(":".join(usable_suites)):
        raise ValueError("it has no cipher suite that this OpenSSL supports")
    return ":".join(usable_suites)
