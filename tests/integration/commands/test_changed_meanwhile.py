"""While a command's question waits, what it is about is changed by somebody else: it refuses, and changes nothing.

The question is answered by a hook, which makes the change first.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import shlex
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from changed_meanwhile import CHANGES
from group_admin import Admin
from in_process import InProcess
from kctl.commands.terminal import confirm
from kctl.model import TopicPartition
from kctl.protocol.client import connect
from kctl.protocol.target import Target
from kctl.reassign.run.alter import alter_reassignments
from kctl_testing import Kctl, TestCluster, eventually

LOGGER = "kafka.utils.CoreUtils$"
LINES = {
    "topic alter": "TOPIC --partitions 4 --config retention.ms=1000",
    "topic delete": "TOPIC",
    "topic truncate": "TOPIC --all",
    "topic clone": "TOPIC NEW",
    "topic apply": "-f FOLDER/topics.yaml",
    "topic reassign apply": "FOLDER/plan.json",
    "topic reassign rollback": "FOLDER/done.json",
    "topic reassign cancel": "--plan FOLDER/plan.json",
    "config set": "topic/TOPIC retention.ms=1000",
    "config unset": "topic/TOPIC retention.ms",
    "leader elect": "--preferred --topic TOPIC",
    "leader balance": "--topic TOPIC",
    "broker loggers set": f"{LOGGER}=DEBUG --broker 1",
    "group reset-offsets": "GROUP --topic TOPIC --to-latest",
    "group import": "FOLDER/offsets.json",
    "group delete": "GROUP",
    "group delete-offsets": "GROUP --topic TOPIC",
    "group remove-member": "GROUP --all",
    "transaction abort": "TOPIC --partition 0 --start-offset 3 --force",
    "user add": "USER --password-env PASSWORD",
    "user remove": "USER",
    "quota set": "--user USER producer_byte_rate=1000",
    "quota unset": "--user USER producer_byte_rate",
}
ELSEWHERE = {"acl remove", "acl apply"}  # needs an authorizer: test_unchanged.py
PAIRS = [(path, change) for path, text in CHANGES.items() if re.fullmatch(r"[a-z]+(, [a-z]+)*", text)
         for change in text.split(", ") if path not in ELSEWHERE and text != "reads"]  # fmt: skip
_numbers = itertools.count(1)


def test_each_change_of_the_table_is_tried() -> None:
    assert {path for path, _ in PAIRS} == set(LINES)


class Place:
    """A topic with three records in each of two partitions on brokers 1 and 2, of which the first is led by the one
    that is not preferred any more; a group that has committed offset 1; a user."""

    def __init__(self, cluster: TestCluster, kctl: Kctl, home: Path) -> None:
        name = f"meanwhile-{os.getpid()}-{next(_numbers)}"
        self.words = {"TOPIC": name, "NEW": f"{name}-new", "GROUP": f"{name}-group", "USER": f"{name}-user",
                      "FOLDER": str(home)}  # fmt: skip
        self.topic, self.group = name, self.words["GROUP"]
        self.cluster, self.home = cluster, home
        self.stack, self.member = ExitStack(), ExitStack()  # member: of the group, until it leaves
        self.admin = Admin(cluster.bootstrap)
        environment = {**kctl.environment, "HOME": str(home), "PASSWORD": "secret-of-the-user"}
        environment.pop("KCTL_CONFIG", None)
        self.run = InProcess(home, environment)
        config = {"prod": {"bootstrap_servers": cluster.bootstrap.split(","), "protected": True}}
        (home / "prod.yaml").write_text(json.dumps({"current_context": "prod", "contexts": config}))

    def other(self, *args: str) -> str:
        """Somebody else's command, from where nothing is protected."""
        return self.run.ok(*args, "--bootstrap-server", self.cluster.bootstrap).out

    def make(self) -> None:
        configs = ("--config", "retention.ms=86400000", "--config", "leader.replication.throttled.replicas=0:1")
        self.other("topic", "create", self.topic, "--replica-assignment", "1:2,1:2", *configs)
        self.admin.fill(self.topic, partitions=2, records=3)

    def reorder(self) -> None:
        with connect(self.admin.target) as client:
            assert alter_reassignments(client, {TopicPartition(self.topic, 0): (2, 1)}) == {}
        self.everywhere(lambda topic: topic.partitions[0].replicas == (2, 1), "the new order")

    def everywhere(self, holds: Callable[[Any], bool], what: str) -> None:
        """Wait until each broker tells so."""

        def all_tell() -> bool:
            for server in self.cluster.bootstrap.split(","):
                with connect(Target("x", (server,))) as client:
                    found = client.metadata([self.topic]).topics
                    if self.topic not in found or not holds(found[self.topic]):
                        return False
            return True

        eventually(all_tell, what=f"all brokers tell {what}")

    def topic_id(self) -> str | None:
        with connect(self.admin.target) as client:
            return client.metadata([self.topic]).topics[self.topic].topic_id

    def files(self) -> None:
        topics = f"topics:\n- name: {self.topic}\n  partitions: 4\n  configs: {{retention.ms: 1000}}\n"
        (self.home / "topics.yaml").write_text(topics)
        wide = ("--topic", self.topic, "--brokers", "2,3", "-o", "json")
        plan = json.loads(self.other("topic", "reassign", "plan", *wide))
        there, wanted = plan["current"]["partitions"], plan["partitions"]
        (self.home / "plan.json").write_text(json.dumps(plan))
        (self.home / "done.json").write_text(json.dumps({"partitions": there, "current": {"partitions": wanted}}))
        offsets = [{"group": self.group, "topic": self.topic, "partition": 0, "committed_offset": 2}]
        (self.home / "offsets.json").write_text(json.dumps(offsets))

    def look(self) -> list[Any]:
        """All that the commands could change."""
        group = self.run("group", "describe", self.group, "-o", "json", "--bootstrap-server", self.cluster.bootstrap)
        return [
            self.topic_id(),
            [(p["replicas"], p["leader"]) for t in json.loads(self.other("topic", "describe", self.topic, "-o", "json"))
             for p in t["partitions"]],
            self.other("topic", "offsets", self.topic, "-o", "json"),
            self.other("config", "get", f"topic/{self.topic}", "-o", "json"),
            self.run("topic", "describe", self.words["NEW"], "--bootstrap-server", self.cluster.bootstrap).code,
            (group.code, sorted(row["committed_offset"] or 0 for each in json.loads(group.out or "[]")
                                for row in each.get("offsets", []))),
            self.other("user", "list", "-o", "json"),
            self.other("quota", "list", "-o", "json"),
        ]  # fmt: skip


