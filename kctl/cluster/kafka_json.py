"""The JSON files of Kafka's tools: an object, usually with `version` 1, and a list of entries. Other keys are ignored.

As parsed by kafka.utils.Json and the tools of Kafka 3.9 and 4.4, but stricter: data after the object, and a duplicate
of a key that kctl reads, are rejected. A byte order mark is skipped, as in all files.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from typing import Any, NoReturn

from kctl.base.text import printable
from kctl.cluster.topic_names import fault_of
from kctl.errors import InvalidFile
from kctl.model import TopicPartition

VERSION = 1
MAX_BYTES = 32 << 20  # of a file with a list of partitions
_SHOWN = 3


def load_object(
    data: bytes, name: str, *, keys: Collection[str] | None, hint: str | None = None, versioned: bool = True
) -> dict[str, Any]:
    """Return the object in a file's bytes. name: of the file, for messages.

    keys: keys that must not occur twice in one object; None: no key may. versioned: check the version. Raises
    InvalidFile.
    """

    def unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        values = dict(pairs)
        if len(values) < len(pairs):
            names = [key for key, _ in pairs if keys is None or key in keys]
            duplicate = next((key for key in names if names.count(key) > 1), None)
            if duplicate is not None:
                raise ValueError(f"duplicate key {duplicate!r} in one object")
        return values

    try:
        document = json.loads(data.decode("utf-8-sig"), object_pairs_hook=unique_keys, parse_constant=_no_constant)
    except RecursionError:
        raise InvalidFile(f"{name} cannot be read: its JSON is nested too deeply") from None
    except UnicodeDecodeError:
        raise InvalidFile(f"{name} cannot be read as JSON: it is not UTF-8 text", hint=hint) from None
    except ValueError as exc:
        raise InvalidFile(f"{name} cannot be read as JSON: {printable(str(exc))[:200]}", hint=hint) from None
    if not isinstance(document, dict):
        raise InvalidFile(f"{name} does not contain a JSON object", hint=hint)
    version = document.get("version", VERSION) if versioned else VERSION
    if type(version) is not int or version != VERSION:
        raise InvalidFile(f"{name} has version {value_text(version)}; kctl supports version {VERSION}")
    return document


def read_partitions(document: Mapping[str, Any], name: str, *, hint: str, take: Callable[[Any], str | None]) -> None:
    """Pass each entry of the list `partitions` to `take`, which returns the entry's problem. Raises InvalidFile."""
    entries = document.get("partitions")
    if not isinstance(entries, list):
        raise InvalidFile(f'{name} has no list "partitions"', hint=hint)
    if not entries:
        raise InvalidFile(f"{name} lists no partitions", hint=hint)
    problems = [f"partitions[{number}]: {fault}" for number, entry in enumerate(entries) if (fault := take(entry))]
    if problems:
        more = f" (and {len(problems) - _SHOWN} more)" if len(problems) > _SHOWN else ""
        raise InvalidFile(f"{name}: {'; '.join(problems[:_SHOWN])}{more}")


def entry_fault(entry: Any, keys: Collection[str]) -> str | None:
    """Return the problem of an entry, which must have a topic, a partition and the other keys; None: it is valid."""
    if not isinstance(entry, Mapping):
        return f"it is not an object: {value_text(entry)}"
    missing = [key for key in ("topic", "partition", *keys) if key not in entry]
    if missing:
        return f"it has no {', no '.join(missing)}"
    topic, number = entry["topic"], entry["partition"]
    fault = fault_of(topic) if isinstance(topic, str) else "it is not a string"
    if fault:
        return f"topic {value_text(topic)}: {fault}"
    if type(number) is not int or not 0 <= number < 2**31:
        return f"partition: {value_text(number)} is not a partition number"
    return None


def partition_of(entry: Mapping[str, Any]) -> TopicPartition:
    """Return the partition of a valid entry."""
    return TopicPartition(entry["topic"], entry["partition"])


def _no_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a JSON number")


def value_text(value: object) -> str:
    """Return a value of a file as text for messages."""
    text = printable(json.dumps(value, ensure_ascii=False))
    return text if len(text) <= 60 else text[:57] + "…"
