"""Why a quorum has no leader, from log dirs: each way to lose a voter, and what the report says of it."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from kctl.errors import NotFound, NotHealthy, UsageError
from kctl.quorum.recover import ElectionVerdict, NodeStatus, RecoveryReport
from kctl.quorum.recover_endpoints import endpoint_problems
from kctl.quorum.recover_files import read_paths
from kctl.quorum.recover_log import Endpoint, read_metadata_log
from kctl.quorum.recover_report import diagnose_quorum
from kctl.segment.format.quorum_state import parse_quorum_state
from kctl_testing import free_port
from metadata_log_files import CLUSTER, batch, directory_id, voters_record, write_log_dir

METADATA = "__cluster_metadata-0"


def _endpoint(node: int) -> Endpoint:
    return Endpoint("CONTROLLER", "127.0.0.1", 21000 + node)


def _diagnose(*log_dirs: Path, down: tuple[int, ...] = ()) -> RecoveryReport:
    unreachable = {_endpoint(node): "connection refused" if node in down else None for node in (1, 2, 3)}
    return diagnose_quorum(read_paths(log_dirs), unreachable)


def _kinds(report: RecoveryReport) -> list[tuple[str, str, str]]:
    return [(each.kind, each.severity.value, each.subject) for each in report.findings]


@pytest.fixture
def three(tmp_path: Path) -> list[Path]:
    return [write_log_dir(tmp_path / f"c{node}", node) for node in (1, 2, 3)]


def test_an_intact_quorum_has_no_finding(three: list[Path]) -> None:
    report = _diagnose(*three)
    assert (report.verdict, report.majority, report.kraft_version) == (ElectionVerdict.ELECTABLE, 2, 1)
    assert (report.cluster_id, report.findings, report.next_steps) == (CLUSTER, (), ())
    assert [(v.node_id, v.status, v.directory_id, v.endpoint, v.can_lead) for v in report.voters] == [
        (node, NodeStatus.INTACT, directory_id(node), f"127.0.0.1:2100{node}", True) for node in (1, 2, 3)
    ]
    report.require_healthy()


def test_the_log_is_read_up_to_its_end(three: list[Path]) -> None:
    log = read_metadata_log(three[0] / METADATA)
    assert (log.end_offset, log.last_epoch, log.batch_count, log.snapshot, log.damage) == (2, 2, 2, (0, 0), ())
    assert log.last_election is not None
    assert (log.last_election.leader_id, log.last_election.epoch, log.last_election.granting) == (1, 2, (1, 2))
    assert [voter.directory_id for voter in log.last_election.voters] == [directory_id(node) for node in (1, 2, 3)]
    with (three[0] / METADATA / f"{0:020d}.log").open("ab") as file:
        file.write(batch(2, 2, [(6, voters_record([1, 2], "new.example"))])[:-5])
    assert read_metadata_log(three[0] / METADATA).voters == log.voters  # a write that was cut off
    path = three[0] / METADATA / f"{0:020d}.log"
    path.write_bytes(path.read_bytes()[: -len(batch(2, 2, [(6, voters_record([1, 2], "new.example"))])) + 5])
    with path.open("ab") as file:
        file.write(batch(2, 2, [(6, voters_record([1, 2], "new.example"))]))
    changed = read_metadata_log(three[0] / METADATA)
    assert ([voter.id for voter in changed.voters], changed.voters_offset) == ([1, 2], 2)
    assert str(changed.voters[0].endpoints[0]) == "new.example:21001"


def test_voters_that_are_down_are_to_be_started(three: list[Path]) -> None:
    report = _diagnose(*three, down=(2, 3))
    assert report.verdict is ElectionVerdict.ELECTABLE
    assert _kinds(report) == [("not_running", "problem", f"controller {node}") for node in (2, 3)]
    assert report.next_steps == ("Start controllers 2 and 3",)
    with pytest.raises(
        NotHealthy, match="a leader can be elected when 2 voters run; 1 of the 3 that can vote is running"
    ):
        report.require_healthy()


def _empty(log_dir: Path) -> None:
    (log_dir / METADATA / f"{0:020d}.log").write_bytes(b"")


def _damage(log_dir: Path) -> None:
    path = log_dir / METADATA / f"{0:020d}.log"
    data = bytearray(path.read_bytes())
    data[70] ^= 0xFF
    path.write_bytes(data)


def _break_state(log_dir: Path) -> None:
    (log_dir / METADATA / "quorum-state").write_text("{")


def _replace_setting(name: str, value: str) -> Callable[[Path], None]:
    """value: {} is the name of the log dir."""

    def change(log_dir: Path) -> None:
        path = log_dir / "meta.properties"
        changed = value.format(log_dir.name)
        path.write_text(re.sub(rf"^{re.escape(name)}=.*$", f"{name}={changed}", path.read_text(), flags=re.MULTILINE))

    return change


LOSSES: dict[str, tuple[Callable[[Path], None], NodeStatus, str]] = {
    "no metadata log": (
        lambda log_dir: shutil.rmtree(log_dir / METADATA), NodeStatus.MISSING, f"{METADATA} does not exist",
    ),
    "an empty log": (_empty, NodeStatus.EMPTY, "is empty, but the cluster had a leader"),
    "a wrong CRC": (_damage, NodeStatus.DAMAGED, "offset 0: the CRC does not match"),
    "another directory id": (
        _replace_setting("directory.id", directory_id(9)),
        NodeStatus.OTHER_DIRECTORY,
        f"has the directory id {directory_id(9)}, but the voters record names {directory_id(3)}",
    ),
    "another cluster": (
        _replace_setting("cluster.id", "other-{}"),
        NodeStatus.OTHER_CLUSTER,
        f"belongs to cluster other-c3, not to {CLUSTER}",
    ),
    "an invalid quorum-state": (
        _break_state, NodeStatus.DAMAGED,
        "quorum-state is invalid",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", LOSSES)
def test_a_voter_that_cannot_vote(name: str, three: list[Path]) -> None:
    lose, status, message = LOSSES[name]
    lose(three[2])
    report = _diagnose(*three)
    assert report.verdict is ElectionVerdict.ELECTABLE
    assert [voter.status for voter in report.voters] == [NodeStatus.INTACT, NodeStatus.INTACT, status]
    (text,) = [each.message for each in report.findings if each.kind == status.value]
    assert message in text
    assert "kctl quorum remove 3" in report.next_steps
    assert "kctl quorum add 3" in report.next_steps
    lose(three[1])
    report = _diagnose(*three)
    lost = ElectionVerdict.NO_MAJORITY
    assert (report.verdict, report.voters[0].can_lead) == (lost, False)
    assert any(f"give 1 lost voter the copy of controller 1 ({three[0]})" in step for step in report.next_steps)
    assert any(f"directory.id={directory_id(2)}" in step for step in report.next_steps)
    with pytest.raises(NotHealthy, match="no leader can be elected: 1 of 3 voters can vote, and an election needs 2"):
        report.require_healthy()


def test_the_log_dir_of_another_cluster_is_left_alone(three: list[Path]) -> None:
    for log_dir in three[1:]:
        _replace_setting("cluster.id", "other-{}")(log_dir)
    for report in (_diagnose(*three), _diagnose(three[0], three[0], write_log_dir(three[0].parent / "x", 2), three[2])):
        of_foreign = [step for step in report.next_steps if str(three[1]) in step or str(three[2]) in step]
        assert len(of_foreign) == 1
        assert "as it is, because it belongs to another cluster" in of_foreign[0]


def test_replicas_in_the_log_dir_of_a_lost_voter_are_mentioned(three: list[Path]) -> None:
    _replace_setting("directory.id", directory_id(9))(three[2])
    assert not any("replicas of topics" in step for step in _diagnose(*three).next_steps)
    (three[2] / "orders-0").mkdir()
    assert any(f"{three[2]} also holds replicas of topics" in step for step in _diagnose(*three).next_steps)


def test_all_logs_are_empty(three: list[Path]) -> None:
    """A new cluster; or all controllers lost their log, if partitions of topics are left."""
    for log_dir in three:
        _empty(log_dir)
    assert _diagnose(*three).verdict is ElectionVerdict.ELECTABLE
    for log_dir in three:
        (log_dir / "orders-0").mkdir()
    report = _diagnose(*three)
    assert (report.verdict, {voter.status for voter in report.voters}) == (
        ElectionVerdict.NO_MAJORITY,
        {NodeStatus.EMPTY},
    )
    assert report.next_steps[-1].startswith("No undamaged copy of the metadata log was read.")


def test_the_only_voter_keeps_its_log(tmp_path: Path) -> None:
    """Only quorum-state is invalid: Kafka takes the epoch of the log if the file is missing."""
    log_dir = write_log_dir(tmp_path / "c1", 1, voters=(1,))
    (log_dir / METADATA / "quorum-state").write_text("")
    report = _diagnose(log_dir)
    assert (report.verdict, report.findings[0].message) == (
        ElectionVerdict.NO_MAJORITY, "quorum-state is invalid (the file is empty): the controller does not start",
    )  # fmt: skip
    assert any("keep its own" in step and "move the file quorum-state away" in step for step in report.next_steps)


def test_log_dirs_that_were_not_read_leave_it_open(three: list[Path]) -> None:
    report = _diagnose(three[0], down=(3,))
    assert (report.verdict, report.voters[0].can_lead) == (ElectionVerdict.UNDECIDED, None)
    assert _kinds(report) == [("unreachable", "problem", "controller 3")]
    assert report.next_steps[0].startswith("Run `kctl quorum recover` on the hosts of controllers 2 and 3")


def test_a_shorter_log_does_not_win(tmp_path: Path) -> None:
    dirs = [write_log_dir(tmp_path / f"c{n}", n, epochs=(1, 2, 3)[: 3 if n < 3 else 1]) for n in (1, 2, 3)]
    report = _diagnose(*dirs)
    assert [voter.can_lead for voter in report.voters] == [True, True, False]
    assert _kinds(report) == [("behind", "note", "controller 3")]
    shutil.rmtree(dirs[0])
    assert [voter.can_lead for voter in _diagnose(dirs[1], dirs[2]).voters] == [None, True, None]


@pytest.mark.parametrize(
    ("state", "kind", "message"),
    [
        ({"leaderId": -1, "leaderEpoch": 1, "votedId": 2}, "stale_vote", "quorum-state has epoch 1, but the log has"),
        ({"leaderId": -1, "leaderEpoch": 5, "votedId": 7}, "stale_vote", "its vote in epoch 5 is for controller 7"),
        (
            {"leaderId": -1, "leaderEpoch": 5, "votedId": 2, "votedDirectoryId": directory_id(9)}, "stale_vote",
            f"for controller 2 with the directory id {directory_id(9)}, which is not a voter now",
        ),
        ({}, "no_quorum_state", "the node does not know in which epoch it voted"),
    ],
)  # fmt: skip
def test_votes_that_do_not_fit(state: dict[str, object], kind: str, message: str, tmp_path: Path) -> None:
    dirs = [write_log_dir(tmp_path / f"c{node}", node, state=state if node == 3 else None) for node in (1, 2, 3)]
    report = _diagnose(*dirs)
    assert _kinds(report) == [(kind, "note", "controller 3")]
    assert message in report.findings[0].message
    report.require_healthy()


def test_two_leaders_of_one_epoch(tmp_path: Path) -> None:
    states: dict[int, dict[str, object] | None] = {
        1: {"leaderId": 1, "leaderEpoch": 2},
        2: {"leaderId": 2, "leaderEpoch": 2},
        3: None,
    }
    report = _diagnose(*(write_log_dir(tmp_path / f"c{n}", n, state=states[n]) for n in (1, 2, 3)))
    assert report.findings[0].message == "epoch 2 has several leaders: 1 by node 1, 3; 2 by node 2"


def test_two_clusters(three: list[Path], tmp_path: Path) -> None:
    foreign = write_log_dir(tmp_path / "foreign", 4, voters=(1,), cluster="other", directory=9)
    report = _diagnose(*three, foreign)
    assert [other.status for other in report.others] == [NodeStatus.OTHER_CLUSTER]
    assert _kinds(report) == [("cluster_ids", "problem", "cluster")]


def test_an_observer_may_have_the_longest_copy(three: list[Path], tmp_path: Path) -> None:
    broker = write_log_dir(tmp_path / "b", 4, epochs=(1, 2, 2), directory=9)
    _empty(three[1])
    _empty(three[2])
    report = _diagnose(*three, broker)
    assert ("longer_copy", "note", "node 4") in _kinds(report)
    assert any(f"the copy of controller 4 ({broker})" in step for step in report.next_steps)


def test_paths(three: list[Path], tmp_path: Path) -> None:
    assert [node.node_id for node in read_paths([tmp_path])] == [1, 2, 3]
    assert [node.node_id for node in read_paths([three[0] / METADATA, three[0]])] == [1]
    (tmp_path / "empty").mkdir()
    with pytest.raises(NotFound):
        read_paths([tmp_path / "none"])
    with pytest.raises(UsageError, match="is not a log dir"):
        read_paths([tmp_path / "empty"])
    with pytest.raises(UsageError, match="is not a folder"):
        read_paths([three[0] / "meta.properties"])


BAD_STATES = [b"", b"[]", b"{}", b'{"leaderEpoch": "x"}', b'{"leaderEpoch": 1, "currentVoters": [1]}']


@pytest.mark.parametrize("data", BAD_STATES)
def test_an_invalid_quorum_state(data: bytes) -> None:
    with pytest.raises(ValueError):
        parse_quorum_state(data)


def test_endpoints() -> None:
    names = {
        Endpoint("C", "127.0.0.1", free_port()): "connection refused",
        Endpoint("C", "name.invalid", 9093): "the name does not resolve",
    }
    assert endpoint_problems(names) == names
