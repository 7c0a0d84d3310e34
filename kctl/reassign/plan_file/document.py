"""Write a plan as a file.

The format is Kafka's reassignment JSON (ReassignPartitionsCommand: version, partitions with topic, partition, replicas,
log_dirs) with additional keys, which kafka-reassign-partitions ignores:

    {"version": 1, "partitions": [{"topic", "partition", "replicas", "log_dirs": ["any", …]}],
     "cluster_id", "goals": {options}, "moves", "lower_bound", "forced_moves", "leader_changes",
     "leader_lower_bound", "bytes", "bytes_lower_bound", "unknown_sizes", "left", "throttle_bytes_per_s",
     "estimated_ms", "max_concurrent_moves", "complete", "unmet": [], "hosts": [brokers that may receive],
     "warnings": [], "before": [{"broker", "rack", "alive", "replicas", "leaders", "bytes"}], "after": …,
     "racks_before": [{"rack", "replicas", "leaders", "bytes"}], "racks_after": …,
     "topics": {name: {"topic_id", "partitions"}}, "batches": [[positions in partitions]],
     "current": {"version", "partitions": [{…, "size_bytes"}]}, "rollback": {"version", "partitions"}}

and, with --log-dirs, "log_dir_moves", "log_dir_lower_bound", "log_dir_bytes", "log_dir_bytes_lower_bound",
"log_dirs_before": [{"broker", "path", "replicas", "bytes", "usable_bytes"}], "log_dirs_after". `current` and `rollback`
have log_dirs only where a replica moves within its broker. topics: topics with changes. left: moves beyond a
limit, for another plan.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from kctl.reassign.planner.execution import Execution
from kctl.reassign.planner.loads import BrokerLoad, PartitionChange, RackLoad, rack_loads
from kctl.reassign.planner.log_dir_moves import LogDirLoad
from kctl.reassign.planner.plan import Plan

ANY = "any"  # a log dir that the broker chooses

# Keys of the document → attributes of Plan and Execution; the reader uses these tables too.
PLAN_NUMBERS = {
    "moves": "moves",
    "lower_bound": "lower_bound",
    "forced_moves": "forced",
    "leader_changes": "leader_changes",
    "leader_lower_bound": "leader_lower_bound",
    "bytes": "bytes",
    "bytes_lower_bound": "bytes_lower_bound",
    "unknown_sizes": "unknown_sizes",
    "left": "deferred",
}
EXECUTION_NUMBERS = ("throttle_bytes_per_s", "estimated_ms", "max_concurrent_moves")
LOG_DIR_BOUNDS = {"log_dir_lower_bound": "lower_bound", "log_dir_bytes_lower_bound": "bytes_lower_bound"}
BROKER_LOADS, LOG_DIR_LOADS = ("before", "after"), ("log_dirs_before", "log_dirs_after")


def document(plan: Plan, execution: Execution | None = None) -> dict[str, Any]:
    """Return the plan file as one value; the module docstring lists the keys."""
    settings = execution or Execution()
    values: dict[str, Any] = {
        "version": 1,
        "partitions": [_after(plan, change) for change in plan.changes],
        "cluster_id": plan.cluster.cluster_id,
        "goals": dict(settings.goals),
        **{key: getattr(plan, name) for key, name in PLAN_NUMBERS.items()},
        **{key: getattr(settings, key) for key in EXECUTION_NUMBERS},
        "complete": plan.complete,
        "unmet": plan.unmet,
        "hosts": list(plan.hosts),
        "warnings": plan.warnings,
        **_loads(BROKER_LOADS, plan.before, plan.after),
        **_loads(("racks_before", "racks_after"), rack_loads(plan.before), rack_loads(plan.after)),
    }
    if plan.log_dirs is not None:
        values["log_dir_moves"] = len(plan.log_dirs.moves)
        values["log_dir_lower_bound"] = plan.log_dirs.lower_bound
        values["log_dir_bytes"] = plan.log_dirs.bytes
        values["log_dir_bytes_lower_bound"] = plan.log_dirs.bytes_lower_bound
        values |= _loads(LOG_DIR_LOADS, plan.log_dirs.before, plan.log_dirs.after)
    values["topics"] = _topics(plan)
    values["batches"] = [list(batch) for batch in settings.batches] if execution else None
    values["current"] = {"version": 1, "partitions": [_before(plan, change, size=True) for change in plan.changes]}
    values["rollback"] = {"version": 1, "partitions": [_before(plan, change, size=False) for change in plan.changes]}
    return values


def _loads(keys: tuple[str, str], *loads: Sequence[BrokerLoad | RackLoad | LogDirLoad]) -> dict[str, Any]:
    return {key: [_row(load) for load in rows] for key, rows in zip(keys, loads, strict=True)}


def _after(plan: Plan, change: PartitionChange) -> dict[str, Any]:
    dirs = [path or ANY for path in change.log_dirs] if change.log_dirs else [ANY] * len(change.after)
    return {**_name(plan, change), "replicas": change.after, "log_dirs": dirs}


def _before(plan: Plan, change: PartitionChange, *, size: bool) -> dict[str, Any]:
    row = {**_name(plan, change), "replicas": change.before}
    if change.log_dirs_before:
        row["log_dirs"] = [path or ANY for path in change.log_dirs_before]
    size_bytes = plan.cluster.size_bytes[change.partition]
    if size and size_bytes >= 0:
        row["size_bytes"] = size_bytes
    return row


def _name(plan: Plan, change: PartitionChange) -> dict[str, Any]:
    cluster, p = plan.cluster, change.partition
    return {"topic": cluster.topics[cluster.topic_of[p]], "partition": cluster.number[p]}


def _topics(plan: Plan) -> dict[str, dict[str, Any]]:
    cluster = plan.cluster
    planned = sorted({cluster.topic_of[change.partition] for change in plan.changes})
    count = [0] * len(cluster.topics)
    for topic in cluster.topic_of:
        count[topic] += 1
    ids = cluster.topic_ids or (None,) * len(cluster.topics)
    return {cluster.topics[t]: {"topic_id": ids[t], "partitions": count[t]} for t in planned}


def _row(load: BrokerLoad | RackLoad | LogDirLoad) -> dict[str, Any]:
    return {name: getattr(load, name) for name in load.__slots__}


# Lists with one row per line, at the top level and one level below.
_BY_ROW = frozenset(
    {"partitions", "before", "after", "racks_before", "racks_after", "log_dirs_before", "log_dirs_after", "batches"}
)


def text_of(values: Mapping[str, Any]) -> str:
    """Return the document as ASCII JSON, one key or row per line: fast to write, and suitable for grep and diff."""
    encode = json.JSONEncoder(separators=(",", ":")).encode
    lines = [f'"{key}": {_value(key, value, encode)}' for key, value in values.items()]
    return "{" + ",\n".join(lines) + "}"


def _value(key: str, value: Any, encode: Callable[[Any], str]) -> str:
    if key == "partitions":
        return "[\n" + ",\n".join(_partition_rows(value, encode)) + "\n]"
    if key in _BY_ROW and value:
        return "[\n" + ",\n".join(map(encode, value)) + "\n]"
    if isinstance(value, dict) and "partitions" in value and "version" in value:
        return '{"version":1,"partitions":' + _value("partitions", value["partitions"], encode) + "}"
    return encode(value)


def _partition_rows(rows: Sequence[Mapping[str, Any]], encode: Callable[[Any], str]) -> Iterator[str]:
    """Yield each row as JSON. Hand-written, because there may be a million rows with few distinct parts."""
    names: dict[str, str] = {}
    dirs: dict[int, str] = {}
    for row in rows:
        topic, replicas, paths, size = row["topic"], row["replicas"], row.get("log_dirs"), row.get("size_bytes")
        name = names.get(topic) or names.setdefault(topic, encode(topic))
        text = f'{{"topic":{name},"partition":{row["partition"]},"replicas":[{",".join(map(str, replicas))}]'
        if paths is not None:
            count = len(paths)
            if paths.count(ANY) == count:
                text += dirs.get(count) or dirs.setdefault(count, f',"log_dirs":{encode(paths)}')
            else:
                text += f',"log_dirs":{encode(paths)}'
        yield text + ("}" if size is None else f',"size_bytes":{size}}}')
