"""A quorum without a leader, on real nodes: what the commands report, and what `quorum recover` finds in the files.

One cluster for the whole module. The tests run in order: a majority is killed, then all nodes; then their files change.
"""

from __future__ import annotations

import json
import shutil
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from cluster_testing import clusters_dir, nothing_left_running
from kctl_testing import Kctl, eventually, free_ports, within

pytestmark = pytest.mark.timeout(600)
METADATA = "__cluster_metadata-0"


@pytest.fixture(scope="module")
def kctl(tmp_path_factory: pytest.TempPathFactory, shared: dict[str, str], kafka_4_home: Path) -> Iterator[Kctl]:
    kctl = Kctl(tmp_path_factory.mktemp("lost"), {**shared, "KAFKA_HOME": str(kafka_4_home)})
    with nothing_left_running(kctl):
        kctl.ok(
            "cluster", "create", "c", "--use", "--layout", "kraft-combined", "--heap", "256m", timeout=240,
        )  # fmt: skip
        kctl.ok("topic", "create", "kept", "--replication-factor", "3")
        yield kctl


def log_dir(kctl: Kctl, node: int) -> Path:
    return clusters_dir(kctl) / f"c/broker-{node}/data-1"


def recover(kctl: Kctl, *paths: Path) -> tuple[int, dict[str, Any]]:
    result = kctl("quorum", "recover", *map(str, paths), "-o", "json")
    return result.code, json.loads(result.out)


def findings(report: dict[str, Any]) -> dict[str, str]:
    """Return "kind subject" → message."""
    return {f"{each['kind']} {each['subject']}": each["message"] for each in report["findings"]}


def problems(report: dict[str, Any]) -> dict[str, str]:
    return findings({"findings": [each for each in report["findings"] if each["severity"] == "problem"]})


def accepts_connections(port: int) -> bool:
    with socket.socket() as connection:
        return connection.connect_ex(("127.0.0.1", port)) == 0


@contextmanager
def changed(path: Path, text: str | None) -> Iterator[None]:
    """Replace a file, or move a file or folder away (None), and restore it."""
    saved = path.with_name(f"{path.name}.saved")
    path.rename(saved)
    if text is not None:
        path.write_text(text)
    try:
        yield
    finally:
        path.unlink(missing_ok=True)
        saved.rename(path)


def test_a_quorum_with_a_leader(kctl: Kctl) -> None:
    code, report = recover(kctl)
    assert (code, report["verdict"], report["findings"]) == (0, "electable", [])
    voters = kctl.json("controller")["voters"]
    assert {row["node_id"]: row["directory_id"] for row in voters} == {
        row["node_id"]: row["directory_id"] for row in report["voters"]
    }
    assert all(row["host"] == "127.0.0.1" for row in voters)


def test_a_majority_is_down(kctl: Kctl) -> None:
    for node in ("2", "3"):
        kctl.ok("cluster", "kill", "c", node, "--yes")
    eventually(lambda: kctl("controller").code == 1, what="the leader has resigned")
    for args in (("controller",), ("broker", "list"), ("cluster", "health"), ("cluster", "diagnose")):
        result = kctl(*args)
        assert result.code == 1, str(result)
        assert "no active controller: 1 of 3 controllers responds" in result.err, str(result)
        assert result.seconds < within(6), str(result)
    shown = json.loads(kctl("controller", "-o", "json").out)
    assert (shown["controller_id"], [row["role"] for row in shown["voters"]]) == (None, ["controller"] * 3)
    doctor = kctl("doctor", "--about", "state", "-o", "json")
    assert doctor.code == 1, str(doctor)
    messages = [row["message"] for row in json.loads(doctor.out)["findings"] if row["rule"] == "controller"]
    assert "no active controller" in messages[0]
    code, report = recover(kctl)
    assert (code, report["verdict"], report["next_steps"]) == (
        1, "electable", ["Start controllers 2 and 3: kctl cluster start c"],
    )  # fmt: skip
    stopped = kctl("cluster", "stop", "c", "--node", "broker-1", "--yes", "--timeout", "2s")
    assert stopped.code == 5, str(stopped)
    assert "the metadata quorum has no active controller, and a broker waits for one" in stopped.err


def test_all_are_down(kctl: Kctl) -> None:
    kctl.ok("cluster", "kill", "c", "1", "--yes")
    code, report = recover(kctl)
    assert (code, report["verdict"]) == (1, "electable")
    assert problems(report).keys() == {f"not_running controller {node}" for node in (1, 2, 3)}
    assert {row["endpoint_problem"] for row in report["voters"]} == {"connection refused"}
    by_path = recover(kctl, *(log_dir(kctl, node) for node in (1, 2, 3)))[1]
    assert by_path["voters"] == report["voters"]
    alone = recover(kctl, log_dir(kctl, 1))[1]
    assert (alone["verdict"], alone["voters"][0]["can_lead"]) == ("undecided", None)


