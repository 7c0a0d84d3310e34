"""Voters and registrations of a cluster with dedicated controllers, changed by kctl and shown by Kafka's own tool."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster_testing import nothing_left_running
from java_tools import java_tool
from kctl_testing import Kctl, eventually

pytestmark = pytest.mark.timeout(900)


@pytest.fixture
def quorum(kraft_kctl: Kctl) -> Iterator[Kctl]:
    with nothing_left_running(kraft_kctl):
        kraft_kctl.ok(
            "cluster", "create", "c", "--use", "--layout", "kraft-separate", "--brokers", "2", "--heap", "256m",
            timeout=240,
        )  # fmt: skip
        yield kraft_kctl


def voters(kctl: Kctl) -> list[int]:
    """Read by `controller`, which does not fail while a voter is down."""
    return sorted(row["node_id"] for row in kctl.json("controller")["voters"])


def test_voters_and_registrations(quorum: Kctl, kafka_4_home: Path) -> None:
    assert voters(quorum) == [101, 102, 103]
    active = quorum.json("controller")["controller_id"]
    node = next(each for each in (101, 102, 103) if each != active)
    refused = quorum("quorum", "remove", str(node), "--yes")
    assert refused.code == 4
    assert "would join again" in refused.err

    quorum.ok("cluster", "stop", "c", "--node", f"controller-{node}", "--yes", timeout=90)
    eventually(lambda: quorum("quorum", "status").code == 1, what="a voter that does not follow")
    assert quorum.json("quorum", "remove", str(node), "--dry-run")["result"] == "would remove"
    assert voters(quorum) == [101, 102, 103]
    removed = quorum.json("quorum", "remove", str(node), "--yes")
    assert removed["voters_after"] == voters(quorum) == sorted({101, 102, 103} - {node})
    assert quorum.json("quorum", "remove", str(node), "--yes")["changed"] is False

    quorum.ok("cluster", "start", "c", "--node", f"controller-{node}", timeout=120)
    eventually(
        lambda: any(row["node_id"] == node for row in quorum.json("quorum", "status")["observers"]), what="an observer"
    )
    eventually(lambda: quorum("quorum", "add", str(node), "--yes").code == 0, what="the observer has caught up")
    assert voters(quorum) == [101, 102, 103]
    bootstrap = quorum.json("cluster", "status", "c")["bootstrap_servers"][0]
    described = java_tool(
        kafka_4_home, "org.apache.kafka.tools.MetadataQuorumCommand",
        "--bootstrap-server", bootstrap, "describe", "--replication",
    )  # fmt: skip
    assert sorted(map(int, re.findall(r"^(\d+)\s.*(?:Leader|Follower)\s*$", described, re.MULTILINE))) == [
        101,
        102,
        103,
    ]
    _check_unregister(quorum)


def _check_unregister(kctl: Kctl) -> None:
    assert kctl("broker", "unregister", "2", "--yes").code == 4
    kctl.ok("cluster", "kill", "c", "2", "--yes")
    eventually(lambda: kctl("broker", "unregister", "2", "--dry-run").code == 0, what="broker 2 is fenced")
    assert kctl.json("broker", "unregister", "2", "--yes")["result"] == "removed"
    assert kctl("broker", "unregister", "2", "--yes").code == 4
    assert [row["broker"] for row in kctl.json("broker", "list")] == [1]
