"""Dedicated controllers die under load: one, and a majority. Clients do not notice, and nothing is half done."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from cluster_testing import nothing_left_running
from kctl_testing import Kctl, within

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]


@pytest.fixture(autouse=True)
def _nothing_left(kraft_kctl: Kctl) -> Iterator[None]:
    with nothing_left_running(kraft_kctl):
        yield


def test_controllers_die_under_load(kraft_kctl: Kctl) -> None:
    kraft_kctl.ok("cluster", "create", "c", "--use", "--layout", "kraft-separate", "--heap", "256m", timeout=240)
    planned = {
        row["scenario"]: row["impossible"] for row in kraft_kctl.json("validate", "all", "--dry-run")["scenarios"]
    }
    assert "zookeeper-loss" not in planned
    assert {name for name, why in planned.items() if why} == {"controller-election"}
    active = kraft_kctl.json("controller")["controller_id"]
    budgets = ("--max-gap", f"{within(20):.0f}s")
    one = kraft_kctl(
        "validate", "controller-loss", "--yes", *budgets, "--max-controller-time", f"{within(30):.0f}s", "-o", "json",
        timeout=300,
    )  # fmt: skip
    assert one.code == 0, str(one)
    (row,) = json.loads(one.out)["scenarios"]
    assert [fault["name"] for fault in row["faults"]] == [
        f"kill -9 of the active controller {active}", f"start of controller {active}",
    ]  # fmt: skip
    assert row["faults"][0]["to_new_controller_ms"] > 0
    assert (row["faults"][0]["to_new_leader_ms"], row["lost"]) == (0, 0)  # no partition moved
    majority = kraft_kctl("validate", "quorum-loss", "--yes", *budgets, "-o", "json", timeout=300)
    assert majority.code == 0, str(majority)
    (row,) = json.loads(majority.out)["scenarios"]
    assert row["faults"][0]["name"] == "kill -9 of controller-101, controller-102"
    assert (row["faults"][0]["to_new_leader_ms"], row["lost"]) == (0, 0)
    assert kraft_kctl.json("cluster", "status", "c")["healthy"]
    assert not [row["topic"] for row in kraft_kctl.json("topic", "list") if row["topic"].startswith("kctl-validate-")]
    kraft_kctl.ok("cluster", "destroy", "c", "--yes", "--confirm-cluster", "c")
