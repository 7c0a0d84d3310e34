"""What a topic has when all is over: every partition from its start to its end offset, as arrays."""

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


def log_ends(client: ClusterClient, topic: str) -> dict[TopicPartition, LogOffsets]:
    """Both ends of all partitions. Raises what the leaders say, NotFound, OperationFailed."""
    state = known_topics(client, [topic])
    offsets, missing, unread = read_log_offsets(client, [each.tp for each in state.topics[topic].partitions])
    for error in unread.values():
        raise error
    if missing:
        raise OperationFailed(f"topic {topic} was deleted while it was read")
    return offsets


def wait_quiet(client: ClusterClient, topic: str, *, timeout_s: float = 30.0, quiet_s: float = 1.0) -> None:
    """Return when nothing has come for quiet_s: records without an answer may still be on their way.

    Raises OperationFailed when somebody goes on writing for timeout_s, and what `log_ends` raises.
    """
    deadline = Deadline(timeout_s)
    before = log_ends(client, topic)
    while True:
        time.sleep(quiet_s)
        now = log_ends(client, topic)
        if now == before:
            return
        if deadline.expired:
            raise OperationFailed(f"somebody writes to topic {topic}", hint="it is to be the validation's own")
        before = now


def read_log(client: ClusterClient, topic: str, run: str, *, timeout_s: float = 30.0) -> Log:
    """All records up to the high watermarks of now; to be called when all partitions have a leader and their ISR,
    and nobody writes (`wait_quiet`).

    timeout_s: how long a partition may stay unreadable. Raises NotFound, NotAuthorized, ConnectionFailed, and
    OperationFailed when a partition cannot be read to its end, is damaged, or changes while it is read.
    """
    log: Log = {tp.partition: LogPartition(found.start, found.end) for tp, found in log_ends(client, topic).items()}
    options = ConsumeOptions(topics=(topic,), from_beginning=True, exit_eof=True, timeout_s=timeout_s)
    result = consume(client, options, _Collector(run, log))
    if result.ended != "end":
        raise OperationFailed(f"topic {topic} was not read to its end: {result.ended}")
    for partition in log.values():  # what came behind the ends that were read first is read, too
        partition.end = max(partition.end, partition.offsets[-1] + 1) if partition.offsets else partition.end
    return log
