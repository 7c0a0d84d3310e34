"""The picture in README.md: a broker fails, is diagnosed and recovers: `python tests/support/failure_picture.py`.

Creates the cluster `trio`, which needs Kafka and Java, runs the commands on it, removes it and writes docs/failure.svg.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
from pathlib import Path

from kctl.deploy.runtime.runtime import ensure_runtime
from picture import draw

TARGET = Path(__file__).resolve().parents[2] / "docs" / "failure.svg"
COLUMNS = 110
CREATE = "kctl cluster create trio --use --layout pseudo-distributed"
TOPIC = "kctl topic create orders --partitions 6 --replication-factor 3 --config min.insync.replicas=2"
PRODUCE = "seq 1000 | sed 's/.*/&:&/' | kctl produce orders --key-separator :"
FAILURE = ["kctl cluster kill trio leader:orders-0 --yes"]
RECOVERY = [
    "kctl cluster diagnose",
    "kctl cluster start trio",
    "kctl leader elect --preferred --yes",
    "kctl cluster status trio",
]
DETECTION_S = 12.0  # ZooKeeper's session timeout and the controller's reaction


def main() -> None:
    """Create the cluster, draw the commands and remove the cluster."""
    with tempfile.TemporaryDirectory() as home:
        os.environ["KAFKA_HOME"] = str(ensure_runtime().libs.parent)  # before HOME changes: the runtime is the user's
        for name in ("KCTL_CONTEXT", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME"):
            os.environ.pop(name, None)
        os.environ["HOME"] = home
        try:
            for command in (CREATE, TOPIC, PRODUCE):
                subprocess.run(["bash", "-c", command], check=True)
            TARGET.write_text(_picture())
        finally:
            subprocess.run(["kctl", "cluster", "destroy", "trio", "--confirm-cluster", "trio"], check=False)


def _picture() -> str:
    commands = [shlex.split(command) for command in FAILURE + RECOVERY]
    return draw(commands, "A broker fails and recovers", COLUMNS, {0: DETECTION_S})


if __name__ == "__main__":
    main()
