"""A driver that spark-submit has started already: its JVM is there, and kctl connects to it instead of starting one.

spark-submit tells its Python where the JVM listens, by PYSPARK_GATEWAY_PORT and PYSPARK_GATEWAY_SECRET
(org.apache.spark.deploy.PythonRunner). Master, memory and settings are then spark-submit's.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from kctl.errors import OperationFailed

if TYPE_CHECKING:
    from kctl.base.deadline import Deadline

MASTER_VARIABLE = "KCTL_SUBMITTED_MASTER"
_TASKS = "KCTL_SUBMITTED_TASKS"
_ADDRESS = "PYSPARK_GATEWAY_PORT"
_MOST_TASKS = 10_000


def submitted_master() -> str | None:
    """The master that spark-submit was told; None when kctl was started by itself."""
    return os.environ.get(MASTER_VARIABLE)


def submitted_tasks() -> int | None:
    """How many tasks spark-submit's settings speak of; None when they do not, or there is no spark-submit."""
    text = os.environ.get(_TASKS, "")
    return int(text) if text.isascii() and text.isdigit() else None


def tasks_of(get: Callable[[str], str | None]) -> int | None:
    """Return the number of parallel tasks: spark.default.parallelism, else executors x cores, else spark.cores.max."""
    tasks, instances, cores, most = (
        int(text) if (text := get(name)) and text.isascii() and text.isdigit() else 0
        for name in ("spark.default.parallelism", "spark.executor.instances", "spark.executor.cores", "spark.cores.max")
    )
    return min(tasks or instances * (cores or 1) or most, _MOST_TASKS) or None


def connect() -> Any:
    """The py4j gateway to spark-submit's JVM; its master, and how many tasks it takes, are remembered for this process.

    Raises OperationFailed when there is none.
    """
    if _ADDRESS not in os.environ:
        raise OperationFailed("this is no Python of spark-submit's", hint="run it by spark-submit, or use kctl itself")
    from pyspark.java_gateway import launch_gateway

    gateway = launch_gateway()  # type: ignore[no-untyped-call]  # pyspark leaves it untyped
    conf = gateway.jvm.org.apache.spark.SparkConf()
    os.environ[MASTER_VARIABLE] = str(conf.get("spark.master", "local"))
    os.environ[_TASKS] = str(tasks_of(lambda name: conf.get(name, "")) or "")
    return gateway


class SubmittedGateway:
    """The interface of kctl.spark.gateway.Gateway for the JVM that spark-submit started. It ends with this process."""

    pid = 0
    returncode: int | None = None

    def __init__(self) -> None:
        self._py4j: Any = None

    def __enter__(self) -> SubmittedGateway:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.kill()

    def connect(self, deadline: Deadline) -> Any:  # noqa: ARG002 - it is up
        """The py4j gateway."""
        self._py4j = connect()
        return self._py4j

    def log(self) -> str:
        """It goes where spark-submit's does."""
        return ""

    def end(self, grace_s: float = 0.0) -> int | None:  # noqa: ARG002
        """Let go of the JVM."""
        self.kill()
        return None

    def kill(self) -> None:
        """Let go of the JVM; what waits for it fails."""
        if self._py4j is not None:
            self._py4j.shutdown_callback_server()
            self._py4j.close()
            self._py4j = None
