"""Rules about broker settings that can lose data or stop clients, of live brokers and of server.properties."""

from __future__ import annotations

from collections.abc import Callable

from kctl.doctor.releases import parse_releases
from kctl.doctor.rule import Evaluate, Issue, Rule, Severity, Versions, grouped_by_message
from kctl.doctor.rule_facts import EffectiveSettings, RuleFacts, readable_brokers, uses_zookeeper
from kctl.doctor.rules_sizes import per_broker
from kctl.features.levels import level_name
from kctl.model import ClusterState

_SAFE_RF = 3  # replication factor that Kafka's defaults use for internal topics


def _recommended_rf(facts: RuleFacts) -> int:
    """Return the recommended replication factor: 3, or the number of brokers if there are fewer."""
    return _SAFE_RF if facts.broker_count is None else min(_SAFE_RF, max(facts.broker_count, 1))


def _per_broker_with_count(judge: Callable[[EffectiveSettings, int], str | None]) -> Evaluate:
    def evaluate(facts: RuleFacts) -> list[Issue]:
        return grouped_by_message((each.owner, judge(each, _recommended_rf(facts))) for each in readable_brokers(facts))

    return evaluate


def _unclean(settings: EffectiveSettings) -> str | None:
    return "unclean.leader.election.enable=true" if settings.boolean("unclean.leader.election.enable") else None


def _auto_create(settings: EffectiveSettings) -> str | None:
    if not settings.boolean("auto.create.topics.enable"):
        return None
    return f"auto.create.topics.enable=true, default.replication.factor={_default_rf(settings)}"


def _default_rf(settings: EffectiveSettings) -> int | None:
    return settings.number("default.replication.factor")


def _defaults(settings: EffectiveSettings) -> tuple[int, int] | None:
    """Return default.replication.factor and min.insync.replicas; None if either is unknown."""
    factor, min_isr = _default_rf(settings), settings.number("min.insync.replicas")
    return None if factor is None or min_isr is None else (factor, min_isr)


def _default_replicas(settings: EffectiveSettings, recommended: int) -> str | None:
    factor = _default_rf(settings)
    return f"default.replication.factor={factor}" if factor is not None and factor < min(recommended, 2) else None


def _default_rf_too_high(facts: RuleFacts) -> list[Issue]:
    count = facts.broker_count or 0
    return grouped_by_message(
        (
            each.owner,
            f"default.replication.factor={_default_rf(each)} exceeds the number of brokers ({count})"
            if (_default_rf(each) or 0) > count
            else None,
        )
        for each in readable_brokers(facts)
    )


def _default_min_isr(settings: EffectiveSettings) -> str | None:
    defaults = _defaults(settings)
    if defaults is None or defaults[0] < _SAFE_RF or defaults[1] >= 2:
        return None
    return f"default.replication.factor={defaults[0]}, min.insync.replicas={defaults[1]}"


def _min_isr_blocks(settings: EffectiveSettings) -> str | None:
    defaults = _defaults(settings)
    if defaults is None or defaults[0] < 2 or defaults[1] < defaults[0]:
        return None
    return f"min.insync.replicas={defaults[1]}, default.replication.factor={defaults[0]}"


def _internal_topics(settings: EffectiveSettings, recommended: int) -> str | None:
    names = ("offsets.topic.replication.factor", "transaction.state.log.replication.factor")
    low = [f"{name}={value}" for name in names if (value := settings.number(name)) is not None and value < recommended]
    return ", ".join(low) or None


def _internal_topics_too_many(facts: RuleFacts) -> list[Issue]:
    """Check only internal topics that do not exist yet: the settings take effect when Kafka creates them."""
    assert isinstance(facts.state, ClusterState)
    count = facts.broker_count or 0
    names = {
        "__consumer_offsets": "offsets.topic.replication.factor",
        "__transaction_state": "transaction.state.log.replication.factor",
    }
    relevant = [name for topic, name in names.items() if topic not in facts.state.topics]

    def message(settings: EffectiveSettings) -> str | None:
        too_high = [f"{name}={settings.number(name)}" for name in relevant if (settings.number(name) or 0) > count]
        return f"{', '.join(too_high)}: higher than the number of brokers ({count})" if too_high else None

    return grouped_by_message((each.owner, message(each)) for each in readable_brokers(facts))


