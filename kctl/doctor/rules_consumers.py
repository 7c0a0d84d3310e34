"""Rules about the settings of consumers (org.apache.kafka.clients.consumer.ConsumerConfig)."""

from __future__ import annotations

from collections.abc import Callable

from kctl.doctor.rule import Evaluate, Found, Rule, Severity, Versions, grouped_by_message
from kctl.doctor.rule_facts import RuleFacts, Settings

_MIN_SESSION_MS, _MAX_SESSION_MS = 6_000, 1_800_000  # group.min/max.session.timeout.ms of brokers by default
_MAX_MESSAGE = 1_048_576
_OLD_ONLY = (
    "session.timeout.ms", "heartbeat.interval.ms", "partition.assignment.strategy",
)  # fmt: skip


def _per_consumer(judge: Callable[[Settings], str | None]) -> Evaluate:
    def evaluate(facts: RuleFacts) -> list[Found]:
        return grouped_by_message((each.where, judge(each)) for each in facts.consumers or ())

    return evaluate


def _new_protocol(settings: Settings) -> bool:
    return (settings.text("group.protocol") or "").lower() == "consumer"


def _times(settings: Settings) -> tuple[int, int] | None:
    """Session timeout and heartbeat interval, where they are the client's own."""
    session, beat = settings.number("session.timeout.ms"), settings.number("heartbeat.interval.ms")
    return None if session is None or beat is None or _new_protocol(settings) else (session, beat)


def _said(session: int, beat: int) -> str:
    return f"heartbeat.interval.ms={beat}, session.timeout.ms={session}"


def _heartbeat_refused(settings: Settings) -> str | None:
    times = _times(settings)
    return _said(*times) if times and times[1] >= times[0] else None


def _heartbeat(settings: Settings) -> str | None:
    times = _times(settings)
    return _said(*times) if times and times[0] / 3 < times[1] < times[0] else None


def _session_range(settings: Settings) -> str | None:
    times = _times(settings)
    if times is None or _MIN_SESSION_MS <= times[0] <= _MAX_SESSION_MS:
        return None
    return f"session.timeout.ms={times[0]}"


def _session_short(settings: Settings) -> str | None:
    times = _times(settings)
    return f"session.timeout.ms={times[0]}" if times and _MIN_SESSION_MS <= times[0] < 15_000 else None


def _poll(settings: Settings) -> str | None:
    poll, times = settings.number("max.poll.interval.ms"), _times(settings)
    if poll is None or times is None or poll >= times[0]:
        return None
    return f"max.poll.interval.ms={poll}, session.timeout.ms={times[0]}"


def _poll_records(settings: Settings) -> str | None:
    """So many records a poll that few milliseconds are left for each."""
    poll, records = settings.number("max.poll.interval.ms"), settings.number("max.poll.records")
    if poll is None or not records or poll / records >= 10:
        return None
    return f"max.poll.records={records} in max.poll.interval.ms={poll}: {poll / records:.3g} ms each"


def _auto_commit(settings: Settings) -> str | None:
    if not settings.truth("enable.auto.commit"):
        return None
    every = settings.number("auto.commit.interval.ms") or 0
    return f"enable.auto.commit=true: up to {every / 1000:g} s of records again after a crash"


def _reset_latest(settings: Settings) -> str | None:
    return "auto.offset.reset=latest" if settings.text("auto.offset.reset") == "latest" else None


def _isolation(settings: Settings) -> str | None:
    level = settings.text("isolation.level")
    return f"isolation.level={level}" if level == "read_uncommitted" else None


def _fetch_small(settings: Settings) -> str | None:
    size = settings.number("max.partition.fetch.bytes")
    return f"max.partition.fetch.bytes={size}" if size is not None and size < _MAX_MESSAGE else None


def _fetch_wait(settings: Settings) -> str | None:
    wait, request = settings.number("fetch.max.wait.ms"), settings.number("request.timeout.ms")
    if wait is None or request is None or wait < request:
        return None
    return f"fetch.max.wait.ms={wait}, request.timeout.ms={request}"


def _mixed_protocols(settings: Settings) -> str | None:
    if not _new_protocol(settings):
        return None
    named = [name for name in _OLD_ONLY if name in settings.given]
    return f"group.protocol=consumer with {', '.join(named)}" if named else None


def _no_group(settings: Settings) -> str | None:
    if settings.text("group.id") or settings.hidden("group.id") or "enable.auto.commit" not in settings.given:
        return None
    return "enable.auto.commit=true without group.id" if settings.truth("enable.auto.commit") else None


_C = ("consumers",)
_CLASSIC = "KIP-62"

