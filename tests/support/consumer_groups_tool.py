"""kafka-consumer-groups --describe, Kafka's own tool, as a table of tests."""

from __future__ import annotations

import subprocess
from pathlib import Path


def described(bootstrap: str, kafka_home: Path, *groups: str) -> dict[tuple[str, ...], tuple[str, ...]]:
    """(group, topic, partition) → (committed, end, lag, client, host), as it writes them; no groups: all there are."""
    argv = [
        "java", "-Xmx128M", "-cp", f"{kafka_home}/libs/*",
        "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
        "--bootstrap-server", bootstrap, "--describe",
        *([] if groups else ["--all-groups"]),
    ]  # fmt: skip
    for group in groups:
        argv += ["--group", group]
    out = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=60).stdout
    rows: dict[tuple[str, ...], tuple[str, ...]] = {}
    for line in out.splitlines():
        cells = line.split()
        if len(cells) >= 9 and cells[2].isdigit():
            group, topic, partition, committed, end, lag, _consumer, host, client = cells[:9]
            rows[group, topic, partition] = (committed, end, lag, client, host)
    return rows
