"""The files of a cluster: their paths and contents, and writing those that are missing."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from kctl.deploy.config.broker_config import render_server_properties
from kctl.deploy.config.broker_settings import is_secret
from kctl.deploy.config.log4j_config import render_log4j
from kctl.deploy.config.zookeeper_config import render_myid, render_zoo_cfg
from kctl.deploy.host import Host
from kctl.deploy.layout import ClusterSpec, Node, ZooKeeperNode

HIDDEN = "[hidden]"


@dataclass(frozen=True, slots=True)
class GeneratedFile:
    """A file to be written."""

    path: Path
    text: str


def config_files(spec: ClusterSpec) -> list[GeneratedFile]:
    """Return all files of a cluster, in the order in which they are written."""
    return [file for node in spec.nodes for file in node_files(spec, node)]


def node_files(spec: ClusterSpec, node: Node) -> list[GeneratedFile]:
    """Return the files of one process."""
    spec = spec.as_run_by(node)
    log4j = GeneratedFile(spec.log4j_path(node), render_log4j(spec, node))
    if not isinstance(node, ZooKeeperNode):
        return [GeneratedFile(spec.config_path(node), render_server_properties(spec, node)), log4j]
    myid = GeneratedFile(spec.data_paths(node)[0] / "myid", render_myid(node))
    return [GeneratedFile(spec.config_path(node), render_zoo_cfg(spec, node)), myid, log4j]


def without_secrets(spec: ClusterSpec) -> ClusterSpec:
    """Return the description with passwords replaced, for display."""
    displayed = {key: HIDDEN if is_secret(key) else value for key, value in spec.settings.items()}
    return replace(spec, settings=displayed)


def write_missing(host: Host, spec: ClusterSpec) -> list[Path]:
    """Write the missing files; existing files keep the user's edits. Return the written files."""
    written = []
    for node in spec.nodes:
        for file in node_files(spec, node):
            if host.size(file.path) is None:
                # If only myid is missing beside an existing database, this is not the first start; see data.check_data.
                host.write_file(file.path, file.text.encode())
                written.append(file.path)
        for folder in (*spec.data_paths(node), spec.log_path(node).parent):
            host.make_folder(folder)
    return written
