"""Rules about the settings of producers (org.apache.kafka.clients.producer.ProducerConfig)."""

from __future__ import annotations

from collections.abc import Callable

from kctl.doctor.rule import Evaluate, Found, Rule, Severity, Versions, grouped_by_message
from kctl.doctor.rule_facts import RuleFacts, Settings

_IN_FLIGHT = "max.in.flight.requests.per.connection"
_MAX_MESSAGE = 1_048_588  # message.max.bytes by default
_LONGEST_MS = 2**31 - 1  # of a timeout; KafkaProducer cuts the sum of two off there
_SHORT_MS = 30_000  # a leader's crash is 7 to 18 s without writes


def _per_producer(judge: Callable[[Settings], str | None]) -> Evaluate:
    def evaluate(facts: RuleFacts) -> list[Found]:
        return grouped_by_message((each.where, judge(each)) for each in facts.producers or ())

    return evaluate


def _asked(settings: Settings) -> bool:
    """Whether idempotence was asked for: then the defaults of the rest follow it."""
    written = "enable.idempotence" in settings.given
    return (written and bool(settings.truth("enable.idempotence"))) or _transactional(settings)


def _transactional(settings: Settings) -> bool:
    return bool(settings.text("transactional.id")) or settings.hidden("transactional.id")


def _acks(settings: Settings) -> str:
    """Empty: set, and nobody tells to what."""
    written = (settings.text("acks") or "").strip().lower()
    return "all" if written == "-1" or ("acks" not in settings.given and _asked(settings)) else written


def _retries(settings: Settings) -> int | None:
    """None: without a limit, or not known. With idempotence that was always the default; else it was 0 before 2.1."""
    return None if "retries" not in settings.given and _asked(settings) else settings.number("retries")


def idempotent(settings: Settings) -> bool:
    """Whether the producer is idempotent: since 3.0 by default, unless other settings silently switch it off."""
    if _asked(settings):
        return True
    if settings.truth("enable.idempotence") is False:
        return False
    return _acks(settings) in {"all", ""} and _retries(settings) != 0 and (settings.number(_IN_FLIGHT) or 0) <= 5


def _no_acks(settings: Settings) -> str | None:
    return "acks=0" if _acks(settings) == "0" else None


def _leader_acks(settings: Settings) -> str | None:
    return "acks=1" if _acks(settings) == "1" else None


def _refused(settings: Settings) -> str | None:
    """Combinations with which KafkaProducer throws a ConfigException."""
    written = "enable.idempotence" in settings.given
    if _transactional(settings) and written and settings.truth("enable.idempotence") is False:
        return "transactional.id with enable.idempotence=false"
    if not _asked(settings):
        return None
    wrong = []
    if _acks(settings) not in {"all", ""}:
        wrong.append(f"acks={_acks(settings)}")
    if _retries(settings) == 0:
        wrong.append("retries=0")
    if (settings.number(_IN_FLIGHT) or 0) > 5:
        wrong.append(f"{_IN_FLIGHT}={settings.number(_IN_FLIGHT)}")
    first = "enable.idempotence=true" if written else "transactional.id"
    return f"{first} with {', '.join(wrong)}" if wrong else None


def _order(settings: Settings) -> str | None:
    flight = settings.number(_IN_FLIGHT) or 0
    if idempotent(settings) or _retries(settings) == 0 or flight <= 1:
        return None
    return f"not idempotent, {_IN_FLIGHT}={flight}"


def _duplicates(settings: Settings) -> str | None:
    if idempotent(settings) or _retries(settings) == 0:
        return None
    if settings.truth("enable.idempotence") is False:
        return "enable.idempotence=false"
    return f"off with acks={_acks(settings)} and {_IN_FLIGHT}={settings.number(_IN_FLIGHT)}"


def _no_retries(settings: Settings) -> str | None:
    return "retries=0" if _retries(settings) == 0 else None


def _delivery_refused(settings: Settings) -> str | None:
    """Only what was set by hand is refused: the default is raised, with a line in the log."""
    if "delivery.timeout.ms" not in settings.given:
        return None
    delivery = settings.number("delivery.timeout.ms")
    linger, request = settings.number("linger.ms"), settings.number("request.timeout.ms")
    if delivery is None or linger is None or request is None or delivery >= min(linger + request, _LONGEST_MS):
        return None
    return f"delivery.timeout.ms={delivery}, linger.ms={linger}, request.timeout.ms={request}"


def _delivery_short(settings: Settings) -> str | None:
    delivery = settings.number("delivery.timeout.ms")
    return f"delivery.timeout.ms={delivery}" if delivery is not None and delivery < _SHORT_MS else None


def _linger(settings: Settings) -> str | None:
    linger, batch = settings.number("linger.ms"), settings.number("batch.size")
    if batch == 0:
        return "batch.size=0"
    if linger == 0 and batch is not None and "batch.size" in settings.given and batch > 16_384:
        return f"batch.size={batch}, linger.ms=0"
    return None


