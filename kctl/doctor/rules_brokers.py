"""Rules about settings of brokers, as they are in force or as they stand in server.properties: what costs data."""

from __future__ import annotations

from collections.abc import Callable

from kctl.doctor.releases import parse_releases
from kctl.doctor.rule import Evaluate, Found, Rule, Severity, Versions, grouped_by_message
from kctl.doctor.rule_facts import RuleFacts, Settings, read_brokers, with_zookeeper
from kctl.doctor.rules_sizes import per_broker
from kctl.model import ClusterState

_FEW = 3  # replicas that internal topics should have, as Kafka's defaults ask for


def _enough(facts: RuleFacts) -> int:
    """How many replicas there can be, three at most."""
    return _FEW if facts.broker_count is None else min(_FEW, max(facts.broker_count, 1))


def _per_broker_with_count(judge: Callable[[Settings, int], str | None]) -> Evaluate:
    def evaluate(facts: RuleFacts) -> list[Found]:
        return grouped_by_message((each.where, judge(each, _enough(facts))) for each in read_brokers(facts))

    return evaluate


def _unclean(settings: Settings) -> str | None:
    return "unclean.leader.election.enable=true" if settings.truth("unclean.leader.election.enable") else None


def _auto_create(settings: Settings) -> str | None:
    if not settings.truth("auto.create.topics.enable"):
        return None
    return f"auto.create.topics.enable=true, with default.replication.factor={_default_rf(settings)}"


def _default_rf(settings: Settings) -> int | None:
    return settings.number("default.replication.factor")


def _defaults(settings: Settings) -> tuple[int, int] | None:
    """default.replication.factor and min.insync.replicas; None when one of them is not known."""
    factor, least = _default_rf(settings), settings.number("min.insync.replicas")
    return None if factor is None or least is None else (factor, least)


def _default_replicas(settings: Settings, enough: int) -> str | None:
    factor = _default_rf(settings)
    return f"default.replication.factor={factor}" if factor is not None and factor < min(enough, 2) else None


def _default_rf_too_high(facts: RuleFacts) -> list[Found]:
    count = facts.broker_count or 0
    return grouped_by_message(
        (
            each.where,
            f"default.replication.factor={_default_rf(each)}, and there are {count} brokers"
            if (_default_rf(each) or 0) > count
            else None,
        )
        for each in read_brokers(facts)
    )


def _default_min_isr(settings: Settings) -> str | None:
    known = _defaults(settings)
    if known is None or known[0] < _FEW or known[1] >= 2:
        return None
    return f"default.replication.factor={known[0]}, min.insync.replicas={known[1]}"


def _min_isr_blocks(settings: Settings) -> str | None:
    known = _defaults(settings)
    if known is None or known[0] < 2 or known[1] < known[0]:
        return None
    return f"min.insync.replicas={known[1]}, default.replication.factor={known[0]}"


def _internal_topics(settings: Settings, enough: int) -> str | None:
    names = ("offsets.topic.replication.factor", "transaction.state.log.replication.factor")
    low = [f"{name}={value}" for name in names if (value := settings.number(name)) is not None and value < enough]
    return ", ".join(low) or None


def _internal_topics_too_many(facts: RuleFacts) -> list[Found]:
    """They count when the topic is made: one that is there is not looked at."""
    assert isinstance(facts.state, ClusterState)
    there, count = facts.state.topics, facts.broker_count or 0
    names = {
        "__consumer_offsets": "offsets.topic.replication.factor",
        "__transaction_state": "transaction.state.log.replication.factor",
    }
    wanted = [name for topic, name in names.items() if topic not in there]

    def said(settings: Settings) -> str | None:
        over = [f"{name}={settings.number(name)}" for name in wanted if (settings.number(name) or 0) > count]
        return (
            f"{', '.join(over)}, and there {'is 1 broker' if count == 1 else f'are {count} brokers'}" if over else None
        )

    return grouped_by_message((each.where, said(each)) for each in read_brokers(facts))


def _transaction_min_isr(settings: Settings) -> str | None:
    factor = settings.number("transaction.state.log.replication.factor")
    least = settings.number("transaction.state.log.min.isr")
    if factor is None or least is None:
        return None
    said = f"transaction.state.log.min.isr={least}, transaction.state.log.replication.factor={factor}"
    return said if least > factor or (factor >= _FEW and least < 2) or (factor > 1 and least == factor) else None


