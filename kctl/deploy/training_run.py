"""Making class archives: a ZooKeeper and a broker run for some seconds, and write them as they end."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Mapping
from datetime import datetime, timezone
from pathlib import Path

from kctl.deploy import ports
from kctl.deploy.class_archive import KINDS, archive_folder, find_archives
from kctl.deploy.host import Host
from kctl.deploy.layout import LayoutRequest, build_spec
from kctl.deploy.nodes import NodeKind
from kctl.deploy.start import start
from kctl.deploy.stop import stop
from kctl.deploy.waiting import NoProgress, Progress
from kctl.errors import OperationFailed


def make_archives(
    host: Host, *, java: Path, libs: Path, kafka_version: str, progress: Progress | None = None
) -> Mapping[NodeKind, Path]:
    """The archives, made when they are missing: one ZooKeeper and one broker run for some seconds in a folder of
    their own, and write them as they end.

    Raises what `start` and `stop` raise, OperationFailed when Java wrote none.
    """
    progress = progress or NoProgress()
    found = find_archives(java, libs)
    if found.keys() == set(KINDS):
        return found
    target = archive_folder(java, libs)
    host.make_folder(target)
    with tempfile.TemporaryDirectory(prefix=".making-", dir=target) as name:
        written = {kind: Path(name) / f"{kind}.jsa" for kind in KINDS}
        progress.update("making Java's class archives")
        _training_run(host, Path(name), java=java, libs=libs, kafka_version=kafka_version, written=written)
        for kind, path in written.items():
            if not path.is_file():
                raise OperationFailed(f"Java wrote no class archive for a {kind}", hint=f"Java: {java}")
            path.replace(target / path.name)
    return find_archives(java, libs)


def _training_run(
    host: Host, folder: Path, *, java: Path, libs: Path, kafka_version: str, written: Mapping[NodeKind, Path]
) -> None:
    request = LayoutRequest(name="class-archive", layout="single", heap="256m")
    spec = build_spec(
        request,
        directory=Path(os.path.realpath(folder)) / "cluster",
        base_port=ports.choose_base_port(2, ()),
        kafka_version=kafka_version,
        kafka_libs=libs,
        created_at=datetime.now(timezone.utc).isoformat(timespec="seconds"),
    )
    flags = {kind: (f"-XX:ArchiveClassesAtExit={path}",) for kind, path in written.items()}
    try:
        start(host, spec, java=java, archive_flags=flags)
        stop(host, spec)
    finally:
        with contextlib.suppress(OperationFailed):
            stop(host, spec, timeout_s=0.0, force=True)
