"""kctl leader elect --unclean on a cluster of its own: a partition whose only in-sync replica is on a dead broker."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kctl_testing import Kctl, eventually

pytestmark = pytest.mark.long

NAME = "unclean"


def _partition(kctl: Kctl, topic: str) -> dict[str, Any]:
    (described,) = kctl.json("topic", "describe", topic)
    partition: dict[str, Any] = described["partitions"][0]
    return partition


def _elect(kctl: Kctl, *args: str) -> Any:
    return kctl("leader", "elect", "--unclean", *args)


def test_an_unclean_election_loses_what_it_said(own_kctl: Kctl) -> None:
    kctl = own_kctl
    config = ("--config", "min.insync.replicas=1")
    kctl.ok("cluster", "create", NAME, "--use", "--layout", "pseudo-distributed", *config, timeout=180)
    try:
        _lose_the_leader(kctl)
        _look(kctl)
        _refuse(kctl)
        _elect_and_lose(kctl)
    finally:
        kctl("cluster", "destroy", NAME, "--yes", "--confirm-cluster", NAME, timeout=120)


def _lose_the_leader(kctl: Kctl) -> None:
    """50 records on brokers 2 and 3, 30 more on broker 2 alone, 70 of the 80 committed; 2 and 3 die, 3 comes back."""
    kctl.ok("topic", "create", "ledger", "--replica-assignment", "2:3")
    kctl.ok("topic", "create", "gone", "--replica-assignment", "2")
    kctl.ok("topic", "create", "fine", "--replica-assignment", "1:3")
    kctl.ok("produce", "ledger", stdin="a\n" * 50)
    _commit(kctl, 10)  # __consumer_offsets is made while three brokers are up
    kctl.ok("cluster", "kill", NAME, "3", "--yes")
    eventually(lambda: _partition(kctl, "ledger")["isr"] == [2], seconds=60, what="broker 3 leaves the ISR")
    kctl.ok("produce", "ledger", stdin="b\n" * 30)
    _commit(kctl, 60)
    kctl.ok("cluster", "kill", NAME, "2", "--yes")
    eventually(lambda: _partition(kctl, "ledger")["leader"] is None, seconds=60, what="nobody leads the partition")
    kctl.ok("cluster", "start", NAME, "--node", "3", timeout=120)
    eventually(lambda: "3" in _brokers_up(kctl), seconds=60, what="broker 3 is back")
    partition = _partition(kctl, "ledger")
    assert (partition["leader"], partition["isr"]) == (None, [2]), "the rest knows less, and waits"


def _commit(kctl: Kctl, records: int) -> None:
    kctl.ok("consume", "ledger", "--group", "g", "--from-beginning", "--max-messages", str(records))


def _brokers_up(kctl: Kctl) -> set[str]:
    rows = json.loads(kctl("leader", "status", "-o", "json").out)["brokers"]
    return {str(row["broker"]) for row in rows if row["alive"]}


def _look(kctl: Kctl) -> None:
    status = kctl("leader", "status", "--topic", "ledger", "--max-imbalance", "100")
    assert status.code == 1
    assert "1 partition without a leader" in status.err
    assert "no election can help now" in status.err

    planned = _elect(kctl, "--topic", "ledger", "--dry-run", "-o", "json")
    assert planned.code == 0, str(planned)
    (row,) = json.loads(planned.out)
    assert (row["elected"], row["result"]) == (3, "would elect")
    assert row["loss"] == {
        "topic": "ledger", "partition": 0, "elected": 3, "elected_end_offset": 50, "known_end_offset": 70,
        "ends": {"3": 50}, "unreachable": [2], "committed": 70, "known_lost": 20,
        "eligible": [], "last_known_eligible": [],
    }  # fmt: skip
    preferred = kctl("leader", "elect", "--preferred", "--topic", "ledger", "--yes")
    assert preferred.code == 1
    assert "ledger-0: broker 2 is down" in preferred.err


def _refuse(kctl: Kctl) -> None:
    unconfirmed = _elect(kctl, "--topic", "ledger", "--topic", "gone", "--yes")
    assert unconfirmed.code == 4, "--yes alone does not do it"
    assert "gone-0 is skipped: all its replicas are on brokers that are down: 2" in unconfirmed.err
    assert (
        "ledger-0: broker 3 would lead from offset 50; 50 to 69 existed (a group has committed them) and are "
        "lost; further records of broker 2 are lost too, and cannot be counted"
    ) in unconfirmed.err
    assert f"--confirm-cluster {NAME}" in unconfirmed.err
    assert "ledger-0" in unconfirmed.err.splitlines()[-2], "the question names the partition"
    wrong = _elect(kctl, "--topic", "ledger", "--confirm-cluster", "other")
    assert wrong.code == 2
    led = _elect(kctl, "--topic", "fine", "--partition", "0", "--confirm-cluster", NAME)
    assert led.code == 4
    assert "fine-0 has a leader (broker 1)" in led.err
    assert _partition(kctl, "ledger")["leader"] is None


def _elect_and_lose(kctl: Kctl) -> None:
    done = _elect(kctl, "--topic", "ledger", "--topic", "gone", "--confirm-cluster", NAME, "-o", "json")
    assert done.code == 1, "one is done, one was left alone"
    ledger, gone = sorted(json.loads(done.out), key=lambda row: str(row["topic"]), reverse=True)
    assert (ledger["result"], ledger["elected"]) == ("elected", 3)
    assert (gone["result"], gone["loss"]) == ("skipped", None)
    assert _partition(kctl, "ledger")["leader"] == 3
    left = kctl.ok("consume", "ledger", "--from-beginning", "--exit-eof").out
    assert left == "a\n" * 50, "what was told is lost, and nothing else"
    again = _elect(kctl, "--topic", "ledger")
    assert (again.code, again.out) == (0, "")
    assert "no election is needed" in again.err
