"""Rules about topics: replicas, what acks=all means for them, and what overrides the brokers' settings."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from kctl.base.text import counted
from kctl.doctor.rule import Found, Rule, Severity, Versions, grouped_by_message
from kctl.doctor.rule_facts import RuleFacts, Settings, read_topics
from kctl.doctor.rules_sizes import LARGE_MESSAGE, retention_said
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


def _own(facts: RuleFacts) -> Iterator[tuple[TopicState, Settings]]:
    """Users' topics with their settings, as far as they were read."""
    known = {topic.name: topic for topic in _topics(facts)}
    for name, settings in read_topics(facts):
        if name in known and name not in _INTERNAL:
            yield known[name], settings


def _each(judge: Callable[[int, int], str | None]) -> Callable[[RuleFacts], list[Found]]:
    """A judge of (replicas, min.insync.replicas), over users' topics."""

    def evaluate(facts: RuleFacts) -> list[Found]:
        return grouped_by_message(
            (topic.name, judge(topic.replication_factor, least))
            for topic, settings in _own(facts)
            if (least := settings.number("min.insync.replicas")) is not None
        )

    return evaluate


def _unclean(facts: RuleFacts) -> list[Found]:
    name = "unclean.leader.election.enable"
    return grouped_by_message(
        (topic, f"{name}=true" if settings.truth(name) and name in settings.given else None)
        for topic, settings in read_topics(facts)
    )


def _broker_count(facts: RuleFacts) -> int:
    """With those that are down: what a topic has too few of does not change while they are."""
    assert isinstance(facts.state, ClusterState)
    return facts.broker_count or len(facts.state.brokers)


def _single(facts: RuleFacts) -> list[Found]:
    """In a cluster of one broker there is no other way: it is told, and no more."""
    names = tuple(t.name for t in _topics(facts) if t.replication_factor == 1 and t.name not in _INTERNAL)
    alone = _broker_count(facts) < 2
    return [Found("one replica", names, Severity.INFO if alone else None)] if names else []


def _leader_alone(factor: int, least: int) -> str | None:
    return f"{factor} replicas, min.insync.replicas={least}" if factor >= 3 and least < 2 else None


def _leader_alone_of_two(factor: int, least: int) -> str | None:
    return f"2 replicas, min.insync.replicas={least}" if factor == 2 and least < 2 else None


def _blocks(factor: int, least: int) -> str | None:
    """With more than there are, all are asked for (KIP-966)."""
    return f"{factor} replicas, min.insync.replicas={least}" if factor > 1 and least >= factor else None


def _below_majority(factor: int, least: int) -> str | None:
    majority = factor // 2 + 1
    if factor < 4 or not 2 <= least < majority:
        return None
    return f"{factor} replicas, min.insync.replicas={least}: a majority is {majority}"


def _over(factor: int, least: int) -> str | None:
    return f"{counted(factor, 'replica')}, min.insync.replicas={least}" if factor and least > factor else None


def _internal(facts: RuleFacts) -> list[Found]:
    enough = min(3, _broker_count(facts))
    rows = ((t.name, t.replication_factor) for t in _topics(facts) if t.name in _INTERNAL)
    return [
        Found(f"{factor} of {enough} replicas", (name,), Severity.ERROR if factor == 1 else None)
        for name, factor in rows
        if 0 < factor < enough
    ]


def _internal_min_isr(facts: RuleFacts) -> list[Found]:
    known = {topic.name: topic.replication_factor for topic in _topics(facts)}
    return grouped_by_message(
        (name, _leader_alone(known[name], least) or _blocks(known[name], least))
        for name, settings in read_topics(facts)
        if name in (OFFSETS, TRANSACTIONS) and (least := settings.number("min.insync.replicas")) is not None
    )


def _not_compacted(facts: RuleFacts) -> list[Found]:
    return grouped_by_message(
        (name, f"cleanup.policy={settings.text('cleanup.policy')}" if _uncompacted(settings) else None)
        for name, settings in read_topics(facts)
        if name in (OFFSETS, TRANSACTIONS)
    )


def _uncompacted(settings: Settings) -> bool:
    policy = settings.items("cleanup.policy")
    return bool(policy) and policy != ["compact"]


