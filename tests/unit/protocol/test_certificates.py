"""Files of certificates and keys as people have them: used, or called what they are, each cause by its name."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Callable

import pytest

from kctl.errors import UsageError
from kctl.protocol.security import Security
from kctl.protocol.tls import make_context
from tls_files import KEY_PASSWORD, TlsFiles, handshake, openssl, tls_server
from tls_rows import with_authorities


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> TlsFiles:
    return with_authorities(tmp_path_factory.mktemp("tls"))


def written(files: TlsFiles, name: str, data: bytes | str) -> str:
    path = files.path(name)
    path.write_bytes(data if isinstance(data, bytes) else data.encode("latin-1"))
    return str(path)


def root(files: TlsFiles) -> str:
    return files.path("root.pem").read_text()


def keytool(*argv: str) -> None:
    done = subprocess.run(["keytool", "-storepass", "changeit", "-noprompt", *argv], capture_output=True, check=False)
    assert done.returncode == 0, done.stdout


def store(files: TlsFiles, kind: str) -> str:
    path = files.path(f"trust.{kind.lower()}")
    if not path.exists():
        keytool(
            "-importcert",
            "-alias",
            "ca",
            "-file",
            str(files.path("root.pem")),
            "-keystore",
            str(path),
            "-storetype",
            kind,
        )
    return str(path)


def one_line(files: TlsFiles) -> str:
    return " ".join(root(files).split("\n"))


def empty_folder(files: TlsFiles) -> str:
    files.path("void").mkdir(exist_ok=True)
    return str(files.path("void"))


def folder(files: TlsFiles) -> str:
    path = files.path("folder")
    path.mkdir(exist_ok=True)
    (path / "ca.pem").write_text(root(files))
    return str(path)


USABLE_AUTHORITIES: dict[str, Callable[[TlsFiles], str]] = {
    "PEM": lambda f: str(f.path("root.pem")),
    "CRLF": lambda f: written(f, "crlf.pem", root(f).replace("\n", "\r\n")),
    "a BOM": lambda f: written(f, "bom.pem", b"\xef\xbb\xbf" + root(f).encode()),
    "comments in Latin-1": lambda f: written(f, "comments.pem", f"# \xe9\n{root(f)}"),
    "in one line": lambda f: written(f, "line.pem", one_line(f)),
    "with a key": lambda f: written(f, "with-key.pem", f.key("root").read_text() + root(f)),
    "what keytool -list -rfc writes": lambda f: written(
        f, "rfc.pem", f"Alias name: ca\nEntry: x\n\n{root(f)}\n\n***\n"
    ),
    "several": lambda f: str(f.joined("several.pem", f.path("other.pem"), f.path("root.pem"))),
    "X509 CERTIFICATE": lambda f: written(f, "x509.pem", root(f).replace("CERTIFICATE", "X509 CERTIFICATE")),
    "TRUSTED CERTIFICATE": lambda f: written(f, "trusted.pem", openssl("x509", "-in", f.path("root.pem"), "-trustout")),
    "a folder": folder,
}


@pytest.mark.parametrize("name", USABLE_AUTHORITIES)
def test_authorities(name: str, files: TlsFiles) -> None:
    certificate = files.certificate("server", "root", extensions="subjectAltName=DNS:localhost\n")
    with tls_server(certificate, files.key("server")) as port:
        assert handshake(Security("SSL", ssl_cafile=USABLE_AUTHORITIES[name](files)), port) == ""


def test_authorities_as_text(files: TlsFiles) -> None:
    certificate = files.certificate("server", "root", extensions="subjectAltName=DNS:localhost\n")
    with tls_server(certificate, files.key("server")) as port:
        for text in (root(files), one_line(files)):
            assert handshake(Security("SSL", ssl_ca_pem=text), port) == ""
    with pytest.raises(UsageError, match="has no certificate"):
        make_context(Security("SSL", ssl_ca_pem="-----BEGIN X-----"))


def der(files: TlsFiles, *argv: str) -> bytes:
    return openssl(*argv, "-outform", "DER")


AUTHORITIES: dict[str, tuple[Callable[[TlsFiles], str], str, str]] = {
    "absent": (lambda f: str(f.path("absent")), "cannot read ssl_cafile", "path"),
    "empty": (lambda f: written(f, "empty.pem", ""), "is empty", "BEGIN"),
    "text": (lambda f: written(f, "text.pem", "# a script\nset -e\n"), "neither PEM nor a keystore", "BEGIN"),
    "DER": (
        lambda f: written(f, "ca.der", der(f, "x509", "-in", str(f.path("root.pem")))),
        "in DER",
        "x509 -inform der",
    ),
    "PKCS #7": (
        lambda f: written(f, "ca.p7b", der(f, "crl2pkcs7", "-nocrl", "-certfile", str(f.path("root.pem")))),
        "PKCS #7",
        "pkcs7 -inform der",
    ),
    "a key in DER": (
        lambda f: written(f, "key.der", der(f, "pkey", "-in", str(f.key("root")))),
        "a private key in DER",
        "pkey",
    ),
    "JKS": (lambda f: store(f, "JKS"), r"a Java keystore \(JKS\)", "keytool -list -rfc"),
    "JCEKS": (lambda f: store(f, "JCEKS"), r"a Java keystore \(JCEKS\)", "keytool"),
    "PKCS #12": (lambda f: store(f, "PKCS12"), r"a Java keystore \(PKCS #12\)", "keytool -list -rfc"),
    "a key": (lambda f: str(f.key("root")), "has no certificate; it has PRIVATE KEY", "CERTIFICATE"),
    "cut off": (lambda f: written(f, "cut.pem", root(f)[:300]), "has no certificate", "CERTIFICATE"),
    "damaged": (lambda f: written(f, "bad.pem", root(f).replace("M", "!", 1)), "the certificate is damaged", "again"),
    "one of two damaged": (
        lambda f: written(f, "bad2.pem", root(f) + root(f)[:200] + root(f)[300:]),
        "certificate 2 of 2 is damaged",
        "again",
    ),
    "OpenSSH": (lambda f: written(f, "ssh.pub", "ssh-ed25519 AAAA me"), "OpenSSH", "ssh-keygen"),
    "an empty folder": (empty_folder, "has no certificate", "CERT"),
}


@pytest.mark.parametrize("name", AUTHORITIES)
def test_authorities_that_cannot_be_used(name: str, files: TlsFiles) -> None:
    make, says, hint = AUTHORITIES[name]
    with pytest.raises(UsageError, match=says) as caught:
        make_context(Security("SSL", ssl_cafile=make(files)))
    assert hint in (caught.value.hint or "")
    assert "password" not in f"{caught.value.message} {caught.value.hint}"


def client(files: TlsFiles) -> str:
    return files.certificate("client", "root", extensions="").read_text()


def key(files: TlsFiles) -> str:
    return files.key("client").read_text()


def encrypted(files: TlsFiles, *, old: bool = False) -> str:
    path = files.path(f"encrypted-{old}.key")
    if not path.exists():
        name = "old-rsa" if old else "client"
        files.key(name, rsa=2048 if old else 0)
        if old:
            openssl(
                "rsa",
                "-aes128",
                "-traditional",
                "-in",
                files.key(name),
                "-out",
                path,
                "-passout",
                f"pass:{KEY_PASSWORD}",
            )
        else:
            openssl("pkcs8", "-topk8", "-in", files.key(name), "-out", path, "-passout", f"pass:{KEY_PASSWORD}")
    return path.read_text()


def pair(files: TlsFiles, *parts: str) -> Security:
    """One file with all of it."""
    name = f"pair-{len(list(files.folder.iterdir()))}.pem"
    return Security("SSL", ssl_certfile=written(files, name, "".join(parts)))


def two(files: TlsFiles, certificate: str, key_text: str, password: str | None = None) -> Security:
    number = len(list(files.folder.iterdir()))
    return Security(
        "SSL", ssl_certfile=written(files, f"c-{number}.pem", certificate),
        ssl_keyfile=written(files, f"k-{number}.key", key_text), ssl_key_password=password,
    )  # fmt: skip


USABLE_CLIENTS: dict[str, Callable[[TlsFiles], Security]] = {
    "two files": lambda f: two(f, client(f), key(f)),
    "one file": lambda f: pair(f, client(f), key(f)),
    "the key first": lambda f: pair(f, key(f), client(f)),
    "with the chain": lambda f: pair(f, key(f), client(f), root(f)),
    "encrypted": lambda f: two(f, client(f), encrypted(f), KEY_PASSWORD),
    "a password without need": lambda f: two(f, client(f), key(f), "x"),
    "text": lambda f: Security("SSL", ssl_client_pem=f"{key(f)}\n{client(f)}"),
    "text in one line": lambda f: Security("SSL", ssl_client_pem=" ".join(f"{key(f)} {client(f)}".split("\n"))),
    "text, encrypted": lambda f: Security(
        "SSL", ssl_client_pem=encrypted(f) + client(f), ssl_key_password=KEY_PASSWORD
    ),
}


@pytest.mark.parametrize("name", USABLE_CLIENTS)
def test_client_certificates(name: str, files: TlsFiles) -> None:
    security = USABLE_CLIENTS[name](files)
    server = files.certificate("server", "root", extensions="subjectAltName=DNS:localhost\n")
    with (
        tls_server(server, files.key("server"), ca=files.path("root.pem"), version="TLSv1_2") as port,
        socket.create_connection(("127.0.0.1", port), timeout=20) as sock,
    ):
        context = make_context(security)
        context.load_verify_locations(files.path("root.pem"))
        context.wrap_socket(sock, server_hostname="localhost").close()


def weak(files: TlsFiles, name: str, issuer: str, digest: str = "sha256", rsa: int = 0) -> Security:
    certificate = files.certificate(name, issuer, extensions="", digest=digest, rsa=rsa)
    return Security("SSL", ssl_certfile=str(certificate), ssl_keyfile=str(files.key(name)))


CLIENTS: dict[str, tuple[Callable[[TlsFiles], Security], str, str]] = {
    "absent": (lambda f: Security("SSL", ssl_certfile="/absent.pem"), "cannot read ssl_certfile /absent.pem", "path"),
    "the key absent": (
        lambda f: Security("SSL", ssl_certfile=pair(f, client(f)).ssl_certfile, ssl_keyfile="/absent.key"),
        "cannot read ssl_keyfile /absent.key",
        "path",
    ),
    "no certificate": (lambda f: pair(f, key(f)), "has no certificate", "certificate in PEM"),
    "no key": (lambda f: pair(f, client(f)), "has no private key", "ssl_keyfile"),
    "no key in its file": (lambda f: two(f, client(f), client(f)), "ssl_keyfile .* has no private key", "ssl_keyfile"),
    "another key": (
        lambda f: two(f, client(f), f.key("other").read_text()),
        "does not belong",
        "ssl_keyfile to the key of that certificate",
    ),
    "a key of another kind": (
        lambda f: two(f, client(f), f.key("rsa-root").read_text()),
        "does not belong",
        "ssl_keyfile",
    ),
    "the CA first": (lambda f: pair(f, key(f), root(f), client(f)), "does not belong", "must be the first"),
    "encrypted, no password": (
        lambda f: two(f, client(f), encrypted(f)),
        "is encrypted, and there is no password",
        "ssl.key.password",
    ),
    "encrypted, empty password": (
        lambda f: two(f, client(f), encrypted(f), ""),
        "there is no password for it",
        "ssl_key_password",
    ),
    "encrypted, wrong password": (
        lambda f: two(f, client(f), encrypted(f), "wrong"),
        "the password of the key in .* is wrong",
        "",
    ),
    "encrypted as before, no password": (
        lambda f: two(f, client(f), encrypted(f, old=True)),
        "there is no password for it",
        "",
    ),
    "encrypted as before, wrong": (
        lambda f: two(f, client(f), encrypted(f, old=True), "wrong"),
        "the password .* is wrong",
        "",
    ),
    "text, wrong password": (
        lambda f: Security("SSL", ssl_client_pem=encrypted(f) + client(f), ssl_key_password="wrong"),
        "the password of the key in the client properties is wrong",
        "",
    ),
    "a key cut off": (lambda f: two(f, client(f), key(f)[:80]), "has no private key", ""),
    "a damaged key": (lambda f: two(f, client(f), key(f)[:60] + key(f)[70:]), "is damaged", ""),
    "an encrypted key, damaged": (
        lambda f: two(f, client(f), encrypted(f)[:100] + encrypted(f)[104:], KEY_PASSWORD),
        "is damaged",
        "",
    ),
    "a damaged certificate": (
        lambda f: pair(f, key(f), client(f)[:100] + client(f)[104:]),
        "certificate 1 is damaged",
        "",
    ),
    "DER": (
        lambda f: Security("SSL", ssl_certfile=written(f, "c.der", der(f, "x509", "-in", str(f.path("root.pem"))))),
        "in DER format",
        "openssl x509",
    ),
    "PKCS #12": (lambda f: Security("SSL", ssl_certfile=store(f, "PKCS12")), "PKCS #12", "-cacerts -nokeys >>"),
    "JKS": (lambda f: Security("SSL", ssl_certfile=store(f, "JKS")), "JKS", "keytool -importkeystore"),
    "OpenSSH": (lambda f: two(f, client(f), "-----BEGIN OPENSSH PRIVATE KEY-----\nx\n"), "OpenSSH's", "ssh-keygen"),
    "a small key": (
        lambda f: weak(f, "weak-key", "root", rsa=1024),
        "the key of its certificate is too small",
        "SECLEVEL=0",
    ),
    "SHA-1": (lambda f: weak(f, "weak-sha1", "root", "sha1"), "signed with SHA-1$", "SECLEVEL=0"),
    "MD5": (lambda f: weak(f, "weak-md5", "rsa-root", "md5"), "signed with MD5$", "SECLEVEL=0"),
}


@pytest.mark.parametrize("name", CLIENTS)
def test_client_certificates_that_cannot_be_used(name: str, files: TlsFiles) -> None:
    make, says, hint = CLIENTS[name]
    with pytest.raises(UsageError, match=says) as caught:
        make_context(make(files))
    assert hint in (caught.value.hint or "")
    if "password" not in says:
        assert "password" not in caught.value.message
    assert KEY_PASSWORD not in f"{caught.value.message} {caught.value.hint}"


def test_weak_client_certificates_can_be_asked_for(files: TlsFiles) -> None:
    for security in (weak(files, "weak-key", "root", rsa=1024), weak(files, "weak-sha1", "root", "sha1")):
        make_context(Security("SSL", ssl_certfile=security.ssl_certfile, ssl_keyfile=security.ssl_keyfile,
                              ssl_ciphers="DEFAULT@SECLEVEL=0"))  # fmt: skip
