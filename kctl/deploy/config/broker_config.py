"""The server.properties of a broker or KRaft controller: commented, with defaults that suit the layout. Pure."""

from __future__ import annotations

from kctl.base.properties import property_sections
from kctl.deploy.layout import LOOPBACK, BrokerNode, ClusterSpec, ControllerNode, heap_bytes, is_kafka_4

_SESSION_TIMEOUT_MS = 6_000
_REGISTRATION_TIMEOUT_MS = 600_000
_INTERNAL_PARTITIONS = 10
_CONTROLLER = "CONTROLLER"
_REACH = "Reachable from this machine only: the bind address, and the address that clients use"

_TOPICS = """Topics: {replicas} replica{s}; acks=all needs {in_sync} in sync. A replica that is not in sync never
becomes leader, because acknowledged records would be lost. Topics must be created explicitly"""

Section = tuple[str, list[tuple[str, str]]]


def render_server_properties(spec: ClusterSpec, node: BrokerNode | ControllerNode) -> str:
    """Return the text of server.properties. The user's settings replace kctl's values in place."""
    what = "Broker" if isinstance(node, BrokerNode) else "Controller"
    sections = [*_identity_sections(spec, node), *_topic_sections(spec, node), *_small_machine_sections(spec, node)]
    settings = dict(spec.settings)
    merged = [(comment, [(key, settings.pop(key, value)) for key, value in entries]) for comment, entries in sections]
    merged.append(("Set with --config or --config-file", sorted(settings.items())))
    header = (
        f"{what} {node.id} of cluster {spec.name} ({spec.layout}), Kafka {spec.kafka_version}.\n"
        "Written once by kctl; edit it and run: kctl cluster restart " + spec.name
    )
    return property_sections(header, merged)


def _identity_sections(spec: ClusterSpec, node: BrokerNode | ControllerNode) -> list[Section]:
    logs = ("Log dirs", [("log.dirs", ",".join(map(str, spec.data_paths(node))))])
    if spec.uses_kraft:
        return [*_kraft_identity(spec, node), logs]
    assert isinstance(node, BrokerNode)
    identity = [("broker.id", str(node.id)), *_rack(node)]
    return [("Identity", identity), (_REACH, _listeners(f"PLAINTEXT://{LOOPBACK}:{node.port}")), logs, _zookeeper(spec)]


def _rack(node: BrokerNode | ControllerNode) -> list[tuple[str, str]]:
    return [("broker.rack", node.rack)] if isinstance(node, BrokerNode) and node.rack is not None else []


def _listeners(listeners: str) -> list[tuple[str, str]]:
    return [("listeners", listeners), ("advertised.listeners", listeners)]


def _kraft_identity(spec: ClusterSpec, node: BrokerNode | ControllerNode) -> list[Section]:
    roles, listeners = ["broker"], [f"PLAINTEXT://{LOOPBACK}:{node.port}"]
    if isinstance(node, ControllerNode):
        roles, listeners = ["controller"], [f"{_CONTROLLER}://{LOOPBACK}:{node.port}"]
    elif node.controller_port:
        roles, listeners = [*roles, "controller"], [*listeners, f"{_CONTROLLER}://{LOOPBACK}:{node.controller_port}"]
    quorum = [
        ("controller.listener.names", _CONTROLLER),
        ("listener.security.protocol.map", f"PLAINTEXT:PLAINTEXT,{_CONTROLLER}:PLAINTEXT"),
        ("controller.quorum.bootstrap.servers", ",".join(spec.controller_servers)),
    ]
    session = [("broker.session.timeout.ms", str(_SESSION_TIMEOUT_MS)), ("broker.heartbeat.interval.ms", "1000")]
    registration = [("initial.broker.registration.timeout.ms", str(_REGISTRATION_TIMEOUT_MS))]
    return [
        ("Identity", [("process.roles", ",".join(roles)), ("node.id", str(node.id)), *_rack(node)]),
        (_REACH, _listeners(",".join(listeners))),
        ("The metadata quorum; its voters are in the metadata log: kctl controller", quorum),
        ("A dead broker is detected when its session expires; it cannot register again before that", session),
        ("A broker ends if it finds no active controller for this long (default 60000)", registration),
    ]


def _zookeeper(spec: ClusterSpec) -> Section:
    return (
        "ZooKeeper. A dead broker is detected when its session expires; it cannot register again before that",
        [
            ("zookeeper.connect", str(spec.zookeeper_connect)),
            ("zookeeper.session.timeout.ms", str(_SESSION_TIMEOUT_MS)),
            ("zookeeper.connection.timeout.ms", "18000"),
        ],
    )


def _topic_sections(spec: ClusterSpec, node: BrokerNode | ControllerNode) -> list[Section]:
    replicas = min(3, len(spec.brokers))
    in_sync = max(1, replicas - 1)
    topics = (
        _TOPICS.format(replicas=replicas, s="s" if replicas > 1 else "", in_sync=in_sync),
        [
            ("default.replication.factor", str(replicas)),
            ("min.insync.replicas", str(in_sync)),
            ("num.partitions", "1"),
            ("unclean.leader.election.enable", "false"),
            ("auto.create.topics.enable", "false"),
        ],
    )
    if isinstance(node, ControllerNode):  # it creates topics, with these defaults
        return [topics]
    internal = (
        "Internal topics: replicated like the others, with fewer partitions than the default of 50",
        [
            ("offsets.topic.replication.factor", str(replicas)),
            ("offsets.topic.num.partitions", str(_INTERNAL_PARTITIONS)),
            ("transaction.state.log.replication.factor", str(replicas)),
            ("transaction.state.log.min.isr", str(in_sync)),
            ("transaction.state.log.num.partitions", str(_INTERNAL_PARTITIONS)),
            *(_share_groups(replicas, in_sync) if is_kafka_4(spec.kafka_version) else ()),
        ],
    )
    return [topics, internal]


def _share_groups(replicas: int, in_sync: int) -> list[tuple[str, str]]:
    """Return the settings of the topic with the state of share groups (Kafka 4.x, KIP-932)."""
    prefix = "share.coordinator.state.topic"
    return [
        (f"{prefix}.replication.factor", str(replicas)),
        (f"{prefix}.min.isr", str(in_sync)),
        (f"{prefix}.num.partitions", str(_INTERNAL_PARTITIONS)),
    ]


def _small_machine_sections(spec: ClusterSpec, node: BrokerNode | ControllerNode) -> list[Section]:
    if isinstance(node, ControllerNode):
        return []
    dedupe = min(128 << 20, heap_bytes(spec.heap) // 16)
    sections = [
        (
            "A group's first rebalance waits this long for more members (default 3000, for production)",
            [("group.initial.rebalance.delay.ms", "100")],
        ),
        (
            "The log cleaner's map of keys, allocated at start: 24 bytes per key",
            [("log.cleaner.dedupe.buffer.size", str(dedupe))],
        ),
    ]
    if not spec.uses_kraft:
        sections.append(
            (
                "When the whole cluster stops, the last broker cannot hand over its leaders: keep its retries short",
                [("controlled.shutdown.max.retries", "2"), ("controlled.shutdown.retry.backoff.ms", "500")],
            )
        )
    return sections