def _transaction_min_isr(settings: EffectiveSettings) -> str | None:
    factor = settings.number("transaction.state.log.replication.factor")
    min_isr = settings.number("transaction.state.log.min.isr")
    if factor is None or min_isr is None:
        return None
    if min_isr > factor or (factor >= _SAFE_RF and min_isr < 2) or (factor > 1 and min_isr == factor):
        return f"transaction.state.log.min.isr={min_isr}, transaction.state.log.replication.factor={factor}"
    return None


def _flush(settings: EffectiveSettings) -> str | None:
    names = ("log.flush.interval.messages", "log.flush.interval.ms")
    values = [
        f"{name}={settings.number(name)}" for name in names if name in settings.explicit and settings.number(name)
    ]
    return ", ".join(values) or None


def _replica_lag(settings: EffectiveSettings) -> str | None:
    limit = settings.number("replica.lag.time.max.ms")
    return f"replica.lag.time.max.ms={limit}" if limit is not None and limit < 10_000 else None


def _replica_lag_long(settings: EffectiveSettings) -> str | None:
    limit = settings.number("replica.lag.time.max.ms")
    return f"replica.lag.time.max.ms={limit}" if limit is not None and limit > 120_000 else None


def _session(settings: EffectiveSettings) -> str | None:
    limit = settings.number("zookeeper.session.timeout.ms")
    if limit is None or not uses_zookeeper(settings) or 6_000 <= limit <= 30_000:
        return None
    return f"zookeeper.session.timeout.ms={limit}"


def _controlled_shutdown(settings: EffectiveSettings) -> str | None:
    return "controlled.shutdown.enable=false" if settings.boolean("controlled.shutdown.enable") is False else None


def _auto_leader(settings: EffectiveSettings) -> str | None:
    return "auto.leader.rebalance.enable=false" if settings.boolean("auto.leader.rebalance.enable") is False else None


def _delete_topic(settings: EffectiveSettings) -> str | None:
    return "delete.topic.enable=false" if settings.boolean("delete.topic.enable") is False else None


def _cleaner(settings: EffectiveSettings) -> str | None:
    return "log.cleaner.enable=false" if settings.boolean("log.cleaner.enable") is False else None


def _offsets_retention(settings: EffectiveSettings) -> str | None:
    minutes = settings.number("offsets.retention.minutes")
    return f"offsets.retention.minutes={minutes}" if minutes is not None and minutes < 7 * 24 * 60 else None


def _protocol_version(settings: EffectiveSettings) -> str | None:
    text = settings.text("inter.broker.protocol.version")
    protocol = parse_releases(text)
    if protocol is None or settings.releases is None or not uses_zookeeper(settings):
        return None
    if protocol.lowest[:2] >= settings.releases.lowest[:2]:
        return None
    return f"inter.broker.protocol.version={text}, but the broker runs Kafka {settings.releases}"


def _message_format(settings: EffectiveSettings) -> str | None:
    name = "log.message.format.version"
    text = settings.text(name)
    message_format = parse_releases(text)
    protocol = parse_releases(settings.text("inter.broker.protocol.version"))
    if name not in settings.explicit or message_format is None or message_format.lowest >= (0, 11):
        return None
    if protocol is not None and protocol.lowest >= (3, 0):
        return None  # Kafka ignores the setting (KIP-724)
    return f"{name}={text}"


