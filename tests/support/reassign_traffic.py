"""Records written and read while partitions move, and a check that none was lost, repeated or reordered.

One thread writes numbered records to each partition (idempotent, acks=all), another reads all of them from the first
offset on. `stop` ends both and checks: each acknowledged record is at its offset with its number; the numbers of a
partition are unique and in order; the reader read every offset from the first to the end.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kafka.structs import TopicPartition

from kctl.protocol.client import ClusterClient

_CATCH_UP_S = 40.0


class Traffic:
    """A load of `rate` records of `record_bytes` per second over all partitions, until `stop`."""

    def __init__(
        self,
        connect: Callable[[], ClusterClient],
        topic: str,
        partitions: int,
        *,
        rate: float = 100,
        record_bytes: int = 200,
    ) -> None:
        self.topic = topic
        self._partitions = [TopicPartition(topic, number) for number in range(partitions)]
        self._pause_s = 1 / rate
        self._key = b"%d" % time.monotonic_ns()  # distinguishes its records from older ones
        self._padding = b"." * record_bytes
        self._sent: dict[TopicPartition, list[Any]] = {tp: [] for tp in self._partitions}
        self._seen: dict[TopicPartition, list[tuple[int, int]]] = {tp: [] for tp in self._partitions}  # offset, number
        self._ending = threading.Event()
        self._written = threading.Event()
        self._failures: list[Exception] = []
        with connect() as client:
            # linger_ms: without it, each record would be a batch, which is slow.
            self._producer = client.producer(linger_ms=20, delivery_timeout_ms=60_000, metadata_max_age_ms=5_000)
            self._consumer = client.consumer(
                auto_offset_reset="earliest", group_id=None, enable_auto_commit=False, metadata_max_age_ms=5_000
            )
        self._threads = [threading.Thread(target=self._run, args=(f,), daemon=True) for f in (self._write, self._read)]
        for thread in self._threads:
            thread.start()

    def _run(self, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception as exc:  # noqa: BLE001 - a thread's own failure is the test's failure
            self._failures.append(exc)
            self._ending.set()

    def _write(self) -> None:
        number = 0
        try:
            began = time.monotonic()
            while not self._ending.is_set():
                tp = self._partitions[number % len(self._partitions)]
                sequence = number // len(self._partitions)
                value = b"%d:%s" % (sequence, self._padding)
                self._sent[tp].append(self._producer.send(self.topic, value, key=self._key, partition=tp.partition))
                number += 1
                self._ending.wait(max(0.0, began + number * self._pause_s - time.monotonic()))
            self._producer.flush(timeout=60)
        finally:
            self._written.set()
            self._producer.close(timeout=5)

    def _read(self) -> None:
        self._consumer.assign(self._partitions)
        patience: float | None = None
        try:
            while True:
                for tp, records in self._consumer.poll(timeout_ms=200).items():
                    rows = (
                        (r.offset, int((r.value or b"").split(b":", 1)[0]) if r.key == self._key else -1)
                        for r in records
                    )
                    self._seen[tp].extend(rows)
                if self._written.is_set():
                    patience = patience or time.monotonic() + _CATCH_UP_S
                    if not self._missing() or time.monotonic() > patience:
                        return
        finally:
            self._consumer.close()

    def _missing(self) -> list[str]:
        """Return the partitions whose last acknowledged record has not been read yet."""
        return [
            str(tp)
            for tp, futures in self._sent.items()
            if max((f.get(0).offset for f in futures if f.is_done and f.succeeded()), default=-1)
            > (self._seen[tp][-1][0] if self._seen[tp] else -1)
        ]

    @property
    def acknowledged(self) -> int:
        """Return the number of acknowledged records."""
        return sum(1 for futures in list(self._sent.values()) for f in list(futures) if f.is_done and f.succeeded())

    def stop(self) -> None:
        """End writing and reading, and check all that was written. Raises AssertionError."""
        self._ending.set()
        for thread in self._threads:
            thread.join(timeout=120)
        if self._failures:
            raise self._failures[0]
        assert not any(thread.is_alive() for thread in self._threads), "the writer or the reader hangs"
        assert not self._missing(), f"acknowledged, and not read within {_CATCH_UP_S:g} s: {self._missing()}"
        assert self.acknowledged, "no record was acknowledged: nothing was proven"
        for tp in self._partitions:
            futures = enumerate(self._sent[tp])
            acknowledged = {f.get(0).offset: number for number, f in futures if f.is_done and f.succeeded()}
            found = faults(acknowledged, self._seen[tp])
            assert not found, f"{tp}: {found}"


def faults(acknowledged: Mapping[int, int], seen: Sequence[tuple[int, int]]) -> list[str]:
    """Return the errors of a partition. acknowledged: offset → number. seen: (offset, number) as read, -1: foreign.

    An unacknowledged record may be in the log or not; an acknowledged one is at the offset that the broker returned.
    """
    found = []
    offsets = [offset for offset, _ in seen]
    if offsets != list(range(len(offsets))):
        found.append("offsets are not contiguous")
    if not all(a < b for a, b in itertools.pairwise(number for _, number in seen if number >= 0)):
        found.append("a record is there twice, or out of order")
    at = dict(seen)
    wrong = {offset: number for offset, number in acknowledged.items() if at.get(offset) != number}
    if wrong:
        first = min(wrong)
        found.append(f"{len(wrong)} acknowledged records are lost, the first: {wrong[first]} at offset {first}")
    return found
