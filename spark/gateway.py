"""The driver's JVM as a child process. It starts at once; kctl connects to it when the session is needed.

The JVM exits when its stdin is closed (org.apache.spark.api.python.PythonGatewayServer), so it also exits when kctl is
killed. It runs in its own process session: Ctrl-C reaches kctl, which stops the JVM. Its output goes to a file in the
temporary folder, for error messages.
"""

from __future__ import annotations

import os
import signal
import struct
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kctl.errors import OperationFailed, TimedOut
from kctl.spark import failures

if TYPE_CHECKING:
    from kctl.base.deadline import Deadline

_POLL_S = 0.02
_GRACE_S = 15.0
_MAX_LOG_BYTES = 256 * 1024


class Gateway:
    """A driver JVM. Entering the context starts the JVM, leaving the context always kills it."""

    def __init__(self, argv: Sequence[str], environment: Mapping[str, str], folder: Path, *, verbose: bool) -> None:
        self._argv = list(argv)
        self._address_file = folder / "gateway"
        self._environment = {
            **environment,
            "_PYSPARK_DRIVER_CONN_INFO_PATH": str(self._address_file),
            "SPARK_CONNECT_MODE": "0",
        }
        self._log = folder / "spark.log"
        self._verbose = verbose
        self._process: subprocess.Popen[bytes] | None = None
        self._py4j: Any = None

    def __enter__(self) -> Gateway:
        with ExitStack() as stack:
            # With -v, Spark's log goes to stderr, like kctl's own messages.
            output = None if self._verbose else stack.enter_context(self._log.open("wb"))
            try:
                self._process = subprocess.Popen(
                    self._argv,
                    stdin=subprocess.PIPE,
                    stdout=2 if output is None else output,
                    stderr=output,
                    env=self._environment,
                    start_new_session=True,
                )
            except OSError as exc:
                raise OperationFailed(f"cannot start {self._argv[0]}: {exc.strerror}") from exc
        return self

    def __exit__(self, *_exc: object) -> None:
        self.kill()

    @property
    def pid(self) -> int:
        """Return the JVM's process id."""
        return self._running().pid

    def connect(self, deadline: Deadline) -> Any:
        """Return pyspark's py4j gateway. Raises TimedOut, and the error for a JVM that died."""
        process = self._running()
        while not self._address_file.exists():
            if process.poll() is not None:
                raise failures.died(process.returncode, self.log())
            if deadline.expired:
                raise TimedOut(
                    f"Spark's JVM did not start within {deadline.seconds:.3g} s",
                    hint="raise --timeout, or use -v to see Spark's log",
                )
            time.sleep(_POLL_S)
        with _published(*_read_address(self._address_file)):
            from pyspark.java_gateway import launch_gateway

            self._py4j = launch_gateway()  # type: ignore[no-untyped-call]  # pyspark leaves it untyped
        return self._py4j

    def log(self) -> str:
        """Return the end of the output of the JVM and its Python workers; empty if it went to the terminal."""
        try:
            with self._log.open("rb") as file:
                file.seek(max(0, self._log.stat().st_size - _MAX_LOG_BYTES))
                return file.read().decode("utf-8", "replace")
        except OSError:
            return ""

    @property
    def returncode(self) -> int | None:
        """Return the JVM's exit code; None while it runs."""
        return self._running().poll()

    def end(self, grace_s: float = _GRACE_S) -> int | None:
        """Let the JVM exit. Return its exit code, or None if it did not exit within `grace_s` and was killed."""
        process = self._running()
        if self._py4j is not None:
            self._py4j.shutdown()
        assert process.stdin is not None
        process.stdin.close()
        try:
            return process.wait(grace_s)
        except subprocess.TimeoutExpired:
            self.kill()
            return None

    def kill(self) -> None:
        """Kill the JVM; its Python workers exit when their pipes close. Does nothing if the JVM has exited."""
        process = self._process
        if process is None:
            return
        if self._py4j is not None:
            # Otherwise py4j would still release Python's references to Java objects, one by one.
            self._py4j._gateway_client.is_connected = False  # noqa: SLF001 - shutdown() needs a running JVM
        self.kill_process()
        process.wait()
        if self._py4j is not None:
            self._py4j.shutdown()
            self._py4j = None
        if process.stdin is not None:
            process.stdin.close()

    def kill_process(self) -> None:
        """Send the kill signal: the part of `kill` that is safe in a signal handler (no locks, no waiting)."""
        if self._process is not None and self._process.returncode is None:
            with suppress(ProcessLookupError):  # another thread was first
                os.killpg(self._process.pid, signal.SIGKILL)  # spark-submit's shell has a child before it execs the JVM

    def _running(self) -> subprocess.Popen[bytes]:
        assert self._process is not None
        return self._process


def _read_address(path: Path) -> tuple[int, str]:
    """Return port and secret from the file that PythonGatewayServer writes: int32, int32 length, UTF-8."""
    data = path.read_bytes()
    port, length = struct.unpack_from(">ii", data)
    return port, data[8 : 8 + length].decode()


@contextmanager
def _published(port: int, secret: str) -> Iterator[None]:
    """Publish the gateway in the environment, where pyspark looks for a running one. No child starts meanwhile."""
    names = {"PYSPARK_GATEWAY_PORT": str(port), "PYSPARK_GATEWAY_SECRET": secret}
    os.environ.update(names)
    try:
        yield
    finally:
        for name in names:
            os.environ.pop(name, None)
