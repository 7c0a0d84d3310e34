"""TCP ports: their owners, free ports, and port blocks for clusters."""

from __future__ import annotations

import os
import random
import socket
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from kctl.deploy.process import command_line
from kctl.errors import Busy, UsageError

LOOPBACK = "127.0.0.1"
# Blocks that kctl picks are below Linux's ports for outgoing connections (32768 and up by default). Otherwise, such a
# connection could occupy a stopped broker's port.
_LOWEST, _HIGHEST = 20_000, 32_000
_BLOCK = 20
_LISTEN = "0A"  # TCP_LISTEN in /proc/net/tcp


@dataclass(frozen=True, slots=True)
class PortOwner:
    """The process that listens on a port. pid and command are None if it belongs to another user."""

    port: int
    pid: int | None = None
    command: str | None = None

    def __str__(self) -> str:
        if self.pid is None:
            return "a process of another user"
        return f"pid {self.pid} ({self.command})" if self.command else f"pid {self.pid}"


def is_free(port: int, address: str = LOOPBACK) -> bool:
    """Return True if a server could bind the port now. Like Java, ignores closed connections in TIME_WAIT."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
            probe.listen(1)  # two unconnected sockets may share a port until one of them listens
        except OSError:
            return False
    return True


def find_owner(port: int) -> PortOwner | None:
    """Return the process that listens on `port` at any address; None if there is none."""
    inodes = _listening_inodes(port)
    if not inodes:
        return None
    pid = _holder({f"socket:[{inode}]" for inode in inodes})
    if pid is None:
        return PortOwner(port)
    argv = command_line(pid) or []
    return PortOwner(port, pid, _short(argv))


def listening_inodes(table: str, port: int) -> set[str]:
    """Return the inodes of the sockets that listen on `port`, from the text of /proc/net/tcp or tcp6 (proc(5))."""
    inodes = set()
    for line in table.splitlines()[1:]:
        fields = line.split()
        if len(fields) > 9 and fields[3] == _LISTEN and int(fields[1].rpartition(":")[2], 16) == port:
            inodes.add(fields[9])
    return inodes


def _listening_inodes(port: int) -> set[str]:
    inodes: set[str] = set()
    for name in ("tcp", "tcp6"):
        try:
            inodes |= listening_inodes(Path("/proc/net", name).read_text(encoding="ascii"), port)
        except OSError:
            continue
    return inodes


def _holder(links: set[str]) -> int | None:
    for entry in os.scandir("/proc"):
        if not entry.name.isdigit():
            continue
        try:
            for fd in os.scandir(f"/proc/{entry.name}/fd"):
                if os.readlink(fd.path) in links:  # noqa: PTH115 - a link to no path
                    return int(entry.name)
        except OSError:  # ended, or another user's
            continue
    return None


def _short(argv: list[str]) -> str:
    """Return a recognizable part of a command: the program, and for Java the main class with its arguments."""
    if not argv:
        return ""
    program = Path(argv[0]).name
    rest = argv[1:]
    if program == "java":
        rest = []
        words = iter(argv[1:])
        for word in words:
            if word in {"-cp", "-classpath", "--class-path", "-p", "--module-path"}:
                next(words, None)
            elif not word.startswith("-"):
                rest = [word, *words]
                break
    text = " ".join([program, *rest])
    return text if len(text) <= 120 else text[:119] + "…"


def check_free(ports: Collection[tuple[int, str]]) -> None:
    """Raise Busy, with the owner, for the first port that is in use. ports: pairs of port and purpose."""
    for port, purpose in ports:
        if not is_free(port):
            owner = find_owner(port)
            raise Busy(
                f"port {port} of {purpose} is in use by {owner or 'an outgoing connection'}",
                hint="stop that process, or set another --base-port when you create the cluster",
                details={"port": port, "pid": owner.pid if owner else None},
            )


def choose_base_port(count: int, reserved: Collection[int]) -> int:
    """Return the first of `count` consecutive ports that are free now and not in `reserved`.

    Starts at a random block, so that two users of one machine rarely collide. Raises Busy if there is none.
    """
    step = -(-count // _BLOCK) * _BLOCK
    bases = list(range(_LOWEST, _HIGHEST - step, _BLOCK))
    start = random.randrange(len(bases))  # noqa: S311 - no secret
    for base in bases[start:] + bases[:start]:
        block = range(base, base + count)
        if not any(port in reserved for port in block) and all(is_free(port) for port in block):
            return base
    raise Busy(f"no {count} consecutive free ports between {_LOWEST} and {_HIGHEST}", hint="set --base-port")


def check_base_port(base: int, count: int) -> int:
    """Return `base` if it and the following `count` - 1 numbers are valid ports. Raises UsageError."""
    if not 1024 <= base <= 65_536 - count:
        raise UsageError(
            f"--base-port {base} does not leave room for {count} ports",
            hint=f"choose one between 1024 and {65_536 - count}",
        )
    return base
