"""capacity.yaml: several topics on one cluster.

    disk: 4TB                      # of the brokers: kctl.capacity.fields.CLUSTER_FIELDS
    network: 10Gbit/s
    growth: 30%
    topics:
      - name: orders
        throughput: 50MB/s         # of the topic: kctl.capacity.fields.TOPIC_FIELDS
        retention: 7d
      - name: payments
        messages: 2000/s
        message_size: 1kB

Read strictly: unknown keys, doubled topics and values without a unit are told with their line.
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

MOST_TOPICS = 1_000
_HINT = "docs/capacity.md shows one"


def read_bytes(path: Path) -> tuple[bytes, str]:
    """A file, and its name for messages; «-» is stdin. Raises NotFound, InvalidFile."""
    return read_input(path, max_bytes=MAX_BYTES, hint=_HINT)


def parse_spec(data: bytes, source: str, given: Mapping[str, Input]) -> tuple[list[Workload], dict[str, Input]]:
    """The topics of a file, and what it says of the brokers. source: its name, for messages.

    given: values that win over the file's, of the brokers and of every topic; measured ones only stand in for what it
    does not say. Raises InvalidFile with file and line.
    """
    document = load(data, source=source)
    if not isinstance(document, YamlMap) or not isinstance(document.get("topics"), YamlList):
        raise InvalidFile(f"{source}: it has no list `topics`", hint=_HINT)
    entries: YamlList = document["topics"]
    if not entries:
        raise InvalidFile(f"{document.where('topics')}: the list of topics is empty", hint=_HINT)
    if len(entries) > MOST_TOPICS:
        raise InvalidFile(f"{document.where('topics')}: {len(entries):,} topics are more than {MOST_TOPICS:,}")
    cluster = _values(document, CLUSTER_FIELDS, also={"topics"})
    workloads = []
    first: dict[str, str] = {}
    for number, entry in enumerate(entries):
        where = entries.where(number)
        topic = _workload(entry, where, given)
        if topic.topic in first:
            raise InvalidFile(f"{where}: topic {topic.topic} is there twice; first at {first[topic.topic]}")
        first[topic.topic] = where
        workloads.append(topic)
    return workloads, merged(cluster, given, CLUSTER_FIELDS)


def _workload(entry: Any, where: str, given: Mapping[str, Input]) -> Workload:
    if not isinstance(entry, YamlMap):
        raise InvalidFile(f"{where}: a topic is a mapping with `name`", hint=_HINT)
    name = entry.get("name")
    fault = fault_of(name) if isinstance(name, str) else "it is no text; put it in quotes"
    if fault:
        raise InvalidFile(f"{entry.where('name')}: {name!r} is not a topic name: {fault}")
    values = merged(_values(entry, TOPIC_FIELDS, also={"name"}), given, TOPIC_FIELDS)
    try:
        return workload(str(name), values)
    except UsageError as exc:
        raise InvalidFile(f"{where}: {exc.message}", hint=exc.hint) from None


def _values(entry: YamlMap, names: Collection[str], *, also: Collection[str]) -> dict[str, Input]:
    found: dict[str, Input] = {}
    for key, value in entry.items():
        if key in also:
            continue
        if key not in names:
            hint = did_you_mean(str(key), names) or f"known are {', '.join((*sorted(also), *names))}"
            raise InvalidFile(f"{entry.where(key)}: {key!r} is not known", hint=hint)
        if isinstance(value, bool) or not isinstance(value, (str, int, float)):
            raise InvalidFile(f"{entry.where(key)}: {key} is no number or text", hint=_HINT)
        try:
            found[key] = parse_input(key, str(value))
        except UsageError as exc:
            raise InvalidFile(f"{entry.where(key)}: {key}: {exc.message}", hint=exc.hint) from None
    return found
