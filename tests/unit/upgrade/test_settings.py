"""What an upgrade changes in server.properties."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kctl.base.properties import parse_properties
from kctl.deploy.config.broker_config import render_server_properties
from kctl.upgrade.settings import (
    PROTOCOL_VERSION,
    SettingAction,
    changed_text,
    changes_of,
    current_settings,
    invalid_settings,
    without_protocol,
)
from upgrade_testing import spec_of


def changed(layout: str, source: str, target: str, extra: str = "") -> tuple[str, str, dict[tuple[str, Any], str]]:
    """The file before and after, and (setting, action) → value."""
    before = spec_of(layout, source)
    node = before.brokers[0]
    text = render_server_properties(before, node) + extra
    settings = parse_properties(text, source="x")
    changes = changes_of(settings, before, replace(before, kafka_version=target), node)
    return text, changed_text(text, changes, target), {(each.setting, each.action): each.value for each in changes}


def test_kafka_4_gets_what_kctl_writes_for_it() -> None:
    text, after, changes = changed("kraft-single", "3.9.2", "4.4.0")
    prefix = "share.coordinator.state.topic"
    assert changes == {
        (f"{prefix}.min.isr", SettingAction.ADD): "1",
        (f"{prefix}.num.partitions", SettingAction.ADD): "10",
        (f"{prefix}.replication.factor", SettingAction.ADD): "1",
    }
    assert after.startswith(text)
    assert parse_properties(after, source="x").keys() == parse_properties(
        render_server_properties(spec_of("kraft-single", "4.4.0"), spec_of("kraft-single", "4.4.0").brokers[0]),
        source="x",
    ).keys()  # fmt: skip


def test_what_the_target_does_not_know_is_commented_out() -> None:
    extra = "delegation.token.master.key=hush\n"
    extra += "password.encoder.secret=hush\nlog.message.timestamp.difference.max.ms=5\\\n  00\nmy.plugin.size=3\n"
    _, after, changes = changed("kraft-single", "3.9.2", "4.4.0", extra)
    assert changes["password.encoder.secret", SettingAction.REMOVE] == "[hidden]"
    assert changes["log.message.timestamp.difference.max.ms", SettingAction.RENAME] == "500"
    assert changes["delegation.token.master.key", SettingAction.RENAME] == "[hidden]"
    settings = parse_properties(after, source="x")
    assert "password.encoder.secret" not in settings
    assert settings["delegation.token.secret.key"] == "hush"
    assert settings["log.message.timestamp.before.max.ms"] == settings["log.message.timestamp.after.max.ms"] == "500"
    assert settings["my.plugin.size"] == "3"  # not Kafka's: it may be that of a plugin
    assert "# Kafka 4.4.0 does not know this setting:\n#password.encoder.secret=hush\n" in after
    again = changes_of(settings, spec_of("kraft-single", "3.9.2"), spec_of("kraft-single", "4.4.0"),
                       spec_of("kraft-single", "3.9.2").brokers[0])  # fmt: skip
    assert again == []


@pytest.mark.parametrize(("extra", "held"), [("", "2.8"), (f"{PROTOCOL_VERSION}=2.7\n", "2.7")])
def test_zookeeper_keeps_the_protocol_until_it_is_finalized(extra: str, held: str) -> None:
    _, after, changes = changed("single", "2.8.2", "3.9.2", extra)
    assert parse_properties(after, source="x")[PROTOCOL_VERSION] == held
    assert ((PROTOCOL_VERSION, SettingAction.HOLD) in changes) is not extra.startswith(PROTOCOL_VERSION)
    raised = without_protocol(after)
    assert PROTOCOL_VERSION not in parse_properties(raised, source="x")
    assert without_protocol(raised) == raised


def test_a_bugfix_release_changes_nothing() -> None:
    for layout, source, target in (("single", "3.9.1", "3.9.2"), ("kraft-combined", "4.3.1", "4.4.0")):
        text, after, changes = changed(layout, source, target)
        assert (changes, after) == ({}, text)


def test_values_that_the_target_rejects() -> None:
    settings = {"log.segment.bytes": "2000", "my.plugin.size": "x", "num.io.threads": "${env:THREADS}"}
    assert invalid_settings(settings, "3.9.2", "4.4.0") == [
        "log.segment.bytes: Kafka 4.4.0 accepts only at least 1048576, not 2000"
    ]
    assert invalid_settings(settings, "4.3.1", "4.4.0") == []  # the nodes run with it: kctl's list must be wrong


def test_the_settings_of_create_follow() -> None:
    settings = {
        "password.encoder.secret": "hush",
        "log.message.timestamp.difference.max.ms": "5",
        "num.partitions": "2",
    }
    assert current_settings(settings, "3.9.2", "4.4.0") == {
        "num.partitions": "2",
        "log.message.timestamp.before.max.ms": "5",
        "log.message.timestamp.after.max.ms": "5",
    }
