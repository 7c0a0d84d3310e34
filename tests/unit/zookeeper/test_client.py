"""The ZooKeeper client against hostile servers, by protocol stage and behavior."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from hostile_zookeeper import BEHAVIORS, CONNECT, EXISTS, GET_ACL, GET_CHILDREN, GET_DATA, hostile_zookeeper
from kctl.errors import ConnectionFailed, ConnectionTimedOut, KctlError, NotFound, NotZooKeeper
from kctl.zookeeper import client as zk_client
from kctl.zookeeper import wire
from kctl.zookeeper.client import ZooKeeper
from kctl.zookeeper.nodes import list_children, read_acl, read_node, read_stat, walk
from kctl.zookeeper.session import zookeeper
from kctl.zookeeper.watch import watch

LIMIT_S = 1.0
SLACK_S = 3.0  # for a busy machine; the test distinguishes seconds from minutes
ACTIONS: dict[int, list[Callable[[ZooKeeper], object]]] = {
    CONNECT: [lambda client: client.get("/")],
    EXISTS: [lambda client: read_stat(client, "/brokers")],
    GET_DATA: [lambda client: read_node(client, "/brokers")],
    GET_ACL: [lambda client: read_acl(client, "/brokers")],
    GET_CHILDREN: [
        lambda client: list_children(client, "/", limit=10),
        lambda client: walk(client, "/", depth=2, limit=10),
    ],
}


def _outcome(case: tuple[int, str, Callable[[ZooKeeper], object]]) -> tuple[float, KctlError | None]:
    stage, behavior, action = case
    started_at = time.monotonic()
    with hostile_zookeeper(stage, behavior) as server:
        try:
            with zookeeper(server.address, timeout_s=LIMIT_S, timeout_is_total=True) as client:
                action(client)
        except KctlError as exc:
            return time.monotonic() - started_at, exc
    return time.monotonic() - started_at, None


def test_no_server_exceeds_the_time_limit() -> None:
    cases = [
        (stage, behavior, action) for stage, actions in ACTIONS.items() for behavior in BEHAVIORS for action in actions
    ]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with ThreadPoolExecutor(8) as pool:
        outcomes = list(pool.map(_outcome, cases))
    for (stage, behavior, _), (seconds, error) in zip(cases, outcomes, strict=True):
        where = f"{behavior} at {stage}"
        assert seconds < LIMIT_S + SLACK_S, f"{where}: {seconds:.1f} s"
        if behavior == "garbage":  # 0xff can be a valid error code, null buffer or stat
            assert error is None or isinstance(error, KctlError), where
            continue
        assert isinstance(error, ConnectionFailed), f"{where}: {error!r}"
        if behavior in {"silent", "drip", "fast drip", "events"}:
            assert isinstance(error, (ConnectionTimedOut, NotZooKeeper)), f"{where}: {error!r}"
        if "length" in behavior:
            assert isinstance(error, NotZooKeeper), f"{where}: {error!r}"
    grown_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown_kb < 300_000


def test_many_children_need_little_memory() -> None:
    with hostile_zookeeper() as server, zookeeper(server.address, timeout_s=20) as client:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        rows, total = list_children(client, "/many", limit=3)
        assert [row.name for row in rows] == ["n0000000", "n0000001", "n0000002"]
        assert total == 300_000
        with pytest.raises(NotFound) as caught:
            read_node(client, "/many2")
        assert caught.value.hint == "did you mean /many?"
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300_000  # kB


def test_response_size_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zk_client, "MAX_RESPONSE_BYTES", 1_000_000)
    with (
        hostile_zookeeper() as server,
        zookeeper(server.address, timeout_s=5) as client,
        pytest.raises(NotZooKeeper, match=r"announced a response of 3,600,088 bytes; kctl reads at most 1,000,000"),
    ):
        client.get_children("/many")


def test_reconnect_after_a_lost_connection() -> None:
    with hostile_zookeeper(GET_ACL, "close") as server, zookeeper(server.address, timeout_s=5) as client:
        with pytest.raises(ConnectionFailed, match="was lost"):
            client.get_acl("/brokers")
        assert client.get_children("/brokers") == ["ids"]


def test_paths_and_errors() -> None:
    with hostile_zookeeper() as server, zookeeper(f"{server.address}/brokers", timeout_s=5) as client:
        assert client.get_children("/") == ["ids"]
        assert client.get("/ids/1")[0] == b"data"
        assert client.exists("/nowhere") is None
        found = client.children_of_each(["/ids", "/nowhere", "/ids/1"])
        assert [getattr(each, "names", type(each).__name__) for each in found] == [["1"], "NoNode", []]
    with (
        hostile_zookeeper() as server,
        pytest.raises(NotFound, match="no chroot /x") as caught,
        zookeeper(f"{server.address}/x", timeout_s=5),
    ):
        pass
    assert "/" in (caught.value.hint or "")


def test_watch_of_a_silent_server_ends() -> None:
    def events() -> Iterator[str]:
        with hostile_zookeeper() as server, zookeeper(server.address, timeout_s=5) as client:
            for change in watch(client, "/brokers", limit_s=0.5, lost_after_s=1):
                yield change.event

    assert list(events()) == ["is"]


@pytest.mark.parametrize("data", [b"", b"\0" * 15, b"\0\0\0\1" * 3])
def test_truncated_responses(data: bytes) -> None:
    with pytest.raises(wire.MalformedResponse):
        wire.response(data)


@pytest.mark.parametrize("count", [-1, 0, 1, 2**31 - 1])
def test_vector_counts(count: int) -> None:
    reader = wire.RecordReader(count.to_bytes(4, "big", signed=True) + b"\0\0\0\0")
    if count > 1:
        with pytest.raises(wire.MalformedResponse):
            reader.names()
    else:
        assert reader.names() == [""] * max(0, count)
