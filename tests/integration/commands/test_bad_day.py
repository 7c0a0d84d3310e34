"""Parts of the cluster are down: what still works, what is refused, what is said, and the way back."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest

from kctl_testing import Kctl, eventually, within

pytestmark = pytest.mark.long

NAME = "badday"


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory, shared: dict[str, str]) -> Iterator[Kctl]:
    """A cluster that these tests may break: one ZooKeeper, three brokers, a topic and a group."""
    kctl = Kctl(tmp_path_factory.mktemp("badday"), shared)
    kctl.ok("cluster", "create", NAME, "--use", "--layout", "pseudo-distributed", "--heap", "256m", timeout=180)
    kctl.ok("topic", "create", "orders", "--partitions", "3", "--replication-factor", "3")
    kctl.ok("produce", "orders", stdin="a\nb\nc\n")
    kctl.ok("consume", "orders", "--group", "billing", "--from-beginning", "--max-messages", "2", timeout=60)
    yield kctl
    kctl.ok("cluster", "destroy", NAME, "--yes", "--confirm-cluster", NAME, timeout=180)


def _healthy(kctl: Kctl) -> bool:
    return kctl("cluster", "status", NAME).code == 0


def _servers(kctl: Kctl) -> list[str]:
    servers: list[str] = kctl.json("context", "show", NAME)["bootstrap_servers"]
    return servers


def test_one_of_three_brokers_down(broken: Kctl) -> None:
    broken.ok("cluster", "kill", NAME, "2", "--yes")
    state = {row["node"]: row["state"] for row in _status(broken)}
    assert state["broker-2"] == "dead", state
    assert broken("topic", "list").code == 0  # two of the context's three servers answer
    dead = broken("topic", "list", "--bootstrap-server", _servers(broken)[1])
    assert (dead.code, "refused" in dead.err) == (3, True), str(dead)
    assert dead.seconds < within(5)

    def marked() -> bool:
        (described,) = broken.json("topic", "describe", "orders")
        return all(2 not in p["isr"] for p in described["partitions"])

    eventually(marked, seconds=40, what="broker 2 out of every ISR")
    assert re.search("under-replicated", broken.ok("topic", "describe", "orders").out, re.IGNORECASE)
    rows = broken.json("lag", "billing")
    assert sum(row["lag"] or 0 for row in rows) <= 3
    refused = broken("topic", "create", "three", "--replication-factor", "3")
    assert refused.code == 4, str(refused)
    broken.ok("produce", "orders", stdin="d\n")  # min.insync.replicas is 2
    broken.ok("cluster", "start", NAME, timeout=120)
    eventually(lambda: _healthy(broken), seconds=60, what="all replicas in sync")


def _status(kctl: Kctl) -> list[dict[str, object]]:
    result = kctl("cluster", "status", NAME, "-o", "json")
    assert result.code == 1, f"not healthy is exit 1\n{result}"
    rows: list[dict[str, object]] = json.loads(result.out)["processes"]
    return rows


def test_zookeeper_down_then_no_controller(broken: Kctl) -> None:
    broken.ok("cluster", "kill", NAME, "zookeeper-1", "--yes")
    assert _status(broken)
    assert broken("topic", "list").code == 0  # brokers answer from what they know
    broken.ok("produce", "orders", "--no-idempotence", stdin="e\n")
    # A broker that has handed out producer ids has some left; another one cannot get any.
    idempotent = broken("produce", "orders", "--timeout", "5s", stdin="f\n")
    assert idempotent.code == 0 or "gave no producer id within 5 s: nothing was sent" in idempotent.err, str(idempotent)
    assert idempotent.code in {0, 5}
    assert idempotent.seconds < within(15)
    created = broken("topic", "create", "unborn", "--timeout", "5s")
    assert created.code in {3, 5}, str(created)
    assert "Traceback" not in created.err
    assert created.seconds < within(15)

    broken.ok("cluster", "kill", NAME, "controller", "--yes")
    headless = broken("topic", "create", "unborn", "--timeout", "5s")
    assert headless.code in {3, 5}, str(headless)
    assert headless.seconds < within(15), str(headless)
    assert "Traceback" not in headless.err
    assert _status(broken)

    broken.ok("cluster", "start", NAME, timeout=180)
    eventually(lambda: _healthy(broken), seconds=60, what="healthy after ZooKeeper and the controller came back")
    assert {row["topic"] for row in broken.json("topic", "list")} == {"orders"}
    lines = broken.ok("consume", "orders", "--from-beginning", "--exit-eof").out.splitlines()
    assert sorted(lines) == sorted([*"abcde", *("f" if idempotent.code == 0 else "")])
