"""Static voters become dynamic ones: on a cluster that kctl set up, and on any other."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster_testing import clusters_dir, nothing_left_running, processes_of
from kctl_testing import Kctl
from process_moments import run_until
from static_voters import make_voters_static

pytestmark = [pytest.mark.timeout(900), pytest.mark.long]


@pytest.fixture
def static(kraft_kctl: Kctl, kafka_4_home: Path) -> Iterator[Kctl]:
    with nothing_left_running(kraft_kctl):
        kraft_kctl.ok("cluster", "create", "c", "--use", "--layout", "kraft-single", "--heap", "256m", timeout=240)
        kraft_kctl.ok("cluster", "stop", "c", "--yes", timeout=90)
        make_voters_static(kraft_kctl, "c", kafka_4_home)
        kraft_kctl.ok("cluster", "start", "c", timeout=120)
        yield kraft_kctl


def test_kctl_converts_its_own_cluster(static: Kctl) -> None:
    assert static.json("quorum", "status")["kraft_version"] == 0
    assert static("quorum", "remove", "1", "--yes").code == 4
    planned = static.json("quorum", "convert", "--dry-run")
    assert (planned["cluster"], planned["steps"]) == ("c", ["kraft.version", "settings", "restart"])
    assert static.json("quorum", "status")["kraft_version"] == 0
    static.ok("topic", "create", "kept")

    config = clusters_dir(static) / "c" / "broker-1" / "server.properties"
    code = run_until(
        static, ["quorum", "convert", "--yes"],
        lambda _folder, _home: "controller.quorum.voters" not in config.read_text(), signal.SIGKILL,
    )  # fmt: skip
    assert code == -signal.SIGKILL
    before = processes_of(static.home)
    left = static.json("quorum", "convert", "--dry-run")
    assert (left["kraft_version"], left["steps"]) == (1, ["restart"])
    converted = json.loads(static.ok("quorum", "convert", "--yes", "-o", "json", timeout=180).out)
    assert [row["voter_source"] for row in converted["nodes"]] == ["dynamic"]
    assert (converted["changed"], converted["steps"], converted["remaining"]) == (True, [], [])
    assert processes_of(static.home) != before
    assert static.json("quorum", "convert", "--yes")["changed"] is False
    assert static.json("topic", "list")[0]["topic"] == "kept"


def test_the_nodes_of_another_cluster_are_listed(own_kctl: Kctl, kraft: str) -> None:
    planned = own_kctl("quorum", "convert", "--dry-run", "--bootstrap-server", kraft, "-o", "json")
    assert planned.code == 0, str(planned)
    document = json.loads(planned.out)
    assert (document["cluster"], document["steps"], document["remaining"]) == (None, ["kraft.version"], [1])
    assert f"controller.quorum.bootstrap.servers={document['bootstrap_servers']}" in planned.err
