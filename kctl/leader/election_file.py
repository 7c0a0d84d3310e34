"""The file of kafka-leader-election: {"partitions": [{"topic": ..., "partition": ...}]}.

Parsed as by org.apache.kafka.tools.LeaderElectionCommand: it has no version, and other keys are ignored.
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
    """Return the partitions, sorted; "-" is stdin. Raises NotFound, InvalidFile."""
    return parse_election_file(*read_input(path, max_bytes=MAX_BYTES))


def parse_election_file(data: bytes, name: str) -> list[TopicPartition]:
    """Parse the contents of an election file. name: the file's name, for messages. Raises InvalidFile."""
    partitions: set[TopicPartition] = set()

    def take(entry: Any) -> str | None:
        fault = entry_fault(entry, ())
        if fault:
            return fault
        tp = partition_of(entry)
        if tp in partitions:
            return f"{tp} is listed twice"
        partitions.add(tp)
        return None

    read_partitions(load_object(data, name, keys=_KEYS, hint=_HINT, versioned=False), name, hint=_HINT, take=take)
    return sorted(partitions)
