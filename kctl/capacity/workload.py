"""From what somebody said of a topic to all of its inputs: defaults filled in, contradictions refused."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from kctl.capacity.fields import CLUSTER_FIELDS, DEFAULT, FIELDS, MEASURED, TOPIC_FIELDS, Input, Inputs
from kctl.capacity.model import Workload
from kctl.errors import UsageError

KAFKAS_RETENTION_MS = 604_800_000
_KEPT = ("data", "keys", "retention", "retention_bytes")
# Without what they say something of: (input, one of these has to be there).
_GO_WITH = (
    ("messages", ("message_size",)),
    ("message_size", ("messages", "keys")),
    ("keys", ("message_size",)),
)
# Two ways to say one thing.
_EXCLUDE = (
    ("throughput", "messages"),
    ("data", "keys"),
    ("data", "retention"),
    ("data", "retention_bytes"),
    ("keys", "retention"),
    ("keys", "retention_bytes"),
)


def workload(topic: str, given: Inputs, *, present_partitions: int | None = None) -> Workload:
    """A topic's inputs with their defaults. Raises UsageError for what is missing and for what excludes each other."""
    _check(topic, given)
    found = with_defaults(given, TOPIC_FIELDS)
    if not any(name in found for name in _KEPT):
        found["retention"] = Input(KAFKAS_RETENTION_MS, DEFAULT)
    if "min_insync_replicas" not in found:
        found["min_insync_replicas"] = Input(found["replication_factor"].value // 2 + 1, DEFAULT)
    if found["max_partition_size"].value <= found["segment_size"].value:
        raise UsageError(
            f"{topic}: a partition of at most {found['max_partition_size'].value:,} bytes has no room for a segment of"
            f" {found['segment_size'].value:,}",
            hint="make segments smaller, or let partitions be larger",
        )
    return Workload(topic, found, present_partitions)


def cluster_inputs(given: Inputs) -> dict[str, Input]:
    """What is said of the brokers, with its defaults."""
    return with_defaults(given, CLUSTER_FIELDS)


def with_defaults(given: Inputs, names: tuple[str, ...]) -> dict[str, Input]:
    """In the order of `names`; those that have neither value nor default are left out."""
    found: dict[str, Input] = {}
    for name in names:
        default = FIELDS[name].default
        if name in given:
            found[name] = given[name]
        elif default is not None:
            found[name] = Input(default, DEFAULT)
    return found


def merged(own: Inputs, given: Inputs, names: Collection[str]) -> dict[str, Input]:
    """What somebody gives for all topics wins over what is said of one; what was measured only stands in for it."""
    found = {name: each for name, each in given.items() if name in names and each.source == MEASURED}
    found.update(own)
    found.update({name: each for name, each in given.items() if name in names and each.source != MEASURED})
    return found


def _check(topic: str, given: Mapping[str, Input]) -> None:
    if not given.keys() & {"throughput", "messages", "data", "keys"}:
        raise UsageError(
            f"{topic}: nothing says how much there is",
            hint="give a throughput, messages with a message size, or data: --throughput 100MB/s",
        )
    for one, other in _EXCLUDE:
        if one in given and other in given:
            raise UsageError(f"{topic}: {_option(one)} and {_option(other)} exclude each other")
    for name, partners in _GO_WITH:
        if name in given and not given.keys() & set(partners):
            raise UsageError(f"{topic}: {_option(name)} goes with {' or '.join(map(_option, partners))}")


def _option(name: str) -> str:
    return name.replace("_", "-")