@pytest.fixture
def place(cluster: TestCluster, kctl: Kctl, tmp_path: Path) -> Iterator[Place]:
    made = Place(cluster, kctl, tmp_path)
    with made.stack:
        made.make()
        yield made
    where = ("--yes", "--bootstrap-server", cluster.bootstrap)
    made.run("group", "delete", made.group, *where)
    made.run("user", "remove", made.words["USER"], *where)
    made.run("quota", "unset", "--user", made.words["USER"], "producer_byte_rate", *where)
    made.run("topic", "delete", made.topic, *where)


# --- before -----------------------------------------------------------------------------------------------------------


def _prepare(place: Place, path: str) -> None:
    if path.startswith(("topic reassign", "leader")):
        place.reorder()
    place.files()
    if path.startswith("group") and path != "group remove-member":
        place.admin.commit(place.group, place.topic, {0: 1})
    if path == "group remove-member":
        place.member.enter_context(place.admin.member(place.group, place.topic))
        place.stack.callback(place.member.close)
    if path == "transaction abort":
        _open_transaction(place)
    if path == "user remove":
        place.other("user", "add", place.words["USER"], "--password-env", "PASSWORD")
    if path == "quota unset":
        place.other("quota", "set", "--user", place.words["USER"], "producer_byte_rate=5000", "--yes")


