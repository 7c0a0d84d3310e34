"""topics.yaml: the topics that a cluster should have.

    topics:
      - name: orders
        partitions: 6              # omitted: unchanged, or the broker's default
        replication_factor: 3      # likewise
        configs:                   # omitted: unchanged; else exactly these are set on the topic
          retention.ms: 86400000

Parsing is strict: unknown keys, duplicate topics and invalid values are reported with their line.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kctl.base.input_file import read_input
from kctl.base.strict_yaml import YamlList, YamlMap, load
from kctl.cluster.partition_numbers import MOST
from kctl.cluster.topic_names import fault_of
from kctl.configs.known_types import type_fault
from kctl.errors import InvalidFile, Reason, Refused

MAX_BYTES = 8 << 20
_KEYS = ("name", "partitions", "replication_factor", "configs")
_HINT = "create such a file with `kctl topic export`"


@dataclass(frozen=True, slots=True)
class TopicSpec:
    """A topic in the file. None: not specified. where: "file:line"."""

    name: str
    partitions: int | None
    replication_factor: int | None
    configs: dict[str, str] | None
    where: str


def read_specs(path: Path) -> list[TopicSpec]:
    """Read the topics of a file, in order; "-" is stdin. Raises NotFound, InvalidFile."""
    return parse_specs(*read_input(path, max_bytes=MAX_BYTES, hint=_HINT))


def parse_specs(data: bytes, source: str) -> list[TopicSpec]:
    """Parse the topics of a file. source: its name, for errors.

    Raises InvalidFile with file and line, and Refused for a value that its config cannot have.
    """
    document = load(data, source=source, max_bytes=MAX_BYTES)
    if not isinstance(document, YamlMap) or not isinstance(document.get("topics"), YamlList):
        raise InvalidFile(f"{source}: the file has no list `topics`", hint=_HINT)
    for key in document:
        if key != "topics":
            raise InvalidFile(f"{document.where(key)}: {key!r} is not a valid key; use `topics`")
    entries: YamlList = document["topics"]
    specs = [_spec(entry, entries.where(number)) for number, entry in enumerate(entries)]
    _check_names(specs)
    return specs


def _check_names(specs: Sequence[TopicSpec]) -> None:
    by_name: dict[str, TopicSpec] = {}
    for spec in specs:
        if spec.name in by_name:
            raise InvalidFile(f"{spec.where}: topic {spec.name} is listed twice; first at {by_name[spec.name].where}")
        by_name[spec.name] = spec


def _spec(entry: Any, where: str) -> TopicSpec:
    if not isinstance(entry, YamlMap):
        raise InvalidFile(f"{where}: a topic must be a mapping with `name`", hint=_HINT)
    for key in entry:
        if key not in _KEYS:
            raise InvalidFile(f"{entry.where(key)}: {key!r} is not a valid key; use {', '.join(_KEYS)}")
    name = entry.get("name")
    fault = fault_of(name) if isinstance(name, str) else "it is not text; put it in quotes"
    if fault:
        raise InvalidFile(f"{entry.where('name')}: {name!r} is not a topic name: {fault}")
    return TopicSpec(
        name=str(name),
        partitions=_number(entry, "partitions", MOST),
        replication_factor=_number(entry, "replication_factor", 32767),
        configs=_configs(entry),
        where=where,
    )


def _number(entry: YamlMap, key: str, maximum: int) -> int | None:
    if key not in entry:
        return None
    value = entry[key]
    if type(value) is not int or not 1 <= value <= maximum:
        raise InvalidFile(f"{entry.where(key)}: {key} is {value!r}; it must be a number from 1 to {maximum}")
    return value


def _configs(entry: YamlMap) -> dict[str, str] | None:
    if "configs" not in entry:
        return None
    configs = entry["configs"]
    if configs is None:
        return {}
    if not isinstance(configs, YamlMap):
        raise InvalidFile(f"{entry.where('configs')}: configs must map names to values")
    return {_config_name(configs, key): _config_value(configs, key) for key in configs}


def _config_name(configs: YamlMap, key: Any) -> str:
    if not isinstance(key, str) or not key:
        raise InvalidFile(f"{configs.where(key)}: {key!r} is not the name of a config")
    return key


def _config_value(configs: YamlMap, key: str) -> str:
    """Return the value as brokers write it: 1, 0.5, true, text; a list joined by commas."""
    value = configs[key]
    values = value if isinstance(value, YamlList) else [value]
    texts = []
    for each in values:
        if each is None or isinstance(each, (YamlMap, YamlList)):
            raise InvalidFile(
                f"{configs.where(key)}: {key} has no valid value",
                hint="omit a config to use its default; write '' for an empty value",
            )
        texts.append(str(each).lower() if isinstance(each, bool) else str(each))
    text = ",".join(texts)
    fault = type_fault("topic", key, text)
    if fault is not None:
        raise Refused(f"{configs.where(key)}: {fault[0]}", hint=fault[1], reason=Reason.IMPOSSIBLE)
    return text
