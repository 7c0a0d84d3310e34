"""What is measured: kctl beside its peer, on one cluster that kctl set up."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path

from kctl_testing import SCRIPT, Kctl
from measure import Figures, in_turn

NAME = "bench"
GROUPS, PARTITIONS = 50, 60


@dataclass
class Setting:
    """Where the cases run: a console script with a home of its own, Kafka's jars, how often to repeat.

    before: a checkout of an older kctl to compare with.
    """

    kctl: Kctl
    libs: Path
    runs: int
    before: Path | None = None
    bootstrap: str = field(default="", init=False)

    def cluster(self) -> str:
        """The bootstrap servers of a pseudo-distributed cluster, set up once."""
        if not self.bootstrap:
            self.kctl.ok("cluster", "create", NAME, "--use", "--layout", "pseudo-distributed", timeout=180)
            self.bootstrap = ",".join(self.kctl.json("context", "show", NAME)["bootstrap_servers"])
        return self.bootstrap

    def java_tool(self, main: str, *args: str) -> list[str]:
        """One of Kafka's own tools, with the options that its script gives the JVM. main: the class."""
        name = main if main.startswith("kafka.") else f"org.apache.kafka.tools.{main}"
        return ["java", "-Xmx256M", "-cp", f"{self.libs}/*", name, *args]

    def measure(self, commands: dict[str, list[str]]) -> dict[str, Figures]:
        return in_turn(commands, self.runs, self.kctl.environment)

    def close(self) -> None:
        if self.bootstrap:
            self.kctl("cluster", "destroy", NAME, "--yes", "--confirm-cluster", NAME, timeout=180)


def startup(setting: Setting) -> dict[str, Figures]:
    """Help and version beside a Python that does nothing."""
    return setting.measure(
        {
            "python -c pass": [sys.executable, "-c", "pass"],
            "kctl --version": [str(SCRIPT), "--version"],
            "kctl --help": [str(SCRIPT), "--help"],
            "kctl topic --help": [str(SCRIPT), "topic", "--help"],
        }
    )


def lag(setting: Setting) -> dict[str, Figures]:
    """The lag of 50 groups × 60 partitions beside kafka-consumer-groups --describe --all-groups."""
    servers = setting.cluster()
    make_groups(setting, GROUPS)
    tool = "consumer.group.ConsumerGroupCommand"
    return setting.measure(
        {
            "kafka-consumer-groups": setting.java_tool(
                tool, "--describe", "--all-groups", "--bootstrap-server", servers
            ),
            "kctl lag": [str(SCRIPT), "lag", "--bootstrap-server", servers],
        }
    )


def lag_scale(setting: Setting) -> dict[str, Figures]:
    """How the lag's cost grows with the number of groups."""
    servers = setting.cluster()
    figures = {}
    for groups in (GROUPS, 500, 2000):
        make_groups(setting, groups)
        command = [str(SCRIPT), "lag", "--by", "group", "--bootstrap-server", servers]
        figures[f"kctl lag, {groups} groups"] = setting.measure({"lag": command})["lag"]
    return figures


def cluster_start(setting: Setting) -> dict[str, Figures]:
    """Clusters of three brokers from nothing to ready, stopped, started and destroyed (wall time of kctl).

    Three ZooKeepers and three brokers of Kafka 3.9, and three combined nodes of Kafka 4, each with class archives.
    """
    from kctl.deploy.runtime.runtime import KRAFT_VERSION, ensure_runtime

    kafka_4 = setting.kctl.with_environment(KAFKA_HOME=str(ensure_runtime(KRAFT_VERSION).libs.parent))
    figures: dict[str, Figures] = {}
    for layout, kctl in (("three-node", setting.kctl), ("kraft-combined", kafka_4)):
        kctl.ok("cluster", "warm", timeout=240)
        commands = {
            f"kctl cluster {action}, {layout}": [str(SCRIPT), "cluster", action, "bench3", *options]
            for action, options in (
                ("create", ["--layout", layout]),
                ("stop", ["--yes"]),
                ("start", []),
                ("destroy", ["--yes", "--confirm-cluster", "bench3"]),
            )
        }
        figures |= in_turn(commands, setting.runs, kctl.environment)
    return figures


def make_groups(setting: Setting, count: int) -> None:
    """Groups bench-0 … with a committed offset on every partition of one topic."""
    from kafka.structs import OffsetAndMetadata, TopicPartition

    from kafka_admin import kafka_admin
    from kctl.protocol.client import connect
    from kctl.protocol.target import Target

    setting.kctl.ok("topic", "create", "groups", "--partitions", str(PARTITIONS), "--if-not-exists")
    # By keys, so that each partition has more records than its number. A commit beyond the end of a log is read twice.
    records = "".join(f"{n}:record\n" for n in range(6000))
    setting.kctl.ok("produce", "groups", "--key-separator", ":", stdin=records)
    # The first group of all makes the brokers create the topic of the offsets.
    setting.kctl.ok("consume", "groups", "--group", "first", "--from-beginning", "--max-messages", "1", "--quiet")
    offsets = {TopicPartition("groups", p): OffsetAndMetadata(p, "", -1) for p in range(PARTITIONS)}
    with connect(Target(NAME, tuple(setting.cluster().split(",")))) as client, kafka_admin(client) as admin:
        for number in range(count):
            admin.alter_group_offsets(f"bench-{number}", offsets)
