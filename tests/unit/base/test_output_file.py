"""Where results go: what is not a regular file stays what it is, and what is one is replaced whole, or not at all."""

from __future__ import annotations

import os
import resource
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from kctl.base import output_file
from kctl.base.output_file import check_output_path, open_output, write_output
from kctl.errors import OperationFailed, UsageError

NEW = b"new content\n" * 1000


def plain(folder: Path) -> Path:
    path = folder / "plain"
    path.write_bytes(b"old")
    return path


def link(folder: Path) -> Path:
    path = folder / "link"
    path.symlink_to(plain(folder).name)
    return path


def chain(folder: Path) -> Path:
    (folder / "one").symlink_to(link(folder))
    path = folder / "two"
    path.symlink_to("./one")
    return path


def dangling(folder: Path) -> Path:
    path = folder / "dangling"
    path.symlink_to("plain")
    return path


def by_a_linked_folder(folder: Path) -> Path:
    (folder / "sub").mkdir()
    (folder / "elsewhere").symlink_to("sub")
    (folder / "sub" / "file").symlink_to("../plain")
    return folder / "elsewhere" / "file"


def hard_link(folder: Path) -> Path:
    path = folder / "second"
    path.hardlink_to(plain(folder))
    return path


@pytest.mark.parametrize("make", [plain, link, chain, dangling, by_a_linked_folder, hard_link])
def test_the_file_behind_all_names_gets_the_content(make: Callable[[Path], Path], tmp_path: Path) -> None:
    path = make(tmp_path)
    is_link, names = path.is_symlink(), sorted(each.name for each in tmp_path.iterdir())
    write_output(path, NEW)
    assert (tmp_path / "plain").read_bytes() == NEW
    assert path.is_symlink() == is_link
    assert sorted({*names, "plain"}) == sorted(each.name for each in tmp_path.iterdir()), "nothing is left over"


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664, 0o755])
@pytest.mark.parametrize("make", [plain, link, hard_link])
def test_mode_and_owner_stay(make: Callable[[Path], Path], mode: int, tmp_path: Path) -> None:
    path = make(tmp_path)
    path.chmod(mode)
    if os.geteuid() == 0:
        os.chown(path, 12345, 54321)
    before = path.stat()
    write_output(path, b"x")
    after = path.stat()
    assert (after.st_mode, after.st_uid, after.st_gid) == (before.st_mode, before.st_uid, before.st_gid)


@pytest.mark.parametrize("name", ["文" * 85, "x" * 255, "\udcff\udce9.json", "a\nb", "-", "~", "*"])
def test_names_that_a_file_may_have(name: str, tmp_path: Path) -> None:
    """Up to 255 bytes, also what is not UTF-8."""
    for content in (b"one", b"two"):
        write_output(tmp_path / name, content)
        assert (tmp_path / name).read_bytes() == content
    assert [each.name for each in tmp_path.iterdir()] == [name]


def test_a_new_file_has_the_mode_of_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write_output(tmp_path / "open", b"x")
        write_output(tmp_path / "private", b"x", mode=0o600)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "open").stat().st_mode) == 0o640
    assert stat.S_IMODE((tmp_path / "private").stat().st_mode) == 0o600


@pytest.mark.parametrize("make", [plain, hard_link, link])
def test_what_fails_leaves_the_old_content(make: Callable[[Path], Path], tmp_path: Path) -> None:
    path = make(tmp_path)
    with pytest.raises(TypeError), open_output(path) as stream:
        stream.writelines([NEW, None])  # type: ignore[list-item]  # what raises
    assert path.read_bytes() == b"old"
    assert not [each for each in tmp_path.iterdir() if each.name.startswith(".")]


@pytest.mark.parametrize("make", [plain, hard_link])
def test_a_file_that_may_not_grow_keeps_its_content(make: Callable[[Path], Path], tmp_path: Path) -> None:
    path = make(tmp_path)
    code = (
        "import resource, signal, sys\n"
        "from pathlib import Path\n"
        "from kctl.base.output_file import write_output\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        "write_output(Path(sys.argv[1]), b'x' * 100_000)\n"
    )
    assert resource.RLIMIT_FSIZE >= 0
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=False)
    assert f"OperationFailed: cannot write {path}: File too large" in done.stderr
    assert path.read_bytes() == b"old"


def test_a_pipe_gets_the_content_and_stays(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    (tmp_path / "link").symlink_to(path)
    for name in ("pipe", "link"):
        got: list[bytes] = []
        reader = threading.Thread(target=lambda into=got: into.append(path.read_bytes()))
        reader.start()
        write_output(tmp_path / name, NEW * 20)
        reader.join(30)
        assert got == [NEW * 20]
        assert stat.S_ISFIFO(path.lstat().st_mode)


def test_a_pipe_is_not_waited_for_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output_file, "PIPE_WAIT_S", 0.2)
    path = tmp_path / "pipe"
    os.mkfifo(path)
    with pytest.raises(OperationFailed, match="no reader opened the pipe"):
        write_output(path, b"x")
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # a reader that never reads
    with pytest.raises(OperationFailed, match="its reader did not read"):
        write_output(path, b"x" * 1_000_000)
    os.close(fd)
    assert stat.S_ISFIFO(path.lstat().st_mode)


