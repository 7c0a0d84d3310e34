"""Rules about consumer settings (org.apache.kafka.clients.consumer.ConsumerConfig)."""

from __future__ import annotations

from collections.abc import Callable

from kctl.doctor.rule import Evaluate, Issue, Rule, Severity, Versions, grouped_by_message
from kctl.doctor.rule_facts import EffectiveSettings, RuleFacts

_MIN_SESSION_MS, _MAX_SESSION_MS = 6_000, 1_800_000  # brokers' defaults of group.min/max.session.timeout.ms
_MAX_MESSAGE = 1_048_576
_CLASSIC_ONLY = ("session.timeout.ms", "heartbeat.interval.ms", "partition.assignment.strategy")


def _per_consumer(judge: Callable[[EffectiveSettings], str | None]) -> Evaluate:
    def evaluate(facts: RuleFacts) -> list[Issue]:
        return grouped_by_message((each.owner, judge(each)) for each in facts.consumers or ())

    return evaluate


def _uses_new_protocol(settings: EffectiveSettings) -> bool:
    return (settings.text("group.protocol") or "").lower() == "consumer"


def _session_times(settings: EffectiveSettings) -> tuple[int, int] | None:
    """Return session.timeout.ms and heartbeat.interval.ms; None if the new protocol makes the broker decide them."""
    session, heartbeat = settings.number("session.timeout.ms"), settings.number("heartbeat.interval.ms")
    return None if session is None or heartbeat is None or _uses_new_protocol(settings) else (session, heartbeat)


def _heartbeat_message(session: int, heartbeat: int) -> str:
    return f"heartbeat.interval.ms={heartbeat}, session.timeout.ms={session}"


def _heartbeat_refused(settings: EffectiveSettings) -> str | None:
    times = _session_times(settings)
    return _heartbeat_message(*times) if times and times[1] >= times[0] else None


def _heartbeat(settings: EffectiveSettings) -> str | None:
    times = _session_times(settings)
    return _heartbeat_message(*times) if times and times[0] / 3 < times[1] < times[0] else None


def _session_range(settings: EffectiveSettings) -> str | None:
    times = _session_times(settings)
    if times is None or _MIN_SESSION_MS <= times[0] <= _MAX_SESSION_MS:
        return None
    return f"session.timeout.ms={times[0]}"


def _session_short(settings: EffectiveSettings) -> str | None:
    times = _session_times(settings)
    return f"session.timeout.ms={times[0]}" if times and _MIN_SESSION_MS <= times[0] < 15_000 else None


def _poll(settings: EffectiveSettings) -> str | None:
    poll, times = settings.number("max.poll.interval.ms"), _session_times(settings)
    if poll is None or times is None or poll >= times[0]:
        return None
    return f"max.poll.interval.ms={poll}, session.timeout.ms={times[0]}"


def _poll_records(settings: EffectiveSettings) -> str | None:
    """Report settings that leave less than 10 ms per record."""
    poll, records = settings.number("max.poll.interval.ms"), settings.number("max.poll.records")
    if poll is None or not records or poll / records >= 10:
        return None
    return f"max.poll.records={records} in max.poll.interval.ms={poll}: {poll / records:.3g} ms per record"


def _auto_commit(settings: EffectiveSettings) -> str | None:
    if not settings.boolean("enable.auto.commit"):
        return None
    every = settings.number("auto.commit.interval.ms") or 0
    return f"enable.auto.commit=true: up to {every / 1000:g} s of records are read again after a crash"


def _reset_latest(settings: EffectiveSettings) -> str | None:
    return "auto.offset.reset=latest" if settings.text("auto.offset.reset") == "latest" else None


def _isolation(settings: EffectiveSettings) -> str | None:
    level = settings.text("isolation.level")
    return f"isolation.level={level}" if level == "read_uncommitted" else None


def _fetch_small(settings: EffectiveSettings) -> str | None:
    size = settings.number("max.partition.fetch.bytes")
    return f"max.partition.fetch.bytes={size}" if size is not None and size < _MAX_MESSAGE else None


def _fetch_wait(settings: EffectiveSettings) -> str | None:
    wait, request = settings.number("fetch.max.wait.ms"), settings.number("request.timeout.ms")
    if wait is None or request is None or wait < request:
        return None
    return f"fetch.max.wait.ms={wait}, request.timeout.ms={request}"


def _mixed_protocols(settings: EffectiveSettings) -> str | None:
    if not _uses_new_protocol(settings):
        return None
    conflicts = [name for name in _CLASSIC_ONLY if name in settings.explicit]
    return f"group.protocol=consumer with {', '.join(conflicts)}" if conflicts else None


def _no_group(settings: EffectiveSettings) -> str | None:
    if settings.text("group.id") or settings.is_hidden("group.id") or "enable.auto.commit" not in settings.explicit:
        return None
    return "enable.auto.commit=true without group.id" if settings.boolean("enable.auto.commit") else None


_C = ("consumers",)
_CLASSIC = "KIP-62"

