"""kctl group on a broker of 4.x: groups of the new protocol (KIP-848) and share groups (KIP-932)."""

from __future__ import annotations

import json
import os
import re
import subprocess
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib.resources import files
from typing import Any

import pytest

import kraft_broker
from group_admin import Admin
from java_tools import java_tool
from kctl.deploy.runtime.runtime import ensure_runtime
from kctl_testing import Kctl, eventually

_TOOLS = "org.apache.kafka.tools.consumer"


class Groups:
    """A topic of two partitions with ten records each, a KIP-848 group with one static member, and a share group."""

    def __init__(self, kctl: Kctl, bootstrap: str, readers: ExitStack) -> None:
        self.kctl, self.bootstrap = kctl, bootstrap
        self.stop_readers = readers.close
        self.topic = f"kraft-groups-{os.getpid()}"
        self.new, self.share = f"{self.topic}-new", f"{self.topic}-share"
        kctl.ok("topic", "create", self.topic, "--partitions", "2")
        Admin(bootstrap).fill(self.topic, partitions=2, records=10)

    def json(self, *args: str) -> Any:
        return self.kctl.json("group", *args)

    def reads(self, group: str) -> bool:
        """Whether it has a member with both partitions, which has read: a share group is stable before that."""
        if self.state(group) != "Stable":
            return False
        (found,) = self.json("describe", group)
        assigned = [{"topic": self.topic, "partitions": [0, 1]}]
        offsets = found["offsets"] or found["start_offsets"]
        return [member["assignments"] for member in found["members"]] == [assigned] and len(offsets) == 2

    def state(self, group: str) -> str:
        found = [row["state"] for row in self.json("list") if row["group"] == group]
        return found[0] if found else "none"


@contextmanager
def _reader(kraft: str, main: str, *args: str) -> Iterator[None]:
    libs = ensure_runtime(kraft_broker.VERSION).libs
    argv = ["java", "-Xmx128M", "-cp", f"{libs}/*", f"{_TOOLS}.{main}", "--bootstrap-server", kraft, *args]
    process = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.terminate()
        process.wait(timeout=60)


@pytest.fixture(scope="module")
def kraft_kctl(kraft: str, tmp_path_factory: pytest.TempPathFactory, shared: dict[str, str]) -> Kctl:
    kctl = Kctl(tmp_path_factory.mktemp("kraft-groups"), shared)
    kctl.ok("context", "add", "kraft", "--bootstrap-server", kraft)
    kctl.ok("context", "use", "kraft")
    return kctl


@pytest.fixture(scope="module")
def groups(kraft: str, kraft_kctl: Kctl) -> Iterator[Groups]:
    """While both groups have a member; the tests that need none stop them."""
    with ExitStack() as readers:
        made = Groups(kraft_kctl, kraft, readers)
        consumer = ("--topic", made.topic, "--group", made.new, "--from-beginning")
        protocol = ("--command-property", "group.protocol=consumer", "--command-property", "group.instance.id=node-1")
        readers.enter_context(_reader(kraft, "ConsoleConsumer", *consumer, *protocol))
        readers.enter_context(_reader(kraft, "ConsoleShareConsumer", "--topic", made.topic, "--group", made.share))
        eventually(lambda: made.reads(made.new) and made.reads(made.share), seconds=120, what="both have members")
        yield made


def test_listed_with_their_types(groups: Groups) -> None:
    rows = {row["group"]: row for row in groups.json("list", "--match", f"{groups.topic}.*")}
    assert {name: (row["type"], row["state"], row["member_count"]) for name, row in rows.items()} == {
        groups.new: ("consumer", "Stable", 1), groups.share: ("share", "Stable", 1),
    }  # fmt: skip
    for kind, name in (("consumer", groups.new), ("share", groups.share)):
        assert [row["group"] for row in groups.json("list", "--match", f"{groups.topic}.*", "--type", kind)] == [name]
    assert groups.json("list", "--match", f"{groups.topic}.*", "--type", "classic") == []


