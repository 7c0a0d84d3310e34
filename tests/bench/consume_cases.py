"""Reading a whole topic beside Kafka's console consumer: records of 100 B and of 1 KB, to a file that nobody reads."""

from __future__ import annotations

import shlex
import subprocess

from cases import Setting
from kctl_testing import SCRIPT
from measure import Figures

_PARTITIONS = 3


def consume_small(setting: Setting) -> dict[str, Figures]:
    """1,500,000 records of 100 B."""
    return _consume(setting, "records-100", 1_500_000, 100)


def consume_large(setting: Setting) -> dict[str, Figures]:
    """300,000 records of 1 KB."""
    return _consume(setting, "records-1000", 300_000, 1000)


def _consume(setting: Setting, topic: str, count: int, size: int) -> dict[str, Figures]:
    servers = setting.cluster()
    _fill(setting, topic, count, size)
    read = [str(SCRIPT), "consume", topic, "--bootstrap-server", servers, "--from-beginning", "--exit-eof"]
    java = setting.java_tool(
        "consumer.ConsoleConsumer", "--bootstrap-server", servers, "--topic", topic, "--from-beginning",
        "--max-messages", str(count),
    )  # fmt: skip
    return setting.measure(
        {
            f"kafka-console-consumer, {size} B": java,
            f"kctl consume, {size} B": read,
            f"kctl consume -o json, {size} B": [*read, "-o", "json"],
            # A group of its own for each run, which finds all records unread.
            f"kctl consume --group, {size} B": ["bash", "-c", f'exec {shlex.join(read)} --group "bench-{topic}-$$"'],
        }
    )


def _fill(setting: Setting, topic: str, count: int, size: int) -> None:
    (created,) = setting.kctl.json("topic", "create", topic, "--partitions", str(_PARTITIONS), "--if-not-exists")
    if created["result"] != "created":
        return
    subprocess.run(
        setting.java_tool(
            "ProducerPerformance", "--topic", topic, "--num-records", str(count), "--record-size", str(size),
            "--throughput", "-1", "--producer-props", f"bootstrap.servers={setting.cluster()}",
        ),
        env=setting.kctl.environment, stdout=subprocess.DEVNULL, check=True,
    )  # fmt: skip
