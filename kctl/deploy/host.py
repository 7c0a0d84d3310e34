"""What runs a command or writes a file on a host: one small interface, so that layouts need not know where they run.

`LocalHost` is this machine. Every method raises a KctlError that names the path or process, never a bare OSError;
a file that is not there is `None` where that is an answer.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import signal
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from kctl.deploy import ports, process
from kctl.deploy.process import Completed, ProcessIdentity, ProcessUsage
from kctl.errors import OperationFailed

MAX_FILE_BYTES = 16 << 20


class Host(Protocol):
    """A machine that runs a cluster's processes."""

    def run(self, argv: Sequence[str], *, timeout_s: float) -> Completed:
        """Run a command to its end."""

    def read_file(self, path: Path, *, max_bytes: int = MAX_FILE_BYTES) -> bytes | None:
        """The whole file; None when there is none. Raises OperationFailed when it is larger than max_bytes."""

    def read_from(self, path: Path, offset: int, max_bytes: int) -> bytes:
        """What stands after `offset`, at most max_bytes; a negative offset counts from the end. b"" when missing."""

    def size(self, path: Path) -> int | None:
        """Bytes of a file; None when there is none."""

    def file_id(self, path: Path) -> int | None:
        """What tells this file from another one of the same name (its inode); None when there is none."""

    def write_file(self, path: Path, data: bytes) -> None:
        """Write atomically and durably, readable by the owner alone; the folder is made when it is missing."""

    def make_folder(self, path: Path) -> None:
        """Make a folder and its parents, for the owner alone."""

    def make_link(self, path: Path, target: Path) -> None:
        """Make a symbolic link at `path`."""

    def list_folder(self, path: Path) -> list[str]:
        """Names in a folder, sorted; [] when there is none."""

    def remove_file(self, path: Path) -> None:
        """Remove a file or link; nothing happens when there is none."""

    def remove_tree(self, path: Path) -> None:
        """Remove a folder with all in it, links not followed; nothing happens when there is none."""

    def remove_folder(self, path: Path) -> bool:
        """Remove an empty folder; False when something is in it."""

    def tree_bytes(self, path: Path) -> int:
        """Disk space that a folder takes, as du counts it (blocks, not lengths)."""

    def spawn(self, argv: Sequence[str], *, cwd: Path, env: Mapping[str, str], output: Path) -> ProcessIdentity:
        """Start a process that outlives this one."""

    def find_processes(self, wanted: Callable[[list[str]], bool]) -> list[tuple[ProcessIdentity, list[str]]]:
        """Living processes whose argv is `wanted`, with that argv, oldest first."""

    def is_running(self, identity: ProcessIdentity) -> bool:
        """Is it still that process, alive or paused."""

    def signal(self, identity: ProcessIdentity, number: signal.Signals) -> bool:
        """Signal exactly that process; False when it is gone."""

    def usage(self, identity: ProcessIdentity) -> ProcessUsage | None:
        """What it uses now; None when it is gone."""

    def port_is_free(self, port: int) -> bool:
        """Could a server bind it now."""

    def port_owner(self, port: int) -> ports.PortOwner | None:
        """Who listens on it."""


