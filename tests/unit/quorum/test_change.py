"""Changes of the voters whose answers get lost, and conversions that stop after the level was raised."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kctl.base.address import Address
from kctl.errors import (
    AlreadyExists,
    ConnectionTimedOut,
    InvalidFile,
    KctlError,
    NotAuthorized,
    NotSupported,
    OperationFailed,
    Refused,
)
from kctl.protocol.codes import ErrorCode
from kctl.protocol.quorum import Quorum, QuorumReplica
from kctl.quorum import change as change_module
from kctl.quorum import convert
from kctl.quorum.change import carry_out
from kctl.quorum.convert import Conversion, ConvertNode, ConvertStep, VoterSource
from kctl.quorum.plan import VoterAction, VoterChange, VoterStep

DIRECTORY = "AAAAAAAAAAAAAAAAAAAAAQ"
ADD = VoterChange(
    VoterAction.ADD, 104, DIRECTORY, "CONTROLLER", Address("host", 9104), (101, 102, 103), (101, 102, 103, 104),
    (VoterStep.ADD,),
)  # fmt: skip
REMOVE = VoterChange(
    VoterAction.REMOVE, 103, DIRECTORY, "CONTROLLER", None, (101, 102, 103), (101, 102), (VoterStep.REMOVE,)
)


class Leader:
    """A leader that answers in this order: an error, a code, or a code after which the change is in force.

    A real leader cannot be made to lose an answer at a given moment.
    """

    def __init__(self, change: VoterChange, *answers: KctlError | ErrorCode, lists_early: bool = False) -> None:
        self.target = SimpleNamespace(cluster_id="c", controllers=False)
        self.change, self.answers = change, list(answers)
        self.voters = change.voters
        self.lists_early = lists_early  # the record is in the log, and not committed

    def send_to_quorum(self, _request: Any, **_options: Any) -> Any:
        answer = self.answers.pop(0)
        if self.lists_early:
            self.voters = self.change.voters_after
        if isinstance(answer, KctlError):
            raise answer
        if answer in {ErrorCode.NONE, ErrorCode.DUPLICATE_VOTER, ErrorCode.VOTER_NOT_FOUND}:
            self.voters = self.change.voters_after
        return SimpleNamespace(error_code=answer, error_message=None)

    def quorum(self, _client: object) -> Quorum:
        voters = tuple(QuorumReplica(node, None, 1, 0, 1, 1) for node in self.voters)
        return Quorum(101, 1, 1, voters, (), ())


def run(leader: Leader, monkeypatch: pytest.MonkeyPatch, *, timeout_s: float = 5.0) -> None:
    monkeypatch.setattr(change_module, "_read_quorum", leader.quorum)
    monkeypatch.setattr(change_module, "_POLL_S", 0.01)
    carry_out(leader, leader.change, timeout_s=timeout_s)  # type: ignore[arg-type]  # the part of a client in use


@pytest.mark.parametrize(("change", "applied"), [(ADD, ErrorCode.DUPLICATE_VOTER), (REMOVE, ErrorCode.VOTER_NOT_FOUND)])
@pytest.mark.parametrize("lost", [ConnectionTimedOut("no response"), ErrorCode.REQUEST_TIMED_OUT])
@pytest.mark.parametrize("lists_early", [True, False])
def test_a_repetition_of_an_applied_change_succeeds(
    change: VoterChange,
    applied: ErrorCode,
    lost: KctlError | ErrorCode,
    lists_early: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    leader = Leader(change, lost, lost, applied, lists_early=lists_early)
    run(leader, monkeypatch)
    assert (leader.voters, leader.answers) == (change.voters_after, [])


def test_a_voter_of_someone_else_is_no_success(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(AlreadyExists):
        run(Leader(ADD, ErrorCode.DUPLICATE_VOTER), monkeypatch)


def test_a_refusal_is_one_only_if_nothing_was_sent_before(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(NotAuthorized):
        run(Leader(ADD, ErrorCode.CLUSTER_AUTHORIZATION_FAILED), monkeypatch)
    lost = ConnectionTimedOut("no response")
    with pytest.raises(OperationFailed, match="outcome unknown: no response; controller 104: not authorized") as error:
        run(Leader(ADD, lost, ErrorCode.CLUSTER_AUTHORIZATION_FAILED), monkeypatch)
    assert (error.value.exit_code, error.value.reason) == (5, "outcome_unknown")


def test_the_cause_survives_the_last_repetition(monkeypatch: pytest.MonkeyPatch) -> None:
    lost = [ConnectionTimedOut("no response")] * 100
    with pytest.raises(OperationFailed, match="outcome unknown: no response; the voters are 101, 102, 103"):
        run(Leader(ADD, *lost), monkeypatch, timeout_s=0.1)


@pytest.mark.parametrize("change", [ADD, REMOVE])
def test_listed_voters_that_were_never_committed_are_no_success(
    change: VoterChange, monkeypatch: pytest.MonkeyPatch
) -> None:
    leader = Leader(change, *[ErrorCode.REQUEST_TIMED_OUT] * 100, lists_early=True)
    after = ", ".join(map(str, change.voters_after))
    with pytest.raises(OperationFailed, match=f"the voters are {after}, which may not be committed") as error:
        run(leader, monkeypatch, timeout_s=0.2)
    assert error.value.reason == "outcome_unknown"


# --- conversions ------------------------------------------------------------------------------------------------------


@pytest.fixture
def _nothing_real(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(convert, "_plan_feature", lambda _client: None)
    monkeypatch.setattr(convert, "apply", lambda *_args, **_options: None)
    monkeypatch.setattr(convert, "_write_settings", lambda *_: None)


def conversion(*steps: ConvertStep) -> Conversion:
    node = ConvertNode(101, "controller", VoterSource.STATIC)
    return Conversion("dev", 0, (101,), "host:9101", (node,), steps, ())


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        (tuple(ConvertStep), "kraft.version is 1 now and the settings are written, but: cannot be stopped now"),
        ((ConvertStep.SETTINGS, ConvertStep.RESTART), "the settings are written, but: cannot be stopped now"),
    ],
)
@pytest.mark.usefixtures("_nothing_real")
def test_a_refused_restart_after_a_change_is_a_failure(
    steps: tuple[ConvertStep, ...], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise Refused("cannot be stopped now", hint="find the cause")

    monkeypatch.setattr(convert, "restart_own", refuse)
    progress: Any = SimpleNamespace(update=lambda *_: None)
    client: Any = None
    options: Any = None
    with pytest.raises(OperationFailed, match=message) as error:
        convert.carry_out(client, conversion(*steps), options, progress)
    assert (error.value.exit_code, error.value.hint) == (5, "find the cause\nrun the same command again to continue")
    with pytest.raises(Refused, match=r"^cannot be stopped now"):
        convert.carry_out(client, conversion(ConvertStep.RESTART), options, progress)


def test_a_file_that_cannot_be_changed_is_found_before_the_level_is_raised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A key with an escape, which Java reads and kctl does not rewrite."""
    files = [tmp_path / "1.properties", tmp_path / "2.properties"]
    files[0].write_text("controller.quorum.voters=1@a:1\n")
    files[1].write_text("controller\\u002equorum.voters=1@a:1\n")
    monkeypatch.setattr(convert, "apply", lambda *_args, **_options: pytest.fail("the level was raised"))
    nodes = tuple(ConvertNode(n, "controller", VoterSource.STATIC, None, file) for n, file in enumerate(files, 1))
    plan = replace(conversion(*ConvertStep), nodes=nodes)
    anything: Any = SimpleNamespace(update=lambda *_: None)
    with pytest.raises(InvalidFile, match="cannot find the line"):
        convert.carry_out(anything, plan, anything, anything)
    assert files[0].read_text() == "controller.quorum.voters=1@a:1\n"


def test_the_hint_names_the_first_release_that_converts_voters(monkeypatch: pytest.MonkeyPatch) -> None:
    """KAFKA-16538: 3.9 and 4.0 have dynamic voters, and cannot convert static ones."""
    anything: Any = None
    quorum = SimpleNamespace(nodes=())
    monkeypatch.setattr(convert, "read_facts", lambda *_, **__: SimpleNamespace(kraft_version=0, quorum=quorum))
    with pytest.raises(NotSupported) as error:
        convert.plan_conversion(anything)
    assert error.value.hint == "upgrade all nodes to Kafka 4.1 or later"
