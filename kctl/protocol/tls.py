"""TLS for broker connections: the SSL context, and errors for failed handshakes."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING

from kctl.errors import CertificateRejected, ConnectionFailed, ConnectionReason, TlsMismatch, UsageError
from kctl.protocol.certificates import LESS_STRICT, certificates_of, load_client_certificate, read_certificates

if TYPE_CHECKING:
    from kctl.protocol.security import Security

_UNKNOWN_CA = (
    "its certificate's CA is not trusted",
    "set ssl_cafile to the CA that signed it; if it is already set, make the broker send its intermediate CAs",
)
_RENEW = f"replace the broker's certificate; until then, {LESS_STRICT}"
# OpenSSL's X509_V_ERR_* (x509_vfy.h) → meaning, hint
_VERIFY: dict[int, tuple[str, str]] = {
    2: _UNKNOWN_CA,
    7: ("its certificate is not signed by the CA that it names", "set ssl_cafile to the CA that signed it"),
    9: ("its certificate, or a CA's, is not valid yet", "check the clocks of both machines"),
    10: ("its certificate, or a CA's, has expired", "renew the broker's certificate"),
    18: ("its self-signed certificate is not trusted", "set ssl_cafile to that certificate"),
    19: _UNKNOWN_CA,
    20: _UNKNOWN_CA,
    21: _UNKNOWN_CA,
    23: ("its certificate was revoked", "renew the broker's certificate"),
    25: ("its chain is longer than a CA allows (pathlen)", "check pathlen in the CA's basicConstraints"),
    26: ("its certificate is not a server certificate", "reissue it with extendedKeyUsage serverAuth"),
    34: ("its certificate has an unknown critical extension", "reissue it without that extension"),
    62: (
        "its certificate is for another host name",
        "use a host name that the certificate contains as the bootstrap server",
    ),
    64: (
        "its certificate does not name this IP address",
        "use a host name that the certificate contains as the bootstrap server",
    ),
    66: ("the key of its certificate is too small", _RENEW),
    67: ("the key of its CA is too small", _RENEW),
    79: (
        "a certificate in its chain is not a CA certificate",
        "reissue it with basicConstraints CA:TRUE and keyUsage keyCertSign",
    ),
    68: ("its certificate is signed with SHA-1 or MD5", _RENEW),
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
    """Return a client context that verifies certificates as Java and Python before 3.13 do.

    Raises UsageError for files that are missing, unreadable or invalid.
    """
    context = ssl.create_default_context(cadata=_authorities(security))
    # Python 3.13 rejects some private CAs that Java accepts, e.g. without an authority key identifier.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    # As in Java, every certificate in the truststore is an anchor, even an intermediate CA or the broker's own.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    _choose_versions(context, security)
    context.check_hostname = security.ssl_check_hostname
    if security.has_certificate:
        load_client_certificate(context, security)
    return context


def _authorities(security: Security) -> bytes | None:
    """Return the trusted CAs in DER; None for the system's CAs."""
    if security.ssl_ca_pem is not None:
        return certificates_of(security.ssl_ca_pem, "the CA in the client properties")
    return read_certificates("ssl_cafile", security.ssl_cafile) if security.ssl_cafile else None


def _choose_versions(context: ssl.SSLContext, security: Security) -> None:
    if not security.ssl_protocols and not security.ssl_ciphers:
        return
    from kctl.protocol.tls_settings import cipher_list, tls_versions

    try:
        ciphers = cipher_list(security.ssl_ciphers)
        versions = [each for each in tls_versions(security.ssl_protocols) if each in ciphers.versions]
        if not versions:
            raise ValueError("ssl_protocols and ssl_ciphers have no TLS version in common")
        if ciphers.openssl:
            context.set_ciphers(ciphers.openssl)
    except (ValueError, ssl.SSLError) as exc:
        raise UsageError(f"unusable TLS settings: {exc}", hint="check ssl_protocols and ssl_ciphers") from None
    numbers = [ssl.TLSVersion[each.replace(".", "_")] for each in versions]
    context.minimum_version, context.maximum_version = min(numbers), max(numbers)


def handshake_error(exc: ssl.SSLError, server: str, *, certificate_given: bool) -> ConnectionFailed | None:
    """Return the error for a failed handshake or a read after it; None if the peer only closed the connection."""
    if isinstance(exc, ssl.SSLCertVerificationError):
        meaning, hint = _VERIFY.get(exc.verify_code, (f"its certificate: {exc.verify_message}", "check ssl_cafile"))
        return CertificateRejected(
            f"{server} is not trusted: {meaning}", hint=hint, reason=ConnectionReason.CERTIFICATE_UNTRUSTED
        )
    reason = exc.reason or ""
    if isinstance(exc, (ssl.SSLEOFError, ssl.SSLZeroReturnError)) or reason == "UNEXPECTED_EOF_WHILE_READING":
        return None
    if any(name in reason for name in _NOT_TLS):
        return TlsMismatch(
            f"{server} does not speak TLS",
            hint="set the security protocol to PLAINTEXT or SASL_PLAINTEXT",
            reason=ConnectionReason.TLS_UNSUPPORTED,
        )
    if any(name in reason for name in _CLIENT_REFUSED) or (
        certificate_given and any(name in reason for name in _CLIENT_CERTIFICATE)
    ):
        return CertificateRejected(
            f"{server} rejected the client certificate",
            hint="check that it has not expired and that the broker's truststore has the CA that signed it",
            reason=ConnectionReason.CLIENT_CERTIFICATE_REJECTED,
        )
    if "HANDSHAKE_FAILURE" in reason:
        return CertificateRejected(
            f"{server} rejected the TLS handshake: it requires a client certificate, or shares no cipher suite with "
            "kctl",
            hint="set ssl_certfile and ssl_keyfile (PEM), and check ssl_ciphers",
            reason=ConnectionReason.TLS_HANDSHAKE,
        )
    if any(name in reason for name in _CLIENT_CERTIFICATE):
        return CertificateRejected(
            f"{server} requires a client certificate",
            hint="set ssl_certfile and ssl_keyfile (PEM)",
            reason=ConnectionReason.CLIENT_CERTIFICATE_REQUIRED,
        )
    if any(name in reason for name in ("TOO_SMALL", "TOO_WEAK")):
        return CertificateRejected(
            f"{server} is not trusted by OpenSSL: {reason.lower().replace('_', ' ')}",
            hint=LESS_STRICT,
            reason=ConnectionReason.CERTIFICATE_UNTRUSTED,
        )
    if any(name in reason for name in ("PROTOCOL_VERSION", "UNSUPPORTED_PROTOCOL")):
        return TlsMismatch(
            f"{server} does not support TLS 1.2 or 1.3",
            hint="enable TLSv1.2 or TLSv1.3 on the broker",
            reason=ConnectionReason.TLS_HANDSHAKE,
        )
    return ConnectionFailed(
        f"{server}: the TLS handshake failed ({reason.lower().replace('_', ' ')})",
        reason=ConnectionReason.TLS_HANDSHAKE,
    )
