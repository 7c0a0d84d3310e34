"""The daily commands beside Kafka's own tools and kafka-python's command line, on one cluster.

kcl, kaf and kafkactl are no peers here: the Go module proxy does not offer them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping

from cases import GROUPS, Setting, make_groups
from kctl_testing import SCRIPT
from measure import Figures

_TOPICS = 20


def _kctl(servers: str, *args: str) -> list[str]:
    return [str(SCRIPT), *args, "--bootstrap-server", servers]


def _kafka_python(servers: str, *args: str) -> list[str]:
    return [sys.executable, "-m", "kafka.admin", "-b", servers.split(",", maxsplit=1)[0], *args]


def topics(setting: Setting) -> dict[str, Figures]:
    """Topics listed and described, their ends read."""
    servers = _prepared(setting)
    one = ("--topic", "topic-0")
    return setting.measure(
        {
            "kafka-topics --list": setting.java_tool("TopicCommand", "--list", "--bootstrap-server", servers),
            "kafka-python topics list": _kafka_python(servers, "topics", "list"),
            "kctl topic list": _kctl(servers, "topic", "list"),
            "kafka-topics --describe": setting.java_tool("TopicCommand", "--describe", "--bootstrap-server", servers),
            "kafka-python topics describe": _kafka_python(servers, "topics", "describe"),
            "kctl topic describe": _kctl(servers, "topic", "describe"),
            "kafka-get-offsets": setting.java_tool("GetOffsetShell", *one, "--bootstrap-server", servers),
            "kctl topic offsets": _kctl(servers, "topic", "offsets", "topic-0"),
        }
    )


def configs(setting: Setting) -> dict[str, Figures]:
    """All configs of a broker, and those set on a topic."""
    servers = _prepared(setting)
    tool = "kafka.admin.ConfigCommand"
    broker = ["--entity-type", "brokers", "--entity-name", "1", "--describe", "--all"]
    topic = ["--entity-type", "topics", "--entity-name", "topic-0", "--describe"]
    return setting.measure(
        {
            "kafka-configs, a broker": setting.java_tool(tool, "--bootstrap-server", servers, *broker),
            "kafka-python configs, a broker": _kafka_python(servers, "configs", "describe", "-r", "broker", "-n", "1"),
            "kctl config get broker/1 --all": _kctl(servers, "config", "get", "broker/1", "--all"),
            "kafka-configs, a topic": setting.java_tool(tool, "--bootstrap-server", servers, *topic),
            "kafka-python configs, a topic": _kafka_python(
                servers, "configs", "describe", "-r", "topic", "-n", "topic-0", "--dynamic"
            ),
            "kctl config get topic/topic-0": _kctl(servers, "config", "get", "topic/topic-0"),
        }
    )


def groups(setting: Setting) -> dict[str, Figures]:
    """50 groups listed, one described."""
    servers = _prepared(setting)
    make_groups(setting, GROUPS)
    tool = "consumer.group.ConsumerGroupCommand"
    one = ("--group", "bench-0")
    return setting.measure(
        {
            "kafka-consumer-groups --list": setting.java_tool(tool, "--list", "--bootstrap-server", servers),
            "kafka-python groups list": _kafka_python(servers, "groups", "list"),
            "kctl group list": _kctl(servers, "group", "list"),
            "kafka-consumer-groups --describe": setting.java_tool(
                tool, "--describe", *one, "--bootstrap-server", servers
            ),
            "kafka-python groups list-offsets": _kafka_python(servers, "groups", "list-offsets", "-g", "bench-0"),
            "kctl group describe": _kctl(servers, "group", "describe", "bench-0"),
        }
    )


def brokers(setting: Setting) -> dict[str, Figures]:
    """Log dirs and API versions of all brokers."""
    servers = _prepared(setting)
    return setting.measure(
        {
            "kafka-log-dirs": setting.java_tool("LogDirsCommand", "--describe", "--bootstrap-server", servers),
            "kafka-python describe-log-dirs": _kafka_python(servers, "cluster", "describe-log-dirs"),
            "kctl broker log-dirs": _kctl(servers, "broker", "log-dirs"),
            "kafka-broker-api-versions": setting.java_tool(
                "kafka.admin.BrokerApiVersionsCommand", "--bootstrap-server", servers
            ),
            "kafka-python api-versions": _kafka_python(servers, "cluster", "api-versions"),
            "kctl broker api-versions": _kctl(servers, "broker", "api-versions"),
        }
    )


def transactions(setting: Setting) -> dict[str, Figures]:
    """All transactions of the cluster."""
    servers = _prepared(setting)
    java = setting.java_tool("TransactionsCommand", "--bootstrap-server", servers, "list")
    return setting.measure(
        {
            "kafka-transactions list": java,
            "kafka-python transactions list": _kafka_python(servers, "transactions", "list"),
            "kctl transaction list": _kctl(servers, "transaction", "list"),
        }
    )


CASES: Mapping[str, Callable[[Setting], dict[str, Figures]]] = {
    "topics": topics,
    "configs": configs,
    "groups": groups,
    "brokers": brokers,
    "transactions": transactions,
}


def _prepared(setting: Setting) -> str:
    """The bootstrap servers of a cluster with twenty topics of six partitions."""
    servers = setting.cluster()
    for number in range(_TOPICS):
        name = f"topic-{number}"
        setting.kctl.ok("topic", "create", name, "--partitions", "6", "--config", "retention.ms=1", "--if-not-exists")
    return servers
