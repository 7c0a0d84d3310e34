"""Whether an operation changed something, from what it printed: the table has a rule for each that can."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import kctl
from kctl.playbook.operations import operations
from kctl.playbook.run.changes import ONLY_WITH, RULES, UNCHANGED_WORDS, by_words, can_change, changed

STARTED = {"name": "dev", "started": ["broker-1"], "already_running": [], "resumed": [], "duration_ms": 5}
NONE_STARTED = {**STARTED, "started": [], "already_running": ["broker-1"]}
STOPPED = {"name": "dev", "stopped": ["broker-1"], "killed": [], "already_stopped": [], "duration_ms": 5}
NONE_STOPPED = {**STOPPED, "stopped": [], "already_stopped": ["broker-1"]}
RUN = {"outcome": "completed", "moves": 3, "journal": "/j.jsonl"}


def test_every_operation_that_can_change_something_has_a_rule() -> None:
    """A new command is sorted here: by the words of its rows, or by a rule of its own."""
    known = operations()
    changing = {name for name in known.names() if known.find(name).changes}
    assert changing == set(RULES)


@pytest.mark.parametrize(
    ("operation", "value", "arguments", "expected"),
    [
        ("topic.create", [{"name": "a", "result": "created"}, {"name": "b", "result": "exists"}], {}, True),
        ("topic.create", [{"name": "a", "result": "exists"}], {}, False),
        ("topic.create", [{"name": "a", "result": "would create"}], {}, True),
        ("topic.alter", [{"result": "unchanged", "configs": [{"result": "unchanged"}]}], {}, False),
        ("topic.alter", [{"result": "altered", "configs": [{"result": "set"}]}], {}, True),
        ("topic.delete", [{"result": "absent"}], {}, False),
        ("topic.delete", [{"result": "marked"}], {}, True),
        ("topic.truncate", [{"result": "deleted"}, {"result": "unchanged"}], {}, True),
        ("topic.truncate", [], {}, False),
        ("topic.clone", {"result": "cloned", "copied": []}, {}, True),
        ("topic.apply", [{"result": "unchanged", "changes": []}], {}, False),
        ("config.set", [{"result": "unchanged"}], {}, False),
        ("config.set", [{"result": "appended"}], {}, True),
        ("group.reset_offsets", [{"result": "reset"}], {}, True),
        ("group.reset_offsets", [{"result": "unchanged"}], {}, False),
        ("group.delete", [{"result": "absent", "offsets": []}], {}, False),
        ("group.remove_member", [{"result": "joined again"}], {}, True),
        ("group.export", None, {"out": "o.json"}, True),
        ("group.export", [{"group": "g", "partition": 0}], {}, False),
        ("capacity", {"partitions": 6}, {"measure": True}, True),
        ("capacity", {"partitions": 6}, {"measure": False}, False),
        ("capacity", {"partitions": 6}, {}, False),
        ("acl.add", [{"result": "already there"}], {}, False),
        ("acl.remove", [{"result": "not there"}], {}, False),
        ("acl.apply", {"acls": [], "quotas": [], "unlisted_acls": 2}, {}, False),
        ("acl.apply", {"acls": [{"result": "added"}], "quotas": []}, {}, True),
        ("user.remove", [{"result": "not there"}], {}, False),
        ("user.add", [{"result": "replaced"}], {}, True),
        ("quota.set", [{"result": "unchanged"}], {}, False),
        ("broker.loggers.set", [{"result": "set"}], {}, True),
        ("leader.elect", [], {}, False),
        ("leader.elect", [{"result": "skipped"}], {}, False),
        ("leader.elect", [{"result": "elected"}, {"result": "skipped"}], {}, True),
        ("leader.balance", {"reorders": 0, "elections": []}, {}, False),
        ("leader.balance", {"reorders": 2, "elections": []}, {}, True),
        ("leader.balance", {"reorders": 0, "elections": [{"result": "elected"}]}, {}, True),
        ("topic.reassign.apply", RUN, {}, True),
        ("topic.reassign.apply", {**RUN, "journal": None}, {}, False),
        ("topic.reassign.apply", {"moves": 0, "reorders": 0}, {}, False),
        ("topic.reassign.apply", {"moves": 2, "reorders": 0}, {}, True),
        ("topic.reassign.cancel", None, {"plan": "p.json"}, False),
        ("topic.reassign.plan", {"version": 1}, {}, False),
        ("topic.reassign.plan", {"version": 1}, {"out": "p.json"}, True),
        ("transaction.abort", {"result": "aborted"}, {}, True),
        ("cluster.start", STARTED, {}, True),
        ("cluster.start", NONE_STARTED, {}, False),
        ("cluster.start", {**NONE_STARTED, "resumed": ["broker-1"]}, {}, True),
        ("cluster.start", [{"node": "broker-1", "result": "runs"}], {}, False),
        ("cluster.start", [{"node": "broker-1", "result": "would start"}], {}, True),
        ("cluster.stop", STOPPED, {}, True),
        ("cluster.stop", NONE_STOPPED, {}, False),
        ("cluster.restart", {"name": "dev", "stopped": STOPPED, "started": STARTED}, {}, True),
        ("cluster.restart", {"name": "dev", "stopped": NONE_STOPPED, "started": NONE_STARTED}, {}, False),
        ("cluster.restart", {"outcome": "done", "brokers": [{"broker": 1, "result": "restarted"}]}, {}, True),
        ("cluster.restart", {"resumes": None, "brokers": [{"turn": 1, "broker": 1}], "blockers": []}, {}, True),
        ("cluster.restart", {"resumes": "x", "restarted": [1], "brokers": [], "blockers": []}, {}, False),
        ("cluster.restart", {"cluster": "dev", "journal": "/j.jsonl", "result": "forgotten"}, {}, True),
        ("cluster.create", {"name": "dev", "started": True}, {}, True),
        ("cluster.destroy", {"name": "dev", "removed": []}, {}, True),
        ("context.import", [{"name": "a", "action": "unchanged"}], {}, False),
        ("context.import", [{"name": "a", "action": "replace"}], {}, True),
        ("produce", {"sent": 2, "acknowledged": 2, "unknown": 0}, {}, True),
        ("produce", {"sent": 0, "acknowledged": 0, "unknown": 0}, {}, False),
        ("produce", {"sent": 2, "acknowledged": 0, "unknown": 1}, {}, True),
        ("produce", {"sent": 2, "acknowledged": None, "unknown": 0}, {}, True),
        ("produce", {"topic": "t", "records": 2, "bad": 0}, {}, True),
        ("produce", {"topic": "t", "records": 0, "bad": 0}, {}, False),
        ("consume", [{"value": "a"}], {"topics": ["t"]}, False),
        ("consume", [{"value": "a"}], {"topics": ["t"], "group": "g"}, True),
        ("segment.verify", {"healthy": True, "findings": []}, {}, False),
        ("segment.verify", {"dry_run": False, "indexes": [{"result": "written"}], "verified": {}}, {}, True),
        ("segment.verify", {"dry_run": False, "indexes": [{"result": "left alone"}], "verified": {}}, {}, False),
        ("spark.warm", {"path": "x", "made": False}, {}, False),
        ("runtime.remove", {"version": "3.9.2", "removed": False}, {}, True),  # a dry run
        ("capacity", {"plan": {}, "measured": None}, {"from_cluster": True, "measure": False}, False),
        ("capacity", {"plan": {}, "measured": {}}, {"measure": True}, True),
        ("topic.list", [{"name": "a"}], {}, False),
        ("doctor", {"findings": [{"rule": "brokers"}]}, {}, False),
        ("cluster.health", {"healthy": False}, {}, False),
        ("lag.check", [], {}, False),
    ],
)
def test_told_from_the_value(operation: str, value: Any, arguments: Mapping[str, Any], expected: bool) -> None:
    assert changed(operation, value, arguments) is expected


@pytest.mark.parametrize("value", ["text", 3, [{"result": "a word of tomorrow"}], {"rows": [{"result": "done"}]}])
def test_what_is_not_known_counts_as_a_change(value: Any) -> None:
    assert by_words(value, {})


def test_the_words_are_those_of_the_commands() -> None:
    """A word that no command says any more is no rule."""
    root = Path(kctl.__file__).parent
    said = "\n".join(
        path.read_text()
        for folder in ("topics", "configs", "groups", "access", "leader", "brokers", "cluster", "segment", "commands")
        for path in (root / folder).resolve().rglob("*.py")
    )
    for word in UNCHANGED_WORDS:
        assert re.search(rf'"{word}"', said), word


@pytest.mark.parametrize(
    ("operation", "arguments", "expected"),
    [
        ("capacity", {"from_cluster": True}, False),
        ("capacity", {"measure": "{{ measure }}"}, True),
        ("topic.reassign.plan", {}, False),
        ("topic.reassign.plan", {"out": "p.json"}, True),
        ("topic.create", {"names": ["a"]}, True),
        ("doctor", {}, False),
    ],
)
def test_what_can_be_told_before(operation: str, arguments: Mapping[str, Any], expected: bool) -> None:
    assert can_change(operations().find(operation), arguments) is expected


def test_what_operations_change_only_with_is_an_argument_of_theirs() -> None:
    known = operations()
    assert all(known.find(name).argument(argument) for name, argument in ONLY_WITH.items())
