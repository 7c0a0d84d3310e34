"""Rules about producer settings (org.apache.kafka.clients.producer.ProducerConfig)."""

from __future__ import annotations

from collections.abc import Callable

from kctl.doctor.rule import Evaluate, Issue, Rule, Severity, Versions, grouped_by_message
from kctl.doctor.rule_facts import EffectiveSettings, RuleFacts

_IN_FLIGHT = "max.in.flight.requests.per.connection"
_MAX_MESSAGE = 1_048_588  # default of message.max.bytes
_MAX_TIMEOUT_MS = 2**31 - 1  # KafkaProducer caps the sum of two timeouts at this value
_SHORT_MS = 30_000  # after a leader crash, a partition rejects writes for 7 to 18 s


def _per_producer(judge: Callable[[EffectiveSettings], str | None]) -> Evaluate:
    def evaluate(facts: RuleFacts) -> list[Issue]:
        return grouped_by_message((each.owner, judge(each)) for each in facts.producers or ())

    return evaluate


def _requires_idempotence(settings: EffectiveSettings) -> bool:
    """Return True if idempotence is set explicitly or implied by transactions. Other defaults then follow from it."""
    explicit = "enable.idempotence" in settings.explicit
    return (explicit and bool(settings.boolean("enable.idempotence"))) or _is_transactional(settings)


def _is_transactional(settings: EffectiveSettings) -> bool:
    return bool(settings.text("transactional.id")) or settings.is_hidden("transactional.id")


def _acks(settings: EffectiveSettings) -> str:
    """Return the effective acks, "all" for -1; empty if the value is not disclosed."""
    acks = (settings.text("acks") or "").strip().lower()
    return "all" if acks == "-1" or ("acks" not in settings.explicit and _requires_idempotence(settings)) else acks


def _retries(settings: EffectiveSettings) -> int | None:
    """Return retries; None if unlimited or unknown.

    The default with idempotence was always unlimited; without it, 0 before 2.1.
    """
    return (
        None if "retries" not in settings.explicit and _requires_idempotence(settings) else settings.number("retries")
    )


def is_idempotent(settings: EffectiveSettings) -> bool:
    """Return True if the producer is idempotent: the default since 3.0, unless other settings silently disable it."""
    if _requires_idempotence(settings):
        return True
    if settings.boolean("enable.idempotence") is False:
        return False
    return _acks(settings) in {"all", ""} and _retries(settings) != 0 and (settings.number(_IN_FLIGHT) or 0) <= 5


def _no_acks(settings: EffectiveSettings) -> str | None:
    return "acks=0" if _acks(settings) == "0" else None


def _leader_acks(settings: EffectiveSettings) -> str | None:
    return "acks=1" if _acks(settings) == "1" else None


def _refused(settings: EffectiveSettings) -> str | None:
    """Report combinations for which KafkaProducer throws a ConfigException."""
    explicit = "enable.idempotence" in settings.explicit
    if _is_transactional(settings) and explicit and settings.boolean("enable.idempotence") is False:
        return "transactional.id with enable.idempotence=false"
    if not _requires_idempotence(settings):
        return None
    conflicts = []
    if _acks(settings) not in {"all", ""}:
        conflicts.append(f"acks={_acks(settings)}")
    if _retries(settings) == 0:
        conflicts.append("retries=0")
    if (settings.number(_IN_FLIGHT) or 0) > 5:
        conflicts.append(f"{_IN_FLIGHT}={settings.number(_IN_FLIGHT)}")
    cause = "enable.idempotence=true" if explicit else "transactional.id"
    return f"{cause} with {', '.join(conflicts)}" if conflicts else None


def _order(settings: EffectiveSettings) -> str | None:
    in_flight = settings.number(_IN_FLIGHT) or 0
    if is_idempotent(settings) or _retries(settings) == 0 or in_flight <= 1:
        return None
    return f"not idempotent, {_IN_FLIGHT}={in_flight}"


def _duplicates(settings: EffectiveSettings) -> str | None:
    if is_idempotent(settings) or _retries(settings) == 0:
        return None
    if settings.boolean("enable.idempotence") is False:
        return "enable.idempotence=false"
    return f"idempotence is disabled by acks={_acks(settings)} and {_IN_FLIGHT}={settings.number(_IN_FLIGHT)}"


def _no_retries(settings: EffectiveSettings) -> str | None:
    return "retries=0" if _retries(settings) == 0 else None


def _delivery_refused(settings: EffectiveSettings) -> str | None:
    """Check only an explicit delivery.timeout.ms: KafkaProducer raises the default itself and logs it."""
    if "delivery.timeout.ms" not in settings.explicit:
        return None
    delivery = settings.number("delivery.timeout.ms")
    linger, request = settings.number("linger.ms"), settings.number("request.timeout.ms")
    if delivery is None or linger is None or request is None or delivery >= min(linger + request, _MAX_TIMEOUT_MS):
        return None
    return f"delivery.timeout.ms={delivery}, linger.ms={linger}, request.timeout.ms={request}"


def _delivery_short(settings: EffectiveSettings) -> str | None:
    delivery = settings.number("delivery.timeout.ms")
    return f"delivery.timeout.ms={delivery}" if delivery is not None and delivery < _SHORT_MS else None


def _linger(settings: EffectiveSettings) -> str | None:
    linger, batch = settings.number("linger.ms"), settings.number("batch.size")
    if batch == 0:
        return "batch.size=0"
    if linger == 0 and batch is not None and "batch.size" in settings.explicit and batch > 16_384:
        return f"batch.size={batch}, linger.ms=0"
    return None


