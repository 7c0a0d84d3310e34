"""The conversions in docs/secured-clusters.md, run as printed on keystores as people have them."""

from __future__ import annotations

import os
import pty
import re
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kctl.protocol.security import Security
from kctl.protocol.tls import make_context
from tls_files import TlsFiles, openssl

PAGE = Path(__file__).resolve().parents[2] / "docs/secured-clusters.md"
PASSWORD = "changeit"
_INTERMEDIATE = "basicConstraints=critical,CA:TRUE\nsubjectKeyIdentifier=hash\n"


def _conversions() -> list[str]:
    """Return the commands of the section on keystores."""
    section = PAGE.read_text(encoding="utf-8").split("## From Java keystores")[1]
    blocks = re.findall(r"^```text\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
    return [line for block in blocks for line in block.splitlines() if line.startswith(("keytool", "openssl"))]


def _keytool(folder: Path, *argv: str) -> None:
    passwords = ["-storepass", PASSWORD] if argv[0] == "-importcert" else ["-srcstorepass", PASSWORD]
    subprocess.run(["keytool", *argv, *passwords, "-noprompt"], cwd=folder, capture_output=True, check=True)


@pytest.fixture
def files(tmp_path: Path) -> TlsFiles:
    """Create a truststore, and a keystore with a chain. The keystore also trusts the broker's CA, as many do."""
    files = TlsFiles(tmp_path)
    files.certificate("root")
    files.certificate("intermediate", "root", extensions=_INTERMEDIATE)
    files.certificate("ops", "intermediate")
    files.certificate("broker", "root")
    chain = files.joined("chain.pem", files.path("intermediate.pem"), files.path("root.pem"))
    openssl("pkcs12", "-export", "-name", "ops", "-in", files.path("ops.pem"), "-inkey", files.path("ops.key"),
            "-certfile", chain, "-out", files.path("ops.p12"), "-passout", f"pass:{PASSWORD}")  # fmt: skip
    for store in ("truststore.jks", "keystore.jks"):
        _keytool(tmp_path, "-importcert", "-alias", "a-ca", "-file", "root.pem", "-keystore", store,
                 "-storetype", "JKS")  # fmt: skip
    _keytool(tmp_path, "-importkeystore", "-srckeystore", "ops.p12", "-destkeystore", "keystore.jks",
             "-deststorepass", PASSWORD)  # fmt: skip
    return files


def _run_on_a_terminal(command: str, folder: Path) -> str:
    """Run a command on a terminal, enter the password at each prompt, and return what the terminal showed."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(folder)
        os.execvp("sh", ["sh", "-c", command])
    shown, answered = "", 0
    while True:
        try:
            data = os.read(terminal, 4096)
        except OSError:  # Linux: the command ended
            break
        if not data:
            break
        shown += data.decode(errors="replace")
        prompts = len(re.findall(r"(?:password|pass phrase)[^\n]*?:", shown, re.IGNORECASE))
        os.write(terminal, f"{PASSWORD}\n".encode() * (prompts - answered))
        answered = prompts
    _, status = os.waitpid(pid, 0)
    os.close(terminal)
    assert os.waitstatus_to_exitcode(status) == 0, f"{command}\n{shown}"
    return shown


@contextmanager
def _server(files: TlsFiles) -> Iterator[tuple[str, int]]:
    """Serve a TLS port that trusts only the root and requires a client certificate; send "ok" after the handshake."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(files.path("broker.pem"), files.path("broker.key"))
    context.load_verify_locations(files.path("root.pem"))
    context.verify_mode = ssl.CERT_REQUIRED
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            connection, _ = listener.accept()
            with context.wrap_socket(connection, server_side=True) as encrypted:
                encrypted.sendall(b"ok")

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield listener.getsockname()[:2]
        thread.join(10)


def test_converted_keystores_connect(files: TlsFiles) -> None:
    for command in _conversions():
        _run_on_a_terminal(command, files.folder)
    context = make_context(
        Security(
            "SSL", ssl_cafile=str(files.path("ca.pem")), ssl_certfile=str(files.path("client.pem")),
            ssl_key_password=PASSWORD,
        )
    )  # fmt: skip
    with (
        _server(files) as address,
        socket.create_connection(address) as connection,
        context.wrap_socket(connection, server_hostname="localhost") as encrypted,
    ):
        assert encrypted.recv(2) == b"ok"
