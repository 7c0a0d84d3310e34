"""Plan files: what kctl and Kafka's own tool write is read, all that is wrong is named, and reversing takes it back."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kctl.errors import InvalidFile, KctlError, NotFound
from kctl.reassign.plan_file.document import document
from kctl.reassign.plan_file.read import parse_plan, read_plan, reversed_plan
from kctl.reassign.planner.assignment import Reassignment
from kctl.reassign.planner.goals import Goals
from kctl.reassign.planner.plan import make_plan
from reassign_clusters import cluster_of


def plan(*partitions: dict[str, Any], **more: Any) -> bytes:
    return json.dumps({"version": 1, "partitions": list(partitions), **more}).encode()


def row(partition: Any = 0, replicas: Any = (1, 2), topic: Any = "t", **more: Any) -> dict[str, Any]:
    return {"topic": topic, "partition": partition, "replicas": replicas, **more}


def problems(data: bytes) -> list[str]:
    with pytest.raises(InvalidFile) as caught:
        parse_plan(data, "plan.json")
    assert caught.value.message.startswith("plan.json")
    found = caught.value.details.get("problems", [caught.value.message])
    assert isinstance(found, list)
    return found


# --- what is accepted -------------------------------------------------------------------------------------------------


def test_what_kafkas_tool_writes_is_a_plan() -> None:
    data = b"""{"version":1,"partitions":[
        {"topic":"orders","partition":1,"replicas":[3,1],"log_dirs":["any","any"]},
        {"topic":"orders","partition":0,"replicas":[2],"log_dirs":["/data/b"]},
        {"topic":"a.b_c-D","partition":7,"replicas":[1]}]}"""
    found = parse_plan(data, "p")
    assert found.reassignments == (
        Reassignment("orders", 1, (3, 1)),
        Reassignment("orders", 0, (2,), log_dirs=("/data/b",)),
        Reassignment("a.b_c-D", 7, (1,)),
    )
    assert (found.batches, found.cluster_id, found.remove_brokers, found.complete) == (None, None, (), True)
    assert found.digest == hashlib.sha256(data).hexdigest()


def test_a_version_may_be_absent_as_for_kafkas_tool_and_a_plan_may_be_empty() -> None:
    assert parse_plan(b'{"partitions": [], "unknown": {"key": 1}}', "p").reassignments == ()


def test_what_the_planner_writes_is_read_back() -> None:
    made = make_plan(cluster_of(["a", "b", "c"], [[0, 1], [1, 2]]), Goals(remove_brokers=frozenset({0})))
    found = parse_plan(json.dumps(document(made)).encode(), "p")
    assert [(str(r.tp), r.before, r.after, r.size_bytes) for r in found.reassignments] == [
        ("t-0", (0, 1), (2, 1), 100)
    ]  # fmt: skip


def test_the_keys_beside_are_read() -> None:
    data = plan(
        row(0, [1, 2], log_dirs=["any", "/b"]),
        row(1, [2, 3]),
        current={"partitions": [row(1, [2, 1], size_bytes=9), row(0, [1, 2], log_dirs=["any", "/a"])]},
        topics={"t": {"topic_id": "AAAA", "partitions": 2}},
        batches=[[1], [0]],
        goals={"remove_broker": [4]},
        complete=False,
        cluster_id="abc",
    )
    found = parse_plan(data, "p")
    assert found.reassignments == (
        Reassignment("t", 0, (1, 2), (1, 2), (None, "/b"), (None, "/a"), None, "AAAA"),
        Reassignment("t", 1, (2, 3), (2, 1), None, None, 9, "AAAA"),
    )
    assert (found.batches, found.remove_brokers, found.complete) == (((1,), (0,)), (4,), False)
    assert (found.cluster_id, found.partition_counts) == ("abc", {"t": 2})


# --- what is not ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (row(0, []), "t-0: its list of replicas is empty"),
        (row(0, [1, 1]), "t-0: two replicas on one broker: [1, 1]"),
        (row(0, [1, -1]), "t-0: -1 is not a broker id"),
        (row(0, [1, True]), "t-0: true is not a broker id"),
        (row(0, [2**31]), "t-0: 2147483648 is not a broker id"),
        (row(0, [1.0]), "t-0: 1.0 is not a broker id"),
        (row(0, None), "t-0: it has no list of replicas"),
        (row(0, [1, 2], log_dirs=["any"]), "t-0: 1 log_dirs for 2 replicas"),
        (row(0, [1], log_dirs=["data"]), "t-0: log dir \"data\" is neither an absolute path nor \"any\""),
        (row(0, [1], log_dirs=[3]), "t-0: log dir 3 is neither"),
        (row(0, [1], log_dirs="any"), "t-0: log_dirs is not a list"),
        (row(-1), "entry 0: partition of t is -1"),
        (row("0"), 'entry 0: partition of t is "0"'),
        (row(topic=""), "entry 0: topic \"\": it is empty"),
        (row(topic="../etc"), "entry 0: topic \"../etc\": only ASCII letters"),
        (row(topic="a\x1b[2J"), "entry 0: topic \"a\\u001b[2J\""),
        (row(topic="x" * 5000), "it has 5000 characters"),
        (row(topic=None), "entry 0: topic null: not a string"),
        (row(size_bytes=-1), "t-0: size_bytes is -1"),
        ([1], "entry 0 is not an object"),
    ],
)  # fmt: skip
def test_a_bad_entry_is_named_with_its_reason(wrong: Any, said: str) -> None:
    found = problems(plan(wrong))
    assert len(found) == 1
    assert said in found[0]


def test_every_bad_entry_is_named() -> None:
    data = plan(row(0, []), row(1, [1, 1]), row(2, [1, 2]), row(2, [1, 3]), row(3, [-5]))
    assert [line.split(":")[0] for line in problems(data)] == ["t-0", "t-1", "t-2", "t-3"]
    with pytest.raises(InvalidFile, match=r"has 4 problems: .*; and 1 more$") as caught:
        parse_plan(data, "p")
    assert int(caught.value.exit_code) == 2


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"batches": [[0]]}, "1 entries are in no batch"),
        ({"batches": [[0, 1], [1]]}, "batch 1: entry 1 is listed twice"),
        ({"batches": [[0, 1, 2]]}, "batch 0: no entry 2"),
        ({"batches": [[0, True]]}, "batch 0: no entry true"),
        ({"batches": {"a": 1}}, "batches is not a list"),
        ({"current": {"partitions": [row(0)]}}, "t-1: not in current"),
        ({"current": {"partitions": [row(0), row(1), row(2)]}}, "current: t-2: not in partitions"),
        ({"current": {"partitions": [row(0), row(1, [])]}}, "current: t-1: its list of replicas is empty"),
        ({"current": {"partitions": 5}}, "current: partitions is not a list"),
        ({"current": []}, "current is not an object"),
        ({"topics": {"t": {"topic_id": 5, "partitions": 1}}}, "topics: t:"),
        ({"topics": {"t": None}}, "topics: t: null"),
        ({"goals": {"remove_broker": "3"}}, 'goals: remove_broker is "3"'),
        ({"goals": 4}, "goals is not an object"),
        ({"cluster_id": 4}, "cluster_id is 4"),
        ({"complete": "yes"}, 'complete is "yes"'),
    ],
)
def test_keys_that_do_not_fit_are_named(keys: dict[str, Any], said: str) -> None:
    found = problems(plan(row(0), row(1), **keys))
    assert any(said in line for line in found), found


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "cannot be read as JSON"),
        (b"{", "cannot be read as JSON"),
        (b"\xff\xfe\x00", "cannot be read as JSON"),
        (b"[]", "does not contain a JSON object"),
        (b'{"version": 2, "partitions": []}', "version 2"),
        (b'{"version": true, "partitions": []}', "version true"),
        (b'{"version": 1}', "has no partitions"),
        (b'{"partitions": {}}', "partitions is not a list"),
        (b"[" * 200_000, "nested too deeply"),
        (b'{"partitions": ' + b"9" * 5000 + b"}", "cannot be read as JSON"),
        (b'{"partitions": [], "partitions": []}', "duplicate key 'partitions'"),
    ],
)
def test_what_is_no_plan_at_all(data: bytes, said: str) -> None:
    assert said in problems(data)[0]


def test_other_files_of_kafkas_tool_are_known() -> None:
    with pytest.raises(InvalidFile) as caught:
        parse_plan(b'{"version": 1, "topics": [{"topic": "t"}]}', "p")
    assert "--topics-file" in (caught.value.hint or "")
    with pytest.raises(InvalidFile) as caught:
        parse_plan(b"Current partition replica assignment\n{}\n", "p")
    assert "Proposed" in (caught.value.hint or "")


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 5) | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(["version", "partitions", "topic", "partition", "replicas", "log_dirs", "current", "batches",
                         "topics", "goals", "remove_broker", "topic_id", "size_bytes"]),
        inner,
        max_size=4,
    ),
    max_leaves=12,
)  # fmt: skip


@given(st.dictionaries(st.sampled_from(["partitions", "current", "batches", "topics", "goals"]), json_values))
@settings(max_examples=200, derandomize=True)
def test_any_json_is_a_plan_or_an_invalid_file(keys: dict[str, Any]) -> None:
    try:
        parse_plan(json.dumps({"partitions": [row()], **keys}).encode(), "p")
    except InvalidFile as exc:
        exc.message.encode()  # nothing in it that cannot be shown


# --- files ------------------------------------------------------------------------------------------------------------


def test_a_plan_is_read_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_bytes(plan(row()))
    assert len(read_plan(path).reassignments) == 1


def test_what_cannot_be_read_is_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kctl.base.input_file.PIPE_WAIT_S", 0.1)
    with pytest.raises(NotFound, match="there is no file"):
        read_plan(tmp_path / "absent")
    for path in (tmp_path, Path("/dev/zero")):
        with pytest.raises(KctlError, match=r"is not a file|Is a directory"):
            read_plan(path)
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    with pytest.raises(InvalidFile, match="no data for"):  # nobody writes, and nobody is waited for without a limit
        read_plan(fifo)


# --- reversing --------------------------------------------------------------------------------------------------------


def test_a_reversed_plan_takes_it_back() -> None:
    found = parse_plan(
        plan(
            row(0, [1, 2], log_dirs=["any", "/b"]),
            row(1, [3]),
            current={"partitions": [row(0, [1, 2], log_dirs=["any", "/a"]), row(1, [2, 1])]},
            batches=[[0, 1]],
            goals={"remove_broker": [2]},
            complete=False,
        ),
        "p",
    )
    back = reversed_plan(found)
    assert [(r.before, r.after, r.log_dirs_before, r.log_dirs) for r in back.reassignments] == [
        ((1, 2), (1, 2), (None, "/b"), (None, "/a")),
        ((3,), (2, 1), None, None),
    ]
    assert (back.batches, back.remove_brokers, back.complete) == (None, (), True)
    assert reversed_plan(back).reassignments == found.reassignments


def test_a_plan_that_does_not_say_what_was_cannot_be_reversed() -> None:
    with pytest.raises(InvalidFile, match="the original replicas of t-0 and 1 more partition"):
        reversed_plan(parse_plan(plan(row(0), row(1)), "p"))
