"""Kafka's file for kafka-delete-records: {"partitions": [{"topic": …, "partition": …, "offset": …}], "version": 1}.

As org.apache.kafka.tools.DeleteRecordsCommand reads it, with whatever else is in it; an offset of -1 is the high
watermark.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kctl.errors import InvalidFile
from kctl.input_file import read_input
from kctl.kafka_json import load_object, shown
from kctl.model import TopicPartition
from kctl.topics.names import fault_of

MAX_BYTES = 32 << 20
_KEYS = ("version", "partitions", "topic", "partition", "offset")
_HINT = '{"version": 1, "partitions": [{"topic": "orders", "partition": 0, "offset": 5}]}'
_SHOWN = 3


def read_offset_file(path: Path) -> dict[TopicPartition, int]:
    """Offsets by partition; «-» is stdin. Raises NotFound, InvalidFile."""
    return parse_offset_file(*read_input(path, max_bytes=MAX_BYTES))


def parse_offset_file(data: bytes, name: str) -> dict[TopicPartition, int]:
    """The offsets in the bytes of a file. name: of the file, for messages. Raises InvalidFile."""
    problems: list[str] = []
    document = load_object(data, name, keys=_KEYS, hint=_HINT)
    if not isinstance(document.get("partitions"), list):
        raise InvalidFile(f'{name} has no list "partitions"', hint=_HINT)
    found: dict[TopicPartition, int] = {}
    for number, entry in enumerate(document["partitions"]):
        problem = _entry(entry, found)
        if problem:
            problems.append(f"partitions[{number}]: {problem}")
    if problems:
        more = f" (and {len(problems) - _SHOWN} more)" if len(problems) > _SHOWN else ""
        raise InvalidFile(f"{name}: {'; '.join(problems[:_SHOWN])}{more}")
    if not found:
        raise InvalidFile(f"{name}: it names no partitions")
    return found


def _entry(entry: Any, found: dict[TopicPartition, int]) -> str | None:
    """Put an entry into `found`; what is wrong with it."""
    if not isinstance(entry, Mapping):
        return f"it is no object: {shown(entry)}"
    missing = [key for key in ("topic", "partition", "offset") if key not in entry]
    if missing:
        return f"it has no {', no '.join(missing)}"
    topic, number, offset = entry["topic"], entry["partition"], entry["offset"]
    fault = fault_of(topic) if isinstance(topic, str) else "it is no text"
    if fault:
        return f"topic {shown(topic)}: {fault}"
    if type(number) is not int or not 0 <= number < 2**31:
        return f"partition: {shown(number)} is no partition"
    if type(offset) is not int or not -1 <= offset < 2**63:
        return f"offset: {shown(offset)} is no offset"
    tp = TopicPartition(topic, number)
    if tp in found:
        return f"{tp} is there twice"
    found[tp] = offset
    return None
