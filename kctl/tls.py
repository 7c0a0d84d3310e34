"""TLS for broker connections: the context from PEM files, and what a failed handshake means."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING

from kctl.errors import CertificateRejected, ConnectionFailed, TlsMismatch, UsageError

if TYPE_CHECKING:
    from kctl.context import Security

# OpenSSL's X509_V_ERR_* (x509_vfy.h) → what it means, what to do
_VERIFY: dict[int, tuple[str, str]] = {
    9: ("its certificate is not valid yet", "check the clocks of both machines"),
    10: ("its certificate is expired", "renew the broker's certificate"),
    18: ("its certificate is signed by itself and not trusted", "give that certificate as ssl_cafile"),
    19: ("its certificate's CA is not trusted", "give the CA that signed it as ssl_cafile"),
    20: ("its certificate's CA is not trusted", "give the CA that signed it as ssl_cafile"),
    21: ("its certificate's CA is not trusted", "give the CA that signed it as ssl_cafile"),
    23: ("its certificate is revoked", "renew the broker's certificate"),
    62: ("its certificate is for another host name", "use a name of the certificate as the bootstrap server"),
    64: (
        "its certificate does not name this IP address",
        "use a name of the certificate as the bootstrap server",
    ),
}

# Alerts that a broker sends about the client's certificate (RFC 8446, 6.2)
_CLIENT_CERTIFICATE = ("CERTIFICATE_REQUIRED", "BAD_CERTIFICATE", "HANDSHAKE_FAILURE")
_CLIENT_REFUSED = (
    "UNKNOWN_CA",
    "CERTIFICATE_UNKNOWN",
    "CERTIFICATE_EXPIRED",
    "CERTIFICATE_REVOKED",
    "DECRYPT_ERROR",
)
_NOT_TLS = (
    "WRONG_VERSION_NUMBER",
    "UNKNOWN_PROTOCOL",
    "HTTP_REQUEST",
    "PACKET_LENGTH",
    "RECORD_LAYER_FAILURE",
)


def make_context(security: Security) -> ssl.SSLContext:
    """A client context that verifies. Raises UsageError for files that are missing, unreadable or not PEM."""
    try:
        context = ssl.create_default_context(cafile=security.ssl_cafile)
    except (OSError, ssl.SSLError) as exc:
        raise _bad_file("ssl_cafile", security.ssl_cafile, exc) from None
    context.check_hostname = security.ssl_check_hostname
    if security.ssl_certfile:
        _load_client_certificate(context, security)
    return context


def _load_client_certificate(context: ssl.SSLContext, security: Security) -> None:
    assert security.ssl_certfile
    password = security.ssl_key_password

    def ask() -> str:  # without it OpenSSL would ask on the terminal
        if password is None:
            raise UsageError(
                f"the key for {security.ssl_certfile} is encrypted",
                hint="give ssl_key_password_env or ssl_key_password_file",
            )
        return password

    try:
        context.load_cert_chain(security.ssl_certfile, security.ssl_keyfile, password=ask)
    except (OSError, ssl.SSLError) as exc:
        raise _bad_file("ssl_certfile or ssl_keyfile", security.ssl_certfile, exc) from None


def _bad_file(setting: str, path: str | None, exc: OSError) -> UsageError:
    if not isinstance(exc, ssl.SSLError) and exc.strerror:
        return UsageError(f"cannot read {setting} {path}: {exc.strerror}", hint="check the path and who may read it")
    if getattr(exc, "reason", None) == "KEY_VALUES_MISMATCH":
        return UsageError(
            f"the key does not belong to the certificate {path}", hint="give the ssl_keyfile that belongs to it"
        )
    if path and _is_java_keystore(path):
        return UsageError(f"{setting} {path} is a Java keystore", hint=convert_hint(path))
    reason = (exc.reason or "").lower().replace("_", " ") if isinstance(exc, ssl.SSLError) else ""
    detail = f" ({reason})" if reason else ""
    return UsageError(
        f"{setting} {path} cannot be used{detail}", hint="PEM files are needed; the password may be wrong"
    )


def _is_java_keystore(path: str) -> bool:
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - a path as the user wrote it
            start = file.read(4)
    except OSError:
        return False
    return start == b"\xfe\xed\xfe\xed" or start[:1] == b"\x30"  # JKS; DER, as PKCS #12 is


def convert_hint(path: str) -> str:
    """How to make PEM files of a Java keystore or truststore."""
    return (
        "PEM files are needed. A truststore: "
        f"keytool -exportcert -rfc -keystore {path} -alias ALIAS -file ca.pem\n"
        f"A keystore: keytool -importkeystore -srckeystore {path} -destkeystore k.p12 -deststoretype PKCS12\n"
        "            openssl pkcs12 -in k.p12 -out client.pem"
    )


def handshake_error(exc: ssl.SSLError, server: str, *, certificate_given: bool) -> ConnectionFailed | None:
    """What a failed handshake (or a read after it) means; None when it was only cut off."""
    if isinstance(exc, ssl.SSLCertVerificationError):
        meaning, hint = _VERIFY.get(exc.verify_code, (f"its certificate: {exc.verify_message}", "see ssl_cafile"))
        return CertificateRejected(f"{server} is not trusted: {meaning}", hint=hint)
    reason = exc.reason or ""
    if isinstance(exc, (ssl.SSLEOFError, ssl.SSLZeroReturnError)) or reason == "UNEXPECTED_EOF_WHILE_READING":
        return None
    if any(name in reason for name in _NOT_TLS):
        return TlsMismatch(
            f"{server} does not speak TLS", hint="set the security protocol to PLAINTEXT or SASL_PLAINTEXT"
        )
    if any(name in reason for name in _CLIENT_REFUSED) or (
        certificate_given and any(name in reason for name in _CLIENT_CERTIFICATE)
    ):
        return CertificateRejected(
            f"{server} does not accept the client certificate",
            hint="the broker's truststore must have the CA that signed it, and it must be valid",
        )
    if any(name in reason for name in _CLIENT_CERTIFICATE):
        return CertificateRejected(
            f"{server} wants a client certificate", hint="give ssl_certfile and ssl_keyfile (PEM)"
        )
    if "PROTOCOL_VERSION" in reason:
        return TlsMismatch(f"{server} speaks another version of TLS", hint="TLS 1.2 or 1.3 is needed on the broker")
    return ConnectionFailed(f"{server}: the TLS handshake failed ({reason.lower().replace('_', ' ')})")