def _mixed_factors(facts: RuleFacts) -> list[Found]:
    def said(topic: TopicState) -> str | None:
        factors = sorted({len(p.replicas) for p in topic.partitions})
        return f"partitions with {' and '.join(map(str, factors))} replicas" if len(factors) > 1 else None

    return grouped_by_message((topic.name, said(topic)) for topic in _topics(facts))


def _retention(facts: RuleFacts) -> list[Found]:
    """Only of topics with settings of their own: the rest follows from the brokers'."""
    return grouped_by_message(
        (topic.name, retention_said(settings.number("retention.ms"), settings.number("segment.ms")))
        for topic, settings in _own(facts)
        if settings.given & {"retention.ms", "segment.ms"} and "delete" in settings.items("cleanup.policy")
    )


def _retention_bytes(facts: RuleFacts) -> list[Found]:
    def said(settings: Settings) -> str | None:
        limit, segment = settings.number("retention.bytes"), settings.number("segment.bytes")
        if limit is None or segment is None or limit < 0 or limit >= segment:
            return None
        return f"retention.bytes={limit}, segment.bytes={segment}"

    return grouped_by_message(
        (topic.name, said(settings))
        for topic, settings in _own(facts)
        if settings.given & {"retention.bytes", "segment.bytes"} and "delete" in settings.items("cleanup.policy")
    )


def _flush(facts: RuleFacts) -> list[Found]:
    names = ("flush.messages", "flush.ms")
    return grouped_by_message(
        (topic.name, ", ".join(f"{n}={settings.text(n)}" for n in names if n in settings.given) or None)
        for topic, settings in _own(facts)
    )


def _large(facts: RuleFacts) -> list[Found]:
    def said(settings: Settings) -> str | None:
        size = settings.number("max.message.bytes")
        own = "max.message.bytes" in settings.given
        return f"max.message.bytes={size}" if own and size is not None and size > LARGE_MESSAGE else None

    return grouped_by_message((topic.name, said(settings)) for topic, settings in _own(facts))


_T, _BOTH = ("topics",), ("state", "topics")

