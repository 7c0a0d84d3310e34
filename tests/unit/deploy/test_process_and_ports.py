"""Processes and ports, on this machine: commands with limits, identities, owners."""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kctl.deploy import ports, process
from kctl.deploy.process import ProcessIdentity
from kctl.errors import Busy, NotFound, OperationFailed, TimedOut, UsageError
from kctl_testing import eventually, within

PYTHON = sys.executable


def python(code: str, *args: str) -> list[str]:
    return [PYTHON, "-c", code, *args]


# --- run -----------------------------------------------------------------------------------------------------------


def test_run_gives_output_and_code() -> None:
    done = process.run(python("import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)"), timeout_s=20)
    assert (done.returncode, done.stdout, done.stderr, done.truncated) == (3, b"out\n", b"err\n", False)
    assert done.text == "out\n"


def test_run_feeds_input_and_environment(tmp_path: Path) -> None:
    code = "import os,sys; sys.stdout.write(sys.stdin.read()[::-1] + os.environ['X'] + os.getcwd())"
    done = process.run(python(code), timeout_s=20, input=b"ab" * 200_000, env={"X": "y"}, cwd=tmp_path)
    assert done.stdout == b"ba" * 200_000 + b"y" + str(tmp_path).encode()


def test_run_drops_output_beyond_the_limit() -> None:
    done = process.run(python("print('x' * 1_000_000)"), timeout_s=20, max_output_bytes=1000)
    assert done.stdout == b"x" * 1000
    assert done.truncated
    assert done.returncode == 0


def test_run_survives_a_reader_that_does_not_read() -> None:
    assert process.run(python("pass"), timeout_s=20, input=b"x" * 1_000_000).returncode == 0


def test_run_ends_the_whole_group_in_time() -> None:
    code = "import subprocess,sys,time; subprocess.Popen(['sleep','60']); print('on', flush=True); time.sleep(60)"
    began = time.monotonic()
    with pytest.raises(TimedOut, match="did not end within 1 s"):
        process.run(python(code), timeout_s=1)
    assert time.monotonic() - began < 5


def _runs(pid: int) -> bool:
    return process.identify(pid) is not None


def test_run_ends_what_a_command_left_behind(tmp_path: Path) -> None:
    """Its leader has ended long before, and what it started holds the output."""
    told = tmp_path / "pid"
    with pytest.raises(TimedOut, match="sh ended, but a child process held its output open for 1 s"):
        process.run(["sh", "-c", f"sleep 60 & echo $! > {told}"], timeout_s=1)
    eventually(lambda: not _runs(int(told.read_text())), what="the child is killed")


def test_run_asks_before_it_kills(tmp_path: Path) -> None:
    told = tmp_path / "asked"
    patient = f"trap 'echo yes > {told}; exit 0' TERM; while :; do sleep 0.1; done"
    with pytest.raises(TimedOut):
        process.run(["sh", "-c", patient], timeout_s=1, grace_s=20)
    assert told.read_text() == "yes\n"


def test_a_followed_command_that_closes_its_output_has_its_limit_all_the_same(tmp_path: Path) -> None:
    said: list[str] = []
    argv = ["sh", "-c", "exec >/dev/null 2>&1; exec sleep 60"]
    began = time.monotonic()
    with pytest.raises(TimedOut):
        process.run_logged(argv, timeout_s=0.5, on_line=said.append, cwd=tmp_path)
    assert time.monotonic() - began < within(20)


def test_a_followed_command_may_go_on_for_a_while_without_output(tmp_path: Path) -> None:
    said: list[str] = []
    argv = ["sh", "-c", "echo on; exec >/dev/null 2>&1; sleep 0.3; exit 7"]
    ended = process.run_logged(argv, timeout_s=within(20), on_line=said.append, cwd=tmp_path)
    assert (ended.code, ended.tail, said[0]) == (7, ["on"], "on")


def test_run_kills_what_does_not_listen() -> None:
    began = time.monotonic()
    with pytest.raises(TimedOut):
        process.run(["sh", "-c", "trap '' TERM; while :; do sleep 0.1; done"], timeout_s=0.5, grace_s=1)
    assert time.monotonic() - began < within(10)


@pytest.mark.parametrize(("argv", "error"), [(["/no/such/program"], NotFound), (["/etc/passwd"], OperationFailed)])
def test_run_names_what_cannot_run(argv: list[str], error: type[Exception]) -> None:
    with pytest.raises(error, match=argv[0]):
        process.run(argv, timeout_s=5)


# --- long-lived processes ------------------------------------------------------------------------------------------


@pytest.fixture
def sleeper(tmp_path: Path) -> Iterator[ProcessIdentity]:
    identity = process.spawn(
        ["sleep", "300"], cwd=tmp_path, env={"PATH": os.environ["PATH"]}, output=tmp_path / "console.log"
    )
    yield identity
    process.send_signal(identity, signal.SIGKILL)
    _await_gone(identity)


def _await_gone(identity: ProcessIdentity) -> None:
    deadline = time.monotonic() + 10
    while process.is_running(identity):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_spawned_process_has_a_session_of_its_own(sleeper: ProcessIdentity) -> None:
    assert process.identify(sleeper.pid) == sleeper
    assert os.getsid(sleeper.pid) == sleeper.pid != os.getsid(0)
    # The kernel closes the files of a process that becomes another one before it sets its arguments.
    eventually(lambda: process.command_line(sleeper.pid) == ["sleep", "300"], what="its arguments are known")
    assert sleeper in [identity for identity, _ in process.find_processes(lambda argv: argv == ["sleep", "300"])]


