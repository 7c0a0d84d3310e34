"""topics.yaml as `kctl topic apply` reads it, and what it changes of a topic that is there."""

from __future__ import annotations

import re

import pytest

from kctl.cluster.topic_configs import ConfigEntry, ConfigSource
from kctl.errors import InvalidFile, Refused
from kctl.model import ClusterState, TopicState
from kctl.topics.apply import _check_collisions, change_of
from kctl.topics.own_configs import set_on_topic
from kctl.topics.spec import TopicSpec, parse_specs


def test_all_keys() -> None:
    text = """\
topics:
  - name: orders
    partitions: 6
    replication_factor: 3
    configs:
      retention.ms: 86400000
      min.cleanable.dirty.ratio: 0.5
      preallocate: false
      cleanup.policy: [compact, delete]
      compression.type: 'zstd'
      leader.replication.throttled.replicas: ''
  - name: bare
  - {name: none-set, configs: {}}
  - name: none-set-either
    configs:
"""
    first, bare, none, either = parse_specs(text.encode(), "t.yaml")
    assert first == TopicSpec(
        "orders", 6, 3,
        {"retention.ms": "86400000", "min.cleanable.dirty.ratio": "0.5", "preallocate": "false",
         "cleanup.policy": "compact,delete", "compression.type": "zstd", "leader.replication.throttled.replicas": ""},
        "t.yaml:2:5",
    )  # fmt: skip
    assert bare == TopicSpec("bare", None, None, None, "t.yaml:12:5")
    assert none.configs == either.configs == {}, "it says that none are set"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "t.yaml: the file has no list `topics`"),
        ("- name: a", "t.yaml: the file has no list `topics`"),
        ("topics: {a: 1}", "t.yaml: the file has no list `topics`"),
        ("topics: []\nversion: 1", "t.yaml:2:1: 'version' is not a valid key"),
        ("topics:\n- orders", "t.yaml:2:3: a topic must be a mapping"),
        ("topics:\n- name: a\n  partition: 1", "t.yaml:3:3: 'partition' is not a valid key"),
        ("topics:\n- partitions: 1", "it is not text"),
        ("topics:\n- name: 12", "12 is not a topic name: it is not text"),
        ("topics:\n- name: a b", "t.yaml:2:3: 'a b' is not a topic name: only ASCII"),
        ("topics:\n- name: a\n- name: b\n- name: a", "t.yaml:4:3: topic a is listed twice; first at t.yaml:2:3"),
        ("topics:\n- name: a\n  name: b", "t.yaml:3:3: 'name' is there twice"),
        ("topics:\n- name: a\n  partitions: 0", "t.yaml:3:3: partitions is 0; it must be a number from 1 to 100000"),
        ("topics:\n- name: a\n  partitions: 200000000", "it must be a number from 1 to 100000"),
        ("topics:\n- name: a\n  partitions: '6'", "partitions is '6'"),
        ("topics:\n- name: a\n  partitions: true", "partitions is True"),
        ("topics:\n- name: a\n  replication_factor: 40000", "it must be a number from 1 to 32767"),
        ("topics:\n- name: a\n  configs: [x]", "t.yaml:3:3: configs must map names"),
        ("topics:\n- name: a\n  configs:\n    x:", "t.yaml:4:5: x has no valid value"),
        ("topics:\n- name: a\n  configs:\n    x: {y: 1}", "t.yaml:4:5: x has no valid value"),
        ("topics:\n- name: a\n  configs:\n    x: [[1]]", "t.yaml:4:5: x has no valid value"),
        ("topics:\n- name: a\n  configs:\n    1: x", "t.yaml:4:5: 1 is not the name of a config"),
        ("topics: &a\n- name: a", "the anchor &a is not supported"),
        ("topics: [", "not YAML"),
        ("topics:\n- name: \x1b[2Jx", "not YAML"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(text: str, said: str) -> None:
    with pytest.raises(InvalidFile) as caught:
        parse_specs(text.encode(), "t.yaml")
    assert said in caught.value.message


@pytest.mark.parametrize(
    ("wanted", "there", "changes"),
    [
        (None, {"a": "1"}, {}),
        ({}, {"a": "1"}, {"a": None}),
        ({"a": "2"}, {"a": "1", "b": "3"}, {"a": "2", "b": None}),
        ({"a": "1"}, {}, {"a": "1"}),
    ],
)
def test_configs_in_the_file_are_all_that_are_set(
    wanted: dict[str, str] | None, there: dict[str, str], changes: dict[str, str | None]
) -> None:
    change = change_of(TopicSpec("t", 4, None, wanted, "f:1"), there)
    assert (change.name, change.partitions, change.configs) == ("t", 4, changes)


def test_throttles_of_a_move_and_inherited_values_are_not_set_on_the_topic() -> None:
    entries = [
        ConfigEntry("retention.ms", "1", ConfigSource.TOPIC),
        ConfigEntry("leader.replication.throttled.replicas", "0:1", ConfigSource.TOPIC),
        ConfigEntry("min.insync.replicas", "2", ConfigSource.STATIC_BROKER),
    ]
    assert set_on_topic(entries) == {"retention.ms": "1"}


@pytest.mark.parametrize(
    ("there", "names", "refused"),
    [
        ((), ("shop.orders", "shop_orders"), "t.yaml:2:3: topic shop.orders collides with shop_orders"),
        (
            ("shop.orders",),
            ("shop.orders", "shop_orders"),
            "t.yaml:3:3: topic shop_orders collides with shop",
        ),
        (("shop_orders",), ("shop.orders", "shop_orders"), "t.yaml:2:3: topic shop.orders collides with"),
        (("shop_orders",), ("shop.orders",), "t.yaml:2:3: topic shop.orders collides with shop_orders"),
        (("a_b.c", "a.b_c"), ("a.b.c",), "with a_b.c, a.b_c"),
        (("shop.orders", "shop_orders"), ("shop.orders", "shop_orders"), None),
        (("shop.orders", "shop_orders"), ("shop.orders",), None),
        (("shop.orders", "shop_orders"), ("shop.orders", "shop_orders", "shop"), None),
        ((), ("shop.orders", "shoporders"), None),
    ],
)
def test_names_that_metrics_do_not_tell_apart(
    there: tuple[str, ...], names: tuple[str, ...], refused: str | None
) -> None:
    specs = parse_specs(("topics:\n" + "".join(f"- name: {name}\n" for name in names)).encode(), "t.yaml")
    state = ClusterState("id", 1, {}, {name: TopicState(name, False, None, ()) for name in there})
    if refused is None:
        _check_collisions(specs, state)
        return
    with pytest.raises(Refused, match=re.escape(refused)):
        _check_collisions(specs, state)
