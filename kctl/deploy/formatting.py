"""Formatting of KRaft log dirs (kafka.tools.StorageTool), once per node.

All ids are in cluster.json before the first format, so a repeated format gives the same cluster and the same voters.
The file `formatted` in a node's folder marks that all of its log dirs were formatted. A log dir that is empty later has
lost its data and is never formatted again, because a voter that forgets its votes can lose committed metadata.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from kctl.deploy.host import Host
from kctl.deploy.layout import LOOPBACK, BrokerNode, ClusterSpec, ControllerNode, Node
from kctl.deploy.nodes import JVM_FLAGS, log4j_flag
from kctl.deploy.process import Completed
from kctl.deploy.runtime.java import Java
from kctl.errors import OperationFailed, Reason, Refused

_STORAGE_TOOL = "kafka.tools.StorageTool"
_TIMEOUT_S = 60.0
_MAX_PARALLEL = 2  # each format runs in its own JVM


def marker_path(spec: ClusterSpec, node: Node) -> Path:
    return spec.folder(node) / "formatted"


def is_formatted(host: Host, spec: ClusterSpec, node: Node) -> bool:
    """Return True if the node was formatted completely."""
    return host.size(marker_path(spec, node)) is not None


def check_formatted(host: Host, spec: ClusterSpec, node: BrokerNode | ControllerNode) -> None:
    """Raise Refused if the node was formatted and a log dir is empty now."""
    if not is_formatted(host, spec, node):
        return
    for folder in spec.data_paths(node):
        if host.size(folder / "meta.properties") is None:
            raise Refused(
                f"{folder} of {node.name} has no meta.properties: its data was deleted, or its disk is not mounted",
                hint=f"restore the folder. If other brokers have all of its data, delete {marker_path(spec, node)}"
                " to format it as an empty log dir"
                if not _is_voter(spec, node)
                else "restore the folder: a voter that has lost its metadata log must not vote again",
                reason=Reason.INVALID_PATH,
            )


def _is_voter(spec: ClusterSpec, node: BrokerNode | ControllerNode) -> bool:
    return any(voter.id == node.id for voter in spec.voters)


def format_nodes(host: Host, spec: ClusterSpec, nodes: Sequence[BrokerNode | ControllerNode], java: Java) -> None:
    """Format the log dirs of nodes that were not formatted yet.

    Raises OperationFailed with the tool's message, TimedOut.
    """
    pending = [node for node in nodes if not is_formatted(host, spec, node)]
    with ThreadPoolExecutor(max_workers=_MAX_PARALLEL) as pool:
        results = list(pool.map(lambda node: host.run(_command(spec, node, java), timeout_s=_TIMEOUT_S), pending))
    for node, result in zip(pending, results, strict=True):
        if result.returncode != 0:
            raise OperationFailed(
                f"the log dirs of {node.name} of cluster {spec.name} cannot be formatted", hint=_last_line(result)
            )
        host.write_file(marker_path(spec, node), f"{spec.cluster_id}\n".encode())


def _command(spec: ClusterSpec, node: BrokerNode | ControllerNode, java: Java) -> list[str]:
    voters = ",".join(f"{v.id}@{LOOPBACK}:{v.port}:{v.directory_id}" for v in spec.voters)
    quorum = ["--initial-controllers", voters] if _is_voter(spec, node) else ["--no-initial-controllers"]
    return [
        str(java.executable), "-Xmx128m", *JVM_FLAGS, "-Duser.timezone=UTC", log4j_flag(spec, node),
        "-cp", f"{spec.release_of(node).libs}/*", _STORAGE_TOOL,
        "format", "--ignore-formatted", "--cluster-id", str(spec.cluster_id), "--config", str(spec.config_path(node)),
        *quorum,
    ]  # fmt: skip


def _last_line(result: Completed) -> str:
    lines = (result.stdout + b"\n" + result.stderr).decode("utf-8", "replace").splitlines()
    return next((line.strip()[:500] for line in reversed(lines) if line.strip()), f"exit code {result.returncode}")
