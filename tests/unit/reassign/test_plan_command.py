"""`kctl topic reassign plan --from-file`: what it shows, writes, refuses, and with which exit code. No broker."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kctl.commands.app import main
from kctl.commands.reassign.plan_tables import certificate, common_folder
from kctl.commands.terminal.bars import change_bar
from kctl.errors import InvalidFile, NotAuthorized
from kctl.reassign.plan_file.read import parse_plan
from kctl.reassign.planner.cluster import from_export
from kctl.reassign.planner.goals import BalanceGoal, Goals
from kctl.reassign.planner.loads import BrokerLoad, PartitionChange
from kctl.reassign.planner.warnings import about_leaders, about_min_isr, lowered_topics

pytestmark = pytest.mark.usefixtures("one_command_tree")


def export(**changes: Any) -> dict[str, Any]:
    """Four brokers in racks a, b, a, b; topic t on all but broker 4, and Kafka's own topic on broker 1."""
    rows = [[1, 2], [2, 3], [3, 2], [1, 2], [2, 1], [3, 2]]
    topics = {"t": rows, "__consumer_offsets": [[1], [1]]}
    return {
        "cluster_id": "cid",
        "brokers": [{"id": n, "host": "h", "port": 9, "rack": "ba"[n % 2]} for n in (1, 2, 3, 4)],
        "topics": [
            {
                "name": name,
                "topic_id": f"id-{name}",
                "partitions": [
                    {"partition": p, "leader": row[0], "replicas": row, "isr": row, "size_bytes": 1_000_000}
                    for p, row in enumerate(partitions)
                ],
            }
            for name, partitions in topics.items()
        ],
        **changes,
    }


