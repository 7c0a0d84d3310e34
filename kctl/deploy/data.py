"""Check that the data in a node's folders belongs to the node: the errors of Kafka and ZooKeeper would be misleading.

Log dirs hold meta.properties with the id of the broker or controller and cluster.id; ZooKeeper's dataDir holds myid.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from kctl.base.properties import parse_properties
from kctl.deploy.formatting import check_formatted
from kctl.deploy.host import Host
from kctl.deploy.layout import BrokerNode, ClusterSpec, ControllerNode, Node, ZooKeeperNode
from kctl.errors import InvalidFile, KctlError, Reason, Refused

_MAX_BYTES = 64 << 10


def check_data(host: Host, spec: ClusterSpec, node: Node) -> None:
    """Raise Refused if the folders of `node` hold the data of another node."""
    if not isinstance(node, ZooKeeperNode):
        if spec.uses_kraft:
            _check_cluster_id(host, spec, node)
            check_formatted(host, spec, node)
        else:
            _meta_properties(host, spec, node)
        return
    path = spec.data_paths(node)[0] / "myid"
    data = host.read_file(path, max_bytes=_MAX_BYTES) or b""
    if data.strip() != str(node.id).encode():
        raise Refused(
            f"{path} says {data.strip().decode('utf-8', 'replace')[:20]!r}, but this is {node.name}",
            hint="the folder has another ZooKeeper's data: restore the right folder",
            reason=Reason.WRONG_CLUSTER,
        )


def cluster_id_on_disk(host: Host, spec: ClusterSpec) -> str | None:
    """Return the cluster's id, even while it is down; None before its first start or if the folders disagree."""
    if spec.cluster_id is not None:
        return spec.cluster_id
    try:
        cluster_ids = {each for node in spec.brokers for each in _meta_properties(host, spec, node).values()}
    except KctlError:
        return None
    return cluster_ids.pop() if len(cluster_ids) == 1 else None


def find_cluster(host: Host, cluster_id: str) -> ClusterSpec | None:
    """Return the cluster with this id that kctl set up on this machine; None if there is none."""
    from kctl.deploy import store

    for cluster in store.list_clusters(host):
        with suppress(KctlError):
            if cluster.spec is not None and cluster_id_on_disk(host, cluster.spec) == cluster_id:
                return cluster.spec
    return None


def _meta_properties(host: Host, spec: ClusterSpec, node: BrokerNode | ControllerNode) -> dict[str, str]:
    """Return the cluster.id of each log dir that has one, by path. Raises Refused for another broker's log dir."""
    cluster_ids = {}
    for folder in spec.data_paths(node):
        path = folder / "meta.properties"
        data = host.read_file(path, max_bytes=_MAX_BYTES)
        if data is None:
            continue
        try:
            meta = parse_properties(data.decode("utf-8", "replace"), source=str(path))
        except InvalidFile as exc:
            raise Refused(f"{path} is invalid: {exc.message}", reason=Reason.INVALID_PATH) from exc
        node_id = meta.get("node.id", meta.get("broker.id"))
        if node_id not in {None, str(node.id)}:
            owner = f"{'node' if 'node.id' in meta else 'broker'} {node_id}"
            raise Refused(
                f"{folder} holds the data of {owner}, but this is {node.name}",
                hint="restore the right folder",
                reason=Reason.WRONG_CLUSTER,
            )
        if "cluster.id" in meta:
            cluster_ids[str(folder)] = meta["cluster.id"]
    return cluster_ids


def _check_cluster_id(host: Host, spec: ClusterSpec, node: BrokerNode | ControllerNode) -> None:
    for folder, cluster_id in _meta_properties(host, spec, node).items():
        if cluster_id != spec.cluster_id:
            raise Refused(
                f"{folder} holds data of cluster {cluster_id}, but cluster {spec.name} is {spec.cluster_id}",
                hint="restore the right folder",
                reason=Reason.WRONG_CLUSTER,
            )


def check_registered_cluster(
    host: Host, spec: ClusterSpec, registered: str | None, nodes: Sequence[BrokerNode]
) -> None:
    """Raise Refused if a log dir belongs to a different cluster than the one in ZooKeeper."""
    for node in nodes:
        for folder, cluster_id in _meta_properties(host, spec, node).items():
            if cluster_id == registered:
                continue
            registration = f"cluster {registered}" if registered else "no cluster at all"
            raise Refused(
                f"{folder} holds data of cluster {cluster_id}, but ZooKeeper knows {registration}",
                hint="the folder is another cluster's, or ZooKeeper lost its data or has another chroot; "
                "bring back the one that is missing",
                reason=Reason.WRONG_CLUSTER,
            )
