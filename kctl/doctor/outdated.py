"""Settings and values that Kafka has removed but old guides still recommend, with their replacements.

Sources: Kafka's upgrade notes for 0.9 (replica.lag.max.messages), 2.0 (the Scala clients were removed), 3.0 (host.name,
port and quotas in server.properties), 4.0 (DefaultPartitioner); KAFKA-3353 (0.11, settings of the first Java producer).
"""

from __future__ import annotations

from typing import NamedTuple

from kctl.doctor.releases import Release, Releases, format_release


class Replacement(NamedTuple):
    """The replacement of a removed setting or value. since: the release that removed it. advice: an instruction."""

    since: Release
    advice: str


_SCALA = (2, 0)
_BROKER: dict[str, Replacement] = {
    "host.name": Replacement((3, 0), "use listeners"),
    "port": Replacement((3, 0), "use listeners"),
    "advertised.host.name": Replacement((3, 0), "use advertised.listeners"),
    "advertised.port": Replacement((3, 0), "use advertised.listeners"),
    "quota.producer.default": Replacement((3, 0), "use `kctl quota set`"),
    "quota.consumer.default": Replacement((3, 0), "use `kctl quota set`"),
    "replica.lag.max.messages": Replacement((0, 9), "use replica.lag.time.max.ms"),
}
_CLIENT: dict[str, Replacement] = {
    "block.on.buffer.full": Replacement((0, 11), "use max.block.ms"),
    "metadata.fetch.timeout.ms": Replacement((0, 11), "use max.block.ms"),
    "timeout.ms": Replacement((0, 11), "use request.timeout.ms"),
    "metadata.broker.list": Replacement(_SCALA, "use bootstrap.servers"),
    "request.required.acks": Replacement(_SCALA, "use acks"),
    "request.timeout": Replacement(_SCALA, "use request.timeout.ms"),
    "producer.type": Replacement(_SCALA, "remove it: send() is always asynchronous"),
    "compression.codec": Replacement(_SCALA, "use compression.type"),
    "serializer.class": Replacement(_SCALA, "use value.serializer"),
    "key.serializer.class": Replacement(_SCALA, "use key.serializer"),
    "message.send.max.retries": Replacement(_SCALA, "use retries"),
    "queue.buffering.max.ms": Replacement(_SCALA, "use linger.ms"),
    "queue.buffering.max.messages": Replacement(_SCALA, "use buffer.memory"),
    "batch.num.messages": Replacement(_SCALA, "use batch.size, in bytes"),
    "topic.metadata.refresh.interval.ms": Replacement(_SCALA, "use metadata.max.age.ms"),
    "zookeeper.connect": Replacement(_SCALA, "use bootstrap.servers"),
    "zookeeper.session.timeout.ms": Replacement(_SCALA, "use session.timeout.ms"),
    "zookeeper.connection.timeout.ms": Replacement(_SCALA, "remove it: clients do not connect to ZooKeeper"),
    "zookeeper.sync.time.ms": Replacement(_SCALA, "remove it: clients do not connect to ZooKeeper"),
    "auto.commit.enable": Replacement(_SCALA, "use enable.auto.commit"),
    "fetch.message.max.bytes": Replacement(_SCALA, "use max.partition.fetch.bytes"),
    "fetch.wait.max.ms": Replacement(_SCALA, "use fetch.max.wait.ms"),
    "consumer.timeout.ms": Replacement(_SCALA, "use the timeout argument of poll()"),
    "offsets.storage": Replacement(_SCALA, "remove it: Kafka stores the offsets"),
    "dual.commit.enabled": Replacement(_SCALA, "remove it: Kafka stores the offsets"),
    "rebalance.max.retries": Replacement(_SCALA, "remove it: brokers coordinate rebalances"),
    "rebalance.backoff.ms": Replacement(_SCALA, "remove it: brokers coordinate rebalances"),
    "queued.max.message.chunks": Replacement(_SCALA, "use max.poll.records"),
    "num.consumer.fetchers": Replacement(_SCALA, "use more consumers"),
}
_CLIENTS = "org.apache.kafka.clients"
_VALUES: dict[tuple[str, str], Replacement] = {
    ("auto.offset.reset", "smallest"): Replacement(_SCALA, "use earliest"),
    ("auto.offset.reset", "largest"): Replacement(_SCALA, "use latest"),
    ("partition.assignment.strategy", "range"): Replacement(_SCALA, f"use {_CLIENTS}.consumer.RangeAssignor"),
    ("partition.assignment.strategy", "roundrobin"): Replacement(_SCALA, f"use {_CLIENTS}.consumer.RoundRobinAssignor"),
    ("partitioner.class", f"{_CLIENTS}.producer.internals.DefaultPartitioner"): Replacement(
        (4, 0), "remove it: the default partitioner is built in"
    ),
    ("partitioner.class", f"{_CLIENTS}.producer.UniformStickyPartitioner"): Replacement(
        (4, 0), "remove it: the default partitioner is built in"
    ),
}


def outdated_name(name: str, releases: Releases | None, *, broker: bool) -> str | None:
    """Return a message about a removed setting; None if the name is not listed or the release still has it. Pure."""
    return _message(name, (_BROKER if broker else _CLIENT).get(name), releases)


def outdated_value(name: str, value: str, releases: Releases | None) -> str | None:
    """Return a message about a removed value of a client setting; None as in `outdated_name`. Pure."""
    return _message(f"{name}={value}", _VALUES.get((name, value.strip())), releases)


def _message(setting: str, replacement: Replacement | None, releases: Releases | None) -> str | None:
    if replacement is None or (releases is not None and releases.lowest < replacement.since):
        return None
    return f"{setting} was removed in {format_release(replacement.since)}: {replacement.advice}"