RULES = (
    Rule(
        "topic-unclean-election", Severity.ERROR, "A topic lets replicas that are not in sync lead", _T,
        "It loses acknowledged records when its leader and the rest of the ISR fail; it works within a second of being "
        "set.",
        "KIP-106; measured", "`kctl config unset topic/NAME unclean.leader.election.enable`", _unclean,
    ),
    Rule(
        "topic-one-replica", Severity.WARNING, "Topics with one replica", _BOTH,
        "While its broker is down nobody reads or writes it; with the disk it is gone. A restart cannot be made safe.",
        "Kafka's documentation, «Replication»", "`kctl topic reassign plan --replication-factor 3 --topic NAME`",
        _single,
    ),
    Rule(
        "topic-min-isr", Severity.WARNING, "acks=all may mean the leader alone", _BOTH,
        "A write is acknowledged when only the leader has it, and lost with it. Measured: with min.insync.replicas=1 "
        "an "
        "unclean election lost 5,047 acknowledged records, with 2 none.",
        "Kafka's documentation, min.insync.replicas", "`kctl config set topic/NAME min.insync.replicas=2`",
        _each(_leader_alone),
    ),
    Rule(
        "topic-min-isr-minority", Severity.INFO, "Fewer than half of many replicas are waited for", _BOTH,
        "What was acknowledged survives min.insync.replicas − 1 losses for certain, writes survive replicas − "
        "min.insync.replicas: N/2+1 is the middle (2 of 3, 3 of 5).",
        "Kafka's documentation, min.insync.replicas", "min.insync.replicas=N/2+1, unless writes matter more.",
        _each(_below_majority),
    ),
    Rule(
        "topic-two-replicas", Severity.INFO, "Two replicas are safe or writable, not both", _BOTH,
        "With min.insync.replicas=1 a record may be on the leader alone; with 2, one broker down stops writes.",
        "Kafka's documentation, min.insync.replicas", "Three replicas, min.insync.replicas=2.",
        _each(_leader_alone_of_two),
    ),
    Rule(
        "topic-min-isr-blocks", Severity.WARNING, "One broker down stops writes", _BOTH,
        "Writes with acks=all survive replicas − min.insync.replicas losses: none. A rolling restart stops them, too.",
        "Kafka's documentation, min.insync.replicas",
        "min.insync.replicas one below the number of replicas: 2 of 3. (1 of 2 loses what only the leader had: first "
        "`kctl topic reassign plan --replication-factor 3 --topic NAME`.)",
        _each(_blocks),
    ),
    Rule(
        "topic-min-isr-over", Severity.INFO, "min.insync.replicas is more than there are replicas", _BOTH,
        "It counts as the number of replicas: with all in sync acks=all is taken, with one down refused.",
        "KIP-966, kafka.cluster.Partition.effectiveMinIsr", "More replicas, or a smaller min.insync.replicas.",
        _each(_over), Versions(since=(3, 7)),
    ),
    Rule(
        "topic-min-isr-refuses", Severity.ERROR, "acks=all is always refused", _BOTH,
        "min.insync.replicas is more than there are replicas: NOT_ENOUGH_REPLICAS for each write with acks=all.",
        "kafka.cluster.Partition, before KIP-966", "More replicas, or a smaller min.insync.replicas.",
        _each(_over), Versions(before=(3, 7)),
    ),
    Rule(
        "internal-topic-replicas", Severity.WARNING, "Kafka's own topics have few replicas", _BOTH,
        "A group or transaction whose partition has no leader stands still; lost offsets are records read again or "
        "skipped.",
        "Kafka's documentation, offsets.topic.replication.factor",
        "`kctl topic reassign plan --replication-factor 3 --topic __consumer_offsets`", _internal,
    ),
    Rule(
        "internal-topic-min-isr",
        Severity.WARNING,
        "Kafka's own topics wait for too few replicas, or for all",
        _BOTH,
        "With 1 a commit, or the state of a transaction, can be lost with its leader; with all of them one broker down "
        "stops groups or transactions.",
        "Kafka's documentation, min.insync.replicas, transaction.state.log.min.isr",
        "First `kctl topic reassign plan --replication-factor 3 --topic NAME` where it has fewer; then `kctl config "
        "set topic/NAME min.insync.replicas=2`",
        _internal_min_isr,
    ),
    Rule(
        "internal-topic-policy", Severity.ERROR, "Kafka's own topics are not compacted", _T,
        "Deleted by time, commits of groups are lost while they are still needed.",
        "org.apache.kafka.coordinator.group.OffsetConfig", "`kctl config set topic/__consumer_offsets "
        "cleanup.policy=compact`",
        _not_compacted,
    ),
    Rule(
        "topic-mixed-replicas", Severity.WARNING, "Partitions of a topic differ in their replicas", _BOTH,
        "While a reassignment changes their number that is normal; after it, some partitions survive less than others.",
        "`kctl topic describe`", "`kctl topic reassign plan --replication-factor N --topic NAME`", _mixed_factors,
    ),
    Rule(
        "topic-retention", Severity.INFO, "Records live longer than the topic's retention", _BOTH,
        "A segment goes when its newest record is old enough; it is closed when it is full, or after segment.ms. The "
        "oldest "
        "record lives up to both together: it matters where data must be gone in time.",
        "kafka.log.UnifiedLog.deleteRetentionMsBreachedSegments", "A smaller segment.ms.", _retention,
        Versions(since=(0, 10, 1)),
    ),
    Rule(
        "topic-size-limit", Severity.INFO, "A topic's size limit is smaller than a segment", _BOTH,
        "Whole segments are deleted: a partition keeps up to retention.bytes and one segment.",
        "kafka.log.UnifiedLog.deleteRetentionSizeBreachedSegments", "A smaller segment.bytes, or count it in.",
        _retention_bytes,
    ),
    Rule(
        "topic-flush", Severity.WARNING, "A topic is flushed to disk by settings", _BOTH,
        "Kafka is safe by replicas, not by fsync: it costs throughput and latency.",
        "Kafka's documentation, «Application vs. OS Flush Management»",
        "`kctl config unset topic/NAME flush.messages flush.ms`", _flush,
    ),
    Rule(
        "topic-large-messages", Severity.INFO, "A topic takes very large messages", _BOTH,
        "Brokers and clients hold whole batches in memory; producers need max.request.size, too.",
        "Kafka's documentation, max.message.bytes", "Keep large objects elsewhere, if that can be.", _large,
    ),
)  # fmt: skip
