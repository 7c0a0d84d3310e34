"""Create a cluster completely, or not at all."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path

from kctl.deploy import ports, store
from kctl.deploy.config.files import GeneratedFile, config_files, without_secrets, write_missing
from kctl.deploy.destroy import remove_cluster
from kctl.deploy.host import Host
from kctl.deploy.interrupts import deferred_interrupts
from kctl.deploy.layout import KRAFT_LAYOUTS, ClusterSpec, check_directory, is_kafka_4
from kctl.deploy.layout_request import LayoutRequest, build_spec, check_request, port_count
from kctl.deploy.runtime.jars import version_numbers
from kctl.deploy.runtime.java import find_java
from kctl.deploy.runtime.runtime import KRAFT_VERSION, KafkaRuntime
from kctl.deploy.start import DEFAULT_TIMEOUT_S, StartResult, start
from kctl.deploy.waiting import ProgressReporter
from kctl.errors import AlreadyExists, Busy, KctlError, NotSupported, Reason, Refused


@dataclass(frozen=True, slots=True)
class CreateResult:
    """The created cluster. started: False with --no-start. zookeeper: None with KRaft. controllers, cluster_id:
    only with KRaft; with ZooKeeper, the brokers generate the cluster id at their first start."""

    name: str
    layout: str
    directory: Path
    kafka_version: str
    bootstrap_servers: tuple[str, ...]
    zookeeper: str | None
    cluster_id: str | None
    controllers: tuple[int, ...]
    brokers: tuple[int, ...]
    started: bool
    duration_ms: int


def check_new(host: Host, name: str) -> None:
    """Raise AlreadyExists if a cluster, or another cluster's context, has that name."""
    from kctl.contexts.choose import list_contexts

    if store.exists(name) and not _interrupted(host, name):
        raise AlreadyExists(
            f"cluster {name} already exists",
            hint=f"start it with `kctl cluster start {name}`, or remove it with `kctl cluster destroy {name}`",
        )
    context = list_contexts().get(name)
    if context is not None and context.cluster_dir is None:
        raise AlreadyExists(
            f"context {name} already exists for another cluster",
            hint=f"choose another name, or remove the context with `kctl context remove {name}`",
        )


def _interrupted(host: Host, name: str) -> bool:
    """Return True if a create was killed before it wrote cluster.json, i.e. the entry is empty or a dangling link."""
    directory = Path(os.path.realpath(store.entry_path(name)))
    return not directory.exists() or (directory.is_dir() and _is_empty(host, directory))


def _is_empty(host: Host, directory: Path) -> bool:
    return len(host.list_folder(directory)) == len(store.leftovers(host, directory))


def check_version(runtime: KafkaRuntime, layout: str) -> None:
    """Raise NotSupported for ZooKeeper with Kafka 4 (KIP-500), and KRaft before 3.9 (dynamic quorums, KIP-853)."""
    if layout in KRAFT_LAYOUTS and version_numbers(runtime.version) < (3, 9):
        raise NotSupported(
            f"layout {layout} requires Kafka 3.9 or later, not {runtime.version}",
            hint=f"use --kafka-version {KRAFT_VERSION}",
        )
    if layout not in KRAFT_LAYOUTS and is_kafka_4(runtime.version):
        raise NotSupported(
            f"Kafka {runtime.version} does not support ZooKeeper, which layout {layout} uses",
            hint="use a layout without ZooKeeper, e.g. --layout kraft-combined, or --kafka-version 3.9.2",
        )


def plan(
    host: Host,
    request: LayoutRequest,
    *,
    runtime: KafkaRuntime,
    base_port: int | None,
    directory: Path | None,
) -> ClusterSpec:
    """Return the cluster that would be created. Raises UsageError, Busy (a port of --base-port is in use)."""
    check_request(request)
    check_version(runtime, request.layout)
    base = _base_port(host, port_count(request), base_port)
    return build_spec(
        request,
        directory=Path(os.path.realpath(directory)) if directory is not None else _default_directory(request.name),
        base_port=base,
        kafka_version=runtime.version,
        kafka_libs=runtime.libs,
        created_at=datetime.now(timezone.utc).isoformat(timespec="seconds").replace("+00:00", "Z"),
    )


def _default_directory(name: str) -> Path:
    return Path(os.path.realpath(store.entry_path(name)))


