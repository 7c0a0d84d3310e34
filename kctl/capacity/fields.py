"""What a plan is made of: each input's name, how people write it, its unit and its default.

The same names are keys in capacity.yaml, options on the command line (with dashes) and terms in the result.
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
LARGEST_SEGMENT = 2**31 - 1  # segment.bytes is an int
MOST_BROKERS = 10_000  # far beyond any cluster: what needs more is a slip of the pen
GIVEN, DEFAULT, MEASURED, SEEN, COMPUTED = "given", "default", "measured", "seen", "computed"


@dataclass(frozen=True, slots=True)
class Field:
    """One input. scope: TOPIC or CLUSTER. default: None for none, or for one that depends on others."""

    name: str
    scope: str
    unit: str
    parse: Callable[[str], Number]
    default: Number | None = None


@dataclass(frozen=True, slots=True)
class Input:
    """A value, and where it is from: given, default, measured (by --measure) or seen (in the cluster)."""

    value: Number
    source: str


Inputs = Mapping[str, Input]


def whole(least: int, most: int) -> Callable[[str], int]:
    """Parses whole numbers in a range. The parser raises UsageError."""

    def parse(text: str) -> int:
        digits = text.strip().replace("_", "")
        if not (digits.isascii() and digits.isdigit() and len(digits) < 20 and least <= int(digits) <= most):
            raise UsageError(f"{text[:40]!r} is not a whole number from {least:,} to {most:,}")
        return int(digits)

    return parse


def _size(text: str) -> int:
    size = parse_size(text)
    if size < 1:
        raise UsageError(f"{text!r} is nothing", hint="write for example 64MB or 4TB")
    return size


def _segment(text: str) -> int:
    size = _size(text)
    if size > LARGEST_SEGMENT:
        raise UsageError(f"{text!r} is more than segment.bytes can be", hint=f"at most {LARGEST_SEGMENT:,} bytes")
    return size


def _duration(text: str) -> int:
    if text.strip()[-1:].isdigit():  # elsewhere seconds; 7 meant as days would be a plan for nothing
        raise UsageError(f"{text!r} has no unit", hint="write for example 12h or 7d")
    duration_ms = parse_duration_ms(text)
    if duration_ms < 1:
        raise UsageError(f"{text!r} is no time at all", hint="write for example 12h or 7d")
    return duration_ms


def _per_s(text: str) -> Fraction:
    return Fraction(parse_record_rate(text)).limit_denominator(10**6)


def _ratio(text: str) -> Fraction:
    plain = text.strip().removesuffix(":1")
    if plain.endswith("%"):
        raise UsageError(f"{text!r} is not a ratio", hint="write 4 where 4 bytes become one")
    try:
        ratio = parse_percent(plain)
    except UsageError:
        ratio = Fraction(0)
    if not Fraction(1, 100) <= ratio <= 1000:
        raise UsageError(f"{text[:40]!r} is not a compression ratio", hint="write 4 where 4 bytes become one")
    return ratio


def _times(text: str) -> Fraction:
    plain = text.strip().removesuffix("x").removesuffix("×")
    try:
        times = Fraction(0) if plain.endswith("%") else parse_percent(plain)
    except UsageError:
        times = Fraction(0)
    if not 0 < times <= 100_000:
        raise UsageError(f"{text[:40]!r} is not how many times as much", hint="write for example 3 or 1.5")
    return times


def _share(least: str, most: str) -> Callable[[str], Fraction]:
    """Parses shares in a range, both ends included."""

    def parse(text: str) -> Fraction:
        share = parse_percent(text)
        if share > 1 and not text.strip().endswith("%"):  # 30 meant as percent would be a plan for 31 times as much
            raise UsageError(f"{text[:40]!r} has no unit", hint="write 30% or 0.3")
        if not parse_percent(least) <= share <= parse_percent(most):
            raise UsageError(f"{text[:40]!r} is not from {least} to {most}")
        return share

    return parse


_FIELDS = (
    # what is written
    Field("throughput", TOPIC, BYTES_PER_S, parse_throughput),
    Field("messages", TOPIC, PER_S, _per_s),
    Field("message_size", TOPIC, BYTES, _size),
    Field("compression_ratio", TOPIC, RATIO, _ratio, Fraction(1)),
    # what is kept
    Field("data", TOPIC, BYTES, _size),
    Field("keys", TOPIC, COUNT, whole(1, 10**15)),
    Field("retention", TOPIC, MS, _duration),
    Field("retention_bytes", TOPIC, BYTES, _size),
    Field("segment_size", TOPIC, BYTES, _segment, 2**30),
    Field("segment_time", TOPIC, MS, _duration, 604_800_000),
    # how it is spread
    Field("replication_factor", TOPIC, COUNT, whole(1, 1000), 3),
    Field("min_insync_replicas", TOPIC, COUNT, whole(1, 1000)),
    Field("groups", TOPIC, COUNT, whole(0, 100_000), 1),
    Field("consumer_rate", TOPIC, BYTES_PER_S, parse_throughput, 50_000_000),
    Field("producer_rate", TOPIC, BYTES_PER_S, parse_throughput),
    Field("max_partition_size", TOPIC, BYTES, _size, LARGE_PARTITION),
    Field("partitions", TOPIC, COUNT, whole(1, 1_000_000)),
    # brokers
    Field("disk", CLUSTER, BYTES, _size),
    Field("disks_per_broker", CLUSTER, COUNT, whole(1, 1000), 1),
    Field("network", CLUSTER, BYTES_PER_S, parse_throughput),
    Field("headroom", CLUSTER, SHARE, _share("0%", "95%"), Fraction(1, 5)),
    Field("network_limit", CLUSTER, SHARE, _share("1%", "100%"), Fraction(4, 5)),
    Field("times", CLUSTER, RATIO, _times, Fraction(1)),
    Field("growth", CLUSTER, SHARE, _share("0%", "10000%"), Fraction(0)),
    Field("years", CLUSTER, COUNT, whole(0, 50), 1),
    Field("survive", CLUSTER, COUNT, whole(0, 1000), 1),
    Field("brokers", CLUSTER, COUNT, whole(1, MOST_BROKERS)),
)
FIELDS: Mapping[str, Field] = {field.name: field for field in _FIELDS}
TOPIC_FIELDS = tuple(field.name for field in _FIELDS if field.scope == TOPIC)
CLUSTER_FIELDS = tuple(field.name for field in _FIELDS if field.scope == CLUSTER)
# What only one topic can have: not to be given for all topics of a file.
OF_ONE_TOPIC = ("throughput", "messages", "data", "keys", "partitions")


def parse_input(name: str, text: str) -> Input:
    """A value as somebody wrote it. Raises UsageError."""
    return Input(FIELDS[name].parse(text), GIVEN)
