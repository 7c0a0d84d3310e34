"""The consumer of a validation: `python -m kctl.validate.workload.consumer_process FILE`.

Reads the topic from the beginning, without a group, until shutdown. Its journal has all delivered records in order.
If the log is truncated (unclean election), it continues at the nearest offset. If no broker responds, it waits.
"""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

from kctl.cluster.log_offsets import read_log_offsets
from kctl.cluster.topics import known_topics
from kctl.errors import ConnectionFailed, NotFound
from kctl.model import TopicPartition
from kctl.protocol.client import connect
from kctl.records.consume.batches import decode
from kctl.records.consume.fetcher import Fetched, Fetcher
from kctl.validate.workload.entries import ENDED, STOPPING
from kctl.validate.workload.records import sequences_of
from kctl.validate.workload.settings import ConsumerSettings, Task
from kctl.validate.workload.shutdown import ShutdownRequest, main
from kctl.validate.workload.write_journal import JournalWriter

if TYPE_CHECKING:
    from kctl.protocol.client import ClusterClient

_POLL_S = 0.1
_PAUSE_S = 0.2


def consume(task: Task, shutdown: ShutdownRequest) -> None:
    """Consume until shutdown.

    Raises KctlError if it cannot start or continue (topic deleted, corrupt batch, disk full).
    """
    settings = task.settings
    assert isinstance(settings, ConsumerSettings)
    with connect(task.target) as client:
        consumer = Consumer(client, settings)
        with JournalWriter(task.journal, settings.run) as journal:
            consumer.run(journal, shutdown)


class Consumer:
    """The consumer. Raises NotFound for an unknown topic or partition."""

    def __init__(self, client: ClusterClient, settings: ConsumerSettings) -> None:
        self._client, self._settings = client, settings
        count = len(known_topics(client, [settings.topic]).topics[settings.topic].partitions)
        numbers = range(count) if settings.partitions is None else settings.partitions
        if unknown := [number for number in numbers if number >= count]:
            raise NotFound(f"topic {settings.topic} has no partition {unknown[0]}")
        self._positions = {TopicPartition(settings.topic, number): 0 for number in numbers}
        self._journal: JournalWriter

    def run(self, journal: JournalWriter, shutdown: ShutdownRequest) -> None:
        """Read until shutdown."""
        self._journal = journal
        while not shutdown:
            fetcher = Fetcher(
                self._client, self._positions, read_committed=False, warn=_ignore, timeout_s=self._settings.timeout_s
            )
            try:
                while not shutdown:
                    for fetched in fetcher.poll(_POLL_S):
                        self._record(fetcher, fetched)
                    journal.write()
            except ConnectionFailed:  # no broker responds now
                time.sleep(_PAUSE_S)
            finally:
                fetcher.close()
                journal.write()
        journal.add(STOPPING)
        journal.add(ENDED)
        journal.write()

    def _record(self, fetcher: Fetcher, fetched: Fetched) -> None:
        if fetched.error_code:
            self._seek_nearest(fetcher, fetched.tp, fetched.position)
            return
        for chunk, next_position in decode(fetched.tp, fetched.data, fetched.position):
            if chunk is not None:
                number = chunk.tp.partition
                sequences = sequences_of(self._settings.run, number, chunk.keys)
                self._journal.add_read(number, chunk.offsets, sequences)
            self._positions[fetched.tp] = next_position

    def _seek_nearest(self, fetcher: Fetcher, tp: TopicPartition, position: int) -> None:
        """Move to the nearest offset in the log, because the position is out of range."""
        logs, _, _ = read_log_offsets(self._client, [tp])
        if tp in logs:
            position = min(max(position, logs[tp].start), logs[tp].end)
        else:  # the leader does not respond now; the fetch will fail again and retry
            time.sleep(_PAUSE_S)
        self._positions[tp] = position
        fetcher.seek(tp, position)


def _ignore(_line: str) -> None:
    """Ignore messages of the fetcher: the journal shows what is missing."""


if __name__ == "__main__":
    sys.exit(main(consume, ConsumerSettings))
