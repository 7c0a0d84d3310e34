"""Helpers of many tests: runs of the installed console script, and the cluster of the session."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

from kctl_forks import Forks, can_follow

SCRIPT = Path(sys.executable).with_name("kctl")


def _text(data: bytes) -> str:
    """Return text with newlines converted like Python's text streams do."""
    return data.decode(errors="replace").replace("\r\n", "\n").replace("\r", "\n")


@lru_cache(maxsize=1)
def _forks() -> Forks:
    return Forks()


@dataclasses.dataclass(frozen=True)
class Result:
    """The result of a run of kctl."""

    argv: tuple[str, ...]
    code: int
    out: str
    err: str
    seconds: float

    def __str__(self) -> str:
        head = f"kctl {' '.join(self.argv)}\nexit {self.code} after {self.seconds:.1f} s"
        return f"{head}\n{self.out}\n--- stderr\n{self.err}"


class Kctl:
    """The installed `kctl`, run with its own home and, like a script, without a terminal."""

    def __init__(self, home: Path, environment: Mapping[str, str] | None = None) -> None:
        self.home = home
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("KCTL_", "XDG_", "KAFKA_"))}
        self.environment = {**kept, "HOME": str(home), "COLUMNS": "120", **(environment or {})}

    def with_environment(self, **changes: str) -> Kctl:
        """Return the same kctl, with more environment variables."""
        return Kctl(self.home, {**self.environment, **changes})

    def __call__(
        self, *args: str, stdin: str | None = None, env: Mapping[str, str] | None = None, timeout: float = 60
    ) -> Result:
        started = time.monotonic()
        given = (stdin or "").encode(errors="replace")
        environment = {**self.environment, **(env or {})}
        if can_follow(environment):
            done = _forks().run(args, stdin=given, env=environment, timeout=timeout)
        else:
            done = subprocess.run(
                [str(SCRIPT), *args], input=given, env=environment, capture_output=True, timeout=timeout, check=False
            )
        return Result(args, done.returncode, _text(done.stdout), _text(done.stderr), time.monotonic() - started)

    def ok(self, *args: str, stdin: str | None = None, timeout: float = 60) -> Result:
        """Run, and fail the test unless the exit code is 0."""
        result = self(*args, stdin=stdin, timeout=timeout)
        assert result.code == 0, str(result)
        return result

    def json(self, *args: str, stdin: str | None = None, timeout: float = 60) -> Any:
        """Run with `-o json`, and return the parsed stdout. Fails the test unless the exit code is 0."""
        return json.loads(self.ok(*args, "-o", "json", stdin=stdin, timeout=timeout).out)

    @contextmanager
    def running(self, *args: str) -> Iterator[subprocess.Popen[str]]:
        """Yield a kctl in the background (a follow, a watch); interrupted at the end if it still runs."""
        process = subprocess.Popen(
            [str(SCRIPT), *args],
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            yield process
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
                try:
                    process.wait(timeout=20)
                except subprocess.TimeoutExpired:
                    process.kill()
            process.communicate()


@dataclasses.dataclass(frozen=True)
class TestCluster:
    """The three-broker cluster of the session. bootstrap, zookeeper: the values of the options."""

    __test__ = False  # not a test class, despite its name

    name: str
    bootstrap: str
    zookeeper: str
    broker_ids: tuple[int, ...]


def free_ports(count: int) -> list[int]:
    """Return ports that are currently free."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for sock in sockets:
            sock.bind(("127.0.0.1", 0))
        return [sock.getsockname()[1] for sock in sockets]
    finally:
        for sock in sockets:
            sock.close()


def free_port() -> int:
    """Return a port on which nothing listens."""
    return free_ports(1)[0]


_CLOSED: list[socket.socket] = []


def closed_port() -> int:
    """Return a port that refuses connections: it is bound, so no other process gets it."""
    held = socket.socket()
    held.bind(("127.0.0.1", 0))
    _CLOSED.append(held)
    port: int = held.getsockname()[1]
    return port


def within(seconds: float) -> float:
    """Return the limit for something that takes at most `seconds`, increased by the overload of the machine."""
    return seconds * max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))


def eventually(check: Callable[[], bool], *, seconds: float = 60, what: str) -> None:
    """Poll until `check()` returns True; fail the test with `what` after `seconds`."""
    deadline = time.monotonic() + seconds
    while not check():
        assert time.monotonic() < deadline, f"not within {seconds:g} s: {what}"
        time.sleep(0.2)
