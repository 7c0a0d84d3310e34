"""Values of configs as Kafka reads and shows them; the forms were run through ConfigDef of Kafka 3.9.2 and 4.4.0."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from kctl.base.config_values import fault_of, same
from kctl.base.outcomes import ItemResult
from kctl.cluster.config_resources import Resource
from kctl.cluster.topic_configs import ConfigSource
from kctl.configs.cautions import caution_of
from kctl.configs.change import ChangedConfig, Edit, _is_in_effect
from kctl.configs.diff import differences
from kctl.configs.known_types import fault_in, type_of
from kctl.configs.model import Config, Synonym
from kctl.topics.alter import _is_set, _planned_config

# [type, the text, what a broker shows or null where parseType throws], by tests/support/ConfigForms.java
FORMS = json.loads((Path(__file__).parents[2] / "data" / "config_forms.json").read_text())


@pytest.mark.parametrize("type_", sorted({row[0] for row in FORMS}))
def test_as_kafka_reads_them(type_: str) -> None:
    wrong = [
        (text, shown)
        for each, text, shown in FORMS
        if each == type_ and ((fault_of(type_, text) is None) != (shown is not None))
    ]
    assert not wrong
    assert not [
        (text, shown)
        for each, text, shown in FORMS
        if each == type_ and shown is not None and not same(type_, text, shown)
    ]


@pytest.mark.parametrize("type_", ["boolean", "int", "long", "short", "double", "list", "string"])
def test_what_a_broker_shows_differently_is_another_value(type_: str) -> None:
    shown = sorted({row[2] for row in FORMS if row[0] == type_ and row[2] is not None})
    # Brokers since 4.0 drop what a list has twice, which parseType does not show; -0.0 is 0.0.
    alike = [
        (a, b)
        for number, a in enumerate(shown)
        for b in shown[number + 1 :]
        if same(type_, a, b) and list(dict.fromkeys(a.split(","))) != list(dict.fromkeys(b.split(",")))
    ]
    assert alike in ([], [("-0.0", "0.0")])


def _topic_config(type_: str, value: str) -> Config:
    source = ConfigSource.TOPIC
    return Config("x", value, source, None, type_, False, False, (Synonym("x", value, source),))


@pytest.mark.parametrize(
    ("type_", "asked", "shown"),
    [
        ("list", "compact, delete", "compact,delete"),
        ("list", "compact,compact", "compact"),
        ("list", " ", ""),
        ("double", "0.50", "0.5"),
        ("double", "1e-1", "0.1"),
        ("boolean", "TRUE", "true"),
        ("long", "+1000", "1000"),
        ("long", "01000", "1000"),
        ("string", " lz4 ", "lz4"),
        ("unknown", " x ", "x"),
    ],
)
def test_a_value_that_a_broker_writes_otherwise_is_set(type_: str, asked: str, shown: str) -> None:
    config = _topic_config(type_, shown)
    assert _planned_config("t", "x", asked, config, None).result is ItemResult.UNCHANGED
    assert _is_set(config, asked)
    assert _is_in_effect(Resource.topic("t"), Edit("x", "set", asked), config)
    assert not differences({"topic/a": [config], "topic/b": [_topic_config(type_, asked)]})


@pytest.mark.parametrize(
    ("type_", "asked", "shown"),
    [
        ("list", "delete,compact", "compact,delete"),
        ("string", "LZ4", "lz4"),
        ("double", "0.51", "0.5"),
        ("long", "1000", "10000"),
        ("boolean", "false", "true"),
        ("list", "", "compact"),
    ],
)
def test_another_value_is_not(type_: str, asked: str, shown: str) -> None:
    config = _topic_config(type_, shown)
    assert _planned_config("t", "x", asked, config, None).result is ItemResult.WOULD_SET
    assert not _is_set(config, asked)
    assert differences({"topic/a": [config], "topic/b": [_topic_config(type_, asked)]})


def test_what_is_to_be_gone_is_awaited() -> None:
    config = _topic_config("long", "1")
    assert not _is_set(config, None)
    assert _is_set(None, None)
    assert not _is_set(None, "1")
    assert _is_set(replace(config, source=ConfigSource.DEFAULT, synonyms=()), None)


@pytest.mark.parametrize(
    ("kind", "name", "value", "fault", "hint"),
    [
        ("topic", "retention.ms", "3d", "retention.ms must be a whole number, not '3d'", "retention.ms=259200000"),
        ("topic", "segment.bytes", "1GB", "must be a whole number", "segment.bytes="),
        ("topic", "retention.ms", "-2", "must be at least -1", None),
        ("topic", "cleanup.policy", "compacted", "must be a list of compact, delete", None),
        ("topic", "cleanup.policy", "compact, delete", None, None),
        ("topic", "compression.type", "LZ4", "must be one of", None),
        ("topic", "min.cleanable.dirty.ratio", "1.5", "between 0 and 1", None),
        ("topic", "min.cleanable.dirty.ratio", "5e-1", None, None),
        ("topic", "preallocate", "yes", "must be true or false", None),
        ("topic", "min.insync.replicas", "+2", None, None),
        ("topic", "of.a.fork", "3d", None, None),
        ("brokers", "log.retention.ms", "3d", "must be a whole number", "log.retention.ms=259200000"),
        ("broker", "listener.name.x.ssl.keystore.password", "3d", None, None),
        ("user", "producer_byte_rate", "3d", None, None),
    ],
)
def test_without_a_broker(kind: str, name: str, value: str, fault: str | None, hint: str | None) -> None:
    found = fault_in(kind, name, value)  # type: ignore[arg-type]
    if fault is None:
        assert found is None
        return
    assert found is not None
    assert fault in found[0]
    assert (hint in (found[1] or "")) if hint else found[1] is None


def test_types_of_old_brokers_configs() -> None:
    assert type_of("topic", "cleanup.policy") == "list"
    assert type_of("broker", "num.io.threads") == "int"
    assert type_of("topic", "num.io.threads") is None


@pytest.mark.parametrize(
    ("name", "before", "after", "says"),
    [
        ("min.insync.replicas", "1", "+3", "min.insync.replicas=3 equals the number of replicas"),
        ("min.insync.replicas", "1", "04", "min.insync.replicas=4, with 3 replicas"),
        ("cleanup.policy", "delete", "delete, compact", "only the last record"),
        ("cleanup.policy", "compact,delete", "compact, delete", None),
        ("unclean.leader.election.enable", "false", "TRUE", "may become leader"),
        ("unclean.leader.election.enable", "true", "TRUE", None),
    ],
)
def test_cautions_read_the_value(name: str, before: str, after: str, says: str | None) -> None:
    row = ChangedConfig("topic/t", name, ItemResult.WOULD_SET, before, "default", after, "topic", False)
    found = caution_of(row, 3)
    assert (found is None) if says is None else (says in (found or ""))
