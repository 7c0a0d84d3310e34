"""kctl config on a broker of 4.x: configs of groups, secrets that the broker takes, a leftover that is taken away."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kctl_testing import Kctl

KEY = "listener.name.plaintext.ssl.keystore.password"


@pytest.fixture
def at(own_kctl: Kctl, kraft: str) -> Kctl:
    """kctl with the broker as its cluster."""
    own_kctl.ok("context", "add", "kraft", "--bootstrap-server", kraft)
    own_kctl.ok("context", "use", "kraft")
    return own_kctl


def test_groups_have_configs(at: Kctl) -> None:
    group = "group/configs \x1b[31m"
    (row,) = at.json("config", "get", group, "consumer.session.timeout.ms")
    assert (row["value"], row["source"]) == ("45000", "default")
    (done,) = at.json("config", "set", group, "consumer.session.timeout.ms=50000", "--yes")
    assert (done["result"], done["before"], done["after"], done["after_source"]) == ("set", "45000", "50000", "group")
    assert "\x1b" not in at.ok("config", "get", group, "-o", "wide").out
    (back,) = at.json("config", "unset", group, "consumer.session.timeout.ms", "--yes")
    assert (back["result"], back["after"], back["after_source"]) == ("unset", "45000", "default")


def test_resources_with_configs_are_listed_and_their_keys_explained(at: Kctl) -> None:
    metrics, group = f"client-metrics/subscription-{os.getpid()}", f"group/listed-{os.getpid()}"
    at.ok("config", "set", metrics, "interval.ms=60000", "metrics=org.apache.kafka.consumer.", "--yes")
    at.ok("config", "set", group, "share.auto.offset.reset=earliest", "--yes")
    rows = {row["resource"]: row["configs"] for row in at.json("config", "list")}
    assert rows[metrics] == {"interval.ms": "60000", "metrics": "org.apache.kafka.consumer."}
    assert rows[group] == {"share.auto.offset.reset": "earliest"}
    only_groups = {row["resource"] for row in at.json("config", "list", "group")}
    assert only_groups == {resource for resource in rows if resource.startswith("group/")}
    shown = [line.split() for line in at.ok("config", "list").out.splitlines()]
    assert [group, "share.auto.offset.reset", "earliest"] in shown
    found = {row["name"]: row for row in at.json("config", "explain", "share.auto.offset.reset", "interval.ms")}
    assert (found["share.auto.offset.reset"]["of"], found["interval.ms"]["of"]) == ("group", "client-metrics")
    assert "latest" in found["share.auto.offset.reset"]["documentation"]
    refused = at("config", "set", group, "share.auto.offset.reset=sometimes", "--yes")
    assert (refused.code, "share.auto.offset.reset" in refused.err) == (4, True), str(refused)
    for resource in (metrics, group):
        keys = rows[resource]
        assert [row["result"] for row in at.json("config", "unset", resource, *keys, "--yes")] == ["unset"] * len(keys)
    left = {row["resource"] for row in at.json("config", "list")}
    assert not left & {metrics, group}


def test_a_secret_is_taken_and_never_shown(at: Kctl, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.touch(mode=0o600)
    secret.write_text("geheim\n")
    try:
        done = at("config", "set", "broker/1", f"{KEY}=@{secret}", "--yes", "-o", "json", "--verbose")
        assert done.code == 0, str(done)
        assert '"result": "set"' in done.out
        shown = at.ok("config", "get", "broker/1").out
        assert KEY in shown
        assert "(hidden)" in shown
        assert "geheim" not in done.out + done.err + shown
    finally:
        removed = at.json("config", "unset", "broker/1", KEY, "--yes")
    assert [row["result"] for row in removed] == ["unset"]


def test_brokers(at: Kctl) -> None:
    (done,) = at.json("config", "set", "brokers", "max.connections.per.ip=2147483000", "--yes")
    assert (done["before"], done["after"]) == (None, "2147483000")
    (row,) = at.json("config", "get", "broker/1", "max.connections.per.ip")
    assert (row["value"], row["source"]) == ("2147483000", "dynamic default broker")
    (gone,) = at.json("config", "unset", "brokers", "max.connections.per.ip", "--yes")
    assert (gone["result"], gone["after"]) == ("unset", None)
