"""Install Kafka's jars: try the sources in order, into a folder that is complete or does not exist.

Files are written to a folder beside the final one, which is renamed when everything is on disk. A lock admits one
installer at a time, and its holder removes what killed installers left behind.
"""

from __future__ import annotations

import errno
import fcntl
import os
import secrets
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from kctl.base import paths
from kctl.deploy.runtime import apache, archive, jars
from kctl.deploy.runtime.download import common_failure
from kctl.deploy.runtime.ivy import copy_jars_with_ivy, find_ivy
from kctl.deploy.runtime.maven import copy_jars_with_mvn, find_mvn
from kctl.deploy.waiting import NoProgress, ProgressReporter
from kctl.errors import (
    Busy,
    ConnectionFailed,
    InvalidFile,
    KctlError,
    NotFound,
    NotSupported,
    OperationFailed,
    Reason,
    Refused,
)

DEFAULT_TIMEOUT_S = 1800.0
_PARTIAL, _OLD = ".partial-", ".old-"
_LOCK_POLL_S = 0.2


@dataclass(frozen=True)
class InstallRequest:
    """A request to install one version.

    archive: if None, download from Apache, else from the Maven repository. force: replace a complete runtime.
    """

    version: str
    archive: Path | None = None
    sha512: str | None = None
    force: bool = False
    timeout_s: float = DEFAULT_TIMEOUT_S
    progress: ProgressReporter = field(default_factory=NoProgress)
    note: Callable[[str], None] = lambda _: None


def install(request: InstallRequest, home: Path) -> jars.Manifest:
    """Install Kafka into `home` (kafka-VERSION in the folder of runtimes), replacing an existing runtime.

    Raises Refused if the folder is not writable or an archive is invalid, Busy if another installer does not finish,
    NotFound for an unknown version, ConnectionFailed, TimedOut, OperationFailed. On any error, `home` is unchanged.
    """
    with runtimes_lock(request.timeout_s, request.progress):
        complete = None if request.force else _complete_manifest(home)  # another installer may have finished first
        if complete is not None:
            return complete
        stage = home.with_name(f"{_PARTIAL}{home.name}-{secrets.token_hex(4)}")
        try:
            with _disk_errors(home.parent):
                stage.mkdir(mode=0o755)
                source = _fill(request, stage)
                manifest = _finish(request.version, stage, source)
                _put_in_place(stage, home)
        finally:
            shutil.rmtree(stage, ignore_errors=True)
    return manifest


def _complete_manifest(home: Path) -> jars.Manifest | None:
    try:
        manifest = jars.read_manifest(home)
    except InvalidFile:
        return None
    return None if jars.check_jars(home, manifest, contents=False) else manifest


def remove(home: Path) -> None:
    """Delete an installed runtime. Renames it first, so that an interrupted removal leaves no partial runtime."""
    with runtimes_lock(60.0, NoProgress()):
        old = home.with_name(f"{_OLD}{home.name}-{secrets.token_hex(4)}")
        home.rename(old)
        shutil.rmtree(old)


@contextmanager
def runtimes_lock(timeout_s: float, progress: ProgressReporter) -> Iterator[None]:
    """Lock the folder of runtimes and remove what killed installers left behind. Raises Refused, Busy."""
    folder = paths.runtimes_dir()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        fd = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as exc:
        if exc.errno == errno.ENOSPC:
            raise _disk_full(folder) from exc
        raise Refused(
            f"cannot write to {folder}: {exc.strerror}",
            hint="make the folder writable, or set XDG_DATA_HOME to a writable folder",
            reason=Reason.INVALID_PATH,
        ) from exc
    try:
        _wait_for(fd, folder, timeout_s, progress)
        for name in (_PARTIAL, _OLD):
            for leftover in folder.glob(f"{name}*"):
                shutil.rmtree(leftover, ignore_errors=True)
        yield
    finally:
        os.close(fd)  # releases the lock


def _wait_for(fd: int, folder: Path, timeout_s: float, progress: ProgressReporter) -> None:
    deadline = time.monotonic() + timeout_s
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise Busy(f"another kctl is installing Kafka in {folder}", hint="wait for it to end") from None
            progress.update("waiting for another kctl that is installing Kafka")
            time.sleep(_LOCK_POLL_S)
        else:
            return


