"""Kafka's runtime: its jars, installed or downloaded. The class path is `libs/*`.

Tried in this order: the folder in `--kafka-home` or `KAFKA_HOME`, kctl's folder of runtimes, and, for an installation,
`--archive`, Apache's download servers, Maven coordinates.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from kctl.base import paths
from kctl.deploy.runtime import jars
from kctl.deploy.runtime.jars import JarProblem
from kctl.deploy.waiting import NoProgress, ProgressReporter
from kctl.errors import Busy, InvalidFile, NotFound, UsageError

DEFAULT_VERSION = "3.9.2"  # the last line that runs with ZooKeeper
KRAFT_VERSION = "4.4.0"  # the default for KRaft layouts
_VERSION = re.compile(r"\d{1,3}(\.\d{1,3}){2,3}(-rc\d{1,2})?")


@dataclass(frozen=True, slots=True)
class KafkaRuntime:
    """The jars of a broker. source: where they came from, as text."""

    version: str
    libs: Path
    source: str


@dataclass(frozen=True, slots=True)
class InstalledRuntime:
    """An installed version. healthy: all jars exist with their sizes, and there are no others."""

    version: str
    source: str
    path: Path
    jars: int
    size_bytes: int
    default: bool
    healthy: bool


@dataclass(frozen=True, slots=True)
class JarVerification:
    """The result of hashing all jars of an installed version."""

    version: str
    path: Path
    jars: int
    problems: list[JarProblem]
    healthy: bool


def checked_version(version: str) -> str:
    """Return `version` if it is a valid Kafka version, e.g. 3.9.2 or 0.10.2.1. Raises UsageError."""
    if not _VERSION.fullmatch(version):
        raise UsageError(f"{version!r} is not a Kafka version", hint="write it like 3.9.2")
    return version


def find_runtime(
    version: str | None = None, *, kafka_home: str | None = None, default: str = DEFAULT_VERSION
) -> KafkaRuntime:
    """Return the runtime to use. version: None: that of `kafka_home` or KAFKA_HOME, else `default`.

    KAFKA_HOME is ignored if it has another version; `kafka_home` with another version is a UsageError. Raises NotFound
    if there is no runtime, InvalidFile if the installed one is damaged.
    """
    chosen = _chosen_home(version, kafka_home)
    return chosen if chosen is not None else _provisioned(version or default)


def expected_version(version: str | None, kafka_home: str | None, default: str) -> str:
    """Return the version that `ensure_runtime` would give, without an installation. Raises UsageError, NotFound."""
    chosen = _chosen_home(version, kafka_home)
    return chosen.version if chosen is not None else version or default


def _chosen_home(version: str | None, kafka_home: str | None) -> KafkaRuntime | None:
    if version is not None:
        checked_version(version)
    if kafka_home:
        return _runtime_at(kafka_home, version, "--kafka-home")
    from_environment = os.environ.get("KAFKA_HOME")
    if from_environment:
        runtime = _runtime_at(from_environment, None, "KAFKA_HOME")
        if version in {None, runtime.version}:
            return runtime
    return None


def _runtime_at(home: str, version: str | None, option: str) -> KafkaRuntime:
    base = Path(home).absolute()
    for libs in (base / jars.LIBS, base):
        jar_version = jars.kafka_version(libs)
        if jar_version is None:
            continue
        if version not in {None, jar_version}:
            raise UsageError(
                f"{option} {home} has Kafka {jar_version}, not {version}",
                hint="omit --kafka-version, or choose another folder",
            )
        return KafkaRuntime(jar_version, libs, option)
    raise NotFound(
        f"{option} {home} has no Kafka: no kafka_2.*.jar in it or in its libs/",
        hint="set it to the folder of an unpacked Kafka release, or unset it and run `kctl runtime install`",
    )


def home_of(version: str) -> Path:
    """Return the folder of an installed `version`, which may not exist."""
    return paths.runtimes_dir() / f"kafka-{checked_version(version)}"


def _provisioned(version: str) -> KafkaRuntime:
    home = home_of(version)
    if not home.is_dir():
        raise NotFound(
            f"Kafka {version} is not installed", hint=f"run `kctl runtime install --kafka-version {version}`"
        )
    manifest = jars.read_manifest(home)
    problems = jars.check_jars(home, manifest, contents=False)
    if problems:
        first = problems[0]
        raise InvalidFile(
            f"Kafka {version} in {home} is damaged: {first.jar} is {first.problem}"
            + (f", and {len(problems) - 1} more" if len(problems) > 1 else ""),
            hint=f"repair it with `kctl runtime install --kafka-version {version}`",
        )
    return KafkaRuntime(version, home / jars.LIBS, manifest.source)


def ensure_runtime(
    version: str | None = None,
    *,
    kafka_home: str | None = None,
    default: str = DEFAULT_VERSION,
    archive: str | None = None,
    sha512: str | None = None,
    progress: ProgressReporter | None = None,
    note: Callable[[str], None] | None = None,
    timeout_s: float | None = None,
) -> KafkaRuntime:
    """Find a runtime, or install one if it is missing or damaged.

    default: the version if none is chosen by `version`, `archive` or KAFKA_HOME. note: called with lines for the user,
    e.g. the next source.
    """
    try:
        return find_runtime(version, kafka_home=kafka_home, default=default)
    except (NotFound, InvalidFile):
        if kafka_home or (os.environ.get("KAFKA_HOME") and version is None):
            raise
    return install_runtime(
        version if version or archive else default, archive=archive, sha512=sha512, progress=progress, note=note,
        timeout_s=timeout_s,
    )  # fmt: skip


def install_runtime(
    version: str | None = None,
    *,
    archive: str | None = None,
    sha512: str | None = None,
    force: bool = False,
    progress: ProgressReporter | None = None,
    note: Callable[[str], None] | None = None,
    timeout_s: float | None = None,
) -> KafkaRuntime:
    """Install a version, replacing a damaged runtime (force: also a complete one).

    Raises the errors of `kctl.deploy.runtime.provision.install`.
    """
    from kctl.deploy.runtime import provision  # imported late: only an installation needs HTTP, tar and Maven

    version_to_install = requested_version(version, archive)
    request = provision.InstallRequest(
        version=version_to_install,
        archive=Path(archive) if archive else None,
        sha512=sha512,
        force=force,
        timeout_s=provision.DEFAULT_TIMEOUT_S if timeout_s is None else timeout_s,
        progress=progress or NoProgress(),
        note=note or (lambda _: None),
    )
    home = home_of(version_to_install)
    manifest = provision.install(request, home)
    return KafkaRuntime(version_to_install, home / jars.LIBS, manifest.source)


def requested_version(version: str | None, archive: str | None) -> str:
    """Return `version`, else the version in the archive's name, else the default."""
    if version is None and archive is not None:
        match = re.fullmatch(r"kafka_2\.\d+-(.+?)\.(?:tgz|tar\.gz)", Path(archive).name)
        version = match.group(1) if match else None
    return checked_version(version or DEFAULT_VERSION)