def _base_port(host: Host, count: int, requested_port: int | None) -> int:
    reserved = store.reserved_ports(host)
    if requested_port is None:
        return ports.choose_base_port(count, reserved)
    ports.check_base_port(requested_port, count)
    for port in range(requested_port, requested_port + count):
        if port in reserved:
            owner = next(c.name for c in store.list_clusters(host) if c.spec and port in c.spec.ports)
            raise Busy(f"port {port} belongs to cluster {owner}", hint="choose another --base-port, or omit it")
        ports.check_free([(port, f"--base-port {requested_port}")])
    return requested_port


def show_files(spec: ClusterSpec) -> list[GeneratedFile]:
    """Return all files that a create would write, with passwords hidden."""
    return config_files(without_secrets(spec))


def create(
    host: Host,
    request: LayoutRequest,
    *,
    runtime: KafkaRuntime,
    base_port: int | None = None,
    directory: Path | None = None,
    start_it: bool = True,
    make_current: bool = False,
    timeout_s: float = DEFAULT_TIMEOUT_S,
    progress: ProgressReporter | None = None,
) -> CreateResult:
    """Create a cluster and a context with its name, and start it. make_current: make that context current.

    Raises AlreadyExists, UsageError, Busy, or the errors of `start`. On failure, also on Ctrl-C, everything is removed.
    """
    check_request(request)
    java = find_java()
    with store.lock_cluster(request.name), contextlib.ExitStack() as undo:
        check_new(host, request.name)
        if directory is not None:
            _check_folder(host, check_directory(Path(os.path.realpath(directory))))
        with store.lock_ports():
            spec = plan(host, request, runtime=runtime, base_port=base_port, directory=directory)
            spec = replace(spec, own_directory=directory is None or not spec.directory.exists())
            undo.enter_context(_removed_on_failure(host, spec))  # also if releasing the lock fails
            _reserve(host, spec)
        write_missing(host, spec)
        started = None
        if start_it:
            started = start(host, spec, java=java, timeout_s=timeout_s, progress=progress)
        put_cluster_context(spec, make_current=make_current)
    return _created(spec, started)


def _created(spec: ClusterSpec, started: StartResult | None) -> CreateResult:
    return CreateResult(
        name=spec.name,
        layout=spec.layout,
        directory=spec.directory,
        kafka_version=spec.kafka_version,
        bootstrap_servers=spec.bootstrap_servers,
        zookeeper=spec.zookeeper_connect,
        cluster_id=spec.cluster_id,
        controllers=tuple(voter.id for voter in spec.voters),
        brokers=tuple(b.id for b in spec.brokers),
        started=started is not None,
        duration_ms=started.duration_ms if started else 0,
    )


def _check_folder(host: Host, directory: Path) -> None:
    if directory.exists() and not (directory.is_dir() and _is_empty(host, directory)):
        raise Refused(
            f"--dir {directory} is not an empty folder", hint="choose a new or empty folder", reason=Reason.INVALID_PATH
        )


def _reserve(host: Host, spec: ClusterSpec) -> None:
    """Create the entry, the folder and cluster.json, in this order. Then the cluster exists and owns its ports.

    An entry without cluster.json is left over from a create that was killed. The next create, or destroy, removes it.
    """
    entry = store.entry_path(spec.name)
    if entry.is_symlink():
        host.remove_file(entry)
    if spec.directory != Path(os.path.realpath(entry)):
        host.remove_folder(entry)
        host.make_link(entry, spec.directory)
    host.make_folder(spec.directory)
    for path in store.leftovers(host, spec.directory):
        host.remove_file(path)
    store.save(host, spec)


@contextlib.contextmanager
def _removed_on_failure(host: Host, spec: ClusterSpec) -> Iterator[None]:
    try:
        yield
    except BaseException as exc:
        try:
            with deferred_interrupts():
                remove_cluster(host, spec.name, keep_directory=not spec.own_directory)
        except KctlError as cleanup_error:
            if isinstance(exc, KctlError):
                exc.hint = f"{exc.hint or ''}\nand the cleanup failed: {cleanup_error.message}".strip()
        raise


def put_cluster_context(spec: ClusterSpec, *, make_current: bool) -> None:
    """Write the context of a cluster; an existing context keeps the user's changes."""
    from kctl.contexts.change import put_context
    from kctl.contexts.choose import list_contexts
    from kctl.contexts.context import Context

    stored = list_contexts().get(spec.name)
    base = stored if stored is not None and stored.cluster_dir == str(spec.directory) else None
    entry = Context(
        bootstrap_servers=spec.bootstrap_servers,
        zookeeper=spec.zookeeper_connect,
        cluster_dir=str(spec.directory),
    )
    if base is not None:
        entry = replace(entry, protected=base.protected).in_place_of(base)
    put_context(spec.name, entry, make_current=make_current)