@pytest.fixture
def plan(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """plan(*options, cluster=…) → exit code, stdout, stderr."""

    def run(*options: str, cluster: Any = None) -> tuple[int, str, str]:
        file = tmp_path / "cluster.json"
        file.write_text(json.dumps(export() if cluster is None else cluster))
        code = main(["topic", "reassign", "plan", "--from-file", str(file), *options])
        return code, *capsys.readouterr()

    return run


def test_the_plan_is_shown_with_its_proof(plan: Callable[..., tuple[int, str, str]]) -> None:
    code, out, err = plan("--remove-broker", "3", "--throttle", "1MB/s")
    assert code == 0, err
    lines = out.splitlines()
    # Rack a is left with broker 1, which takes over three replicas; counts come out as even as the racks allow.
    assert lines[1] == "7 moves; no plan needs fewer than 7"
    assert lines[2] == "3 of them are mandatory; 4 balance the brokers"
    assert "7 MB to copy: at least 4s at 1 MB/s per broker" in out
    assert "Brokers; bar: replicas, + added, - removed" in out
    assert any(line.split()[:6] == ["3", "a", "3", "->", "0", "2"] for line in lines), out
    assert "leaves" in out
    assert "Racks" in out
    assert "replicas" in out
    assert max(map(len, lines)) <= 80
    assert err == "to apply it, save it with --out FILE, then run `kctl topic reassign apply FILE`\n"


def test_fewer_replicas_are_said(plan: Callable[..., tuple[int, str, str]]) -> None:
    """'0 moves, no data is copied' is not all that a lower replication factor does."""
    code, out, err = plan("--topic", "t", "--replication-factor", "1", "--tolerance", "0.9")
    assert (code, "6 replicas are removed\n" in out) == (0, True), out + err


_ONE_DOWN = "acks=all is rejected while one of these brokers is down"
_REFUSED = f"min.insync.replicas=2: {_ONE_DOWN}"
_COUNTS = ", which counts as {} since Kafka 3.7; before 3.7, acks=all is always rejected"


@pytest.mark.parametrize(
    ("replicas", "least", "said"),
    [
        (2, 2, [f"t will have 2 replicas and {_REFUSED}"]),
        (1, 2, [f"t will have 1 replica and min.insync.replicas=2{_COUNTS.format(1)}"]),
        (2, 3, [f"t will have 2 replicas and min.insync.replicas=3{_COUNTS.format(2)}; {_ONE_DOWN}"]),
        (2, 1, []),
        (1, 1, []),
        (2, NotAuthorized("no"),
         ["cannot check min.insync.replicas of t: no"]),
    ],
)  # fmt: skip
def test_fewer_replicas_than_acks_all_needs(replicas: int, least: int | NotAuthorized, said: list[str]) -> None:
    lowered = lowered_topics(
        ["s", "t"], [0, 1, 1], [PartitionChange(2, [1, 2, 3], [1, 2, 3][:replicas]), PartitionChange(0, [1], [2])]
    )
    assert lowered == {"t": replicas}
    assert about_min_isr(lowered, {"t": least}) == said


def test_json_is_the_plan_file(plan: Callable[..., tuple[int, str, str]]) -> None:
    code, out, err = plan("--remove-broker", "1", "--balance", "leaders", "-o", "json", "--max-concurrent-moves", "2")
    assert (code, err) == (0, "")
    found, text = parse_plan(out.encode(), "p"), json.loads(out)
    assert text["goals"] == {"remove_broker": [1], "balance": ["leaders"]}
    assert text["moves"] == text["lower_bound"] == sum(len(r.adding) for r in found.reassignments)
    assert (found.cluster_id, found.remove_brokers, found.complete) == ("cid", (1,), True)
    assert found.partition_counts == {"t": 6, "__consumer_offsets": 2}, "Kafka's own topic leaves as well"
    assert {r.topic_id for r in found.reassignments} == {"id-t", "id-__consumer_offsets"}
    assert all(r.size_bytes == 1_000_000 and r.before for r in found.reassignments)
    assert found.batches is not None
    assert max(sum(len(found.reassignments[i].adding) for i in batch) for batch in found.batches) == 2
    keys = {"before", "after", "racks_before", "racks_after", "rollback", "bytes", "leader_changes",
            "leader_lower_bound", "estimated_ms", "throttle_bytes_per_s"}  # fmt: skip
    assert keys <= text.keys()


def test_other_formats(plan: Callable[..., tuple[int, str, str]]) -> None:
    code, out, _ = plan("--remove-broker", "3", "-o", "csv")
    assert code == 0
    assert out.splitlines()[0] == "topic,partition,before,after,moves,size_bytes,log_dirs_before,log_dirs"
    code, out, _ = plan("--remove-broker", "3", "-o", "wide")
    assert (code, out.count("\nt ")) == (0, 4)


def test_a_saved_plan_is_never_replaced_unasked(plan: Callable[..., tuple[int, str, str]], tmp_path: Path) -> None:
    file = tmp_path / "plan 1.json"
    code, _, err = plan("--remove-broker", "3", "--out", str(file))
    assert code == 0
    assert f"saved {file}; apply it with `kctl topic reassign apply '{file}'`" in err
    assert len(parse_plan(file.read_bytes(), "p").reassignments) == 6
    before = file.read_bytes()
    code, out, err = plan("--remove-broker", "1", "--out", str(file))
    assert (code, out) == (4, "")
    assert "exists. Replace it?\n  use --yes to replace the file" in err
    assert file.read_bytes() == before
    assert plan("--remove-broker", "1", "--out", str(file), "--yes")[0] == 0
    assert file.read_bytes() != before


def test_nothing_to_do_says_so_and_is_an_empty_plan(plan: Callable[..., tuple[int, str, str]], tmp_path: Path) -> None:
    code, out, err = plan("--remove-broker", "4", "--topic", "t", "--tolerance", "50%")
    assert (code, out, err) == (0, "PLAN\nnothing to do: the goals are already reached\n", "")
    code, out, _ = plan("--remove-broker", "4", "--topic", "t", "--tolerance", "50%", "-o", "json")
    assert (code, json.loads(out)["partitions"], json.loads(out)["moves"]) == (0, [], 0)


def test_a_plan_that_does_not_get_there_is_exit_1(plan: Callable[..., tuple[int, str, str]]) -> None:
    code, out, err = plan("--remove-broker", "3", "--max-moves", "1")
    assert code == 1
    assert "1 move, and 6 left for another plan; at least 7 are needed in total" in out
    assert "error: the plan does not reach its goals: 6 moves are left for another plan" in err


def test_a_dead_broker_can_be_removed_and_what_has_no_leader_stays(plan: Callable[..., tuple[int, str, str]]) -> None:
    cluster = export()
    cluster["brokers"][2] = {"id": 3}
    code, out, err = plan("--remove-broker", "3", "-o", "json", cluster=cluster)
    assert code == 0, err
    moved = parse_plan(out.encode(), "p").reassignments
    assert {r.tp.partition for r in moved if 3 in (r.before or ())} == {1, 2, 5}
    assert not any(3 in r.after for r in moved)

    cluster["topics"][0]["partitions"][2].update(leader=None, replicas=[3])
    code, out, err = plan("--remove-broker", "3", "-o", "json", cluster=cluster)
    assert code == 1
    assert "t-2 is only on broker 3, which is down: its records return only with the broker" in err
    assert "otherwise delete and recreate the topic" in err
    assert "t-2" not in [str(r.tp) for r in parse_plan(out.encode(), "p").reassignments]

    cluster["topics"][0]["partitions"][2].update(replicas=[3, 2])
    code, out, err = plan("--remove-broker", "3", "-o", "json", cluster=cluster)
    assert code == 1
    assert "t-2 has no leader and cannot be copied: it stays as it is; `kctl leader elect --unclean` elects" in err


def test_a_broker_keeps_what_was_not_named(plan: Callable[..., tuple[int, str, str]], tmp_path: Path) -> None:
    listed = tmp_path / "topics"
    listed.write_text("t\n")
    said = "warning: broker 1 keeps 2 replicas of topics that are not in the plan\n"
    for options in (["--topic", "t"], ["--match", "t"], ["--topic-regex", "t"], ["--topics-file", str(listed)]):
        code, out, err = plan("--remove-broker", "1", *options, "-o", "json")
        assert (code, err) == (0, said)
        assert parse_plan(out.encode(), "p").remove_brokers == (), "verify must not ask for more than was planned"
        assert json.loads(out)["goals"]["remove_broker"] == [1]
    assert said in plan("--brokers", "2,3,4", "--topic", "t")[2]
    assert "not named" not in plan("--remove-broker", "2", "--topic", "t")[2], "it holds nothing else"


def test_a_cluster_without_racks_and_one_with_some(plan: Callable[..., tuple[int, str, str]]) -> None:
    cluster = export()
    for broker in cluster["brokers"]:
        broker["rack"] = None
    code, out, err = plan("--balance", "replicas", cluster=cluster)
    assert code == 0, err
    assert "RACK" not in out
    assert "Racks" not in out
    cluster["brokers"][0]["rack"] = "a"
    code, _, err = plan("--balance", "replicas", cluster=cluster)
    assert code == 0
    assert "warning: racks are ignored, because some brokers have none: 2, 3, 4" in err


def test_a_reassignment_under_way_is_refused_where_it_is_in_the_way(plan: Callable[..., tuple[int, str, str]]) -> None:
    cluster = export()
    cluster["topics"][0]["partitions"][0].update(adding=[4], removing=[1])
    code, out, err = plan("--remove-broker", "3", cluster=cluster)
    assert (code, out) == (4, "")
    assert "1 partition is already being reassigned: t-0" in err
    assert plan("--remove-broker", "1", "--topic", "__consumer_offsets", cluster=cluster)[0] == 0


def test_replication_factors(plan: Callable[..., tuple[int, str, str]]) -> None:
    code, out, _ = plan("--replication-factor", "1", "--topic", "t", "--exclude-broker", "4", "-o", "json")
    found = json.loads(out)
    assert (code, found["moves"], found["bytes"]) == (0, 0, 0)
    assert all(len(row["replicas"]) == 1 for row in found["partitions"])
    code, out, _ = plan("--replication-factor", "2", "-o", "json")
    assert (code, {row["topic"] for row in json.loads(out)["partitions"]} >= {"__consumer_offsets"}) == (0, True)
    cluster = export()
    for row in cluster["topics"][1]["partitions"]:
        row["replicas"] = [1, 2]
    code, _, err = plan("--replication-factor", "1", cluster=cluster)
    assert code == 0
    assert "warning: fewer replicas of the internal topics __consumer_offsets" in err


def test_moves_that_a_lower_factor_does_not_need_are_explained(plan: Callable[..., tuple[int, str, str]]) -> None:
    """Broker 4 holds nothing: evenness gives it a share, which no partition needs for having fewer replicas."""
    code, out, err = plan("--replication-factor", "1", "--topic", "t")
    assert code == 0
    assert "1 move; no plan needs fewer than 1" in out
    assert "needs no copy: 1 move only to balance the brokers; --exclude-broker 4, or a" in err
    code, out, err = plan("--replication-factor", "1", "--topic", "t", "--exclude-broker", "4", "-o", "json")
    assert (code, json.loads(out)["moves"]) == (0, 0)
    assert err.startswith("warning: t will have 1 replica: while its broker is down, a partition is unavailable")
    assert "need no copy" not in plan("--replication-factor", "3", "--topic", "t")[2]


_GIVES = "--balance leaders gives"
_NO_COPY = "without more copies"


@pytest.mark.parametrize(
    ("leaders", "said"),
    [
        ([4, 4, 4, 0], ["broker 4 will lead nothing: --balance leaders gives it its share, without more copies"]),
        ([6, 5, 0, 1],
         [f"brokers 3, 4 will lead less than half of an even share: {_GIVES} them their share, {_NO_COPY}"]),
        ([4, 4, 2, 2], []),
        ([0, 0, 0, 0], []),
    ],
)  # fmt: skip
def test_brokers_that_would_lead_little_are_told(leaders: list[int], said: list[str]) -> None:
    after = [BrokerLoad(node, None, True, 3, led, 0) for node, led in enumerate(leaders, start=1)]
    asked = Goals(add_brokers=frozenset({4}), balance=frozenset({BalanceGoal.LEADERS}))
    assert about_leaders(after, (1, 2, 3, 4), Goals(add_brokers=frozenset({4}))) == said
    assert about_leaders(after, (1, 2, 3, 4), asked) == []
    assert about_leaders(after, (1, 2), Goals()) == [], "the others may not receive"


def test_the_rack_of_a_broker_that_is_down_is_not_known(plan: Callable[..., tuple[int, str, str]]) -> None:
    cluster = export()
    cluster["brokers"][3] = {"id": 4}
    cluster["topics"][0]["partitions"][0]["replicas"] = [1, 4]
    code, out, err = plan("--remove-broker", "4", cluster=cluster)
    assert code == 0, err
    assert any(line.split()[:2] == ["4", "?"] for line in out.splitlines()), out
    assert "(down)" in out
    assert "(none)" not in out


def test_files_that_are_something_else_are_named(plan: Callable[..., tuple[int, str, str]], tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    assert plan("--remove-broker", "3", "--out", str(file))[0] == 0
    code, _, err = plan("--remove-broker", "3", cluster=json.loads(file.read_text()))
    assert (code, f"{tmp_path}/cluster.json is a plan, not an export of a cluster" in err) == (2, True)
    code, _, err = plan("--remove-broker", "3", cluster={"brokers": [{"id": "x"}], "topics": []})
    assert (code, f"{tmp_path}/cluster.json is not an export of a cluster: id of a broker is 'x'" in err) == (2, True)
    with pytest.raises(InvalidFile, match=r"c\.json is an export of a cluster, not a plan"):
        parse_plan(json.dumps(export()).encode(), "c.json")


def test_excluded_brokers_keep_what_they_have(plan: Callable[..., tuple[int, str, str]]) -> None:
    code, out, _ = plan("--remove-broker", "3", "--exclude-broker", "4", "-o", "json")
    found = json.loads(out)
    assert code == 0
    assert [row["replicas"] for row in found["after"] if row["broker"] == 4] == [0]
    assert [row["replicas"] for row in found["after"] if row["broker"] == 3] == [0]


def test_topics_come_from_a_file_too(plan: Callable[..., tuple[int, str, str]], tmp_path: Path) -> None:
    listed = tmp_path / "topics"
    for text in ("# mine\n__consumer_offsets\n\n", '{"version": 1, "topics": [{"topic": "__consumer_offsets"}]}'):
        listed.write_text(text)
        code, out, _ = plan("--remove-broker", "1", "--topics-file", str(listed), "-o", "json")
        assert (code, {row["topic"] for row in json.loads(out)["partitions"]}) == (0, {"__consumer_offsets"})
    for text in ("", "{}", '{"topics": [5]}', '{"topics"'):
        listed.write_text(text)
        code, _, err = plan("--remove-broker", "1", "--topics-file", str(listed))
        assert (code, str(listed) in err) == (2, True)
    listed.write_text("gone\n")
    assert plan("--remove-broker", "1", "--topics-file", str(listed))[0] == 4


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        ([], 2, "the plan has no goal"),
        (["--remove-broker", "x"], 2, "--remove-broker: 'x' is not a broker id"),
        (["--brokers", "1,,2"], 2, "--brokers: '' is not a broker id"),
        (["--add-broker", "99999999999"], 2, "is not a broker id"),
        (["--remove-broker", "9"], 4, "broker 9 is not in the cluster\n  brokers in the cluster: 1, 2, 3, 4"),
        (["--remove-broker", "1,2", "--exclude-broker", "2"], 2, "broker 2 is both excluded and removed"),
        (["--remove-broker", "1", "--out", "-"], 2, "for stdout, use -o json"),
        (["--remove-broker", "1,2,3"], 4, "t-0 needs 2 brokers, but only 1 can receive"),
        (["--remove-broker", "1", "--add-broker", "1"], 2, "both removed and receiving"),
        (["--leaders-only", "--remove-broker", "1"], 2, "--leaders-only moves no data"),
        (["--balance", "disks"], 2, "--balance"),
        (["--balance", "bytes", "--tolerance", "x"], 2, "--tolerance: 'x' is not a fraction or percentage"),
        (["--balance", "bytes", "--tolerance", "100%"], 2, "not between 0 and 1"),
        (["--balance", "bytes", "--max-bytes", "1XB"], 2, "--max-bytes: '1XB' is not a size"),
        (["--balance", "bytes", "--throttle", "0"], 2, "is not a rate"),
        (["--balance", "bytes", "--throttle", "50"], 2, "it has no unit\n  write 50MB/s"),
        (["--balance", "leaders", "--topic", "nope"], 4, "topic nope does not exist"),
        (["--balance", "leaders", "--match", "("], 2, "is not a valid regular expression"),
        (["--balance", "leaders", "--match", "x+"], 4, "no topic matches"),
        (["--balance", "leaders", "--out", "/no/such/folder/p"], 2, "does not exist"),
        (["--balance", "leaders", "--out", "/tmp"], 2, "is a folder"),
    ],
)
def test_what_is_wrong_is_said_in_a_line(
    plan: Callable[..., tuple[int, str, str]], options: list[str], code: int, said: str
) -> None:
    found, out, err = plan(*options)
    assert (found, out) == (code, "")
    assert err.startswith("error: ")
    assert said in err


