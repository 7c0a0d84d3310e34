"""Which protected contexts a cluster belongs to, however it is addressed: a table of ways to address it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kctl.commands.terminal.invocation import Invocation
from kctl.contexts import choose as context
from kctl.contexts.change import add_context
from kctl.contexts.choose import resolve_target
from kctl.contexts.context import Context
from kctl.deploy import protection
from kctl.errors import InvalidFile, KctlError, NotConfirmed, UsageError
from kctl.protocol.target import Target

ID, OTHER = "prod-id-000000000000000", "other-id-00000000000000"
HOSTS = {
    "kafka1": {"10.0.0.1"}, "kafka2": {"10.0.0.2"}, "kafka1.example.com": {"10.0.0.1"}, "dev": {"10.9.9.9"},
    "laptop": {"127.0.0.1"}, "127.0.0.1": {"127.0.0.1"}, "10.0.0.1": {"10.0.0.1"}, "10.0.0.2": {"10.0.0.2"},
}  # fmt: skip
HERE = "id-of-a-cluster-of-kctl"
OWN = {HERE: ("127.0.0.1:20000", "127.0.0.1:20001")}
Write = Callable[[dict[str, Any]], Path]


@pytest.fixture(autouse=True)
def _names(monkeypatch: pytest.MonkeyPatch) -> None:
    """No DNS and no broker is asked; test cases say what would be answered."""
    monkeypatch.setattr(protection, "_addresses_of", lambda host: frozenset(HOSTS.get(host, ())))
    monkeypatch.setattr(protection, "_is_own", lambda ip: ip.startswith("192.168."))
    monkeypatch.setattr(protection, "_probes", {})
    monkeypatch.setattr(protection, "_own_servers", lambda cluster_id: OWN.get(cluster_id or "", ()))
    monkeypatch.setattr(protection, "probe", lambda name: pytest.fail(f"{name} was asked"))
    monkeypatch.delenv("KCTL_CONTEXT", raising=False)


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    path = tmp_path / "config.yaml"
    monkeypatch.setenv("KCTL_CONFIG", str(path))

    def contexts(entries: dict[str, Any]) -> Path:
        path.write_text(json.dumps({"contexts": entries}))
        return path

    return contexts


def _prod(**more: Any) -> dict[str, Any]:
    return {"bootstrap_servers": ["kafka1:9092", "kafka2:9092"], "protected": True, **more}


def _connected(target: Target, cluster_id: str | None, *advertised: str) -> Target:
    return replace(target, cluster_id=cluster_id, advertised=advertised or target.bootstrap_servers)


def _names_of(target: Target) -> list[str]:
    return [each.name for each in protection.protectors(target)]


@pytest.mark.parametrize(
    ("servers", "advertised", "cluster_id", "expected"),
    [
        # The same cluster by its id, wherever it is reached.
        ("kafka1:9092", "kafka1:9092", ID, ["prod"]),
        ("kafka3:9092", "kafka1:9092 kafka2:9092 kafka3:9092", ID, ["prod"]),  # a broker that is not in the context
        ("10.0.0.1:9092", "kafka1:9092", ID, ["prod"]),
        ("kafka1:9094", "kafka1:9094", ID, ["prod"]),  # another listener
        ("localhost:19092", "localhost:19092", ID, ["prod"]),  # a tunnel
        ("bastion:1", "bastion:1", ID, ["prod"]),
        # Another cluster.
        ("dev:9092", "dev:9092", OTHER, []),
        ("localhost:9092", "localhost:9092", OTHER, []),
        ("kafka1:9094", "kafka1:9094", OTHER, []),  # on the same hosts
        # The address of a protected context, and the cluster behind it was made anew.
        ("kafka1:9092", "kafka1:9092", OTHER, ["prod"]),
        ("KAFKA1.:9092", "kafka1:9092", OTHER, ["prod"]),
        # Kafka 0.10.0 has no id: by addresses, as they are written and as they are resolved.
        ("kafka2:9092", "kafka2:9092", None, ["prod"]),
        ("kafka9:9092", "kafka9:9092 kafka2:9092", None, ["prod"]),
        ("10.0.0.2:9092", "10.0.0.2:9092", None, ["prod"]),
        ("kafka1.example.com:9092", "kafka1.example.com:9092", None, ["prod"]),
        ("dev:9092", "dev:9092", None, []),
    ],
)
def test_the_id_is_known(
    write: Write, servers: str, advertised: str, cluster_id: str | None, expected: list[str]
) -> None:
    write({"prod": _prod(cluster_id=ID), "open": {"bootstrap_servers": ["kafka3:9092"], "cluster_id": ID}})
    target = _connected(resolve_target(bootstrap_server=servers), cluster_id, *advertised.split())
    assert _names_of(target) == expected


UNREACHABLE = protection.ServerReport(problem="kafka1:9092 refused the connection")


@pytest.mark.parametrize(
    ("servers", "advertised", "cluster_id", "look", "expected"),
    [
        # By address: nobody is asked.
        ("kafka1:9092", "kafka1:9092", ID, None, ["prod"]),
        ("kafka9:1", "kafka2:9092", ID, None, ["prod"]),
        ("10.0.0.1:9092", "x:1", ID, None, ["prod"]),
        ("kafka1.example.com:9092", "x:1", None, None, ["prod"]),
        # The context is asked, once.
        ("kafka1:9094", "kafka1:9094", ID, protection.ServerReport(ID), ["prod"]),
        ("dev:9092", "dev:9092", OTHER, protection.ServerReport(ID), []),
        ("dev:9092", "dev:9092", None, protection.ServerReport(ID), []),
        ("dev:9092", "dev:9092", OTHER, protection.ServerReport(None, ("kafka1:9092",)), []),
        # Neither has an id: brokers on the same hosts are taken for one cluster.
        ("kafka1:9094", "kafka1:9094", None, protection.ServerReport(None, ("kafka1:9092",)), ["prod"]),
        ("dev:9092", "dev:9092", None, protection.ServerReport(None, ("kafka1:9092",)), []),
        # The context does not answer: it may be its cluster, unless that is of this machine alone.
        ("bastion:1", "dev:9092", OTHER, UNREACHABLE, ["prod"]),
        ("bastion:1", "127.0.0.1:9092 dev:9092", OTHER, UNREACHABLE, ["prod"]),
        ("127.0.0.1:9093", "127.0.0.1:9093", OTHER, None, []),
        # All listeners of a cluster that kctl made here are known.
        ("bastion:1", "127.0.0.1:20000 dev:9092", HERE, None, []),
        ("laptop:9093", "127.0.0.1:9093 127.0.0.1:9094", OTHER, None, []),
    ],
)
def test_the_id_is_not_known_yet(
    write: Write, monkeypatch: pytest.MonkeyPatch, servers: str, advertised: str, cluster_id: str | None,
    look: Any, expected: list[str],
) -> None:  # fmt: skip
    write({"prod": _prod()})
    asked = []

    def answer(name: str) -> Any:
        asked.append(name)
        return look

    if look is not None:
        monkeypatch.setattr(protection, "probe", answer)
    target = _connected(resolve_target(bootstrap_server=servers), cluster_id, *advertised.split())
    assert _names_of(target) == expected
    assert _names_of(target) == expected
    assert len(asked) == (look is not None)
    learned = look.cluster_id if look is not None else None
    assert context.get_context("prod").cluster_id == learned


@pytest.mark.parametrize("servers", [["127.0.0.1:9092"], ["localhost:9092"], ["laptop:9092"], ["192.168.1.5:9092"]])
def test_an_unreachable_context_of_this_machine_may_be_any_cluster_here(
    write: Write, monkeypatch: pytest.MonkeyPatch, servers: list[str]
) -> None:
    HOSTS.setdefault("192.168.1.5", {"192.168.1.5"})
    write({"prod": {"bootstrap_servers": servers, "protected": True}})
    monkeypatch.setattr(protection, "probe", lambda _: UNREACHABLE)
    target = _connected(resolve_target(bootstrap_server="127.0.0.1:9093"), OTHER)
    (found,) = protection.protectors(target)
    assert (found.name, found.certain) == ("prod", False)
    assert "try `kctl context test prod`" in found.reason


def test_a_protected_context_comes_first_and_a_twin_does_not_weaken_it(write: Write) -> None:
    write({"prod": _prod(cluster_id=ID), "second": _prod(bootstrap_servers=["kafka3:9092"], cluster_id=ID),
           "open": {"bootstrap_servers": ["kafka1:9092"]}, "far": _prod(bootstrap_servers=["far:1"])})  # fmt: skip
    by = {name: _names_of(_connected(resolve_target(context=name), ID)) for name in ("prod", "second", "open")}
    assert by == {"prod": ["prod", "second"], "second": ["second", "prod"], "open": ["prod", "second"]}
    add_context("another", Context(("kafka3:9092",)))
    assert _names_of(_connected(resolve_target(context="another"), ID)) == ["prod", "second"]
    elsewhere = resolve_target(context="prod", bootstrap_server="else:1")
    assert _names_of(_connected(elsewhere, OTHER)) == ["prod"]


def test_without_protected_contexts_nobody_is_asked(write: Write) -> None:
    write({"open": {"bootstrap_servers": ["kafka1:9092"], "cluster_id": ID}})
    assert _names_of(_connected(resolve_target(bootstrap_server="kafka1:9092"), ID)) == []


def test_what_brokers_advertise_may_be_anything(write: Write) -> None:
    write({"prod": _prod(cluster_id=ID)})
    target = _connected(resolve_target(bootstrap_server="dev:1"), None, "not a host:x", ":-1", "\x1b[2J:1")
    assert _names_of(target) == []


def test_a_config_file_that_cannot_be_read_protects_everything(write: Write) -> None:
    write({}).write_text("contexts: [")
    with pytest.raises(InvalidFile):
        Invocation(yes=True).confirm("Delete it?", target=Target("h:1", ("h:1",)))


@pytest.mark.parametrize(
    ("given", "error"),
    [(None, NotConfirmed), ("open", UsageError), ("dev", UsageError), ("prod", None), ("second", None)],
)
def test_the_name_of_a_protecting_context_confirms(
    write: Write, given: str | None, error: type[KctlError] | None
) -> None:
    write({"prod": _prod(cluster_id=ID), "second": _prod(cluster_id=ID), "open": {"bootstrap_servers": ["x:1"]}})
    inv = Invocation(yes=True, confirm_cluster=given)
    target = _connected(resolve_target(context="open"), ID)
    for ask in (inv.confirm, inv.confirm_protected):
        if error is None:
            ask("Delete it?", target=target)
            continue
        with pytest.raises(error) as caught:
            ask("Delete it?", target=target)
        text = f"{caught.value.message} {caught.value.hint}"
        assert "context prod protects this cluster" in text, text
        if given is None:
            assert f"cluster id {ID}" in text
            assert "--confirm-cluster prod" in text


def test_the_id_is_kept_with_the_context(write: Write) -> None:
    path = write({"prod": _prod(), "open": {"bootstrap_servers": ["kafka1:9092"]}})
    mode = path.stat().st_mode
    prod = _connected(resolve_target(context="prod"), ID)
    assert protection.learn(prod) is None
    assert context.get_context("prod").cluster_id == ID
    assert path.stat().st_mode == mode
    before = path.read_bytes()
    assert protection.learn(_connected(resolve_target(context="prod"), ID)) is None
    assert protection.learn(_connected(resolve_target(context="open"), ID)) is None
    assert protection.learn(_connected(resolve_target(context="prod", bootstrap_server="x:1"), OTHER)) is None
    assert path.read_bytes() == before
    moved = protection.learn(_connected(resolve_target(context="prod"), OTHER))
    assert moved is not None
    assert ID in moved
    assert OTHER in moved
    assert context.get_context("prod").cluster_id == ID  # only `context test` says that this is right


def test_the_id_goes_with_the_servers(write: Write) -> None:
    write({"prod": _prod(cluster_id=ID)})
    same = Context(("kafka2:9092", "kafka1:9092"), protected=True)
    assert add_context("prod", same, replace_existing=True).entry.cluster_id == ID
    add_context("prod", replace(same, cluster_id=None))  # the same settings: nothing is refused
    other = Context(("kafka5:9092",), protected=True)
    assert add_context("prod", other, replace_existing=True).entry.cluster_id is None


def test_a_config_file_that_cannot_be_written_is_no_failure(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    write({"prod": _prod()})

    def refuse(*_: Any) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr("kctl.contexts.config._write", refuse)
    assert protection.learn(_connected(resolve_target(context="prod"), ID)) is None
    assert not protection.remember("prod", ID)