def _metadata_version(facts: RuleFacts) -> list[Issue]:
    """Report a metadata.version below the level that every broker supports.

    Nothing is reported if a broker did not answer: it may be the one that needs the old level.
    """
    rows = []
    for broker, features in (facts.features or {}).items():
        if isinstance(features, Exception):
            return []
        for each in features:
            if each.feature != "metadata.version" or each.finalized_version is None or each.max_version is None:
                continue
            is_behind = each.finalized_version < each.max_version
            names = level_name(each.feature, each.finalized_version), level_name(each.feature, each.max_version)
            message = f"metadata.version is {names[0]}, but brokers support {names[1]}"
            rows.append((broker, message if is_behind else None))
    return grouped_by_message(rows) if all(message for _, message in rows) else []


def _mixed(facts: RuleFacts) -> list[Issue]:
    assert not isinstance(facts.differences, Exception)
    issues = []
    for each in facts.differences or ():
        texts = ["set" if each.sensitive and v.value is None and v.source else v.value for v in each.values]
        values = ", ".join(
            f"{'not set' if text is None else text or 'empty'} ({', '.join(row.resources)})"
            for text, row in zip(texts, each.values, strict=True)
        )
        issues.append(Issue(f"{each.name}: {values}", tuple(r for row in each.values for r in row.resources)))
    return issues


_B = ("brokers",)
_WITH_ZOOKEEPER = Versions(before=(4, 0))

