"""Each command line of docs/migration.md does something on a cluster: as a dry run, where it changes anything."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from command_tree import every_command
from in_process import InProcess
from kctl_testing import Kctl, TestCluster

PAGE = Path(__file__).resolve().parents[3] / "docs" / "migration.md"
TOPIC, GROUP = "migration-lines", "migration-lines-group"
STANDS_FOR = {
    "topic create NAME": f"topic create {TOPIC}-new", "NAME": TOPIC, "TOPIC": TOPIC, "orders": TOPIC, "GROUP": GROUP,
    "billing": GROUP, "REGEX": f"{TOPIC}.*", "PATH": "/brokers", "topics.yaml": "FOLDER/topics.yaml",
    "truncate --offset-json-file FILE": "truncate --offset-json-file FOLDER/cut.json",
    "--path-to-json-file FILE": "--path-to-json-file FOLDER/elect.json",
    "--file FILE": "--file FOLDER/configs.properties",
    "--from-file FILE": "--from-file FOLDER/offsets.json", "--out offsets.json": "--out FOLDER/out.json",
    "LOGGER": "kafka.server.KafkaApis", "--format TEMPLATE": "--format '{value}\\n'",
}  # fmt: skip
ENDS = {"consume": "--exit-eof", "zk watch": "--for 100ms"}  # behind what runs on else
# What is not there: a partition, an offset, a transaction, a node below the chroot; as are an authorizer and KRaft.
ABSENT = {
    "topic offsets NAME --partition 0,3-5", "leader elect --preferred --topic NAME --partition 0,3-5",
    "consume TOPIC --offset 42", "transaction describe TRANSACTIONAL_ID",
    "transaction abort TOPIC --partition 0 --start-offset 42", "zk get /zookeeper/config",
    "group describe --match '.*' --type share", "group describe --match '.*' --type streams",
}  # fmt: skip


COMMANDS = dict(every_command())


def whole_lines() -> list[str]:
    """Without those that only name a command that needs an argument, and those of produce, which reads a file."""
    lines = dict.fromkeys(re.findall(r"`kctl ([^`]+)`", PAGE.read_text()))
    named = {path for path, command in COMMANDS.items() if any(param.required for param in command.params)}
    return [line for line in lines if line not in named and not line.startswith(("--version", "produce", "context"))]


@pytest.fixture(scope="module")
def run(cluster: TestCluster, kctl: Kctl, tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcess]:
    run, folder = InProcess(kctl.home, kctl.environment), tmp_path_factory.mktemp("migration")
    run.environment["FOLDER"] = str(folder)
    run.ok("topic", "create", TOPIC, "--partitions", "2", "--config", "retention.ms=86400000")
    run.ok("group", "reset-offsets", GROUP, "--topic", TOPIC, "--to-earliest", "--create", "--yes")
    (folder / "configs.properties").write_text("retention.ms=3600000\n")
    (folder / "topics.yaml").write_text(run.ok("topic", "export", TOPIC).out)
    (folder / "offsets.json").write_text(run.ok("group", "export", GROUP, "-o", "json").out)
    (folder / "elect.json").write_text(f'{{"partitions": [{{"topic": "{TOPIC}", "partition": 0}}]}}')
    (folder / "cut.json").write_text(f'{{"partitions": [{{"topic": "{TOPIC}", "partition": 0, "offset": 0}}]}}')
    yield run
    run.ok("group", "delete", GROUP, "--yes")
    run.ok("topic", "delete", TOPIC, "--yes")


@pytest.mark.parametrize("line", whole_lines())
def test_the_line_is_taken(run: InProcess, line: str) -> None:
    said = line
    for word, instead in STANDS_FOR.items():
        said = re.sub(rf"(?<![\w.-]){re.escape(word)}(?![\w/-])", lambda _: instead, said)  # noqa: B023
    path = max((path for path in COMMANDS if f"{line} ".startswith(f"{path} ")), key=len)
    options = shlex.split(ENDS.get(path, ""))
    if any("--dry-run" in param.opts for param in COMMANDS[path].params) and "--dry-run" not in said:
        options.append("--dry-run")
    result = run(*shlex.split(said.replace("FOLDER", run.environment["FOLDER"])), *options)
    expected = {4} if line in ABSENT or path.startswith(("acl ", "feature ")) else {0, 1}
    assert result.code in expected, str(result)
