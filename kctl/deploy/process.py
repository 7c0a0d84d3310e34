"""The process runner: commands with limits on time and output, and long-lived processes with an identity.

A process is identified by pid, start time and boot id, because pids are reused. Signals go through a pidfd
(pidfd_open(2), Linux 5.3) if available, so that only the process that was checked gets the signal. Long-lived
processes get their own session, so that Ctrl-C in the terminal does not reach them.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from kctl.errors import NotFound, NotSupported, OperationFailed, TimedOut

MAX_OUTPUT_BYTES = 4 << 20
_CHUNK_BYTES = 64 << 10
_TAIL_LINES = 200
_GRACE_S = 5.0
_PROC = Path("/proc")
# Children of this process. They are polled, so that a dead child is reaped and does not count as running.
_children: dict[int, subprocess.Popen[bytes]] = {}


@dataclass(frozen=True, slots=True)
class Completed:
    """A finished command. truncated: True if output beyond the limit was dropped."""

    argv: tuple[str, ...]
    returncode: int
    stdout: bytes
    stderr: bytes
    truncated: bool = False

    @property
    def text(self) -> str:
        return self.stdout.decode("utf-8", "replace")


@dataclass(frozen=True, slots=True)
class Ended:
    """The exit code and last lines of a command whose output was followed."""

    code: int
    tail: list[str]


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
    """The unique identity of a process. start_ticks: clock ticks since the boot with `boot_id` (proc(5))."""

    pid: int
    start_ticks: int
    boot_id: str


@dataclass(frozen=True, slots=True)
class ProcessUsage:
    """The resource usage of a running process. state: the letter of proc(5), R S D T Z …"""

    state: str
    rss_bytes: int
    cpu_ms: int
    uptime_ms: int


# --- commands that end ----------------------------------------------------------------------------------------------


def run(
    argv: Sequence[str],
    *,
    timeout_s: float,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    input: bytes | None = None,  # noqa: A002 - as subprocess names it
    max_output_bytes: int = MAX_OUTPUT_BYTES,
    grace_s: float = 0,
) -> Completed:
    """Run a command and wait until it ends.

    A nonzero exit code is returned, not raised. env: None inherits the environment. The command has ended only when its
    output is closed, which child processes may keep open. grace_s: time to end after SIGTERM, before SIGKILL.

    Raises NotFound if it cannot be run, TimedOut after `timeout_s` (the whole process group is killed).
    """
    process = _popen(
        argv, cwd=cwd, env=env, stdin=subprocess.DEVNULL if input is None else subprocess.PIPE,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    try:
        stdout, stderr, truncated = _communicate(process, input, time.monotonic() + timeout_s, max_output_bytes)
    except TimeoutError:
        raise TimedOut(_too_long(argv, timeout_s, process)) from None
    finally:
        _end_group(process, grace_s=grace_s)
    return Completed(tuple(argv), process.returncode, stdout, stderr, truncated)


def run_logged(
    argv: Sequence[str],
    *,
    timeout_s: float,
    on_line: Callable[[str], None],
    cwd: Path,
    env: Mapping[str, str] | None = None,
) -> Ended:
    """Run a command that reports progress: each line of stdout and stderr goes to `on_line`.

    On a timeout or Ctrl-C, the command gets SIGTERM before SIGKILL. Raises the errors of `run`.
    """
    process = _popen(argv, cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    deadline = time.monotonic() + timeout_s
    try:
        tail = _follow(process, deadline, on_line)
        return Ended(process.wait(timeout=max(0.0, deadline - time.monotonic())), tail)
    except (TimeoutError, subprocess.TimeoutExpired):  # it may close its output and keep running
        raise TimedOut(
            f"{Path(argv[0]).name} did not end in time", hint="run it again, or set a longer --timeout"
        ) from None
    finally:
        _end_group(process, grace_s=_GRACE_S)


def _follow(process: subprocess.Popen[bytes], deadline: float, on_line: Callable[[str], None]) -> list[str]:
    assert process.stdout is not None
    tail: deque[str] = deque(maxlen=_TAIL_LINES)
    pending = b""
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while True:
            selector.select(_remaining_s(deadline))
            _remaining_s(deadline)
            chunk = os.read(process.stdout.fileno(), _CHUNK_BYTES)
            *lines, pending = (pending + chunk).split(b"\n") if chunk else (pending, b"")
            for line in lines:
                text = line.decode("utf-8", "replace").rstrip()
                tail.append(text[:1000])
                on_line(text)
            pending = pending[-_CHUNK_BYTES:]
            if not chunk:
                return [line for line in tail if line]


def _popen(
    argv: Sequence[str],
    *,
    cwd: Path | None,
    env: Mapping[str, str] | None,
    stdin: int,
    stdout: int,
    stderr: int,
) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            list(argv), cwd=cwd, env=None if env is None else dict(env), stdin=stdin, stdout=stdout, stderr=stderr,
            start_new_session=True,
        )  # fmt: skip
    except FileNotFoundError as exc:
        missing = exc.filename or argv[0]
        raise NotFound(f"cannot run {argv[0]}: {missing} does not exist") from exc
    except OSError as exc:
        raise OperationFailed(f"cannot run {argv[0]}: {exc.strerror}") from exc


def _communicate(
    process: subprocess.Popen[bytes], data: bytes | None, deadline: float, limit: int
) -> tuple[bytes, bytes, bool]:
    """Feed and drain the pipes until both outputs are closed and the process has ended. Raises TimeoutError."""
    outputs: dict[str, bytearray] = {"stdout": bytearray(), "stderr": bytearray()}
    truncated = False
    pending = memoryview(data or b"")
    with selectors.DefaultSelector() as selector:
        for name, pipe in (("stdout", process.stdout), ("stderr", process.stderr)):
            assert pipe is not None
            selector.register(pipe, selectors.EVENT_READ, name)
        if process.stdin is not None:
            os.set_blocking(process.stdin.fileno(), False)
            selector.register(process.stdin, selectors.EVENT_WRITE, "stdin")
        while selector.get_map():
            for key, _ in selector.select(_remaining_s(deadline)):
                if key.data == "stdin":
                    pending = _feed(key.fd, pending)
                    done = not pending
                else:
                    chunk = os.read(key.fd, _CHUNK_BYTES)
                    output = outputs[key.data]
                    truncated |= len(output) + len(chunk) > limit
                    output += chunk[: limit - len(output)]
                    done = not chunk
                if done:
                    selector.unregister(key.fileobj)
                    key.fileobj.close()  # type: ignore[union-attr]  # registered above as files
            _remaining_s(deadline)
    try:
        process.wait(_remaining_s(deadline))
    except subprocess.TimeoutExpired:
        raise TimeoutError from None
    return bytes(outputs["stdout"]), bytes(outputs["stderr"]), truncated


def _too_long(argv: Sequence[str], timeout_s: float, process: subprocess.Popen[bytes]) -> str:
    if _has_ended(process):
        return f"{argv[0]} ended, but a child process held its output open for {timeout_s:g} s"
    return f"{argv[0]} did not end within {timeout_s:g} s"


def _feed(fd: int, pending: memoryview) -> memoryview:
    """Write what fits and return the rest; the rest is empty if the reader has closed the pipe."""
    try:
        return pending[os.write(fd, pending[:_CHUNK_BYTES]) :]
    except BlockingIOError:
        return pending
    except BrokenPipeError:
        return memoryview(b"")


def _remaining_s(deadline: float) -> float:
    remaining_s = deadline - time.monotonic()
    if remaining_s <= 0:
        raise TimeoutError
    return remaining_s


def _end_group(process: subprocess.Popen[bytes], *, grace_s: float = 0) -> None:
    """Close the pipes, and end the rest of the command's process group.

    grace_s: time to end after SIGTERM. The group id stays valid until the leader is reaped, so the leader is reaped
    only after the group was killed: children may outlive the leader.
    """
    try:
        if grace_s and process.returncode is None and _signal_group(process, signal.SIGTERM):
            end = time.monotonic() + grace_s  # its output stays open: a write to a closed pipe would kill it
            while not _has_ended(process) and time.monotonic() < end:
                time.sleep(0.02)
    finally:  # also if Ctrl-C ends the grace period
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None and not pipe.closed:
                with contextlib.suppress(OSError):
                    pipe.close()
        if process.returncode is None:
            _signal_group(process, signal.SIGKILL)
            process.wait()


def _signal_group(process: subprocess.Popen[bytes], number: signal.Signals) -> bool:
    with contextlib.suppress(ProcessLookupError, PermissionError):  # macOS returns EPERM for a group of zombies
        os.killpg(process.pid, number)
        return True
    return False


def _has_ended(process: subprocess.Popen[bytes]) -> bool:
    """Return True if a command has ended. Does not reap it."""
    if process.returncode is not None:
        return True
    return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


# --- long-lived processes -------------------------------------------------------------------------------------------


def spawn(argv: Sequence[str], *, cwd: Path, env: Mapping[str, str], output: Path) -> ProcessIdentity:
    """Start a process that outlives this one: own session, stdin /dev/null, stdout and stderr to `output` (emptied).

    Raises NotFound or OperationFailed if it cannot be run.
    """
    fd = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        process = _popen(argv, cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=fd, stderr=fd)
    finally:
        os.close(fd)
    _children[process.pid] = process
    identity = identify(process.pid)
    if identity is None:  # ended at once; the caller sees that it is dead and reads `output`
        return ProcessIdentity(process.pid, 0, boot_id())
    return identity


@lru_cache(maxsize=1)
def boot_id() -> str:
    """Return the id of the kernel's current boot. Raises NotSupported without Linux's /proc."""
    try:
        return (_PROC / "sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError as exc:
        raise NotSupported("clusters on this machine require Linux: /proc does not exist") from exc


def _stat(pid: int) -> list[str] | None:
    """Return the fields of /proc/PID/stat after the command name, beginning with the state."""
    try:
        text = (_PROC / str(pid) / "stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return None
    return text[text.rindex(")") + 2 :].split()


def identify(pid: int) -> ProcessIdentity | None:
    """Return the current process with this pid; None if there is none. Zombies do not count."""
    child = _children.get(pid)
    if child is not None and child.poll() is not None:
        del _children[pid]
    stat = _stat(pid)
    if stat is None or _ended(stat):
        return None
    return ProcessIdentity(pid, int(stat[19]), boot_id())


def _ended(stat: list[str]) -> bool:
    """Return True for a zombie without other threads. While a thread still exits, the process holds ports and files."""
    return stat[0] in "ZX" and int(stat[17]) <= 1


def is_running(identity: ProcessIdentity) -> bool:
    """Return True if exactly this process is alive or paused."""
    return identify(identity.pid) == identity


def send_signal(identity: ProcessIdentity, number: signal.Signals) -> bool:
    """Send a signal to this process only. Return False if it has ended. Raises OperationFailed without permission."""
    try:
        with _pidfd(identity.pid) as fd:
            if not is_running(identity):
                return False
            if fd is None:
                os.kill(identity.pid, number)
            else:
                signal.pidfd_send_signal(fd, number)
    except ProcessLookupError:
        return False
    except PermissionError as exc:
        raise OperationFailed(f"process {identity.pid} belongs to another user and cannot be signalled") from exc
    return True


@contextlib.contextmanager
def _pidfd(pid: int) -> Iterator[int | None]:
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        raise
    except (AttributeError, OSError):  # no such call in this kernel, libc or sandbox
        yield None
        return
    try:
        yield fd
    finally:
        os.close(fd)


def usage(identity: ProcessIdentity) -> ProcessUsage | None:
    """Return the current resource usage of the process; None if it has ended."""
    stat = _stat(identity.pid)
    if stat is None or int(stat[19]) != identity.start_ticks or _ended(stat):
        return None
    tick_ms = 1000 / os.sysconf("SC_CLK_TCK")
    uptime_ms = time.clock_gettime(time.CLOCK_BOOTTIME) * 1000 - identity.start_ticks * tick_ms
    return ProcessUsage(
        state=stat[0],
        rss_bytes=int(stat[21]) * os.sysconf("SC_PAGE_SIZE"),
        cpu_ms=round((int(stat[11]) + int(stat[12])) * tick_ms),
        uptime_ms=max(round(uptime_ms), 0),
    )


def command_line(pid: int) -> list[str] | None:
    """Return the argv of a process; None if it has ended or is hidden, [] for a kernel thread."""
    try:
        data = (_PROC / str(pid) / "cmdline").read_bytes()
    except OSError:
        return None
    return [part.decode("utf-8", "surrogateescape") for part in data.split(b"\0")[:-1]]


def find_processes(matches: Callable[[list[str]], bool]) -> list[tuple[ProcessIdentity, list[str]]]:
    """Return running processes whose argv satisfies `matches`, with the argv, oldest first."""
    processes = []
    for entry in os.scandir(_PROC):
        if not entry.name.isdigit():
            continue
        pid = int(entry.name)
        argv = command_line(pid)
        if argv and matches(argv) and (identity := identify(pid)) is not None:
            processes.append((identity, argv))
    return sorted(processes, key=lambda item: item[0].start_ticks)
