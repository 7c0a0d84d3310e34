"""Each command that changes a cluster asks for its name when the context is protected, and changes nothing before."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from group_admin import Admin
from in_process import InProcess
from kctl.model import TopicPartition
from kctl.protocol.client import connect
from kctl.protocol.target import Target
from kctl.reassign.run.alter import alter_reassignments
from kctl_testing import Kctl, TestCluster, eventually
from protected_cases import CLUSTER

WORDS = {
    "TOPIC": "protected-topic", "SECOND": "protected-second", "NEW": "protected-new", "GROUP": "protected-group",
    "MEMBERS": "protected-members",
}  # fmt: skip
SURE = ("--confirm-cluster", "prod")


@pytest.fixture(scope="module")
def run(cluster: TestCluster, kctl: Kctl, tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcess]:
    """kctl with the cluster as the protected context prod, with what the cases name; open is the same unprotected, and
    does not make it less protected."""
    home = tmp_path_factory.mktemp("protected")
    servers = {"bootstrap_servers": cluster.bootstrap.split(",")}
    contexts = {"prod": {**servers, "protected": True}, "open": servers}
    (home / "config.yaml").write_text(json.dumps({"current_context": "prod", "contexts": contexts}))
    run = InProcess(home, {**kctl.environment, "HOME": str(home), "KCTL_CONFIG": str(home / "config.yaml")})
    with ExitStack() as stack:
        stack.callback(_remove, run)
        _prepare(run, cluster, home, stack)
        yield run


def _prepare(run: InProcess, cluster: TestCluster, home: Path, stack: ExitStack) -> None:
    topic, second, group = WORDS["TOPIC"], WORDS["SECOND"], WORDS["GROUP"]
    assignment = ("--replica-assignment", "1:2,1:2,1:2")
    configs = ("--config", "retention.ms=86400000", "--config", "leader.replication.throttled.replicas=0:1")
    run.ok("topic", "create", topic, *assignment, *configs, *SURE)
    run.ok("topic", "create", second, "--partitions", "1", *SURE)
    admin = Admin(cluster.bootstrap)
    admin.fill(topic, partitions=3, records=2)
    place = ("--topic", f"{topic}:0", "--to-offset", "1", "--create")
    run.ok("group", "reset-offsets", group, *place, "--yes", *SURE)
    (home / "new.yaml").write_text(f"topics:\n  - name: {WORDS['NEW']}\n    partitions: 1\n    replication_factor: 1\n")
    play = f"playbook: 1\nname: play\nsteps:\n- topic.create: {{names: [{WORDS['NEW']}]}}\n"
    (home / "play.yaml").write_text(play)
    exported = run.ok("group", "export", group, *SURE, "-o", "json").out
    (home / "offsets.json").write_text(exported.replace(f'"{group}"', f'"{group}-imported"'))
    with connect(admin.target) as client:  # the leader stays, and is not the preferred one any more
        assert alter_reassignments(client, {TopicPartition(topic, 0): (2, 1)}) == {}
    eventually(lambda: _write_plans(run, home), what="a plan that goes out from the new order")
    client = stack.enter_context(connect(admin.target))
    producer = client.producer(transactional_id="protected-transaction", transaction_timeout_ms=600_000)
    stack.callback(producer.close)
    producer.init_transactions()
    producer.begin_transaction()
    producer.send(second, b"v", partition=0).get(timeout=60)
    stack.callback(producer.abort_transaction)
    stack.enter_context(admin.member(WORDS["MEMBERS"], second))


def _write_plans(run: InProcess, home: Path) -> bool:
    """plan.json and done.json. False when the broker that was asked does not know the new order yet."""
    wide = ("--topic", WORDS["TOPIC"], "--brokers", "2,3", "-o", "json", *SURE)
    plan = json.loads(run("topic", "reassign", "plan", *wide).out)
    there, wanted = plan["current"]["partitions"], plan["partitions"]
    (home / "plan.json").write_text(json.dumps(plan))
    (home / "done.json").write_text(json.dumps({"partitions": there, "current": {"partitions": wanted}}))
    return [each["replicas"] for each in there if each["partition"] == 0] == [[2, 1]]


def _remove(run: InProcess) -> None:
    for name in (WORDS["TOPIC"], WORDS["SECOND"]):
        run("topic", "delete", name, "--yes", *SURE)
    for name in (WORDS["GROUP"], WORDS["MEMBERS"]):
        run("group", "delete", name, "--yes", *SURE)


def argv(run: InProcess, path: str) -> list[str]:
    names = {**WORDS, "FOLDER": str(run.home)}
    line = re.sub(r"\b(" + "|".join(names) + r")\b", lambda found: names[found[0]], CLUSTER[path])
    return [*path.split(), *shlex.split(line)]


@pytest.mark.parametrize("path", CLUSTER)
def test_it_asks_for_the_name(run: InProcess, path: str) -> None:
    result = run(*argv(run, path), "--yes", stdin="line\n")
    assert (result.code, result.out) == (4, ""), str(result)
    assert "--confirm-cluster prod" in result.err, str(result)
    twin = run(*argv(run, path), "--yes", "--context", "open", stdin="line\n")
    assert (twin.code, twin.out, "--confirm-cluster prod" in twin.err) == (4, "", True), str(twin)
    assert "context prod protects this cluster" in twin.err
    wrong = run(*argv(run, path), "--yes", "--confirm-cluster", "dev", stdin="line\n")
    assert (wrong.code, wrong.out, "would act on 'prod'" in wrong.err) == (2, "", True), str(wrong)


WAYS: dict[str, tuple[tuple[str, ...], dict[str, str]]] = {
    "its address": (("--bootstrap-server", "FIRST"), {}),
    "another broker": (("--bootstrap-server", "LAST"), {}),
    "another spelling": (("--bootstrap-server", "LOCAL"), {}),
    "another context": (("--context", "open"), {}),
    "another context, by KCTL_CONTEXT": ((), {"KCTL_CONTEXT": "open"}),
    "its context with other servers": (("--context", "open", "--bootstrap-server", "FIRST"), {}),
    "a file": (("--command-config", "FILE"), {}),
    "with a ZooKeeper": (("--zookeeper", "ZOOKEEPER", "--bootstrap-server", "LAST"), {}),
}


@pytest.mark.parametrize("known", [True, False], ids=["id known", "id unknown"])
@pytest.mark.parametrize("way", WAYS)
def test_however_it_is_addressed(run: InProcess, cluster: TestCluster, tmp_path: Path, way: str, known: bool) -> None:
    """The context names one broker only; its cluster's id is known, or is found out when it is asked."""
    first, *_, last = cluster.bootstrap.split(",")
    config = tmp_path / "config.yaml"
    file = tmp_path / "client.properties"
    file.write_text(f"bootstrap.servers={last}\n")
    prod: dict[str, object] = {"bootstrap_servers": [first], "protected": True}
    if known:
        with connect(Target("x", (first,))) as client:
            prod["cluster_id"] = client.target.cluster_id
    contexts = {"prod": prod, "open": {"bootstrap_servers": [last]}, "off": {"bootstrap_servers": ["127.0.0.1:1"]}}
    config.write_text(json.dumps({"current_context": "off", "contexts": contexts}))
    words = {"FIRST": first, "LAST": last, "LOCAL": last.replace("127.0.0.1", "localhost"), "FILE": str(file),
             "ZOOKEEPER": cluster.zookeeper}  # fmt: skip
    options, variables = WAYS[way]
    where = [words.get(each, each) for each in options]
    line = ["topic", "alter", WORDS["TOPIC"], "--config", "retention.ms=1", *where]
    env = {"KCTL_CONFIG": str(config), **variables}
    refused = run(*line, "--yes", env=env)
    assert (refused.code, refused.out, "--confirm-cluster prod" in refused.err) == (4, "", True), str(refused)
    assert "context prod protects this cluster" in refused.err
    if way != "its address" and known:
        assert "cluster id" in refused.err
    confirmed = run(*line, "--yes", "--confirm-cluster", "prod", "--dry-run", env=env)
    assert confirmed.code == 0, str(confirmed)
    play = run("playbook", "run", str(run.home / "play.yaml"), *where, "--yes", env=env)
    assert (play.code, play.out, "--confirm-cluster prod" in play.err) == (4, "", True), str(play)


def test_nothing_was_changed(run: InProcess) -> None:
    """After all of the above."""
    (topic,) = json.loads(run.ok("topic", "describe", WORDS["TOPIC"], "-o", "json").out)
    assert [(p["replicas"], p["leader"]) for p in topic["partitions"]] == [([2, 1], 1), ([1, 2], 1), ([1, 2], 1)]
    offsets = json.loads(run.ok("topic", "offsets", WORDS["TOPIC"], "-o", "json").out)
    assert [row["offset"] for row in offsets] == [2, 2, 2]
    (row,) = json.loads(run.ok("lag", WORDS["GROUP"], "--topic", WORDS["TOPIC"], "-o", "json").out)[:1]
    assert row["committed_offset"] == 1
    assert run("topic", "describe", WORDS["NEW"]).code == 4
    assert run("group", "describe", f"{WORDS['GROUP']}-imported").code == 4
    assert len(json.loads(run.ok("group", "members", WORDS["MEMBERS"], "-o", "json").out)) == 1
    assert run("transaction", "describe", "protected-transaction").code == 0
