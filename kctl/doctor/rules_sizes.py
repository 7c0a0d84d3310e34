"""Rules about sizes and times: message and request sizes, segments and retention, disks, partition counts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from kctl.base.text import counted
from kctl.base.units import format_duration, format_size
from kctl.cluster.log_dirs import LogDir
from kctl.doctor.rule import Evaluate, Issue, Rule, Severity, Versions, grouped_by_message
from kctl.doctor.rule_facts import EffectiveSettings, RuleFacts, readable_brokers, unread_reasons, uses_zookeeper
from kctl.model import ClusterState

_BATCH_OVERHEAD = 12  # Records.LOG_OVERHEAD, the difference between the two defaults
LARGE_MESSAGE = 10 * 1024 * 1024
# Recommended limits for clusters with ZooKeeper since Kafka 1.1; KRaft supports more.
MAX_REPLICAS_PER_BROKER, MAX_REPLICAS = 4_000, 200_000
LARGE_PARTITION = 25 * 10**9  # bytes
# org.apache.kafka.storage.internals.log.SkimpyOffsetMap: 16 bytes for the hash of the key, 8 for its offset
CLEANER_BYTES_PER_KEY = 24
_FEW_KEYS = 500_000
_NO_START = "the broker does not start with 1 MiB or less per thread"
_MIN_BYTES_PER_THREAD = 1 << 20
_MAX_AHEAD_MS, _UNLIMITED = 86_400_000, 2**63 - 1


def per_broker(judge: Callable[[EffectiveSettings], str | None]) -> Evaluate:
    """Return a rule function that calls `judge` for each readable broker, with one issue per distinct message."""

    def evaluate(facts: RuleFacts) -> list[Issue]:
        return grouped_by_message((each.owner, judge(each)) for each in readable_brokers(facts))

    return evaluate


def _replica_fetch(settings: EffectiveSettings) -> str | None:
    message, fetch = settings.number("message.max.bytes"), settings.number("replica.fetch.max.bytes")
    if message is None or fetch is None or message <= fetch + _BATCH_OVERHEAD:
        return None
    return f"message.max.bytes={message}, replica.fetch.max.bytes={fetch}"


def _large_messages(settings: EffectiveSettings) -> str | None:
    message = settings.number("message.max.bytes")
    return f"message.max.bytes={message}" if message is not None and message > LARGE_MESSAGE else None


def _request_too_small(settings: EffectiveSettings) -> str | None:
    message, request = settings.number("message.max.bytes"), settings.number("socket.request.max.bytes")
    if message is None or request is None or message <= request:
        return None
    return f"message.max.bytes={message}, socket.request.max.bytes={request}"


def _retention_bytes(settings: EffectiveSettings) -> str | None:
    retention, segment = settings.number("log.retention.bytes"), settings.number("log.segment.bytes")
    if retention is None or segment is None or retention < 0 or retention >= segment:
        return None
    return f"log.retention.bytes={retention}, log.segment.bytes={segment}"


def retention_ms(settings: EffectiveSettings) -> int | None:
    """Return the brokers' default retention in ms, from log.retention.ms, .minutes or .hours; -1: forever."""
    return _first_ms(
        settings, {"log.retention.ms": 1, "log.retention.minutes": 60_000, "log.retention.hours": 3_600_000}
    )


def _first_ms(settings: EffectiveSettings, names: dict[str, int]) -> int | None:
    for name, factor in names.items():
        value = settings.number(name)
        if value is not None:
            return value * factor if value >= 0 else -1
    return None


def _retention_time(settings: EffectiveSettings) -> str | None:
    retention = retention_ms(settings)
    roll = _first_ms(settings, {"log.roll.ms": 1, "log.roll.hours": 3_600_000})
    return retention_message(retention, roll)


def retention_message(retention: int | None, roll: int | None) -> str | None:
    """Return a message if the retention is shorter than the time until a segment is rolled. Both in ms. Pure."""
    if retention is None or roll is None or retention < 0 or retention >= roll:
        return None
    retention_text, roll_text, total = (format_duration(each) for each in (retention, roll, retention + roll))
    return f"retention {retention_text}, segments roll after {roll_text}: records live up to {total}"


def _io_threads(settings: EffectiveSettings) -> str | None:
    threads, dirs = settings.number("num.io.threads"), len(settings.items("log.dirs"))
    if threads is None or threads >= dirs:
        return None
    return f"num.io.threads={threads} for {dirs} log dirs"


def _partitions(facts: RuleFacts) -> list[Issue]:
    assert isinstance(facts.state, ClusterState)
    if not any(uses_zookeeper(each) for each in readable_brokers(facts)):
        return []
    counts: dict[int, int] = {}
    for topic in facts.state.topics.values():
        for p in topic.partitions:
            for node in p.replicas:
                counts[node] = counts.get(node, 0) + 1
    issues = grouped_by_message(
        (f"broker {node}", f"{count:,} replicas" if count > MAX_REPLICAS_PER_BROKER else None)
        for node, count in sorted(counts.items())
    )
    total = sum(counts.values())
    return [*issues, *([Issue(f"{total:,} replicas in the cluster")] if total > MAX_REPLICAS else [])]


