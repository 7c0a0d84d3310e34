"""What a run would write, without writing: every line looked at, and the topic, the right to write, the partitions."""

from __future__ import annotations

import select
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kctl.cluster.rights import WRITE, topics_denied
from kctl.errors import NotAuthorized
from kctl.records.produce.destination import Destination
from kctl.records.produce.fitting import Fitting, Parse
from kctl.records.produce.input import Supply
from kctl.records.produce.options import ProduceOptions
from kctl.records.produce.outgoing import Outgoing, Unfit
from kctl.records.produce.partitioner import partition_of

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient

_MOST_BAD_LINES = 20


@dataclass(frozen=True, slots=True)
class PartitionRecords:
    """How many records there are for a partition."""

    partition: int
    records: int


@dataclass
class ProduceCheck:
    """What lines would become. records: those that can be records; bytes: their keys and values.

    partitions: those that records name or that their keys have; any_partition_count: records that go wherever a batch
    is filled. tombstone_count: without a value. largest_bytes: key and value of the largest. bad_line_count: lines that
    can be no record, of which bad_lines has the first reasons. max_batch_bytes: the largest batch that the topic takes;
    None when it may not be read.
    """

    topic: str
    records: int = 0
    bytes: int = 0
    tombstone_count: int = 0
    largest_bytes: int = 0
    any_partition_count: int = 0
    partitions: list[PartitionRecords] = field(default_factory=list)
    bad_line_count: int = 0
    bad_lines: list[str] = field(default_factory=list)
    max_batch_bytes: int | None = None


def check_lines(
    destination: Destination,
    options: ProduceOptions,
    supply: Supply,
    parse: Parse | None,
    *,
    progress: Callable[[ProduceCheck], None] | None = None,
) -> ProduceCheck:
    """Look at all lines (of made values at options.count), whatever is wrong with some. Raises InvalidFile.

    progress: told now and then what was found so far.
    """
    found = ProduceCheck(options.topic, max_batch_bytes=destination.max_batch_bytes)
    counts: Counter[int] = Counter()
    fitting = Fitting(destination, options, supply, parse)
    try:
        while not supply.ended and found.records + found.bad_line_count != options.count:
            if supply.at >= len(supply.lines):
                if supply.fd is not None:
                    select.select([supply.fd], [], [])  # a pipe's writer
                supply.fill()
                if progress is not None:
                    progress(found)
                continue
            if fitting.plain and _count_values(found, counts, fitting, options, supply):
                continue
            line, number = supply.lines[supply.at], supply.number
            supply.at, supply.number = supply.at + 1, number + 1
            try:
                _count(found, counts, fitting.record(line, number), fitting.partitions)
            except Unfit as exc:
                found.bad_line_count += 1
                if len(found.bad_lines) < _MOST_BAD_LINES:
                    found.bad_lines.append(fitting.why(number, exc))
    finally:
        supply.close()
    found.partitions = [PartitionRecords(*each) for each in sorted(counts.items())]
    return found


def _count_values(
    found: ProduceCheck, counts: Counter[int], fitting: Fitting, options: ProduceOptions, supply: Supply
) -> bool:
    """Take all lines that are there as values, when they are small enough; whether they are."""
    start, end = supply.at, len(supply.lines)
    if options.count is not None:
        end = min(end, start + options.count - found.records - found.bad_line_count)
    if not fitting.all_fit(start, end):
        return False
    sizes = list(map(len, supply.lines[start:end]))
    found.records += len(sizes)
    found.bytes += sum(sizes)
    found.largest_bytes = max(found.largest_bytes, *sizes)
    if options.partition is None:
        found.any_partition_count += len(sizes)
    else:
        counts[options.partition] += len(sizes)
    supply.at, supply.number = end, supply.number + len(sizes)
    return True


def _count(found: ProduceCheck, counts: Counter[int], record: Outgoing, partitions: int) -> None:
    size = len(record.key or b"") + len(record.value or b"")
    found.records += 1
    found.bytes += size
    found.tombstone_count += record.value is None
    found.largest_bytes = max(found.largest_bytes, size)
    partition = record.partition
    if partition is None and record.key is not None:
        partition = partition_of(record.key, partitions)
    if partition is None:
        found.any_partition_count += 1
    else:
        counts[partition] += 1


def check_right_to_write(client: ClusterClient, topic: str) -> None:
    """Raise NotAuthorized when brokers say that the user may not write to the topic; before 2.3 they do not tell."""
    if topics_denied(client, [topic], WRITE):
        raise NotAuthorized(f"not authorized to write to topic {topic}", hint="ask for the ACL operation Write on it")
