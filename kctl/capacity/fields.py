"""The inputs of a capacity plan: name, parser, unit and default.

The names are also the keys in capacity.yaml, the command-line options (with dashes) and the terms in the result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction

from kctl.base.units import parse_duration_ms, parse_percent, parse_size, parse_throughput
from kctl.doctor.rules_sizes import LARGE_PARTITION
from kctl.errors import UsageError
from kctl.records.produce.pace import parse_record_rate

Number = int | Fraction
TOPIC, CLUSTER = "topic", "cluster"
BYTES, BYTES_PER_S, PER_S, MS, COUNT, RATIO, SHARE = "bytes", "bytes_per_s", "per_s", "ms", "count", "ratio", "share"
MAX_SEGMENT_BYTES = 2**31 - 1  # segment.bytes is an int
MAX_BROKERS = 10_000  # far beyond any cluster; a plan that needs more contains a mistake
GIVEN, DEFAULT, MEASURED, SEEN, COMPUTED = "given", "default", "measured", "seen", "computed"


@dataclass(frozen=True, slots=True)
class InputField:
    """An input. scope: TOPIC or CLUSTER. default: None if there is none, or if it depends on other inputs."""

    name: str
    scope: str
    unit: str
    parse: Callable[[str], Number]
    default: Number | None = None


@dataclass(frozen=True, slots=True)
class Input:
    """A value and its source: given, default, measured (by --measure) or seen (in the cluster)."""

    value: Number
    source: str


Inputs = Mapping[str, Input]


def whole(minimum: int, maximum: int) -> Callable[[str], int]:
    """Return a parser of whole numbers in a range. The parser raises UsageError."""

    def parse(text: str) -> int:
        digits = text.strip().replace("_", "")
        if not (digits.isascii() and digits.isdigit() and len(digits) < 20 and minimum <= int(digits) <= maximum):
            raise UsageError(f"{text[:40]!r} is not a whole number from {minimum:,} to {maximum:,}")
        return int(digits)

    return parse


def _size(text: str) -> int:
    size = parse_size(text)
    if size < 1:
        raise UsageError(f"{text!r} is not a size above 0", hint="write it like 64MB or 4TB")
    return size


def _segment(text: str) -> int:
    size = _size(text)
    if size > MAX_SEGMENT_BYTES:
        raise UsageError(f"{text!r} exceeds the maximum of segment.bytes", hint=f"at most {MAX_SEGMENT_BYTES:,} bytes")
    return size


def _duration(text: str) -> int:
    if text.strip()[-1:].isdigit():  # a bare 7 would mean seconds, but the user probably means days
        raise UsageError(f"{text!r} has no unit", hint="write it like 12h or 7d")
    duration_ms = parse_duration_ms(text)
    if duration_ms < 1:
        raise UsageError(f"{text!r} is not a duration above 0", hint="write it like 12h or 7d")
    return duration_ms


def _per_s(text: str) -> Fraction:
    return Fraction(parse_record_rate(text)).limit_denominator(10**6)


def _ratio(text: str) -> Fraction:
    plain = text.strip().removesuffix(":1")
    if plain.endswith("%"):
        raise UsageError(f"{text!r} is not a ratio", hint="write 4 if 4 bytes are compressed to 1")
    try:
        ratio = parse_percent(plain)
    except UsageError:
        ratio = Fraction(0)
    if not Fraction(1, 100) <= ratio <= 1000:
        raise UsageError(f"{text[:40]!r} is not a compression ratio", hint="write 4 if 4 bytes are compressed to 1")
    return ratio


def _times(text: str) -> Fraction:
    plain = text.strip().removesuffix("x").removesuffix("×")
    try:
        times = Fraction(0) if plain.endswith("%") else parse_percent(plain)
    except UsageError:
        times = Fraction(0)
    if not 0 < times <= 100_000:
        raise UsageError(f"{text[:40]!r} is not a factor above 0", hint="write it like 3 or 1.5")
    return times


def _share(minimum: str, maximum: str) -> Callable[[str], Fraction]:
    """Return a parser of shares in a range, both ends included. The parser raises UsageError."""

    def parse(text: str) -> Fraction:
        share = parse_percent(text)
        if share > 1 and not text.strip().endswith("%"):  # a bare 30 would mean 3000%, but the user probably means 30%
            raise UsageError(f"{text[:40]!r} has no unit", hint="write 30% or 0.3")
        if not parse_percent(minimum) <= share <= parse_percent(maximum):
            raise UsageError(f"{text[:40]!r} is not between {minimum} and {maximum}")
        return share

    return parse


_FIELDS = (
    # write load
    InputField("throughput", TOPIC, BYTES_PER_S, parse_throughput),
    InputField("messages", TOPIC, PER_S, _per_s),
    InputField("message_size", TOPIC, BYTES, _size),
    InputField("compression_ratio", TOPIC, RATIO, _ratio, Fraction(1)),
    # retention
    InputField("data", TOPIC, BYTES, _size),
    InputField("keys", TOPIC, COUNT, whole(1, 10**15)),
    InputField("retention", TOPIC, MS, _duration),
    InputField("retention_bytes", TOPIC, BYTES, _size),
    InputField("segment_size", TOPIC, BYTES, _segment, 2**30),
    InputField("segment_time", TOPIC, MS, _duration, 604_800_000),
    # partitions and replicas
    InputField("replication_factor", TOPIC, COUNT, whole(1, 1000), 3),
    InputField("min_insync_replicas", TOPIC, COUNT, whole(1, 1000)),
    InputField("groups", TOPIC, COUNT, whole(0, 100_000), 1),
    InputField("consumer_rate", TOPIC, BYTES_PER_S, parse_throughput, 50_000_000),
    InputField("producer_rate", TOPIC, BYTES_PER_S, parse_throughput),
    InputField("max_partition_size", TOPIC, BYTES, _size, LARGE_PARTITION),
    InputField("partitions", TOPIC, COUNT, whole(1, 1_000_000)),
    # brokers
    InputField("disk", CLUSTER, BYTES, _size),
    InputField("disks_per_broker", CLUSTER, COUNT, whole(1, 1000), 1),
    InputField("network", CLUSTER, BYTES_PER_S, parse_throughput),
    InputField("headroom", CLUSTER, SHARE, _share("0%", "95%"), Fraction(1, 5)),
    InputField("network_limit", CLUSTER, SHARE, _share("1%", "100%"), Fraction(4, 5)),
    InputField("times", CLUSTER, RATIO, _times, Fraction(1)),
    InputField("growth", CLUSTER, SHARE, _share("0%", "10000%"), Fraction(0)),
    InputField("years", CLUSTER, COUNT, whole(0, 50), 1),
    InputField("survive", CLUSTER, COUNT, whole(0, 1000), 1),
    InputField("brokers", CLUSTER, COUNT, whole(1, MAX_BROKERS)),
)
FIELDS: Mapping[str, InputField] = {field.name: field for field in _FIELDS}
TOPIC_FIELDS = tuple(field.name for field in _FIELDS if field.scope == TOPIC)
CLUSTER_FIELDS = tuple(field.name for field in _FIELDS if field.scope == CLUSTER)
# Inputs of a single topic; not allowed on the command line for all topics of a file.
OF_ONE_TOPIC = ("throughput", "messages", "data", "keys", "partitions")


def parse_input(name: str, text: str) -> Input:
    """Parse an input value that a user wrote. Raises UsageError."""
    return Input(FIELDS[name].parse(text), GIVEN)
