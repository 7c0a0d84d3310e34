"""Brokers' certificates as found in practice, and whether Java trusts them.

    python tests/support/tls_rows.py LIBS_OF_KAFKA

runs Kafka's client in Java and writes tests/data/tls_trusted_by_java.json.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tls_files import TlsFiles, tls_server

ANSWERS = Path(__file__).parent.parent / "data" / "tls_trusted_by_java.json"
_NAMES = "subjectAltName=DNS:localhost,IP:127.0.0.1\n"
_CA = "basicConstraints=critical,CA:TRUE\n"
_PAST, _FUTURE = ("20200101000000Z", "20210101000000Z"), ("20900101000000Z", "21000101000000Z")

# Creates the server's certificate (with its chain), its key, and the CAs that the client trusts.
Made = tuple[Path, Path, Path]


@dataclass(frozen=True)
class TlsRow:
    """A case. says: a part of kctl's message; empty if kctl trusts the server."""

    name: str
    make: Callable[[TlsFiles], Made]
    says: str = ""
    host: str = "localhost"


def _leaf(extensions: str | None = None, *, by: str = "root", trust: str | None = None, send: tuple[str, ...] = (),
          **settings: object) -> Callable[[TlsFiles], Made]:  # fmt: skip
    """Return a case with a server certificate by the CA `by`. trust: default: `by`. send: CAs to send along."""

    def make(files: TlsFiles) -> Made:
        name = f"leaf-{len(list(files.folder.iterdir()))}"
        certificate = files.certificate(name, by, extensions=extensions, **settings)  # type: ignore[arg-type]
        chain = files.joined(f"{name}-chain.pem", certificate, *(files.path(f"{each}.pem") for each in send))
        return chain, files.key(name), files.path(f"{trust or by}.pem")

    return make


def _itself(*, trust: str | None = None, by: str | None = None) -> Callable[[TlsFiles], Made]:
    def make(files: TlsFiles) -> Made:
        name = f"itself-{by}-{trust}"
        certificate = files.certificate(name, by, extensions=_NAMES)
        return certificate, files.key(name), files.path(f"{trust}.pem") if trust else certificate

    return make


def with_authorities(folder: Path) -> TlsFiles:
    """Create the CAs of the rows."""
    files = TlsFiles(folder)
    signs = "keyUsage=critical,keyCertSign\n"
    files.certificate("root")
    files.certificate("other")
    files.certificate("namesake", subject="/CN=root")
    files.certificate("plain-constraints", extensions=f"basicConstraints=CA:TRUE\n{signs}")
    files.certificate("no-key-usage", extensions=_CA)
    files.certificate(
        "no-identifiers", extensions=f"{_CA}{signs}subjectKeyIdentifier=none\nauthorityKeyIdentifier=none\n"
    )
    files.certificate("version-1", extensions="")
    files.certificate("sha1-root", digest="sha1")
    files.certificate("rsa-root", rsa=2048)
    files.certificate("small-root", rsa=1024)
    files.certificate("expired-root", days=_PAST)
    files.certificate("short-root", extensions=f"basicConstraints=critical,CA:TRUE,pathlen:0\n{signs}")
    files.certificate("middle", "root", extensions=_CA + signs)
    files.certificate("middle-of-short", "short-root", extensions=_CA + signs)
    files.certificate("no-ca", "root", extensions=_NAMES)
    files.certificate("signs-not", "root", extensions=f"{_CA}keyUsage=critical,digitalSignature\n")
    return files