@contextmanager
def _disk_errors(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as exc:
        if exc.errno in {errno.ENOSPC, errno.EDQUOT}:
            raise _disk_full(folder) from exc
        raise OperationFailed(f"cannot write to {exc.filename or folder}: {exc.strerror}") from exc


def _disk_full(folder: Path) -> OperationFailed:
    return OperationFailed(f"no space left on the disk of {folder}", hint="the installation needs about 300 MB there")


def source_names(version: str, archive_path: str | None) -> list[str]:
    """Return the sources that `install` tries, in order."""
    if archive_path is not None:
        return [f"archive {archive_path}"]
    downloads = [f"{mirror.archives}/{version}/{apache.archive_name(version)}" for mirror in apache.mirrors()]
    maven = [f"Maven coordinates, by {tool}" for tool, program in (("mvn", find_mvn()), ("Ivy", find_ivy())) if program]
    return [*downloads, *maven]


def _fill(request: InstallRequest, stage: Path) -> str:
    """Copy the jars into `stage`/libs from the first source that has them. Return the source."""
    (stage / jars.LIBS).mkdir()
    if request.archive is not None:
        return _from_archive(request, request.archive, stage)
    failures: list[KctlError] = []
    sources: list[tuple[str, Callable[[InstallRequest, Path], str]]] = [("Apache's download servers", _from_apache)]
    if find_mvn():
        sources.append(("the Maven repository by mvn", _from_mvn))
    if find_ivy():
        sources.append(("the Maven repository by Ivy", _from_ivy))
    deadline = time.monotonic() + request.timeout_s
    for number, (name, fill) in enumerate(sources, 1):
        remaining_s = deadline - time.monotonic()
        if remaining_s <= 0:
            break
        try:
            return fill(replace(request, timeout_s=remaining_s), stage)
        except (ConnectionFailed, NotFound, NotSupported, OperationFailed, InvalidFile) as exc:
            failures.append(exc)  # a hostile archive (Refused) ends the installation instead
            if number < len(sources):
                request.note(apache.next_source(name, exc, sources[number][0]))
        shutil.rmtree(stage / jars.LIBS)
        (stage / jars.LIBS).mkdir()
    raise _no_source(request.version, failures)


def _no_source(version: str, failures: list[KctlError]) -> KctlError:
    reasons = "; ".join(f.message for f in failures)
    hint = (
        f"download a release elsewhere and set --archive kafka_2.13-{version}.tgz, or set KAFKA_HOME to an unpacked one"
    )
    if any(isinstance(f, OperationFailed) for f in failures):
        return OperationFailed(f"Kafka {version} cannot be installed: {reasons}", hint=hint)
    if any(isinstance(f, NotFound) for f in failures):
        return NotFound(
            f"Kafka {version} was not found: {reasons}", hint=f"check that {version} is a release; if it is, {hint}"
        )
    return common_failure(
        failures, f"Kafka {version} cannot be downloaded: {reasons}", hint=f"without a network, {hint}"
    )


def _from_archive(request: InstallRequest, path: Path, stage: Path) -> str:
    if not path.is_file():
        raise NotFound(f"archive {path} does not exist")
    expected = archive.read_sha512(path, request.sha512)

    def advance(message: str) -> archive.Advance:
        return lambda done, total: request.progress.update(message, done, total)

    if archive.sha512_of(path, advance(f"checking {path.name}")) != expected:
        raise Refused(
            f"{path} does not have the expected SHA-512",
            hint="the file is damaged or a different file; download it again",
            reason=Reason.UNSAFE,
        )
    archive.unpack_jars(path, stage, advance(f"unpacking {path.name}"))
    return f"archive {path.name}"


def _from_apache(request: InstallRequest, stage: Path) -> str:
    folder = paths.cache_dir() / "downloads"
    with _disk_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        path, url = apache.fetch_release(
            request.version, folder, sha512=_digits(request.sha512), timeout_s=request.timeout_s,
            update=request.progress.update, note=request.note,
        )  # fmt: skip
    try:
        archive.unpack_jars(
            path, stage, lambda done, total: request.progress.update(f"unpacking {path.name}", done, total)
        )
    finally:
        path.unlink(missing_ok=True)
    return url


def _digits(sha512: str | None) -> str | None:
    return None if sha512 is None else archive.read_sha512(Path("the download"), sha512)


def _from_mvn(request: InstallRequest, stage: Path) -> str:
    copy_jars_with_mvn(request.version, stage / jars.LIBS, timeout_s=request.timeout_s, update=request.progress.update)
    return "Maven coordinates, by mvn"


def _from_ivy(request: InstallRequest, stage: Path) -> str:
    copy_jars_with_ivy(request.version, stage / jars.LIBS, timeout_s=request.timeout_s, update=request.progress.update)
    return "Maven coordinates, by Ivy"


def _finish(version: str, stage: Path, source: str) -> jars.Manifest:
    """Check that `stage` has this version, write its manifest, and sync everything to disk."""
    libs = stage / jars.LIBS
    jar_version = jars.kafka_version(libs)
    if jar_version != version:
        raise Refused(
            f"{source} has Kafka {jar_version}, not {version}" if jar_version else f"{source} has no broker",
            hint=f"set --kafka-version {jar_version}"
            if jar_version
            else "use a binary release, kafka_SCALA-VERSION.tgz",
            reason=Reason.IMPOSSIBLE,
        )
    manifest = jars.describe_jars(libs, version=version, source=source)
    jars.write_manifest(stage, manifest)
    for path in (*libs.iterdir(), *stage.iterdir(), stage):
        _sync(path)
    return manifest


def _sync(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _put_in_place(stage: Path, home: Path) -> None:
    old = home.with_name(f"{_OLD}{home.name}-{secrets.token_hex(4)}")
    if home.exists():
        home.rename(old)
    stage.rename(home)
    _sync(home.parent)
    shutil.rmtree(old, ignore_errors=True)
