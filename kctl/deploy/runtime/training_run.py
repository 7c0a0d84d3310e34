"""Creation of class archives: the processes of a small cluster run for a few seconds and write them at exit."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path

from kctl.deploy import ports
from kctl.deploy.host import Host
from kctl.deploy.layout import is_kafka_4
from kctl.deploy.layout_request import LayoutRequest, build_spec
from kctl.deploy.nodes import ArchiveKind
from kctl.deploy.runtime.class_archive import kafka_archives
from kctl.deploy.runtime.java import Java
from kctl.deploy.start import start
from kctl.deploy.stop import stop
from kctl.deploy.waiting import NoProgress, ProgressReporter
from kctl.errors import OperationFailed

_END_S = 180.0  # Java 25 assembles an archive in a separate process, which takes a while


def make_archives(
    host: Host, *, java: Java, libs: Path, kafka_version: str, progress: ProgressReporter | None = None
) -> Mapping[ArchiveKind, Path]:
    """Return the archives. To create missing ones, a small cluster runs for some seconds in a temporary folder.

    Raises the errors of `start` and `stop`, NotSupported for a Java that cannot write one, OperationFailed if none was
    written.
    """
    progress = progress or NoProgress()
    archives = kafka_archives(java, libs, kafka_version)
    if not all(archive.whole for archive in archives.values()):
        partials = {kind: archive.new_partial() for kind, archive in archives.items()}
        flags = {kind: archives[kind].options_to_make(partial) for kind, partial in partials.items()}
        progress.update("creating the Java class archives")
        try:
            with tempfile.TemporaryDirectory(prefix="kctl-warm-") as name:
                _training_run(host, Path(name), java=java, libs=libs, kafka_version=kafka_version, flags=flags)
            for kind, partial in partials.items():
                if not partial.is_file():
                    raise OperationFailed(f"Java wrote no class archive ({kind})", hint=f"Java: {java.executable}")
                archives[kind].adopt(partial)
        finally:
            for partial in partials.values():
                partial.unlink(missing_ok=True)
    return {kind: archive.path for kind, archive in archives.items()}


def _training_run(
    host: Host, folder: Path, *, java: Java, libs: Path, kafka_version: str, flags: Mapping[ArchiveKind, Sequence[str]]
) -> None:
    layout = "kraft-single" if is_kafka_4(kafka_version) else "single"
    request = LayoutRequest(name="class-archive", layout=layout, heap="256m")
    spec = build_spec(
        request,
        directory=Path(os.path.realpath(folder)) / "cluster",
        base_port=ports.choose_base_port(2, ()),
        kafka_version=kafka_version,
        kafka_libs=libs,
        created_at=datetime.now(timezone.utc).isoformat(timespec="seconds"),
    )
    try:
        start(host, spec, java=java, archive_flags=flags)
        stop(host, spec, timeout_s=_END_S)
    finally:
        with contextlib.suppress(OperationFailed):
            stop(host, spec, timeout_s=0.0, force=True)
