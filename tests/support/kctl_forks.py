"""kctl without the cost of starting Python: a process that has imported everything and forks for each command.

A run is a separate process with its own streams, environment, working directory and exit code, exactly like the
console script, except for the imports, which take three quarters of the CPU time of most commands. Other tests check
the cost of a start and its imports with the script itself.

The server is a child of pytest and ends with it. A request is one message on a Unix socket: a JSON object, and the
run's three streams as file descriptors; the responses are the run's pid and, once it has ended, its wait status.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import json
import os
import pkgutil
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

KILLED_AT = "KILLED_AT"  # `before,STEP,1` in a run's environment: see kctl_killed
# Python reads these before any of its code runs, so a fork cannot apply them.
_AT_START = ("PYTHON", "LC_", "LANG", "LD_", "MALLOC", "TZ", "_KCTL_COMPLETE")


class Forks:
    """A client of the server. Starts it on first use; it ends with this process."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="kctl-forks-")
        self._path = str(Path(self._folder.name) / "socket")
        listening = socket.socket(socket.AF_UNIX)
        listening.bind(self._path)
        listening.listen(128)
        ours, theirs = os.pipe()  # the server ends when this process closes its end
        self._server = subprocess.Popen(
            [sys.executable, __file__, str(listening.fileno()), str(ours)], pass_fds=(listening.fileno(), ours)
        )
        os.close(ours)
        listening.close()
        self._alive = theirs
        atexit.register(self.close)

    def close(self) -> None:
        """End the server."""
        os.close(self._alive)
        self._server.wait(timeout=20)
        self._folder.cleanup()

    def run(
        self, argv: Sequence[str], *, stdin: bytes, env: Mapping[str, str], timeout: float
    ) -> subprocess.CompletedProcess[bytes]:
        """Run like subprocess.run of the console script, with captured streams. Raises TimeoutExpired after a kill."""
        given, to_it = os.pipe()
        out, its_out = os.pipe()
        err, its_err = os.pipe()
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(self._path)
            _send(connection, {"argv": list(argv), "env": dict(env), "cwd": str(Path.cwd())}, [given, its_out, its_err])
            for fd in (given, its_out, its_err):
                os.close(fd)
            answers = connection.makefile("rb")
            pid = int(answers.readline())
            feeding, stdout, stderr = _Feeding(to_it, stdin), _Draining(out), _Draining(err)
            for thread in (feeding, stdout, stderr):
                thread.start()
            connection.settimeout(timeout)
            try:
                code = int(answers.readline())
                for thread in (stdout, stderr):  # like communicate(): its children may also hold the streams
                    thread.join(timeout)
                    if thread.is_alive():
                        raise TimeoutError
            except TimeoutError:
                os.kill(pid, signal.SIGKILL)
                raise subprocess.TimeoutExpired(["kctl", *argv], timeout, stdout.data, stderr.data) from None
        return subprocess.CompletedProcess(["kctl", *argv], code, stdout.data, stderr.data)


def can_follow(env: Mapping[str, str]) -> bool:
    """Return True if a fork can have this environment."""
    names = {name for name in {*env, *os.environ} if name.startswith(_AT_START)}
    return all(env.get(name) == os.environ.get(name) for name in names)


class _Feeding(threading.Thread):
    def __init__(self, fd: int, data: bytes) -> None:
        super().__init__(daemon=True)
        self._fd, self._data = fd, data

    def run(self) -> None:
        with contextlib.suppress(BrokenPipeError), os.fdopen(self._fd, "wb") as stream:
            stream.write(self._data)


class _Draining(threading.Thread):
    def __init__(self, fd: int) -> None:
        super().__init__(daemon=True)
        self._fd = fd
        self.data = b""

    def run(self) -> None:
        with os.fdopen(self._fd, "rb", buffering=0) as stream:
            while piece := stream.read(1 << 16):
                self.data += piece


