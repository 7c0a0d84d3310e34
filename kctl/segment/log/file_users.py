"""Find the processes that use files, by device and inode, so that links, bind mounts and containers do not hide them.

Linux shows open files in /proc/PID/fd and mapped files in /proc/PID/maps. A broker keeps every .log open and maps the
indexes. Not visible: processes of other users (unless kctl runs as root), of other PID namespaces and other hosts.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

PROC = Path("/proc")
_BROKERS = (b"java", b"kafka")  # in the command line of a broker, even if it is a native image


class Identity(NamedTuple):
    """The identity of a file, independent of its path."""

    device: int
    inode: int


class ContentStamp(NamedTuple):
    """The identity of a file in a container's overlay: the device differs, but inode, size and time are the same."""

    inode: int
    size: int
    mtime_ns: int


@dataclass(frozen=True, slots=True)
class FileUser:
    """A process that has a file open or mapped. name: its program."""

    pid: int
    name: str
    file: Path

    def __str__(self) -> str:
        return f"process {self.pid} ({self.name}) uses {self.file}"


@dataclass(frozen=True, slots=True)
class FileUsage:
    """The processes that use files of a log.

    users: processes that use one of the files. unseen: why there may be others; None if all were seen.
    """

    users: tuple[FileUser, ...]
    unseen: str | None = None


def usage_of(files: Iterable[Path], *, proc: Path = PROC) -> FileUsage:
    """Return the other processes that use the files. Missing files are ignored."""
    search = _UserSearch(files)
    if not (proc / "self").exists():
        return FileUsage((), f"{proc} does not show the open files of processes")
    unseen = None if (proc / "1").exists() else "processes of other users are hidden"
    users: list[FileUser] = []
    for process in _processes(proc):
        try:
            users += search.in_process(process)
        except PermissionError:
            if unseen is None and search.may_be_user(process):
                unseen = f"the files of process {process.name} ({_name(process)}) cannot be seen"
        except OSError:  # the process has ended
            continue
    return FileUsage(tuple(users), unseen)


def _processes(proc: Path) -> Iterator[Path]:
    kctl_pid = os.getpid()
    for entry in sorted(proc.iterdir(), key=lambda path: path.name):
        if entry.name.isdecimal() and int(entry.name) != kctl_pid:
            yield entry


class _UserSearch:
    def __init__(self, files: Iterable[Path]) -> None:
        self._files: dict[Identity, Path] = {}
        self._stamps: dict[ContentStamp, Path] = {}
        self._owners: set[int] = set()
        for file in files:
            try:
                status = file.stat()
            except OSError:
                continue
            self._files[Identity(status.st_dev, status.st_ino)] = file
            if status.st_size:
                self._stamps[_content_stamp(status)] = file
            self._owners.add(status.st_uid)

    def in_process(self, process: Path) -> list[FileUser]:
        """Return at most one file per process, the first. Raises PermissionError, OSError."""
        name = _name(process)
        file = self._open(process) or self._mapped(process)
        return [] if file is None else [FileUser(int(process.name), name, file)]

    def _open(self, process: Path) -> Path | None:
        for fd in (process / "fd").iterdir():
            try:
                status = fd.stat()
            except FileNotFoundError:
                continue
            file = self._files.get(Identity(status.st_dev, status.st_ino)) or self._stamps.get(_content_stamp(status))
            if file is not None:
                return file
        return None

    def _mapped(self, process: Path) -> Path | None:
        with (process / "maps").open("rb") as maps:
            for line in maps:
                fields = line.split(None, 5)  # address, permissions, offset, device, inode, path
                if len(fields) < 5 or fields[4] == b"0":
                    continue
                major, minor = fields[3].split(b":")
                identity = Identity(os.makedev(int(major, 16), int(minor, 16)), int(fields[4]))
                if identity in self._files:
                    return self._files[identity]
        return None

    def may_be_user(self, process: Path) -> bool:
        """Return True if a process with hidden files may be a broker that uses these, by its owner and command."""
        try:
            owner = process.stat().st_uid
            command = (process / "cmdline").read_bytes()
        except FileNotFoundError:
            return False
        except OSError:
            return True
        return owner in {0, *self._owners} and bool(command) and any(each in command.lower() for each in _BROKERS)


def _content_stamp(status: os.stat_result) -> ContentStamp:
    return ContentStamp(status.st_ino, status.st_size, status.st_mtime_ns)


def _name(process: Path) -> str:
    try:
        return (process / "comm").read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return "?"
