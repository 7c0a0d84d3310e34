"""Complete the inputs of a topic: fill in defaults and reject contradictions."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from kctl.capacity.fields import CLUSTER_FIELDS, DEFAULT, FIELDS, MEASURED, TOPIC_FIELDS, Input, Inputs
from kctl.capacity.model import Workload
from kctl.errors import UsageError

KAFKA_DEFAULT_RETENTION_MS = 604_800_000
_RETENTION_INPUTS = ("data", "keys", "retention", "retention_bytes")
# (input, inputs of which it requires at least one)
_REQUIRES = (
    ("messages", ("message_size",)),
    ("message_size", ("messages", "keys")),
    ("keys", ("message_size",)),
)
# Pairs that specify the same thing in two ways.
_EXCLUSIVE = (
    ("throughput", "messages"),
    ("data", "keys"),
    ("data", "retention"),
    ("data", "retention_bytes"),
    ("keys", "retention"),
    ("keys", "retention_bytes"),
)


def workload(topic: str, inputs: Inputs, *, current_partitions: int | None = None) -> Workload:
    """Return a topic with all its inputs. Raises UsageError for missing or conflicting inputs."""
    _check(topic, inputs)
    complete = with_defaults(inputs, TOPIC_FIELDS)
    if not any(name in complete for name in _RETENTION_INPUTS):
        complete["retention"] = Input(KAFKA_DEFAULT_RETENTION_MS, DEFAULT)
    if "min_insync_replicas" not in complete:
        complete["min_insync_replicas"] = Input(complete["replication_factor"].value // 2 + 1, DEFAULT)
    if complete["max_partition_size"].value <= complete["segment_size"].value:
        raise UsageError(
            f"{topic}: the maximum partition size of {complete['max_partition_size'].value:,} bytes is too small for a"
            f" segment of {complete['segment_size'].value:,} bytes",
            hint="lower --segment-size or raise --max-partition-size",
        )
    return Workload(topic, complete, current_partitions)


def cluster_inputs(inputs: Inputs) -> dict[str, Input]:
    """Return the inputs of the brokers with their defaults."""
    return with_defaults(inputs, CLUSTER_FIELDS)


def with_defaults(inputs: Inputs, names: tuple[str, ...]) -> dict[str, Input]:
    """Return the inputs in the order of `names`, with defaults. Names with neither value nor default are omitted."""
    complete: dict[str, Input] = {}
    for name in names:
        default = FIELDS[name].default
        if name in inputs:
            complete[name] = inputs[name]
        elif default is not None:
            complete[name] = Input(default, DEFAULT)
    return complete


def merged(topic_inputs: Inputs, overrides: Inputs, names: Collection[str]) -> dict[str, Input]:
    """Return the inputs of a topic or of the brokers with overrides. Measured values only fill in what is missing."""
    result = {name: each for name, each in overrides.items() if name in names and each.source == MEASURED}
    result.update(topic_inputs)
    result.update({name: each for name, each in overrides.items() if name in names and each.source != MEASURED})
    return result


def _check(topic: str, inputs: Mapping[str, Input]) -> None:
    if not inputs.keys() & {"throughput", "messages", "data", "keys"}:
        raise UsageError(
            f"{topic}: no load is specified",
            hint="set --throughput (e.g. 100MB/s), --messages with --message-size, --data, or --keys",
        )
    for one, other in _EXCLUSIVE:
        if one in inputs and other in inputs:
            raise UsageError(f"{topic}: {_option(one)} and {_option(other)} cannot be combined")
    for name, partners in _REQUIRES:
        if name in inputs and not inputs.keys() & set(partners):
            raise UsageError(f"{topic}: {_option(name)} requires {' or '.join(map(_option, partners))}")


def _option(name: str) -> str:
    return name.replace("_", "-")