RULES = (
    Rule(
        "unclean-election", Severity.ERROR, "Out-of-sync replicas can become leader", _B,
        "An unclean election discards every record that only the failed leader had, acknowledged or not. Measured: "
        "4,556 records lost with acks=1; 5,047 with acks=all and min.insync.replicas=1.",
        "KIP-106 (default: false since 0.11)",
        "Set unclean.leader.election.enable=false in server.properties. To apply it immediately: `kctl config set "
        "brokers unclean.leader.election.enable=false`.",
        per_broker(_unclean),
    ),
    Rule(
        "auto-create-topics", Severity.WARNING, "A misspelled topic name creates a topic", _B,
        "A produce or metadata request for a missing topic creates the topic, with the default number of partitions "
        "and replicas. Deleted topics can reappear the same way.",
        "Kafka's documentation, auto.create.topics.enable",
        "Set auto.create.topics.enable=false in server.properties. Create topics with `kctl topic create` or `kctl "
        "topic apply`.",
        per_broker(_auto_create),
    ),
    Rule(
        "default-replicas", Severity.WARNING, "New topics get one replica", _B,
        "A topic that is created without a replication factor exists on one broker only. If that broker's disk fails, "
        "the data is lost.",
        "Kafka's documentation, default.replication.factor",
        "Set default.replication.factor=3 in server.properties, or the number of brokers if there are fewer than 3.",
        _per_broker_with_count(_default_replicas),
    ),
    Rule(
        "default-replicas-too-many", Severity.ERROR, "New topics cannot be created", ("brokers", "broker_count"),
        "Kafka rejects a replication factor that exceeds the number of brokers (INVALID_REPLICATION_FACTOR).",
        "org.apache.kafka.admin.AdminUtils",
        "Lower default.replication.factor in server.properties, or add brokers.", _default_rf_too_high,
    ),
    Rule(
        "default-min-isr", Severity.WARNING, "acks=all may wait for the leader only", _B,
        "With min.insync.replicas=1, a write can be acknowledged while every follower is behind. If the leader then "
        "fails, the write is lost. Acknowledged data survives the loss of min.insync.replicas − 1 brokers. Raising "
        "the default to 2 takes effect immediately for every topic without its own value: a topic with two replicas "
        "then rejects writes with acks=all while one of its brokers is down. Before 3.7, topics with one replica "
        "reject all such writes; if __consumer_offsets is one of them, brokers reject every commit.",
        "Kafka's documentation, min.insync.replicas; KIP-966",
        "First raise topics with fewer than 3 replicas (`kctl topic reassign plan --replication-factor 3 --topic "
        "NAME`), or give them their own min.insync.replicas. Then run `kctl config set brokers "
        "min.insync.replicas=2`. With eligible leader replicas (Kafka 4, KIP-966), this is the only place: Kafka "
        "ignores the value in server.properties.",
        per_broker(_default_min_isr),
    ),
    Rule(
        "default-min-isr-blocks", Severity.WARNING, "New topics reject writes while one broker is down", _B,
        "Writes with acks=all survive the loss of (replicas − min.insync.replicas) brokers; here that is none.",
        "Kafka's documentation, min.insync.replicas",
        "Set min.insync.replicas one below default.replication.factor: 2 of 3. (Do not use 1 of 2: it loses records "
        "that only the leader had.)",
        per_broker(_min_isr_blocks),
    ),
    Rule(
        "internal-topics-settings", Severity.WARNING, "Internal topics will get too few replicas", _B,
        "While a partition of __consumer_offsets or __transaction_state has no leader, its groups or transactions "
        "stop. If the disk fails, the offsets are lost. The settings take effect when Kafka creates the topics; "
        "existing topics must be reassigned.",
        "Kafka's documentation, offsets.topic.replication.factor",
        "Set the settings to 3 in server.properties, or the number of brokers if there are fewer than 3. For existing "
        "topics: `kctl topic reassign plan --replication-factor 3 --topic NAME`.",
        _per_broker_with_count(_internal_topics),
    ),
    Rule(
        "internal-topics-too-many", Severity.ERROR, "Consumer groups or transactions cannot start",
        ("brokers", "broker_count", "state", "topics"),
        "Kafka creates its internal topics with the first group or transaction. With fewer brokers than replicas, the "
        "creation fails and consumers wait forever (COORDINATOR_NOT_AVAILABLE).",
        "Kafka's documentation, offsets.topic.replication.factor",
        "Lower the setting in server.properties, or add brokers.",
        _internal_topics_too_many,
    ),
    Rule(
        "transaction-min-isr", Severity.WARNING, "transaction.state.log.min.isr does not fit the replicas", _B,
        "If it equals the replication factor, one broker down stops all transactions. If it is 1, the state of "
        "transactions can be lost. If it exceeds the replication factor, no transaction can start before 3.7.",
        "Kafka's documentation, transaction.state.log.min.isr",
        "Set transaction.state.log.min.isr=2 with 3 replicas.",
        per_broker(_transaction_min_isr), Versions(since=(0, 11)),
    ),
    Rule(
        "flush-settings", Severity.WARNING, "Kafka flushes every write to disk", _B,
        "Kafka's durability comes from replication, not from fsync. Flushing costs throughput and latency, and a "
        "broker still needs log recovery after a crash.",
        "Kafka's documentation, \"Application vs. OS Flush Management\"",
        "Remove log.flush.interval.messages and log.flush.interval.ms.",
        per_broker(_flush),
    ),
    Rule(
        "replica-lag-time", Severity.WARNING, "Replicas leave the ISR too early", _B,
        "A longer pause of a broker (garbage collection, a slow disk) removes its replicas from every ISR. Old guides "
        "recommend 10 s; the default is 30 s since 2.5.",
        "KIP-537", "Remove replica.lag.time.max.ms (default: 30000).", per_broker(_replica_lag), Versions(since=(0, 9)),
    ),
    Rule(
        "replica-lag-time-long", Severity.WARNING, "Writes wait too long for a hanging follower", _B,
        "With acks=all, every write waits for an unresponsive follower until the follower leaves the ISR. If "
        "that takes longer than the producer's delivery.timeout.ms (default: 120 s), the writes fail.",
        "Kafka's documentation, replica.lag.time.max.ms", "Remove replica.lag.time.max.ms (default: 30000).",
        per_broker(_replica_lag_long), Versions(since=(0, 9)),
    ),
    Rule(
        "zookeeper-session-timeout", Severity.WARNING, "The ZooKeeper session timeout is too short or too long", _B,
        "Below 6 s, a short pause of the broker expires its session and moves all its leaders. Above 30 s, writes "
        "stop for too long after a crash: partitions with the broker in their ISR accept no writes until the session "
        "expires (measured: 7 to 9 s with 6 s). The default is 18 s since 2.5; old guides recommend 6 s.",
        "KIP-537", "Remove zookeeper.session.timeout.ms (default: 18000).", per_broker(_session), _WITH_ZOOKEEPER,
    ),
    Rule(
        "controlled-shutdown", Severity.WARNING, "A normal stop is like a crash", _B,
        "Without controlled shutdown, a broker does not move its leaders to other brokers before it stops.",
        "Kafka's documentation, controlled.shutdown.enable", "Remove controlled.shutdown.enable=false.",
        per_broker(_controlled_shutdown),
    ),
    Rule(
        "auto-leader-rebalance", Severity.INFO, "Leaders do not move back automatically", _B,
        "After a restart, the broker leads no partitions until someone elects the preferred leaders.",
        "Kafka's documentation, auto.leader.rebalance.enable",
        "Run `kctl leader elect --preferred` after each restart.",
        per_broker(_auto_leader),
    ),
    Rule(
        "delete-topic", Severity.INFO, "Topics cannot be deleted", _B,
        "Brokers refuse to delete topics; older releases only mark them for deletion. The default is true since 1.0.",
        "Kafka's documentation, \"Notable changes in 1.0.0\"",
        "Remove delete.topic.enable=false, unless it is intended.", per_broker(_delete_topic),
    ),
    Rule(
        "log-cleaner", Severity.ERROR, "Compacted topics are never compacted", _B,
        "__consumer_offsets and every other compacted topic grow without limit, and coordinators take ever longer to "
        "load.",
        "Kafka's documentation, log.cleaner.enable", "Remove log.cleaner.enable=false.", per_broker(_cleaner),
    ),
    Rule(
        "offsets-retention", Severity.WARNING, "Committed offsets expire early", _B,
        "A group that has no members for this long loses its committed offsets. It restarts at auto.offset.reset, so "
        "records are skipped or read again. Old guides recommend 1 day; the default is 7 days since 2.0.",
        "KIP-186",
        "Set offsets.retention.minutes=10080 (7 days) or more, and at least the retention of the topics.",
        per_broker(_offsets_retention),
    ),
    Rule(
        "protocol-version", Severity.WARNING, "An upgrade was not completed", _B,
        "Brokers still use the old protocol version with each other, and features of the new release stay disabled.",
        "Kafka's documentation, \"Upgrading\"",
        "When you no longer need to downgrade, remove inter.broker.protocol.version and restart the brokers one by "
        "one.",
        per_broker(_protocol_version), _WITH_ZOOKEEPER,
    ),
    Rule(
        "message-format", Severity.WARNING, "Records are stored in an old format", _B,
        "Brokers convert every batch. Before 0.11, the format has no headers, no idempotence and no transactions.",
        "KIP-724 (ignored if inter.broker.protocol.version is 3.0 or later)", "Remove log.message.format.version.",
        per_broker(_message_format), Versions(since=(0, 10), before=(4, 0)),
    ),
    Rule(
        "metadata-version", Severity.INFO, "An upgrade of the KRaft metadata was not completed", ("features",),
        "Features of the new release that change the metadata stay disabled until metadata.version is raised.",
        "KIP-778",
        "When you no longer need to downgrade, run `kctl feature upgrade --release VERSION`.",
        _metadata_version, Versions(since=(3, 3)),
    ),
    Rule(
        "mixed-broker-settings", Severity.WARNING, "Settings differ between brokers", ("differences", "brokers"),
        "The defaults of a new topic, and whether a request is accepted, depend on the broker that handles it.",
        "`kctl config diff`, without settings that are specific to each broker",
        "Use the same values in every server.properties. Remove a value that was set on one broker: `kctl config unset "
        "broker/N NAME`.",
        _mixed,
    ),
)  # fmt: skip
