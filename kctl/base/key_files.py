"""Detect the format of a certificate or key file from its content: PEM, DER, stores of Java and other programs."""

from __future__ import annotations

import base64
import binascii
import os
import re
import stat
from enum import Enum
from typing import NamedTuple

MAX_BYTES = 16 << 20  # the CA bundle of a system has about 250 kB


class KeyFormat(Enum):
    """The format of a file. The value completes "is …" in messages."""

    PEM = "a PEM file"
    JKS = "JKS"
    JCEKS = "JCEKS"
    PKCS12 = "PKCS #12"
    BKS = "Bouncy Castle's BKS"
    DER_CERTIFICATE = "a certificate in DER format"
    DER_KEY = "a private key in DER format"
    PKCS7 = "a PKCS #7 bundle in DER format"
    OPENSSH = "a key in OpenSSH's format"
    EMPTY = "empty"
    OTHER = "neither PEM nor a keystore that is known"

    @property
    def is_keystore(self) -> bool:
        return self in {KeyFormat.JKS, KeyFormat.JCEKS, KeyFormat.PKCS12, KeyFormat.BKS}


class PemBlock(NamedTuple):
    """A PEM block. label: CERTIFICATE, PRIVATE KEY …; text: from BEGIN to END, as in the file."""

    label: str
    text: str

    @property
    def is_key(self) -> bool:
        return self.label.endswith("PRIVATE KEY")

    @property
    def is_certificate(self) -> bool:
        return self.label in {"CERTIFICATE", "X509 CERTIFICATE", "TRUSTED CERTIFICATE"}

    @property
    def encrypted(self) -> bool:
        return self.label == "ENCRYPTED PRIVATE KEY" or "Proc-Type: 4,ENCRYPTED" in self.text


_BLOCK = re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----(.*?)-----END \1-----", re.DOTALL)


def pem_blocks(text: str) -> list[PemBlock]:
    """Return the blocks of PEM text, without the text between them."""
    return [PemBlock(match[1], match[0]) for match in _BLOCK.finditer(text)]


def der_of(block: PemBlock) -> bytes:
    """Return the decoded content of a block without headers, also of a one-line block. Raises ValueError."""
    body = block.text.split("-----")[2]
    try:
        return base64.b64decode("".join(body.split()), validate=True)
    except binascii.Error as exc:
        raise ValueError(str(exc)) from None


def in_lines(block: PemBlock) -> str:
    """Return the block in lines of 64 characters, as OpenSSL needs it. A block with headers is unchanged."""
    body = block.text.split("-----")[2]
    if ":" in body:
        return block.text + "\n"
    joined = "".join(body.split())
    lines = [joined[start : start + 64] for start in range(0, len(joined), 64)]
    return "\n".join([f"-----BEGIN {block.label}-----", *lines, f"-----END {block.label}-----", ""])


def read_bytes(path: str) -> bytes:
    """Read at most MAX_BYTES of a file or a pipe. Raises OSError."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    with os.fdopen(fd, "rb") as file:
        return file.read(MAX_BYTES)


def kind_of_file(path: str) -> KeyFormat | None:
    """Return the format by content; None for a missing or unreadable file, a folder, or a pipe, which is read later."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):  # noqa: PTH116 - a path as the user wrote it
            return None
        return kind_of(read_bytes(path))
    except OSError:
        return None


def kind_of(data: bytes) -> KeyFormat:
    """Return the format of the bytes."""
    if not data.strip():
        return KeyFormat.EMPTY
    if b"-----BEGIN OPENSSH PRIVATE KEY" in data or data.startswith(b"ssh-"):
        return KeyFormat.OPENSSH
    if b"-----BEGIN " in data:
        return KeyFormat.PEM
    magic = {
        b"\xfe\xed\xfe\xed": KeyFormat.JKS,
        b"\xce\xce\xce\xce": KeyFormat.JCEKS,
        b"\0\0\0\1": KeyFormat.BKS,
        b"\0\0\0\2": KeyFormat.BKS,
    }
    return magic.get(data[:4]) or _kind_of_der(data)


def _kind_of_der(data: bytes) -> KeyFormat:
    """Return the format of DER by its first elements (X.690): RFC 7292, RFC 5280, RFC 5958, RFC 8017, RFC 5915."""
    content = _inside(data)
    if content is None or len(content) < 3:
        return KeyFormat.OTHER
    if content[:2] == b"\x02\x01":  # INTEGER: the version of a store or of a key
        return {3: KeyFormat.PKCS12, 0: KeyFormat.DER_KEY, 1: KeyFormat.DER_KEY}.get(content[2], KeyFormat.OTHER)
    if content[0] == 0x06:  # OBJECT IDENTIFIER: signedData
        return KeyFormat.PKCS7
    inner = _inside(content)
    if inner is None or not inner:
        return KeyFormat.OTHER
    # tbsCertificate begins with its version or serial number, an encrypted key with an algorithm
    return (
        KeyFormat.DER_KEY
        if inner[0] == 0x06
        else KeyFormat.DER_CERTIFICATE
        if inner[0] in {0xA0, 0x02}
        else KeyFormat.OTHER
    )


def _inside(data: bytes) -> bytes | None:
    """Return the content of a SEQUENCE; None if the bytes are not a SEQUENCE."""
    if len(data) < 2 or data[0] != 0x30:
        return None
    length = data[1]
    return data[2 + (length & 0x7F if length & 0x80 else 0) :]


def conversion(path: str, kind: KeyFormat, store: str) -> str:
    """Return the command that converts a file to PEM. store: truststore or keystore."""
    if kind in {KeyFormat.DER_CERTIFICATE, KeyFormat.PKCS7}:
        tool = "x509 -inform der" if kind is KeyFormat.DER_CERTIFICATE else "pkcs7 -inform der -print_certs"
        return f"PEM files are needed: openssl {tool} -in {path} -out ca.pem"
    if kind is KeyFormat.DER_KEY:
        return f"PEM files are needed: openssl pkey -inform der -in {path} -out client.key"
    if kind is KeyFormat.OPENSSH:
        return f"PEM files are needed; convert a copy of the file: ssh-keygen -p -m PKCS8 -f {path}"
    if not kind.is_keystore:
        return "PEM files are needed; they begin with -----BEGIN"
    if store == "truststore":
        return f"PEM files are needed: keytool -list -rfc -keystore {path} >ca.pem"
    first = f"keytool -importkeystore -srckeystore {path} -destkeystore k.p12 -deststoretype PKCS12\n"
    step, file = ("", path) if kind is KeyFormat.PKCS12 else (first, "k.p12")
    # Other certificates in the keystore may come before the client's own, which must be the first in the PEM file.
    return (
        f"PEM files are needed: {step}openssl pkcs12 -in {file} -clcerts -out client.pem\n"
        f"openssl pkcs12 -in {file} -cacerts -nokeys >>client.pem"
    )
