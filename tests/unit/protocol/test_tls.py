"""Whom kctl trusts, as Java does, and what each file that cannot be used and each failed handshake is called."""

from __future__ import annotations

import json
import socket
from collections.abc import Sequence

import pytest

from kctl.base.address import parse_address
from kctl.base.deadline import Deadline
from kctl.errors import CertificateRejected, TlsMismatch, UsageError
from kctl.protocol.connection import Connection
from kctl.protocol.dialer import Dialer
from kctl.protocol.security import Security
from kctl.protocol.tls import make_context
from tls_files import TlsFiles, handshake, tls_server
from tls_rows import ANSWERS, ROWS, TlsRow, with_authorities

TRUSTED_BY_JAVA = json.loads(ANSWERS.read_text())
# OpenSSL's security level, and its checks of the trusted certificate itself, which Java leaves out.
REFUSED_UNLIKE_JAVA = {
    "an expired CA",
    "SHA-1",
    "SHA-1 with RSA",
    "a small key",
    "a CA with a small key",
    "longer than a CA allows",
}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> TlsFiles:
    return with_authorities(tmp_path_factory.mktemp("tls"))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_trust(row: TlsRow, files: TlsFiles) -> None:
    certificate, key, authorities = row.make(files)
    with tls_server(certificate, key) as port:
        said = handshake(Security("SSL", ssl_cafile=str(authorities)), port, row.host)
    assert (row.says in said) if row.says else said == ""


def test_as_java() -> None:
    assert TRUSTED_BY_JAVA.keys() == {row.name for row in ROWS}
    assert {row.name for row in ROWS if TRUSTED_BY_JAVA[row.name] != (not row.says)} == REFUSED_UNLIKE_JAVA


@pytest.mark.parametrize("name", ["SHA-1", "MD5", "a small key", "a CA with a small key"])
def test_the_way_out_of_openssls_level(name: str, files: TlsFiles) -> None:
    (row,) = (row for row in ROWS if row.name == name)
    certificate, key, authorities = row.make(files)
    with tls_server(certificate, key) as port:
        security = Security("SSL", ssl_cafile=str(authorities), ssl_ciphers="DEFAULT@SECLEVEL=0")
        assert handshake(security, port) == ""


def test_the_host_name_need_not_be_checked(files: TlsFiles) -> None:
    (row,) = (row for row in ROWS if row.name == "another host")
    certificate, key, authorities = row.make(files)
    with tls_server(certificate, key) as port:
        assert handshake(Security("SSL", ssl_cafile=str(authorities), ssl_check_hostname=False), port) == ""


# --- versions and cipher suites -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("server", "protocols", "ciphers", "version"),
    [
        ("TLSv1_3", None, None, "TLSv1.3"),
        ("TLSv1_2", None, None, "TLSv1.2"),
        (None, "TLSv1.2", None, "TLSv1.2"),
        (None, "TLSv1.3", None, "TLSv1.3"),
        (None, "TLSv1.2,TLSv1.3", None, "TLSv1.3"),
        (None, "TLSv1,TLSv1.1,TLSv1.2", None, "TLSv1.2"),
        (None, None, "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", "TLSv1.2"),
        (
            None,
            None,
            "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256,TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
            "TLSv1.2",
        ),
        (None, None, "TLS_AES_256_GCM_SHA384,TLS_CHACHA20_POLY1305_SHA256,TLS_AES_128_GCM_SHA256", "TLSv1.3"),
        (None, None, "TLS_AES_256_GCM_SHA384,TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", "TLSv1.2"),
        (None, None, "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256", "TLSv1.3"),
        ("TLSv1_2", None, "ECDHE-ECDSA-AES128-GCM-SHA256", "TLSv1.2"),
        (None, None, "HIGH:!aNULL", "TLSv1.3"),
    ],
)
def test_versions_and_ciphers(
    server: str | None, protocols: str | None, ciphers: str | None, version: str, files: TlsFiles
) -> None:
    certificate = files.certificate("server", "root", extensions="subjectAltName=DNS:localhost\n")
    security = Security("SSL", ssl_cafile=str(files.path("root.pem")), ssl_protocols=protocols, ssl_ciphers=ciphers)
    with (
        tls_server(certificate, files.key("server"), version=server) as port,
        socket.create_connection(("127.0.0.1", port), timeout=20) as sock,
        make_context(security).wrap_socket(sock, server_hostname="localhost") as tls,
    ):
        assert tls.version() == version


@pytest.mark.parametrize(
    ("protocols", "ciphers", "says"),
    [
        ("TLSv1.3", "TLS_RSA_WITH_AES_128_GCM_SHA256", "no TLS version in common"),
        ("SSLv3", None, "has none of TLSv1.2"),
        ("tls", None, "'tls' is not a TLS version"),
        (None, "TLS_NO_SUCH_WITH_THING", "no cipher suite"),
        (None, "TLS_AES_256_GCM_SHA384", "cannot be chosen one by one"),
        (None, "a;b", "not a list"),
    ],
)
def test_versions_and_ciphers_that_cannot_be(protocols: str | None, ciphers: str | None, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        make_context(Security("SSL", ssl_protocols=protocols, ssl_ciphers=ciphers))


def test_no_version_in_common(files: TlsFiles) -> None:
    certificate = files.certificate("server", "root", extensions="subjectAltName=DNS:localhost\n")
    with tls_server(certificate, files.key("server"), version="TLSv1_2") as port:
        security = Security("SSL", ssl_cafile=str(files.path("root.pem")), ssl_protocols="TLSv1.3")
        connection = Connection(parse_address(f"localhost:{port}"), Dialer(security))
        with pytest.raises(TlsMismatch, match=r"does not support TLS 1\.2 or 1\.3"):
            connection.open(Deadline(20))


def test_no_cipher_suite_in_common(files: TlsFiles) -> None:
    certificate = files.certificate("server", "root", extensions="subjectAltName=DNS:localhost\n")
    with tls_server(certificate, files.key("server")) as port:
        security = Security(
            "SSL",
            ssl_cafile=str(files.path("root.pem")),
            ssl_ciphers="TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
        )
        connection = Connection(parse_address(f"localhost:{port}"), Dialer(security))
        with pytest.raises(CertificateRejected, match="or shares no cipher suite with kctl"):
            connection.open(Deadline(20))


# --- a connection ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("certificates", "says"),
    [((), "requires a client certificate"), (("other",), "rejected the client certificate")],
)
def test_a_broker_that_wants_a_certificate(certificates: Sequence[str], says: str, files: TlsFiles) -> None:
    server = files.certificate("server", "root", extensions="subjectAltName=DNS:localhost\n")
    own = [str(files.joined(f"{name}-both.pem", files.key(name), files.path(f"{name}.pem"))) for name in certificates]
    security = Security("SSL", ssl_cafile=str(files.path("root.pem")), ssl_certfile=next(iter(own), None))
    with tls_server(server, files.key("server"), ca=files.path("root.pem"), version="TLSv1_2") as port:
        connection = Connection(parse_address(f"localhost:{port}"), Dialer(security))
        with pytest.raises(CertificateRejected, match=says):
            connection.open(Deadline(20))
