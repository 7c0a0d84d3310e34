"""A Spark session that is quiet, starts fast and leaves nothing behind.

    with SparkDriver(settings) as driver:    # starts the JVM and returns at once
        …                                    # read the cluster meanwhile
        spark = driver.session()             # waits for the JVM

Leaving the block stops Spark. Leaving it by an exception, or by Ctrl-C, kills the JVM.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import threading
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kctl.base.deadline import Deadline
from kctl.base.paths import user_without_name
from kctl.deploy.runtime.java import find_java
from kctl.errors import ConnectionFailed, KctlError, OperationFailed, TimedOut
from kctl.spark import failures
from kctl.spark.class_archive import class_archive
from kctl.spark.gateway import Gateway
from kctl.spark.java_command import (
    FOREIGN_VARIABLES,
    LOG4J2,
    embedded_command,
    embedded_environment,
    packages_folders,
    properties,
    submit_command,
    submit_conf,
    submit_environment,
    write_private,
)
from kctl.spark.scratch import scratch_folder
from kctl.spark.settings import SparkSettings, checked, standalone_masters
from kctl.spark.submitted import SubmittedGateway, submitted_master

if TYPE_CHECKING:
    from types import FrameType, TracebackType

    from pyspark.sql import SparkSession

_MASTER_TIMEOUT_S = 5.0
_JVM_TIMEOUT_S = 120.0  # until the JVM listens; a cluster may take longer to accept the application


class SparkDriver:
    """A Spark driver. Not thread-safe; one at a time in a process.

    archive_to: file for a class archive, which the JVM writes when it exits (kctl.spark.warm). withheld: secrets;
    environment variables with these values are not passed to the JVM and its Python workers.
    """

    def __init__(
        self,
        settings: SparkSettings,
        *,
        verbose: bool = False,
        archive_to: Path | None = None,
        withheld: Collection[str] = (),
    ) -> None:
        self.settings = checked(settings)
        self._withheld = frozenset(withheld)
        self._verbose = verbose
        self._archive_to = archive_to
        self._stack = ExitStack()
        self._session: SparkSession | None = None
        self._gateway: Gateway | SubmittedGateway
        self._interrupted = False
        self.archived = False  # whether the class archive is used

    def __enter__(self) -> SparkDriver:
        self._deadline = Deadline(self.settings.start_timeout_s)
        with ExitStack() as stack:
            if submitted_master() is not None:
                self._gateway = stack.enter_context(SubmittedGateway())
                stack.enter_context(_quiet_logging())
                self._stack = stack.pop_all()
                return self
            _check_master(self.settings)
            self._folder = stack.enter_context(scratch_folder())
            argv, environment = self._command()
            environment = {name: value for name, value in environment.items() if value not in self._withheld}
            write_private(self._folder / "log4j2.properties", LOG4J2.format(level="info" if self._verbose else "warn"))
            stack.enter_context(_environment(environment))
            stack.enter_context(_quiet_logging())
            gateway = Gateway(argv, environment, self._folder, verbose=self._verbose)
            self._gateway = stack.enter_context(gateway)
            stack.enter_context(self._killed_by_signals(gateway))
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None and self._session is not None:
                with self.explained():
                    self._session.stop()
                if not self.settings.embedded:  # an embedded Spark leaves only its JVM, which is killed below
                    self._gateway.end()
        except KctlError:
            if not self._interrupted:
                raise
        finally:
            self._session = None
            _reset_pyspark()
            self._stack.close()
        if self._interrupted:  # later failures are due to the killed JVM
            raise KeyboardInterrupt

    @contextmanager
    def _killed_by_signals(self, gateway: Gateway) -> Iterator[None]:
        """Kill the JVM before the handlers of SIGINT, SIGTERM and SIGHUP run.

        While an exception propagates, pyspark calls the JVM (SCCallSiteSync) over a connection that responds only when
        the job is done."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}

        def interrupted(number: int, frame: FrameType | None) -> None:
            self._interrupted = True
            gateway.kill_process()
            handler = before[signal.Signals(number)]
            assert callable(handler)
            handler(number, frame)

        for number, handler in before.items():
            if callable(handler):
                signal.signal(number, interrupted)
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    @property
    def pid(self) -> int:
        """Return the JVM's process id."""
        return self._gateway.pid

    @property
    def folder(self) -> Path:
        """Return the driver's temporary folder. There is none under spark-submit."""
        return self._folder

    def session(self) -> SparkSession:
        """Return the session once the JVM is up. Raises TimedOut, and KctlError for failures of Spark."""
        if self._session is None:
            with self.explained(), self._started_within(self._deadline):
                gateway = self._gateway.connect(Deadline(_JVM_TIMEOUT_S))
                self._session = self._connected(gateway)
        return self._session

    def log(self) -> str:
        """Return the end of Spark's log."""
        return self._gateway.log()

    def finish(self) -> int | None:
        """Stop Spark and let the JVM exit. Return its exit code, or None if it timed out and was killed."""
        if self._session is not None:
            with self.explained():
                self._session.stop()
            self._session = None
        return self._gateway.end(grace_s=self.settings.start_timeout_s)

    def abort(self) -> None:
        """Kill the JVM from another thread; pending calls fail."""
        self._gateway.kill()

    @contextmanager
    def explained(self) -> Iterator[None]:
        """Turn Spark's exceptions inside the block into KctlError, using Spark's log."""
        try:
            with failures.explained(self._gateway.log):
                yield
        except TimedOut:  # kctl has killed the JVM itself
            raise
        except OperationFailed as exc:
            if self._gateway.returncode is not None:
                raise failures.died(self._gateway.returncode, self._gateway.log()) from exc
            raise

    @contextmanager
    def _started_within(self, deadline: Deadline) -> Iterator[None]:
        """Kill the JVM if the block, in which Java waits for a cluster, exceeds the deadline. Raises TimedOut."""
        timer = threading.Timer(deadline.left_s, self.abort)  # at once if the deadline has passed
        timer.daemon = True
        timer.start()
        try:
            yield
        except Exception as exc:
            if not deadline.expired:
                raise
            raise TimedOut(
                f"Spark did not start within {deadline.seconds:g} s (master {self.settings.master})",
                hint="raise --timeout, or use -v to see Spark's log"
                + ("" if self.settings.embedded else "; check that the master is up and has this Spark's version"),
            ) from exc
        finally:
            timer.cancel()

    def _command(self) -> tuple[list[str], dict[str, str]]:
        if not self.settings.embedded:
            from kctl.deploy.runtime.java_launcher import java_home_for_spark

            write_private(self._folder / "spark.properties", properties(submit_conf(self._conf(), folder=self._folder)))
            environment = submit_environment(os.environ, java_home_for_spark())
            environment.setdefault("SPARK_LOCAL_DIRS", str(self._folder))  # removed even if the driver is killed
            return submit_command(self.settings, folder=self._folder, environ=os.environ), environment
        java = find_java()
        archive = class_archive(java)
        if self._archive_to is not None:
            options = archive.options_to_make(self._archive_to)
        else:
            options = archive.options_to_use() if self.settings.use_archive else []
            self.archived = bool(options)
        command = embedded_command(java.executable, self.settings, folder=self._folder, archive_options=options)
        return command, embedded_environment(os.environ)

    def _conf(self) -> dict[str, str]:
        """Return Spark's configuration: kctl's settings, overridden by the user's."""
        common = {
            "spark.app.name": "kctl",
            "spark.ui.showConsoleProgress": "false",
            "spark.sql.session.timeZone": "UTC",
            "spark.sql.shuffle.partitions": str(self.settings.parallelism),
        }
        if not self.settings.embedded or submitted_master() is not None:
            return {**common, **self.settings.conf}
        return {
            **common,
            "spark.master": self.settings.master_url,
            "spark.ui.enabled": "false",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.local.dir": str(self._folder),
            "spark.sql.warehouse.dir": str(self._folder / "warehouse"),
            "spark.sql.catalogImplementation": "in-memory",
            # For a few thousand rows, adaptive planning and code generation cost more than they save.
            "spark.sql.adaptive.enabled": "false",
            "spark.sql.codegen.wholeStage": "false",
            "spark.sql.codegen.factoryMode": "NO_CODEGEN",
            **self.settings.conf,
        }

    def _connected(self, gateway: Any) -> SparkSession:
        from pyspark import SparkConf, SparkContext
        from pyspark.sql import SparkSession

        submitted = submitted_master() is not None
        conf = SparkConf(loadDefaults=submitted, _jvm=gateway.jvm if submitted else None)
        for key, value in self._conf().items():
            conf.set(key, value)
        if not self.settings.embedded and not submitted:
            conf.set("spark.master", self.settings.master_url)
        if self.settings.embedded or submitted:
            _name_user(gateway.jvm)
        with _preserved_interrupts():
            context = SparkContext(conf=conf, gateway=gateway)
        if submitted:  # partitions of sources are listed on this machine, possibly under the executors' Python
            folders = [context.environment.get("PYTHONPATH"), *packages_folders()]
            context.environment["PYTHONPATH"] = os.pathsep.join(filter(None, folders))
        # When the JVM is killed, this server would print a traceback about its closed connection.
        context._accumulatorServer.handle_error = _ignore  # type: ignore[method-assign,assignment]  # noqa: SLF001
        return SparkSession(context)


