"""Kafka's release archives at Apache or at a mirror with the same layout: BASE/VERSION/kafka_SCALA-VERSION.tgz."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from kctl.deploy.runtime import archive
from kctl.deploy.runtime.download import (
    ANSWER_TIMEOUT_S,
    common_failure,
    discard,
    download,
    fetch_text,
    host_of,
    within_all,
)
from kctl.deploy.runtime.jars import version_numbers
from kctl.errors import ConnectionFailed, InvalidFile, KctlError, NotFound, OperationFailed

MIRROR_VARIABLE = "KCTL_KAFKA_MIRROR"
MAX_ARCHIVE_BYTES = 512 * 1024**2  # releases are 20 to 130 MB


@dataclass(frozen=True, slots=True)
class Mirror:
    """Base addresses of archives and of their checksums, which Apache serves from its own hosts, not from a CDN."""

    archives: str
    checksums: str


CURRENT = Mirror("https://dlcdn.apache.org/kafka", "https://downloads.apache.org/kafka")
ARCHIVED = Mirror("https://archive.apache.org/dist/kafka", "https://archive.apache.org/dist/kafka")


def mirrors() -> tuple[Mirror, ...]:
    """Return Apache's current and archived releases, or those of KCTL_KAFKA_MIRROR (space-separated)."""
    override = os.environ.get(MIRROR_VARIABLE)
    if override is None:
        return (CURRENT, ARCHIVED)
    return tuple(Mirror(base.rstrip("/"), base.rstrip("/")) for base in override.split())


def scala_version(version: str) -> str:
    """Return the newest Scala that a Kafka release was built with: 2.13 since 2.4, 2.12 since 0.10.2."""
    numbers = version_numbers(version)
    if numbers >= (2, 4):
        return "2.13"
    return "2.12" if numbers >= (0, 10, 2) else "2.11"


def archive_name(version: str) -> str:
    """Return the name of a release's binary archive."""
    return f"kafka_{scala_version(version)}-{version}.tgz"


def fetch_release(
    version: str,
    folder: Path,
    *,
    sha512: str | None,
    timeout_s: float,
    update: Callable[[str, float, float], None],
    note: Callable[[str], None],
) -> tuple[Path, str]:
    """Download the archive into `folder`, verified; return (archive, address). A partial download stays there.

    sha512: 128 hex digits, if the user set them. note: called if another mirror is tried after a failure. Raises
    NotFound if mirrors responded and none has the version, ConnectionFailed if none responded, OperationFailed if the
    checksum differs.
    """
    name = archive_name(version)
    failures: list[KctlError] = []
    candidates = _usable_mirrors(version, sha512, failures, note)
    for number, (mirror, checksum) in enumerate(candidates, 1):
        url = f"{mirror.archives}/{version}/{name}"
        part = folder / f"{name}.part"
        try:
            _fetch_checked(url, part, checksum, timeout_s, update)
        except (ConnectionFailed, NotFound, OperationFailed) as exc:
            failures.append(exc)
            if number < len(candidates):
                note(next_source(host_of(mirror.archives), exc, host_of(candidates[number][0].archives)))
        else:
            discard_record_and_rename(part, folder / name)
            return folder / name, url
    raise _worst(failures)


def next_source(source: str, failure: KctlError, alternative: str) -> str:
    """Return the note that the installation continues with another source."""
    return f"Kafka is unavailable from {source} ({failure.message}); trying {alternative}"


def _usable_mirrors(
    version: str, sha512: str | None, failures: list[KctlError], note: Callable[[str], None]
) -> list[tuple[Mirror, str]]:
    """Return the mirrors that have the version, with its checksum. Queries all mirrors at the same time."""
    sites = mirrors()
    if sha512 is not None:
        return [(mirror, sha512) for mirror in sites]
    name = f"{archive_name(version)}.sha512"

    def checksum_at(mirror: Mirror) -> str:
        url = f"{mirror.checksums}/{version}/{name}"
        return archive.parse_sha512(fetch_text(url, max_bytes=64 * 1024), source=url)

    requests = [(host_of(m.checksums), lambda m=m: checksum_at(m)) for m in sites]
    usable, failed = [], []
    for mirror, response in zip(sites, within_all(ANSWER_TIMEOUT_S, requests), strict=True):
        if isinstance(response, str):
            usable.append((mirror, response))
        else:
            failed.append((host_of(mirror.checksums), response))
    failures += [failure for _, failure in failed]
    for host, failure in failed if usable else ():
        note(next_source(host, failure, host_of(usable[0][0].archives)))
    return usable


def _fetch_checked(
    url: str, part: Path, checksum: str, timeout_s: float, update: Callable[[str, float, float], None]
) -> None:
    """Download and verify. If a resumed download has the wrong checksum, download once more from the start."""
    resumed = part.exists()
    message = f"Kafka from {host_of(url)}"
    while True:
        download(
            url, part, max_bytes=MAX_ARCHIVE_BYTES, timeout_s=timeout_s,
            advance=lambda done, total: update(message, done, total),
        )  # fmt: skip
        if archive.sha512_of(part) == checksum:
            return
        discard(part)
        if not resumed:
            raise OperationFailed(
                f"{url} does not have the SHA-512 that {host_of(url)} publishes",
                hint="the download was deleted; try again later, or set --archive to a file that you trust",
            )
        resumed = False


def discard_record_and_rename(part: Path, target: Path) -> None:
    """Rename a complete download, and delete the record of the partial one."""
    part.replace(target)
    discard(part)


def _worst(failures: list[KctlError]) -> KctlError:
    """Return one error for all hosts: a wrong checksum first, then a host that does not have the version."""
    for kind in (OperationFailed, InvalidFile, NotFound):
        for failure in failures:
            if isinstance(failure, kind):
                return failure
    reasons = "; ".join(failure.message for failure in failures) or f"{MIRROR_VARIABLE} names no host"
    return common_failure(failures, reasons)