_UNKNOWN = "its certificate's CA is not trusted"
ROWS = (
    TlsRow("ordinary", _leaf()),
    TlsRow("without authority key identifier", _leaf(f"{_NAMES}authorityKeyIdentifier=none\n")),
    TlsRow("without identifiers", _leaf(f"{_NAMES}subjectKeyIdentifier=none\n", by="no-identifiers")),
    TlsRow("the CA's constraints not critical", _leaf(by="plain-constraints")),
    TlsRow("the CA without key usage", _leaf(by="no-key-usage")),
    TlsRow("a CA of version 1", _leaf(_NAMES, by="version-1")),
    TlsRow("a CA signed with SHA-1", _leaf(by="sha1-root")),
    TlsRow("by address", _leaf(), host="127.0.0.1"),
    TlsRow("no alternative names", _leaf("basicConstraints=CA:FALSE\n", subject="/CN=localhost")),
    TlsRow("of version 1", _leaf("", subject="/CN=localhost")),
    TlsRow("a wildcard", _leaf("subjectAltName=DNS:*.example.com\n"), host="kafka1.example.com"),
    TlsRow("an intermediate CA", _leaf(by="middle", trust="root", send=("middle",))),
    TlsRow("the intermediate CA is trusted", _leaf(by="middle")),
    TlsRow("the intermediate CA is trusted and sent", _leaf(by="middle", send=("middle",))),
    TlsRow("the whole chain is sent", _leaf(by="middle", trust="root", send=("middle", "root"))),
    TlsRow("the certificate itself is trusted", _itself(by="root")),
    TlsRow("signed by itself and trusted", _itself()),
    TlsRow("signed by itself", _itself(trust="root"), "its self-signed certificate is not trusted"),
    TlsRow("the intermediate CA is not sent", _leaf(by="middle", trust="root"), _UNKNOWN),
    TlsRow("another CA", _leaf(trust="other"), _UNKNOWN),
    TlsRow("another CA, root sent", _leaf(trust="other", send=("root",)), _UNKNOWN),
    TlsRow("another CA of the same name", _leaf(trust="namesake"), _UNKNOWN),
    TlsRow("expired", _leaf(_NAMES, days=_PAST), "has expired"),
    TlsRow("not valid yet", _leaf(_NAMES, days=_FUTURE), "is not valid yet"),
    TlsRow("an expired CA", _leaf(by="expired-root"), "has expired"),
    TlsRow("another host", _leaf("subjectAltName=DNS:other.example\n"), "is for another host name"),
    TlsRow(
        "a wildcard of another depth",
        _leaf("subjectAltName=DNS:*.example.com\n"),
        "is for another host name",
        host="a.b.example.com",
    ),
    TlsRow(
        "another address", _leaf("subjectAltName=DNS:localhost\n"), "does not name this IP address", host="127.0.0.1"
    ),
    TlsRow("SHA-1", _leaf(digest="sha1"), "signed with SHA-1 or MD5"),
    TlsRow("SHA-1 with RSA", _leaf(by="rsa-root", digest="sha1"), "signed with SHA-1 or MD5"),
    TlsRow("MD5", _leaf(by="rsa-root", digest="md5"), "signed with SHA-1 or MD5"),
    TlsRow("a small key", _leaf(rsa=1024), "the key of its certificate is too small"),
    TlsRow("a CA with a small key", _leaf(by="small-root"), "the key of its CA is too small"),
    TlsRow("for clients", _leaf(f"{_NAMES}extendedKeyUsage=clientAuth\n"), "is not a server certificate"),
    TlsRow("by what is no CA", _leaf(by="no-ca", trust="root", send=("no-ca",)), "is not a CA certificate"),
    TlsRow(
        "by a CA that may not sign",
        _leaf(by="signs-not", trust="root", send=("signs-not",)),
        "is not a CA certificate",
    ),
    TlsRow(
        "longer than a CA allows", _leaf(by="middle-of-short", trust="short-root", send=("middle-of-short",)), "pathlen"
    ),
    TlsRow("a critical extension", _leaf(f"{_NAMES}1.2.3.4=critical,ASN1:NULL\n"), "an unknown critical extension"),
)


def main(libs: str) -> None:
    argv = ["java", "-cp", f"{libs}/*", str(Path(__file__).with_name("TlsHandshakes.java"))]
    with (
        tempfile.TemporaryDirectory() as folder,
        subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as java,
    ):
        assert java.stdin
        assert java.stdout
        files = with_authorities(Path(folder))
        answers = {}
        for row in ROWS:
            certificate, key, authorities = row.make(files)
            with tls_server(certificate, key) as port:
                java.stdin.write(f"{row.host} {port} {authorities}\n")
                java.stdin.flush()
                answers[row.name] = java.stdout.readline().strip() == "trusted"
        java.stdin.close()
    ANSWERS.write_text(json.dumps(answers, indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
