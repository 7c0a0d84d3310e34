"""Secrets in files, pipes and variables: what is read, what is refused, and when nothing is read at all."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import threading
import time
from dataclasses import asdict
from pathlib import Path

import pytest

from kctl.base import secrets
from kctl.base.secrets import Warn, check_secret_file, read_secret
from kctl.contexts.change import put_context
from kctl.contexts.choose import resolve_target
from kctl.contexts.context import Context
from kctl.errors import UsageError
from kctl.protocol.security import SecuritySettings

NOBODY = 65534


def _file(folder: Path, data: bytes, mode: int = 0o600) -> Path:
    path = folder / "pw"
    path.write_bytes(data)
    path.chmod(mode)
    return path


@pytest.mark.parametrize(
    ("data", "secret"),
    [
        (b"hunter2", "hunter2"),
        (b"hunter2\n", "hunter2"),
        (b"hunter2\r\n", "hunter2"),
        (b"hunter2\n\n", "hunter2\n"),  # one newline, and no more
        (b"hunter2\r", "hunter2\r"),
        (b"hunter2\r\n\r\n", "hunter2\r\n"),
        (b"hunter2 ", "hunter2 "),
        (b" hunter2", " hunter2"),
        (b"two\nlines\n", "two\nlines"),
        (b"\xef\xbb\xbfhunter2\r\n", "hunter2"),  # as Notepad and PowerShell write it
        (b"\xef\xbb\xbf\xef\xbb\xbfx", "\ufeffx"),
        ("pässwörd🔑\n".encode(), "pässwörd🔑"),
        (b'a"b\\c', 'a"b\\c'),
        (b"x" * 65536, "x" * 65536),
    ],
)
def test_what_a_file_holds(tmp_path: Path, data: bytes, secret: str) -> None:
    warnings: list[str] = []
    assert read_secret("the password", None, str(_file(tmp_path, data)), warn=warnings.append) == secret
    assert warnings == []


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "is empty"),
        (b"\n", "is empty"),
        (b"\r\n", "is empty"),
        (b"\xef\xbb\xbf", "is empty"),
        (b"\xef\xbb\xbf\n", "is empty"),
        ("hunter2\r\n".encode("utf-16"), "is UTF-16 text"),
        (b"\xfe\xff" + "hunter2".encode("utf-16-be"), "is UTF-16 text"),
        ("hunter2".encode("utf-16-le"), "has NUL bytes"),
        ("hunter2".encode("utf-32"), "is UTF-16 text"),
        (b"hunter2\0", "has NUL bytes"),
        ("pässwörd".encode("latin-1"), "is not UTF-8 text"),
        (b"x" * 65537, "is larger than 64 KiB"),
        (b"x" * 1_000_000, "is larger than 64 KiB"),
    ],
    ids=lambda _value: "",
)
def test_what_is_no_secret(tmp_path: Path, data: bytes, says: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_secret("the password", None, str(_file(tmp_path, data)))
    assert says in caught.value.message
    assert "hunter2" not in f"{caught.value}{caught.value.hint}"


@pytest.mark.parametrize(
    ("mode", "result"),
    [
        (0o400, ""), (0o600, ""), (0o700, ""),
        (0o440, "warns"), (0o444, "warns"), (0o640, "warns"), (0o644, "warns"), (0o660, "warns"), (0o664, "warns"),
        (0o604, "warns"), (0o755, "warns"),
        (0o602, "refused"), (0o646, "refused"), (0o666, "refused"), (0o777, "refused"),
    ],
)  # fmt: skip
def test_modes(tmp_path: Path, mode: int, result: str) -> None:
    path = _file(tmp_path, b"hunter2\n", mode)

    def read(warn: Warn) -> None:
        read_secret("pw", None, str(path), warn=warn)

    def only_check(warn: Warn) -> None:
        check_secret_file(path, "pw", warn=warn)

    for check in (read, only_check):
        warnings: list[str] = []
        if result == "refused":
            with pytest.raises(UsageError, match=f"is world-writable \\(mode 0{mode:o}\\)"):
                check(warnings.append)
        else:
            check(warnings.append)
        assert [f"mode 0{mode:o}" in line for line in warnings] == ([True] if result == "warns" else [])


def test_mounted_secrets_are_links(tmp_path: Path) -> None:
    """Kubernetes: pw -> ..data/pw, ..data -> ..2026_01_01, which are replaced as a whole."""
    folder = tmp_path / "..2026_01_01"
    folder.mkdir()
    _file(folder, b"hunter2", 0o440)
    (tmp_path / "..data").symlink_to("..2026_01_01")
    (tmp_path / "pw").symlink_to("..data/pw")
    assert read_secret("pw", None, str(tmp_path / "pw")) == "hunter2"


def test_what_is_no_file(tmp_path: Path) -> None:
    for path, says in (
        (tmp_path, "is a folder"), (tmp_path / "none", "No such file"), (Path("/dev/zero"), "is not a file"),
        (tmp_path / "none" / "pw", "No such file"),
    ):  # fmt: skip
        with pytest.raises(UsageError, match=says):
            read_secret("pw", None, str(path))


def test_pipes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secrets, "_PIPE_S", 0.2)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe, 0o644)
    began = time.monotonic()
    with pytest.raises(UsageError, match="its writer did not finish within"):
        read_secret("pw", None, str(pipe))  # nobody writes
    assert time.monotonic() - began < 5

    monkeypatch.setattr(secrets, "_PIPE_S", 20)

    def late() -> None:
        time.sleep(0.1)
        with pipe.open("wb", buffering=0) as stream:
            stream.write(b"hun")
            time.sleep(0.1)
            stream.write(b"ter2\n")

    threading.Thread(target=late).start()
    assert read_secret("pw", None, str(pipe)) == "hunter2"

    monkeypatch.setattr(secrets, "_PIPE_S", 0.2)
    keeps_open = os.open(pipe, os.O_RDWR)
    os.write(keeps_open, b"hunter2")
    with pytest.raises(UsageError, match="its writer did not finish within"):
        read_secret("pw", None, str(pipe))
    os.close(keeps_open)


@pytest.mark.parametrize("writer", ["printf hunter2", "echo hunter2", "sleep 0.2; echo hunter2"])
def test_process_substitution(writer: str) -> None:
    code = "import sys; from kctl.base.secrets import read_secret; print(read_secret('pw', None, sys.argv[1]))"
    command = f'exec "$0" -c "$1" <({writer})'
    found = subprocess.run(["bash", "-c", command, sys.executable, code], capture_output=True, text=True, check=True)
    assert found.stdout == "hunter2\n"


def test_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PW", "hunter2\n")
    assert read_secret("pw", "PW", None) == "hunter2\n"  # as it is
    monkeypatch.setenv("PW", "")
    with pytest.raises(UsageError, match="PW for pw is not set"):
        read_secret("pw", "PW", None)
    monkeypatch.setenv("PW", "p\udce4ss")
    with pytest.raises(UsageError, match="is not UTF-8"):
        read_secret("pw", "PW", None)
    assert read_secret("pw", None, None) is None


def test_as_another_user(tmp_path: Path) -> None:
    """0444 and owned by root, read by somebody else, as in a container."""
    if os.getuid() != 0:
        pytest.fail("this test needs root, as CI has it")
    path = _file(tmp_path, b"hunter2\n", 0o444)
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_mode & 0o001 == 0:
            folder.chmod(folder.stat().st_mode | 0o011)
    code = (
        "import os, select, sys; from kctl.base.secrets import read_secret; "
        f"os.setgroups([]); os.setgid({NOBODY}); os.setuid({NOBODY}); "
        "print(read_secret('pw', None, sys.argv[1], warn=lambda line: print('W', line)))"
    )
    found = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
    assert found.stdout.splitlines()[-1] == "hunter2"
    assert "mode 0444" in found.stdout
    path.chmod(0o600)
    denied = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=False)
    assert "Permission denied" in denied.stderr


def test_a_context_reads_a_secret_only_when_it_is_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KCTL_CONFIG", str(tmp_path / "config.yaml"))
    path = tmp_path / "pw"
    security = SecuritySettings(
        protocol="SASL_PLAINTEXT", sasl_mechanism="PLAIN", sasl_username="u", sasl_password_file=str(path)
    )
    put_context("c", Context(("127.0.0.1:1",), "127.0.0.1:2", security), make_current=True)
    warnings: list[str] = []
    target = resolve_target(warn=warnings.append)  # the file is not there
    assert "hunter2" not in repr(target.security)
    with pytest.raises(UsageError, match="No such file"):
        _ = target.security.sasl_password
    _file(tmp_path, b"hunter2\n", 0o444)
    assert target.security.sasl_password == "hunter2"
    path.unlink()
    assert target.security.secrets == {"hunter2"}  # read once
    assert len(warnings) == 1
    assert pickle.loads(pickle.dumps(target)).security.sasl_password == "hunter2"
    assert asdict(target)["security"]["sasl_password"] == "hunter2"
    assert "hunter2" not in repr(target)
