"""What a plan was made from is compared right before it is carried out: by facts, topics, logs and configs."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import kctl
from changed_meanwhile import CHANGES
from command_tree import READING, every_command
from kctl.access.acl_syntax import parse_acls
from kctl.access.basis import of_acls
from kctl.access.changes import plan_changes
from kctl.cluster import unchanged
from kctl.cluster.config_resources import Resource
from kctl.cluster.log_offsets import LogOffsets
from kctl.cluster.topic_configs import ConfigSource
from kctl.cluster.unchanged import Basis, Grows, differences
from kctl.configs.basis import values
from kctl.configs.model import Config
from kctl.errors import ClusterReplaced, NotFound, Refused
from kctl.model import Broker, ClusterState, PartitionState, TopicPartition, TopicState

BROKERS = {node: Broker(node, "h", node) for node in (1, 2)}
COMMANDS = (Path(kctl.__file__).parent / "commands").resolve()


def test_each_changing_command_says_what_it_compares() -> None:
    """A new command has to be added to the table, with the change that it notices or the reason why there is none."""
    assert set(CHANGES) == {path for path, _ in every_command()} - READING


# Questions after which nothing of a plan could be another object's; the table says why.
WITHOUT_FACTS = {
    "capacity/measure.py": 1, "cluster/commands.py": 1, "cluster/interruption.py": 1, "cluster/rolling.py": 1,
    "consume/commands.py": 1, "playbook/before.py": 2, "produce/commands.py": 1, "reassign/cancel.py": 1,
    "reassign/resume.py": 1, "topic/create.py": 1, "validate/run.py": 2,
}  # fmt: skip


def test_each_question_about_a_cluster_compares_afterwards() -> None:
    without: dict[str, int] = {}
    for file in sorted(COMMANDS.rglob("*.py")):
        for call in ast.walk(ast.parse(file.read_text())):
            if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute)):
                continue
            words = {word.arg for word in call.keywords}
            if call.func.attr in {"confirm", "confirm_protected"} and "target" in words and "basis" not in words:
                name = str(file.relative_to(COMMANDS))
                without[name] = without.get(name, 0) + 1
    without.pop("terminal/invocation.py", None)
    assert without == WITHOUT_FACTS


@pytest.mark.parametrize(
    ("before", "now", "lines"),
    [
        ({}, {}, []),
        ({"a": {"n": 1}}, {"a": {"n": 1}, "b": {}}, []),
        ({"a": {"n": 1}}, {}, ["a no longer exists"]),
        ({"a": {"n": 1}}, {"a": {"n": 2}}, ["a: n was 1 and is now 2"]),
        ({"a": {"n": None}}, {"a": {"n": "x"}}, ["a: n was not set and is now x"]),
        ({"a": {"n": (1, 2)}}, {"a": {"n": (2, 1)}}, ["a: n was 1,2 and is now 2,1"]),
        ({"a": {"n": Grows(3)}}, {"a": {"n": Grows(3)}}, []),
        ({"a": {"n": Grows(3)}}, {"a": {"n": Grows(9)}}, []),
        ({"a": {"n": Grows(3)}}, {"a": {"n": Grows(2)}}, ["a: n was 3 and is now 2"]),
        ({"a": {"n": Grows(3)}}, {"a": {}}, ["a: n was 3 and is now not set"]),
        (
            {"topic t": {"topic id": "A", "number of partitions": 1}},
            {"topic t": {"topic id": "B", "number of partitions": 2}},
            ["topic t was deleted and recreated (topic id A, now B)"],
        ),
    ],
)
def test_differences(before: Any, now: Any, lines: list[str]) -> None:
    assert list(differences(before, now)) == lines


def test_what_is_said_of_many_changes() -> None:
    before = {f"t{n}": {"n": n} for n in range(5)}
    with pytest.raises(Refused) as caught:
        Basis(before, dict).check()
    assert caught.value.message.endswith("t2 no longer exists; and 2 more changes")
    assert len(caught.value.details["changed"]) == 5  # type: ignore[arg-type]
    assert "nothing was changed" in (caught.value.hint or "")


def test_another_cluster() -> None:
    def replaced() -> unchanged.ObjectFacts:
        raise ClusterReplaced("h:1 belongs to cluster B now")

    with pytest.raises(Refused, match="cluster B"):
        Basis({}, replaced).check()


def _topic(topic_id: str | None, *replicas: tuple[int, ...], leaders: tuple[int, ...] = ()) -> TopicState:
    leaders = leaders or tuple(each[0] for each in replicas)
    partitions = [PartitionState("t", n, leaders[n], 0, each, each) for n, each in enumerate(replicas)]
    return TopicState("t", False, topic_id, tuple(partitions))


def _client(*looks: TopicState | None, brokers: Any = BROKERS) -> Any:
    """Metadata answers, one after the other."""
    states = [ClusterState("id", 1, brokers, {} if topic is None else {"t": topic}) for topic in looks]
    return SimpleNamespace(metadata=lambda _names: states.pop(0))


ONE = _topic("A", (1, 2))
ANEW = "deleted and recreated"


@pytest.mark.parametrize(
    ("before", "now", "says"),
    [
        (ONE, ONE, None),
        (ONE, _topic("B", (1, 2)), ANEW),
        (ONE, None, "topic t no longer exists"),
        (ONE, _topic("A", (1, 2), (2, 1)), "number of partitions was 1 and is now 2"),
        (ONE, _topic("A", (2, 1)), "replicas of partition 0 was 1,2 and is now 2,1"),
        (ONE, _topic("A", (1, 2), leaders=(2,)), None),
        (_topic(None, (1,)), _topic(None, (1,), (1,)), "number of partitions"),
    ],
)
def test_topics(monkeypatch: pytest.MonkeyPatch, before: TopicState, now: TopicState | None, says: str | None) -> None:
    monkeypatch.setattr("kctl.cluster.log_offsets.read_log_offsets", lambda *_, **__: ({}, set(), {}))
    basis = unchanged.topics(_client(before, now), ["t"], replicas=True)
    _expect(basis.check, says)


def test_the_ids_of_a_plan_count_more_than_what_is_found() -> None:
    """The topic was made anew between the plan, or its file, and the command."""
    new = _topic("B", (1,))
    _expect(unchanged.topics(_client(new, new), ["t"], ids={"t": "A"}).check, ANEW)
    _expect(unchanged.topics(_client(new, new), ["t"], ids={"t": None}).check, None)
    _expect(unchanged.topics(_client(None, new), ["t"], ids={"t": "A"}).check, ANEW)
    _expect(unchanged.topics(_client(None, None), ["t"], ids={"t": "A"}).check, "no longer exists")


@pytest.mark.parametrize(
    ("now", "says"),
    [
        ((3, 8), None),
        ((5, 20), None),
        ((8, 8), None),
        ((0, 0), "start of the log of partition 0 was 3 and is now 0"),
        ((3, 7), "end of the log of partition 0 was 8 and is now 7"),
    ],
)
def test_without_topic_ids_logs_only_grow(
    monkeypatch: pytest.MonkeyPatch, now: tuple[int, int], says: str | None
) -> None:
    logs = [(3, 8), now]

    def read(_client: Any, partitions: Any, **_: Any) -> Any:
        start, end = logs.pop(0)
        return {tp: LogOffsets(start, end) for tp in partitions}, set(), {}

    monkeypatch.setattr("kctl.cluster.log_offsets.read_log_offsets", read)
    old = _topic(None, (1,))
    _expect(unchanged.topics(_client(old, old), ["t"]).check, says)


@pytest.mark.parametrize(
    ("now", "brokers", "says"),
    [
        (_topic("A", (2, 3), leaders=(-1,)), BROKERS, None),
        (_topic("A", (2, 3), leaders=(2,)), BROKERS, "partition t-0: leader was none and is now 2"),
        (_topic("A", (2, 3), leaders=(-1,)), {**BROKERS, 3: BROKERS[1]}, "live replicas was 2 and is now 2,3"),
        (_topic("B", (2, 3), leaders=(-1,)), BROKERS, ANEW),
    ],
)
def test_partitions_without_a_leader(now: TopicState, brokers: Any, says: str | None) -> None:
    before = ClusterState("id", 1, BROKERS, {"t": _topic("A", (2, 3), leaders=(-1,))})
    basis = unchanged.leaderless(_client(now, now, brokers=brokers), before, [TopicPartition("t", 0)])
    _expect(basis.check, says)


def _config(value: str | None, source: ConfigSource | None, name: str = "k") -> Config:
    return Config(name, value, source, None, "string", False, False, ())


@pytest.mark.parametrize(
    ("now", "says"),
    [
        ([_config("1", ConfigSource.DEFAULT)], None),
        ([_config("2", ConfigSource.DEFAULT)], "k of topic t: value was 1 and is now 2"),
        ([_config("1", ConfigSource.TOPIC)], "k of topic t: place was default"),
        ([], "k of topic t: value was 1 and is now not set"),
        (NotFound("no such topic"), "k of topic t no longer exists"),
        (Refused("not told"), "not told"),
    ],
)
def test_config_values(monkeypatch: pytest.MonkeyPatch, now: Any, says: str | None) -> None:
    resource = Resource.topic("t")
    monkeypatch.setattr("kctl.configs.describe.describe_each", lambda *_, **__: {resource: now})
    shown = {resource: {"k": ("1", ConfigSource.DEFAULT.value)}}
    _expect(values(_client(), shown).check, says)
    _expect(values(_client(), {}).check, None)


@pytest.mark.parametrize(
    ("left", "says"),
    [("allow alice read topic t; allow bob read topic t", None), ("allow bob read topic t", "no longer exists")],
)
def test_acls_that_are_removed(monkeypatch: pytest.MonkeyPatch, left: str, says: str | None) -> None:
    plan = plan_changes(parse_acls("allow alice read topic t"), remove=parse_acls("allow alice read topic t"))
    present = [acl for words in left.split("; ") for acl in parse_acls(words)]
    monkeypatch.setattr("kctl.access.basis.list_acls", lambda _client: present)
    _expect(of_acls(_client(), plan).check, says)
    _expect(of_acls(_client(), plan_changes([], add=present)).check, None)


def _expect(check: Callable[[], None], says: str | None) -> None:
    if says is None:
        check()
        return
    with pytest.raises(Refused) as caught:
        check()
    assert says in caught.value.message, caught.value.message