RULES = (
    Rule(
        "consumer-heartbeat-refused", Severity.ERROR, "Heartbeats are not sent in time", _C,
        "The session ends before the next heartbeat: the consumer does not start (IllegalArgumentException), or is "
        "thrown out again and again.",
        "org.apache.kafka.clients.consumer.internals.Heartbeat", "heartbeat.interval.ms of a third of "
        "session.timeout.ms.",
        _per_consumer(_heartbeat_refused), Versions(since=(0, 9)),
    ),
    Rule(
        "consumer-heartbeat", Severity.WARNING, "One lost heartbeat is too many", _C,
        "heartbeat.interval.ms should be at most a third of session.timeout.ms, so that two may be lost.",
        "Kafka's documentation, heartbeat.interval.ms", "heartbeat.interval.ms=3000 with session.timeout.ms=45000.",
        _per_consumer(_heartbeat), Versions(since=(0, 9)),
    ),
    Rule(
        "consumer-session-range", Severity.ERROR, "Brokers refuse the session timeout", _C,
        "It has to lie between group.min.session.timeout.ms (6 s) and group.max.session.timeout.ms (30 minutes) of "
        "brokers: INVALID_SESSION_TIMEOUT.",
        "Kafka's documentation, group.min.session.timeout.ms", "session.timeout.ms=45000, the default since 3.0.",
        _per_consumer(_session_range), Versions(since=(0, 9)),
    ),
    Rule(
        "consumer-session-short", Severity.INFO, "A short pause costs a rebalance", _C,
        "10 s in older notes; the default is 45 s since 3.0, for pauses of the network and of cloud machines.",
        "KIP-735", "Remove session.timeout.ms (45000).", _per_consumer(_session_short), Versions(since=(0, 10, 1)),
    ),
    Rule(
        "consumer-poll-interval", Severity.WARNING, "Less time to work than to be silent", _C,
        "A consumer that does not poll for max.poll.interval.ms leaves the group: it should have more time for its "
        "records than for its heartbeats.",
        _CLASSIC, "max.poll.interval.ms=300000, or what the slowest batch takes.", _per_consumer(_poll),
        Versions(since=(0, 10, 1)),
    ),
    Rule(
        "consumer-poll-records", Severity.INFO, "Many records for one interval", _C,
        "The records of one poll have to be worked off within max.poll.interval.ms, or the consumer leaves the group "
        "and "
        "they are read again.",
        _CLASSIC, "Fewer max.poll.records (500), or a longer max.poll.interval.ms.", _per_consumer(_poll_records),
        Versions(since=(0, 10, 1)),
    ),
    Rule(
        "consumer-auto-commit", Severity.INFO, "Offsets are committed by the clock", _C,
        "What was read since the last commit is read again after a crash: up to auto.commit.interval.ms × rate. And "
        "records handed to another thread are committed before they are worked off.",
        "Kafka's documentation, enable.auto.commit", "enable.auto.commit=false and commit after the work, where "
        "repeats "
        "matter.",
        _per_consumer(_auto_commit),
    ),
    Rule(
        "consumer-commit-no-group", Severity.ERROR, "Commits without a group", _C,
        "Without group.id there is nowhere to commit to: InvalidConfigurationException.",
        "KIP-289", "Set group.id, or enable.auto.commit=false.", _per_consumer(_no_group), Versions(since=(2, 2)),
    ),
    Rule(
        "consumer-offset-reset", Severity.INFO, "A new group begins at the end", _C,
        "Where there is no committed offset (a new group, a new partition, offsets that were forgotten) all records "
        "that "
        "are there already are skipped. latest is the default.",
        "Kafka's documentation, auto.offset.reset", "auto.offset.reset=earliest, or none to be told.",
        _per_consumer(_reset_latest),
    ),
    Rule(
        "consumer-isolation", Severity.INFO, "Records of aborted transactions are read", _C,
        "read_uncommitted is the default: it matters where producers use transactions.",
        "KIP-98", "isolation.level=read_committed", _per_consumer(_isolation), Versions(since=(0, 11)),
    ),
    Rule(
        "consumer-fetch-size", Severity.INFO, "A message may be larger than a fetch", _C,
        "Since 0.10.1 the first batch is given all the same: large messages come one at a time. Older notes call it an "
        "error; it was one before.",
        "KIP-74", "max.partition.fetch.bytes=1048576 or more.", _per_consumer(_fetch_small), Versions(since=(0, 10, 1)),
    ),
    Rule(
        "consumer-fetch-size-hard", Severity.ERROR, "The consumer stops at a large message", _C,
        "Before 0.10.1 a message above max.partition.fetch.bytes cannot be fetched: RecordTooLargeException.",
        "KIP-74", "max.partition.fetch.bytes at least as large as message.max.bytes.", _per_consumer(_fetch_small),
        Versions(before=(0, 10, 1)),
    ),
    Rule(
        "consumer-fetch-wait", Severity.ERROR, "Fetches time out on quiet topics", _C,
        "A broker holds a fetch for fetch.max.wait.ms when there is little to give; the client gives up first and "
        "reconnects.",
        "Kafka's documentation, fetch.max.wait.ms", "fetch.max.wait.ms far below request.timeout.ms.",
        _per_consumer(_fetch_wait),
    ),
    Rule(
        "consumer-mixed-protocols", Severity.ERROR, "Settings of the classic protocol with the new one", _C,
        "With group.protocol=consumer brokers decide on these (group.consumer.*): ConfigException.",
        "KIP-848, org.apache.kafka.clients.consumer.ConsumerConfig.checkUnsupportedConfigs…", "Remove them; set "
        "group.remote.assignor, and the times by `kctl config set group/NAME`.",
        _per_consumer(_mixed_protocols), Versions(since=(4, 0)),
    ),
)  # fmt: skip