def _flush(settings: Settings) -> str | None:
    names = ("log.flush.interval.messages", "log.flush.interval.ms")
    found = [f"{name}={settings.number(name)}" for name in names if name in settings.given and settings.number(name)]
    return ", ".join(found) or None


def _replica_lag(settings: Settings) -> str | None:
    limit = settings.number("replica.lag.time.max.ms")
    return f"replica.lag.time.max.ms={limit}" if limit is not None and limit < 10_000 else None


def _replica_lag_long(settings: Settings) -> str | None:
    limit = settings.number("replica.lag.time.max.ms")
    return f"replica.lag.time.max.ms={limit}" if limit is not None and limit > 120_000 else None


def _session(settings: Settings) -> str | None:
    limit = settings.number("zookeeper.session.timeout.ms")
    if limit is None or not with_zookeeper(settings) or 6_000 <= limit <= 30_000:
        return None
    return f"zookeeper.session.timeout.ms={limit}"


def _controlled_shutdown(settings: Settings) -> str | None:
    return "controlled.shutdown.enable=false" if settings.truth("controlled.shutdown.enable") is False else None


def _auto_leader(settings: Settings) -> str | None:
    return "auto.leader.rebalance.enable=false" if settings.truth("auto.leader.rebalance.enable") is False else None


def _delete_topic(settings: Settings) -> str | None:
    return "delete.topic.enable=false" if settings.truth("delete.topic.enable") is False else None


def _cleaner(settings: Settings) -> str | None:
    return "log.cleaner.enable=false" if settings.truth("log.cleaner.enable") is False else None


def _offsets_retention(settings: Settings) -> str | None:
    minutes = settings.number("offsets.retention.minutes")
    return f"offsets.retention.minutes={minutes}" if minutes is not None and minutes < 7 * 24 * 60 else None


def _protocol_version(settings: Settings) -> str | None:
    written = settings.text("inter.broker.protocol.version")
    spoken = parse_releases(written)
    if spoken is None or settings.releases is None or not with_zookeeper(settings):
        return None
    if spoken.lowest[:2] >= settings.releases.lowest[:2]:
        return None
    return f"inter.broker.protocol.version={written}, and the broker is {settings.releases}"


def _message_format(settings: Settings) -> str | None:
    name = "log.message.format.version"
    written = settings.text(name)
    format_ = parse_releases(written)
    spoken = parse_releases(settings.text("inter.broker.protocol.version"))
    if name not in settings.given or format_ is None or format_.lowest >= (0, 11):
        return None
    if spoken is not None and spoken.lowest >= (3, 0):
        return None  # ignored then (KIP-724)
    return f"{name}={written}"


def _metadata_version(facts: RuleFacts) -> list[Found]:
    """Levels below what all brokers know. A broker that could not be asked may be the one that needs it."""
    behind = []
    for where, features in (facts.features or {}).items():
        if isinstance(features, Exception):
            return []
        for each in features:
            if each.feature != "metadata.version" or each.finalized_version is None or each.max_version is None:
                continue
            said = f"metadata.version is at level {each.finalized_version}, and brokers have up to {each.max_version}"
            behind.append((where, said if each.finalized_version < each.max_version else None))
    return grouped_by_message(behind) if all(said for _, said in behind) else []


def _mixed(facts: RuleFacts) -> list[Found]:
    assert not isinstance(facts.differences, Exception)
    found = []
    for each in facts.differences or ():
        shown = ["set" if each.sensitive and v.value is None and v.source else v.value for v in each.values]
        said = ", ".join(
            f"{'not set' if value is None else value or '«»'} ({', '.join(row.resources)})"
            for value, row in zip(shown, each.values, strict=True)
        )
        found.append(Found(f"{each.name}: {said}", tuple(r for row in each.values for r in row.resources)))
    return found


_B = ("brokers",)
_WITH_ZOOKEEPER = Versions(before=(4, 0))

