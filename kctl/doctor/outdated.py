"""Names and values that notes, and files, still have, and that Kafka does not know any more: what took their place.

Sources: Kafka's upgrade notes for 0.9 (replica.lag.max.messages), 2.0 (the Scala clients are gone), 3.0 (host.name,
port and quotas in server.properties), 4.0 (DefaultPartitioner); KAFKA-3353 (0.11, settings of the first Java producer).
"""

from __future__ import annotations

from typing import NamedTuple

from kctl.doctor.releases import Release, Releases, dotted


class Replaced(NamedTuple):
    """since: the release that does not have it any more. instead: a name, a value, or some words."""

    since: Release
    instead: str


_SCALA = (2, 0)
_BROKER: dict[str, Replaced] = {
    "host.name": Replaced((3, 0), "listeners"),
    "port": Replaced((3, 0), "listeners"),
    "advertised.host.name": Replaced((3, 0), "advertised.listeners"),
    "advertised.port": Replaced((3, 0), "advertised.listeners"),
    "quota.producer.default": Replaced((3, 0), "`kctl quota set`"),
    "quota.consumer.default": Replaced((3, 0), "`kctl quota set`"),
    "replica.lag.max.messages": Replaced((0, 9), "replica.lag.time.max.ms"),
}
_CLIENT: dict[str, Replaced] = {
    "block.on.buffer.full": Replaced((0, 11), "max.block.ms"),
    "metadata.fetch.timeout.ms": Replaced((0, 11), "max.block.ms"),
    "timeout.ms": Replaced((0, 11), "request.timeout.ms"),
    "metadata.broker.list": Replaced(_SCALA, "bootstrap.servers"),
    "request.required.acks": Replaced(_SCALA, "acks"),
    "request.timeout": Replaced(_SCALA, "request.timeout.ms"),
    "producer.type": Replaced(_SCALA, "send() never waits"),
    "compression.codec": Replaced(_SCALA, "compression.type"),
    "serializer.class": Replaced(_SCALA, "value.serializer"),
    "key.serializer.class": Replaced(_SCALA, "key.serializer"),
    "message.send.max.retries": Replaced(_SCALA, "retries"),
    "queue.buffering.max.ms": Replaced(_SCALA, "linger.ms"),
    "queue.buffering.max.messages": Replaced(_SCALA, "buffer.memory"),
    "batch.num.messages": Replaced(_SCALA, "batch.size, in bytes"),
    "topic.metadata.refresh.interval.ms": Replaced(_SCALA, "metadata.max.age.ms"),
    "zookeeper.connect": Replaced(_SCALA, "bootstrap.servers"),
    "zookeeper.session.timeout.ms": Replaced(_SCALA, "session.timeout.ms"),
    "zookeeper.connection.timeout.ms": Replaced(_SCALA, "nothing: clients do not talk to ZooKeeper"),
    "zookeeper.sync.time.ms": Replaced(_SCALA, "nothing: clients do not talk to ZooKeeper"),
    "auto.commit.enable": Replaced(_SCALA, "enable.auto.commit"),
    "fetch.message.max.bytes": Replaced(_SCALA, "max.partition.fetch.bytes"),
    "fetch.wait.max.ms": Replaced(_SCALA, "fetch.max.wait.ms"),
    "consumer.timeout.ms": Replaced(_SCALA, "the time given to poll()"),
    "offsets.storage": Replaced(_SCALA, "nothing: offsets are kept by Kafka"),
    "dual.commit.enabled": Replaced(_SCALA, "nothing: offsets are kept by Kafka"),
    "rebalance.max.retries": Replaced(_SCALA, "nothing: brokers lead rebalances"),
    "rebalance.backoff.ms": Replaced(_SCALA, "nothing: brokers lead rebalances"),
    "queued.max.message.chunks": Replaced(_SCALA, "max.poll.records"),
    "num.consumer.fetchers": Replaced(_SCALA, "more consumers"),
}
_CLIENTS = "org.apache.kafka.clients"
_VALUES: dict[tuple[str, str], Replaced] = {
    ("auto.offset.reset", "smallest"): Replaced(_SCALA, "earliest"),
    ("auto.offset.reset", "largest"): Replaced(_SCALA, "latest"),
    ("partition.assignment.strategy", "range"): Replaced(_SCALA, f"{_CLIENTS}.consumer.RangeAssignor"),
    ("partition.assignment.strategy", "roundrobin"): Replaced(_SCALA, f"{_CLIENTS}.consumer.RoundRobinAssignor"),
    ("partitioner.class", f"{_CLIENTS}.producer.internals.DefaultPartitioner"): Replaced(
        (4, 0), "none: it is built in"
    ),
    ("partitioner.class", f"{_CLIENTS}.producer.UniformStickyPartitioner"): Replaced((4, 0), "none: it is built in"),
}


def outdated_name(name: str, releases: Releases | None, *, broker: bool) -> str | None:
    """What to say of a setting's name; None for one that is not known here, or still holds for the release. Pure."""
    return _said(name, (_BROKER if broker else _CLIENT).get(name), releases)


def outdated_value(name: str, value: str, releases: Releases | None) -> str | None:
    """The same of a client's value."""
    return _said(f"{name}={value}", _VALUES.get((name, value.strip())), releases)


def _said(what: str, replaced: Replaced | None, releases: Releases | None) -> str | None:
    if replaced is None or (releases is not None and releases.lowest < replaced.since):
        return None
    return f"{what} is gone since {dotted(replaced.since)}: {replaced.instead}"
