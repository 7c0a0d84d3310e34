"""Destroy a cluster: its processes, and the files that kctl created. Other files in its folder stay.

cluster.json lists the folders of the nodes. If it is damaged or missing, kctl recognizes the folders by their names and
files, so that a cluster with an unreadable description can still be removed. cluster.json is removed after the folders,
so that an interrupted destroy can be repeated.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
from dataclasses import dataclass
from pathlib import Path

from kctl.base.deadline import Deadline
from kctl.deploy import store
from kctl.deploy.host import Host
from kctl.deploy.nodes import is_node_command
from kctl.deploy.process import ProcessIdentity
from kctl.deploy.waiting import wait_until
from kctl.errors import KctlError, NotFound, TimedOut

_NODE_FOLDER = re.compile(r"(broker|controller|zookeeper)-\d{1,3}")
_KILL_TIMEOUT_S = 10.0


@dataclass(frozen=True, slots=True)
class DestroyPlan:
    """The processes and folders that `destroy` would kill and remove."""

    directory: Path
    killed: tuple[str, ...]
    removed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DestroyResult:
    """The result. kept: files in the folder that kctl did not create. current_context: after the removal."""

    name: str
    directory: Path
    killed: tuple[str, ...]
    kept: tuple[str, ...]
    current_context: str | None


def destroy_plan(host: Host, name: str) -> DestroyPlan:
    """Return the processes that `destroy` would kill and the folders that it would remove. Raises NotFound."""
    directory = _directory(host, name)
    running = tuple(node for node, _ in _processes(host, directory))
    return DestroyPlan(directory, running, tuple(str(path) for path in _node_folders(host, name, directory)))


def destroy(host: Host, name: str) -> DestroyResult:
    """Kill the cluster's processes and remove what kctl created: folders, entry, context. Raises NotFound."""
    _directory(host, name)
    with store.lock_cluster(name):
        return remove_cluster(host, name)


def remove_cluster(host: Host, name: str, *, keep_directory: bool | None = None) -> DestroyResult:
    """Destroy a cluster while holding its lock; a missing entry is not an error.

    keep_directory: keep the folder itself, because it existed before; None: as in cluster.json.
    """
    if keep_directory is None:
        keep_directory = _existed_before(host, name)
    directory = Path(os.path.realpath(store.entry_path(name)))
    killed = _kill(host, directory)
    for folder in _node_folders(host, name, directory):
        host.remove_tree(folder)
    current = _remove_context(name, directory)
    for path in (store.spec_path(directory), *store.leftovers(host, directory)):
        host.remove_file(path)
    removed = not keep_directory and host.remove_folder(directory)
    remaining_names = () if removed else tuple(host.list_folder(directory))
    entry = store.entry_path(name)
    if entry.is_symlink():
        host.remove_file(entry)
    store.remove_lock(name)
    return DestroyResult(name, directory, killed, remaining_names, current)


def _existed_before(host: Host, name: str) -> bool:
    try:
        return not store.load(host, name).own_directory
    except KctlError:  # unknown; with --dir, where the entry is a link, the user may have created the folder
        return store.entry_path(name).is_symlink()


def _directory(host: Host, name: str) -> Path:
    if not store.exists(name):
        store.load(host, name)  # raises NotFound with the existing names
    return Path(os.path.realpath(store.entry_path(name)))


def _node_folders(host: Host, name: str, directory: Path) -> list[Path]:
    try:
        spec = store.load(host, name)
    except KctlError:
        candidates = [directory / n for n in host.list_folder(directory) if _NODE_FOLDER.fullmatch(n)]
        kctl_files = ("process.json", "log4j.properties", "server.properties", "zoo.cfg")
        return [folder for folder in candidates if any(host.size(folder / file) is not None for file in kctl_files)]
    return [spec.folder(node) for node in spec.nodes]


def _processes(host: Host, directory: Path) -> list[tuple[str, ProcessIdentity]]:
    """Return the processes whose config file is in the cluster's folder, each with the name of the node's folder."""
    prefix = f"{directory}/"
    processes = host.find_processes(lambda argv: is_node_command(argv) and argv[-1].startswith(prefix))
    return [(Path(argv[-1]).parent.name, identity) for identity, argv in processes]


def _kill(host: Host, directory: Path) -> tuple[str, ...]:
    """Kill all processes at once: their data is about to be deleted."""
    processes = _processes(host, directory)
    for _, identity in processes:
        host.signal(identity, signal.SIGKILL)
    if not wait_until(
        lambda: not any(host.is_running(i) for _, i in processes), Deadline(_KILL_TIMEOUT_S), every_s=0.02
    ):
        survivors = ", ".join(f"{node} (pid {i.pid})" for node, i in processes if host.is_running(i))
        raise TimedOut(f"{survivors} did not end after SIGKILL", hint="its disk may hang; try again")
    return tuple(node for node, _ in processes)


def _remove_context(name: str, directory: Path) -> str | None:
    """Remove the cluster's context. Return the current context."""
    from kctl.contexts import config
    from kctl.contexts.change import remove_context

    file = config.read()
    context = file.contexts.get(name)
    if context is not None and context.cluster_dir == str(directory):
        with contextlib.suppress(NotFound):
            return remove_context(name)
    return file.current_context
