"""A cluster that kctl set up, with static voters as Kafka before 3.9 had them. kctl itself formats dynamic ones."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from cluster_testing import clusters_dir
from java_tools import java_tool
from kctl_testing import Kctl


def make_voters_static(kctl: Kctl, name: str, kafka_home: Path) -> None:
    """Give each node of a stopped cluster controller.quorum.voters, and format its log dirs again. They are empty."""
    folder = clusters_dir(kctl) / name
    spec = json.loads((folder / "cluster.json").read_text())
    combined = [(node["id"], node["controller_port"]) for node in spec["brokers"] if node["directory_id"]]
    dedicated = [(node["id"], node["port"]) for node in spec["controllers"]]
    voters = ",".join(f"{node}@127.0.0.1:{port}" for node, port in (*dedicated, *combined))
    for config in sorted(folder.glob("*/server.properties")):
        lines = config.read_text().splitlines()
        kept = [line for line in lines if not line.startswith("controller.quorum.bootstrap.servers=")]
        assert len(kept) == len(lines) - 1
        config.write_text("\n".join([*kept, f"controller.quorum.voters={voters}"]) + "\n")
        for data in config.parent.glob("data*"):
            shutil.rmtree(data)
        java_tool(kafka_home, "kafka.tools.StorageTool", "format", "-t", spec["cluster_id"], "-c", str(config))
