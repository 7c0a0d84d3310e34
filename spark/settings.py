"""Settings of a Spark session (master, memory, configuration), validated before anything starts."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from kctl.base.address import Address, parse_address
from kctl.errors import NotSupported, UsageError
from kctl.history.evaluate.processes import available_cpus
from kctl.spark.submitted import submitted_master, submitted_tasks, tasks_of

EMBEDDED = "local"  # default of `--master`: one thread of the driver for each CPU
EXTRA_HINT = "install Spark with `pip install 'kctl[spark]'`, or run kctl's install.sh again"
OLDEST_PYSPARK = (4, 2)  # the same as in pyproject.toml; kctl builds on its Python data sources
_REQUIRED = ("pyspark", "py4j", "pyarrow", "pandas")
_MEMORY = re.compile(r"[1-9]\d{0,8}[kmgt]b?", re.IGNORECASE)
_MASTER = re.compile(r"local(\[(\*|[1-9]\d{0,3})(,\d+)?\])?|spark://.+|yarn|k8s://.+")
_MASTERS_HINT = "use local, local[4], spark://host:7077, yarn or k8s://https://host:6443"
_RESERVED = {"spark.master": "--master", "spark.driver.memory": "--driver-memory"}


@dataclass(frozen=True, slots=True)
class SparkSettings:
    """Settings of a Spark session.

    master: local, local[N], spark://…, yarn or k8s://…. driver_memory: a size as in Java's -Xmx.
    conf: Spark settings that override kctl's; may contain secrets. use_archive: start the embedded Spark with a
    matching class archive. start_timeout_s: limit for starting the session.
    """

    master: str = EMBEDDED
    conf: Mapping[str, str] = field(default_factory=dict, repr=False)
    driver_memory: str = "1g"
    use_archive: bool = True
    start_timeout_s: float = 600.0

    @property
    def embedded(self) -> bool:
        """Return True if driver and executors are one JVM on this machine."""
        return self.master.startswith("local")

    @property
    def master_url(self) -> str:
        """Return the master URL for Spark."""
        return f"local[{available_cpus()}]" if self.master == EMBEDDED else self.master

    @property
    def parallelism(self) -> int:
        """Return the maximum number of tasks of a source. Each Python worker spends 1 CPU second on imports.

        Work is planned before the session starts, so SparkContext.defaultParallelism is not available.
        """
        match = re.fullmatch(r"local\[(\d+)(?:,\d+)?\]", self.master_url)
        if match:
            return int(match.group(1))
        if self.embedded:
            return available_cpus()
        return tasks_of(self.conf.get) or submitted_tasks() or _CLUSTER_TASKS


_CLUSTER_TASKS = 32  # if the size of the cluster is unknown
STANDALONE_PORT = 7077


def parse_conf(pairs: list[str] | None) -> dict[str, str]:
    """Parse `key=value` options. Raises UsageError; messages never contain a value."""
    conf: dict[str, str] = {}
    for pair in pairs or []:
        key, separator, value = pair.partition("=")
        if not separator or not re.fullmatch(r"spark\.[A-Za-z0-9_.\-]+", key):
            text = f"{key!r}" if separator else "the given text"
            raise UsageError(f"--conf takes spark.KEY=VALUE, not {text}", hint="for example --conf spark.ui.port=4040")
        if key in _RESERVED:
            raise UsageError(f"--conf {key} is not allowed", hint=f"use {_RESERVED[key]}")
        conf[key] = value
    return conf


def checked(settings: SparkSettings) -> SparkSettings:
    """Return `settings` if they are valid. Raises UsageError, and NotSupported if a Python package is missing.

    Under spark-submit, the result has the master of spark-submit.
    """
    submitted = submitted_master()
    if submitted is not None:
        if settings.master not in {EMBEDDED, submitted}:
            raise UsageError(
                f"--master {settings.master} differs from spark-submit's {submitted}", hint="remove --master"
            )
        return replace(settings, master=submitted)
    if not _MASTER.fullmatch(settings.master):
        raise UsageError(f"--master {settings.master} is not a Spark master", hint=_MASTERS_HINT)
    standalone_masters(settings.master)
    if not _MEMORY.fullmatch(settings.driver_memory):
        raise UsageError(f"--driver-memory {settings.driver_memory} is not a size", hint="use e.g. 512m or 4g")
    need_packages()
    return settings


def need_packages() -> None:
    """Raise NotSupported if a Python package is missing or pyspark is too old."""
    missing = [name for name in _REQUIRED if importlib.util.find_spec(name) is None]
    if missing:
        raise NotSupported(
            f"kctl spark needs Python packages that are not installed: {', '.join(missing)}", hint=EXTRA_HINT
        )
    try:
        result = importlib.metadata.version("pyspark")
    except importlib.metadata.PackageNotFoundError:  # spark-submit's pyspark is a folder without metadata
        return
    numbers = tuple(int(text) for text in re.findall(r"\d+", result)[:2])
    if numbers < OLDEST_PYSPARK:
        oldest = ".".join(map(str, OLDEST_PYSPARK))
        raise NotSupported(f"kctl spark needs pyspark {oldest} or newer; {result} is installed", hint=EXTRA_HINT)


def standalone_masters(master: str) -> list[Address]:
    """Return the addresses in spark://host:port[,host:port…]; empty for other masters. Raises UsageError."""
    if not master.startswith("spark://"):
        return []
    try:
        return [
            parse_address(text, default_port=STANDALONE_PORT) for text in master.removeprefix("spark://").split(",")
        ]
    except UsageError as exc:
        raise UsageError(f"--master {master} is not a Spark master: {exc.message}", hint=_MASTERS_HINT) from exc
