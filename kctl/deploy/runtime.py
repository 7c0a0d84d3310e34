"""Kafka's runtime: its jars, found or provisioned. The class path is `libs/*`.

Tried in this order: a folder that is given (`--kafka-home`, `KAFKA_HOME`), kctl's own folder of runtimes, and then,
to install: an archive that is given, Apache's download, Maven coordinates.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from kctl import paths
from kctl.deploy import jars
from kctl.errors import InvalidFile, NotFound, UsageError

DEFAULT_VERSION = "3.9.2"  # the last line that runs with ZooKeeper
_VERSION = re.compile(r"\d{1,3}(\.\d{1,3}){2,3}(-rc\d{1,2})?")


@dataclass(frozen=True, slots=True)
class KafkaRuntime:
    """Jars that run a broker. source: where they came from, for people."""

    version: str
    libs: Path
    source: str

    @property
    def classpath(self) -> str:
        return f"{self.libs}/*"


def checked_version(version: str) -> str:
    """`version` when it looks like one of Kafka's («3.9.2», «0.10.2.1»). Raises UsageError."""
    if not _VERSION.fullmatch(version):
        raise UsageError(f"{version!r} is not a Kafka version", hint="write for example 3.9.2")
    return version


def find_runtime(version: str | None = None, *, kafka_home: str | None = None) -> KafkaRuntime:
    """The runtime to use; version None means the default one.

    A version that differs from the one in KAFKA_HOME passes over that folder; from the one in `kafka_home` it is
    a UsageError. Raises NotFound when there is none, InvalidFile when the provisioned one is damaged.
    """
    if version is not None:
        checked_version(version)
    if kafka_home:
        return _given(kafka_home, version, "--kafka-home")
    from_environment = os.environ.get("KAFKA_HOME")
    if from_environment:
        found = _given(from_environment, None, "KAFKA_HOME")
        if version in {None, found.version}:
            return found
    return _provisioned(version or DEFAULT_VERSION)


def _given(home: str, version: str | None, option: str) -> KafkaRuntime:
    base = Path(home).absolute()
    for libs in (base / jars.LIBS, base):
        found = jars.kafka_version(libs)
        if found is None:
            continue
        if version not in {None, found}:
            raise UsageError(
                f"{option} {home} holds Kafka {found}, not {version}", hint="leave --kafka-version or the folder out"
            )
        return KafkaRuntime(found, libs, option)
    raise NotFound(
        f"{option} {home} holds no Kafka: no kafka_2.*.jar in it or in its libs/",
        hint="give the folder of an unpacked Kafka, or leave it out and run kctl runtime install",
    )


def home_of(version: str) -> Path:
    """Where a provisioned runtime of `version` lies or would lie."""
    return paths.runtimes_dir() / f"kafka-{checked_version(version)}"


def _provisioned(version: str) -> KafkaRuntime:
    home = home_of(version)
    if not home.is_dir():
        raise NotFound(
            f"Kafka {version} is not provisioned", hint=f"run kctl runtime install --kafka-version {version}"
        )
    manifest = jars.read_manifest(home)
    problems = jars.check_jars(home, manifest, contents=False)
    if problems:
        first = problems[0]
        raise InvalidFile(
            f"Kafka {version} in {home} is damaged: {first.jar} is {first.problem}"
            + (f", and {len(problems) - 1} more" if len(problems) > 1 else ""),
            hint=f"repair it with kctl runtime install --kafka-version {version}",
        )
    return KafkaRuntime(version, home / jars.LIBS, manifest.source)


def ensure_runtime(
    version: str | None = None,
    *,
    kafka_home: str | None = None,
    archive: str | None = None,
    sha512: str | None = None,
    progress: object | None = None,
) -> KafkaRuntime:
    """`find_runtime`, and install when there is none."""
    return find_runtime(version, kafka_home=kafka_home)
