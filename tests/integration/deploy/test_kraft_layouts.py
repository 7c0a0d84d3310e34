"""KRaft layouts: each comes up, serves Kafka's own tools, survives kills, and is removed without a trace."""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cluster_testing import clusters_dir, nothing_left_running, processes_of
from java_tools import java_tool
from kctl_testing import Kctl, eventually
from process_moments import run_until

pytestmark = pytest.mark.timeout(900)  # several starts of five JVMs


@pytest.fixture(autouse=True)
def _nothing_left(kraft_kctl: Kctl) -> Iterator[None]:
    with nothing_left_running(kraft_kctl):
        yield


# Layout: options, names of the processes, version.
LAYOUTS: dict[str, tuple[list[str], list[str], str]] = {
    "kraft-single": ([], ["broker-1"], "3.9.2"),  # by KAFKA_HOME
    "kraft-combined": (["--rack", "auto", "--log-dirs", "2"], ["broker-1", "broker-2", "broker-3"], "4.4.0"),
    "kraft-separate": (
        ["--brokers", "2", "--controllers", "3"],
        ["controller-101", "controller-102", "controller-103", "broker-1", "broker-2"],
        "4.4.0",
    ),
}


@pytest.mark.parametrize(
    "layout",
    ["kraft-combined", *(pytest.param(each, marks=pytest.mark.long) for each in ("kraft-single", "kraft-separate"))],
)
def test_layout(layout: str, kraft_kctl: Kctl, kafka_home: Path) -> None:
    options, names, version = LAYOUTS[layout]
    if version == "3.9.2":
        kraft_kctl = kraft_kctl.with_environment(KAFKA_HOME=str(kafka_home))
    created = json.loads(
        kraft_kctl.ok("cluster", "create", "c", "--use", "--layout", layout, "--heap", "256m", *options, "-o", "json",
                    timeout=240).out
    )  # fmt: skip
    brokers = [int(name.rpartition("-")[2]) for name in names if name.startswith("broker")]
    assert (created["kafka_version"], created["zookeeper"], created["brokers"]) == (version, None, brokers)
    assert processes_of(kraft_kctl.home).keys() == set(names)
    _check_status(kraft_kctl, names, created["cluster_id"])
    _check_quorum(kraft_kctl, created)
    kraft_kctl.ok("topic", "create", "t", "--replication-factor", str(min(3, len(brokers))))
    kraft_kctl.ok("produce", "t", stdin="one\ntwo\n")
    if layout == "kraft-separate":
        _check_rolling_restart(kraft_kctl, names, created["controllers"])
    _kill_everything(kraft_kctl, names)
    assert kraft_kctl.json("cluster", "start", "c", timeout=240)["started"] == names
    assert sorted(kraft_kctl.ok("consume", "t", "--from-beginning", "--max-messages", "2").out.split()) == [
        "one",
        "two",
    ]
    _check_stop(kraft_kctl, names)
    removed = kraft_kctl.json("cluster", "destroy", "c", "--confirm-cluster", "c")
    assert removed["kept"] == []
    assert not Path(created["directory"]).exists()
    assert kraft_kctl.json("cluster", "list") == kraft_kctl.json("context", "list") == []


def _check_status(kctl: Kctl, names: list[str], cluster_id: str) -> None:
    status = kctl.json("cluster", "status", "c")
    assert (status["healthy"], status["problems"], status["cluster_id"]) == (True, [], cluster_id)
    assert [row["node"] for row in status["processes"]] == names
    active = [row["node_id"] for row in status["processes"] if row["role"] in {"leader", "controller"}]
    assert active == [status["controller_id"]]
    assert kctl.json("cluster", "health", "--context", "c")["healthy"]


def _check_quorum(kctl: Kctl, created: dict[str, object]) -> None:
    """The voters are those that kctl chose, with their directory ids."""
    spec = json.loads((Path(str(created["directory"])) / "cluster.json").read_text())
    expected = {
        node["id"]: node["directory_id"] for node in (*spec["controllers"], *spec["brokers"]) if node["directory_id"]
    }  # fmt: skip
    voters = kctl.json("controller")["voters"]
    assert {voter["node_id"]: voter["directory_id"] for voter in voters} == expected
    assert sorted(expected) == created["controllers"]


def _check_rolling_restart(kctl: Kctl, names: list[str], controllers: list[int]) -> None:
    """All brokers and controllers restart, the active controller last."""
    before, active = processes_of(kctl.home), kctl.json("controller")["controller_id"]
    restarted = kctl.json("cluster", "restart", "c", "--rolling", "--yes", "--stable-interval", "500ms", timeout=600)
    assert {row["broker"] for row in restarted["brokers"]} == {int(name.rpartition("-")[2]) for name in names}
    assert restarted["outcome"] == "done"
    after = processes_of(kctl.home)
    assert after.keys() == before.keys()
    assert not set(after.values()) & set(before.values())
    assert kctl.json("controller")["controller_id"] in set(controllers) - {active}