def test_a_hundred_brokers_do_not_flood_the_terminal(plan: Callable[..., tuple[int, str, str]]) -> None:
    rows = [{"partition": p, "leader": p % 99, "replicas": [p % 99, (p + 1) % 99]} for p in range(990)]
    cluster = {
        "brokers": [{"id": n, "rack": None} for n in range(100)],
        "topics": [{"name": "t", "partitions": rows}],
    }
    code, out, _ = plan("--add-broker", "99", cluster=cluster)
    assert code == 0
    assert len(out.splitlines()) < 60
    assert "Brokers: the 20 of 100 that change most (all: -o wide)" in out
    assert any(line.split()[:1] == ["99"] and line.endswith("new") for line in out.splitlines()), "the new one is there"
    assert len(plan("--add-broker", "99", "-o", "wide", cluster=cluster)[1].splitlines()) > 120


@pytest.mark.parametrize(
    ("moves", "bound", "left", "said"),
    [
        (3000, 3000, 0, "3,000 moves; no plan needs fewer than 3,000"),
        (3010, 2950, 0, "3,010 moves; at least 2,950 are needed"),
        (1, 1, 0, "1 move; no plan needs fewer than 1"),
        (5, 0, 0, "5 moves; no lower bound is proven"),
        (10, 10, 90, "10 moves, and 90 left for another plan; at least 100 are needed in total"),
    ],
)
def test_the_certificate(moves: int, bound: int, left: int, said: str) -> None:
    assert certificate(moves, "move", bound, deferred=left) == said


def test_log_dirs_are_told_without_the_folder_that_all_are_in() -> None:
    assert common_folder(["/srv/kafka/d1", "/srv/kafka/d2"]) == "/srv/kafka/"
    assert common_folder(["/d1/kafka", "/d2/kafka"]) == ""
    assert common_folder(["/srv/a/d1", "/srv/ab/d2"]) == "/srv/"
    assert common_folder(["/d1", "/srv/d2"]) == common_folder([]) == ""


def test_bars_show_what_comes_and_goes() -> None:
    assert change_bar(5, 10, 10, 10) == "#####+++++"
    assert change_bar(10, 5, 10, 10) == "#####-----"
    assert change_bar(0, 1, 100, 10) == "+"
    assert (change_bar(0, 0, 0, 10), change_bar(7, 7, 7, 3)) == ("", "###")


def test_internal_and_hostile_names_of_a_file(plan: Callable[..., tuple[int, str, str]]) -> None:
    cluster = export()
    cluster["topics"][0]["name"] = "a\x1b[2J"
    code, out, err = plan("--remove-broker", "3", cluster=cluster)
    assert (code, out, "\x1b" in err) == (2, "", False)
    assert from_export(export()).topics == ("__consumer_offsets", "t")
