"""What group changes tell when only a part was done, not verified, or was planned from what is not so any
more: fed with coordinators' answers, because a real one cannot be made to give these on demand."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from types import SimpleNamespace as Answer
from typing import Any, cast

import pytest

from fake_cluster import FakeCluster
from kctl.base.outcomes import ItemResult
from kctl.cluster.groups import names
from kctl.cluster.groups.model import Group, Groups, Member
from kctl.cluster.groups.names import chosen_groups
from kctl.cluster.log_offsets import LogOffsets
from kctl.cluster.offsets import Commit
from kctl.commands.app import main
from kctl.commands.group.tables import judge_changes
from kctl.commands.terminal import watching
from kctl.errors import (
    AuthenticationFailed,
    ConnectionFailed,
    KctlError,
    NotAuthorized,
    NotFound,
    OperationFailed,
    Refused,
    UsageError,
)
from kctl.groups import delete, export, group_offsets, overview, remove_members, reset
from kctl.groups.commit import OffsetToCommit
from kctl.groups.delete import DeletedGroup, DeletedOffset, OffsetDeletion
from kctl.groups.remove_members import RemovedMember
from kctl.groups.reset import OffsetChange, ResetPlan, apply_reset
from kctl.groups.reset_rules import ResetTarget, To
from kctl.model import ClusterState, TopicPartition
from kctl.protocol.client import ClusterClient

NOBODY = cast("ClusterClient", None)
T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
GONE = ConnectionFailed("nobody is there")
FORBIDDEN = NotAuthorized("topic t: not authorized")


def change(
    partition: int, old: int | None = 100, *, new: int = 50, result: ItemResult = ItemResult.WOULD_RESET
) -> OffsetChange:
    return OffsetChange("g", "t", partition, result, old, new, None, None, None, 0, 200)


Commits = Mapping[TopicPartition, Commit] | KctlError


class Coordinator:
    """Answers fetch_commits with each of `seen` in turn, and commit_offsets with `taken`."""

    def __init__(self, *seen: Commits, taken: Mapping[TopicPartition, KctlError | None] | None = None) -> None:
        self.seen, self.taken = list(seen), taken or {}
        self.unsettled: set[TopicPartition] = set()
        self.committed: list[Mapping[TopicPartition, OffsetToCommit]] = []

    def fetch_commits(
        self, _client: object, groups: Sequence[str], *, coordinators: object = None
    ) -> dict[str, Commits]:
        return dict.fromkeys(groups, self.seen.pop(0))

    def commit_offsets(
        self, _client: object, offsets: Mapping[str, Mapping[TopicPartition, OffsetToCommit]], *, coordinators: object
    ) -> dict[str, dict[TopicPartition, KctlError | None]]:
        self.committed += offsets.values()
        return {group: {tp: self.taken.get(tp) for tp in each} for group, each in offsets.items()}

    def open_commits(
        self, _client: object, partitions: Mapping[str, Collection[TopicPartition]], *, coordinators: object
    ) -> dict[str, set[TopicPartition]]:
        return {group: self.unsettled & set(each) for group, each in partitions.items()}

    def serve(self, patch: pytest.MonkeyPatch) -> Coordinator:
        patch.setattr(group_offsets, "fetch_commits", self.fetch_commits)
        patch.setattr(group_offsets, "commit_offsets", self.commit_offsets)
        patch.setattr(group_offsets, "open_commits", self.open_commits)
        return self


def at(offset: int, metadata: str = "") -> Commit:
    return Commit(offset, -1, metadata)


@pytest.mark.parametrize(
    ("old", "now", "said"),
    [
        (100, {T0: at(10_100)}, "t-0 had 100, now 10100"),
        (100, {}, "t-0 had 100, now no commit"),
        (None, {T0: at(3)}, "t-0 had no commit, now 3"),
    ],
)
def test_a_group_that_went_on_while_the_question_waited_is_refused(
    monkeypatch: pytest.MonkeyPatch, old: int | None, now: Commits, said: str
) -> None:
    there = Coordinator(now).serve(monkeypatch)
    with pytest.raises(Refused, match=said):
        apply_reset(NOBODY, ResetPlan([change(0, old)]))
    assert there.committed == []


def test_committed_and_not_read_back_is_no_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Partition 0 was taken, partition 1 refused, and then the network is gone."""
    Coordinator({T0: at(100), T1: at(100)}, GONE, taken={T1: FORBIDDEN}).serve(monkeypatch)
    done, errors = apply_reset(NOBODY, ResetPlan([change(0), change(1)]))
    assert [(row.result, row.error) for row in done] == [
        ("failed", "committed, but not verified: nobody is there"),
        ("failed", "topic t: not authorized"),
    ]
    with pytest.raises(OperationFailed, match="2 of 2 offsets not reset"):
        judge_changes(done, errors, what="reset")