def _name_user(jvm: Any) -> None:
    """Set a user name if the system has none for the user id: Hadoop, which Spark uses, fails without one."""
    name = user_without_name(os.environ)
    if name is not None:
        users = jvm.org.apache.hadoop.security.UserGroupInformation
        users.setLoginUser(users.createRemoteUser(name))


def _ignore(*_: object) -> None:
    pass


def _check_master(settings: SparkSettings) -> None:
    """Raise ConnectionFailed if nothing listens at the master's address: Spark itself would try for a minute."""
    masters = standalone_masters(settings.master)
    reason = ""
    for address in masters:
        try:
            socket.create_connection(address, timeout=_MASTER_TIMEOUT_S).close()
        except OSError as exc:
            reason = exc.strerror or str(exc)
        else:
            return
    if masters:
        raise ConnectionFailed(
            f"cannot reach the Spark master {settings.master}: {reason}",
            hint="check that the master is up and that the port is right",
        )


@contextmanager
def _environment(selected: dict[str, str]) -> Iterator[None]:
    """Set the variables that pyspark also reads in this process to the JVM's values, then restore them."""
    names = {*FOREIGN_VARIABLES, "SPARK_HOME", "PYSPARK_PYTHON", "SPARK_LOCAL_IP"}
    before = {name: os.environ.get(name) for name in names}
    _set_environment({name: selected.get(name) for name in names})
    try:
        yield
    finally:
        _set_environment(before)


def _set_environment(values: dict[str, str | None]) -> None:
    for name, value in values.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


@contextmanager
def _quiet_logging() -> Iterator[None]:
    """Silence py4j, which logs errors before it raises them, partly by logging.exception(), which adds a handler."""
    py4j, root, nothing = logging.getLogger("py4j"), logging.getLogger(), logging.NullHandler()
    before = py4j.level
    py4j.setLevel(logging.CRITICAL + 1)
    root.addHandler(nothing)
    try:
        yield
    finally:
        root.removeHandler(nothing)
        py4j.setLevel(before)


@contextmanager
def _preserved_interrupts() -> Iterator[None]:
    """Restore the SIGINT handler after the block: SparkContext's would cancel jobs over a connection in use."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _reset_pyspark() -> None:
    """Clear pyspark's references to its gateway. They outlive the JVM, but the next driver needs a new gateway."""
    import sys

    if "pyspark.core.context" not in sys.modules:
        return
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    SparkContext._gateway = None  # noqa: SLF001 - there is no public API; pyspark's own tests do this
    SparkContext._jvm = None  # noqa: SLF001
    SparkContext._active_spark_context = None  # noqa: SLF001
    SparkSession._instantiatedSession = None  # noqa: SLF001
