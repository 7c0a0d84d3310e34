"""A driver started by spark-submit: kctl connects to its JVM instead of starting one.

spark-submit passes the address of the JVM to Python in PYSPARK_GATEWAY_PORT and PYSPARK_GATEWAY_SECRET
(org.apache.spark.deploy.PythonRunner). Master, memory and settings are those of spark-submit.
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
_MAX_TASKS = 10_000


def submitted_master() -> str | None:
    """Return the master of spark-submit; None if kctl does not run under spark-submit."""
    return os.environ.get(MASTER_VARIABLE)


def submitted_tasks() -> int | None:
    """Return the number of parallel tasks in spark-submit's settings; None if not set, or without spark-submit."""
    text = os.environ.get(_TASKS, "")
    return int(text) if text.isascii() and text.isdigit() else None


def tasks_of(get: Callable[[str], str | None]) -> int | None:
    """Return the number of parallel tasks: spark.default.parallelism, else executors x cores, else spark.cores.max."""
    tasks, instances, cores, max_cores = (
        int(text) if (text := get(name)) and text.isascii() and text.isdigit() else 0
        for name in ("spark.default.parallelism", "spark.executor.instances", "spark.executor.cores", "spark.cores.max")
    )
    return min(tasks or instances * (cores or 1) or max_cores, _MAX_TASKS) or None


def connect() -> Any:
    """Return the py4j gateway to spark-submit's JVM. Store its master and number of tasks in the environment.

    Raises OperationFailed if this process was not started by spark-submit.
    """
    if _ADDRESS not in os.environ:
        raise OperationFailed(
            "this process was not started by spark-submit", hint="run the script with spark-submit, or run `kctl`"
        )
    from pyspark.java_gateway import launch_gateway

    gateway = launch_gateway()  # type: ignore[no-untyped-call]  # pyspark leaves it untyped
    conf = gateway.jvm.org.apache.spark.SparkConf()
    os.environ[MASTER_VARIABLE] = str(conf.get("spark.master", "local"))
    os.environ[_TASKS] = str(tasks_of(lambda name: conf.get(name, "")) or "")
    return gateway


class SubmittedGateway:
    """The interface of kctl.spark.gateway.Gateway for the JVM of spark-submit, which exits after this process."""

    pid = 0
    returncode: int | None = None

    def __init__(self) -> None:
        self._py4j: Any = None

    def __enter__(self) -> SubmittedGateway:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.kill()

    def connect(self, deadline: Deadline) -> Any:  # noqa: ARG002 - the JVM is running
        """Return the py4j gateway."""
        self._py4j = connect()
        return self._py4j

    def log(self) -> str:
        """Return an empty text: the log goes to spark-submit's output."""
        return ""

    def end(self, grace_s: float = 0.0) -> int | None:  # noqa: ARG002
        """Disconnect from the JVM."""
        self.kill()
        return None

    def kill(self) -> None:
        """Disconnect from the JVM; pending calls fail."""
        if self._py4j is not None:
            self._py4j.shutdown_callback_server()
            self._py4j.close()
            self._py4j = None