def test_a_transaction_that_began_while_the_question_waited_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    there = Coordinator({T0: at(100), T1: at(100)}).serve(monkeypatch)
    there.unsettled = {T1}
    with pytest.raises(Refused, match="t-1 of group 'g': an open transaction would replace the new offset"):
        apply_reset(NOBODY, ResetPlan([change(0), change(1)]))
    assert there.committed == []


def test_all_refused_is_a_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    Coordinator({T0: at(100), T1: at(100)}, {T0: at(100)}, taken={T0: FORBIDDEN, T1: FORBIDDEN}).serve(monkeypatch)
    done, errors = apply_reset(NOBODY, ResetPlan([change(0), change(1)]))
    with pytest.raises(NotAuthorized):
        judge_changes(done, errors, what="reset")


def test_metadata_is_restored_and_read_back(monkeypatch: pytest.MonkeyPatch) -> None:
    there = Coordinator({T0: at(7, "theirs")}, {T0: at(7, "theirs")}, {T0: at(7, "theirs")}).serve(monkeypatch)
    group = Group("g", "Empty", "consumer", "classic", 1)
    monkeypatch.setattr(reset, "describe_groups", lambda *_: Groups({"g": group}, {}, {}))
    monkeypatch.setattr(reset, "read_log_offsets", lambda *_: ({T0: LogOffsets(0, 9)}, set(), {}))
    plan = reset.plan_reset(NOBODY, ["g"], ResetTarget(To.GIVEN), offsets={"g": {T0: OffsetToCommit(7, "mine")}})
    (row,) = plan.todo
    assert (row.difference, row.note) == (0, "only the metadata differs")
    done, _ = apply_reset(NOBODY, plan)
    assert there.committed == [{T0: OffsetToCommit(7, "mine")}]
    assert [(row.result, row.error) for row in done] == [("failed", "7 theirs is committed instead")]


@pytest.mark.parametrize("metadata", ["", "theirs"])
def test_the_same_offset_and_metadata_is_unchanged(monkeypatch: pytest.MonkeyPatch, metadata: str) -> None:
    """A file without metadata says nothing about it."""
    Coordinator({T0: at(7, "theirs")}).serve(monkeypatch)
    group = Group("g", "Empty", "consumer", "classic", 1)
    monkeypatch.setattr(reset, "describe_groups", lambda *_: Groups({"g": group}, {}, {}))
    monkeypatch.setattr(reset, "read_log_offsets", lambda *_: ({T0: LogOffsets(0, 9)}, set(), {}))
    plan = reset.plan_reset(NOBODY, ["g"], ResetTarget(To.GIVEN), offsets={"g": {T0: OffsetToCommit(7, metadata)}})
    assert [row.result for row in plan.rows] == ["unchanged"]


# --- what brokers hide --------------------------------------------------------------------------------------------


def test_all_commits_are_not_taken_from_who_does_not_tell_all(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = FakeCluster()
    fake.always("Metadata", NotAuthorized("not authorized to describe it"))
    group = Group("g", "Empty", "consumer", "classic", 1)
    monkeypatch.setattr(reset, "describe_groups", lambda *_: Groups({"g": group}, {}, {}))
    monkeypatch.setattr(export, "describe_existing", lambda *_: {"g": group})
    with pytest.raises(NotAuthorized, match="brokers may omit commits"):
        reset.plan_reset(fake.client, ["g"], ResetTarget(To.EARLIEST))
    with pytest.raises(NotAuthorized, match="brokers may omit commits"):
        export.exported(fake.client, ["g"])


# --- deletion and removal -----------------------------------------------------------------------------------------


def test_a_deletion_that_cannot_be_looked_at_is_no_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    outcomes = {"a": Refused("group a has members"), "b": True}
    monkeypatch.setattr(delete, "ask_coordinators", lambda *_: outcomes)
    monkeypatch.setattr(delete, "describe_groups", lambda *_: Groups({}, {}, {"a": GONE, "b": GONE}))
    plan = [DeletedGroup(name, ItemResult.WOULD_DELETE, "Empty", "classic", 0, ()) for name in outcomes]
    done, errors = delete.delete_groups(NOBODY, plan)
    assert [row.error for row in done] == [
        "group a has members",
        "deleted, but not verified: nobody is there",
    ]
    assert [isinstance(error, Refused) for error in errors] == [True, False], "one for each failed row"


def test_offsets_deleted_and_not_read_back_are_no_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delete, "ask_coordinators", lambda *_: {"g": {T0: None, T1: FORBIDDEN}})
    monkeypatch.setattr(delete, "fetch_commits", lambda *_: {"g": GONE})
    plan = [DeletedOffset("g", "t", number, ItemResult.WOULD_DELETE, 5) for number in (0, 1)]
    done, errors = delete.delete_offsets(NOBODY, OffsetDeletion("g", plan))
    with pytest.raises(OperationFailed, match="not verified"):
        judge_changes(done, errors, what="deleted")


