"""Writes to topics at a known rate."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from kafka import KafkaProducer

RECORD_BYTES = 10_000  # plus some 80 for the batch and the record
_STEP_S = 0.1


@contextmanager
def written(bootstrap: str, bytes_per_s: Mapping[str, int]) -> Iterator[None]:
    """Write this many bytes a second to partition 0 of each topic in the background, in records of RECORD_BYTES.

    Follows the clock: delayed records are written later. Raises errors of the sender at the end.
    """
    stop = threading.Event()
    failures: list[Exception] = []
    producer = KafkaProducer(bootstrap_servers=[bootstrap], acks=1, linger_ms=0, batch_size=4 * RECORD_BYTES)
    writer = threading.Thread(target=_write, args=(producer, dict(bytes_per_s), stop, failures), daemon=True)
    writer.start()
    try:
        yield
    finally:
        stop.set()
        writer.join(60)
        producer.close(timeout=30)
    if failures:
        raise failures[0]


def _write(producer: KafkaProducer, rates: dict[str, int], stop: threading.Event, failures: list[Exception]) -> None:
    value, begun, sent = os.urandom(RECORD_BYTES), time.monotonic(), dict.fromkeys(rates, 0)
    try:
        while not stop.wait(_STEP_S):
            for topic, rate in rates.items():
                due = int((time.monotonic() - begun) * rate / RECORD_BYTES)
                for _ in range(due - sent[topic]):
                    producer.send(topic, value, partition=0)
                sent[topic] = due
            producer.flush(timeout=30)
    except Exception as exc:  # noqa: BLE001 - raised by `written`
        failures.append(exc)
