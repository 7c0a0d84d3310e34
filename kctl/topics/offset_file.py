"""Kafka's file for kafka-delete-records: {"partitions": [{"topic": …, "partition": …, "offset": …}], "version": 1}.

As org.apache.kafka.tools.DeleteRecordsCommand reads it; an offset of -1 is the high watermark.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kctl.errors import InvalidFile
from kctl.input_file import read_input
from kctl.model import TopicPartition
from kctl.text import printable
from kctl.topics.names import fault_of

MAX_BYTES = 32 << 20
_KEYS = {"topic", "partition", "offset"}
_SHOWN = 3


def read_offset_file(path: Path) -> dict[TopicPartition, int]:
    """Offsets by partition; «-» is stdin. Raises NotFound, InvalidFile."""
    return parse_offset_file(*read_input(path, max_bytes=MAX_BYTES))


def parse_offset_file(data: bytes, name: str) -> dict[TopicPartition, int]:
    """The offsets in the bytes of a file. name: of the file, for messages. Raises InvalidFile."""
    problems: list[str] = []
    try:
        document = json.loads(data, object_pairs_hook=_object)
    except RecursionError:
        raise InvalidFile(f"{name}: nested too deeply") from None
    except ValueError as exc:
        raise InvalidFile(f"{name}: not JSON: {printable(str(exc))}") from None
    if not isinstance(document, dict) or not isinstance(document.get("partitions"), list):
        raise InvalidFile(
            f'{name}: no object with "partitions"', hint='{"partitions": [{"topic", "partition", "offset"}]}'
        )
    if document.get("version", 1) != 1:
        raise InvalidFile(f"{name}: version {document['version']!r}; only version 1 is known")
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


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key is there twice")
    return found


def _entry(entry: Any, found: dict[TopicPartition, int]) -> str | None:
    """Put an entry into `found`; what is wrong with it."""
    if not isinstance(entry, Mapping) or entry.keys() != _KEYS:
        return "it needs topic, partition and offset, and nothing else"
    topic, number, offset = entry["topic"], entry["partition"], entry["offset"]
    fault = fault_of(topic) if isinstance(topic, str) else "it is no text"
    if fault:
        return f"topic: {fault}"
    if type(number) is not int or not 0 <= number < 2**31:
        return f"partition: {printable(str(number))[:40]!r} is no partition"
    if type(offset) is not int or not -1 <= offset < 2**63:
        return f"offset: {printable(str(offset))[:40]!r} is no offset"
    tp = TopicPartition(topic, number)
    if tp in found:
        return f"{tp} is there twice"
    found[tp] = offset
    return None
