"""Read a cluster's state for planning, as kctl.reassign.planner.live_cluster does, from answers that are in files.

`python read_state.py FOLDER`: what kctl does with them, without a network and without brokers' own time. Prints how
many requests were sent, and what was read.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from kctl.model import ClusterState
from kctl.protocol import wire
from kctl.protocol.client import ClusterClient
from kctl.protocol.metadata_messages import decode_metadata, metadata_is_flexible
from kctl.reassign.planner.live_cluster import read_cluster

METADATA_VERSION, LOG_DIRS_VERSION = 12, 4


class RecordedClient:
    """In place of a client: brokers that answer from files. No real cluster of 100,000 partitions fits a test."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.requests = folder, 0

    def metadata(self) -> ClusterState:
        self.requests += 1
        data = (self.folder / "metadata").read_bytes()
        return decode_metadata(wire.Reader(data, metadata_is_flexible(METADATA_VERSION)), METADATA_VERSION)

    def send_each(self, requests: Mapping[int, Any]) -> dict[int, Any]:
        from kafka.protocol.admin import DescribeLogDirsResponse

        self.requests += len(requests)
        return {
            node: DescribeLogDirsResponse.decode(
                (self.folder / f"log-dirs-{node}").read_bytes(), version=LOG_DIRS_VERSION
            )
            for node in requests
        }

    def send_to_controller(self, request: Any, **_: object) -> Any:
        from kafka.protocol.admin import ListPartitionReassignmentsResponse

        self.requests += 1
        return ListPartitionReassignmentsResponse(throttle_time_ms=0, error_code=0, error_message=None, topics=[])


def main() -> None:
    """Read once, and say what it took."""
    client = RecordedClient(Path(sys.argv[1]))
    found = read_cluster(cast("ClusterClient", client))
    sizes = sum(size >= 0 for size in found.cluster.size_bytes)
    told = {"requests": client.requests, "partitions": len(found.cluster), "sizes": sizes, "lacks": found.lacks}
    sys.stdout.write(json.dumps(told) + "\n")


if __name__ == "__main__":
    main()
