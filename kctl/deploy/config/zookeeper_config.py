"""A ZooKeeper server's zoo.cfg and myid. Pure."""

from __future__ import annotations

from kctl.base.properties import property_sections
from kctl.deploy.layout import LOOPBACK, ClusterSpec, ZooKeeperNode

_TICKS = """Time is measured in ticks (ms): sessions expire with the precision of a tick, followers have initLimit ticks
to join and syncLimit ticks to keep up"""


def render_zoo_cfg(spec: ClusterSpec, node: ZooKeeperNode) -> str:
    """Return the text of zoo.cfg."""
    header = (
        f"ZooKeeper {node.id} of cluster {spec.name} ({spec.layout}).\n"
        "Written once by kctl; edit it and run: kctl cluster restart " + spec.name
    )
    data = str(spec.data_paths(node)[0])
    sections = [
        (
            "Reachable from this machine only",
            [("clientPort", str(node.port)), ("clientPortAddress", LOOPBACK)],
        ),
        (
            "Snapshots and transaction log (grows by preAllocSize kB); a purge every 24 hours retains three snapshots",
            [("dataDir", data), ("preAllocSize", "4096"), ("autopurge.snapRetainCount", "3"),
             ("autopurge.purgeInterval", "24")],
        ),
        (
            _TICKS,
            [("tickTime", "1000"), ("initLimit", "20"), ("syncLimit", "10")],
        ),
        ("The ensemble: quorum and election ports", _servers(spec)),
        (
            "All clients share one address, so connections are not limited; no web server; health check commands",
            [("maxClientCnxns", "0"), ("admin.enableServer", "false"),
             ("4lw.commands.whitelist", "srvr, ruok, mntr, conf")],
        ),
    ]  # fmt: skip
    return property_sections(header, sections)


def _servers(spec: ClusterSpec) -> list[tuple[str, str]]:
    return [
        (f"server.{z.id}", f"{LOOPBACK}:{z.quorum_port}:{z.election_port}") for z in spec.zookeepers if z.quorum_port
    ]


def render_myid(node: ZooKeeperNode) -> str:
    """Return the text of dataDir/myid: the N of this server's server.N line."""
    return f"{node.id}\n"
