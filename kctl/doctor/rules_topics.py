"""Rules about topics: replicas, min.insync.replicas, and topic configs that override broker settings."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from kctl.base.text import counted
from kctl.doctor.rule import Issue, Rule, Severity, Versions, grouped_by_message
from kctl.doctor.rule_facts import EffectiveSettings, RuleFacts, readable_topics
from kctl.doctor.rules_sizes import LARGE_MESSAGE, retention_message
from kctl.model import ClusterState, TopicState

OFFSETS, TRANSACTIONS = "__consumer_offsets", "__transaction_state"
_INTERNAL = frozenset({OFFSETS, TRANSACTIONS, "__cluster_metadata", "__share_group_state"})
TOPIC_CONFIGS = (
    "unclean.leader.election.enable", "min.insync.replicas", "cleanup.policy", "retention.ms", "retention.bytes",
    "segment.ms", "segment.bytes", "flush.messages", "flush.ms", "max.message.bytes",
)  # fmt: skip


def _topics(facts: RuleFacts) -> list[TopicState]:
    assert isinstance(facts.state, ClusterState)
    return [facts.state.topics[name] for name in sorted(facts.state.topics)]


def _user_topics(facts: RuleFacts) -> Iterator[tuple[TopicState, EffectiveSettings]]:
    """Yield (topic, settings) of each topic that is not internal and whose settings are readable."""
    by_name = {topic.name: topic for topic in _topics(facts)}
    for name, settings in readable_topics(facts):
        if name in by_name and name not in _INTERNAL:
            yield by_name[name], settings


def _per_user_topic(judge: Callable[[int, int], str | None]) -> Callable[[RuleFacts], list[Issue]]:
    """Return a rule function that calls `judge` with (replication factor, min.insync.replicas) of each user topic."""

    def evaluate(facts: RuleFacts) -> list[Issue]:
        return grouped_by_message(
            (topic.name, judge(topic.replication_factor, min_isr))
            for topic, settings in _user_topics(facts)
            if (min_isr := settings.number("min.insync.replicas")) is not None
        )

    return evaluate


def _unclean(facts: RuleFacts) -> list[Issue]:
    name = "unclean.leader.election.enable"
    return grouped_by_message(
        (topic, f"{name}=true" if settings.boolean(name) and name in settings.explicit else None)
        for topic, settings in readable_topics(facts)
    )


def _broker_count(facts: RuleFacts) -> int:
    """Return the number of brokers, down ones included: the recommended replication factor depends on all of them."""
    assert isinstance(facts.state, ClusterState)
    return facts.broker_count or len(facts.state.brokers)


def _single(facts: RuleFacts) -> list[Issue]:
    """Report topics with one replica; only as info if the cluster has one broker."""
    names = tuple(t.name for t in _topics(facts) if t.replication_factor == 1 and t.name not in _INTERNAL)
    one_broker = _broker_count(facts) < 2
    return [Issue("1 replica", names, Severity.INFO if one_broker else None)] if names else []


def _leader_alone(factor: int, min_isr: int) -> str | None:
    return f"{factor} replicas, min.insync.replicas={min_isr}" if factor >= 3 and min_isr < 2 else None


def _leader_alone_of_two(factor: int, min_isr: int) -> str | None:
    return f"2 replicas, min.insync.replicas={min_isr}" if factor == 2 and min_isr < 2 else None


def _blocks(factor: int, min_isr: int) -> str | None:
    """Report topics that wait for all replicas. A min.insync.replicas above the replicas counts as all (KIP-966)."""
    return f"{factor} replicas, min.insync.replicas={min_isr}" if factor > 1 and min_isr >= factor else None


def _below_majority(factor: int, min_isr: int) -> str | None:
    majority = factor // 2 + 1
    if factor < 4 or not 2 <= min_isr < majority:
        return None
    return f"{factor} replicas, min.insync.replicas={min_isr}: a majority is {majority}"


def _over(factor: int, min_isr: int) -> str | None:
    return f"{counted(factor, 'replica')}, min.insync.replicas={min_isr}" if factor and min_isr > factor else None


def _internal(facts: RuleFacts) -> list[Issue]:
    recommended = min(3, _broker_count(facts))
    rows = ((t.name, t.replication_factor) for t in _topics(facts) if t.name in _INTERNAL)
    return [
        Issue(f"{factor} of {recommended} replicas", (name,), Severity.ERROR if factor == 1 else None)
        for name, factor in rows
        if 0 < factor < recommended
    ]


def _internal_min_isr(facts: RuleFacts) -> list[Issue]:
    factors = {topic.name: topic.replication_factor for topic in _topics(facts)}
    return grouped_by_message(
        (name, _leader_alone(factors[name], min_isr) or _blocks(factors[name], min_isr))
        for name, settings in readable_topics(facts)
        if name in (OFFSETS, TRANSACTIONS) and (min_isr := settings.number("min.insync.replicas")) is not None
    )


def _not_compacted(facts: RuleFacts) -> list[Issue]:
    return grouped_by_message(
        (name, f"cleanup.policy={settings.text('cleanup.policy')}" if _uncompacted(settings) else None)
        for name, settings in readable_topics(facts)
        if name in (OFFSETS, TRANSACTIONS)
    )


def _uncompacted(settings: EffectiveSettings) -> bool:
    policy = settings.items("cleanup.policy")
    return bool(policy) and policy != ["compact"]


def _mixed_factors(facts: RuleFacts) -> list[Issue]:
    def message(topic: TopicState) -> str | None:
        factors = sorted({len(p.replicas) for p in topic.partitions})
        return f"partitions with {' and '.join(map(str, factors))} replicas" if len(factors) > 1 else None

    return grouped_by_message((topic.name, message(topic)) for topic in _topics(facts))


def _retention(facts: RuleFacts) -> list[Issue]:
    """Check only topics with their own values; the rule "retention" checks the broker defaults."""
    return grouped_by_message(
        (topic.name, retention_message(settings.number("retention.ms"), settings.number("segment.ms")))
        for topic, settings in _user_topics(facts)
        if settings.explicit & {"retention.ms", "segment.ms"} and "delete" in settings.items("cleanup.policy")
    )


def _retention_bytes(facts: RuleFacts) -> list[Issue]:
    def message(settings: EffectiveSettings) -> str | None:
        limit, segment = settings.number("retention.bytes"), settings.number("segment.bytes")
        if limit is None or segment is None or limit < 0 or limit >= segment:
            return None
        return f"retention.bytes={limit}, segment.bytes={segment}"

    return grouped_by_message(
        (topic.name, message(settings))
        for topic, settings in _user_topics(facts)
        if settings.explicit & {"retention.bytes", "segment.bytes"} and "delete" in settings.items("cleanup.policy")
    )


def _flush(facts: RuleFacts) -> list[Issue]:
    names = ("flush.messages", "flush.ms")
    return grouped_by_message(
        (topic.name, ", ".join(f"{n}={settings.text(n)}" for n in names if n in settings.explicit) or None)
        for topic, settings in _user_topics(facts)
    )


def _large(facts: RuleFacts) -> list[Issue]:
    def message(settings: EffectiveSettings) -> str | None:
        size = settings.number("max.message.bytes")
        explicit = "max.message.bytes" in settings.explicit
        return f"max.message.bytes={size}" if explicit and size is not None and size > LARGE_MESSAGE else None

    return grouped_by_message((topic.name, message(settings)) for topic, settings in _user_topics(facts))


_T, _BOTH = ("topics",), ("state", "topics")

RULES = (
    Rule(
        "topic-unclean-election", Severity.ERROR, "The topic allows out-of-sync replicas to become leader", _T,
        "The topic loses acknowledged records when its leader and the rest of the ISR fail. The setting takes effect "
        "within a second.",
        "KIP-106; measured", "Run `kctl config unset topic/NAME unclean.leader.election.enable`.", _unclean,
    ),
    Rule(
        "topic-one-replica", Severity.WARNING, "Topics with one replica", _BOTH,
        "While its broker is down, the topic is unavailable. If the disk fails, the data is lost. Every broker "
        "restart is an outage.",
        "Kafka's documentation, \"Replication\"",
        "Run `kctl topic reassign plan --replication-factor 3 --topic NAME`.", _single,
    ),
    Rule(
        "topic-min-isr", Severity.WARNING, "acks=all may wait for the leader only", _BOTH,
        "A write can be acknowledged when only the leader has it, and is lost if the leader fails. Measured: an "
        "unclean election lost 5,047 acknowledged records with min.insync.replicas=1, and none with 2.",
        "Kafka's documentation, min.insync.replicas", "Run `kctl config set topic/NAME min.insync.replicas=2`.",
        _per_user_topic(_leader_alone),
    ),
    Rule(
        "topic-min-isr-minority", Severity.INFO, "min.insync.replicas is less than half of the replicas", _BOTH,
        "Acknowledged data survives the loss of min.insync.replicas − 1 brokers; writes survive the loss of replicas − "
        "min.insync.replicas. N/2+1 balances the two (2 of 3, 3 of 5).",
        "Kafka's documentation, min.insync.replicas",
        "Set min.insync.replicas=N/2+1, unless availability of writes matters more.",
        _per_user_topic(_below_majority),
    ),
    Rule(
        "topic-two-replicas", Severity.INFO, "Two replicas are either safe or highly available, not both", _BOTH,
        "With min.insync.replicas=1, a record may be on the leader only. With 2, one broker down stops writes.",
        "Kafka's documentation, min.insync.replicas", "Use three replicas and min.insync.replicas=2.",
        _per_user_topic(_leader_alone_of_two),
    ),
    Rule(
        "topic-min-isr-blocks", Severity.WARNING, "One broker down stops writes", _BOTH,
        "Writes with acks=all survive the loss of (replicas − min.insync.replicas) brokers; here that is none. A "
        "rolling restart stops writes, too.",
        "Kafka's documentation, min.insync.replicas",
        "Set min.insync.replicas one below the number of replicas: 2 of 3. (Do not use 1 of 2: it loses records that "
        "only the leader had. First run `kctl topic reassign plan --replication-factor 3 --topic NAME`.)",
        _per_user_topic(_blocks),
    ),
    Rule(
        "topic-min-isr-over", Severity.INFO, "min.insync.replicas exceeds the number of replicas", _BOTH,
        "Kafka treats it as the number of replicas: writes with acks=all succeed while all replicas are in sync, and "
        "fail while one is down.",
        "KIP-966, kafka.cluster.Partition.effectiveMinIsr", "Add replicas, or lower min.insync.replicas.",
        _per_user_topic(_over), Versions(since=(3, 7)),
    ),
    Rule(
        "topic-min-isr-refuses", Severity.ERROR, "Writes with acks=all always fail", _BOTH,
        "min.insync.replicas exceeds the number of replicas, so brokers reject every write with acks=all "
        "(NOT_ENOUGH_REPLICAS).",
        "kafka.cluster.Partition, before KIP-966", "Add replicas, or lower min.insync.replicas.",
        _per_user_topic(_over), Versions(before=(3, 7)),
    ),
    Rule(
        "internal-topic-replicas", Severity.WARNING, "Internal topics have too few replicas", _BOTH,
        "While a partition has no leader, its groups or transactions stop. If offsets are lost, records are read "
        "again or skipped.",
        "Kafka's documentation, offsets.topic.replication.factor",
        "Run `kctl topic reassign plan --replication-factor 3 --topic NAME`.", _internal,
    ),
    Rule(
        "internal-topic-min-isr", Severity.WARNING, "min.insync.replicas does not fit the internal topics", _BOTH,
        "With 1, a commit or the state of a transaction can be lost with its leader. If it equals the number of "
        "replicas, one broker down stops groups or transactions.",
        "Kafka's documentation, min.insync.replicas, transaction.state.log.min.isr",
        "If the topic has fewer than 3 replicas, first run `kctl topic reassign plan --replication-factor 3 --topic "
        "NAME`. Then run `kctl config set topic/NAME min.insync.replicas=2`.",
        _internal_min_isr,
    ),
    Rule(
        "internal-topic-policy", Severity.ERROR, "Internal topics are not compacted", _T,
        "With time-based deletion, groups lose committed offsets that they still need.",
        "org.apache.kafka.coordinator.group.OffsetConfig",
        "Run `kctl config set topic/NAME cleanup.policy=compact`.",
        _not_compacted,
    ),
    Rule(
        "topic-mixed-replicas", Severity.WARNING, "Partitions of a topic have different replication factors", _BOTH,
        "This is normal during a reassignment that changes the replication factor. Afterward, some partitions survive "
        "fewer failures than others.",
        "`kctl topic describe`", "Run `kctl topic reassign plan --replication-factor N --topic NAME`.", _mixed_factors,
    ),
    Rule(
        "topic-retention", Severity.INFO, "Records live longer than the topic's retention", _BOTH,
        "Kafka deletes a segment when its newest record has expired, and closes a segment when it is full or after "
        "segment.ms. The oldest record can live for segment.ms + retention.ms. This matters if data must be deleted "
        "on time.",
        "kafka.log.UnifiedLog.deleteRetentionMsBreachedSegments",
        "Lower segment.ms: `kctl config set topic/NAME segment.ms=MS`.", _retention,
        Versions(since=(0, 10, 1)),
    ),
    Rule(
        "topic-size-limit", Severity.INFO, "The topic's retention size is smaller than a segment", _BOTH,
        "Kafka deletes whole segments, so a partition keeps up to retention.bytes plus one segment.",
        "kafka.log.UnifiedLog.deleteRetentionSizeBreachedSegments",
        "Lower segment.bytes, or plan disks for one more segment per partition.",
        _retention_bytes,
    ),
    Rule(
        "topic-flush", Severity.WARNING, "Topic configs force flushes to disk", _BOTH,
        "Kafka's durability comes from replication, not from fsync. Flushing costs throughput and latency.",
        "Kafka's documentation, \"Application vs. OS Flush Management\"",
        "Run `kctl config unset topic/NAME flush.messages flush.ms`.", _flush,
    ),
    Rule(
        "topic-large-messages", Severity.INFO, "The topic accepts very large messages", _BOTH,
        "Brokers and clients hold whole batches in memory. Producers must raise max.request.size as well.",
        "Kafka's documentation, max.message.bytes", "Store large objects outside of Kafka if possible.", _large,
    ),
)  # fmt: skip