def _kill_everything(kctl: Kctl, names: list[str]) -> None:
    for name in names:
        kctl.ok("cluster", "kill", "c", name, "--yes")
    status = kctl("cluster", "status", "c", "-o", "json")
    assert status.code == 1
    assert {row["state"] for row in json.loads(status.out)["processes"]} == {"dead"}


def _active(kctl: Kctl) -> int | None:
    """The active controller; None during an election, when the exit code is 1."""
    controller: int | None = json.loads(kctl("controller", "-o", "json").out)["controller_id"]
    return controller


def _check_stop(kctl: Kctl, names: list[str]) -> None:
    stopped = kctl.json("cluster", "stop", "c", "--yes", timeout=120)
    # On a busy machine, the last combined node may be killed: it cannot end without the others.
    last = set(stopped["killed"])
    assert set(stopped["stopped"]) == set(names) - last
    assert not last or (len(last) == 1 and not any(name.startswith("controller") for name in names)), stopped
    for node in (clusters_dir(kctl) / "c").glob("broker-*"):
        if node.name in last:
            continue
        assert [folder for folder in node.glob("data-*") if not (folder / ".kafka_cleanshutdown").is_file()] == []


def test_one_cluster_through_its_life(kraft_kctl: Kctl, kafka_4_home: Path) -> None:
    """Kafka's tools of the release, a lost controller, a rolling restart, and data that is not the cluster's own."""
    kraft_kctl.ok("cluster", "create", "c", "--use", "--layout", "kraft-combined", "--heap", "256m", timeout=240)
    status = kraft_kctl.json("cluster", "status", "c")
    described = java_tool(
        kafka_4_home, "org.apache.kafka.tools.MetadataQuorumCommand",
        "--bootstrap-server", status["bootstrap_servers"][0], "describe", "--status",
    )  # fmt: skip
    assert re.findall(r"^LeaderId:\s+(\d+)$", described, re.MULTILINE) == [str(status["controller_id"])]
    kraft_kctl.ok("topic", "create", "t", "--partitions", "3", "--replication-factor", "3")

    lost = status["controller_id"]
    assert kraft_kctl.json("cluster", "kill", "c", "controller:active", "--yes")["node_id"] == lost
    eventually(lambda: _active(kraft_kctl) not in {lost, None}, what="another controller")
    plan = kraft_kctl.json("cluster", "restart", "c", "--rolling", "--dry-run")
    assert [row["broker"] for row in plan["brokers"] if row["state"] == "down"] == [lost]
    kraft_kctl.ok("cluster", "start", "c", timeout=240)
    restarted = kraft_kctl.json("cluster", "restart", "c", "--rolling", "--yes", timeout=400)
    assert restarted["outcome"] == "done"
    kraft_kctl.ok("cluster", "stop", "c", "--yes", timeout=120)
    _check_foreign_data(kraft_kctl)


def _check_foreign_data(kctl: Kctl) -> None:
    """A wiped or foreign log dir is refused, and nothing is formatted over it."""
    folder = clusters_dir(kctl) / "c/broker-2/data-1"
    meta = folder / "meta.properties"
    text = meta.read_text()
    cases = {
        "data was deleted": None,
        "holds data of cluster": text.replace("cluster.id=", "cluster.id=x"),
        "holds the data of node 7": text.replace("node.id=2", "node.id=7"),
    }
    for message, content in cases.items():
        meta.unlink()
        if content is not None:
            meta.write_text(content)
        refused = kctl("cluster", "start", "c")
        assert refused.code == 4, str(refused)
        assert message in refused.err
        assert processes_of(kctl.home) == {}
        meta.write_text(text)


# The steps of a create, by the files and processes that appear: (folder of the cluster, HOME).
MOMENTS: dict[str, Callable[[Path, Path], bool]] = {
    "cluster.json": lambda c, _: (c / "cluster.json").exists(),
    "a log dir is formatted": lambda c, _: any(c.glob("controller-*/data/meta.properties")),
    "a node counts as formatted": lambda c, _: any(c.glob("*/formatted")),
    "the first process": lambda _, home: bool(processes_of(home)),
}


@pytest.mark.parametrize("moment", [pytest.param(name, marks=pytest.mark.long) for name in MOMENTS])
def test_a_killed_create_is_completed(moment: str, kraft_kctl: Kctl) -> None:
    argv = ["cluster", "create", "c", "--use", "--layout", "kraft-separate", "--controllers", "1", "--brokers", "1",
            "--heap", "256m"]  # fmt: skip
    assert run_until(kraft_kctl, argv, MOMENTS[moment], signal.SIGKILL) == -signal.SIGKILL
    cluster_id = json.loads((clusters_dir(kraft_kctl) / "c/cluster.json").read_text())["cluster_id"]
    kraft_kctl.ok("cluster", "start", "c", timeout=240)
    assert processes_of(kraft_kctl.home).keys() == {"controller-101", "broker-1"}
    assert kraft_kctl.json("cluster", "status", "c")["cluster_id"] == cluster_id
    assert kraft_kctl.json("controller", "--context", "c")["voters"][0]["node_id"] == 101