def _request_size(settings: Settings) -> str | None:
    size = settings.number("max.request.size")
    return f"max.request.size={size}" if size is not None and size > _MAX_MESSAGE else None


def _buffer(settings: Settings) -> str | None:
    buffer, batch = settings.number("buffer.memory"), settings.number("batch.size")
    if buffer is None or batch is None or buffer >= 2 * batch:
        return None
    return f"buffer.memory={buffer}, batch.size={batch}"


_P = ("producers",)

RULES = (
    Rule(
        "producer-acks-none", Severity.ERROR, "Records are lost without a word", _P,
        "With acks=0 the producer does not wait for any answer: what a broker refused, or never got, counts as sent.",
        "Kafka's documentation, acks", "acks=all", _per_producer(_no_acks),
    ),
    Rule(
        "producer-acks-leader", Severity.WARNING, "Records are lost with their leader", _P,
        "acks=1 is answered before any follower has the record: measured, an unclean election lost 4,556 acknowledged "
        "records. acks=all is the default since 3.0; older notes say 1.",
        "Kafka's documentation, acks; KIP-679", "acks=all, with min.insync.replicas=2 on the topic.",
        _per_producer(_leader_acks),
    ),
    Rule(
        "producer-refuses-settings", Severity.ERROR, "The producer does not start with these settings", _P,
        "Idempotence, and transactions, need acks=all, retries, and at most 5 requests in flight: ConfigException.",
        "org.apache.kafka.clients.producer.ProducerConfig.postProcessAndValidateIdempotenceConfigs",
        "Remove what contradicts it.", _per_producer(_refused), Versions(since=(0, 11)),
    ),
    Rule(
        "producer-order", Severity.WARNING, "A retry can change the order", _P,
        "Without idempotence a batch that is sent again can end up behind its successor: measured, up to 1,811 "
        "inversions "
        "after a leader was killed. Idempotence keeps the order with up to 5 requests in flight; without it, it is 1.",
        "Kafka's documentation, max.in.flight.requests.per.connection", "enable.idempotence=true, or "
        f"{_IN_FLIGHT}=1.",
        _per_producer(_order),
    ),
    Rule(
        "producer-duplicates", Severity.INFO, "A retry can write a record twice", _P,
        "When an acknowledgement is lost, the batch is sent again: measured, up to 70 duplicates after a leader was "
        "killed, "
        "none with idempotence. It is on by default since 3.0, and silently off when acks, retries or requests in "
        "flight "
        "contradict it.",
        "KIP-98, KIP-679", "enable.idempotence=true", _per_producer(_duplicates), Versions(since=(0, 11)),
    ),
    Rule(
        "producer-no-retries", Severity.WARNING, "Every hiccup is a failed record", _P,
        "A new leader, a restarted broker: each is an error that the next attempt would not meet. Older notes say 0 "
        "is the "
        "default; since 2.1 there is no limit but delivery.timeout.ms.",
        "KIP-91", "Remove retries, and set delivery.timeout.ms.", _per_producer(_no_retries),
    ),
    Rule(
        "producer-delivery-timeout", Severity.ERROR, "delivery.timeout.ms is too small to start", _P,
        "It has to be at least linger.ms + request.timeout.ms, else ConfigException. (Only where it was set: the "
        "default is raised to that sum.)",
        "KIP-91, org.apache.kafka.clients.producer.KafkaProducer.configureDeliveryTimeout",
        "A longer delivery.timeout.ms, or a shorter request.timeout.ms.", _per_producer(_delivery_refused),
        Versions(since=(2, 1)),
    ),
    Rule(
        "producer-gives-up-soon", Severity.WARNING, "Records fail during an ordinary change of leader", _P,
        "After a crash a partition takes no writes for 7 to 18 s, the session timeout of its broker; what waits longer "
        "than delivery.timeout.ms fails.",
        "Measured; KIP-91", "delivery.timeout.ms=120000, the default.", _per_producer(_delivery_short),
        Versions(since=(2, 1)),
    ),
    Rule(
        "producer-batches", Severity.INFO, "Batches stay small", _P,
        "With linger.ms=0 a batch is sent as soon as the connection is free, however empty; a larger batch.size alone "
        "changes little. Since 4.0 the default of linger.ms is 5.",
        "Kafka's documentation, linger.ms; KIP-1030", "linger.ms=5 or more.", _per_producer(_linger),
    ),
    Rule(
        "producer-request-size", Severity.INFO, "Larger messages than brokers take by default", _P,
        "message.max.bytes of brokers (max.message.bytes of a topic) is 1,048,588 by default: what is larger is "
        "refused "
        "there (MESSAGE_TOO_LARGE).",
        "Kafka's documentation, max.request.size", "max.message.bytes of the topic at least as large.",
        _per_producer(_request_size),
    ),
    Rule(
        "producer-buffer", Severity.WARNING, "Room for hardly one batch", _P,
        "send() blocks, for up to max.block.ms, while the buffer is full.",
        "Kafka's documentation, buffer.memory", "buffer.memory of many times batch.size (32 MiB is the default).",
        _per_producer(_buffer),
    ),
)  # fmt: skip