def _open_transaction(place: Place) -> None:
    client = place.stack.enter_context(connect(place.admin.target))
    producer = client.producer(transactional_id=f"{place.topic}-open", transaction_timeout_ms=600_000)
    place.stack.callback(producer.close, timeout=1)
    producer.init_transactions()
    producer.begin_transaction()
    producer.send(place.topic, b"v", partition=0).get(timeout=60)


# --- meanwhile --------------------------------------------------------------------------------------------------------


def _topic(place: Place) -> None:
    before = place.topic_id()
    place.other("topic", "delete", place.topic, "--yes")
    place.make()
    place.everywhere(lambda topic: topic.topic_id not in (None, before), "the new topic")


def _config(place: Place) -> None:
    place.other("config", "set", f"topic/{place.topic}", "retention.ms=5555555", "--yes")


def _replicas(place: Place) -> None:
    with connect(place.admin.target) as client:
        assert alter_reassignments(client, {TopicPartition(place.topic, 1): (2, 1)}) == {}
    place.everywhere(lambda topic: topic.partitions[1].replicas == (2, 1), "the new replicas")


def _logger(place: Place) -> None:
    place.other("broker", "loggers", "set", f"{LOGGER}=WARN", "--broker", "1", "--yes")
    back = ("broker", "loggers", "set", f"{LOGGER}=INFO", "--broker", "1", "--yes")
    place.stack.callback(place.other, *back)


def _offset(place: Place) -> None:
    place.admin.commit(place.group, place.topic, {0: 3})


def _group(place: Place) -> None:
    place.stack.enter_context(place.admin.member(place.group, place.topic))


def _member(place: Place) -> None:
    place.member.close()
    place.stack.enter_context(place.admin.member(place.group, place.topic))


def _user(place: Place) -> None:
    iterations = ("--iterations", "5000", "--password-env", "PASSWORD", "--yes")
    place.other("user", "add", place.words["USER"], *iterations)


def _quota(place: Place) -> None:
    place.other("quota", "set", "--user", place.words["USER"], "producer_byte_rate=7000", "--yes")


MEANWHILE = {"topic": _topic, "config": _config, "replicas": _replicas, "logger": _logger, "offset": _offset,
             "group": _group, "member": _member, "user": _user, "quota": _quota}  # fmt: skip


QUICK = {
    ("topic truncate", "topic"), ("topic delete", "topic"), ("topic alter", "config"), ("config set", "config"),
    ("topic reassign apply", "replicas"), ("leader elect", "topic"), ("group reset-offsets", "offset"),
    ("group delete", "offset"), ("user remove", "user"), ("quota set", "quota"),
}  # fmt: skip


def _parameters() -> Iterator[Any]:
    for path, change in PAIRS:
        marks = [] if (path, change) in QUICK else [pytest.mark.long]
        yield pytest.param(path, change, id=f"{path}-{change}".replace(" ", "-"), marks=marks)


@pytest.mark.parametrize(("path", "change"), list(_parameters()))
def test_it_refuses(place: Place, monkeypatch: pytest.MonkeyPatch, path: str, change: str) -> None:
    _prepare(place, path)
    after_change: list[Any] = []

    def answer(*_: Any, **__: Any) -> None:
        if not after_change:
            MEANWHILE[change](place)
            after_change.append(place.look())

    monkeypatch.setattr(confirm, "confirm_name", answer)
    line = re.sub(r"\b(" + "|".join(place.words) + r")\b", lambda found: place.words[found[0]], LINES[path])
    refused = place.run(*path.split(), *shlex.split(line), "--yes", env={"KCTL_CONFIG": str(place.home / "prod.yaml")})
    assert after_change, f"nothing was asked: {refused}"
    assert (refused.code, refused.out) == (4, ""), str(refused)
    assert "nothing was changed" in refused.err, str(refused)
    assert place.look() == after_change[0]
