"""Certificates and keys from PEM files. Each defect of a file has an error message of its own."""

from __future__ import annotations

import os
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from kctl.base.key_files import KeyFormat, PemBlock, conversion, der_of, in_lines, kind_of, pem_blocks, read_bytes
from kctl.errors import UsageError

if TYPE_CHECKING:
    from kctl.protocol.security import Security

# OpenSSL's reasons for a certificate that its security level does not allow
_TOO_SMALL = {
    "EE_KEY_TOO_SMALL": "the key of its certificate is too small",
    "CA_KEY_TOO_SMALL": "the key of a CA in it is too small",
}
_WEAK_DIGEST = ("CA_MD_TOO_WEAK", "MD_TOO_WEAK")
LESS_STRICT = (
    "lower OpenSSL's security level: set ssl_ciphers (ssl.cipher.suites in client properties) to DEFAULT@SECLEVEL=0"
)
# Object identifiers of signatures, in DER (RFC 3279)
_DIGESTS = {
    bytes.fromhex("06092a864886f70d010104"): "MD5",
    bytes.fromhex("06092a864886f70d010105"): "SHA-1",
    bytes.fromhex("06072a8648ce3d0401"): "SHA-1",
}
_MISMATCH = ("KEY_VALUES_MISMATCH", "KEY_TYPE_MISMATCH", "NO_CERTIFICATE_ASSIGNED")


def read_certificates(setting: str, path: str) -> bytes:
    """Return the certificates of a PEM file, or of a folder of PEM files, in DER. Raises UsageError."""
    if Path(path).is_dir():
        # OpenSSL's folders have each certificate in a file and in the bundle, and a link to the file named by its hash.
        files = {each.resolve() for each in Path(path).iterdir() if each.is_file()}
        blocks = {block.text for each in sorted(files) for block in pem_blocks(_text(setting, str(each)))}
        return certificates_of("\n".join(sorted(blocks)), f"the folder {setting} {path}")
    return certificates_of(_pem_text(setting, path, "truststore"), f"{setting} {path}")


def certificates_of(text: str, where: str) -> bytes:
    """Return the certificates of PEM text in DER. where: for errors. Raises UsageError."""
    blocks = pem_blocks(text)
    certificates = [block for block in blocks if block.is_certificate]
    if not certificates:
        has = f"; it has {', '.join(sorted({block.label for block in blocks}))}" if blocks else ""
        raise UsageError(
            f"{where} has no certificate{has}", hint="the CA's certificate begins with -----BEGIN CERTIFICATE"
        )
    parsed = []
    trial = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    for number, block in enumerate(certificates, start=1):
        try:
            der = der_of(block)
            trial.load_verify_locations(cadata=der)
        except (ValueError, ssl.SSLError):
            one = f"certificate {number} of {len(certificates)}" if len(certificates) > 1 else "the certificate"
            raise UsageError(
                f"{where}: {one} is damaged", hint="copy the file again, with all its lines intact"
            ) from None
        parsed.append(der)
    return b"".join(parsed)


def load_client_certificate(context: ssl.SSLContext, security: Security) -> None:
    """Load the client certificate. Never prompts for a password. Raises UsageError, with a message for each cause."""
    if security.ssl_client_pem is not None:
        with _pem_file(security.ssl_client_pem) as path:
            _load(context, path, None, security.ssl_key_password, "the client properties")
        return
    assert security.ssl_certfile is not None
    where = f"ssl_certfile {security.ssl_certfile}"
    _load(context, security.ssl_certfile, security.ssl_keyfile, security.ssl_key_password, where)


def _load(context: ssl.SSLContext, certfile: str, keyfile: str | None, password: str | None, where: str) -> None:
    chain = pem_blocks(_pem_text("ssl_certfile", certfile, "keystore"))
    if not any(block.is_certificate for block in chain):
        raise UsageError(
            f"{where} has no certificate", hint="set ssl_certfile to the client's certificate in PEM format"
        )
    blocks = pem_blocks(_pem_text("ssl_keyfile", keyfile, "keystore")) if keyfile else chain
    key = next((block for block in blocks if block.is_key), None)
    key_source = f"ssl_keyfile {keyfile}" if keyfile else where
    if key is None:
        raise UsageError(f"{key_source} has no private key", hint="set ssl_keyfile to the key of the certificate")
    if key.encrypted and not password:
        raise UsageError(
            f"the key in {key_source} is encrypted, and there is no password for it",
            hint="set ssl_key_password_env or ssl_key_password_file (ssl.key.password in client properties)",
        )
    try:
        context.load_cert_chain(certfile, keyfile, password=password or "")
    except (OSError, ValueError) as exc:
        raise _unusable(exc, where, key_source, key, chain) from None


