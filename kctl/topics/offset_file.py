"""The file of kafka-delete-records: {"partitions": [{"topic": …, "partition": …, "offset": …}], "version": 1}.

Parsed like org.apache.kafka.tools.DeleteRecordsCommand, ignoring unknown keys. Offset -1 is the high watermark.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kctl.base.input_file import read_input
from kctl.cluster.kafka_json import MAX_BYTES, entry_fault, load_object, partition_of, read_partitions, value_text
from kctl.model import TopicPartition

_KEYS = ("version", "partitions", "topic", "partition", "offset")
_HINT = '{"version": 1, "partitions": [{"topic": "orders", "partition": 0, "offset": 5}]}'


def read_offset_file(path: Path) -> dict[TopicPartition, int]:
    """Read offsets by partition; "-" is stdin. Raises NotFound, InvalidFile."""
    return parse_offset_file(*read_input(path, max_bytes=MAX_BYTES))


def parse_offset_file(data: bytes, name: str) -> dict[TopicPartition, int]:
    """Parse the offsets of a file. name: the file, for errors. Raises InvalidFile."""
    offsets: dict[TopicPartition, int] = {}

    def take(entry: Any) -> str | None:
        fault = entry_fault(entry, ("offset",))
        if fault:
            return fault
        tp, offset = partition_of(entry), entry["offset"]
        if type(offset) is not int or not -1 <= offset < 2**63:
            return f"offset: {value_text(offset)} is not an offset"
        if tp in offsets:
            return f"{tp} is listed twice"
        offsets[tp] = offset
        return None

    read_partitions(load_object(data, name, keys=_KEYS, hint=_HINT), name, hint=_HINT, take=take)
    return offsets