def _send(connection: socket.socket, request: Mapping[str, Any], streams: Sequence[int]) -> None:
    data = json.dumps(request).encode()
    socket.send_fds(connection, [len(data).to_bytes(4, "big")], streams)
    connection.sendall(data)


def _receive(connection: socket.socket) -> tuple[dict[str, Any], list[int]]:
    head, streams, _flags, _address = socket.recv_fds(connection, 4, 3)
    left, data = int.from_bytes(head, "big"), b""
    while len(data) < left:
        data += connection.recv(left - len(data))
    return json.loads(data), list(streams)


def _import_everything() -> None:
    """Import all modules that commands import late, kctl's and its client's, so that forks have them."""
    import csv  # noqa: F401
    import encodings.idna  # noqa: F401  (needed to resolve a host name)
    import ssl  # noqa: F401

    import jinja2
    import kafka
    import rich.console
    import rich.table  # noqa: F401
    import yaml  # noqa: F401

    import kctl

    for package in (kctl, kafka, jinja2):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not module.name.startswith("kctl.spark") and not module.name.endswith("__main__"):
                with contextlib.suppress(ImportError):  # an extra that is not installed
                    importlib.import_module(module.name)
    gc.freeze()  # memory shared with forks stays shared


def _serve(listening: socket.socket, alive: int) -> None:
    """Serve until the other end of `alive` is closed. Also returns in a fork, which then becomes kctl."""
    running: dict[int, socket.socket] = {}
    ended, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake)
    signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for pytest
    with selectors.DefaultSelector() as selector:
        for fileobj in (listening, ended, alive):
            selector.register(fileobj, selectors.EVENT_READ)
        while True:
            ready = [key.fileobj for key, _ in selector.select()]
            if ended in ready:
                os.read(ended, 4096)
                _tell_ends(running)
            if alive in ready:
                os._exit(0)
            if listening in ready:
                connection, _ = listening.accept()
                request, streams = _receive(connection)
                pid = os.fork()
                if pid == 0:
                    signal.set_wakeup_fd(-1)
                    for each in (connection, listening, *running.values()):
                        each.close()
                    for fd in (ended, wake, alive):
                        os.close(fd)
                    _become_kctl(request, streams)
                    return
                for fd in streams:
                    os.close(fd)
                running[pid] = connection
                connection.sendall(b"%d\n" % pid)


def _tell_ends(running: dict[int, socket.socket]) -> None:
    while running:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == 0:
            return
        with running.pop(pid) as connection, contextlib.suppress(OSError):
            connection.sendall(b"%d\n" % os.waitstatus_to_exitcode(status))


def _become_kctl(request: Mapping[str, Any], streams: Sequence[int]) -> None:
    """Set streams, environment, working directory and signals like in a new process."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number, fd in enumerate(streams):
        os.dup2(fd, number)
        os.close(fd)
    os.environ.clear()
    os.environ.update(request["env"])
    os.chdir(request["cwd"])
    sys.stdin = os.fdopen(0, "r", encoding=sys.stdin.encoding, errors=sys.stdin.errors, closefd=False)
    sys.stdout = _stream(1, sys.stdout)
    sys.stderr = _stream(2, sys.stderr)
    sys.argv = ["kctl", *request["argv"]]
    if (killed := os.environ.pop(KILLED_AT, None)) is not None:
        from kctl_killed import kill_at

        moment, step, count = killed.split(",")
        kill_at(moment, step, int(count))


def _stream(fd: int, like: TextIO) -> TextIO:
    """Return a stream like Python opens it for a pipe: stderr line by line."""
    buffering = 1 if fd == 2 else -1
    return os.fdopen(fd, "w", encoding=like.encoding, errors=like.errors, closefd=False, buffering=buffering)


def main() -> int:
    """Run the server or, in a fork, kctl itself, so that Python ends it like the console script."""
    import kctl.__main__

    _import_everything()
    _serve(socket.socket(fileno=int(sys.argv[1])), int(sys.argv[2]))
    return kctl.__main__.main()


if __name__ == "__main__":
    sys.exit(main())
