"""Rules about sizes and times of brokers: messages against requests, segments against retention, disks, partitions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from kctl.base.text import counted
from kctl.base.units import format_duration, format_size
from kctl.cluster.log_dirs import LogDir
from kctl.doctor.rule import Evaluate, Found, Rule, Severity, Versions, grouped_by_message
from kctl.doctor.rule_facts import RuleFacts, Settings, read_brokers, unread, with_zookeeper
from kctl.model import ClusterState

_BATCH_OVERHEAD = 12  # org.apache.kafka.common.record.Records.LOG_OVERHEAD: what the two defaults differ by
LARGE_MESSAGE = 10 * 1024 * 1024
# Advice for clusters with ZooKeeper, from Kafka 1.1 on; KRaft carries more.
MOST_REPLICAS_PER_BROKER, MOST_REPLICAS = 4_000, 200_000
LARGE_PARTITION = 25 * 10**9  # bytes
CLEANER_BYTES_PER_KEY = (
    24  # org.apache.kafka.storage.internals.log.SkimpyOffsetMap: 16 of the key's hash, 8 of its offset
)
_FEW_KEYS = 500_000
_NO_START = "a broker does not start with 1 MiB a thread, or less"
_LEAST_PER_THREAD = 1 << 20
_LONGEST_AHEAD_MS, _NO_LIMIT = 86_400_000, 2**63 - 1


def per_broker(judge: Callable[[Settings], str | None]) -> Evaluate:
    """One finding for each different thing that is said of brokers."""

    def evaluate(facts: RuleFacts) -> list[Found]:
        return grouped_by_message((each.where, judge(each)) for each in read_brokers(facts))

    return evaluate


def _replica_fetch(settings: Settings) -> str | None:
    message, fetch = settings.number("message.max.bytes"), settings.number("replica.fetch.max.bytes")
    if message is None or fetch is None or message <= fetch + _BATCH_OVERHEAD:
        return None
    return f"message.max.bytes={message}, replica.fetch.max.bytes={fetch}"


def _large_messages(settings: Settings) -> str | None:
    message = settings.number("message.max.bytes")
    return f"message.max.bytes={message}" if message is not None and message > LARGE_MESSAGE else None


def _request_too_small(settings: Settings) -> str | None:
    message, request = settings.number("message.max.bytes"), settings.number("socket.request.max.bytes")
    if message is None or request is None or message <= request:
        return None
    return f"message.max.bytes={message}, socket.request.max.bytes={request}"


def _retention_bytes(settings: Settings) -> str | None:
    retention, segment = settings.number("log.retention.bytes"), settings.number("log.segment.bytes")
    if retention is None or segment is None or retention < 0 or retention >= segment:
        return None
    return f"log.retention.bytes={retention}, log.segment.bytes={segment}"


def retention_ms(settings: Settings) -> int | None:
    """How long records are kept by default, of log.retention.ms, .minutes and .hours; −1: for ever."""
    return _first(settings, {"log.retention.ms": 1, "log.retention.minutes": 60_000, "log.retention.hours": 3_600_000})


def _first(settings: Settings, names: dict[str, int]) -> int | None:
    for name, factor in names.items():
        value = settings.number(name)
        if value is not None:
            return value * factor if value >= 0 else -1
    return None


def _retention_time(settings: Settings) -> str | None:
    retention = retention_ms(settings)
    roll = _first(settings, {"log.roll.ms": 1, "log.roll.hours": 3_600_000})
    return retention_said(retention, roll)


def retention_said(retention: int | None, roll: int | None) -> str | None:
    """What to say of a retention that is shorter than the time after which a segment is rolled. ms; pure."""
    if retention is None or roll is None or retention < 0 or retention >= roll:
        return None
    kept, rolled, lived = (format_duration(each) for each in (retention, roll, retention + roll))
    return f"kept for {kept}, rolled after {rolled}: a record may live {lived}"


def _io_threads(settings: Settings) -> str | None:
    threads, dirs = settings.number("num.io.threads"), len(settings.items("log.dirs"))
    if threads is None or threads >= dirs:
        return None
    return f"num.io.threads={threads}, and {dirs} log dirs"


def _partitions(facts: RuleFacts) -> list[Found]:
    assert isinstance(facts.state, ClusterState)
    if not any(with_zookeeper(each) for each in read_brokers(facts)):
        return []
    counts: dict[int, int] = {}
    for topic in facts.state.topics.values():
        for p in topic.partitions:
            for node in p.replicas:
                counts[node] = counts.get(node, 0) + 1
    found = grouped_by_message(
        (f"broker {node}", f"{count:,} replicas" if count > MOST_REPLICAS_PER_BROKER else None)
        for node, count in sorted(counts.items())
    )
    total = sum(counts.values())
    return [*found, *([Found(f"{total:,} replicas in the cluster")] if total > MOST_REPLICAS else [])]


def _told(facts: RuleFacts) -> dict[int, list[LogDir]]:
    return {node: list(dirs) for node, dirs in (facts.log_dirs or {}).items() if not isinstance(dirs, Exception)}


def _unseen(facts: RuleFacts) -> list[str]:
    """What is in a log dir that is offline is not told; a broker that is down does not tell anything."""
    offline = [
        f"log dir {each.path} of broker {node} is offline: what is in it is not known"
        for node, own in _told(facts).items()
        for each in own
        if each.error
    ]
    return [*unread(facts, ("log_dirs",)), *offline]


def _unseen_room(facts: RuleFacts) -> list[str]:
    untold = [
        f"broker {node} does not tell how much room {each.path} has"
        for node, own in _told(facts).items()
        for each in own
        if each.usable_bytes is None and not each.error
    ]
    return [*_unseen(facts), *untold]


def _room(facts: RuleFacts) -> list[Found]:
    """Whether the others could take over what the fullest broker holds. Needs all brokers to have told all."""
    dirs = _told(facts)
    if len(dirs) < 2 or _unseen_room(facts):
        return []
    free = {node: [each.usable_bytes for each in own] for node, own in dirs.items()}
    held = {node: sum(r.size_bytes for each in own for r in each.replicas) for node, own in dirs.items()}
    node = max(held, key=lambda each: held[each])
    room = sum(size or 0 for other, sizes in free.items() if other != node for size in sizes)
    if held[node] <= room:
        return []
    said = f"broker {node} holds {format_size(held[node])}; the others have room for {format_size(room)}"
    return [Found(said, (f"broker {node}",))]


def _large_partitions(facts: RuleFacts) -> list[Found]:
    sizes: dict[str, int] = {}
    for dirs in _told(facts).values():
        for each in dirs:
            for r in each.replicas:
                if not r.future and r.size_bytes > LARGE_PARTITION:
                    name = f"{r.topic}-{r.partition}"
                    sizes[name] = max(sizes.get(name, 0), r.size_bytes)
    if not sizes:
        return []
    names = sorted(sizes, key=lambda name: -sizes[name])
    above, largest = format_size(LARGE_PARTITION), format_size(sizes[names[0]])
    said = f"{counted(len(names), 'partition')} above {above}, the largest {largest}"
    return [Found(said, tuple(names))]


def _cleaner_buffer(facts: RuleFacts) -> list[Found]:
    grouped = grouped_by_message((each.where, _cleaner_room(each)) for each in read_brokers(facts))
    return [replace(each, severity=Severity.ERROR) if each.message.endswith(_NO_START) else each for each in grouped]


def _cleaner_room(settings: Settings) -> str | None:
    buffer, threads = settings.number("log.cleaner.dedupe.buffer.size"), settings.number("log.cleaner.threads")
    if not buffer or not threads or settings.truth("log.cleaner.enable") is False:
        return None
    said = f"log.cleaner.dedupe.buffer.size={buffer}, log.cleaner.threads={threads}"
    if buffer // threads <= _LEAST_PER_THREAD:
        return f"{said}: {_NO_START}"
    keys = buffer * 9 // (10 * threads * CLEANER_BYTES_PER_KEY)
    return f"{said}: {keys:,} keys each" if keys < _FEW_KEYS else None


def _future(settings: Settings) -> str | None:
    name = "log.message.timestamp.after.max.ms"
    limit = settings.number(name)
    if limit is None or limit <= _LONGEST_AHEAD_MS or settings.text("log.message.timestamp.type") == "LogAppendTime":
        return None
    return f"{name}={'without limit' if limit == _NO_LIMIT else limit}"


_B = ("brokers",)

RULES = (
    Rule(
        "replica-fetch-size", Severity.INFO, "A message may be larger than a replica's fetch", _B,
        "Since 0.10.1 the limit is soft: the first batch is always given, so followers go on, one large batch at a "
        "time. "
        "Older notes call it a loss; it was one before.",
        "KIP-74", "replica.fetch.max.bytes as large as message.max.bytes, if large messages are common.",
        per_broker(_replica_fetch), Versions(since=(0, 10, 1)),
    ),
    Rule(
        "replica-fetch-size-hard", Severity.ERROR, "Followers stop at a large message", _B,
        "Before 0.10.1 a follower cannot fetch a batch above replica.fetch.max.bytes: it falls out of the ISR and "
        "stays out.",
        "KIP-74", "replica.fetch.max.bytes at least as large as message.max.bytes.",
        per_broker(_replica_fetch), Versions(before=(0, 10, 1)),
    ),
    Rule(
        "large-messages", Severity.INFO, "Very large messages are taken", _B,
        "Brokers, producers and consumers hold whole batches in memory; a consumer's max.partition.fetch.bytes of 1 MB "
        "gives it one of them at a time.",
        "Kafka's documentation, message.max.bytes", "Keep large objects elsewhere, or raise it for their topics only "
        "(max.message.bytes).",
        per_broker(_large_messages),
    ),
    Rule(
        "request-size", Severity.ERROR, "The largest messages cannot be sent", _B,
        "A broker closes the connection of a request above socket.request.max.bytes: producers see a disconnect, "
        "not a message that is too large.",
        "org.apache.kafka.common.network.NetworkReceive", "socket.request.max.bytes above message.max.bytes.",
        per_broker(_request_too_small),
    ),
    Rule(
        "size-limit", Severity.INFO, "A size limit smaller than a segment", _B,
        "Whole segments are deleted: a partition keeps up to log.retention.bytes and one segment. Plan disks with "
        "partitions × (retention.bytes + a segment) × replicas.",
        "kafka.log.UnifiedLog.deleteRetentionSizeBreachedSegments", "A smaller log.segment.bytes, or count it in.",
        per_broker(_retention_bytes),
    ),
    Rule(
        "retention", Severity.INFO, "Records live longer than the retention", _B,
        "A segment goes when its newest record is old enough. While a quiet topic is written to, its segment is only "
        "closed when it is full or rolled, so the oldest record lives up to roll and retention together. (The active "
        "segment is rolled and deleted, too, once all of it is old: measured on 3.9.)",
        "kafka.log.UnifiedLog.deleteRetentionMsBreachedSegments", "A shorter log.roll.hours (segment.ms of a topic).",
        per_broker(_retention_time), Versions(since=(0, 10, 1)),
    ),
    Rule(
        "future-timestamps", Severity.INFO, "Records of the future are taken", _B,
        "Retention by time goes by the largest timestamp of a segment: one record of next year keeps its segment, and "
        "all that are newer, until then. (Not the file's time, as in old notes; and not that the segment is active.)",
        "KIP-937; KIP-1030 (an hour by default since 4.0)",
        "log.message.timestamp.after.max.ms=3600000 (message.timestamp.after.max.ms of a topic).",
        per_broker(_future), Versions(since=(3, 6)),
    ),
    Rule(
        "cleaner-buffer", Severity.INFO, "The log cleaner has little room", _B,
        "A pass remembers each key for 24 bytes, 0.9 of the buffer: 5.03 million keys with the default of 128 MiB, "
        "which all threads share. Partitions with more changed keys need several passes; old values stay longer.",
        "org.apache.kafka.storage.internals.log.SkimpyOffsetMap",
        "log.cleaner.dedupe.buffer.size for 24 bytes ÷ 0.9 a key and thread: `kctl capacity --keys` works it out.",
        _cleaner_buffer, Versions(since=(0, 9)),
    ),
    Rule(
        "io-threads", Severity.WARNING, "Fewer request threads than disks", _B,
        "num.io.threads do the reading and writing: some disks have nothing to do while others are waited for.",
        "Kafka's documentation up to 0.11, num.io.threads: «at least as many threads as you have disks»",
        "num.io.threads at least the number of log dirs: `kctl config set brokers num.io.threads=N`.",
        per_broker(_io_threads),
    ),
    Rule(
        "partitions-per-broker", Severity.WARNING, "Very many partitions with ZooKeeper",
        ("brokers", "state", "topics"),
        "When a broker fails, or the controller, one partition after the other gets its leader through ZooKeeper: up "
        "to "
        "4,000 on a broker and 200,000 in a cluster were shown to work (1.1). Before 1.1 it was far fewer; with KRaft "
        "these numbers do not hold.",
        "Apache Kafka's blog, «Apache Kafka Supports 200K Partitions Per Cluster» (2018)",
        "Fewer partitions, more brokers, or KRaft.", _partitions, Versions(since=(1, 1), before=(4, 0)),
    ),
    Rule(
        "disk-headroom", Severity.WARNING, "No room for what a lost broker holds", ("log_dirs",),
        "When a broker is gone for good, its replicas are copied to the others. Brokers ≥ data × replicas ÷ disk, and "
        "headroom. Log dirs that share a disk count it more than once here.",
        "`kctl broker log-dirs`", "Add brokers or disks, or shorten retentions.", _room, Versions(since=(3, 3)),
        _unseen_room,
    ),
    Rule(
        "large-partitions", Severity.INFO, "Very large partitions", ("log_dirs",),
        "A partition moves, and comes back after a disk was lost, as a whole: 25 GB take minutes to hours of a "
        "broker's "
        "network.",
        "A rule of thumb: up to 25 GB each", "More partitions (of topics without an order of keys), or a shorter "
        "retention.",
        _large_partitions,
        unread_of=_unseen,
    ),
)  # fmt: skip