def member(member_id: str, instance: str | None = None) -> RemovedMember:
    return RemovedMember("g", member_id, instance, "client", "host", 1, ItemResult.WOULD_REMOVE)


def _left(_node: int, request: Any) -> Any:
    """A coordinator that knows static members under other member ids by now."""
    rows = [
        Answer(
            member_id=m.member_id, group_instance_id=m.group_instance_id, error_code=82 if m.group_instance_id else 0
        )
        for m in request.members
    ]
    return Answer(error_code=0, members=rows)


def test_a_static_member_that_was_restarted_is_not_thrown_out(monkeypatch: pytest.MonkeyPatch) -> None:
    now = Group("g", "Stable", "consumer", "classic", 1, members=(Member("new", "i", "client", "host", ()),))
    monkeypatch.setattr(remove_members, "describe_groups", lambda *_: Groups({"g": now}, {}, {}))
    fake = FakeCluster()
    fake.always("LeaveGroup", _left)
    done, errors = remove_members.remove_members(fake.client, "g", [member("old", "i"), member("plain")])
    assert [(row.result, row.error) for row in done] == [("joined again", None), ("removed", None)]
    assert errors == []
    assert [
        (m.member_id, m.group_instance_id)
        for each in fake.requests
        if each.api == "LeaveGroup"
        for m in each.request.members
    ] == [("old", "i"), ("plain", None)]


@pytest.mark.parametrize(
    ("failure", "result"), [(GONE, "failed"), (NotFound("the group went with its last member"), "removed")]
)
def test_a_removal_that_cannot_be_read_back_is_told(
    monkeypatch: pytest.MonkeyPatch, failure: KctlError, result: str
) -> None:
    monkeypatch.setattr(remove_members, "ask_coordinators", lambda *_: {"g": {"m": None}})
    monkeypatch.setattr(remove_members, "describe_groups", lambda *_: Groups({}, {}, {"g": failure}))
    done, errors = remove_members.remove_members(NOBODY, "g", [member("m")])
    assert [row.result for row in done] == [result]
    assert [type(error) for error in errors] == ([OperationFailed] if result == "failed" else [])


# --- which groups -------------------------------------------------------------------------------------------------


