"""Read the log of a topic after a run: every partition from its start to its end offset, as arrays."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from kctl.base.deadline import Deadline
from kctl.cluster.log_offsets import LogOffsets, read_log_offsets
from kctl.cluster.topics import known_topics
from kctl.errors import OperationFailed
from kctl.model import TopicPartition
from kctl.records.chunk import Chunk
from kctl.records.consume.consume import ConsumeOptions, consume
from kctl.records.consume.delivery import Stats
from kctl.validate.workload.history import Log, LogPartition
from kctl.validate.workload.records import sequences_of

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient


class _Collector:
    """A sink that collects offsets and sequences."""

    def __init__(self, run: str, log: Log) -> None:
        self._run, self._log = run, log

    def write(self, chunk: Chunk) -> None:
        partition = self._log[chunk.tp.partition]
        if partition.offsets and chunk.offsets[0] <= partition.offsets[-1]:
            raise OperationFailed(
                f"{chunk.tp}: offset {chunk.offsets[0]} was read after {partition.offsets[-1]}: the log has changed",
                hint="wait until all partitions have a leader, and no producer writes",
            )
        partition.offsets.extend(chunk.offsets)
        partition.sequences.extend(sequences_of(self._run, chunk.tp.partition, chunk.keys))

    def flush(self) -> None:
        """Do nothing: nothing is buffered."""

    def warn(self, text: str) -> None:
        """Ignore warnings: the offsets show what is missing."""

    def stats(self, stats: Stats) -> None:
        """Ignore statistics."""


def log_ends(client: ClusterClient, topic: str) -> dict[TopicPartition, LogOffsets]:
    """Return the start and end offset of each partition. Raises the leaders' errors, NotFound, OperationFailed."""
    state = known_topics(client, [topic])
    offsets, missing, unread = read_log_offsets(client, [each.tp for each in state.topics[topic].partitions])
    for error in unread.values():
        raise error
    if missing:
        raise OperationFailed(f"topic {topic} was deleted during the read")
    return offsets


def wait_quiet(client: ClusterClient, topic: str, *, timeout_s: float = 30.0, quiet_s: float = 1.0) -> None:
    """Wait until no record arrives for quiet_s: records without a response may still be in flight.

    Raises OperationFailed if writes continue for timeout_s, and the errors of `log_ends`.
    """
    deadline = Deadline(timeout_s)
    before = log_ends(client, topic)
    while True:
        time.sleep(quiet_s)
        now = log_ends(client, topic)
        if now == before:
            return
        if deadline.expired:
            raise OperationFailed(f"another producer writes to topic {topic}", hint="stop that producer")
        before = now


def read_log(client: ClusterClient, topic: str, run: str, *, timeout_s: float = 30.0) -> Log:
    """Return all records up to the current high watermarks.

    Call it when all partitions have a leader and a full ISR, and no producer writes (`wait_quiet`). timeout_s: maximum
    time that a partition may be unreadable. Raises NotFound, NotAuthorized, ConnectionFailed, and OperationFailed if a
    partition cannot be read to its end, is corrupt, or changes during the read.
    """
    log: Log = {tp.partition: LogPartition(ends.start, ends.end) for tp, ends in log_ends(client, topic).items()}
    options = ConsumeOptions(topics=(topic,), from_beginning=True, exit_eof=True, timeout_s=timeout_s)
    result = consume(client, options, _Collector(run, log))
    if result.ended != "end":
        raise OperationFailed(f"topic {topic} was not read to its end: {result.ended}")
    for partition in log.values():  # records after the initial end offsets are read too
        partition.end = max(partition.end, partition.offsets[-1] + 1) if partition.offsets else partition.end
    return log