RULES = (
    Rule(
        "unclean-election", Severity.ERROR, "Replicas that are not in sync may become leader", _B,
        "An unclean election throws away what only the lost leader had, acknowledged or not: measured, 4,556 records "
        "with acks=1, 5,047 with acks=all and min.insync.replicas=1.",
        "KIP-106 (false by default since 0.11)",
        "unclean.leader.election.enable=false in server.properties; at once with `kctl config set brokers "
        "unclean.leader.election.enable=false`.",
        per_broker(_unclean),
    ),
    Rule(
        "auto-create-topics", Severity.WARNING, "A misspelt name makes a topic", _B,
        "Whoever writes to, or asks for, a topic that does not exist makes it, with the defaults for partitions and "
        "replicas; a deleted topic comes back.",
        "Kafka's documentation, auto.create.topics.enable", "auto.create.topics.enable=false in server.properties; "
        "make "
        "topics with `kctl topic create` or `kctl topic apply`.",
        per_broker(_auto_create),
    ),
    Rule(
        "default-replicas", Severity.WARNING, "New topics get one replica", _B,
        "A topic made without a number of replicas is on one broker only, and gone with its disk.",
        "Kafka's documentation, default.replication.factor", "default.replication.factor=3 in server.properties; "
        "no more than there are brokers.",
        _per_broker_with_count(_default_replicas),
    ),
    Rule(
        "default-replicas-too-many", Severity.ERROR, "New topics cannot be made", ("brokers", "broker_count"),
        "More replicas than brokers are refused (INVALID_REPLICATION_FACTOR).",
        "org.apache.kafka.admin.AdminUtils", "Lower default.replication.factor, or add brokers.", _default_rf_too_high,
    ),
    Rule(
        "default-min-isr", Severity.WARNING, "acks=all may mean the leader alone", _B,
        "With min.insync.replicas=1 a write is acknowledged while every follower is behind; it is lost with the "
        "leader. "
        "Data survives min.insync.replicas − 1 losses. 2 holds at once for every topic without a value of its own: one "
        "with two replicas then takes no writes while a broker is down; before 3.7 one with one replica refuses all of "
        "acks=all, and __consumer_offsets each commit.",
        "Kafka's documentation, min.insync.replicas; KIP-966",
        "First 3 replicas for topics with fewer (`kctl topic reassign plan --replication-factor 3 --topic NAME`), or "
        "a min.insync.replicas of their own; then `kctl config set brokers min.insync.replicas=2`.",
        per_broker(_default_min_isr),
    ),
    Rule(
        "default-min-isr-blocks", Severity.WARNING, "New topics take no writes while one broker is down", _B,
        "Writes with acks=all survive replicas − min.insync.replicas losses: none, here.",
        "Kafka's documentation, min.insync.replicas",
        "min.insync.replicas one below default.replication.factor: 2 of 3. (1 of 2 loses what only the leader had.)",
        per_broker(_min_isr_blocks),
    ),
    Rule(
        "internal-topics-settings", Severity.WARNING, "Kafka's own topics are to have few replicas", _B,
        "With the partition of __consumer_offsets or __transaction_state its groups or transactions stand still, and "
        "their "
        "offsets are lost with the disk. It counts when the topics are made; later they have to be reassigned.",
        "Kafka's documentation, offsets.topic.replication.factor",
        "3 in server.properties, no more than there are brokers; for topics that exist `kctl topic reassign plan "
        "--replication-factor 3 --topic NAME`.",
        _per_broker_with_count(_internal_topics),
    ),
    Rule(
        "internal-topics-too-many",
        Severity.ERROR,
        "Groups, or transactions, cannot begin",
        ("brokers", "broker_count", "state", "topics"),
        "Kafka makes its own topics with the first group or transaction, and cannot with fewer brokers than replicas: "
        "consumers wait for ever (COORDINATOR_NOT_AVAILABLE).",
        "Kafka's documentation, offsets.topic.replication.factor",
        "Lower it in server.properties, or add brokers.",
        _internal_topics_too_many,
    ),
    Rule(
        "transaction-min-isr", Severity.WARNING, "Transactions have too few, or too many, replicas to wait for", _B,
        "Equal to the number of replicas, one broker down stops all transactions; 1, their state may be lost; above, "
        "before 3.7 no transaction can begin.",
        "Kafka's documentation, transaction.state.log.min.isr", "transaction.state.log.min.isr=2 with 3 replicas.",
        per_broker(_transaction_min_isr), Versions(since=(0, 11)),
    ),
    Rule(
        "flush-settings", Severity.WARNING, "Every write is flushed to disk", _B,
        "Kafka is safe by replicas, not by fsync; flushing by settings costs throughput and latency, and recovery "
        "after "
        "a crash is needed all the same.",
        "Kafka's documentation, «Application vs. OS Flush Management»", "Remove log.flush.interval.*.",
        per_broker(_flush),
    ),
    Rule(
        "replica-lag-time", Severity.WARNING, "Replicas fall out of the ISR too soon", _B,
        "A pause of a broker (garbage collection, a slow disk) that is longer takes its replicas out of every ISR. "
        "10 s "
        "in older notes; the default is 30 s since 2.5.",
        "KIP-537", "Remove replica.lag.time.max.ms (30000).", per_broker(_replica_lag), Versions(since=(0, 9)),
    ),
    Rule(
        "replica-lag-time-long", Severity.WARNING, "Writes wait long for a follower that hangs", _B,
        "With acks=all every write waits for a silent follower until it is out of the ISR: longer than a producer's "
        "delivery.timeout.ms (120 s), its writes fail.",
        "Kafka's documentation, replica.lag.time.max.ms", "Remove replica.lag.time.max.ms (30000).",
        per_broker(_replica_lag_long), Versions(since=(0, 9)),
    ),
    Rule(
        "zookeeper-session-timeout", Severity.WARNING, "ZooKeeper's session is too short, or too long", _B,
        "Below 6 s a pause of the broker ends its session and moves all its leaders; after a crash nothing that has "
        "it in "
        "its ISR is written until the session ends (7 to 9 s at 6 s, measured). 6 s in older notes; the default is "
        "18 s "
        "since 2.5.",
        "KIP-537", "Remove zookeeper.session.timeout.ms (18000).", per_broker(_session), _WITH_ZOOKEEPER,
    ),
    Rule(
        "controlled-shutdown", Severity.WARNING, "A stop is like a crash", _B,
        "Without controlled shutdown a broker does not hand its leaders over before it stops.",
        "Kafka's documentation, controlled.shutdown.enable", "Remove controlled.shutdown.enable=false.",
        per_broker(_controlled_shutdown),
    ),
    Rule(
        "auto-leader-rebalance", Severity.INFO, "Leaders do not go back by themselves", _B,
        "After a restart the broker leads nothing until somebody elects the preferred leaders.",
        "Kafka's documentation, auto.leader.rebalance.enable", "`kctl leader elect --preferred` after each restart.",
        per_broker(_auto_leader),
    ),
    Rule(
        "delete-topic", Severity.INFO, "Topics cannot be deleted", _B,
        "Deletion is refused; older releases only marked the topic. It is on by default since 1.0.",
        "Kafka's documentation, «Notable changes in 1.0.0»", "Remove delete.topic.enable=false, unless it is "
        "meant.", per_broker(_delete_topic),
    ),
    Rule(
        "log-cleaner", Severity.ERROR, "Compacted topics are never cleaned", _B,
        "__consumer_offsets and every compacted topic grow for ever, and coordinators take longer and longer to load.",
        "Kafka's documentation, log.cleaner.enable", "Remove log.cleaner.enable=false.", per_broker(_cleaner),
    ),
    Rule(
        "offsets-retention", Severity.WARNING, "Groups forget their offsets soon", _B,
        "A group without members for longer loses its commits and begins where auto.offset.reset says: records are "
        "skipped or read again. One day in older notes; the default is 7 days since 2.0.",
        "KIP-186", "offsets.retention.minutes=10080 or more, not below the topics' retention.",
        per_broker(_offsets_retention),
    ),
    Rule(
        "protocol-version", Severity.WARNING, "An upgrade was not finished", _B,
        "Brokers speak an old version with each other, and features of the release stay off.",
        "Kafka's documentation, «Upgrading»", "When no downgrade is wanted any more: remove "
        "inter.broker.protocol.version, and restart broker by broker.",
        per_broker(_protocol_version), _WITH_ZOOKEEPER,
    ),
    Rule(
        "message-format", Severity.WARNING, "Records are kept in an old format", _B,
        "Every batch is converted on its way; there are no headers, no idempotence and no transactions before 0.11.",
        "KIP-724 (ignored when inter.broker.protocol.version is 3.0 or newer)", "Remove log.message.format.version.",
        per_broker(_message_format), Versions(since=(0, 10), before=(4, 0)),
    ),
    Rule(
        "metadata-version", Severity.INFO, "An upgrade of a KRaft cluster was not finished", ("features",),
        "What newer releases write into the metadata stays off until its version is raised.",
        "KIP-778", "When no downgrade is wanted any more: kafka-features.sh upgrade --release-version.",
        _metadata_version, Versions(since=(3, 3)),
    ),
    Rule(
        "mixed-broker-settings", Severity.WARNING, "Brokers differ in what they should have alike", ("differences",
        "brokers"),
        "What a topic gets, or whether a request is taken, depends on which broker leads or answers.",
        "`kctl config diff`, without what each broker has for itself", "Make server.properties alike, or unset what "
        "was set for one broker: `kctl config unset broker/N NAME`.",
        _mixed,
    ),
)  # fmt: skip
