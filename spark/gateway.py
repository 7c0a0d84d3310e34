"""The driver's JVM as a process: started at once, connected to when it is needed, gone at the end.

The JVM reads its stdin and ends when that is closed (org.apache.spark.api.python.PythonGatewayServer), so it goes
also when kctl is killed. It has a session of its own: Ctrl-C reaches kctl, which ends it. Its output goes to a file
in its temporary folder, for the error message if there is to be one.
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
    """One JVM. `with` starts it, and ends it whatever happens."""

    def __init__(self, argv: Sequence[str], environment: Mapping[str, str], folder: Path, *, verbose: bool) -> None:
        self._argv = list(argv)
        self._where = folder / "gateway"
        self._environment = {
            **environment,
            "_PYSPARK_DRIVER_CONN_INFO_PATH": str(self._where),
            "SPARK_CONNECT_MODE": "0",
        }
        self._log = folder / "spark.log"
        self._verbose = verbose
        self._process: subprocess.Popen[bytes] | None = None
        self._py4j: Any = None

    def __enter__(self) -> Gateway:
        with ExitStack() as stack:
            # -v: Spark's log goes where kctl's own messages go.
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
        """The JVM's process id."""
        return self._running().pid

    def connect(self, deadline: Deadline) -> Any:
        """The py4j gateway, as pyspark makes it. Raises TimedOut, and what the JVM died of."""
        process = self._running()
        while not self._where.exists():
            if process.poll() is not None:
                raise failures.died(process.returncode, self.log())
            if deadline.expired:
                raise TimedOut(
                    f"Spark's JVM did not start within {deadline.seconds:.3g} s",
                    hint="--timeout gives it more time; -v shows what it does",
                )
            time.sleep(_POLL_S)
        with _announced(*_read_address(self._where)):
            from pyspark.java_gateway import launch_gateway

            self._py4j = launch_gateway()  # type: ignore[no-untyped-call]  # pyspark leaves it untyped
        return self._py4j

    def log(self) -> str:
        """The end of what the JVM and its Python workers wrote; empty when it went to the terminal."""
        try:
            with self._log.open("rb") as file:
                file.seek(max(0, self._log.stat().st_size - _MAX_LOG_BYTES))
                return file.read().decode("utf-8", "replace")
        except OSError:
            return ""

    @property
    def returncode(self) -> int | None:
        """None while the JVM runs."""
        return self._running().poll()

    def end(self, grace_s: float = _GRACE_S) -> int | None:
        """Let the JVM end by itself; its exit code, or None when it did not within `grace_s` and was killed."""
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
        """End the JVM now; its Python workers end when their pipes do. Harmless when it is gone."""
        process = self._process
        if process is None:
            return
        if self._py4j is not None:
            # Python objects that stand for Java's would still be given back, one by one.
            self._py4j._gateway_client.is_connected = False  # noqa: SLF001 - shutdown() needs a JVM that answers
        self.kill_process()
        process.wait()
        if self._py4j is not None:
            self._py4j.shutdown()
            self._py4j = None
        if process.stdin is not None:
            process.stdin.close()

    def kill_process(self) -> None:
        """The part of `kill` that a signal handler can do: no lock, no waiting."""
        if self._process is not None and self._process.returncode is None:
            with suppress(ProcessLookupError):  # another thread was first
                os.killpg(self._process.pid, signal.SIGKILL)  # spark-submit's shell has a child before it is the JVM

    def _running(self) -> subprocess.Popen[bytes]:
        assert self._process is not None
        return self._process


def _read_address(path: Path) -> tuple[int, str]:
    """Port and secret, as PythonGatewayServer writes them: int32, int32 length, UTF-8."""
    data = path.read_bytes()
    port, length = struct.unpack_from(">ii", data)
    return port, data[8 : 8 + length].decode()


@contextmanager
def _announced(port: int, secret: str) -> Iterator[None]:
    """pyspark takes a gateway that runs already only from the environment; no child is started meanwhile."""
    names = {"PYSPARK_GATEWAY_PORT": str(port), "PYSPARK_GATEWAY_SECRET": secret}
    os.environ.update(names)
    try:
        yield
    finally:
        for name in names:
            os.environ.pop(name, None)
