"""What a run would write, without writing: every line looked at, and the topic, the right to write, the partitions."""

from __future__ import annotations

import select
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kctl.cluster_rights import WRITE, topics_denied
from kctl.errors import NotAuthorized
from kctl.records.destination import Destination
from kctl.records.fitting import Fitting, Parse
from kctl.records.outgoing import Outgoing, Unfit
from kctl.records.partitioner import partition_of
from kctl.records.produce_input import Supply
from kctl.records.produce_options import ProduceOptions

if TYPE_CHECKING:
    from kctl.client import ClusterClient

_MOST_BAD_LINES = 20


@dataclass
class ProduceCheck:
    """What lines would become. records: those that can be records; bytes: their keys and values.

    partitions: records by the partition that they name or that their key has; any_partition: those that go wherever a
    batch is filled. tombstones: without a value. largest_bytes: key and value of the largest. bad: lines that can be no
    record, of which bad_lines has the first reasons. max_batch_bytes: the largest batch that the topic takes; None when
    it may not be read.
    """

    topic: str
    records: int = 0
    bytes: int = 0
    tombstones: int = 0
    largest_bytes: int = 0
    any_partition: int = 0
    partitions: dict[int, int] = field(default_factory=dict)
    bad: int = 0
    bad_lines: list[str] = field(default_factory=list)
    max_batch_bytes: int | None = None


def check_lines(destination: Destination, options: ProduceOptions, supply: Supply, parse: Parse | None) -> ProduceCheck:
    """Look at all lines (of made values at options.count), whatever is wrong with some. Raises InvalidFile."""
    found = ProduceCheck(options.topic, max_batch_bytes=destination.max_batch_bytes)
    fitting = Fitting(destination, options, supply, parse)
    try:
        while not supply.ended and found.records + found.bad != options.count:
            if supply.at >= len(supply.lines):
                if supply.fd is not None:
                    select.select([supply.fd], [], [])  # a pipe's writer
                supply.fill()
                continue
            line, number = supply.lines[supply.at], supply.number
            supply.at, supply.number = supply.at + 1, number + 1
            try:
                _count(found, fitting.record(line, number), fitting.partitions)
            except Unfit as exc:
                found.bad += 1
                if len(found.bad_lines) < _MOST_BAD_LINES:
                    found.bad_lines.append(fitting.why(number, exc))
    finally:
        supply.close()
    found.partitions = dict(sorted(found.partitions.items()))
    return found


def _count(found: ProduceCheck, record: Outgoing, partitions: int) -> None:
    size = len(record.key or b"") + len(record.value or b"")
    found.records += 1
    found.bytes += size
    found.tombstones += record.value is None
    found.largest_bytes = max(found.largest_bytes, size)
    partition = record.partition
    if partition is None and record.key is not None:
        partition = partition_of(record.key, partitions)
    if partition is None:
        found.any_partition += 1
    else:
        found.partitions[partition] = found.partitions.get(partition, 0) + 1


def check_right_to_write(client: ClusterClient, topic: str) -> None:
    """Raise NotAuthorized when brokers say that the user may not write to the topic; before 2.3 they do not tell."""
    if topics_denied(client, [topic], WRITE):
        raise NotAuthorized(f"not authorized to write to topic {topic}", hint="ask for the ACL operation Write on it")
