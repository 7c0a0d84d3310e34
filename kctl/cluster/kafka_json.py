"""The JSON files of Kafka's tools: an object, most with `version` 1, and a list of entries. Other keys are ignored.

As kafka.utils.Json and the tools of Kafka 3.9 and 4.4 read them, but stricter where they guess: what stands behind the
object, and a key that kctl reads and finds twice, are refused. A byte order mark is passed over, as in all files.
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
    """The object in a file's bytes. name: of the file, for messages.

    keys: those that must not be there twice in one object; None: no key may. versioned: the version is looked at.
    Raises InvalidFile.
    """

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            names = [key for key, _ in pairs if keys is None or key in keys]
            twice = next((key for key in names if names.count(key) > 1), None)
            if twice is not None:
                raise ValueError(f"the key {twice!r} is there twice in one object")
        return found

    try:
        document = json.loads(data.decode("utf-8-sig"), object_pairs_hook=once, parse_constant=_no_constant)
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
        raise InvalidFile(f"{name} has version {shown(version)}; kctl supports version {VERSION}")
    return document


def read_partitions(document: Mapping[str, Any], name: str, *, hint: str, take: Callable[[Any], str | None]) -> None:
    """Give each entry of the list `partitions` to `take`, which returns what is wrong with it. Raises InvalidFile."""
    entries = document.get("partitions")
    if not isinstance(entries, list):
        raise InvalidFile(f'{name} has no list "partitions"', hint=hint)
    if not entries:
        raise InvalidFile(f"{name}: it names no partitions", hint=hint)
    problems = [f"partitions[{number}]: {fault}" for number, entry in enumerate(entries) if (fault := take(entry))]
    if problems:
        more = f" (and {len(problems) - _SHOWN} more)" if len(problems) > _SHOWN else ""
        raise InvalidFile(f"{name}: {'; '.join(problems[:_SHOWN])}{more}")


def entry_fault(entry: Any, keys: Collection[str]) -> str | None:
    """What is wrong with an entry that has to have a topic, a partition and the other keys; None for nothing."""
    if not isinstance(entry, Mapping):
        return f"it is not an object: {shown(entry)}"
    missing = [key for key in ("topic", "partition", *keys) if key not in entry]
    if missing:
        return f"it has no {', no '.join(missing)}"
    topic, number = entry["topic"], entry["partition"]
    fault = fault_of(topic) if isinstance(topic, str) else "it is no text"
    if fault:
        return f"topic {shown(topic)}: {fault}"
    if type(number) is not int or not 0 <= number < 2**31:
        return f"partition: {shown(number)} is no partition"
    return None


def partition_of(entry: Mapping[str, Any]) -> TopicPartition:
    """The partition of an entry that has no fault."""
    return TopicPartition(entry["topic"], entry["partition"])


def _no_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a JSON number")


def shown(value: object) -> str:
    """Return a value of a file as text for messages."""
    text = printable(json.dumps(value, ensure_ascii=False))
    return text if len(text) <= 60 else text[:57] + "…"
