"""A KRaft broker and controller in one JVM, for clusters that kctl itself cannot create."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

START_S = 120.0
# Kafka 3 logs with log4j, Kafka 4 with log4j 2.
_LOG4J = (
    "log4j.rootLogger=INFO, out\nlog4j.appender.out=org.apache.log4j.ConsoleAppender\n"
    "log4j.appender.out.layout=org.apache.log4j.PatternLayout\n"
    "log4j.appender.out.layout.ConversionPattern=%d %p %c{1} %m%n\n"
)
_LOG4J2 = (
    "rootLogger.level=info\nrootLogger.appenderRef.out.ref=out\nappender.out.type=Console\nappender.out.name=out\n"
    "appender.out.layout.type=PatternLayout\nappender.out.layout.pattern=%d %p %c{1} %m%n\n"
)


@dataclass(frozen=True)
class KraftProcess:
    """The settings of the process. scram: SCRAM users, `MECHANISM=[name=…,password=…]`; ports: open once it is up.

    format_options: more options of `kafka-storage format`.
    """

    folder: Path
    java: Path
    libs: Path
    settings: Mapping[str, object]
    ports: Iterable[int]
    scram: Iterable[str] = ()
    format_options: Iterable[str] = ()

    @property
    def log(self) -> Path:
        return self.folder / "broker.log"

    def start(self) -> subprocess.Popen[bytes]:
        """Format its folder if new, start it, and wait until it responds. The caller kills it."""
        process = self.launch()
        try:
            self._wait(process)
        except BaseException:
            process.kill()
            process.wait()
            raise
        return process

    def launch(self) -> subprocess.Popen[bytes]:
        """Format its folder if new, and start it, without waiting. The caller kills it."""
        config = self.folder / "server.properties"
        config.write_text("".join(f"{key}={value}\n" for key, value in self.settings.items()))
        logging = self._logging()
        flags = ["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", f"{self.libs}/*"]
        users = [word for user in self.scram for word in ("--add-scram", user)]
        done = subprocess.run(
            [str(self.java), *logging, *flags, "kafka.tools.StorageTool", "format", "-t", "3Db5QLSqSZieL3rJBUUegA",
             "--ignore-formatted", "-c", str(config), *users, *self.format_options],
            capture_output=True, text=True, timeout=START_S, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        with self.log.open("wb") as log:
            return subprocess.Popen(
                [str(self.java), *logging, *flags, "kafka.Kafka", str(config)],
                stdout=log, stderr=log, stdin=subprocess.DEVNULL,
            )  # fmt: skip

    def _logging(self) -> list[str]:
        log4j, log4j2 = self.folder / "log4j.properties", self.folder / "log4j2.properties"
        log4j.write_text(_LOG4J)
        log4j2.write_text(_LOG4J2)
        return [f"-Dlog4j.configuration=file:{log4j}", f"-Dlog4j2.configurationFile={log4j2}"]

    @contextmanager
    def running(self) -> Iterator[subprocess.Popen[bytes]]:
        """Start it, and kill it at the end: its data is deleted with the folder, so a clean stop is unnecessary."""
        process = self.start()
        try:
            yield process
        finally:
            process.kill()
            process.wait()

    def _wait(self, process: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + START_S
        while "Kafka Server started" not in self.log.read_text(errors="replace"):
            ended = process.poll() is not None or time.monotonic() > deadline
            assert not ended, f"the broker did not start:\n{self.log.read_text(errors='replace')[-4000:]}"
            time.sleep(0.1)
        for port in self.ports:
            with closing(socket.create_connection(("localhost", port), timeout=5)):
                pass
