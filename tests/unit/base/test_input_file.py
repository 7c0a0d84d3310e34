"""Files that people name are read whole, and nothing is waited for that never comes."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from kctl.base import input_file, strict_yaml
from kctl.base.input_file import read_input
from kctl.contexts.change import put_context
from kctl.contexts.command_config import read_client_config
from kctl.contexts.context import Context
from kctl.contexts.kafkactl_config import read_kafkactl_config
from kctl.deploy.config.broker_settings import read_settings
from kctl.errors import InvalidFile, KctlError, NotFound, Refused, UsageError


@pytest.fixture
def pipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(input_file, "PIPE_WAIT_S", 0.2)
    os.mkfifo(tmp_path / "pipe")
    return tmp_path / "pipe"


READERS: dict[str, Callable[[Path], object]] = {
    "any input": lambda path: read_input(path, max_bytes=100),
    "YAML": strict_yaml.load_file,
    "--command-config": lambda path: read_client_config(str(path)),
    "--config-file": lambda path: read_settings((), path),
    "kafkactl's config": lambda path: read_kafkactl_config(str(path)),
}


@pytest.mark.parametrize("name", READERS)
def test_a_pipe_without_a_writer(name: str, pipe: Path) -> None:
    with pytest.raises(InvalidFile, match="cannot read the pipe"):
        READERS[name](pipe)


@pytest.mark.parametrize("name", READERS)
def test_a_pipe_whose_writer_stays_silent(name: str, pipe: Path) -> None:
    ours = os.open(pipe, os.O_RDWR)
    try:
        os.write(ours, b"a: ")
        with pytest.raises(InvalidFile, match="cannot read the pipe"):
            READERS[name](pipe)
    finally:
        os.close(ours)


def test_what_a_pipe_holds(pipe: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also when the writer comes later, and in pieces."""
    monkeypatch.setattr(input_file, "PIPE_WAIT_S", 30)
    content = b"x" * 200_000

    def write() -> None:
        with pipe.open("wb", buffering=0) as file:
            file.write(content[:10])
            file.write(content[10:])

    writer = threading.Thread(target=write)
    writer.start()
    assert read_input(pipe, max_bytes=1 << 20) == (content, str(pipe))
    writer.join()


def test_what_is_no_file(tmp_path: Path) -> None:
    assert read_input(Path("/dev/null"), max_bytes=10)[0] == b"", "an empty file"
    assert read_settings((), Path("/dev/null")) == {}
    for device in ("/dev/zero", "/dev/full"):
        with pytest.raises(InvalidFile, match=r"is not a (regular )?file"):
            read_input(Path(device), max_bytes=10)
    with pytest.raises(InvalidFile, match="Is a directory"):
        read_input(tmp_path, max_bytes=10)
    with pytest.raises(NotFound, match="there is no file"):
        read_input(tmp_path / "none", max_bytes=10)
    (tmp_path / "much").write_bytes(b"x" * 11)
    with pytest.raises(InvalidFile, match="more than 10 bytes"):
        read_input(tmp_path / "much", max_bytes=10)


# --- the config file --------------------------------------------------------------------------------------------------


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "config.yaml"
    monkeypatch.setenv("KCTL_CONFIG", str(path))
    return path


ONE = "current_context: a\ncontexts:\n  a:\n    bootstrap_servers: [h:1]\n"


@pytest.mark.parametrize("mode", [0o600, 0o400, 0o644, 0o640, 0o755])
def test_modes_that_let_nobody_else_write(mode: int, config: Path) -> None:
    from kctl.contexts import choose as context

    config.write_text(ONE)
    config.chmod(mode)
    assert context.current_context() == "a"
    if mode & 0o200:
        put_context("b", Context(("h:2",)), make_current=True)
        assert config.stat().st_mode & 0o777 == mode


@pytest.mark.parametrize("mode", [0o666, 0o602, 0o622, 0o777])
def test_a_config_file_that_others_may_write(mode: int, config: Path) -> None:
    from kctl.contexts import choose as context

    config.write_text(ONE)
    config.chmod(mode)
    with pytest.raises(Refused, match=f"other users can write to .* \\(mode 0{mode:o}\\)") as caught:
        context.current_context()
    assert f"chmod go-w {config}" in str(caught.value.hint)
    with pytest.raises(Refused):
        put_context("b", Context(("h:2",)), make_current=True)
    assert config.read_text() == ONE


def test_a_group_that_has_other_members(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import grp

    from kctl.contexts import choose as context

    config.write_text(ONE)
    config.chmod(0o660)
    for members, refused in (([], False), (["somebody-else"], True)):
        group = grp.struct_group(("g", "x", os.getgid(), members))
        monkeypatch.setattr(grp, "getgrgid", lambda _id, found=group: found)
        if refused:
            with pytest.raises(Refused, match="other users can write to"):
                context.current_context()
        else:
            assert context.current_context() == "a"


def a_pipe(path: Path) -> Path:
    os.mkfifo(path)
    return path


def a_folder(path: Path) -> Path:
    path.mkdir()
    return path


def null(path: Path) -> Path:
    path.symlink_to("/dev/null")
    return path


@pytest.mark.parametrize("make", [a_pipe, a_folder, null])
def test_a_config_file_that_is_none(make: Callable[[Path], Path], config: Path) -> None:
    """It is not waited for, and nothing is renamed over it. /dev/null is an empty one."""
    from kctl.contexts import choose as context

    before = make(config).stat()
    if make is null:
        assert context.list_contexts() == {}
    else:
        with pytest.raises(UsageError, match=r"is not a (regular )?file"):
            context.list_contexts()
    with pytest.raises(KctlError, match=r"is not a (regular )?file"):
        put_context("b", Context(("h:2",)), make_current=True)
    assert (config.stat().st_mode, config.stat().st_ino) == (before.st_mode, before.st_ino)
    assert [each.name for each in config.parent.iterdir()] == ["config.yaml"]


def test_the_lock_is_no_link(config: Path, tmp_path: Path) -> None:

    (tmp_path / "precious").write_text("old")
    (tmp_path / "config.yaml.lock").symlink_to("precious")
    with pytest.raises(KctlError, match="symbolic links"):
        put_context("b", Context(("h:2",)), make_current=True)
    assert (tmp_path / "precious").read_text() == "old"


def test_a_dangling_link_is_followed(config: Path, tmp_path: Path) -> None:

    config.symlink_to("dotfiles.yaml")
    put_context("b", Context(("h:2",)), make_current=True)
    assert config.is_symlink()
    assert "h:2" in (tmp_path / "dotfiles.yaml").read_text()
