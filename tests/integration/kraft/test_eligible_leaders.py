"""kctl leader elect --unclean where a partition has eligible leader replicas (KIP-966): none is held without asking."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from kctl_testing import Kctl, eventually, within
from kraft_nodes import KraftNodes, kraft_nodes

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KraftNodes]:
    """Four brokers: 1 is the controller and holds nothing."""
    with kraft_nodes(tmp_path_factory.mktemp("eligible"), 4) as nodes:
        yield nodes


@pytest.fixture(scope="module")
def kctl(nodes: KraftNodes, tmp_path_factory: pytest.TempPathFactory, shared: dict[str, str]) -> Kctl:
    kctl = Kctl(tmp_path_factory.mktemp("eligible-kctl"), shared)
    kctl.ok("context", "add", "eligible", "--bootstrap-server", nodes.bootstrap)
    kctl.ok("context", "use", "eligible")
    return kctl


def _partition(kctl: Kctl) -> dict[str, Any]:
    (described,) = kctl.json("topic", "describe", "ledger")
    partition: dict[str, Any] = described["partitions"][0]
    return partition


def _brokers(kctl: Kctl) -> set[int]:
    return {row["broker"] for row in kctl.json("broker", "list")}


def _wait_for(kctl: Kctl, key: str, value: object) -> None:
    eventually(lambda: _partition(kctl)[key] == value, seconds=within(60), what=f"{key} is {value}")


def _elect(kctl: Kctl, *args: str) -> tuple[int, str, dict[str, Any]]:
    done = kctl("leader", "elect", "--unclean", "--topic", "ledger", *args, "-o", "json")
    (row,) = json.loads(done.out)
    return done.code, done.err, row


def test_no_replica_is_proposed_while_others_are_eligible(nodes: KraftNodes, kctl: Kctl) -> None:
    """50 records on all, 30 more on brokers 2 and 3, which then go; broker 4 comes back and lacks them."""
    kctl.ok("topic", "create", "ledger", "--replica-assignment", "2:3:4", "--config", "min.insync.replicas=2")
    kctl.ok("produce", "ledger", stdin="a\n" * 50)
    nodes.kill(4)
    _wait_for(kctl, "isr", [2, 3])
    kctl.ok("produce", "ledger", stdin="b\n" * 30)
    nodes.kill(3)
    _wait_for(kctl, "isr", [2])
    nodes.stop(2)
    _wait_for(kctl, "leader", None)
    nodes.start(4)
    eventually(lambda: 4 in _brokers(kctl), seconds=within(60), what="broker 4 is back")

    code, err, row = _elect(kctl, "--dry-run")
    assert (code, row["result"], sorted(row["eligible"]), row["loss"]) == (1, "skipped", [2, 3], None)
    assert "are eligible leader replicas, which have every committed record: start them first" in err
    code, err, row = _elect(kctl, "--partition", "0", "--yes", "--confirm-cluster", "eligible")
    assert (code, row["result"]) == (1, "skipped")
    assert _partition(kctl)["leader"] is None

    code, _, row = _elect(kctl, "--ignore-eligible", "--dry-run")
    assert (code, row["result"], row["elected"]) == (0, "would elect", 4)
    loss = row["loss"]
    assert (loss["elected_end_offset"], loss["known_lost"], sorted(loss["eligible"])) == (50, None, [2, 3])

    nodes.start(2)  # what the hint says
    eventually(lambda: _partition(kctl)["leader"] == 2, seconds=within(60), what="the eligible replica leads")
    done = kctl("leader", "elect", "--unclean", "--topic", "ledger", "--dry-run")
    assert (done.code, "all with a leader" in done.err) == (0, True)
    (offsets,) = kctl.json("topic", "offsets", "ledger")
    assert offsets["offset"] == 80