def test_a_wiped_metadata_log(kctl: Kctl) -> None:
    with changed(log_dir(kctl, 3) / METADATA, None):
        code, report = recover(kctl)
    assert (code, report["verdict"], report["voters"][2]["status"]) == (1, "electable", "missing")
    assert f"{METADATA} does not exist" in findings(report)["missing controller 3"]
    assert {"kctl quorum remove 3", "kctl quorum add 3"} <= set(report["next_steps"])


def test_two_cluster_ids(kctl: Kctl) -> None:
    meta = log_dir(kctl, 3) / "meta.properties"
    with changed(meta, meta.read_text().replace("cluster.id=", "cluster.id=x")):
        code, report = recover(kctl)
    assert (code, report["voters"][2]["status"]) == (1, "other_cluster")
    assert "belong to 2 clusters" in findings(report)["cluster_ids cluster"]


def test_a_stale_vote(kctl: Kctl) -> None:
    state = log_dir(kctl, 2) / METADATA / "quorum-state"
    old = {**json.loads(state.read_text()), "leaderId": -1, "leaderEpoch": 0, "votedId": 9}
    with changed(state, json.dumps(old)):
        _, report = recover(kctl)
    notes = [each for each in report["findings"] if each["kind"] == "stale_vote"]
    assert [each["severity"] for each in notes] == ["note", "note"]
    assert "quorum-state has epoch 0, but the log has epoch" in notes[0]["message"]
    assert "for controller 9, which is not a voter now" in notes[1]["message"]


@pytest.mark.long
def test_an_endpoint_that_nothing_serves(kctl: Kctl) -> None:
    """The nodes run on other ports than the voters record says, like after a change of their DNS names."""
    spec = json.loads((clusters_dir(kctl) / "c/cluster.json").read_text())
    ports = {broker["id"]: broker["controller_port"] for broker in spec["brokers"]}
    new_ports = dict(zip(ports, free_ports(3), strict=True))
    with ExitStack() as configs:
        for node, port in ports.items():
            kctl("cluster", "kill", "c", str(node), "--yes")
            config = clusters_dir(kctl) / f"c/broker-{node}/server.properties"
            text = config.read_text().replace(f"//127.0.0.1:{port}", f"//127.0.0.1:{new_ports[node]}")
            configs.enter_context(changed(config, text))
        with kctl.running("cluster", "start", "c", "--timeout", "2m"):
            eventually(lambda: all(map(accepts_connections, new_ports.values())), what="all nodes listen")
            code, report = recover(kctl)
        for node in ports:
            kctl("cluster", "kill", "c", str(node), "--yes")
    assert (code, report["verdict"]) == (1, "electable")
    assert problems(report).keys() == {f"endpoint controller {node}" for node in ports}
    assert [row["endpoint"] for row in report["voters"]] == [f"127.0.0.1:{port}" for port in ports.values()]
    assert "can be reached at the endpoint in the voters record" in report["summary"]
    assert "reachable at 127.0.0.1:" in report["next_steps"][0]


@pytest.mark.long
def test_the_last_resort_works_as_printed(kctl: Kctl) -> None:
    """Two of three voters lost everything: the copy of the third one, with their directory ids, gives a leader."""
    for node in (2, 3):
        shutil.rmtree(log_dir(kctl, node) / METADATA)
        (log_dir(kctl, node) / "meta.properties").unlink()
    code, report = recover(kctl)
    assert (code, report["verdict"]) == (1, "no_majority")
    copies = [step for step in report["next_steps"] if ": replace " in step]
    settings = [step.partition("one setting per line: ")[2] for step in report["next_steps"] if ": write " in step]
    assert (len(copies), len(settings)) == (1, 1), "one lost voter is enough for a majority"
    shutil.copytree(
        log_dir(kctl, 1) / METADATA, log_dir(kctl, 2) / METADATA, ignore=shutil.ignore_patterns("quorum-state")
    )
    (log_dir(kctl, 2) / "meta.properties").write_text(settings[0].replace(", ", "\n") + "\n")
    code, report = recover(kctl)
    assert (code, report["verdict"]) == (1, "electable")
    start = ("cluster", "start", "c", "--node", "broker-1", "--node", "broker-2")
    # A voter that was the last leader ends at its first start: the other one still names it as the leader.
    eventually(lambda: kctl(*start, timeout=240).code == 0, seconds=within(60), what="both nodes run")
    eventually(
        lambda: json.loads(kctl("controller", "-o", "json").out)["controller_id"] in {1, 2},
        seconds=within(30),
        what="a leader",
    )
    assert [topic["topic"] for topic in kctl.json("topic", "list")] == ["kept"]