@pytest.fixture
def four_types(monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = {"old": None, "new": "consumer", "shared": "share", "streaming": "streams"}
    listed = Groups({name: Group(name, "Empty", "", kind, 1) for name, kind in kinds.items()}, {}, {})
    monkeypatch.setattr("kctl.cluster.groups.describe.list_groups", lambda *_: listed)


@pytest.mark.usefixtures("four_types")
@pytest.mark.parametrize(
    ("types", "with_commits", "chosen", "left_out"),
    [
        ((), False, ["new", "old", "shared", "streaming"], []),
        ((), True, ["new", "old", "streaming"], ["shared"]),
        (("classic",), False, ["old"], []),
        (("Consumer", "share"), True, ["new"], ["shared"]),
    ],
)
def test_groups_by_expression(
    types: Collection[str], with_commits: bool, chosen: list[str], left_out: list[str]
) -> None:
    assert chosen_groups(NOBODY, (), [".*"], types, with_commits=with_commits) == (chosen, left_out)


@pytest.mark.usefixtures("four_types")
def test_no_groups_by_expression() -> None:
    with pytest.raises(Refused, match="'shared' is a share group"):
        chosen_groups(NOBODY, (), ["sh.*"], with_commits=True)
    with pytest.raises(NotFound, match="no matching group is of type streams"):
        chosen_groups(NOBODY, (), ["old"], ["streams"])
    with pytest.raises(UsageError, match="--type requires --match"):
        chosen_groups(NOBODY, ["old"], (), ["classic"])
    with pytest.raises(UsageError, match="is not a group type"):
        names.known_types(["any"])


# --- the commands -------------------------------------------------------------------------------------------------


@pytest.fixture
def connected(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = FakeCluster()
    fake.always("Metadata", ClusterState("id", 1, {}, {}))
    fake.always("DescribeCluster", Answer(error_code=0, authorized_operations={8}))
    monkeypatch.setattr("kctl.protocol.client.connect", lambda *_, **__: fake)
    monkeypatch.setattr(watching, "time", Answer(sleep=_second_pass))


def _second_pass(_seconds: float) -> None:
    raise AssertionError("the watch goes on")


HERE = ("--bootstrap-server", "127.0.0.1:1")


@pytest.mark.usefixtures("connected")
@pytest.mark.parametrize(
    "argv",
    [
        ("group", "list", "--watch", "--state", "foo"),
        ("group", "list", "--watch", "--type", "foo"),
        ("group", "list", "--watch", "--match", "("),
        ("group", "describe", "--watch", "x" * 40_000),
        ("lag", "--watch", "x" * 40_000),
    ],
)
def test_a_watch_with_wrong_input_ends(argv: Sequence[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*argv, *HERE]) == 2
    assert capsys.readouterr().out == ""


@pytest.mark.usefixtures("connected")
def test_a_watch_logs_in_once(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def refused(*_: object, **__: object) -> None:
        raise AuthenticationFailed("wrong password")

    monkeypatch.setattr(overview, "summaries", refused)
    assert main(["group", "list", "--watch", *HERE]) == 3
    assert "wrong password" in capsys.readouterr().err


@pytest.mark.usefixtures("connected")
@pytest.mark.parametrize("command", [("delete",), ("reset-offsets", "--all-topics", "--to-latest")])
@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--yes",), "not confirmed: --match selects 2"),
        (("--yes", "--expect", "3"), "--match selects 2, not 3"),
        (("--expect", "3"), "--match selects 2, not 3"),
    ],
)
def test_a_pattern_that_nobody_looked_at_changes_no_group(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    command: Sequence[str], options: Sequence[str], said: str,
) -> None:  # fmt: skip
    found = Groups({name: Group(name, "Empty", "consumer", "classic", 1) for name in ("a", "b")}, {}, {})
    monkeypatch.setattr("kctl.cluster.groups.describe.list_groups", lambda *_: found)
    assert main(["group", *command, "--match", ".*", *options, *HERE]) == 4
    assert said in capsys.readouterr().err


@pytest.mark.usefixtures("connected")
@pytest.mark.parametrize(
    ("options", "failures", "code"),
    [
        (("--match", "x"), [], 4),
        (("--match", "x", "--type", "share"), [], 4),
        ((), [], 0),
        (("--match", "x"), ["no"], 5),
    ],
)
def test_a_pattern_that_no_group_matches(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    options: Sequence[str], failures: Sequence[str], code: int,
) -> None:  # fmt: skip
    unlisted = {number: OperationFailed(text) for number, text in enumerate(failures)}
    answer = Answer(groups={}, failed_groups={}, unlisted=unlisted)
    monkeypatch.setattr(overview, "list_groups", lambda _: answer)
    assert main(["group", "list", *options, *HERE]) == code
    assert ("no group matches x" in capsys.readouterr().err) == (code == 4)


@pytest.mark.usefixtures("connected")
@pytest.mark.parametrize(("asked", "code"), [(("streaming",), 4), (("streaming", "known"), 5), (("known",), 0)])
def test_members_that_are_not_known_are_no_success(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], asked: Sequence[str], code: int
) -> None:
    groups = {
        "streaming": Group("streaming", "Stable", "", "streams", 1),
        "known": Group("known", "Empty", "consumer", "classic", 1, members=()),
    }
    monkeypatch.setattr(overview, "describe_existing", lambda _, them: {name: groups[name] for name in them})
    assert main(["group", "members", *asked, "-o", "json", *HERE]) == code
    out, err = capsys.readouterr()
    assert out == ("" if code == 4 else "[]\n")
    assert ("the members of streaming are unknown" in err) == (code != 0)
