"""Certificates and keys as found in practice, good and bad, created by openssl(1); and a TLS server on loopback."""

from __future__ import annotations

import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from kctl.errors import CertificateRejected
from kctl.protocol.security import Security
from kctl.protocol.tls import handshake_error, make_context

KEY_PASSWORD = "key-pass-8d1f"
_ROOT = "basicConstraints=critical,CA:TRUE\nkeyUsage=critical,keyCertSign,cRLSign\nsubjectKeyIdentifier=hash\n"
_LEAF = "subjectAltName=DNS:localhost,IP:127.0.0.1\n"


class TlsFiles:
    """Files in a folder, each created on first use. Keys are NAME.key, certificates NAME.pem."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, name: str) -> Path:
        return self.folder / name

    def key(self, name: str, *, rsa: int = 0) -> Path:
        path = self.path(f"{name}.key")
        if not path.exists():
            kind = (
                ["RSA", "-pkeyopt", f"rsa_keygen_bits:{rsa}"] if rsa else ["EC", "-pkeyopt", "ec_paramgen_curve:P-256"]
            )
            openssl("genpkey", "-algorithm", *kind, "-out", path)
        return path

    def certificate(
        self, name: str, issuer: str | None = None, *, extensions: str | None = None,
        days: tuple[str, str] | None = None, digest: str = "sha256", rsa: int = 0, subject: str | None = None,
    ) -> Path:  # fmt: skip
        """Create a certificate. issuer: None if self-signed. days: start and end date, as in openssl ca.

        extensions: "" for an X.509 version 1 certificate.
        """
        path = self.path(f"{name}.pem")
        if path.exists():
            return path
        request, config = self.path(f"{name}.csr"), self.path(f"{name}.ext")
        config.write_text("[x]\n" + (extensions if extensions is not None else _LEAF if issuer else _ROOT))
        self.key(name, rsa=rsa)
        openssl("req", "-new", "-key", self.key(name), "-subj", subject or f"/CN={name}", "-out", request)
        by: list[str | Path] = [self.path(f"{issuer}.pem"), self.key(issuer)] if issuer else []
        start, end = days or ("20200101000000Z", "21200101000000Z")
        if days is None:
            sign: list[str | Path] = ["-CA", by[0], "-CAkey", by[1]] if by else ["-signkey", self.key(name)]
            extended: list[str | Path] = ["-extfile", config, "-extensions", "x"] if extensions != "" else []
            validity = ["-days", "3650", "-set_serial", "77", f"-{digest}"]
            openssl("x509", "-req", "-in", request, *sign, *validity, *extended, "-out", path)
            return path
        database = self.path("ca.cnf")
        self.path("index").write_text("")
        database.write_text(
            f"[ca]\ndefault_ca=d\n[d]\ndatabase={self.path('index')}\nrand_serial=yes\nnew_certs_dir={self.folder}\npolicy=p\n"
            f"default_md={digest}\nunique_subject=no\nemail_in_dn=no\n[p]\ncommonName=supplied\n"
        )
        sign = ["-cert", by[0], "-keyfile", by[1]] if by else ["-selfsign", "-keyfile", self.key(name)]
        openssl("ca", "-batch", "-notext", "-config", database, "-startdate", start, "-enddate", end, "-in", request,
                "-out", path, "-extfile", config, "-extensions", "x", "-md", digest, *sign)  # fmt: skip
        return path

    def joined(self, name: str, *parts: Path) -> Path:
        path = self.path(name)
        path.write_text("".join(part.read_text() for part in parts))
        return path


def openssl(*argv: str | Path) -> bytes:
    """Run openssl and return its output."""
    done = subprocess.run(["openssl", *map(str, argv)], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


@contextmanager
def tls_server(certificate: Path, key: Path, *, ca: Path | None = None, version: str | None = None) -> Iterator[int]:
    """Yield the port of a server that completes handshakes and waits for the end. It accepts weak certificates."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.set_ciphers("DEFAULT@SECLEVEL=0")
    context.load_cert_chain(certificate, key)
    if version:
        context.minimum_version = context.maximum_version = ssl.TLSVersion[version]
    if ca is not None:
        context.load_verify_locations(ca)
        context.verify_mode = ssl.CERT_REQUIRED

    def serve(peer: socket.socket) -> None:
        with suppress(OSError), peer:
            peer.settimeout(20)
            with context.wrap_socket(peer, server_side=True) as tls:
                tls.recv(1)

    def accept(listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=accept, args=(listener,), daemon=True).start()
        yield listener.getsockname()[1]


def handshake(security: Security, port: int, host: str = "localhost") -> str:
    """Return kctl's message; empty if kctl trusts the server. host: a name that the certificate has, not DNS."""
    context = make_context(security)
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=20) as sock:
            context.wrap_socket(sock, server_hostname=host).close()
    except ssl.SSLError as exc:
        problem = handshake_error(exc, host, certificate_given=False)
    else:
        return ""
    assert isinstance(problem, CertificateRejected)
    assert problem.hint
    return problem.message
