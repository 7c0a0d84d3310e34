"""One name for one thing: a key of the vocabulary in docs/architecture.md has one shape in the results of all commands.

JSON has the field names of dataclasses (commands/terminal/output.py). Which of them commands can emit is read from
their imports: each dataclass of the library that a module of commands/ names, and those that its fields are made of.
"""

from __future__ import annotations

import ast
import re
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import pytest

_ROOT = Path(__file__).parents[3]
_PAGE = _ROOT / "docs" / "architecture.md"

_NUMBER, _TEXT, _TRUTH = "int", "str", "bool"
_LIST, _MAP = r"(list|tuple|Sequence)\[.*\]", r"(dict|Mapping)\[str, .*\]"
SHAPES = {
    "topic": _TEXT, "group": _TEXT, "log_dir": _TEXT, "node": _TEXT,
    "state": r"str|State|StepState( \| None)?|ReassignmentPhase|Literal\[.*\]",
    "partition": _NUMBER, "broker": _NUMBER, "node_id": _NUMBER, "controller_id": _NUMBER, "coordinator": _NUMBER,
    "leader": _NUMBER, "preferred_leader": _NUMBER, "leaders": _NUMBER, "replication_factor": _NUMBER,
    "topics": _LIST, "partitions": _LIST, "topic_partitions": _LIST, "replicas": _LIST, "isr": _LIST, "members": _LIST,
    "brokers": _LIST, "groups": _LIST, "log_dirs": _LIST, "processes": _LIST, "config_entries": _LIST,
    "config_changes": _LIST, "configs": _MAP, "is_controller": _TRUTH, "is_leader": _TRUTH, "is_future": _TRUTH,
}  # fmt: skip
NEVER = {"id", "topic_name", "group_id", "broker_id", "controller", "transaction_state"}
NOT_RESULTS = {
    # what commands hand down: the words are those of options and of topics.yaml, where `partitions` is a number to set
    "StoreRequest", "CapacityOptions", "Goals", "LagOptions", "LayoutRequest", "HealthLimits", "NewTopic",
    "TopicChange", "TopicSpec", "PlanOptions", "ReportOptions", "RetentionOptions", "TrendsOptions",
    "AlterRequest", "ConsumeArguments", "CreateArguments", "HangingOptions", "ProduceArguments", "ResetArguments",
    "RestartArguments", "TruncateArguments",
    # what the library is told and works with
    "Broker", "BrokerFacts", "BrokersShare", "ClusterState", "Destination", "LagQuery", "PartitionsShare", "LagReport",
    "LagRequest",
    "LastRun", "NodeProcess", "PlanBroker", "PlanCluster", "PlanInput", "Prepared",
    "RestartRun", "Rule", "Run", "TopicState",
    # of cluster.yaml, in which a cluster is written down
    "BrokerNode", "ClusterSpec", "ZooKeeperNode",
    # of a playbook, whose steps have an id
    "Step",
    # parts of a plan's file, which has a version of its own
    "BrokerLoad", "LogDirLoad", "Plan",
    # `partitions` is a map while records are sent; commands/produce/report.py makes rows of it
    "ProduceResult",
    # leader and follower are folders here
    "Truncation",
}  # fmt: skip


class _Class(NamedTuple):
    place: str
    fields: dict[str, str]


@lru_cache(maxsize=1)
def _dataclasses() -> dict[str, list[_Class]]:
    found: dict[str, list[_Class]] = {}
    for folder in ("kctl", "commands"):
        for path in sorted((_ROOT / folder).rglob("*.py")):
            if any(part.is_symlink() for part in path.parents):
                continue
            for node in ast.parse(path.read_text()).body:
                if isinstance(node, ast.ClassDef) and _has_fields(node):
                    fields = {
                        each.target.id: ast.unparse(each.annotation)
                        for each in node.body
                        if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)
                    }
                    place = f"{path.relative_to(_ROOT)} {node.name}"
                    found.setdefault(node.name, []).append(_Class(place, fields))
    return found


def _has_fields(node: ast.ClassDef) -> bool:
    made = [ast.unparse(each) for each in (*node.decorator_list, *node.bases)]
    return any("dataclass" in each or each == "NamedTuple" for each in made)


def _results() -> list[_Class]:
    """The dataclasses that commands name, and what their fields are made of."""
    known = _dataclasses()
    waiting: list[str] = []
    for path in (_ROOT / "commands").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("kctl."):
                waiting += [each.name for each in node.names]
            elif isinstance(node, ast.ClassDef):
                waiting.append(node.name)
    seen: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name in seen or name not in known or name in NOT_RESULTS:
            continue
        seen.add(name)
        waiting += [word for each in known[name] for text in each.fields.values() for word in re.findall(r"\w+", text)]
    return [each for name in sorted(seen) for each in known[name]]


def _wrong(fields: dict[str, str]) -> list[str]:
    """What speaks against the fields of a result."""
    found = []
    for key, written in fields.items():
        shape = re.sub(r"\s*\|\s*None\b", "", written)
        wanted = _NUMBER if re.search(r"_count(_before|_after)?$", key) else SHAPES.get(key)
        if key in NEVER:
            found.append(f"{key} is not a key")
        elif wanted is not None and not re.fullmatch(wanted, shape):
            found.append(f"{key}: {written}")
    if "name" in fields and fields.keys() & {"topic_id", "replication_factor", "protocol_type"}:
        found.append("name of a topic or group")
    return found


def test_keys_have_one_shape_in_all_results() -> None:
    results = _results()
    assert len(results) > 150
    wrong = {each.place: _wrong(each.fields) for each in results}
    assert {place: what for place, what in wrong.items() if what} == {}


def test_what_is_left_out_is_there_and_would_be_found() -> None:
    known = _dataclasses()
    assert known.keys() >= NOT_RESULTS
    needless = {name for name in NOT_RESULTS if not any(_wrong(each.fields) for each in known[name])}
    assert needless == set()


@pytest.mark.parametrize(
    ("fields", "wrong"),
    [
        ({"topic": "str", "partition_count": "int | None", "replicas": "tuple[int, ...]"}, []),
        ({"partitions": "int"}, ["partitions: int"]),
        ({"partition_count": "list[int]"}, ["partition_count: list[int]"]),
        ({"members": "int | None"}, ["members: int | None"]),
        ({"broker_id": "int"}, ["broker_id is not a key"]),
        ({"name": "str", "replication_factor": "int"}, ["name of a topic or group"]),
        ({"configs": "tuple[ConfigEntry, ...]"}, ["configs: tuple[ConfigEntry, ...]"]),
    ],
)
def test_what_is_wrong_is_found(fields: dict[str, str], wrong: list[str]) -> None:
    assert _wrong(fields) == wrong


def test_the_page_has_the_vocabulary() -> None:
    section = _PAGE.read_text().split("\n## Keys and options\n")[1].split("\n## ")[0]
    assert {key for key in SHAPES if f"`{key}`" not in section} == set()
