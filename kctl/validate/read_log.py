"""What a topic has when all is over: every partition from its start to its end offset, as arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kctl.errors import OperationFailed
from kctl.lag.collect import read_log_offsets
from kctl.records.chunk import Chunk
from kctl.records.consume import ConsumeOptions, consume
from kctl.records.delivery import Stats
from kctl.topics.describe import known_topics
from kctl.validate.history import Log, LogPartition
from kctl.validate.records import sequences_of

if TYPE_CHECKING:
    from kctl.client import ClusterClient


class _Collector:
    """A sink that keeps offsets and sequences."""

    def __init__(self, run: str, log: Log) -> None:
        self._run, self._log = run, log

    def write(self, chunk: Chunk) -> None:
        partition = self._log[chunk.tp.partition]
        if partition.offsets and chunk.offsets[0] <= partition.offsets[-1]:
            raise OperationFailed(
                f"{chunk.tp}: offset {chunk.offsets[0]} was read behind {partition.offsets[-1]}: the log has changed",
                hint="wait until all partitions have their leaders, and nothing writes",
            )
        partition.offsets.extend(chunk.offsets)
        partition.sequences.extend(sequences_of(self._run, chunk.tp.partition, chunk.keys))

    def flush(self) -> None:
        """Nothing waits."""

    def warn(self, text: str) -> None:
        """Of no account: what is missing is found by the offsets."""

    def stats(self, stats: Stats) -> None:
        """Nobody looks."""


def read_log(client: ClusterClient, topic: str, run: str, *, timeout_s: float = 30.0) -> Log:
    """All records up to the high watermarks of now; to be called when all partitions have a leader and their ISR.

    timeout_s: how long a partition may stay unreadable. Raises NotFound, NotAuthorized, ConnectionFailed, and
    OperationFailed when a partition cannot be read to its end, is damaged, or changes while it is read.
    """
    state = known_topics(client, [topic])
    partitions = [each.tp for each in state.topics[topic].partitions]
    offsets, missing, unread = read_log_offsets(client, partitions)
    for error in unread.values():
        raise error
    if missing:
        raise OperationFailed(f"topic {topic} was deleted while it was read")
    log: Log = {tp.partition: LogPartition(found.start, found.end) for tp, found in offsets.items()}
    options = ConsumeOptions(topics=(topic,), from_beginning=True, exit_eof=True, timeout_s=timeout_s)
    result = consume(client, options, _Collector(run, log))
    if result.ended != "end":
        raise OperationFailed(f"topic {topic} was not read to its end: {result.ended}")
    for partition in log.values():  # what came behind the ends that were read first is read, too
        partition.end = max(partition.end, partition.offsets[-1] + 1) if partition.offsets else partition.end
    return log
