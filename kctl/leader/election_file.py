"""Kafka's file for kafka-leader-election: {"partitions": [{"topic": ..., "partition": ...}]}.

As org.apache.kafka.tools.LeaderElectionCommand reads it: it has no version, and whatever else is in it is passed over.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kctl.base.input_file import read_input
from kctl.cluster.kafka_json import MAX_BYTES, entry_fault, load_object, partition_of, read_partitions
from kctl.model import TopicPartition

_KEYS = ("partitions", "topic", "partition")
_HINT = '{"partitions": [{"topic": "orders", "partition": 0}]}'


def read_election_file(path: Path) -> list[TopicPartition]:
    """The partitions, sorted; a dash is stdin. Raises NotFound, InvalidFile."""
    return parse_election_file(*read_input(path, max_bytes=MAX_BYTES))


def parse_election_file(data: bytes, name: str) -> list[TopicPartition]:
    """The partitions in the bytes of a file. name: of the file, for messages. Raises InvalidFile."""
    partitions: set[TopicPartition] = set()

    def take(entry: Any) -> str | None:
        fault = entry_fault(entry, ())
        if fault:
            return fault
        tp = partition_of(entry)
        if tp in partitions:
            return f"{tp} is there twice"
        partitions.add(tp)
        return None

    read_partitions(load_object(data, name, keys=_KEYS, hint=_HINT, versioned=False), name, hint=_HINT, take=take)
    return sorted(partitions)
