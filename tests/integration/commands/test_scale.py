"""The daily commands on 1,000 topics and 200 groups: how many requests each sends, and that none takes long."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from kafka_admin import kafka_admin
from kctl.protocol.client import connect
from kctl.protocol.connection import Connection
from kctl.protocol.target import Target
from kctl_testing import Kctl, within

pytestmark = pytest.mark.long

TOPICS, GROUPS, COMMITTED = 1000, 200, 5
CPU_S = 10.0


@dataclass(frozen=True)
class Row:
    """requests: the most that may be sent, of ApiVersions the one of each connection included. code: how it ends."""

    argv: str
    requests: int
    code: int = 0


# Of one broker: what grows with the number of topics or groups sends a few requests of many each, never one for each.
ROWS = [
    Row("topic list", 3),
    Row("topic list --size --count", 20),
    Row("topic list --under-replicated", 10),
    Row("topic describe", 25),
    Row("topic describe --offsets", 40),
    Row("topic describe scale-0500", 8),
    Row("topic offsets --match scale-0.*", 12),
    Row("topic delete --match scale-01.* --expect 100 --dry-run", 30),
    Row("topic alter --match scale-.* --expect 1000 --config retention.ms=1000 --dry-run", 60),
    Row("topic export", 25),
    Row("cluster health", 25),
    Row("cluster diagnose", 40),
    Row("broker list", 12),
    Row("broker log-dirs", 8),
    Row("config get topic/scale-0007", 8),
    Row("config diff topic/scale-0007 topic/scale-0008", 10),
    Row("group list", 8),
    Row("group describe scale-group-007", 16),
    Row("group export --match scale-group-.*", 20),
    Row("group reset-offsets --match scale-group-.* --all-topics --to-earliest --dry-run", 30),
    Row("lag", 20),
    Row("transaction list", 8),
    Row("zk ls /brokers/topics", 3),
]


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory, shared: dict[str, str]) -> Iterator[Kctl]:
    """A broker with them; its kctl, whose current context it is."""
    kctl = Kctl(tmp_path_factory.mktemp("scale-home"), shared)
    kctl.ok("cluster", "create", "scale", "--use", "--layout", "single", timeout=180)
    try:
        _fill(kctl)
        yield kctl
    finally:
        kctl("cluster", "destroy", "scale", "--yes", "--confirm-cluster", "scale", timeout=180)


def _fill(kctl: Kctl) -> None:
    from kafka.structs import OffsetAndMetadata, TopicPartition

    names = [f"scale-{number:04d}" for number in range(TOPICS)]
    for start in range(0, TOPICS, 250):
        kctl.ok("topic", "create", *names[start : start + 250], "--timeout", "5m", timeout=within(300))
    kctl.ok("produce", names[0], stdin="one\ntwo\n")
    # The first group makes the broker create the topic of the offsets.
    kctl.ok("consume", names[0], "--group", "scale-first", "--from-beginning", "--max-messages", "1", "--quiet")
    servers = kctl.json("context", "show", "scale")["bootstrap_servers"]
    with connect(Target("scale", tuple(servers)), timeout_s=within(30)) as client, kafka_admin(client) as admin:
        for number in range(GROUPS):
            topics = names[number * COMMITTED : (number + 1) * COMMITTED]
            offsets = {TopicPartition(name, 0): OffsetAndMetadata(0, "", -1) for name in topics}
            admin.alter_group_offsets(f"scale-group-{number:03d}", offsets)


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The length of each request that is sent in this process."""
    lengths: list[int] = []
    write = Connection.write

    def counting(self: Connection, data: bytes, *args: Any) -> None:
        lengths.append(len(data))
        write(self, data, *args)

    monkeypatch.setattr(Connection, "write", counting)
    return lengths


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.argv)
def test_requests_and_time(
    large: Kctl, sent: list[int], row: Row, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from kctl.commands.app import main

    monkeypatch.setenv("HOME", str(large.home))
    for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME", "KCTL_CONTEXT"):
        monkeypatch.delenv(name, raising=False)
    started = time.process_time()
    code = main([*row.argv.split(), "-o", "json"])
    cpu_s = time.process_time() - started
    shown = capsys.readouterr()
    assert code == row.code, shown.err
    assert shown.out.strip()
    assert len(sent) <= row.requests
    assert cpu_s < within(CPU_S)


def test_nothing_is_left_out(large: Kctl) -> None:
    assert len(large.json("topic", "list")) == TOPICS
    groups = {row["group"] for row in large.json("group", "list")}
    assert {f"scale-group-{number:03d}" for number in range(GROUPS)} <= groups
    assert len(large.json("lag")) == GROUPS * COMMITTED + 1


def test_a_thousand_topics_are_deleted_at_once(large: Kctl) -> None:
    done = large.json("topic", "delete", "--match", "scale-.*", "--expect", str(TOPICS), "--yes", "--timeout", "5m",
                      timeout=within(300))  # fmt: skip
    assert {row["result"] for row in done} == {"deleted"}
    assert large.json("topic", "list") == []
