"""The demo as data: its steps in order, and the records that its producers write.

`kctl.commands.demo.commands` runs the steps. Each step is a command line that a user can repeat.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import Literal

TOPICS = ("orders", "clicks")
PARTITIONS = 6
FIRST_RECORDS = 6_000
AUDITED_RECORDS = 500
LAYOUTS = {  # layouts with three brokers, and what their clusters consist of
    "pseudo-distributed": "one ZooKeeper and three brokers",
    "three-node": "three ZooKeeper servers and three brokers",
    "kraft-combined": "three nodes, each a broker and a controller (KRaft)",
    "kraft-separate": "three controllers and three brokers (KRaft)",
}
RATE_PER_S = 200
SLOW_RATE_PER_S = 100
LIVE_GROUPS = ("billing", "dashboard")


@dataclass(frozen=True)
class DemoStep:
    """One step of the demo.

    title: what happens, in one line. argv: the command, without `kctl`. may_be_unhealthy: True if exit code 1 is
    expected. wait_for: the state to wait for before the command: both groups have committed, a replica has left an ISR,
    or every ISR is full again.
    """

    title: str
    argv: tuple[str, ...]
    may_be_unhealthy: bool = False
    wait_for: Literal["commits", "isr_shrunk", "isr_full"] | None = None


def topics(cluster: str, layout: str) -> list[DemoStep]:
    """Return the steps that create the cluster and its topics."""
    retention = "retention.ms=86400000"
    return [
        DemoStep(
            f"Create a cluster: {LAYOUTS[layout]}, each with its own id, port and log dir",
            ("cluster", "create", cluster, "--layout", layout),
        ),
        DemoStep("Show the processes: state, role, port and number of led partitions", ("cluster", "status", cluster)),
        DemoStep(
            "Create a topic with six partitions and three replicas, limited by time",
            ("topic", "create", "orders", "--partitions", str(PARTITIONS), "--replication-factor", "3",
             "--config", retention),
        ),
        DemoStep(
            "Create another topic, limited by size",
            ("topic", "create", "clicks", "--partitions", "3", "--replication-factor", "3",
             "--config", "retention.bytes=10000000"),
        ),

    ]  # fmt: skip


def lag() -> list[DemoStep]:
    """Return the steps about consumer lag, while producers and consumers run."""
    audited = str(AUDITED_RECORDS)
    return [
        DemoStep(
            "Read 500 records as group audit, then stop: its lag grows from now on",
            ("consume", "orders", "--group", "audit", "--from-beginning", "--max-messages", audited, "--quiet"),
        ),
        DemoStep("List the groups: dashboard keeps up, billing is too slow, audit has stopped", ("group", "list")),
        DemoStep("Show the lag of each group by topic", ("lag", "--by", "topic"), wait_for="commits"),
        DemoStep(
            "Check the lag in a script: more than 300 records is exit code 1",
            ("lag", "audit", "--by", "group", "--max-lag", "300"),
            may_be_unhealthy=True,
        ),
    ]


def fault(cluster: str) -> list[DemoStep]:
    """Return the steps in which a broker dies and comes back; no acknowledged record is lost."""
    return [
        DemoStep("Kill the leader of orders-0 with kill -9", ("cluster", "kill", cluster, "leader:orders-0", "--yes")),
        DemoStep(
            "Its session has expired: other replicas lead, and one replica is missing from every ISR",
            ("topic", "describe", "orders"),
            wait_for="isr_shrunk",
        ),
        DemoStep("The cluster is not healthy: exit code 1", ("cluster", "status", cluster), may_be_unhealthy=True),
        DemoStep("Start the broker again", ("cluster", "start", cluster)),
        # A new controller balances leaders 5 s after its election, perhaps while the next reports read them.
        DemoStep(
            "All replicas are in sync again: move leadership back to the preferred replicas",
            ("leader", "elect", "--preferred", "--yes"),
            wait_for="isr_full",
        ),
        DemoStep("The cluster is healthy again", ("cluster", "status", cluster)),
    ]


def spark() -> list[DemoStep]:
    """Return the steps with PySpark's reports, for clusters too large for one machine."""
    return [
        DemoStep("Consumer lag, computed by PySpark", ("spark", "lag", "--by", "topic")),
        DemoStep("Disk usage and share of each retention limit, computed by PySpark", ("spark", "retention")),
    ]


def records(seed: int = 1) -> Iterator[str]:
    """Yield endless order records as "key:JSON" lines; the same seed yields the same records."""
    rng = random.Random(seed)  # noqa: S311 - made-up orders, not secrets
    for number in count(1):
        body = {
            "order": number,
            "customer": f"c-{rng.randrange(500):03}",
            "amount": round(rng.uniform(1, 500), 2),
            "note": "x" * rng.randrange(120),
        }
        yield f"{body['customer']}:{json.dumps(body)}"
