"""What each reading command writes in every format: JSON and YAML that parse, rectangular CSV with a header, and tables
that fit a terminal of 80 columns."""

from __future__ import annotations

import csv
import io
import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from rich.cells import cell_len

from command_tree import READING, every_command
from group_admin import Admin
from in_process import InProcess
from kctl_testing import Kctl, Result, TestCluster

TOPIC, GROUP = "every-output.orders.of-a-topic-with-a-long-name", "every-output-group"
LOGS = Path(__file__).resolve().parents[2] / "data" / "segments"

CASES: dict[str, str] = {
    "context list": "", "context show": "", "context test": "",
    "cluster health": "", "doctor": "", "cluster diagnose": "", "controller": "",
    "topic list": "--size --count", "topic describe": f"{TOPIC} --size --offsets", "topic offsets": TOPIC,
    "topic export": TOPIC,
    "topic reassign status": "",
    "config get": f"topic/{TOPIC} --all", "config explain": "retention.ms",
    "config diff": f"topic/{TOPIC} topic/{TOPIC}-2",
    "zk ls": "/brokers", "zk get": "/controller", "zk tree": "/brokers/ids", "zk stat": "", "zk acl": "/brokers",
    "leader status": f"--topic {TOPIC}",
    "broker list": "", "broker describe": "1", "broker config": "1", "broker log-dirs": f"--topic {TOPIC}",
    "broker api-versions": "", "broker features": "", "broker loggers list": "--broker 1",
    "group list": "", "group describe": GROUP, "group members": GROUP, "lag": GROUP,
    "user list": "", "quota list": "",
    "playbook list": "", "playbook show": "topic-audit", "playbook status": "",
    "transaction list": "", "transaction producers": TOPIC, "transaction hanging": f"--topic {TOPIC}",
}  # fmt: skip
# Not there on this cluster, or another file looks at their output.
ELSEWHERE = {
    "cluster status", "cluster list", "cluster logs", "cluster env",  # of clusters that kctl made here
    "topic watch", "zk watch",  # until Ctrl-C
    "topic reassign show", "topic reassign verify",  # of a plan: reassign/
    "acl list", "acl explain",  # rights/test_access.py
    "feature list", "quorum status", "quorum recover",  # KRaft: features/, quorum/
    "transaction describe",  # transactions/test_transactions.py
    "config list",  # brokers without ZooKeeper: kraft/test_configs.py
    "segment dump", "segment find", "segment stats", "segment diff",
    "history lag", "history retention", "history trends", "history report",  # unit/history/, history/
    "spark lag", "spark retention", "spark trends", "spark report",
    "runtime list", "runtime verify", "completion",
    "playbook lint", "playbook schema",  # problems, a JSON Schema: unit/playbook/test_commands.py, test_schema.py
}  # fmt: skip
FOUND = {
    "cluster health",
    "doctor",
    "cluster diagnose",
    "config diff",
    "leader status",
    "lag",
}  # exit 1: something was found


@pytest.fixture(scope="module")
def run(cluster: TestCluster, kctl: Kctl) -> Iterator[InProcess]:
    run = InProcess(kctl.home, kctl.environment)
    for name in (TOPIC, f"{TOPIC}-2"):
        run.ok("topic", "create", name, "--partitions", "3", "--config", f"retention.ms=864000{len(name)}")
    Admin(cluster.bootstrap).fill(TOPIC, partitions=3, records=2)
    place = ("--topic", TOPIC, "--to-earliest", "--create")
    run.ok("group", "reset-offsets", GROUP, *place, "--yes")
    run.ok("quota", "set", "--user", "every-output", "--client-id", "a client", "producer_byte_rate=1MB", "--yes")
    run.ok("user", "add", "every-output", "--password-file", "-", stdin="every-output-1")
    yield run
    run.ok("user", "remove", "every-output", "--yes")
    run.ok("quota", "unset", "--user", "every-output", "--client-id", "a client", "producer_byte_rate", "--yes")
    run.ok("group", "delete", GROUP, "--yes")
    run.ok("topic", "delete", TOPIC, f"{TOPIC}-2", "--yes")


def test_no_command_is_left_out() -> None:
    assert CASES.keys() | ELSEWHERE == READING


def looked(run: InProcess, path: str, *options: str, columns: int | None = None) -> Result:
    result = run(*path.split(), *shlex.split(CASES[path]), *options, columns=columns)
    assert result.code in ({0, 1} if path in FOUND else {0}), str(result)
    return result


def keys(value: Any) -> Any:
    """What objects have, through lists: values differ from one look to the next."""
    if isinstance(value, dict):
        return {key: keys(each) for key, each in value.items() if key != "configs"}
    return [keys(each) for each in value[:1]] if isinstance(value, list) else None


@pytest.mark.parametrize("path", CASES)
def test_json_and_yaml_have_the_same(run: InProcess, path: str) -> None:
    as_json = json.loads(looked(run, path, "-o", "json").out)
    as_yaml = yaml.safe_load(looked(run, path, "-o", "yaml").out)
    assert keys(as_yaml) == keys(as_json)
    assert isinstance(as_json, (list, dict))


TABLES = [path for path in CASES if path != "topic export"]  # that is a file, which has no table


@pytest.mark.parametrize("path", TABLES)
def test_csv_has_a_header_and_is_rectangular(run: InProcess, path: str) -> None:
    header, *rows = csv.reader(io.StringIO(looked(run, path, "-o", "csv").out))
    assert len(set(header)) == len(header) > 1
    assert {len(row) for row in rows} <= {len(header)}


@pytest.mark.parametrize("path", TABLES)
def test_tables_fit_a_terminal(run: InProcess, path: str) -> None:
    for output, columns in (("table", 80), ("wide", 120)):
        shown = looked(run, path, "-o", output, columns=columns)
        assert shown.out or shown.err, "that there is nothing is said"
        lines = re.sub(r"\x1b\[[0-9;]*m", "", shown.out).splitlines()
        assert [line for line in lines if cell_len(line) > columns] == [], output


WATCHED = {
    "broker list", "cluster health", "controller", "group describe", "group list", "lag", "topic describe",
    "topic list", "topic reassign status", "zk stat",
}  # fmt: skip


def test_what_can_be_watched() -> None:
    assert {
        path for path, command in every_command() if any("--watch" in param.opts for param in command.params)
    } == WATCHED


@pytest.mark.parametrize("path", sorted(WATCHED))
def test_a_pass_of_watching(run: InProcess, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_seconds: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("kctl.commands.terminal.watching.time", SimpleNamespace(sleep=interrupted))
    argv = (*path.split(), *shlex.split(CASES[path]), "--watch")
    as_json = run(*argv, "-o", "json")
    assert (as_json.code, list(json.loads(as_json.out))) == (130, ["time", "rows", "failures"]), str(as_json)
    shown = run(*argv, columns=80)
    lines = re.sub(r"\x1b\[[0-9;]*[a-zA-Z]", "", shown.out).splitlines()
    assert shown.code == 130
    assert "UTC, Ctrl-C to stop" in lines[0]
    assert [line for line in lines if cell_len(line) > 80] == []