def test_a_group_of_the_new_protocol_described(groups: Groups) -> None:
    (found,) = groups.json("describe", groups.new)
    assert list(found) == [
        "group", "state", "protocol_type", "type", "assignor", "coordinator", "epoch", "assignment_epoch", "topology",
        "members", "offsets", "start_offsets",
    ]  # fmt: skip
    assert (found["type"], found["state"], found["assignor"]) == ("consumer", "Stable", "uniform")
    assert found["epoch"] == found["assignment_epoch"] > 0
    (member,) = found["members"]
    both = [{"topic": groups.topic, "partitions": [0, 1]}]
    assert member["assignments"] == member["target_assignments"] == both
    assert (member["group_instance_id"], member["type"], member["subscribed_topics"]) == (
        "node-1", "consumer", [groups.topic],
    )  # fmt: skip
    assert member["member_epoch"] == found["epoch"]
    assert {row["client_id"] for row in found["offsets"]} == {"console-consumer"}
    (row,) = groups.json("members", groups.new)
    assert (row["member_id"], row["partition_count"]) == (member["member_id"], 2)
    assert f"epoch {found['epoch']}" in groups.kctl.ok("group", "describe", groups.new).out


def test_a_share_group_described(groups: Groups) -> None:
    (found,) = groups.json("describe", groups.share)
    assert (found["type"], found["state"], found["offsets"]) == ("share", "Stable", [])
    (member,) = found["members"]
    assert member["assignments"] == [{"topic": groups.topic, "partitions": [0, 1]}]
    assert member["target_assignments"] is None
    assert [(row["topic"], row["partition"]) for row in found["start_offsets"]] == [
        (groups.topic, 0),
        (groups.topic, 1),
    ]
    written = java_tool(
        ensure_runtime(kraft_broker.VERSION).libs.parent, f"{_TOOLS}.group.ShareGroupCommand",
        "--bootstrap-server", groups.bootstrap, "--describe", "--group", groups.share,
    )  # fmt: skip
    theirs = [line.split()[2:5] for line in written.splitlines() if line.startswith(groups.share)]
    shown = [[row["partition"], row["start_offset"], row["lag"]] for row in found["start_offsets"]]
    assert [["-" if value is None else str(value) for value in row] for row in shown] == theirs
    listed = groups.kctl.ok("group", "describe", groups.share, "-o", "csv").out.splitlines()
    assert (listed[0], len(listed)) == ("group,topic,partition,start_offset,leader_epoch,lag", 3)
    assert groups.kctl("group", "export", groups.share).code == 4
    removal = groups.kctl("group", "remove-member", groups.share, "--all", "--yes")
    assert (removal.code, "its members cannot be removed" in removal.err) == (4, True)


def test_the_lag_of_a_share_group(groups: Groups) -> None:
    (described,) = groups.json("describe", groups.share)
    rows = groups.kctl.json("lag", groups.share)
    assert [(row["partition"], row["committed_offset"], row["lag"]) for row in rows] == [
        (row["partition"], row["start_offset"], row["lag"]) for row in described["start_offsets"]
    ]
    every = {(row["group"], row["partition"]): row["lag"] for row in groups.kctl.json("lag")}
    assert {key: lag for key, lag in every.items() if key[0] == groups.share} == {
        (groups.share, row["partition"]): row["lag"] for row in rows
    }
    lags = [row["lag"] for row in rows]
    healthy = None not in lags and max(lags) == 0
    judged = groups.kctl("lag", groups.share, "--max-lag", "0")
    assert judged.code == (0 if healthy else 1), str(judged)
    refused = groups.kctl("lag", "--match", f"{groups.share}.*nope", "--max-lag", "0")
    assert (refused.code, "no group matches" in refused.err) == (4, True)


def test_a_classic_member_does_not_join_unasked(groups: Groups) -> None:
    for name, text in ((groups.new, "uses the consumer protocol"), (groups.share, "is a share group")):
        refused = groups.kctl("consume", groups.topic, "--group", name, "--exit-eof")
        assert (refused.code, refused.out, text in refused.err) == (4, "", True), str(refused)
    (member,) = groups.json("members", groups.new)
    assert member["type"] == "consumer"


