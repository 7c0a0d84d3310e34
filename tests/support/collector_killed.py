"""Collect snapshots of a real cluster in child processes, one after the other, and kill -9 each at a random time.

    python collector_killed.py STORE BOOTSTRAP KILLS SEED

Passes follow each other without a pause, and the hour is compacted after each, so that kills hit every phase.
Prints a line of JSON for each pass that a child reported as stored, [at_ms, rows of groups, of commits, of logs, of
replicas]: the minimum content of the store.
"""

from __future__ import annotations

import json
import os
import random
import select
import signal
import sys
import time
from pathlib import Path

from kctl.history.snapshots import lock, run
from kctl.history.snapshots.collect import Collector
from kctl.history.snapshots.commit import PassReport
from kctl.history.snapshots.compact import compact
from kctl.history.snapshots.layout import hour_of
from kctl.history.snapshots.store import create_store
from kctl.protocol.client import connect
from kctl.protocol.target import Target

LONGEST_S = 0.5  # from a child's first, second or third pass to its kill


def collect(store: Path, bootstrap: str, told: int) -> None:
    """Make passes until the process is killed. Writes a line into `told` for each."""
    with connect(Target("killed", tuple(bootstrap.split(",")))) as client:
        cluster_id = client.metadata(()).cluster_id
        create_store(store, cluster_id)
        with lock.hold(store):
            collector, opened = Collector(cluster_id), create_store(store, cluster_id)
            schedule = run.Schedule(every_s=0.01)
            for report in run.run(opened, lambda at_ms: collector.take_pass(client, at_ms), schedule, warn=complain):
                at_ms = round(report.at.timestamp() * 1000)
                if report.stored:
                    os.write(told, json.dumps([at_ms, *counts(report)]).encode() + b"\n")
                for _ in compact(opened, hour_of(at_ms)):
                    pass


def counts(report: PassReport) -> tuple[int, int, int, int]:
    """Return the numbers of rows of a pass in groups, commits, logs and replicas."""
    return report.group_count, report.commits, report.partition_count, report.replica_count


def complain(text: str) -> None:
    """Fail: housekeeping must not report anything here."""
    sys.exit(f"housekeeping: {text}")


def main() -> int:
    """Return 0 if the requested number of children was killed."""
    store, bootstrap, kills, seed = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    chance = random.Random(seed)
    import kafka  # noqa: F401 - once, not in each child

    for _ in range(kills):
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            os.close(reading)
            try:
                collect(store, bootstrap, writing)
            finally:
                os._exit(1)
        os.close(writing)
        lines, wanted = b"", chance.randint(1, 3)
        while lines.count(b"\n") < wanted and select.select([reading], [], [], 30)[0]:
            lines += os.read(reading, 1 << 16)
        time.sleep(chance.uniform(0, LONGEST_S))
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        while data := os.read(reading, 1 << 16):
            lines += data
        os.close(reading)
        sys.stdout.write(lines.decode())
        sys.stdout.flush()
        if not (os.WIFSIGNALED(status) and lines):
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