def _readable_log_dirs(facts: RuleFacts) -> dict[int, list[LogDir]]:
    return {node: list(dirs) for node, dirs in (facts.log_dirs or {}).items() if not isinstance(dirs, Exception)}


def _unread_log_dirs(facts: RuleFacts) -> list[str]:
    """Return why log dirs are unreadable: their broker is down, or they are offline."""
    offline = [
        f"log dir {each.path} of broker {node} is offline: its contents are unknown"
        for node, dirs in _readable_log_dirs(facts).items()
        for each in dirs
        if each.error
    ]
    return [*unread_reasons(facts, ("log_dirs",)), *offline]


def _unread_disk_space(facts: RuleFacts) -> list[str]:
    unknown = [
        f"broker {node} does not report the free space of {each.path}"
        for node, dirs in _readable_log_dirs(facts).items()
        for each in dirs
        if each.usable_bytes is None and not each.error
    ]
    return [*_unread_log_dirs(facts), *unknown]


def _disk_headroom(facts: RuleFacts) -> list[Issue]:
    """Report if the other brokers lack the space for the data of the fullest broker.

    Nothing is reported unless every broker reports its data and free space.
    """
    dirs = _readable_log_dirs(facts)
    if len(dirs) < 2 or _unread_disk_space(facts):
        return []
    free = {node: [each.usable_bytes for each in node_dirs] for node, node_dirs in dirs.items()}
    used = {node: sum(r.size_bytes for each in node_dirs for r in each.replicas) for node, node_dirs in dirs.items()}
    fullest = max(used, key=lambda node: used[node])
    free_elsewhere = sum(size or 0 for node, sizes in free.items() if node != fullest for size in sizes)
    if used[fullest] <= free_elsewhere:
        return []
    message = (
        f"broker {fullest} holds {format_size(used[fullest])}; "
        f"the other brokers have {format_size(free_elsewhere)} free"
    )
    return [Issue(message, (f"broker {fullest}",))]


def _large_partitions(facts: RuleFacts) -> list[Issue]:
    sizes: dict[str, int] = {}
    for dirs in _readable_log_dirs(facts).values():
        for each in dirs:
            for r in each.replicas:
                if not r.future and r.size_bytes > LARGE_PARTITION:
                    name = f"{r.topic}-{r.partition}"
                    sizes[name] = max(sizes.get(name, 0), r.size_bytes)
    if not sizes:
        return []
    names = sorted(sizes, key=lambda name: -sizes[name])
    limit, largest = format_size(LARGE_PARTITION), format_size(sizes[names[0]])
    message = f"{counted(len(names), 'partition')} above {limit}, the largest {largest}"
    return [Issue(message, tuple(names))]


def _cleaner_buffer(facts: RuleFacts) -> list[Issue]:
    issues = grouped_by_message((each.owner, _cleaner_message(each)) for each in readable_brokers(facts))
    return [replace(each, severity=Severity.ERROR) if each.message.endswith(_NO_START) else each for each in issues]


def _cleaner_message(settings: EffectiveSettings) -> str | None:
    buffer, threads = settings.number("log.cleaner.dedupe.buffer.size"), settings.number("log.cleaner.threads")
    if not buffer or not threads or settings.boolean("log.cleaner.enable") is False:
        return None
    values = f"log.cleaner.dedupe.buffer.size={buffer}, log.cleaner.threads={threads}"
    if buffer // threads <= _MIN_BYTES_PER_THREAD:
        return f"{values}: {_NO_START}"
    keys = buffer * 9 // (10 * threads * CLEANER_BYTES_PER_KEY)
    return f"{values}: {keys:,} keys per thread" if keys < _FEW_KEYS else None


def _future_timestamps(settings: EffectiveSettings) -> str | None:
    name = "log.message.timestamp.after.max.ms"
    limit = settings.number(name)
    if limit is None or limit <= _MAX_AHEAD_MS or settings.text("log.message.timestamp.type") == "LogAppendTime":
        return None
    return f"{name}={'unlimited' if limit == _UNLIMITED else limit}"


_B = ("brokers",)