def _request_size(settings: EffectiveSettings) -> str | None:
    size = settings.number("max.request.size")
    return f"max.request.size={size}" if size is not None and size > _MAX_MESSAGE else None


def _buffer(settings: EffectiveSettings) -> str | None:
    buffer, batch = settings.number("buffer.memory"), settings.number("batch.size")
    if buffer is None or batch is None or buffer >= 2 * batch:
        return None
    return f"buffer.memory={buffer}, batch.size={batch}"


_P = ("producers",)

RULES = (
    Rule(
        "producer-acks-none", Severity.ERROR, "Records are lost silently", _P,
        "With acks=0 the producer does not wait for a response. Records that the broker rejects or never receives "
        "count as sent.",
        "Kafka's documentation, acks", "Set acks=all.", _per_producer(_no_acks),
    ),
    Rule(
        "producer-acks-leader", Severity.WARNING, "Records are lost with their leader", _P,
        "With acks=1 the leader acknowledges before any follower has the record. Measured: an unclean election lost "
        "4,556 acknowledged records. The default is all since 3.0; older guides recommend 1.",
        "Kafka's documentation, acks; KIP-679", "Set acks=all, and min.insync.replicas=2 on the topic.",
        _per_producer(_leader_acks),
    ),
    Rule(
        "producer-refuses-settings", Severity.ERROR, "The producer does not start with these settings", _P,
        "Idempotence and transactions require acks=all, retries above 0, and at most 5 in-flight requests. Otherwise "
        "the producer fails with ConfigException.",
        "org.apache.kafka.clients.producer.ProducerConfig.postProcessAndValidateIdempotenceConfigs",
        "Remove the conflicting settings.", _per_producer(_refused), Versions(since=(0, 11)),
    ),
    Rule(
        "producer-order", Severity.WARNING, "A retry can reorder records", _P,
        "Without idempotence, a retried batch can end up behind its successor. Measured: up to 1,811 inversions after "
        "a leader was killed. Idempotence keeps the order with up to 5 in-flight requests; without it, only 1 is "
        "safe.",
        "Kafka's documentation, max.in.flight.requests.per.connection",
        f"Set enable.idempotence=true, or {_IN_FLIGHT}=1.",
        _per_producer(_order),
    ),
    Rule(
        "producer-duplicates", Severity.INFO, "A retry can write a record twice", _P,
        "When an acknowledgment is lost, the producer sends the batch again. Measured: up to 70 duplicates after a "
        "leader was killed, none with idempotence. Idempotence is the default since 3.0. Conflicting acks, retries or "
        "in-flight requests silently disable it.",
        "KIP-98, KIP-679", "Set enable.idempotence=true.", _per_producer(_duplicates), Versions(since=(0, 11)),
    ),
    Rule(
        "producer-no-retries", Severity.WARNING, "Every transient error fails a record", _P,
        "A leader change or a broker restart causes errors that a retry would avoid. Older guides give 0 as the "
        "default; since 2.1 retries are limited only by delivery.timeout.ms.",
        "KIP-91", "Remove retries, and set delivery.timeout.ms.", _per_producer(_no_retries),
    ),
    Rule(
        "producer-delivery-timeout", Severity.ERROR,
        "The producer does not start: delivery.timeout.ms is too small", _P,
        "It must be at least linger.ms + request.timeout.ms. Otherwise the producer fails with ConfigException. (Only "
        "an explicit value is rejected: the producer raises the default to that sum.)",
        "KIP-91, org.apache.kafka.clients.producer.KafkaProducer.configureDeliveryTimeout",
        "Raise delivery.timeout.ms, or lower request.timeout.ms.", _per_producer(_delivery_refused),
        Versions(since=(2, 1)),
    ),
    Rule(
        "producer-gives-up-soon", Severity.WARNING, "Records fail during an ordinary leader change", _P,
        "After a broker crash, its partitions reject writes for 7 to 18 s, until the broker's session expires. "
        "Records that wait longer than delivery.timeout.ms fail.",
        "Measured; KIP-91", "Set delivery.timeout.ms=120000, the default.", _per_producer(_delivery_short),
        Versions(since=(2, 1)),
    ),
    Rule(
        "producer-batches", Severity.INFO, "Batches stay small", _P,
        "With linger.ms=0 the producer sends a batch as soon as the connection is free, even if the batch is nearly "
        "empty. A larger batch.size alone changes little. The default of linger.ms is 5 since 4.0.",
        "Kafka's documentation, linger.ms; KIP-1030", "Set linger.ms=5 or more.", _per_producer(_linger),
    ),
    Rule(
        "producer-request-size", Severity.INFO, "Messages can be larger than brokers accept by default", _P,
        "The default of the brokers' message.max.bytes and the topic's max.message.bytes is 1,048,588. Brokers reject "
        "larger batches (MESSAGE_TOO_LARGE).",
        "Kafka's documentation, max.request.size",
        "Raise the limit of the topic: `kctl config set topic/NAME max.message.bytes=BYTES`.",
        _per_producer(_request_size),
    ),
    Rule(
        "producer-buffer", Severity.WARNING, "The buffer holds fewer than two batches", _P,
        "While the buffer is full, send() blocks for up to max.block.ms.",
        "Kafka's documentation, buffer.memory",
        "Set buffer.memory to many times batch.size (default: 32 MiB).",
        _per_producer(_buffer),
    ),
)  # fmt: skip