def test_a_device_gets_the_content_and_stays(tmp_path: Path) -> None:
    """A node of the same kind as /dev/null, made here: nothing but this test can lose it."""
    path = tmp_path / "null"
    try:
        os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
        write_output(path, NEW)
    except (PermissionError, OperationFailed):  # not root, or a file system that takes no devices
        path = Path("/dev/null")
        write_output(path, NEW)
    assert stat.S_ISCHR(path.lstat().st_mode)
    assert path.stat().st_rdev == os.makedev(1, 3)
    (tmp_path / "link").symlink_to(path)
    write_output(tmp_path / "link", NEW)
    assert stat.S_ISCHR(path.lstat().st_mode)


def test_a_full_device() -> None:
    with pytest.raises(OperationFailed, match="cannot write /dev/full: No space left on device"):
        write_output(Path("/dev/full"), NEW)


ONE_WRITE = (
    "import sys\n"
    "from pathlib import Path\n"
    "from kctl.base.output_file import write_output\n"
    "print('before')\n"
    "write_output(Path(sys.argv[1]), b'written\\n')\n"
    "print('after')\n"
)


@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", "/proc/thread-self/fd/1"])
@pytest.mark.parametrize("kind", ["file", "pipe", "socket"])
def test_stdout_by_its_names(name: str, kind: str, tmp_path: Path) -> None:
    """Behind what was printed before, also where that is a file."""
    argv = [sys.executable, "-c", ONE_WRITE, name]
    if kind == "file":
        with (tmp_path / "out").open("wb") as out:
            subprocess.run(argv, stdout=out, check=True)
        assert (tmp_path / "out").read_text() == "before\nwritten\nafter\n"
        return
    if kind == "pipe":
        assert subprocess.run(argv, stdout=subprocess.PIPE, check=True).stdout == b"before\nwritten\nafter\n"
        return
    ours, other = socket.socketpair()
    with ours, other:
        subprocess.run(argv, stdout=other.fileno(), check=True)
        other.close()
        assert ours.recv(1000) == b"before\nwritten\nafter\n"


def test_another_descriptor(tmp_path: Path) -> None:
    """As a shell's >(…) gives it."""
    reading, writing = os.pipe()
    subprocess.run([sys.executable, "-c", ONE_WRITE, f"/dev/fd/{writing}"], pass_fds=[writing], check=True)
    os.close(writing)
    assert os.read(reading, 1000) == b"written\n"
    os.close(reading)


def a_folder(folder: Path) -> Path:
    return folder


def in_no_folder(folder: Path) -> Path:
    return folder / "none" / "file"


def below_a_file(folder: Path) -> Path:
    return plain(folder) / "file"


def link_to_no_folder(folder: Path) -> Path:
    path = folder / "link"
    path.symlink_to("none/file")
    return path


def link_to_a_folder(folder: Path) -> Path:
    path = folder / "link"
    path.symlink_to(folder)
    return path


def loop(folder: Path) -> Path:
    (folder / "one").symlink_to("two")
    (folder / "two").symlink_to("one")
    return folder / "one"


def a_socket(folder: Path) -> Path:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(folder / "s"))
    return folder / "s"


def closed_descriptor(folder: Path) -> Path:
    return Path("/dev/fd/987")


def too_long(folder: Path) -> Path:
    return folder / ("x" * 300)


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (a_folder, "is a folder"),
        (in_no_folder, "does not exist"),
        (below_a_file, "(does not exist|Not a directory)"),
        (link_to_no_folder, "does not exist"),
        (link_to_a_folder, "is a folder"),
        (loop, "Too many levels of symbolic links"),
        (a_socket, "is a socket"),
        (closed_descriptor, "Bad file descriptor"),
        (too_long, "File name too long"),
    ],
)
def test_what_cannot_be_written_is_known_before(make: Callable[[Path], Path], reason: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=reason):
        check_output_path(make(tmp_path))


def test_a_strangers_link_in_a_shared_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As fs.protected_symlinks has it; kctl resolves links itself, so that the kernel does not look."""
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    (tmp_path / "victim").write_text("old")
    (shared / "report").symlink_to(tmp_path / "victim")
    assert check_output_path(shared / "report").path == tmp_path / "victim"
    monkeypatch.setattr(os, "geteuid", lambda: 4711)
    if os.geteuid() == shared.stat().st_uid:
        raise AssertionError
    real = os.stat

    def of_root(path: str) -> os.stat_result:
        found = real(path)
        return os.stat_result([*found[:4], 1, *found[5:]]) if path == str(shared) else found

    monkeypatch.setattr(os, "stat", of_root)
    with pytest.raises(UsageError, match="another user's link in a shared folder"):
        check_output_path(shared / "report")


@pytest.mark.parametrize("name", ["plain", "hard link", "new"])
def test_a_folder_that_takes_no_new_file(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is there is written to all the same; nothing new can be. The refusal is made here: root gets none."""

    def refused(path: Path, mode: int) -> tuple[int, str]:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(output_file, "_new_file", refused)
    path = tmp_path / "new" if name == "new" else hard_link(tmp_path) if name == "hard link" else plain(tmp_path)
    if name == "new":
        with pytest.raises(OperationFailed, match="Permission denied"):
            write_output(path, NEW)
        return
    write_output(path, NEW)
    assert path.read_bytes() == NEW


def test_a_mount_point(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that is mounted alone, as containers have it, cannot be renamed over."""

    def busy(source: str, target: Path) -> None:
        raise OSError(16, "Device or resource busy")

    monkeypatch.setattr(os, "replace", busy)
    path = plain(tmp_path)
    write_output(path, NEW)
    assert path.read_bytes() == NEW
    assert [each.name for each in tmp_path.iterdir()] == ["plain"]
