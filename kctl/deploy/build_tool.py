"""Run a build tool that talks on its output, with a time limit, and leave no process of it behind."""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kctl.errors import OperationFailed, TimedOut

_KEPT_LINES = 200
_MAX_LINE = 64 * 1024


@dataclass(frozen=True, slots=True)
class Ended:
    """How it ended: its exit code and its last lines (stdout and stderr together)."""

    code: int
    tail: list[str]


def run_logged(
    argv: Sequence[str],
    *,
    timeout_s: float,
    on_line: Callable[[str], None],
    cwd: Path,
    env: Mapping[str, str] | None = None,
) -> Ended:
    """Run `argv`, hand each line to `on_line`, and wait for its end.

    It gets a process group of its own, which is ended with it, also on Ctrl-C. Raises TimedOut, OperationFailed
    when it cannot be started.
    """
    name = Path(argv[0]).name
    try:
        process = subprocess.Popen(
            list(argv), cwd=cwd, env=None if env is None else dict(env), stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
    except OSError as exc:
        raise OperationFailed(f"cannot run {argv[0]}: {exc.strerror}") from exc
    try:
        tail = _follow(process, name, time.monotonic() + timeout_s, on_line)
        return Ended(process.wait(), tail)
    finally:
        _end_group(process)
        if process.stdout is not None:
            process.stdout.close()


def _follow(process: subprocess.Popen[bytes], name: str, deadline: float, on_line: Callable[[str], None]) -> list[str]:
    assert process.stdout is not None
    tail: deque[str] = deque(maxlen=_KEPT_LINES)
    pending = b""
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while True:
            if not selector.select(max(0.0, deadline - time.monotonic())):
                raise TimedOut(f"{name} did not end in time", hint="run it again, or give a longer --timeout")
            chunk = os.read(process.stdout.fileno(), _MAX_LINE)
            *lines, pending = (pending + chunk).split(b"\n") if chunk else (pending, b"")
            for line in lines:
                text = line.decode("utf-8", "replace").rstrip()
                tail.append(text[:1000])
                on_line(text)
            pending = pending[-_MAX_LINE:]
            if not chunk:
                return [line for line in tail if line]


def _end_group(process: subprocess.Popen[bytes]) -> None:
    # Its children too: mvn is a script around java. The group's id stays ours until the leader is reaped.
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