RULES = (
    Rule(
        "consumer-heartbeat-refused", Severity.ERROR, "The heartbeat interval is too long", _C,
        "The interval is not shorter than session.timeout.ms, so the session expires before the next heartbeat. The "
        "consumer does not start (IllegalArgumentException), or is removed from the group again and again.",
        "org.apache.kafka.clients.consumer.internals.Heartbeat",
        "Set heartbeat.interval.ms to a third of session.timeout.ms.",
        _per_consumer(_heartbeat_refused), Versions(since=(0, 9)),
    ),
    Rule(
        "consumer-heartbeat", Severity.WARNING, "One lost heartbeat can remove the consumer from the group", _C,
        "heartbeat.interval.ms should be at most a third of session.timeout.ms, so that two heartbeats may be lost.",
        "Kafka's documentation, heartbeat.interval.ms", "Set heartbeat.interval.ms=3000 and session.timeout.ms=45000.",
        _per_consumer(_heartbeat), Versions(since=(0, 9)),
    ),
    Rule(
        "consumer-session-range", Severity.ERROR, "Brokers reject the session timeout", _C,
        "It must be between the brokers' group.min.session.timeout.ms (default: 6 s) and group.max.session.timeout.ms "
        "(default: 30 min). Otherwise the consumer fails with INVALID_SESSION_TIMEOUT.",
        "Kafka's documentation, group.min.session.timeout.ms", "Set session.timeout.ms=45000, the default since 3.0.",
        _per_consumer(_session_range), Versions(since=(0, 9)),
    ),
    Rule(
        "consumer-session-short", Severity.INFO, "A short pause causes a rebalance", _C,
        "Old guides recommend 10 s. Since 3.0, the default is 45 s, so that short network or VM pauses do not "
        "cause a rebalance.",
        "KIP-735", "Remove session.timeout.ms (default: 45000).", _per_consumer(_session_short),
        Versions(since=(0, 10, 1)),
    ),
    Rule(
        "consumer-poll-interval", Severity.WARNING, "max.poll.interval.ms is shorter than the session timeout", _C,
        "A consumer that does not call poll() for max.poll.interval.ms leaves the group. The limit "
        "must exceed the time to process a whole batch.",
        _CLASSIC, "Set max.poll.interval.ms=300000, or more than the slowest batch needs.", _per_consumer(_poll),
        Versions(since=(0, 10, 1)),
    ),
    Rule(
        "consumer-poll-records", Severity.INFO, "Too many records per poll", _C,
        "The consumer must process all records of one poll within max.poll.interval.ms. Otherwise it leaves the group "
        "and the records are read again.",
        _CLASSIC, "Lower max.poll.records (default: 500), or raise max.poll.interval.ms.", _per_consumer(_poll_records),
        Versions(since=(0, 10, 1)),
    ),
    Rule(
        "consumer-auto-commit", Severity.INFO, "Offsets are committed on a timer", _C,
        "After a crash, the records read since the last commit are read again: up to auto.commit.interval.ms × rate. "
        "If another thread processes the records, their offsets may be committed before they are processed.",
        "Kafka's documentation, enable.auto.commit",
        "If duplicates matter, set enable.auto.commit=false and commit after processing.",
        _per_consumer(_auto_commit),
    ),
    Rule(
        "consumer-commit-no-group", Severity.ERROR, "Auto-commit without a consumer group", _C,
        "Offsets are committed to a group. Without group.id the consumer fails with InvalidConfigurationException.",
        "KIP-289", "Set group.id, or enable.auto.commit=false.", _per_consumer(_no_group), Versions(since=(2, 2)),
    ),
    Rule(
        "consumer-offset-reset", Severity.INFO, "A new group starts at the end of the log", _C,
        "Where no committed offset exists (a new group, a new partition, expired offsets), all existing records are "
        "skipped. latest is the default.",
        "Kafka's documentation, auto.offset.reset",
        "Set auto.offset.reset=earliest, or none to get an error instead.",
        _per_consumer(_reset_latest),
    ),
    Rule(
        "consumer-isolation", Severity.INFO, "The consumer reads records of aborted transactions", _C,
        "read_uncommitted is the default. This matters only if producers use transactions.",
        "KIP-98", "Set isolation.level=read_committed.", _per_consumer(_isolation), Versions(since=(0, 11)),
    ),
    Rule(
        "consumer-fetch-size", Severity.INFO, "A message may exceed the fetch size", _C,
        "Since 0.10.1, a fetch always returns the first batch, so large messages arrive one at a time. Old guides "
        "call this an error, which it was before 0.10.1.",
        "KIP-74", "Set max.partition.fetch.bytes=1048576 or more.", _per_consumer(_fetch_small),
        Versions(since=(0, 10, 1)),
    ),
    Rule(
        "consumer-fetch-size-hard", Severity.ERROR, "The consumer stops at a large message", _C,
        "Before 0.10.1, a message above max.partition.fetch.bytes cannot be fetched (RecordTooLargeException).",
        "KIP-74", "Set max.partition.fetch.bytes to at least the brokers' message.max.bytes.",
        _per_consumer(_fetch_small),
        Versions(before=(0, 10, 1)),
    ),
    Rule(
        "consumer-fetch-wait", Severity.ERROR, "Fetches time out on quiet topics", _C,
        "A broker holds a fetch for up to fetch.max.wait.ms while less than fetch.min.bytes is available. The client "
        "reaches request.timeout.ms first, and reconnects.",
        "Kafka's documentation, fetch.max.wait.ms", "Set fetch.max.wait.ms well below request.timeout.ms.",
        _per_consumer(_fetch_wait),
    ),
    Rule(
        "consumer-mixed-protocols", Severity.ERROR, "Classic protocol settings with the new group protocol", _C,
        "With group.protocol=consumer, brokers decide these values (group.consumer.*). The consumer fails with "
        "ConfigException.",
        "KIP-848, org.apache.kafka.clients.consumer.ConsumerConfig.checkUnsupportedConfigs…",
        "Remove these settings. Choose the assignor with group.remote.assignor, and the timeouts with `kctl config set "
        "group/NAME`.",
        _per_consumer(_mixed_protocols), Versions(since=(4, 0)),
    ),
)  # fmt: skip
