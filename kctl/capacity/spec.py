"""Read capacity.yaml: several topics on one cluster.

    disk: 4TB                      # brokers: kctl.capacity.fields.CLUSTER_FIELDS
    network: 10Gbit/s
    growth: 30%
    topics:
      - name: orders
        throughput: 50MB/s         # topic: kctl.capacity.fields.TOPIC_FIELDS
        retention: 7d
      - name: payments
        messages: 2000/s
        message_size: 1kB

The parser is strict: unknown keys, duplicate topics and values without a unit are errors with the line number.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from kctl.base.input_file import read_input
from kctl.base.strict_yaml import MAX_BYTES, YamlList, YamlMap, load
from kctl.base.suggestions import did_you_mean
from kctl.capacity.fields import CLUSTER_FIELDS, TOPIC_FIELDS, Input, parse_input
from kctl.capacity.model import Workload
from kctl.capacity.workload import merged, workload
from kctl.cluster.topic_names import fault_of
from kctl.errors import InvalidFile, UsageError

MAX_TOPICS = 1_000
_HINT = "see the example in docs/capacity.md"


def read_bytes(path: Path) -> tuple[bytes, str]:
    """Return the content of a file and its name for messages. "-" is stdin. Raises NotFound, InvalidFile."""
    return read_input(path, max_bytes=MAX_BYTES, hint=_HINT)


def parse_spec(data: bytes, source: str, overrides: Mapping[str, Input]) -> tuple[list[Workload], dict[str, Input]]:
    """Return the topics and the broker inputs of a file. source: the name of the file, for messages.

    overrides: values that replace those in the file, for the brokers and for every topic. Measured values only fill in
    what the file lacks. Raises InvalidFile with file and line.
    """
    document = load(data, source=source)
    if not isinstance(document, YamlMap) or not isinstance(document.get("topics"), YamlList):
        raise InvalidFile(f"{source}: no list `topics`", hint=_HINT)
    entries: YamlList = document["topics"]
    if not entries:
        raise InvalidFile(f"{document.where('topics')}: the list of topics is empty", hint=_HINT)
    if len(entries) > MAX_TOPICS:
        raise InvalidFile(f"{document.where('topics')}: {len(entries):,} topics exceed the limit of {MAX_TOPICS:,}")
    cluster = _values(document, CLUSTER_FIELDS, also={"topics"})
    workloads = []
    first_lines: dict[str, str] = {}
    for number, entry in enumerate(entries):
        where = entries.where(number)
        topic = _workload(entry, where, overrides)
        if topic.topic in first_lines:
            raise InvalidFile(f"{where}: duplicate topic {topic.topic}; first at {first_lines[topic.topic]}")
        first_lines[topic.topic] = where
        workloads.append(topic)
    return workloads, merged(cluster, overrides, CLUSTER_FIELDS)


def _workload(entry: Any, where: str, overrides: Mapping[str, Input]) -> Workload:
    if not isinstance(entry, YamlMap):
        raise InvalidFile(f"{where}: a topic must be a mapping with `name`", hint=_HINT)
    name = entry.get("name")
    fault = fault_of(name) if isinstance(name, str) else "not a string; put it in quotes"
    if fault:
        raise InvalidFile(f"{entry.where('name')}: {name!r} is not a topic name: {fault}")
    values = merged(_values(entry, TOPIC_FIELDS, also={"name"}), overrides, TOPIC_FIELDS)
    try:
        return workload(str(name), values)
    except UsageError as exc:
        raise InvalidFile(f"{where}: {exc.message}", hint=exc.hint) from None


def _values(entry: YamlMap, names: Collection[str], *, also: Collection[str]) -> dict[str, Input]:
    values: dict[str, Input] = {}
    for key, value in entry.items():
        if key in also:
            continue
        if key not in names:
            hint = did_you_mean(str(key), names) or f"valid keys: {', '.join((*sorted(also), *names))}"
            raise InvalidFile(f"{entry.where(key)}: unknown key {key!r}", hint=hint)
        if isinstance(value, bool) or not isinstance(value, (str, int, float)):
            raise InvalidFile(f"{entry.where(key)}: {key} must be a number or a string", hint=_HINT)
        try:
            values[key] = parse_input(key, str(value))
        except UsageError as exc:
            raise InvalidFile(f"{entry.where(key)}: {key}: {exc.message}", hint=exc.hint) from None
    return values
