"""Voters and registrations of a cluster with dedicated controllers, changed by kctl and shown by Kafka's own tool."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from cluster_testing import clusters_dir, nothing_left_running, processes_of
from java_tools import java_tool
from kctl.errors import KctlError
from kctl.protocol.active_controller import describe_quorum
from kctl.protocol.client import ClusterClient, connect
from kctl.protocol.target import Target
from kctl_testing import SCRIPT, Kctl, eventually

pytestmark = [pytest.mark.timeout(900), pytest.mark.long]
CONTROLLERS = (101, 102, 103)


@pytest.fixture(scope="module")
def quorum(tmp_path_factory: pytest.TempPathFactory, shared: dict[str, str], kafka_4_home: Path) -> Iterator[Kctl]:
    """Controllers 101 to 103, brokers 1 and 2. Each test leaves three voters."""
    kctl = Kctl(tmp_path_factory.mktemp("home"), {**shared, "KAFKA_HOME": str(kafka_4_home)})
    with nothing_left_running(kctl):
        kctl.ok(
            "cluster", "create", "c", "--use", "--layout", "kraft-separate", "--brokers", "2", "--heap", "192m",
            timeout=240,
        )  # fmt: skip
        yield kctl


@pytest.fixture(scope="module")
def spec(quorum: Kctl) -> dict[str, Any]:
    described: dict[str, Any] = json.loads((clusters_dir(quorum) / "c" / "cluster.json").read_text())
    return described


@pytest.fixture(scope="module")
def controllers(spec: dict[str, Any]) -> Iterator[ClusterClient]:
    """A client of the controllers: registered ones are the brokers of its metadata."""
    servers = tuple(f"127.0.0.1:{node['port']}" for node in spec["controllers"])
    with connect(Target("c", servers, controllers=True), timeout_s=10) as client:
        yield client


def voters(kctl: Kctl) -> list[int]:
    """Read by `controller`, which does not fail while a voter is down."""
    return sorted(row["node_id"] for row in kctl.json("controller")["voters"])


def follower(kctl: Kctl) -> int:
    active = kctl.json("controller")["controller_id"]
    return next(each for each in CONTROLLERS if each != active)


def add_again(kctl: Kctl, node: int) -> None:
    kctl.ok("cluster", "start", "c", "--node", f"controller-{node}", timeout=120)
    eventually(lambda: kctl("quorum", "add", str(node), "--yes").code == 0, what="the observer has caught up")
    assert voters(kctl) == list(CONTROLLERS)


def test_status_agrees_with_kafka(quorum: Kctl, kafka_4_home: Path) -> None:
    bootstrap = quorum.json("cluster", "status", "c")["bootstrap_servers"][0]
    tool = "org.apache.kafka.tools.MetadataQuorumCommand"
    described = java_tool(kafka_4_home, tool, "--bootstrap-server", bootstrap, "describe", "--replication")
    rows = re.findall(r"^(\d+)\s+(\S{22})\s.*(Leader|Follower|Observer)\s*$", described, re.MULTILINE)
    status = quorum.json("quorum", "status")
    assert status["kraft_version"] == 1
    shown = [
        (str(row["node_id"]), row["directory_id"] or "A" * 22, row["role"].capitalize())
        for row in (*status["voters"], *status["observers"])
    ]
    assert sorted(shown) == sorted(rows)
    assert all(row["port"] and row["lag"] is not None for row in status["voters"])


def test_a_voter_is_removed_and_added(quorum: Kctl, controllers: ClusterClient) -> None:
    active = quorum.json("controller")["controller_id"]
    planned = quorum.json("quorum", "remove", str(active), "--dry-run")
    assert (planned["result"], planned["steps"]) == ("would remove", ["stop", "remove", "unregister"])
    assert active in voters(quorum)
    assert f"controller-{active}" in processes_of(quorum.home)
    removed = quorum.json("quorum", "remove", str(active), "--yes", timeout=120)
    assert removed["voters_after"] == voters(quorum) == sorted({*CONTROLLERS} - {active})
    assert f"controller-{active}" not in processes_of(quorum.home)
    assert active not in controllers.metadata(()).brokers
    assert quorum.json("quorum", "remove", str(active), "--yes")["changed"] is False

    missing = quorum("quorum", "add", str(active), "--yes")
    assert missing.code == 4
    assert f"kctl cluster start c --node controller-{active}" in missing.err
    add_again(quorum, active)
    assert quorum.json("quorum", "add", str(active), "--yes")["changed"] is False


def test_a_running_controller_becomes_an_observer(quorum: Kctl) -> None:
    node = follower(quorum)
    assert quorum.json("quorum", "remove", str(node), "--while-running", "--yes")["steps"] == ["remove"]
    assert node in [row["node_id"] for row in quorum.json("quorum", "status")["observers"]]
    planned = quorum.json("quorum", "remove", str(node), "--dry-run")
    assert planned["steps"] == ["stop", "unregister"]
    eventually(lambda: quorum("quorum", "add", str(node), "--yes").code == 0, what="the observer has caught up")


# --- kill -9 --------------------------------------------------------------------------------------------------------


def killed_when(kctl: Kctl, argv: list[str], reached: Callable[[], bool]) -> None:
    """Run kctl, and kill -9 it as soon as the cluster is in this state; it may have ended by then."""
    process = subprocess.Popen(
        [str(SCRIPT), *argv], env=kctl.environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    deadline = time.monotonic() + 60
    while not reached():
        assert time.monotonic() < deadline
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.wait(timeout=60)


def has_voter(client: ClusterClient, node: int) -> bool | None:
    try:
        described = describe_quorum(client)
    except KctlError:
        return None
    return None if described is None else node in [voter.id for voter in described.voters]


def test_a_killed_change_is_continued_by_the_same_command(quorum: Kctl, controllers: ClusterClient) -> None:
    moments: list[Callable[[int], bool]] = [
        lambda node: f"controller-{node}" not in processes_of(quorum.home),
        lambda node: has_voter(controllers, node) is False,
    ]
    for reached in moments:
        node = follower(quorum)
        argv = ["quorum", "remove", str(node), "--yes"]
        killed_when(quorum, argv, lambda: reached(node))  # noqa: B023 - called in this iteration
        quorum.ok(*argv, timeout=120)
        assert node not in voters(quorum)
        assert node not in controllers.metadata(()).brokers
        quorum.ok("cluster", "start", "c", "--node", f"controller-{node}", timeout=120)
        eventually(lambda: quorum("quorum", "add", str(node), "--dry-run").code == 0, what="it has caught up")  # noqa: B023
        argv = ["quorum", "add", str(node), "--yes"]
        killed_when(quorum, argv, lambda: has_voter(controllers, node) is True)  # noqa: B023 - as above
        quorum.ok(*argv)
        assert voters(quorum) == list(CONTROLLERS)


# --- what is refused --------------------------------------------------------------------------------------------------


def test_a_majority_down_is_named(quorum: Kctl, spec: dict[str, Any]) -> None:
    ports = {node["id"]: node["port"] for node in spec["controllers"]}
    quorum.ok("cluster", "kill", "c", "controller-103", "--yes")
    refused = quorum("quorum", "remove", "102", "--yes")
    assert (refused.code, "only 1 of the remaining 2 voters" in refused.err) == (4, True), str(refused)
    quorum.ok("cluster", "kill", "c", "controller-102", "--yes")
    for options in ((), ("--bootstrap-controller", f"127.0.0.1:{ports[101]}")):
        # The leader stays in office until it has missed its followers for some seconds.
        silent = f"1 of 3 controllers responds, 127.0.0.1:{ports[102]} and 127.0.0.1:{ports[103]} do not"
        eventually(lambda: silent in quorum("quorum", "status", *options).err, what="no leader")  # noqa: B023
        assert quorum("quorum", "status", *options).code == 1
    assert quorum("quorum", "remove", "102", "--yes", timeout=90).code == 4
    quorum.ok("cluster", "start", "c", timeout=180)
    eventually(lambda: quorum("quorum", "status").code == 0, what="all voters follow")


def test_a_deleted_log_is_another_voter(quorum: Kctl, kafka_4_home: Path, spec: dict[str, Any]) -> None:
    node = follower(quorum)
    quorum.ok("cluster", "stop", "c", "--node", f"controller-{node}", "--yes", timeout=90)
    folder = clusters_dir(quorum) / "c" / f"controller-{node}"
    shutil.rmtree(folder / "data")
    refused = quorum("cluster", "start", "c", "--node", f"controller-{node}")
    assert (refused.code, "must not vote again" in refused.err) == (4, True), str(refused)
    java_tool(
        kafka_4_home, "kafka.tools.StorageTool", "format", "-t", spec["cluster_id"],
        "-c", str(folder / "server.properties"), "--no-initial-controllers",
    )  # fmt: skip
    quorum.ok("cluster", "start", "c", "--node", f"controller-{node}", timeout=120)

    def refused_as_deleted() -> bool:
        result = quorum("quorum", "add", str(node), "--yes")
        return result.code == 4 and "its metadata log was deleted" in result.err

    eventually(refused_as_deleted, what="the controller follows with its new directory id")
    eventually(lambda: quorum("quorum", "status").code == 1, what="the old voter does not follow")
    assert quorum.json("quorum", "remove", str(node), "--yes")["steps"] == ["remove"]
    assert f"controller-{node}" in processes_of(quorum.home)
    eventually(lambda: quorum("quorum", "add", str(node), "--yes").code == 0, what="the observer has caught up")
    assert quorum("quorum", "status").code == 0


# --- --bootstrap-controller -------------------------------------------------------------------------------------------


def test_controllers_answer_without_brokers(quorum: Kctl, spec: dict[str, Any]) -> None:
    node = follower(quorum)
    server = next(f"127.0.0.1:{each['port']}" for each in spec["controllers"] if each["id"] == node)
    through = ("--bootstrap-controller", server)
    by_brokers = quorum.json("quorum", "status")
    by_controller = quorum.json("quorum", "status", *through)
    for answer in (by_brokers, by_controller):
        del answer["high_watermark"]
        answer["voters"] = [(row["node_id"], row["directory_id"]) for row in answer["voters"]]
        answer["observers"] = sorted(row["node_id"] for row in answer["observers"])
    assert by_controller == by_brokers
    assert quorum.json("controller", *through)["controller_id"] == by_brokers["leader_id"]
    configs = {row["name"]: row["value"] for row in quorum.json("config", "get", f"broker/{node}", *through)}
    assert configs["process.roles"] == "controller"

    refused = quorum("topic", "list", *through)
    assert (refused.code, "this command does not support --bootstrap-controller" in refused.err) == (2, True)
    broker = f"127.0.0.1:{spec['brokers'][0]['port']}"
    wrong = quorum("quorum", "status", "--bootstrap-controller", broker)
    assert (wrong.code, "is a broker's listener" in wrong.err) == (3, True), str(wrong)


def test_a_broker_that_is_gone_is_unregistered(quorum: Kctl) -> None:
    assert quorum("broker", "unregister", "2", "--yes").code == 4
    quorum.ok("cluster", "kill", "c", "2", "--yes")
    eventually(lambda: quorum("broker", "unregister", "2", "--dry-run").code == 0, what="broker 2 is fenced")
    assert quorum.json("broker", "unregister", "2", "--yes")["result"] == "removed"
    assert quorum("broker", "unregister", "2", "--yes").code == 4
    assert [row["broker"] for row in quorum.json("broker", "list")] == [1]