def list_runtimes() -> list[InstalledRuntime]:
    """Return the installed versions. Checks that jars exist with their sizes, not their contents."""
    homes = [(home.name.removeprefix("kafka-"), home) for home in paths.runtimes_dir().glob("kafka-*") if home.is_dir()]
    return [
        _installed(version, home) for version, home in sorted(homes, key=_by_version) if _VERSION.fullmatch(version)
    ]


def _by_version(entry: tuple[str, Path]) -> list[int]:
    return [int(part) for part in re.findall(r"\d+", entry[0])]


def _installed(version: str, home: Path) -> InstalledRuntime:
    default = version == DEFAULT_VERSION
    try:
        manifest = jars.read_manifest(home)
    except InvalidFile:
        return InstalledRuntime(version, "unknown", home, 0, 0, default, healthy=False)
    healthy = not jars.check_jars(home, manifest, contents=False)
    return InstalledRuntime(
        version, manifest.source, home, len(manifest.jars), manifest.size_bytes, default, healthy=healthy
    )  # fmt: skip


def verify_runtime(version: str) -> JarVerification:
    """Hash every jar and compare with the manifest. Raises NotFound."""
    home = installed_home(version)
    try:
        manifest = jars.read_manifest(home)
    except InvalidFile:
        return JarVerification(version, home, 0, [JarProblem(jars.MANIFEST, "missing")], healthy=False)
    problems = jars.check_jars(home, manifest, contents=True)
    return JarVerification(version, home, len(manifest.jars), problems, healthy=not problems)


def installed_home(version: str) -> Path:
    """Return the folder of an installed version. Raises NotFound with the installed versions."""
    home = home_of(version)
    if not home.is_dir():
        versions = ", ".join(r.version for r in list_runtimes())
        raise NotFound(
            f"Kafka {version} is not installed",
            hint=f"installed: {versions}" if versions else "install it with `kctl runtime install`",
        )
    return home


def refuse_when_used(version: str) -> None:
    """Raise Busy if a process runs from the installed version."""
    pids = processes_using(home_of(version))
    if pids:
        raise Busy(
            f"Kafka {version} is in use by process {', '.join(map(str, pids))}",
            hint="stop the clusters that use it first; list them with `kctl cluster list`",
        )


def remove_runtime(version: str) -> Path:
    """Delete an installed version. Return its folder. Raises NotFound; Busy if a process runs from it."""
    from kctl.deploy.runtime import provision

    home = installed_home(version)
    refuse_when_used(version)
    provision.remove(home)
    return home


def processes_using(home: Path) -> list[int]:
    """Return the pids whose command line names a file in `home` (from Linux's /proc; [] elsewhere)."""
    needle = os.fsencode(home) + b"/"
    pids = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):  # it ended meanwhile, or is another user's
            if needle in entry.read_bytes():
                pids.append(int(entry.parent.name))
    return sorted(pids)