def _unusable(exc: Exception, where: str, key_source: str, key: PemBlock, chain: list[PemBlock]) -> UsageError:
    reason = getattr(exc, "reason", None) or ""
    if reason in _MISMATCH:
        first = "" if len(chain) < 3 else "; the client's own certificate must be the first"
        return UsageError(
            f"the key in {key_source} does not belong to the certificate in {where}",
            hint=f"set ssl_keyfile to the key of that certificate{first}",
        )
    if reason in _TOO_SMALL or reason in _WEAK_DIGEST:
        why = _TOO_SMALL.get(reason) or f"a certificate in it is signed with {_weak_digest(chain)}"
        return UsageError(
            f"{where} is too weak for OpenSSL: {why}", hint=f"get a new certificate; until then {LESS_STRICT}"
        )
    for number, block in enumerate((each for each in chain if each.is_certificate), start=1):
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=der_of(block))
        except (ValueError, ssl.SSLError):
            return UsageError(
                f"{where}: certificate {number} is damaged", hint="copy the file again, with all its lines intact"
            )
    if key.encrypted and _is_whole(key):
        return UsageError(
            f"the password of the key in {key_source} is wrong",
            hint="check ssl_key_password_env or ssl_key_password_file (ssl.key.password in client properties)",
        )
    detail = f" ({reason.lower().replace('_', ' ')})" if reason else ""
    return UsageError(
        f"the key in {key_source} is damaged or of an unknown type{detail}", hint="convert it again with openssl pkey"
    )


def _weak_digest(chain: list[PemBlock]) -> str:
    """Return the digest of the first weak signature, by the identifiers in it."""
    for block in chain:
        if block.is_certificate:
            data = der_of(block)
            for identifier, digest in _DIGESTS.items():
                if identifier in data:
                    return digest
    return "a weak digest"


def _is_whole(key: PemBlock) -> bool:
    """Return False if an encrypted key is truncated. A key with headers cannot be checked."""
    if key.label != "ENCRYPTED PRIVATE KEY":
        return True
    try:
        der = der_of(key)
    except ValueError:
        return False
    if len(der) < 4 or der[0] != 0x30:
        return False
    octets = der[1] & 0x7F if der[1] & 0x80 else 0
    length = int.from_bytes(der[2 : 2 + octets], "big") if octets else der[1]
    return len(der) == 2 + octets + length


def _pem_text(setting: str, path: str, store: str) -> str:
    """Return the text of a PEM file. For another format, raises UsageError with the command that converts it."""
    text = _text(setting, path)
    kind = kind_of(text.encode("latin-1"))
    if kind is not KeyFormat.PEM:
        what = f"a Java keystore ({kind.value})" if kind.is_keystore else kind.value
        raise UsageError(f"{setting} {path} is {what}", hint=conversion(path, kind, store))
    return text


def _text(setting: str, path: str) -> str:
    try:
        return read_bytes(path).decode("latin-1")
    except OSError as exc:
        raise UsageError(
            f"cannot read {setting} {path}: {exc.strerror}", hint="check the path and its permissions"
        ) from None


@contextmanager
def _pem_file(text: str) -> Iterator[str]:
    """Yield the path of a file for OpenSSL, which reads keys only from files: in memory if the system supports it."""
    import tempfile

    data = "".join(map(in_lines, pem_blocks(text))).encode("ascii", "replace")
    if hasattr(os, "memfd_create") and Path("/proc/self/fd").is_dir():
        handle = os.memfd_create("kctl-key")
        try:
            os.write(handle, data)
            yield f"/proc/self/fd/{handle}"
        finally:
            os.close(handle)
        return
    with tempfile.NamedTemporaryFile(prefix="kctl-") as file:  # made 0600
        file.write(data)
        file.flush()
        yield file.name
