"""Kafka's release archives at Apache, or at a mirror that is laid out like it: BASE/VERSION/kafka_SCALA-VERSION.tgz."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from kctl.deploy.runtime import archive
from kctl.deploy.runtime.download import ANSWER_TIMEOUT_S, discard, download, fetch_text, host_of, within_all
from kctl.errors import ConnectionFailed, InvalidFile, KctlError, NotFound, OperationFailed

MIRROR_VARIABLE = "KCTL_KAFKA_MIRROR"
MAX_ARCHIVE_BYTES = 512 * 1024**2  # releases have 20 to 130 MB


@dataclass(frozen=True, slots=True)
class Mirror:
    """Where archives are, and where their checksums are: Apache serves those from its own hosts, not from a CDN."""

    archives: str
    checksums: str


CURRENT = Mirror("https://dlcdn.apache.org/kafka", "https://downloads.apache.org/kafka")
ARCHIVED = Mirror("https://archive.apache.org/dist/kafka", "https://archive.apache.org/dist/kafka")


def mirrors() -> tuple[Mirror, ...]:
    """Apache's current and archived releases, or what KCTL_KAFKA_MIRROR names (several with spaces; empty: none)."""
    override = os.environ.get(MIRROR_VARIABLE)
    if override is None:
        return (CURRENT, ARCHIVED)
    return tuple(Mirror(base.rstrip("/"), base.rstrip("/")) for base in override.split())


def scala_version(version: str) -> str:
    """The newest Scala that a release of Kafka was built with: 2.13 since 2.4, 2.12 since 0.10.2."""
    numbers = version_numbers(version)
    if numbers >= (2, 4):
        return "2.13"
    return "2.12" if numbers >= (0, 10, 2) else "2.11"


def version_numbers(version: str) -> tuple[int, ...]:
    """«3.9.2» as (3, 9, 2), to compare."""
    return tuple(int(part) for part in version.partition("-")[0].split("."))


def archive_name(version: str) -> str:
    """The name of a release's binary archive."""
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
    """Bring the archive into `folder`, checked; (archive, address). A cut download leaves its part there.

    sha512: 128 hex digits, when the user brings them. Every host that is passed over is told in a line.
    Raises NotFound when hosts answered and none has the version, ConnectionFailed when none answered,
    OperationFailed when what came had another checksum.
    """
    name = archive_name(version)
    failures: list[KctlError] = []
    for mirror, checksum in _answering(version, sha512, failures, note):
        url = f"{mirror.archives}/{version}/{name}"
        part = folder / f"{name}.part"
        try:
            _fetch_checked(url, part, checksum, timeout_s, update)
        except (ConnectionFailed, NotFound, OperationFailed) as exc:
            note(f"passed over: {exc.message}")
            failures.append(exc)
        else:
            discard_record_and_rename(part, folder / name)
            return folder / name, url
    raise _worst(failures)


def _answering(
    version: str, sha512: str | None, failures: list[KctlError], note: Callable[[str], None]
) -> list[tuple[Mirror, str]]:
    """The mirrors that have the version, with its checksum. All are asked at the same time."""
    known = mirrors()
    if sha512 is not None:
        return [(mirror, sha512) for mirror in known]
    name = f"{archive_name(version)}.sha512"

    def checksum_at(mirror: Mirror) -> str:
        url = f"{mirror.checksums}/{version}/{name}"
        return archive.parse_sha512(fetch_text(url, max_bytes=64 * 1024), source=url)

    asked = [(host_of(m.checksums), lambda m=m: checksum_at(m)) for m in known]
    usable = []
    for mirror, answer in zip(known, within_all(ANSWER_TIMEOUT_S, asked), strict=True):
        if isinstance(answer, str):
            usable.append((mirror, answer))
        else:
            note(f"passed over: {answer.message}")
            failures.append(answer)
    return usable


def _fetch_checked(
    url: str, part: Path, checksum: str, timeout_s: float, update: Callable[[str, float, float], None]
) -> None:
    """Download and check; a part that was there before and spoils the checksum is fetched once more from its start."""
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
                hint="nothing of it was kept; try again later, or give --archive with a file that you trust",
            )
        resumed = False


def discard_record_and_rename(part: Path, target: Path) -> None:
    """Give a complete part its name."""
    part.replace(target)
    discard(part)


def _worst(failures: list[KctlError]) -> KctlError:
    """One error for all the hosts: a wrong checksum matters most, then an answer that there is no such version."""
    for kind in (OperationFailed, InvalidFile, NotFound):
        for failure in failures:
            if isinstance(failure, kind):
                return failure
    reasons = "; ".join(failure.message for failure in failures) or f"{MIRROR_VARIABLE} names no host"
    return ConnectionFailed(reasons)
