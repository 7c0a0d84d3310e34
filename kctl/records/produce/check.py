"""The dry run of producing: check every line, the topic, the right to write, and the partitions."""

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

_MAX_BAD_LINES = 20


@dataclass(frozen=True, slots=True)
class PartitionRecords:
    """The number of records for a partition."""

    partition: int
    records: int


@dataclass
class ProduceCheck:
    """The result of checking lines.

    records: the valid ones; bytes: their keys and values. partitions: by explicit partition or key;
    any_partition_count: records without either. tombstone_count: records without a value. largest_bytes: key and value
    of the largest record. bad_line_count: invalid lines; bad_lines: the first reasons. max_batch_bytes: the largest
    batch that the topic accepts; None if unreadable.
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
    """Check all lines, including those after an invalid line, or options.count generated values. Raises InvalidFile.

    progress: called repeatedly with the result so far.
    """
    result = ProduceCheck(options.topic, max_batch_bytes=destination.max_batch_bytes)
    counts: Counter[int] = Counter()
    fitting = Fitting(destination, options, supply, parse)
    try:
        while not supply.ended and result.records + result.bad_line_count != options.count:
            if supply.at >= len(supply.lines):
                if supply.fd is not None:
                    select.select([supply.fd], [], [])  # wait for a pipe's writer
                supply.fill()
                if progress is not None:
                    progress(result)
                continue
            if fitting.plain and _count_values(result, counts, fitting, options, supply):
                continue
            line, number = supply.lines[supply.at], supply.number
            supply.at, supply.number = supply.at + 1, number + 1
            try:
                _count(result, counts, fitting.record(line, number), fitting.partitions)
            except Unfit as exc:
                result.bad_line_count += 1
                if len(result.bad_lines) < _MAX_BAD_LINES:
                    result.bad_lines.append(fitting.why(number, exc))
    finally:
        supply.close()
    result.partitions = [PartitionRecords(*each) for each in sorted(counts.items())]
    return result


def _count_values(
    result: ProduceCheck, counts: Counter[int], fitting: Fitting, options: ProduceOptions, supply: Supply
) -> bool:
    """Count all buffered lines as values if they are small enough. Return True if they are."""
    start, end = supply.at, len(supply.lines)
    if options.count is not None:
        end = min(end, start + options.count - result.records - result.bad_line_count)
    if not fitting.all_fit(start, end):
        return False
    sizes = list(map(len, supply.lines[start:end]))
    result.records += len(sizes)
    result.bytes += sum(sizes)
    result.largest_bytes = max(result.largest_bytes, *sizes)
    if options.partition is None:
        result.any_partition_count += len(sizes)
    else:
        counts[options.partition] += len(sizes)
    supply.at, supply.number = end, supply.number + len(sizes)
    return True


def _count(result: ProduceCheck, counts: Counter[int], record: Outgoing, partitions: int) -> None:
    size = len(record.key or b"") + len(record.value or b"")
    result.records += 1
    result.bytes += size
    result.tombstone_count += record.value is None
    result.largest_bytes = max(result.largest_bytes, size)
    partition = record.partition
    if partition is None and record.key is not None:
        partition = partition_of(record.key, partitions)
    if partition is None:
        result.any_partition_count += 1
    else:
        counts[partition] += 1


def check_right_to_write(client: ClusterClient, topic: str) -> None:
    """Raise NotAuthorized if the user may not write to the topic. Brokers before 2.3 do not report this."""
    if topics_denied(client, [topic], WRITE):
        raise NotAuthorized(f"not authorized to write to topic {topic}", hint="ask for the ACL operation Write on it")
