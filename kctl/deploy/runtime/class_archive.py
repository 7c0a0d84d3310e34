"""Class archives of JVMs (AppCDS): a JVM maps the classes of an archive instead of loading them from a hundred jars.

An embedded Spark starts in half the time; three ZooKeepers and three brokers are ready after 9 CPU seconds instead of
14. An archive is written once, by a training run (kctl.deploy.runtime.training_run, kctl.spark.warm), into kctl's cache
folder. Its name contains a digest of the Java and the jars; a file beside it holds its size and CRC-32C. A JVM ignores
an archive of other jars, but can crash on a damaged one: so damaged archives are skipped, and the JVM starts without an
archive.

Java 17–24 write a dynamic archive at exit (JEP 350), on top of the base archive that full JDKs have. Java 25 writes
an AOT cache (JEP 483, 514) without a base archive, so it works for trimmed JREs too.
"""

from __future__ import annotations

import hashlib
import json
import mmap
import os
import secrets
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from kctl.base import paths
from kctl.deploy.layout import is_kafka_4
from kctl.deploy.nodes import ArchiveKind
from kctl.deploy.runtime.java import Java
from kctl.errors import NotSupported, OperationFailed

_AOT_CACHE_JAVA = 25
_QUIET = ("-Xshare:auto", "-Xlog:cds=off", "-Xlog:cds+dynamic=off")
_AOT_QUIET = ("-Xlog:aot=off", "-Xlog:cds=off")
_MAX_SEAL_BYTES = 4096
_PARTIAL = ".partial-"


@dataclass(frozen=True, slots=True)
class Seal:
    """The size and checksum of a complete archive."""

    size_bytes: int
    crc32c: int


@dataclass(frozen=True, slots=True)
class ClassArchive:
    """The path of an archive for one Java, which may not exist yet."""

    path: Path
    java: Java

    @property
    def whole(self) -> bool:
        """Return True if the archive exists and is unchanged."""
        seal = self._seal()
        try:
            return seal is not None and _measure(self.path) == seal
        except OSError:
            return False

    def options_to_use(self) -> list[str]:
        """Return the JVM options that use the archive; [] if it cannot be used."""
        if not self.whole:
            return []
        if self.java.version >= _AOT_CACHE_JAVA:
            return [f"-XX:AOTCache={self.path}", "-XX:AOTMode=auto", *_AOT_QUIET]
        return [f"-XX:SharedArchiveFile={self.path}", *_QUIET]

    def options_to_make(self, partial: Path) -> list[str]:
        """Return the JVM options that write an archive to `partial` at exit. Raises NotSupported."""
        if self.java.version >= _AOT_CACHE_JAVA:
            return [f"-XX:AOTCacheOutput={partial}", *_AOT_QUIET]
        if not any((self.java.home / "lib" / "server").glob("classes*.jsa")):
            raise NotSupported(
                f"the Java in {self.java.home} has no class archive to build upon",
                hint="everything works without one, and starts more slowly; a full JDK 17, or a Java 25, can make one",
            )
        return [f"-XX:ArchiveClassesAtExit={partial}", *_QUIET]

    def new_partial(self) -> Path:
        """Return a new file name beside the archive. Raises OperationFailed if its folder cannot be created."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as exc:
            raise OperationFailed(f"cannot create {self.path.parent}: {exc.strerror}") from exc
        return self.path.with_name(f"{_PARTIAL}{secrets.token_hex(4)}{self.path.suffix}")

    def adopt(self, partial: Path) -> None:
        """Move a finished `partial` to its final path, with its checksum. Raises OperationFailed."""
        try:
            seal = _measure(partial)
            partial.chmod(0o600)
            self._seal_path.unlink(missing_ok=True)  # the archive counts as missing until its new seal is written
            partial.replace(self.path)
            fresh = partial.with_suffix(".seal")
            fresh.write_text(json.dumps(asdict(seal)), encoding="utf-8")
            fresh.replace(self._seal_path)
        except OSError as exc:
            raise OperationFailed(f"cannot write {self.path}: {exc.strerror}") from exc

    def remove_others(self) -> None:
        """Remove archives of other versions and partial files."""
        keep = {self.path.name, self._seal_path.name}
        for path in self.path.parent.iterdir():
            if path.name not in keep and path.suffix in {".jsa", ".aot", ".seal", ".config"}:
                path.unlink(missing_ok=True)

    @property
    def _seal_path(self) -> Path:
        return self.path.with_suffix(".seal")

    def _seal(self) -> Seal | None:
        try:
            with self._seal_path.open(encoding="utf-8") as file:
                seal = json.loads(file.read(_MAX_SEAL_BYTES))
            return Seal(int(seal["size_bytes"]), int(seal["crc32c"]))
        except (OSError, ValueError, KeyError, TypeError):
            return None


def archives_for(folder: Path, stems: Iterable[str], java: Java, jars: Iterable[Path]) -> list[ClassArchive]:
    """Return an archive per stem. Its name depends on `java` and `jars`, so another Java or other jars ignore it."""
    digest = hashlib.sha256(f"{java.executable}\n".encode())
    try:
        digest.update((java.home / "release").read_bytes())
    except OSError:
        digest.update(str(java.version).encode())
    for path in sorted(jars):
        status = path.stat()
        digest.update(f"{path}\t{status.st_size}\t{status.st_mtime_ns}\n".encode())
    suffix = "aot" if java.version >= _AOT_CACHE_JAVA else "jsa"
    end = f"java-{java.version}-{digest.hexdigest()[:12]}.{suffix}"
    return [ClassArchive(folder / f"{stem}-{end}", java) for stem in stems]


def archive_kinds(kafka_version: str) -> tuple[ArchiveKind, ...]:
    """Return the kinds of archives that the default layouts of a release use."""
    return ("kraft",) if is_kafka_4(kafka_version) else ("zookeeper", "broker")


def kafka_archives(java: Java, libs: Path, kafka_version: str) -> dict[ArchiveKind, ClassArchive]:
    """Return the archives of a release's processes for this Java and these jars."""
    kinds = archive_kinds(kafka_version)
    stems = [f"{kind}-{kafka_version}" for kind in kinds]
    archives = archives_for(paths.cache_dir() / "kafka", stems, java, libs.glob("*.jar"))
    return dict(zip(kinds, archives, strict=True))


def _measure(path: Path) -> Seal:
    """Return size and CRC-32C. Takes about 30 ms for 150 MB in the page cache, from which the JVM then reads them."""
    from kctl.base.checksum import crc32c

    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size == 0:
            return Seal(0, 0)
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as view:
            return Seal(size, crc32c(view))
