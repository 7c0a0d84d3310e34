"""Each example in the help of a command works on a real cluster."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from command_tree import every_command, examples_of
from kctl_testing import SCRIPT, Kctl, TestCluster
from secure_cluster import SecureCluster, remove_acls

# Examples that need more than a cluster with a topic and a group: what they need, or where they are run.
ELSEWHERE = {
    **dict.fromkeys(
        ("cluster create", "cluster start", "cluster stop", "cluster restart", "cluster destroy", "cluster status",
         "cluster logs", "cluster env", "cluster kill", "cluster pause", "cluster unpause", "cluster warm",
         "cluster upgrade", "cluster finalize", "cluster rollback"),
        "a cluster that kctl made here: test_cluster_*.py",
    ),
    **dict.fromkeys(
        ("topic reassign plan", "topic reassign show", "topic reassign apply", "topic reassign status",
         "topic reassign pause", "topic reassign resume", "topic reassign cancel", "topic reassign rollback",
         "topic reassign verify"),
        "a reassignment of one's own: reassign/",
    ),
    **dict.fromkeys(
        ("segment dump", "segment find", "segment stats", "segment diff", "segment verify"),
        "a broker's files: segment/test_live.py",
    ),
    **dict.fromkeys(
        ("history lag", "history retention", "history trends", "history report", "history snapshot",
         "spark lag", "spark retention", "spark trends", "spark report", "spark warm", "spark bundle",
         "spark snapshot"),
        "Spark and snapshots: spark/, history/",
    ),
    **dict.fromkeys(("runtime install", "runtime verify", "runtime remove"), "a download: deploy/test_runtime.py"),
    **dict.fromkeys(
        ("validate leader-election", "validate controller-election", "validate rolling-restart",
         "validate unclean-election", "validate broker-loss", "validate zookeeper-loss",
         "validate controller-loss", "validate quorum-loss", "validate all", "validate matrix"),
        "a cluster that may be broken: validate/test_scenarios.py",
    ),
    **dict.fromkeys(
        ("quorum status", "quorum add", "quorum remove", "quorum convert", "quorum recover", "broker unregister"),
        "KRaft: quorum/",
    ),
    **dict.fromkeys(("feature list", "feature upgrade", "feature downgrade"), "KRaft: features/test_features.py"),
    **dict.fromkeys(("broker cordon", "broker uncordon"), "Kafka 4.3: topics/test_eligible_and_cordoned.py"),
    "demo": "a cluster of its own: deploy/test_demo.py",
    "transaction describe": "an open transaction",
    "transaction abort": "an open transaction",
    "transaction producers": "an open transaction",
    "playbook resume": "a run that ended early: playbook/test_run.py, playbook/test_killed.py",
    "config list": "brokers without ZooKeeper: kraft/test_configs.py",
    "topic create": "the fixture `prepared` runs it",
    "topic watch": "runs until Ctrl-C",
    "cluster export": "refuses to replace its own file: cluster/test_export.py",
}  # fmt: skip
SECURE = ("acl ", "user ", "quota ")  # these need an authorizer, or users
ALSO = {
    "lag": 1,
    "acl apply": 1,
    "cluster health": 1,
    "cluster diagnose": 1,
    "leader status": 1,
    "config diff": 1,
    "playbook run": 1,
}  # what they found, also of other tests' topics


def _every_example() -> list[tuple[str, str]]:
    return [(path, example.command) for path, command in every_command() for example in examples_of(command)]


EXAMPLES = [(path, example) for path, example in _every_example() if path not in ELSEWHERE]

FILES = {
    "orders.txt": "k1:first\nk2:second\n",
    "access.yaml": "acls:\n  - allow alice read topic orders*\n",
    "client.properties": "bootstrap.servers=kafka1:9093\n",
}


@pytest.fixture(scope="module")
def prepared(
    kctl: Kctl, cluster: TestCluster, secure: SecureCluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Kctl, Path]]:
    """A home whose contexts dev, old and prod are the cluster, and secure the one with an authorizer; with files."""
    folder = tmp_path_factory.mktemp("examples")
    for name, text in FILES.items():
        (folder / name).write_text(text)
    own = Kctl(tmp_path_factory.mktemp("examples-home"), {**kctl.environment, "ALICE_PASSWORD": "wonder-land-31"})
    for name in ("dev", "prod", "old"):
        own.ok("context", "add", name, "--bootstrap-server", cluster.bootstrap, "--zookeeper", cluster.zookeeper)
    own.ok("context", "import", secure.admin, "--name", "secure", "--bootstrap-server", secure.bootstrap)
    own.ok("user", "add", "alice", "--password-env", "ALICE_PASSWORD", "--context", "secure")
    own.ok("acl", "add", "allow alice read topic orders*", "--context", "secure")
    own.ok("quota", "set", "--user", "alice", "producer_byte_rate=1MB", "--yes", "--context", "secure")
    own("topic", "delete", "orders", "--yes", "--if-exists")
    own.ok(*shlex.split(dict(_every_example())["topic create"])[1:])
    (folder / "topics.yaml").write_text(own.ok("topic", "export", "orders").out)
    own.ok("produce", "orders", stdin="a\nb\n")
    own.ok("consume", "orders", "--group", "billing", "--from-beginning", "--exit-eof")
    (folder / "offsets.json").write_text(own.ok("group", "export", "billing", "-o", "json").out)
    yield own, folder
    there = ("--if-exists", "--yes", "--context", "secure")
    own.ok("quota", "unset", "--user", "alice", "producer_byte_rate", *there)
    own.ok("user", "remove", "alice", *there)
    remove_acls(own, "alice", "--context", "secure")
    own("group", "delete", "billing", "--yes")
    own("topic", "delete", "orders", "--yes")


@pytest.mark.parametrize(("path", "example"), EXAMPLES, ids=[path.replace(" ", "-") for path, _ in EXAMPLES])
def test_example(prepared: tuple[Kctl, Path], path: str, example: str) -> None:
    kctl, folder = prepared
    if path in {"context add", "context import"}:
        kctl.ok("context", "remove", "prod", "--yes")  # each of them makes it, or shows how
    environment = {**kctl.environment, "PATH": f"{SCRIPT.parent}{os.pathsep}{kctl.environment['PATH']}"}
    (Path(environment["HOME"]) / ".local/share/bash-completion/completions").mkdir(parents=True, exist_ok=True)
    if path.startswith(SECURE):
        environment["KCTL_CONTEXT"] = "secure"
    done = subprocess.run(
        ["bash", "-c", example], cwd=folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True,
        timeout=180, check=False,
    )  # fmt: skip
    assert done.returncode in {0, ALSO.get(path, 0)}, f"$ {example}\n{done.stdout}\n{done.stderr}"


def test_what_is_run_elsewhere_exists() -> None:
    assert set(ELSEWHERE) <= {path for path, _ in every_command()}
