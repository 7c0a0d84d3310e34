"""The interface through which clusters run commands and write files on a host.

`LocalHost` is this machine. Every method raises a KctlError that names the path or process, never a bare OSError;
a missing file is `None` where callers expect that.
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
        """Run a command and wait until it ends."""

    def read_file(self, path: Path, *, max_bytes: int = MAX_FILE_BYTES) -> bytes | None:
        """Return the whole file; None if it does not exist. Raises OperationFailed if it is larger than max_bytes."""

    def read_from(self, path: Path, offset: int, max_bytes: int) -> bytes:
        """Return at most max_bytes from `offset`, which counts from the end if negative; b"" if there is no file."""

    def size(self, path: Path) -> int | None:
        """Return the size of a file in bytes; None if it does not exist."""

    def file_id(self, path: Path) -> int | None:
        """Return the inode, which differs from that of a later file with the same name; None if there is no file."""

    def write_file(self, path: Path, data: bytes) -> None:
        """Write atomically and durably, readable by the owner only. Creates the folder if it is missing."""

    def make_folder(self, path: Path) -> None:
        """Create a folder and its parents, accessible to the owner only."""

    def make_link(self, path: Path, target: Path) -> None:
        """Create a symbolic link at `path`."""

    def list_folder(self, path: Path) -> list[str]:
        """Return the names in a folder, sorted; [] if it does not exist."""

    def remove_file(self, path: Path) -> None:
        """Remove a file or link, if it exists."""

    def remove_tree(self, path: Path) -> None:
        """Remove a folder and its content, if it exists. Does not follow links."""

    def remove_folder(self, path: Path) -> bool:
        """Remove an empty folder. Return False if it is not empty."""

    def tree_bytes(self, path: Path) -> int:
        """Return the disk space of a folder in bytes, as du counts it (blocks, not lengths)."""

    def spawn(self, argv: Sequence[str], *, cwd: Path, env: Mapping[str, str], output: Path) -> ProcessIdentity:
        """Start a process that outlives this one."""

    def find_processes(self, matches: Callable[[list[str]], bool]) -> list[tuple[ProcessIdentity, list[str]]]:
        """Return running processes whose argv satisfies `matches`, with the argv, oldest first."""

    def is_running(self, identity: ProcessIdentity) -> bool:
        """Return True if exactly this process is alive or paused."""

    def signal(self, identity: ProcessIdentity, number: signal.Signals) -> bool:
        """Send a signal to exactly this process. Return False if it has ended."""

    def usage(self, identity: ProcessIdentity) -> ProcessUsage | None:
        """Return the current resource usage of the process; None if it has ended."""

    def port_is_free(self, port: int) -> bool:
        """Return True if a server could bind the port now."""

    def port_owner(self, port: int) -> ports.PortOwner | None:
        """Return the process that listens on the port; None if it is free."""


@contextlib.contextmanager
def _naming(action: str, path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as exc:
        raise OperationFailed(f"cannot {action} {path}: {exc.strerror or exc}") from exc


def _open_regular(name: str, flags: int) -> int:
    """Open a regular file. Rejects pipes and devices, which could block or be endless."""
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
                with open(path, "rb", opener=_open_regular) as file:
                    data = file.read(max_bytes + 1)
            except (FileNotFoundError, NotADirectoryError):
                return None
        if len(data) > max_bytes:
            raise OperationFailed(f"{path} is larger than {max_bytes} bytes")
        return data

    def read_from(self, path: Path, offset: int, max_bytes: int) -> bytes:
        with _naming("read", path):
            try:
                with open(path, "rb", opener=_open_regular) as file:
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
        # A separate name, so that the rest of an interrupted write is never read as the file.
        temporary = path.with_name(f".{path.name}.{os.getpid()}.new")
        with _naming("write", path):
            try:
                with open(temporary, "wb", opener=_open_private) as file:
                    file.write(data)
                    file.flush()
                    os.fsync(file.fileno())
                temporary.replace(path)
            except OSError:
                temporary.unlink(missing_ok=True)
                raise
            _sync_folder(path.parent)

    def make_folder(self, path: Path) -> None:
        with _naming("create the folder", path):
            path.mkdir(parents=True, exist_ok=True, mode=0o700)

    def make_link(self, path: Path, target: Path) -> None:
        with _naming("create the link", path):
            path.symlink_to(target)

    def list_folder(self, path: Path) -> list[str]:
        with _naming("list", path):
            try:
                return sorted(os.listdir(path))  # noqa: PTH208 - names suffice
            except (FileNotFoundError, NotADirectoryError):
                return []

    def remove_file(self, path: Path) -> None:
        with _naming("remove", path), contextlib.suppress(FileNotFoundError, NotADirectoryError):
            path.unlink()

    def remove_tree(self, path: Path) -> None:
        with _naming("remove", path):
            if path.is_symlink():
                raise OperationFailed(f"{path} is a link that kctl did not create; it was not removed")
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

    def find_processes(self, matches: Callable[[list[str]], bool]) -> list[tuple[ProcessIdentity, list[str]]]:
        return process.find_processes(matches)

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


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_CLOEXEC, 0o600)


def _sync_folder(path: Path) -> None:
    """Make a rename in the folder durable, if the file system can."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        with contextlib.suppress(OSError):
            os.fsync(fd)
    finally:
        os.close(fd)
