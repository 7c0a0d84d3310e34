"""Installing Kafka's runtime: the sources in their order, and a folder that is whole or is not there.

Everything is made in a folder beside its place and renamed at the end, after all of it is on disk; a lock keeps
two installers apart, and whoever holds it sweeps what a killed one left behind.
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
from kctl.deploy.runtime.ivy import copy_jars_with_ivy, find_ivy
from kctl.deploy.runtime.maven import copy_jars_with_mvn, find_mvn
from kctl.deploy.runtime.progress import Progress
from kctl.errors import (
    Busy,
    ConnectionFailed,
    InvalidFile,
    KctlError,
    NotFound,
    NotSupported,
    OperationFailed,
    Refused,
)

DEFAULT_TIMEOUT_S = 1800.0
_PARTIAL, _OLD = ".partial-", ".old-"
_LOCK_POLL_S = 0.2


class Silent:
    """Tells nobody."""

    def update(self, message: str, done: float | None = None, total: float | None = None) -> None: ...


@dataclass(frozen=True)
class InstallRequest:
    """What to install, and from where. archive None: Apache's download, then Maven coordinates.

    force: replace a runtime that is there and whole.
    """

    version: str
    archive: Path | None = None
    sha512: str | None = None
    force: bool = False
    timeout_s: float = DEFAULT_TIMEOUT_S
    progress: Progress = field(default_factory=Silent)
    note: Callable[[str], None] = lambda _: None


def install(request: InstallRequest, home: Path) -> jars.Manifest:
    """Put Kafka into `home` (kafka-VERSION under the runtimes' folder), replacing what is there.

    Raises Refused when the folder cannot be written or an archive is not what it should be, Busy when another
    installer does not end, NotFound for an unknown version, ConnectionFailed, TimedOut, OperationFailed.
    Whatever is raised, `home` is as it was.
    """
    with runtimes_lock(request.timeout_s, request.progress):
        there = None if request.force else _whole(home)  # another installer may have been quicker
        if there is not None:
            return there
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


def _whole(home: Path) -> jars.Manifest | None:
    try:
        manifest = jars.read_manifest(home)
    except InvalidFile:
        return None
    return None if jars.check_jars(home, manifest, contents=False) else manifest


def remove(home: Path) -> None:
    """Delete a provisioned runtime: out of its place first, so that a cut removal leaves no half."""
    with runtimes_lock(60.0, Silent()):
        old = home.with_name(f"{_OLD}{home.name}-{secrets.token_hex(4)}")
        home.rename(old)
        shutil.rmtree(old)


@contextmanager
def runtimes_lock(timeout_s: float, progress: Progress) -> Iterator[None]:
    """Hold the runtimes' folder alone; what killed installers left in it is swept. Raises Refused, Busy."""
    folder = paths.runtimes_dir()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        fd = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as exc:
        if exc.errno == errno.ENOSPC:
            raise _full(folder) from exc
        raise Refused(
            f"cannot write to {folder}: {exc.strerror}",
            hint="make it writable, or set XDG_DATA_HOME to a folder that is",
        ) from exc
    try:
        _wait_for(fd, folder, timeout_s, progress)
        for name in (_PARTIAL, _OLD):
            for left in folder.glob(f"{name}*"):
                shutil.rmtree(left, ignore_errors=True)
        yield
    finally:
        os.close(fd)  # releases the lock


def _wait_for(fd: int, folder: Path, timeout_s: float, progress: Progress) -> None:
    deadline = time.monotonic() + timeout_s
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise Busy(f"another kctl is at work in {folder}", hint="wait for it to end") from None
            progress.update("waiting for another kctl that provisions Kafka")
            time.sleep(_LOCK_POLL_S)
        else:
            return


@contextmanager
def _disk_errors(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as exc:
        if exc.errno in {errno.ENOSPC, errno.EDQUOT}:
            raise _full(folder) from exc
        raise OperationFailed(f"cannot write to {exc.filename or folder}: {exc.strerror}") from exc


def _full(folder: Path) -> OperationFailed:
    return OperationFailed(
        f"no space left on the disk of {folder}", hint="Kafka needs about 300 MB there while it is installed"
    )


def source_names(version: str, given: str | None) -> list[str]:
    """What `install` would try, in its order."""
    if given is not None:
        return [f"archive {given}"]
    downloads = [f"{mirror.archives}/{version}/{apache.archive_name(version)}" for mirror in apache.mirrors()]
    by = [f"Maven coordinates, by {tool}" for tool, found in (("mvn", find_mvn()), ("Ivy", find_ivy())) if found]
    return [*downloads, *by]


def _fill(request: InstallRequest, stage: Path) -> str:
    """Bring the jars into `stage`/libs from the first source that has them; where they came from."""
    (stage / jars.LIBS).mkdir()
    if request.archive is not None:
        return _from_archive(request, request.archive, stage)
    failures: list[KctlError] = []
    sources: list[Callable[[InstallRequest, Path], str]] = [_from_apache]
    if find_mvn():
        sources.append(_from_mvn)
    if find_ivy():
        sources.append(_from_ivy)
    deadline = time.monotonic() + request.timeout_s
    for source in sources:
        left_s = deadline - time.monotonic()
        if left_s <= 0:
            break
        try:
            return source(replace(request, timeout_s=left_s), stage)
        except (ConnectionFailed, NotFound, NotSupported, OperationFailed, InvalidFile) as exc:
            failures.append(exc)  # a hostile archive (Refused) is no reason to try elsewhere: it ends here
            if source is not _from_apache or isinstance(exc, InvalidFile):  # it told of each host already
                request.note(f"passed over: {exc.message}")
        shutil.rmtree(stage / jars.LIBS)
        (stage / jars.LIBS).mkdir()
    raise _no_source(request.version, failures)


def _no_source(version: str, failures: list[KctlError]) -> KctlError:
    reasons = "; ".join(f.message for f in failures)
    hint = "give a release with --archive kafka_2.13-X.tgz, or an unpacked one with --kafka-home"
    if any(isinstance(f, OperationFailed) for f in failures):
        return OperationFailed(f"Kafka {version} cannot be installed: {reasons}", hint=hint)
    if any(isinstance(f, NotFound) for f in failures):
        return NotFound(
            f"there is no Kafka {version} to be had: {reasons}", hint=f"is {version} a release? Else {hint}"
        )
    return ConnectionFailed(f"Kafka {version} cannot be fetched: {reasons}", hint=f"without a network, {hint}")


def _from_archive(request: InstallRequest, path: Path, stage: Path) -> str:
    if not path.is_file():
        raise NotFound(f"there is no archive {path}")
    expected = archive.read_sha512(path, request.sha512)

    def shown(message: str) -> archive.Advance:
        return lambda done, total: request.progress.update(message, done, total)

    if archive.sha512_of(path, shown(f"checking {path.name}")) != expected:
        raise Refused(
            f"{path} does not have the SHA-512 that was given", hint="it is damaged or another file; download it again"
        )
    archive.unpack_jars(path, stage, shown(f"unpacking {path.name}"))
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
    """Check that `stage` holds that version, write its manifest, and bring all of it to disk."""
    libs = stage / jars.LIBS
    found = jars.kafka_version(libs)
    if found != version:
        raise Refused(
            f"{source} holds Kafka {found}, not {version}" if found else f"{source} holds no broker",
            hint=f"give --kafka-version {found}" if found else "is it a binary release?",
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
