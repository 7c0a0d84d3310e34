"""Kafka's jars by their Maven coordinates, with `mvn` if it is installed.

`kafka_SCALA`, `kafka-tools` and their dependencies make up a complete broker (up to 3.9 also ZooKeeper). The user's own
settings.xml, mirrors and proxies apply, because it is the user's own mvn.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from kctl.deploy.process import run_logged
from kctl.deploy.runtime.apache import scala_version
from kctl.deploy.runtime.jars import version_numbers
from kctl.deploy.runtime.java import find_java
from kctl.errors import ConnectionFailed, KctlError, NotFound, OperationFailed

Update = Callable[[str, float | None, float | None], None]

_PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1"
_DOWNLOADED = re.compile(r"Downloaded from \S+: \S+\.jar\b")


@dataclass(frozen=True, slots=True)
class Coordinate:
    """A Maven artifact."""

    group: str
    artifact: str
    version: str


def coordinates(version: str) -> tuple[Coordinate, ...]:
    """Return the artifacts of a broker of `version`; Maven and Ivy add their dependencies.

    Up to 3.9, kafka-tools depends on reload4j and its slf4j binding. 4.x uses log4j 2 but does not depend on log4j's
    slf4j binding, without which nothing is logged. Before 1.1, Kafka needed javax.xml.bind, which Java 11 removed.
    """
    kafka = (
        Coordinate("org.apache.kafka", f"kafka_{scala_version(version)}", version),
        Coordinate("org.apache.kafka", "kafka-tools", version),
    )
    if version_numbers(version) >= (4,):
        return (*kafka, Coordinate("org.apache.logging.log4j", "log4j-slf4j-impl", "2.25.3"))
    if version_numbers(version) < (1, 1):
        return (
            *kafka,
            Coordinate("javax.xml.bind", "jaxb-api", "2.3.1"),
            Coordinate("javax.activation", "javax.activation-api", "1.2.0"),
        )
    return kafka


def find_mvn() -> str | None:
    """Return the path of Maven's launcher on PATH, or None."""
    return shutil.which("mvn")


def pom(version: str) -> str:
    """Return a project with Kafka as its only dependency."""
    dependencies = "".join(
        f"<dependency><groupId>{c.group}</groupId><artifactId>{c.artifact}</artifactId>"
        f"<version>{c.version}</version></dependency>\n"
        for c in coordinates(version)
    )
    return (
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>\n'
        "<groupId>kctl</groupId><artifactId>kafka-runtime</artifactId><version>1</version>\n"
        f"<packaging>pom</packaging><dependencies>\n{dependencies}</dependencies></project>\n"
    )


def copy_jars_with_mvn(version: str, libs: Path, *, timeout_s: float, update: Update) -> None:
    """Copy Kafka's jars into `libs`. Raises NotFound, ConnectionFailed, TimedOut, OperationFailed."""
    mvn = find_mvn()
    if mvn is None:
        raise OperationFailed("mvn is not on PATH")
    with tempfile.TemporaryDirectory(prefix="kctl-mvn-") as folder:
        project = Path(folder) / "pom.xml"
        project.write_text(pom(version), encoding="utf-8")
        argv = [
            mvn, "--batch-mode", "--strict-checksums", "--file", str(project), f"{_PLUGIN}:copy-dependencies",
            f"-DoutputDirectory={libs}", "-DincludeScope=runtime", "-DincludeTypes=jar",
        ]  # fmt: skip
        update("Kafka by Maven", None, None)
        jars = 0

        def on_line(line: str) -> None:
            nonlocal jars
            if _DOWNLOADED.search(line):
                jars += 1
                update(f"Kafka by Maven: {jars} jars downloaded", None, None)

        ended = run_logged(argv, timeout_s=timeout_s, on_line=on_line, cwd=Path(folder), env=_environment())
    if ended.code:
        raise failure(version, "mvn", ended.tail)


def _environment() -> dict[str, str] | None:
    """Return the environment for mvn, which needs JAVA_HOME or java on PATH; without both, kctl's Java is used."""
    if os.environ.get("JAVA_HOME") or shutil.which("java"):
        return None
    return {**os.environ, "JAVA_HOME": str(find_java().home)}


def failure(version: str, tool: str, lines: list[str]) -> KctlError:
    """Return the error for the last lines of Maven's or Ivy's output."""
    text = "\n".join(lines)
    if re.search(r"No space left on device", text):
        return OperationFailed(f"{tool}: no space left on device", hint="free some space, then try again")
    if re.search(
        r"Unknown host|UnknownHostException|Connection refused|Connection timed out|connect timed out|"
        r"Network is unreachable|No route to host|Connect to .* failed|Name or service not known|"
        r"Temporary failure in name resolution|host not found",
        text,
    ):
        return ConnectionFailed(f"{tool} cannot reach its repository")
    if re.search(r"SSLHandshakeException|PKIX path building failed|certificate_unknown", text):
        return ConnectionFailed(
            f"{tool} does not trust its repository's certificate",
            hint="set SSL_CERT_FILE to a PEM file with the CAs to trust",
        )
    if re.search(r"Could not find artifact|not found in|UNRESOLVED DEPENDENCIES|unresolved dependency", text):
        return NotFound(f"{tool} did not find Kafka {version} in its repository")
    messages = [line for line in lines if "[ERROR]" in line or "Exception" in line] or lines
    return OperationFailed(
        f"{tool} failed: {messages[0].removeprefix('[ERROR]').strip()[:300] if messages else 'no output'}"
    )
