"""The demo as data: what is shown, in which order, and the records that its producers write.

`kctl.commands.demo.commands` runs it. Every foreground step is a command line that can be typed again.
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
RATE_PER_S = 200
SLOW_RATE_PER_S = 100
LIVE_GROUPS = ("billing", "dashboard")


@dataclass(frozen=True)
class Step:
    """One thing that the demo shows.

    title: what happens and why, in a line. argv: the command, without `kctl`. may_be_unhealthy: exit code 1 is
    what the step is to show. wait_for: before the command, until the controller has noticed what is to be seen:
    a replica has left an ISR, or every ISR is full again.
    """

    title: str
    argv: tuple[str, ...]
    may_be_unhealthy: bool = False
    wait_for: Literal["commits", "isr_shrunk", "isr_full"] | None = None


def topics(cluster: str) -> list[Step]:
    """The cluster comes up and gets its topics."""
    retention = "retention.ms=86400000"
    return [
        Step(
            "A ZooKeeper and three brokers, each with its own id, port and log dir",
            ("cluster", "create", cluster, "--layout", "pseudo-distributed"),
        ),
        Step("What runs, where, and who leads", ("cluster", "status", cluster)),
        Step(
            "A topic with six partitions, three replicas each",
            ("topic", "create", "orders", "--partitions", str(PARTITIONS), "--replication-factor", "3",
             "--config", retention),
        ),
        Step(
            "Another, limited by size",
            ("topic", "create", "clicks", "--partitions", "3", "--replication-factor", "3",
             "--config", "retention.bytes=10000000"),
        ),
        Step("Leader, replicas and ISR of each partition", ("topic", "describe", "orders")),
    ]  # fmt: skip


def lag() -> list[Step]:
    """While producers and consumers run: three groups, three fates."""
    audited = str(AUDITED_RECORDS)
    return [
        Step(
            "A group reads a little and goes away: from now on it stands still",
            ("consume", "orders", "--group", "audit", "--from-beginning", "--max-messages", audited, "--quiet"),
        ),
        Step("The groups: dashboard keeps up, billing is too slow, audit stands still", ("group", "list")),
        Step("How far each is behind, by topic", ("lag", "--by", "topic"), wait_for="commits"),
        Step(
            "The same as a gate for scripts: more than 300 behind is exit code 1",
            ("lag", "audit", "--by", "group", "--max-lag", "300"),
            may_be_unhealthy=True,
        ),
    ]


def fault(cluster: str) -> list[Step]:
    """A broker dies and comes back; nothing that was acknowledged is lost."""
    return [
        Step("kill -9 of the broker that leads orders-0", ("cluster", "kill", cluster, "leader:orders-0", "--yes")),
        Step(
            "Its session expires, other replicas lead on, one is missing in every ISR",
            ("topic", "describe", "orders"),
            wait_for="isr_shrunk",
        ),
        Step("What status says now: exit code 1", ("cluster", "status", cluster), may_be_unhealthy=True),
        Step("Bring it back", ("cluster", "start", cluster)),
        Step("In sync again", ("topic", "describe", "orders"), wait_for="isr_full"),
    ]


def spark() -> list[Step]:
    """The same questions answered by PySpark, as they are on a cluster too large for one machine."""
    return [
        Step("PySpark: consumer lag", ("spark", "lag", "--by", "topic")),
        Step("PySpark: what fills the disks, and how much of each retention limit", ("spark", "retention")),
    ]


def records(seed: int = 1) -> Iterator[str]:
    """Order records as «key:JSON» lines, without end; the same ones for the same seed."""
    rng = random.Random(seed)  # noqa: S311 - made-up orders, not secrets
    for number in count(1):
        body = {
            "order": number,
            "customer": f"c-{rng.randrange(500):03}",
            "amount": round(rng.uniform(1, 500), 2),
            "note": "x" * rng.randrange(120),
        }
        yield f"{body['customer']}:{json.dumps(body)}"