RULES = (
    Rule(
        "replica-fetch-size", Severity.INFO, "A message may exceed the replica fetch size", _B,
        "Since 0.10.1 the limit is soft: a fetch always returns the first batch, so followers keep replicating, one "
        "large batch at a time. Old guides call this data loss, which it was before 0.10.1.",
        "KIP-74", "If large messages are common, set replica.fetch.max.bytes to message.max.bytes or more.",
        per_broker(_replica_fetch), Versions(since=(0, 10, 1)),
    ),
    Rule(
        "replica-fetch-size-hard", Severity.ERROR, "Followers stop at a large message", _B,
        "Before 0.10.1, a follower cannot fetch a batch above replica.fetch.max.bytes. It leaves the ISR permanently.",
        "KIP-74", "Set replica.fetch.max.bytes to message.max.bytes or more.",
        per_broker(_replica_fetch), Versions(before=(0, 10, 1)),
    ),
    Rule(
        "large-messages", Severity.INFO, "Brokers accept very large messages", _B,
        "Brokers, producers and consumers hold whole batches in memory. With the default max.partition.fetch.bytes (1 "
        "MiB), a consumer gets one such batch per fetch.",
        "Kafka's documentation, message.max.bytes",
        "Store large objects outside of Kafka, or raise the limit only for their topics: `kctl config set topic/NAME "
        "max.message.bytes=BYTES`.",
        per_broker(_large_messages),
    ),
    Rule(
        "request-size", Severity.ERROR, "The largest allowed messages cannot be sent", _B,
        "A broker closes the connection when a request exceeds socket.request.max.bytes. Producers see a disconnect, "
        "not a \"message too large\" error.",
        "org.apache.kafka.common.network.NetworkReceive", "Set socket.request.max.bytes above message.max.bytes.",
        per_broker(_request_too_small),
    ),
    Rule(
        "size-limit", Severity.INFO, "The retention size is smaller than a segment", _B,
        "Kafka deletes whole segments, so a partition keeps up to log.retention.bytes plus one segment. Plan disks for "
        "partitions × (retention.bytes + segment.bytes) × replicas.",
        "kafka.log.UnifiedLog.deleteRetentionSizeBreachedSegments",
        "Lower log.segment.bytes, or plan disks for one more segment per partition.",
        per_broker(_retention_bytes),
    ),
    Rule(
        "retention", Severity.INFO, "Records live longer than the retention time", _B,
        "Kafka deletes a segment when its newest record has expired. The active segment of a quiet topic stays open "
        "until it is full or rolled, so the oldest record can live for roll time + retention. (Once every record in "
        "it has expired, the active segment is rolled and deleted as well: measured on 3.9.)",
        "kafka.log.UnifiedLog.deleteRetentionMsBreachedSegments",
        "Lower log.roll.hours, or segment.ms of the topic.",
        per_broker(_retention_time), Versions(since=(0, 10, 1)),
    ),
    Rule(
        "future-timestamps", Severity.INFO, "Brokers accept records with future timestamps", _B,
        "Time-based retention uses the largest timestamp of a segment. One record dated next year keeps its segment, "
        "and all newer segments, until then. (Retention does not use the file time, as old guides say, and does not "
        "spare the active segment.)",
        "KIP-937; KIP-1030 (default: 1 hour since 4.0)",
        "Set log.message.timestamp.after.max.ms=3600000, or message.timestamp.after.max.ms of the topic.",
        per_broker(_future_timestamps), Versions(since=(3, 6)),
    ),
    Rule(
        "cleaner-buffer", Severity.INFO, "The log cleaner has little memory", _B,
        "Each pass needs 24 bytes per key and uses at most 90% of the buffer. The default of 128 MiB, shared by all "
        "cleaner threads, holds 5.03 million keys. Partitions with more changed keys need several passes, so old "
        "values stay longer.",
        "org.apache.kafka.storage.internals.log.SkimpyOffsetMap",
        "Set log.cleaner.dedupe.buffer.size to (24 bytes ÷ 0.9) × keys × threads; `kctl capacity --keys` calculates "
        "it.",
        _cleaner_buffer, Versions(since=(0, 9)),
    ),
    Rule(
        "io-threads", Severity.WARNING, "Fewer request threads than disks", _B,
        "The num.io.threads threads read and write the disks. With fewer threads, some disks are idle while others are "
        "busy.",
        "Kafka's documentation up to 0.11, num.io.threads: \"at least as many threads as you have disks\"",
        "Set num.io.threads to at least the number of log dirs: `kctl config set brokers num.io.threads=N`.",
        per_broker(_io_threads),
    ),
    Rule(
        "partitions-per-broker", Severity.WARNING, "Too many partitions for ZooKeeper",
        ("brokers", "state", "topics"),
        "When a broker or the controller fails, partitions get their new leaders one by one through ZooKeeper. Since "
        "1.1, 4,000 replicas per broker and 200,000 per cluster are proven to work; before 1.1, far fewer. KRaft "
        "supports more.",
        "Apache Kafka blog, \"Apache Kafka Supports 200K Partitions Per Cluster\" (2018)",
        "Use fewer partitions or more brokers, or migrate to KRaft.", _partitions,
        Versions(since=(1, 1), before=(4, 0)),
    ),
    Rule(
        "disk-headroom", Severity.WARNING, "No disk space to replace a failed broker", ("log_dirs",),
        "When a broker is lost for good, its replicas are copied to the other brokers. (Log dirs that share a disk are "
        "counted more than once here.)",
        "`kctl broker log-dirs`", "Add brokers or disks, or shorten the retention of large topics.", _disk_headroom,
        Versions(since=(3, 3)), _unread_disk_space,
    ),
    Rule(
        "large-partitions", Severity.INFO, "Very large partitions", ("log_dirs",),
        "A partition is always moved as a whole, also to replace a failed disk. Copying 25 GB occupies a broker's "
        "network for minutes to hours.",
        "Rule of thumb: up to 25 GB per partition",
        "Add partitions (not if consumers depend on the order of each key), or shorten the retention.",
        _large_partitions,
        unread_reasons=_unread_log_dirs,
    ),
)  # fmt: skip
