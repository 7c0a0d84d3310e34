"""bootstrap.servers of --command-config: which cluster a command goes to, by what else was given."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kctl.contexts.choose import resolve_target
from kctl.errors import InvalidFile, UsageError

CONTEXTS = {
    "prod": {"bootstrap_servers": ["kafka1:9092", "kafka2:9092"], "zookeeper": "zk:2181/prod", "protected": True},
    "dev": {"bootstrap_servers": ["127.0.0.1:9192"], "zookeeper": "127.0.0.1:2181"},
    "zk": {"bootstrap_servers": [], "zookeeper": "127.0.0.1:2181"},
}


@pytest.fixture(autouse=True)
def _contexts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(json.dumps({"current_context": "prod", "contexts": CONTEXTS}))
    monkeypatch.setenv("KCTL_CONFIG", str(file))
    monkeypatch.delenv("KCTL_CONTEXT", raising=False)


def _file(tmp_path: Path, servers: str | None) -> str:
    file = tmp_path / "client.properties"
    file.write_text("client.id=x\n" + (f"bootstrap.servers={servers}\n" if servers is not None else ""))
    return str(file)


@pytest.mark.parametrize(
    ("servers", "given", "variable", "name"),
    [
        # Nothing else is given: the file comes before the current context.
        ("other:9092", {}, None, "other:9092"),
        ("other", {}, None, "other:9092"),
        ("PLAINTEXT://other:9092", {}, None, "other:9092"),
        ("other:9092 , third:9092", {}, None, "other:9092,third:9092"),
        (None, {}, None, "prod"),
        ("", {}, None, "prod"),
        (" ", {}, None, "prod"),
        # The servers are those of the current context: its ZooKeeper and its name are used.
        ("kafka2:9092,kafka1:9092", {}, None, "prod"),
        ("kafka2", {}, None, "prod"),
        ("KAFKA1:9092", {}, None, "prod"),
        ("kafka1:9092,kafka9:9092", {}, None, "kafka1:9092,kafka9:9092"),
        # Something else names the same servers.
        ("a:1,b:1", {"bootstrap_server": "b:1,a:1"}, None, "b:1,a:1"),
        ("a:1,b:1", {"bootstrap_server": "b:1"}, None, "b:1"),
        ("a:1", {"bootstrap_server": "a:1,b:1"}, None, "a:1,b:1"),
        ("a:1", {"bootstrap_server": "A.:1"}, None, "A.:1"),
        ("localhost:9192", {"context": "dev"}, None, "dev"),
        ("[::1]:9192", {"context": "dev"}, None, "dev"),
        ("127.0.0.1:9192", {}, "dev", "dev"),
        # --context with --bootstrap-server: the servers of the option count.
        ("new:9092", {"context": "dev", "bootstrap_server": "new:9092"}, None, "dev"),
        # --bootstrap-server comes before KCTL_CONTEXT, and so does --context.
        ("a:1", {"bootstrap_server": "a:1"}, "prod", "a:1"),
        ("localhost:9192", {"context": "dev"}, "prod", "dev"),
    ],
)
def test_which_cluster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, servers: str | None, given: dict[str, Any], variable: str | None,
    name: str,
) -> None:  # fmt: skip
    if variable:
        monkeypatch.setenv("KCTL_CONTEXT", variable)
    target = resolve_target(**given, command_config=_file(tmp_path, servers))
    assert target.name == name
    assert target.protected == (name == "prod")
    assert target.zookeeper == {"prod": "zk:2181/prod", "dev": "127.0.0.1:2181"}.get(name)
    assert target.bootstrap_servers


@pytest.mark.parametrize(
    ("servers", "given", "variable", "says"),
    [
        ("a:1", {"bootstrap_server": "b:1"}, None, "--bootstrap-server is b:1"),
        ("a:1", {"bootstrap_server": "a:2"}, None, "--bootstrap-server is a:2"),
        ("a:1,b:1", {"bootstrap_server": "b:1,c:1"}, None, "--bootstrap-server is b:1,c:1"),
        ("localhost:9192", {"bootstrap_server": "127.0.0.1:9193"}, None, "--bootstrap-server is 127.0.0.1:9193"),
        ("a:1", {"context": "dev"}, None, "--context dev is 127.0.0.1:9192"),
        ("a:1", {"context": "dev", "bootstrap_server": "b:1"}, None, "--bootstrap-server is b:1"),
        ("a:1", {"context": "zk"}, None, "--context zk is a context without brokers"),
        ("kafka1:9092", {}, "dev", "KCTL_CONTEXT=dev is 127.0.0.1:9192"),
    ],
)
def test_two_clusters_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, servers: str, given: dict[str, Any], variable: str | None,
    says: str,
) -> None:  # fmt: skip
    if variable:
        monkeypatch.setenv("KCTL_CONTEXT", variable)
    with pytest.raises(UsageError) as caught:
        resolve_target(**given, command_config=_file(tmp_path, servers))
    assert f"bootstrap.servers={servers}" in caught.value.message
    assert says in caught.value.message


@pytest.mark.parametrize("servers", ["a:b", "a:99999", "host name:9092", ",", "a:1:2"])
def test_servers_that_are_none(tmp_path: Path, servers: str) -> None:
    with pytest.raises(InvalidFile, match=r"client\.properties: bootstrap\.servers: "):
        resolve_target(command_config=_file(tmp_path, servers))


def test_with_zookeeper_alone(tmp_path: Path) -> None:
    target = resolve_target(zookeeper="z:2181/x", command_config=_file(tmp_path, "other:9092"))
    assert (target.zookeeper, target.bootstrap_servers) == ("z:2181/x", ("other:9092",))


# --- --bootstrap-controller -----------------------------------------------------------------------------------------


def test_controllers_take_the_place_of_the_brokers() -> None:
    alone = resolve_target(bootstrap_controller="c1:9093,c2:9093")
    assert (alone.name, alone.bootstrap_servers, alone.controllers) == ("c1:9093,c2:9093", ("c1:9093", "c2:9093"), True)
    with_context = resolve_target(context="prod", bootstrap_controller="c1:9093")
    assert (with_context.name, with_context.bootstrap_servers) == ("prod", ("c1:9093",))
    assert (with_context.controllers, with_context.protected, with_context.context) == (True, True, None)
    assert not resolve_target(context="prod").controllers


def test_brokers_in_a_file_do_not_contradict_controllers(tmp_path: Path) -> None:
    target = resolve_target(bootstrap_controller="c1:9093", command_config=_file(tmp_path, "kafka9:9092"))
    assert (target.bootstrap_servers, target.controllers) == (("c1:9093",), True)


def test_brokers_and_controllers_exclude_each_other() -> None:
    with pytest.raises(UsageError, match="either --bootstrap-server or --bootstrap-controller"):
        resolve_target(bootstrap_server="b1:9092", bootstrap_controller="c1:9093")
