"""The JSON Schema of playbooks: it is the shipped file, valid, and holds for what lint takes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from kctl.base.strict_yaml import load, load_file
from kctl.playbook import schema
from kctl.playbook.builtin_step_table import BUILTIN_STEPS
from kctl.playbook.model import PARAMETER_TYPES
from kctl.playbook.operations import operations
from kctl.playbook.parameters import plain
from kctl.playbook.read_steps import STEP_KEYS
from kctl.playbook.shipped import folder, shipped

SCHEMA = schema.schema()
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
HEAD = "playbook: 1\nname: p\n"


def _errors(text: str) -> list[str]:
    return [error.message for error in VALIDATOR.iter_errors(plain(load(text, source="p")))]


def test_the_shipped_file_is_not_stale() -> None:
    """Written by: kctl playbook schema > playbooks/playbook.schema.json"""
    assert (folder() / "playbook.schema.json").read_text(encoding="utf-8") == schema.text()


def test_it_is_a_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert json.loads(schema.text()) == SCHEMA


def test_it_has_every_operation_with_its_arguments() -> None:
    step = SCHEMA["$defs"]["step"]
    known = operations()
    kinds = {*known.names(), *known.aliases(), *BUILTIN_STEPS}
    assert set(step["properties"]) == kinds | set(STEP_KEYS)
    assert {each["required"][0] for each in step["oneOf"]} == kinds
    for name in known.names():
        assert set(step["properties"][name]["properties"]) == {each.name for each in known.find(name).arguments}
    assert SCHEMA["$defs"]["parameter"]["properties"]["type"]["enum"] == list(PARAMETER_TYPES)


@pytest.mark.parametrize("path", [found.path for found in shipped()], ids=lambda path: path.stem)
def test_the_shipped_playbooks_hold(path: Path) -> None:
    assert list(VALIDATOR.iter_errors(plain(load_file(path)))) == []
    assert path.read_text().startswith("# yaml-language-server: $schema=playbook.schema.json\n")


@pytest.mark.parametrize(
    "text",
    [
        HEAD + "steps: [lag: , wait: 5s, run: [ls], assert: a, set: {a: [1]}, include: x, confirm: y]",
        HEAD + "steps:\n- topic.create: {names: a, partitions: '{{ n }}', config: {a: 1}}\n  retries: '{{ n }}'",
        HEAD + "steps:\n- topic.create: {names: ['{{ a }}', b], config: [a=b], if_not_exists: '{{ yes }}'}",
        HEAD + "steps:\n- lag.check: {by: '{{ by }}', max_lag: 3}\n  loop: '{{ xs }}'\n  delay: 5",
        HEAD
        + "steps: [wait: 1.5 h, wait: 200ms, wait: 3, wait: '{{ t }}', lag: {}]\nfinally: [{lag: {}, timeout: 10S}]",
        HEAD + "parameters: {a: {type: size, default: 1GiB, description: x}}\nsteps: [lag: {}]\nfinally: [lag: {}]",
    ],
)
def test_taken(text: str) -> None:
    assert _errors(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "name: p\nsteps: [lag: {}]",
        "playbook: 2\nname: p\nsteps: [lag: {}]",
        "playbook: 1\nname: A B\nsteps: [lag: {}]",
        HEAD + "steps: []",
        HEAD + "steps: [lag: {}]\nfinaly: []",
        HEAD + "steps: [{name: a}]",
        HEAD + "steps: [{lag: {}, topic.list: {}}]",
        HEAD + "steps: [topc.list: {}]",
        HEAD + "steps: [{lag: {}, registr: a}]",
        HEAD + "steps: [topic.create: {}]",
        HEAD + "steps: [topic.create: ]",
        HEAD + "steps: [topic.create: {names: [a], partitions: many}]",
        HEAD + "steps: [topic.create: {names: [a], if_not_exists: 'yes'}]",
        HEAD + "steps: [lag: {by: topc}]",
        HEAD + "steps: [lag: {watch: true}]",
        HEAD + "steps: [run: ls -l]",
        HEAD + "steps: [run: {argv: []}]",
        HEAD + "steps: [{lag: {}, on_error: ignore}]",
        HEAD + "steps: [{lag: {}, retries: -1}]",
        HEAD + "steps: [{lag: {}, accept: [256]}]",
        HEAD + "steps: [{lag: {}, timeout: fast}]",
        HEAD + "steps: [wait: '1:30']",
        HEAD + "steps: [wait: -1]",
        HEAD + "steps: [lag: {}]\nparameters: {a: {type: int}}",
    ],
)
def test_refused(text: str) -> None:
    assert _errors(text)


def test_what_an_editor_shows() -> None:
    topic: dict[str, Any] = SCHEMA["$defs"]["step"]["properties"]["topic.create"]
    assert topic["properties"]["partitions"]["description"]
    assert all(each["description"] for each in SCHEMA["$defs"]["step"]["properties"].values())