@contextlib.contextmanager
def _naming(action: str, path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as exc:
        raise OperationFailed(f"cannot {action} {path}: {exc.strerror or exc}") from exc


def _regular(name: str, flags: int) -> int:
    """Open a regular file. Refuse pipes and devices, which could block or be endless."""
    fd = os.open(name, flags | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise OSError(errno.EINVAL, "it is not a regular file")
    return fd


class LocalHost:
    """This machine."""

    def run(self, argv: Sequence[str], *, timeout_s: float) -> Completed:
        return process.run(argv, timeout_s=timeout_s)

    def read_file(self, path: Path, *, max_bytes: int = MAX_FILE_BYTES) -> bytes | None:
        with _naming("read", path):
            try:
                with open(path, "rb", opener=_regular) as file:
                    data = file.read(max_bytes + 1)
            except (FileNotFoundError, NotADirectoryError):
                return None
        if len(data) > max_bytes:
            raise OperationFailed(f"{path} is larger than {max_bytes} bytes")
        return data

    def read_from(self, path: Path, offset: int, max_bytes: int) -> bytes:
        with _naming("read", path):
            try:
                with open(path, "rb", opener=_regular) as file:
                    size = file.seek(0, os.SEEK_END)
                    file.seek(max(size + offset, 0) if offset < 0 else min(offset, size))
                    return file.read(max_bytes)
            except (FileNotFoundError, NotADirectoryError):
                return b""

    def size(self, path: Path) -> int | None:
        try:
            return path.stat().st_size
        except OSError:
            return None

    def file_id(self, path: Path) -> int | None:
        try:
            return path.stat().st_ino
        except OSError:
            return None

    def write_file(self, path: Path, data: bytes) -> None:
        self.make_folder(path.parent)
        # A name of its own: a rest of an interrupted write is never taken for the file.
        temporary = path.with_name(f".{path.name}.{os.getpid()}.new")
        with _naming("write", path):
            try:
                with open(temporary, "wb", opener=_private) as file:
                    file.write(data)
                    file.flush()
                    os.fsync(file.fileno())
                temporary.replace(path)
            except OSError:
                temporary.unlink(missing_ok=True)
                raise
            _sync_folder(path.parent)

    def make_folder(self, path: Path) -> None:
        with _naming("make the folder", path):
            path.mkdir(parents=True, exist_ok=True, mode=0o700)

    def make_link(self, path: Path, target: Path) -> None:
        with _naming("make the link", path):
            path.symlink_to(target)

    def list_folder(self, path: Path) -> list[str]:
        with _naming("list", path):
            try:
                return sorted(os.listdir(path))  # noqa: PTH208 - names are wanted
            except (FileNotFoundError, NotADirectoryError):
                return []

    def remove_file(self, path: Path) -> None:
        with _naming("remove", path), contextlib.suppress(FileNotFoundError, NotADirectoryError):
            path.unlink()

    def remove_tree(self, path: Path) -> None:
        with _naming("remove", path):
            if path.is_symlink():
                raise OperationFailed(f"{path} is a link, which kctl did not make: it is left as it is")
            if path.is_dir():
                shutil.rmtree(path)

    def remove_folder(self, path: Path) -> bool:
        try:
            path.rmdir()
        except FileNotFoundError:
            return True
        except OSError:
            return False
        return True

    def tree_bytes(self, path: Path) -> int:
        total = 0
        for folder, _, names in os.walk(path):
            for name in names:
                with contextlib.suppress(OSError):  # deleted meanwhile
                    total += os.lstat(os.path.join(folder, name)).st_blocks * 512  # noqa: PTH118 - speed
        return total

    def spawn(self, argv: Sequence[str], *, cwd: Path, env: Mapping[str, str], output: Path) -> ProcessIdentity:
        with _naming("write", output):
            return process.spawn(argv, cwd=cwd, env=env, output=output)

    def find_processes(self, wanted: Callable[[list[str]], bool]) -> list[tuple[ProcessIdentity, list[str]]]:
        return process.find_processes(wanted)

    def is_running(self, identity: ProcessIdentity) -> bool:
        return process.is_running(identity)

    def signal(self, identity: ProcessIdentity, number: signal.Signals) -> bool:
        return process.send_signal(identity, number)

    def usage(self, identity: ProcessIdentity) -> ProcessUsage | None:
        return process.usage(identity)

    def port_is_free(self, port: int) -> bool:
        return ports.is_free(port)

    def port_owner(self, port: int) -> ports.PortOwner | None:
        return ports.find_owner(port)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_CLOEXEC, 0o600)


def _sync_folder(path: Path) -> None:
    """Make a rename in it durable; file systems that cannot are left alone."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        with contextlib.suppress(OSError):
            os.fsync(fd)
    finally:
        os.close(fd)
