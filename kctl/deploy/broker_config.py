"""A broker's server.properties: commented, with defaults that suit the layout. Pure."""

from __future__ import annotations

from kctl.base.properties import property_sections
from kctl.deploy.layout import LOOPBACK, BrokerNode, ClusterSpec, heap_bytes

_SESSION_TIMEOUT_MS = 6_000
_INTERNAL_PARTITIONS = 10

_TOPICS = """Topics: {replicas} replica{s}; acks=all needs {in_sync} in sync. A replica that is not in sync never
becomes leader, because acknowledged records would be lost. Topics must be created explicitly"""

Section = tuple[str, list[tuple[str, str]]]


def render_server_properties(spec: ClusterSpec, node: BrokerNode) -> str:
    """Return the text of server.properties. The user's settings replace kctl's values in place."""
    sections = [*_identity(spec, node), *_safety(spec), *_small_machine(spec)]
    settings = dict(spec.settings)
    merged = [(comment, [(key, settings.pop(key, value)) for key, value in entries]) for comment, entries in sections]
    merged.append(("Set with --config or --config-file", sorted(settings.items())))
    header = (
        f"Broker {node.id} of cluster {spec.name} ({spec.layout}), Kafka {spec.kafka_version}.\n"
        "Written once by kctl; edit it and run: kctl cluster restart " + spec.name
    )
    return property_sections(header, merged)


def _identity(spec: ClusterSpec, node: BrokerNode) -> list[Section]:
    listener = f"PLAINTEXT://{LOOPBACK}:{node.port}"
    identity = [("broker.id", str(node.id))]
    if node.rack is not None:
        identity.append(("broker.rack", node.rack))
    return [
        ("Identity", identity),
        (
            "Reachable from this machine only: the bind address, and the address that clients use",
            [("listeners", listener), ("advertised.listeners", listener)],
        ),
        ("Log dirs", [("log.dirs", ",".join(map(str, spec.data_paths(node))))]),
        (
            "ZooKeeper. A dead broker is detected when its session expires; it cannot register again before that",
            [
                ("zookeeper.connect", spec.zookeeper_connect),
                ("zookeeper.session.timeout.ms", str(_SESSION_TIMEOUT_MS)),
                ("zookeeper.connection.timeout.ms", "18000"),
            ],
        ),
    ]


def _safety(spec: ClusterSpec) -> list[Section]:
    replicas = min(3, len(spec.brokers))
    in_sync = max(1, replicas - 1)
    return [
        (
            _TOPICS.format(replicas=replicas, s="s" if replicas > 1 else "", in_sync=in_sync),
            [
                ("default.replication.factor", str(replicas)),
                ("min.insync.replicas", str(in_sync)),
                ("num.partitions", "1"),
                ("unclean.leader.election.enable", "false"),
                ("auto.create.topics.enable", "false"),
            ],
        ),
        (
            "Internal topics: replicated like the others, with fewer partitions than the default of 50",
            [
                ("offsets.topic.replication.factor", str(replicas)),
                ("offsets.topic.num.partitions", str(_INTERNAL_PARTITIONS)),
                ("transaction.state.log.replication.factor", str(replicas)),
                ("transaction.state.log.min.isr", str(in_sync)),
                ("transaction.state.log.num.partitions", str(_INTERNAL_PARTITIONS)),
            ],
        ),
    ]


def _small_machine(spec: ClusterSpec) -> list[Section]:
    dedupe = min(128 << 20, heap_bytes(spec.heap) // 16)
    return [
        (
            "A group's first rebalance waits this long for more members (default 3000, for production)",
            [("group.initial.rebalance.delay.ms", "100")],
        ),
        (
            "The log cleaner's map of keys, allocated at start: 24 bytes per key",
            [("log.cleaner.dedupe.buffer.size", str(dedupe))],
        ),
        (
            "When the whole cluster stops, the last broker cannot hand over its leaders: keep its retries short",
            [("controlled.shutdown.max.retries", "2"), ("controlled.shutdown.retry.backoff.ms", "500")],
        ),
    ]