def test_changes_are_refused_while_it_is_read(groups: Groups) -> None:
    eventually(lambda: len(groups.json("export", groups.new)) == 2, seconds=60, what="both partitions committed")
    for args in (
        ("reset-offsets", groups.new, "--all-topics", "--to-earliest"),
        ("delete", groups.new),
        ("delete-offsets", groups.new, "--topic", groups.topic),
        ("reset-offsets", groups.share, "--all-topics", "--to-earliest"),
        ("delete-offsets", groups.share, "--topic", groups.topic),
    ):
        refused = groups.kctl("group", *args, "--yes")
        assert refused.code == 4, str(refused)
        assert groups.share not in args or "is Stable, with members" in refused.err, str(refused)
    assert {row["committed_offset"] for row in groups.json("export", groups.new)} == {10}


def test_a_static_member_that_is_gone_is_removed_then_all_can_be_changed(groups: Groups) -> None:
    groups.stop_readers()  # a static member stays until its session ends
    (removed,) = groups.json("remove-member", groups.new, "--instance", "node-1", "--yes")
    assert removed["result"] == "removed"
    eventually(lambda: groups.state(groups.new) == "Empty", seconds=60, what="no member is left")
    rows = groups.json("reset-offsets", groups.new, "--all-topics", "--shift-by", "-3", "--yes")
    assert [(row["result"], row["new_offset"], row["read_again"]) for row in rows] == [("reset", 7, 3)] * 2
    saved = groups.kctl.ok("group", "export", groups.new, "-o", "json").out
    (gone,) = groups.json("delete-offsets", groups.new, "--topic", f"{groups.topic}:1", "--yes")
    assert (gone["result"], gone["committed_offset"]) == ("deleted", 7)
    eventually(lambda: groups.state(groups.share) == "Empty", seconds=60, what="no member is left")
    deleted = groups.json("delete", groups.new, groups.share, "--yes")
    assert [(row["group"], row["result"]) for row in deleted] == [(groups.new, "deleted"), (groups.share, "deleted")]
    unknown = groups.kctl("group", "describe", groups.new, "-o", "json")
    assert (unknown.code, json.loads(unknown.err)["code"]) == (4, "not_found")
    done = groups.kctl("group", "import", "-", "--yes", "-o", "json", stdin=saved)
    assert [row["result"] for row in json.loads(done.out)] == ["reset", "reset"]
    (again,) = groups.json("list", "--match", groups.new)
    assert (again["type"], again["state"]) == ("classic", "Empty"), "commits without members make a classic group"
    groups.kctl.ok("group", "delete", groups.new, "--yes")


_DEFINITIONS = {
    "kctl.cluster.groups": (
        "ConsumerGroupDescribe", "ShareGroupDescribe", "StreamsGroupDescribe", "DescribeShareGroupOffsets",
    ),
    "kctl.groups": ("AlterShareGroupOffsets", "DeleteShareGroupOffsets"),
}  # fmt: skip


@pytest.mark.parametrize(
    ("package", "name"),
    [
        (package, f"{name}{kind}")
        for package, names in _DEFINITIONS.items()
        for name in names
        for kind in ("Request", "Response")
    ],
)
def test_our_message_definitions_are_kafkas(package: str, name: str) -> None:
    """Field by field those in Kafka's own jar, in the versions that kctl has, common structs written out."""
    libs = ensure_runtime(kraft_broker.VERSION).libs
    with zipfile.ZipFile(libs / f"kafka-clients-{kraft_broker.VERSION}.jar") as jar:
        text = jar.read(f"common/message/{name}.json").decode()
    kafkas = json.loads("\n".join(line for line in text.splitlines() if not line.lstrip().startswith("//")))
    ours = json.loads(files(package).joinpath(f"{name}.json").read_text())
    common = {struct["name"]: struct["fields"] for struct in kafkas.get("commonStructs", [])}
    assert (ours["apiKey"], ours["flexibleVersions"]) == (kafkas["apiKey"], kafkas["flexibleVersions"])
    newest = int(ours["validVersions"].rpartition("-")[2])
    assert _fields(ours["fields"], {}, newest) == _fields(kafkas["fields"], common, newest)


def _fields(fields: list[dict[str, Any]], common: dict[str, list[dict[str, Any]]], newest: int) -> list[Any]:
    return [
        (
            *(each.get(key) for key in ("name", "type", "versions", "nullableVersions", "default")),
            _fields(each.get("fields") or common.get(each["type"].removeprefix("[]"), []), common, newest),
        )
        for each in fields
        if int(re.split(r"[-+]", each["versions"])[0]) <= newest
    ]