def test_pause_and_go_on(sleeper: ProcessIdentity) -> None:
    def state() -> str:
        time.sleep(0.05)
        used = process.usage(sleeper)
        assert used is not None
        return used.state

    assert process.send_signal(sleeper, signal.SIGSTOP)
    assert state() == "T"
    assert process.is_running(sleeper)
    assert process.send_signal(sleeper, signal.SIGCONT)
    assert state() in "SR"


def test_a_dead_process_is_gone_though_nobody_waited(sleeper: ProcessIdentity) -> None:
    assert process.send_signal(sleeper, signal.SIGKILL)
    _await_gone(sleeper)
    assert process.usage(sleeper) is None
    assert not process.send_signal(sleeper, signal.SIGTERM)


def test_a_stranger_with_the_same_pid_is_left_alone(sleeper: ProcessIdentity) -> None:
    for stranger in (
        ProcessIdentity(sleeper.pid, sleeper.start_ticks - 1, sleeper.boot_id),
        ProcessIdentity(sleeper.pid, sleeper.start_ticks, "another boot"),
    ):
        assert not process.is_running(stranger)
        assert not process.send_signal(stranger, signal.SIGKILL)
    time.sleep(0.05)
    assert process.is_running(sleeper)


def test_a_dead_leader_whose_threads_still_run_is_running(tmp_path: Path) -> None:
    """As a JVM that exits: its first thread is a zombie while others still hold its ports."""
    code = (
        "import ctypes,threading,time;"
        "threading.Thread(target=time.sleep, args=(60,)).start();"
        "ctypes.CDLL(None).syscall(60, 0)"  # exit(2) of this thread alone, on x86-64
    )
    if os.uname().machine != "x86_64":
        code = code.replace("syscall(60, 0)", "syscall(93, 0)")
    identity = process.spawn(python(code), cwd=tmp_path, env={}, output=tmp_path / "console.log")
    try:
        deadline = time.monotonic() + 10
        while (Path(f"/proc/{identity.pid}/stat").read_text().rpartition(")")[2].split()[0]) != "Z":
            assert time.monotonic() < deadline
            time.sleep(0.02)
        assert process.is_running(identity)
    finally:
        process.send_signal(identity, signal.SIGKILL)
    _await_gone(identity)


def test_usage(sleeper: ProcessIdentity) -> None:
    deadline = time.monotonic() + 10
    while not (used := process.usage(sleeper)) or not used.rss_bytes:  # it has no memory until it runs
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert 0 <= used.uptime_ms < 60_000
    assert used.rss_bytes < 100_000_000


# --- ports ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def listener() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def test_a_taken_port_and_its_owner(listener: int) -> None:
    assert not ports.is_free(listener)
    owner = ports.find_owner(listener)
    assert owner is not None
    assert owner.pid == os.getpid()
    assert f"pid {os.getpid()}" in str(owner)
    with pytest.raises(Busy, match=rf"port {listener} of broker-1 is in use by pid {os.getpid()} \(") as caught:
        ports.check_free([(listener, "broker-1")])
    assert caught.value.details["pid"] == os.getpid()


def test_taken_at_all_addresses() -> None:
    with socket.create_server(("0.0.0.0", 0)) as server:
        assert not ports.is_free(server.getsockname()[1])
    if socket.has_dualstack_ipv6():
        with socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True) as server:
            assert not ports.is_free(server.getsockname()[1])
            assert ports.find_owner(server.getsockname()[1]) is not None


def test_a_connection_that_was_closed_leaves_the_port_free() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        client = socket.create_connection(("127.0.0.1", port))
        accepted, _ = server.accept()
    accepted.close()  # the server's side first: it stays in TIME_WAIT
    client.close()
    assert ports.is_free(port)
    assert ports.find_owner(port) is None


TABLE = """  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:2384 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 111 1 0 100 0 0 10 0
   1: 0100007F:2384 0100007F:C350 01 00000000:00000000 00:00000000 00000000     0        0 222 1 0 100 0 0 10 0
   2: 00000000:2385 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 333 1 0 100 0 0 10 0
garbage
"""


def test_the_kernels_table() -> None:
    assert ports.listening_inodes(TABLE, 0x2384) == {"111"}
    assert ports.listening_inodes(TABLE, 0x2385) == {"333"}
    assert ports.listening_inodes(TABLE, 1) == set()


COMMANDS = [
    (["/usr/bin/java", "-Xmx1g", "-cp", "/k/libs/*", "kafka.Kafka", "/c/server.properties"],
     "java kafka.Kafka /c/server.properties"),
    (["java", "-version"], "java"),
    (["/usr/sbin/nginx", "-g", "daemon off;"], "nginx -g daemon off;"),
    ([], ""),
]  # fmt: skip


@pytest.mark.parametrize(("argv", "text"), COMMANDS)
def test_short_commands(argv: list[str], text: str) -> None:
    assert ports._short(argv) == text


def test_choosing_avoids_what_is_reserved() -> None:
    base = ports.choose_base_port(12, ())
    assert 20_000 <= base < 32_000
    assert all(ports.is_free(port) for port in range(base, base + 12))
    everything_but = set(range(20_000, 32_000)) - set(range(24_000, 24_020))
    if all(ports.is_free(port) for port in range(24_000, 24_020)):
        assert ports.choose_base_port(12, everything_but) == 24_000
    with pytest.raises(Busy, match="no 12 consecutive free ports"):
        ports.choose_base_port(12, range(20_000, 32_000))


@pytest.mark.parametrize("base", [0, 1023, 65_530, 70_000, -1])
def test_a_base_port_that_leaves_no_room(base: int) -> None:
    with pytest.raises(UsageError, match="--base-port"):
        ports.check_base_port(base, 10)
